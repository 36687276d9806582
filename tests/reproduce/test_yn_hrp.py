"""`bunraku reproduce yn-hrp`, shortened: both methods agree, and the figures are there."""

import json

import pytest

from bunraku import cli


def test_two_methods_give_one_trajectory_and_the_chain_pays(tmp_path, capsys):
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


def test_the_page_shows_the_papers_times(capsys):
    assert cli.main(["reproduce", "yn-hrp", "--quick"]) == 0
    said = capsys.readouterr().out
    assert "6.8" in said
    assert "17.0" in said
