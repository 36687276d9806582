"""Attacks on files and processes, in short."""

import numpy as np
import pytest

from bunraku.check import attack_files as files
from bunraku.check import attack_kill as kill


@pytest.mark.parametrize("seed", range(4))
def test_killed_processes_lose_nothing(seed):
    """Saving a trajectory, saving a checkpoint, running, compiling."""
    assert kill.case(seed).tried == kill.KILLS


@pytest.mark.parametrize("seed", range(3))
def test_damaged_files_are_refused_or_can_be_used(seed):
    result = files.case(seed)
    assert result.tried >= files.FILES * (1 if files.MUJOCO else 0.8)


@pytest.mark.parametrize("kind", files.SHARES)
def test_the_files_that_are_damaged_are_good(kind, tmp_path):
    if kind == "mjcf":
        pytest.importorskip("mujoco")
    rng = np.random.default_rng(5)
    path = tmp_path / f"good.{files.SUFFIXES[kind]}"
    for k in range(5):
        if kind in ("urdf", "mjcf"):
            path.write_text(getattr(files, kind)(rng))
        else:
            path.write_bytes(files._originals()[kind][k][0])
        assert not files._refused(kind, path)
