"""The benchmark of identification: bounds hold the truth, fits are physically consistent, the page has all machines."""

from bunraku.bench import bench_identify as bench


def test_bounds_hold_the_truth_in_simulated_recordings():
    result = bench.run(bench.Options(runs=2, samples=150), quiet=True)
    page = bench.text(result)
    for row in result["rows"]:
        assert row["each"] > 0.8  # 95 % are expected of at least 30
        assert row["consistent"] == 2
        assert row["after"] < 0.1 * row["before"]
        assert row["title"] in page
