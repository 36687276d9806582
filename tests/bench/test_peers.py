"""The benchmark compares like with like: peers give our accelerations or refuse."""

import numpy as np
import pytest

import bunraku as bk

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


def sliding():
    """Sliders, hinges beside the origin, several joints in a row, a Fixed link without mass."""
    m = bk.Mechanism()
    solid = {"mass": 1.3, "com": (0.1, -0.05, 0.2), "inertia": np.diag([0.02, 0.03, 0.025])}
    m.add_link("world", joint=bk.Free(), **solid)
    m.add_link("a", "world", bk.Prismatic((1, 2, -2)), position=(0, 0.2, 0), rotation=TURN, **solid)
    m.add_link("b", "a", bk.Compound(bk.Revolute((0, 1, 1), at=(0.1, 0.2, 0)), bk.Prismatic((1, 0, 0)),
                                     bk.Revolute((0, 0, -1), at=(0, 0, 0.3))), position=(0, 0, 0.2), **solid)
    m.add_link("frame", "world", bk.Fixed(), position=(0, 0, 0.1), rotation=TURN)
    m.add_link("c", "frame", bk.Revolute((1, 0, 0), at=(0, 0.1, 0.1)), **solid)
    return m


@pytest.mark.parametrize("build", [branching, sliding, bk.models.humanoid, lambda: bk.models.human(48)])
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
