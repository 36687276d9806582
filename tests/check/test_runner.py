"""`bunraku check`: failures of every kind are one failed case each, with the seed that repeats it."""

import math

from bunraku.check import runner


def test_errors_hangs_and_crashes_are_failures_of_their_seed_alone():
    result = runner.attack("attacks.fragile", 6, workers=1)
    assert result["cases"] == 6
    assert result["count"] == 30
    failures = dict(result["failures"])
    assert sorted(failures) == [1, 2, 3]
    assert "ValueError: one is wrong" in failures[1]
    assert failures[2].startswith("hung")
    assert failures[3] == "crashed: SIGSEGV"
    assert math.isclose(result["worst"]["error"], 0.5)
    assert math.isnan(result["worst"]["gap"]), "NaN counts as the worst value"
    page = runner.text(result)
    assert "3 failures" in page
    assert "--first 3 --seeds 1" in page


def test_minutes_end_a_run_of_any_length():
    result = runner.attack("attacks.fragile", 1, first=6, minutes=0.02, workers=1)
    assert result["cases"] > 1
    assert result["seconds"] < 60
