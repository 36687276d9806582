"""The benchmark of joints: closed forms are met by events, and MuJoCo's motion is near them."""

import pytest

from bunraku.bench import bench_joints


def test_closed_forms_are_met_beside_mujoco():
    pytest.importorskip("mujoco")
    result = bench_joints.run(bench_joints.Options(hold=0.5, seconds=0.01), quiet=True)
    assert all(target["met"] for target in result["targets"])
    for case in result["cases"].values():
        steps, half = case["errors"][bench_joints.STEPS], case["half"][bench_joints.STEPS]
        assert abs(half) <= 0.7 * abs(steps)
        if case["title"] != "a stop with restitution":
            assert abs(case["errors"][bench_joints.STIFF]) < 2e-3  # the same mechanism
    assert "stick-slip on a belt" in bench_joints.text(result)
