"""`bunraku bench view`: everything is measured against a client that really looks."""

import pytest

pytest.importorskip("viser")


def test_the_page_shows_frames_changes_and_verdicts(monkeypatch):
    from bunraku.bench import bench_view as view

    monkeypatch.setattr(view, "in_browser", lambda *_: {"script_ms": None, "script_wall_ms": None, "drawn": None})
    options = view.Options(frames=5, rounds=2, simulated=0.05, hour=2.0, changes=2)
    result = view.run(options, quiet=True)
    text = view.text(result)
    assert len(result["targets"]) == 6
    nodes = {row["name"]: row["nodes"] for row in result["frames"]}
    assert nodes["chain of 50"] == nodes["chain of 500"] == 2  # the last link has a shape of its own
    assert nodes["50 shapes"] == 51  # the last link is a ball on a neck
    assert all(row["python_ms"] > 0 for row in result["frames"])
    assert "script not measured" in text
    assert ("PASS" in text) or ("MISS" in text)
