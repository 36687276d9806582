"""Experiments of the papers run again, shortened: both methods agree, and the figures are there."""

import json

import pytest

from bunraku import cli


def test_yn_hrp(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert cli.main(["reproduce", "yn-hrp", "--quick", "--json", "--out", str(tmp_path / "new")]) == 0
    result = json.loads(capsys.readouterr().out)
    figure = result["figure"]
    assert (figure["dof"], figure["steps"]) == (34, 200)
    assert figure["largest_difference"] < 1e-6     # one trajectory by two methods
    assert figure["right_foot_raised_m"] > 0.03    # let go, it rises
    assert figure["loop_gap_m"] < 5e-3
    assert all(row["difference"] < 1e-9 for row in result["scaling"])
    assert result["scaling"][-1]["ratio"] < 1.0    # in a chain of 48 degrees of freedom it pays
    assert (tmp_path / "new" / "yn-hrp.png").stat().st_size > 10_000


def test_yn_hrp_in_words(capsys):
    assert cli.main(["reproduce", "yn-hrp", "--quick"]) == 0
    said = capsys.readouterr().out
    assert "6.8" in said
    assert "17.0" in said
