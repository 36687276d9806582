"""`bunraku reproduce yn-hrp`, shortened: both methods agree, loops stay closed, and the figures are there."""

import json

import pytest

from bunraku import cli
from bunraku.reproduce import yn_hrp


def test_two_methods_give_one_trajectory_and_the_chain_pays(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert cli.main(["reproduce", "yn-hrp", "--quick", "--json", "--out", str(tmp_path / "new")]) == 0
    result = json.loads(capsys.readouterr().out)
    figure = result["figure"]
    assert (figure["dof"], figure["steps"]) == (34, 200)
    assert figure["largest_difference"] < 1e-9     # one trajectory by two methods
    assert figure["right_foot_raised_m"] > 0.03    # let go, it rises
    assert figure["largest_gap"] < 2e-12
    assert figure["simulation"]["loop_error"] < 2e-12 < 1e-9 < figure["simulation"]["loop_drift"]
    assert figure["simulation"]["difference"] < 1e-8
    assert all(row["difference"] < 1e-9 for row in result["scaling"])
    assert result["scaling"][-1]["ratio"] < 1.0    # in a chain of 48 degrees of freedom it pays
    check_processes(result["processes"])
    page = yn_hrp.text(result)
    assert all(said in page for said in ("6.8", "17.0", "7.84", "9.68"))
    assert (tmp_path / "new" / "yn-hrp.png").stat().st_size > 10_000


def check_processes(result):
    """Table 1 at the paper's costs: fitted to one and two processes, predicted for four. Fig. 3: time grows less."""
    rows = result["paper_costs"]["rows"]
    assert [(row["dof"], row["processes"], row["paper_ms"]) for row in rows] == [
        (34, 1, 10.8), (34, 2, 8.50), (34, 4, 7.84), (48, 1, 15.1), (48, 2, 10.9), (48, 4, 9.68)]
    for row in rows:
        for key in ("ms", "ms_repeating"):
            assert abs(row[key] / row["paper_ms"] - 1.0) < {1: 0.03, 2: 0.08, 4: 0.2}[row["processes"]]
    for key in ("ms", "ms_repeating"):
        at = {(row["links"], row["processes"]): row[key] for row in result["paper_costs"]["chains"]}
        assert abs(at[32, 1] / at[8, 1] - 4.0) < 0.1
        assert at[32, 16] / at[8, 4] < 0.8 * at[32, 1] / at[8, 1]
    assert {(row["dof"], row["processes"]) for row in result["table"]} == {(d, p) for d in (34, 48) for p in (1, 2, 4)}
