"""Figures of Gymnasium: their motion is MuJoCo's, torques come from their motors."""

import numpy as np
import pytest

import bunraku as bk

pytest.importorskip("mujoco")
pytest.importorskip("gymnasium")

from bunraku.bench import bench_worlds
from bunraku.envs.figures import FILES, figure


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FILES)
def test_accelerations_are_those_of_mujoco(name):
    assert bench_worlds.disagreement(name, count=3) < 1e-10


def test_motors_and_ranges():
    f = figure("hopper")
    assert f.mechanism.nv == 6
    assert f.mechanism.may_touch()
    np.testing.assert_array_equal(f.torques([[0.5, -3.0, 0.0]]), [[0, 0, 0, 100.0, -200.0, 0.0]])
    q = f.start.copy()
    q[3] = 0.1  # beyond the range of the thigh
    a = bk.forward_dynamics(f.mechanism, q, np.zeros(6))
    free = bk.forward_dynamics(f.mechanism, q, np.zeros(6), passive=False)
    assert a[3] < free[3] - 10.0
    with pytest.raises(bk.NamingError, match="did you mean 'hopper'"):
        figure("hoper")


@pytest.mark.filterwarnings("ignore")
def test_the_page_shows_contestants_and_verdicts(monkeypatch):
    monkeypatch.setattr(bench_worlds, "FIGURES", {"half-cheetah": 1})
    result = bench_worlds.run(bench_worlds.Options(seconds=0.01, copies=16, theirs=2, steps=2, settle=0.1), quiet=True)
    text = bench_worlds.text(result)
    assert len(result["targets"]) == 5
    assert all(word in text for word in ("mujoco.rollout", "VectorEnv", "a call a step", "kB for a copy"))
