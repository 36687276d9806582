"""The benchmark compares like with like: peers give our accelerations, operations are counted, targets judged."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.bench import report
from bunraku.bench.flops import forward_dynamics_flops
from bunraku.bench.timing import Contestant, race, speedup

TURN = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


def branching():
    """Links added breadth first, a turned and shifted Free joint, skew axes, a Fixed link: all one could mix up."""
    m = bk.Mechanism(gravity=(1.0, -2.0, -9.0))
    solid = {"mass": 1.3, "com": (0.1, -0.05, 0.2), "inertia": np.diag([0.02, 0.03, 0.025])}
    m.add_link("root", joint=bk.Free(), position=(0.3, 0.1, 1.0), rotation=TURN, **solid)
    m.add_link("a", "root", bk.Revolute((1, 2, -2)), position=(0, 0.2, 0), rotation=TURN.T, **solid)
    m.add_link("b", "root", bk.Spherical(), position=(0, -0.2, 0.1), rotation=TURN, **solid)
    m.add_link("fixed", "a", bk.Fixed(), position=(0.1, 0, 0), rotation=TURN, **solid)
    m.add_link("c", "fixed", bk.Revolute((0, 0, -1)), position=(0.1, 0, 0), **solid)
    m.add_link("d", "b", bk.Revolute((0, 1, 0)), position=(0.1, 0, 0), **solid)
    return m


@pytest.mark.parametrize("build", [branching, bk.models.humanoid, lambda: bk.models.human(48)])
@pytest.mark.parametrize("peer", ["pinocchio", "mujoco"])
def test_peers_give_our_accelerations(peer, build):
    pytest.importorskip(peer)
    from bunraku.bench import peers

    m = build()
    rng = np.random.default_rng(3)
    q, v, tau = m.integrate(m.neutral(), rng.normal(size=m.nv)), rng.normal(size=m.nv), rng.normal(size=m.nv)
    other = {"pinocchio": peers.Pinocchio, "mujoco": peers.MuJoCo}[peer](m)
    a = bk.forward_dynamics(m, q, v, tau)
    assert np.abs(other.forward(q, v, tau) - a).max() < 1e-10 * np.abs(a).max()


def test_peers_refuse_what_they_cannot_match():
    pytest.importorskip("pinocchio")
    from bunraku.bench.peers import Pinocchio

    with pytest.raises(bk.ModelError, match="dampers"):
        Pinocchio(bk.models.chain(2, damping=0.1))


def test_operations_are_counted_and_grow_with_the_model():
    counts = forward_dynamics_flops(["humanoid", "human"])
    assert 400 < counts["humanoid"] / 34 < 900
    assert counts["human"] > 0


def test_race_times_every_contestant():
    slow = Contestant("slow", lambda: sum(range(20_000)), 1)
    fast = Contestant("fast", lambda: sum(range(1_000)), 1)
    race([slow, fast], 0.02)
    assert len(slow.times) == len(fast.times) >= 7
    assert speedup(slow, fast)[0] > 5.0


def test_report_shows_verdicts():
    targets = [{"what": "batch", "measured": 16.0, "target": 15.0, "unit": "x pin.aba", "met": True},
               {"what": "exponent", "measured": 1.2, "target": 1.05, "unit": "", "met": False}]
    page = report.text({
        "bunraku": "0", "batch": 4096, "peak_gflops": 80.0, "models": {}, "targets": targets,
        "machine": {"date": "2026-11-15T20:58+00:00", "processor": "P", "cores": 2, "lanes": 8, "system": "linux",
                    "python": "3", "versions": {"numba": "0", "numpy": "2"}},
        "scaling": {"chains": [], "exponent": 1.2, "residual": 1e-9, "residual_small": 1e-5,
                    "residual_rounding": 1e-5}})
    assert "PASS  batch" in page
    assert "MISS  exponent" in page
    assert "1 of 2 targets met" in page
