"""`bunraku bench rollout`: MuJoCo takes the same steps, and the page says who was quicker."""

import pytest

import bunraku as bk
from bunraku.spatial.lanes import WIDTH


def test_mujoco_takes_the_same_steps():
    pytest.importorskip("mujoco")
    from bunraku.bench import bench_rollout as rollout

    found = rollout.agreement(bk.models.human(34), 100, copies=WIDTH + 1)
    rollout.refuse_disagreement(found)
    assert found["mujoco"] < 1e-11
    with pytest.raises(bk.BunrakuError, match="nothing to compare"):
        rollout.refuse_disagreement({**found, "mujoco": 1e-6})


def test_the_page_shows_contestants_and_verdicts(monkeypatch):
    pytest.importorskip("mujoco")
    from bunraku.bench import bench_rollout as rollout

    monkeypatch.setattr(rollout, "COPIES", 2 * WIDTH)
    monkeypatch.setattr(rollout, "FEW", 2)
    result = rollout.run(rollout.Options(seconds=0.01, steps=4, long=8, checked=40), quiet=True)
    text = rollout.text(result)
    assert len(result["targets"]) == 3
    assert "mujoco.rollout" in text
    assert "plain Python" in text
    assert ("PASS" in text) or ("MISS" in text)
