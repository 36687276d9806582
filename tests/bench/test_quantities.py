"""bench quantities: bunraku and Pinocchio agree before anything is timed, and the report names every quantity."""

import pytest

from robots import needs_robots


@needs_robots
def test_every_quantity_is_compared():
    pytest.importorskip("pinocchio")
    from bunraku.bench import bench_quantities as bench

    result = bench.run(bench.Options(seconds=0.0), quiet=True)
    page = bench.text(result)
    assert len(result["rows"]) == 9
    for row in result["rows"]:
        assert row["difference"] < bench.AGREEMENT
        assert row["name"] in page
    assert all(row["title"] in page for row in result["forces"])
