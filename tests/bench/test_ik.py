"""bench ik: every part runs and reaches what can be reached, with and without the other libraries."""

import importlib.util

import pytest

from robots import needs_robots


@needs_robots
def test_poses_are_reached_and_the_report_names_every_solver():
    from bunraku.bench import bench_ik

    result = bench_ik.run(bench_ik.Options(poses=10, many=20, few=1), quiet=True)
    page = bench_ik.text(result)
    assert result["platform"]["met"]
    for arm in result["arms"]:
        assert arm["batch_success"] >= 0.9
        assert arm["worst"] < 1e-9
        assert arm["title"] in page
    for peer in bench_ik.PEERS:
        assert (peer in page) == (importlib.util.find_spec(peer) is not None)
    assert pytest.approx(1.0) == result["figure"]["success"]
