"""The nearest closed state: loops close from rough starts, nothing moves that need not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
import closed_oracle
import oracle
from closed import random_closed, random_planar
from oracle import close

SEEDS = st.integers(0, 10**6)


def structures(seed):
    return random_planar(seed, 2) if seed % 5 == 0 else random_closed(seed, redundant=seed % 3 == 0)


@given(SEEDS)
@settings(max_examples=60)
def test_loops_close_and_velocities_keep_them_closed(seed):
    rng = np.random.default_rng(seed)
    closed = structures(seed)
    rough = closed.m.integrate(closed.q, 0.05 * rng.normal(size=closed.m.nv))
    v = rng.normal(size=closed.m.nv)
    q1, v1 = bk.project(closed.m, rough, v)
    assert np.abs(closed_oracle.loops(closed, q1, v1).gap).max() < 1e-10
    J, M = closed_oracle.jacobian(closed, q1), oracle.mass_matrix(closed, q1)
    assert np.abs(J @ v1).max(initial=0.0) < 1e-9
    free = np.linalg.svd(J)[2][np.linalg.matrix_rank(J, tol=1e-7):] if J.size else np.eye(closed.m.nv)
    assert np.abs(free @ M @ (v1 - v)).max(initial=0.0) < 1e-8 * np.abs(M).max()  # as near as can be
    close(v1, bk.impact(closed.m, q1, v), 1e-8)


@given(SEEDS)
@settings(max_examples=30)
def test_a_closed_state_stays(seed):
    closed = structures(seed)
    v, _ = closed.motion(np.random.default_rng(seed))
    q1, v1 = bk.project(closed.m, closed.q, v)
    close(closed.m.difference(closed.q, q1), np.zeros(closed.m.nv), 1e-9)
    close(v1, v, 1e-9)
    q2, v2 = bk.project(closed.m, q1, v1)
    close(q2, q1, 1e-9)
    close(v2, v1, 1e-9)


@given(SEEDS)
@settings(max_examples=30)
def test_small_gaps_close_by_the_shortest_way_in_the_mass_metric(seed):
    closed = random_closed(seed)
    rng = np.random.default_rng(seed)
    small = 1e-5
    rough = closed.m.integrate(closed.q, small * rng.normal(size=closed.m.nv))
    q1, _ = bk.project(closed.m, rough, np.zeros(closed.m.nv))
    step = closed.m.difference(rough, q1)
    J, M = closed_oracle.jacobian(closed, q1), oracle.mass_matrix(closed, q1)
    free = np.linalg.svd(J)[2][np.linalg.matrix_rank(J, tol=1e-7):] if J.size else np.eye(closed.m.nv)
    assert np.abs(free @ M @ step).max(initial=0.0) < 100 * small * np.abs(M).max() * max(np.abs(step).max(), small)


@given(SEEDS)
@settings(max_examples=10)
def test_a_batch_is_its_states(seed):
    rng = np.random.default_rng(seed)
    closed = structures(seed)
    m = closed.m
    q = m.integrate(np.tile(closed.q, (3, 1)), 0.02 * rng.normal(size=(3, m.nv)))
    v = rng.normal(size=(3, m.nv))
    many = bk.project(m, q, v)
    for k in range(3):
        one = bk.project(m, q[k], v[k])
        close(many[0][k], one[0], 1e-9)
        close(many[1][k], one[1], 1e-8)


def test_projected_states_are_ready_for_dynamics():
    """Many different states of one structure, each against the oracle."""
    rng = np.random.default_rng(3)
    closed = random_closed(3, links=6, ties=2, kinds=("revolute", "spherical", "free"),
                           tie_kinds=("revolute", "spherical", "cylindrical"))
    m = closed.m
    q, v = bk.project(m, m.integrate(np.tile(closed.q, (8, 1)), 0.2 * rng.normal(size=(8, m.nv))),
                      rng.normal(size=(8, m.nv)))
    tau = rng.normal(size=(8, m.nv + m.nc))
    expected = np.array([closed_oracle.solve(closed, *state).a for state in zip(q, v, tau, strict=True)])
    for method in ("auto", "ada", "unit_vector"):
        close(bk.forward_dynamics(m, q, v, tau, method=method), expected, 1e-7)


def test_without_connections_nothing_moves():
    m = bk.models.chain(4)
    q, v = np.array([0.1, 0.2, 0.3, 0.4]), np.ones(4)
    q1, v1 = bk.project(m, q, v)
    close(q1, q, 1e-12)
    close(v1, v, 1e-12)


def test_a_loop_that_cannot_close_is_named():
    m = bk.models.chain(2, length=1.0)
    m.connect("ground", "link1", bk.Spherical(), name="out of reach", position_a=(5, 0, 0), position_b=(0, 0, -1))
    with pytest.raises(bk.StateError, match="out of reach"):
        bk.project(m, np.array([0.3, 0.4]), np.zeros(2))


def hinged(tilt=0.0):
    """A parallelogram of hinges in space, the last of them tilted out of the plane: no move can close that."""
    m, hinge = bk.Mechanism(), bk.Revolute((0, 1, 0))
    rod = {"mass": 1.0, "com": (0, 0, -0.25), "inertia": (0.02, 0.02, 0.001)}
    m.add_link("crank", joint=hinge, **rod)
    m.add_link("coupler", "crank", hinge, position=(0, 0, -0.5), mass=1.0, com=(0.5, 0, 0), inertia=(0.001, 0.02, 0.02))
    m.add_link("rocker", joint=hinge, position=(1, 0, 0), **rod)
    c, s = np.cos(tilt), np.sin(tilt)
    m.connect("rocker", "coupler", hinge, "pin", position_a=(0, 0, -0.5), position_b=(1, 0, 0),
              rotation_b=[[1, 0, 0], [0, c, -s], [0, s, c]])
    return m


@pytest.mark.parametrize("size", [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 0.6])
def test_redundant_loops_close_from_gaps_of_every_size(size):
    m = hinged()
    for seed in range(5):
        rough = np.array([0.3, -0.3, 0.3]) + size * np.random.default_rng(seed).normal(size=3)
        q = bk.project(m, rough)
        assert np.abs(bk.constraints(m, q).gap).max() < 1e-10


@pytest.mark.parametrize("tilt", [3e-9, 1e-8, 1e-7, 9e-7])
def test_frames_that_fit_each_other_to_a_micron_count_as_closed_everywhere(tilt):
    """At the start, after an event, for connect and for bk.project alike."""
    m, q = hinged(tilt), np.array([0.3, -0.3, 0.3])
    bk.project(m, q)
    sim = bk.Simulation(m, q, solver="tsit5")
    seen = []
    sim.when(lambda t, q, v: t - 0.05, lambda s: seen.append(s.t))
    sim.run(0.1)
    assert len(seen) == 1
    tree = m.copy()
    pin = m.connections["pin"]
    tree.cut("pin")
    sim = bk.Simulation(tree, q)
    sim.connect("rocker", "coupler", pin.joint, "pin", position_a=pin.position_a, position_b=pin.position_b,
                rotation_b=pin.rotation_b, max_gap=1e-6)
    sim.run(0.05)


@pytest.mark.parametrize("tilt", [2e-6, 1e-5, 1e-3])
def test_frames_that_do_not_fit_are_refused_without_advice_that_fails(tilt):
    m, q = hinged(tilt), np.array([0.3, -0.3, 0.3])
    with pytest.raises(bk.SimulationError, match=r"'pin'.*does not close it either.*check the frames"):
        bk.Simulation(m, q)
    with pytest.raises(bk.ConstraintError, match="pin"):
        bk.project(m, q)


@pytest.mark.parametrize("size", [1e-5, 1e-3, 0.1])
def test_advice_to_project_works(size):
    m = hinged()
    rough = np.array([0.3 + size, -0.3, 0.3])
    with pytest.raises(bk.SimulationError, match=r"start from bk.project\(mechanism, q, v\)"):
        bk.Simulation(m, rough)
    bk.Simulation(m, *bk.project(m, rough, np.zeros(3)))


def test_what_is_accepted_at_the_start_is_closed_and_recorded():
    m = hinged()
    rough = np.array([0.3 + 2e-7, -0.3, 0.3])
    sim = bk.Simulation(m, rough)
    assert np.abs(bk.constraints(m, sim.q).gap).max() < 1e-11
    assert "open by" in sim.trajectory.events[0].text
    assert not bk.Simulation(m, np.array([0.3, -0.3, 0.3])).trajectory.events
