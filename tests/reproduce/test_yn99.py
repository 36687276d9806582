"""`bunraku reproduce yn99`: the paper's counts, and the laws of mechanics at every change of structure."""

import json

import pytest

from bunraku import cli
from bunraku.reproduce import yn99


@pytest.fixture(scope="module")
def runs():
    return {run["name"]: run for run in yn99.run()["runs"]}


def test_degrees_of_freedom_are_those_of_the_paper(runs):
    for name, (first, last) in {"high bar": (24, 23), "swing": (30, 28), "swing with a hinge": (31, 29)}.items():
        counts = [phase["joint_dof"] for phase in runs[name]["phases"]]
        assert (counts[0], counts[-1]) == (first, last)
        assert counts == sorted(counts, reverse=True)
        for phase in runs[name]["phases"]:
            assert phase["mobility"] == phase["joint_dof"] - phase["independent"]   # [YN99, eq. 6]
    assert [phase["mobility"] for phase in runs["high bar"]["phases"]] == [13, 17]  # 10 rows, one implied; then 5
    assert [runs["swing"]["phases"][k]["mobility"] for k in (0, -1)] == [7, 16]     # 16 rows, one implied; then 6


def test_letting_go_leaves_velocities_and_moves_forces(runs):
    for run in runs.values():
        assert run["velocity_jump"] == 0.0
    before, after = (runs["high bar"]["phases"][k] for k in (0, 1))
    grips = before["last"]["forces"]
    assert grips["left_grip"] == pytest.approx(grips["right_grip"], rel=1e-6)    # both sides alike
    assert after["first"]["forces"]["left_grip"] > 1.05 * grips["left_grip"]     # one hand carries on


def test_the_thighs_leave_together_and_the_hands_hold(runs):
    for name in ("swing", "swing with a hinge"):
        left, right = runs[name]["events"]
        assert left["t"] == pytest.approx(right["t"], abs=1e-6)
        assert set(runs[name]["phases"][-1]["last"]["forces"]) == {"left_grip", "right_grip"}


def test_loops_stay_closed_limits_hold_and_energy_is_not_made(runs):
    for run in runs.values():
        assert run["loop_error"] < 1e-6
        assert run["limit_excess_degrees"] < 6.0
        assert run["energy_most"] - run["energy_start"] < 1e-5 * run["kinetic_max"]
        assert all(phase[end]["difference"] < 1e-8 for phase in run["phases"] for end in ("first", "last"))


def test_page_and_pictures(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert cli.main(["reproduce", "yn99", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "24 degrees of freedom in total, then 23; the paper: 24, then 23" in said
    assert "30 degrees of freedom in total, then 28; the paper: 30, then 28" in said
    assert {path.name for path in tmp_path.iterdir()} == {
        "yn99-high-bar.png", "yn99-swing.png", "yn99-swing-with-a-hinge.png"}


def test_json_has_all_numbers(capsys):
    assert cli.main(["reproduce", "yn99", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["phases"][0]["joint_dof"] == 24
