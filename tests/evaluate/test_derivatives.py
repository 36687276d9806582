"""Derivatives of forward and inverse dynamics: differences of high order, identities, Pinocchio, bad input."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import bunraku as bk
from bunraku.entries import derivative_entries
from differences import clear_of_limits, columns
from oracle import close
from structures import random_tree

SEEDS = st.integers(0, 10**6)


def example(seed, count=1, **options):
    """A random tree with everything that can act, states, and forces on its links."""
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, passive=True, springs=seed % 2 == 0, **options)
    return tree.m, *tree.states(rng, count), tree.external(rng)


def near(found, expected, tolerance=1e-9):
    assert found.shape == expected.shape
    assert np.abs(found - expected).max(initial=0.0) <= tolerance * (1.0 + np.abs(expected).max(initial=0.0))


@given(SEEDS, st.booleans())
@settings(max_examples=40)
def test_derivatives_of_inverse_dynamics_are_those_of_differences(seed, passive):
    m, q, v, a, external = example(seed)
    (q,), (v,), (a,) = q, v, a
    assume(clear_of_limits(m, q))
    d = bk.inverse_derivatives(m, q, v, a, external=external, passive=passive)

    def torque(q=q, v=v, a=a):
        return bk.inverse_dynamics(m, q, v, a, external=external, passive=passive)

    near(d.dtau_dq, columns(lambda move: torque(q=m.integrate(q, move)), m.nv))
    near(d.dtau_dv, columns(lambda more: torque(v=v + more), m.nv))
    near(d.dtau_da, columns(lambda more: torque(a=a + more), m.nv))


@given(SEEDS, st.booleans())
@settings(max_examples=40)
def test_derivatives_of_forward_dynamics_undo_those_of_inverse_dynamics(seed, passive):
    """At the accelerations found: da = M^-1 (dtau - (dtau/dq) dq - (dtau/dv) dv)."""
    m, q, v, a, external = example(seed)
    (q,), (v,), (a,) = q, v, a
    options = {"external": external, "passive": passive}
    tau = bk.inverse_dynamics(m, q, v, a, **options)
    forward, inverse = bk.derivatives(m, q, v, tau, **options), bk.inverse_derivatives(m, q, v, a, **options)
    close(forward.a, a)
    near(inverse.dtau_da @ forward.da_dtau, np.eye(m.nv), 1e-8)
    near(inverse.dtau_da @ forward.da_dq, -inverse.dtau_dq, 1e-8)
    near(inverse.dtau_da @ forward.da_dv, -inverse.dtau_dv, 1e-8)


@given(SEEDS)
@settings(max_examples=25)
def test_prescribed_joints_take_part_by_their_accelerations(seed):
    m, q, v, _, external = example(seed, kinds=("revolute", "prismatic", "spherical", "free", "cylindrical"))
    (q,), (v,) = q, v
    assume(clear_of_limits(m, q))
    rng = np.random.default_rng(seed)
    names = [name for name in m.joint_names if rng.random() < 0.4]
    given_a = {name: rng.normal(size=m.v_slice(name).stop - m.v_slice(name).start) for name in names}
    tau = rng.normal(size=m.nv)
    d = bk.derivatives(m, q, v, tau, external=external, prescribed=given_a)

    def acceleration(q=q, v=v, more=0.0 * tau):
        moved = {name: value + more[m.v_slice(name)] for name, value in given_a.items()}
        return bk.forward_dynamics(m, q, v, tau + more, external=external, prescribed=moved)

    near(d.da_dq, columns(lambda move: acceleration(q=m.integrate(q, move)), m.nv), 1e-8)
    near(d.da_dv, columns(lambda more: acceleration(v=v + more), m.nv), 1e-8)
    near(d.da_dtau, columns(lambda more: acceleration(more=more), m.nv), 1e-8)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_batch_is_its_states(workers):
    m, q, v, a, external = example(4, count=11)
    tau = bk.inverse_dynamics(m, q, v, a)
    many, inverse = bk.derivatives(m, q, v, tau, external=external, workers=workers), bk.inverse_derivatives(m, q, v, a)
    for k in range(11):
        for found, expected in zip(many, bk.derivatives(m, q[k], v[k], tau[k], external=external), strict=True):
            near(found[k], expected, 1e-11)
        for found, expected in zip(inverse, bk.inverse_derivatives(m, q[k], v[k], a[k]), strict=True):
            near(found[k], expected, 1e-11)
    near(bk.derivatives(m, q, v[0]).da_dq[3], bk.derivatives(m, q[3], v[0]).da_dq, 1e-11)  # one velocity for all
    assert bk.derivatives(m, q[:0], v[:0]).da_dq.shape == (0, m.nv, m.nv)


def test_long_chains_keep_their_digits():
    """300 links, 30 m: the derivative by a turn of the whole chain is that of the weight alone."""
    m = bk.models.chain(300)
    rng = np.random.default_rng(0)
    q, v, tau = 0.1 * rng.normal(size=(3, 300))
    d = bk.derivatives(m, q, v, tau)
    a = bk.forward_dynamics(m, q, v, tau)
    near(d.a, a, 1e-9)
    inverse = bk.inverse_derivatives(m, q, v, d.a)
    scale = np.abs(inverse.dtau_da) @ np.abs(d.da_dq) + np.abs(inverse.dtau_dq)
    assert np.all(np.abs(inverse.dtau_da @ d.da_dq + inverse.dtau_dq) <= 1e-10 * scale)
    weightless = m.copy()
    weightless.gravity = (0, 0, 0)
    d = bk.inverse_derivatives(weightless, q, v, a)
    assert np.abs(d.dtau_dq[:, 0]).max() <= 1e-12 * np.abs(d.dtau_dq).max()


@pytest.mark.parametrize("seed", range(4))
def test_columns_of_deep_trees_are_those_of_others(seed, monkeypatch):
    """Solved by recursions, where factors would cost more: prescribed joints, springs, forces, batches."""
    m, q, v, _, external = example(seed, count=3)
    name = next(name for name in m.joint_names if m.v_slice(name).stop > m.v_slice(name).start)
    tau, prescribed = np.ones(m.nv), {name: np.ones(m.v_slice(name).stop - m.v_slice(name).start)}
    expected = bk.derivatives(m, q, v, tau, external=external, prescribed=prescribed)
    monkeypatch.setattr(derivative_entries, "DEEP", -1)
    many = bk.derivatives(m, q, v, tau, external=external, prescribed=prescribed)
    one = bk.derivatives(m, q[1], v[1], tau, external=external, prescribed=prescribed)
    for found, of_one, right in zip(many, one, expected, strict=True):
        near(found, right, 1e-11)
        near(of_one, right[1], 1e-11)
    with pytest.raises(bk.StateError, match="1 of 3 states"):
        bk.derivatives(m, q, np.where(np.arange(3)[:, None] == 1, np.nan, v), tau)
    with pytest.raises(bk.StateError):
        bk.derivatives(m, q[0], np.nan * v[0], tau)
    assert bk.derivatives(m, q[:0], v[:0]).da_dq.shape == (0, m.nv, m.nv)


def test_where_a_free_figure_is_does_not_matter():
    """Far from the origin, in uniform gravity, nothing depends on the place, and no digits are lost."""
    m = bk.models.human(dof=34)
    rng = np.random.default_rng(1)
    q, v, tau = m.integrate(m.neutral(), 0.3 * rng.normal(size=m.nv)), rng.normal(size=m.nv), rng.normal(size=m.nv)
    here = bk.derivatives(m, q, v, tau)
    assert np.abs(here.da_dq[:, :3]).max() <= 1e-12 * np.abs(here.da_dq).max()
    q[:3] += 1e6
    for found, expected in zip(bk.derivatives(m, q, v, tau), here, strict=True):
        near(found, expected, 1e-9)


def test_pinocchio_finds_the_same():
    pin = pytest.importorskip("pinocchio")
    from bunraku.bench.model_files import bare
    from bunraku.bench.peers import Pinocchio

    m = bare(bk.models.human(dof=34))
    peer = Pinocchio(m)
    rng = np.random.default_rng(2)
    q, v, tau = m.integrate(m.neutral(), 0.5 * rng.normal(size=m.nv)), rng.normal(size=m.nv), rng.normal(size=m.nv)
    d = bk.derivatives(m, q, v, tau)
    inverse = bk.inverse_derivatives(m, q, v, d.a)
    theirs = pin.computeABADerivatives(peer.model, peer.data, peer.q(q), peer.v(v), peer.v(tau))
    theirs_inverse = pin.computeRNEADerivatives(peer.model, peer.data, peer.q(q), peer.v(v), peer.v(d.a))
    order = np.ix_(peer.order_v, peer.order_v)
    for found, expected in zip((*d[:3], *inverse), (*theirs, *theirs_inverse), strict=True):
        if expected is theirs[2] or expected is theirs_inverse[2]:  # they fill the upper triangle
            expected = np.triu(expected) + np.triu(expected, 1).T
        near(found[order], expected, 1e-11)


def test_bad_states_are_named():
    m = bk.models.chain(3)
    with pytest.raises(bk.StateError, match=r"v\[1\] of joint"):
        bk.derivatives(m, np.zeros(3), [0, np.nan, 0])
    with pytest.raises(bk.StateError, match=r"a\[2\] of joint"):
        bk.inverse_derivatives(m, np.zeros(3), np.zeros(3), [0, 0, np.inf])
    with pytest.raises(bk.StateError, match="1 of 9 states") as error:
        bk.derivatives(m, np.zeros((9, 3)), np.where(np.arange(9)[:, None] == 4, np.nan, 1.0) * np.ones(3))
    assert error.value.states == (4,)
    with pytest.raises(bk.ShapeError):
        bk.derivatives(m, np.zeros(4), np.zeros(3))
    with pytest.raises(bk.ModelError, match="Mechanism"):
        bk.derivatives("robot", np.zeros(4), np.zeros(3))


def test_what_rests_on_a_plane_is_held():
    m = bk.Mechanism()
    m.add_link("ball", joint=bk.Free(), mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_shape("ball", bk.Sphere(0.5))
    m.add_plane()
    above, resting = m.neutral(), m.neutral()
    above[2], resting[2] = 1.0, 0.5
    assert bk.derivatives(m, above, np.zeros(6)).da_dtau[2, 2] == pytest.approx(1.0)
    assert abs(bk.derivatives(m, resting, np.zeros(6)).da_dtau[2, 2]) < 1e-12
    many = bk.derivatives(m, [resting, resting], np.zeros(6))
    assert many.jacobian.shape == (2, 3, 6)
    with pytest.raises(bk.ShapeError, match="one by one"):
        bk.derivatives(m, [above, resting], np.zeros(6))
