"""Required statements on targets in the report of a benchmark."""


def check_verdicts(page: str, targets: list[dict]) -> None:
    """Every target stands on the page, with the verdict that its numbers give."""
    for target in targets:
        more_is_better = target["unit"].startswith("x ")
        kept = target["measured"] >= target["target"] if more_is_better else target["measured"] <= target["target"]
        assert target["met"] == kept, target
        verdict = "PASS" if kept else "MISS"
        assert any(line.split()[:1] == [verdict] and target["what"] in line for line in page.splitlines()), target
    assert f"{sum(target['met'] for target in targets)} of {len(targets)} targets met" in page
