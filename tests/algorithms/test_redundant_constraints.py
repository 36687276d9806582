"""Constraints that depend on each other: forces of minimum norm where they can hold, an error where they cannot."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.algorithms.connection_equations import DYNAMICS
from bunraku.check.structures import well_conditioned_structure
from bunraku.entries.closed_solution import forces, solve
from oracle import close


@pytest.mark.parametrize("count", [1, 2, 5])
def test_equal_holds_carry_equal_shares(count):
    """A weight held by several welds at one place."""
    m = bk.Mechanism(gravity=(0, 0, -10))
    m.add_link("weight", joint=bk.Free(), mass=3.0, com=(0.5, 0, 0), inertia=(1, 1, 1))
    for k in range(count):
        m.connect("ground", "weight", bk.Fixed(), name=f"weld{k}")
    result = bk.dynamics(m, m.neutral(), np.zeros(6))
    close(result.a, np.zeros(6), 1e-12)
    for k in range(count):
        close(result.forces[f"weld{k}"], np.array([0, 0, 30.0, 0, -15.0, 0]) / count, 1e-12)
    assert (result.report.constraints, result.report.rank) == (6 * count, 6)


def test_the_length_scale_decides_between_pull_and_twist():
    """A beam welded to two walls: two forces, or a moment in each wall, hold a torque on the beam."""
    for scale in (0.1, 1.0, 10.0):
        m = bk.Mechanism(gravity=(0, 0, 0))
        m.length_scale = scale
        m.add_link("beam", joint=bk.Free(), mass=1.0, inertia=(1, 1, 1))
        for name, x in (("left", -1.0), ("right", 1.0)):
            m.connect("ground", "beam", bk.Fixed(), name=name, position_a=(x, 0, 0), position_b=(x, 0, 0))
        forces = bk.dynamics(m, m.neutral(), np.zeros(6), external={"beam": (0, 0, 0, 0, 6.0, 0)}).forces
        # f up on the right, down on the left, a moment n in each: f - n = 3 with f^2 + n^2 / scale^2 smallest
        f = 3.0 / (1.0 + scale**2)
        close(forces["right"], np.array([0, 0, f, 0, f - 3.0, 0]), 1e-12)
        close(forces["left"], np.array([0, 0, -f, 0, f - 3.0, 0]), 1e-12)


def test_a_structure_with_no_freedom_stands_and_carries():
    """Two struts under a load: a bracket of 45 degrees whose members only push and pull."""
    m = bk.Mechanism(gravity=(0, 0, 0))
    m.add_link("beam", joint=bk.Revolute((0, 1, 0)), mass=1.0, com=(1, 0, 0), inertia=(0.1, 0.1, 0.1))
    m.add_link("strut", position=(0, 0, -1), joint=bk.Revolute((0, 1, 0)), mass=1.0, com=(0.5, 0, 0.5),
               inertia=(0.1, 0.1, 0.1))
    m.connect("strut", "beam", bk.Spherical(), name="tip", position_a=(1, 0, 1), position_b=(1, 0, 0))
    result = bk.dynamics(m, np.zeros(2), np.zeros(2), external={"beam": (0, 0, -7.0, 0, 7.0, 0)})  # 7 N at the tip
    close(result.a, np.zeros(2), 1e-12)
    close(result.forces["tip"], np.array([7.0, 0, 7.0, 0, 0, 0]), 1e-12)
    close(result.forces["beam"], np.array([-7.0, 0, 0, 0, 0, 0]), 1e-12)
    assert (result.report.constraints, result.report.rank) == (3, 2)


def stretched():
    """Two rods in line between two pins exactly their length apart: they can start to turn, but cannot go on."""
    m = bk.models.chain(2, axes=((0, 1, 0),), length=1.0)
    m.connect("ground", "link1", bk.Spherical(), name="far pin", position_a=(0, 0, -2), position_b=(0, 0, -1))
    return m


def test_constraints_that_contradict_each_other_are_named():
    m = stretched()
    with pytest.raises(bk.ConstraintError, match="far pin"):
        bk.forward_dynamics(m, np.zeros(2), np.array([1.0, -2.0]))
    close(bk.forward_dynamics(m, np.zeros(2), np.zeros(2)), np.zeros(2), 1e-10)


def test_a_contradiction_in_a_batch_names_its_states_and_keeps_the_others():
    m = stretched()
    v = np.array([[0.0, 0.0], [1.0, -2.0], [0.0, 0.0], [2.0, -4.0]])
    with pytest.raises(bk.ConstraintError, match="far pin") as caught:
        bk.forward_dynamics(m, np.zeros((4, 2)), v)
    assert caught.value.states == (1, 3)
    close(caught.value.result[[0, 2]], np.zeros((2, 2)), 1e-10)
    assert isinstance(caught.value, bk.StateError)


def test_accelerations_prescribed_against_each_other_are_refused():
    m = bk.Mechanism()
    m.add_link("cart", joint=bk.Prismatic((1, 0, 0)), mass=1.0)
    m.connect("ground", "cart", bk.Prismatic((1, 0, 0)), name="rail")
    with pytest.raises(bk.ConstraintError, match="rail"):
        bk.forward_dynamics(m, np.zeros(1), np.zeros(1), prescribed={"cart": 1.0, "rail": 2.0})
    close(bk.forward_dynamics(m, np.zeros(1), np.zeros(1), prescribed={"rail": 2.0}), np.array([2.0]), 1e-12)


# -- constraints that are nearly dependent ---------------------------------------------------------------------------

REFUSED = (10060, 10174, 10185, 10306, 10478, 11179, 11409, 12302, 12724, 13609, 13849)
LOST_DIGITS = (10366, 14238, 13038, 15504, 13639, 11935, 12115, 10224, 14062, 12679, 13560, 11959)


def at_rest(seed, large=True):
    """A well-conditioned structure of `bunraku check redundant`, and torques."""
    structure = well_conditioned_structure(seed, large)
    return structure.mechanism, structure.q, 5 * np.random.default_rng(seed + 10**6).normal(size=structure.mechanism.nv)


def dense(m, q, v, tau):
    """(accelerations, smallest multipliers, J) by singular values of the constraint Jacobian."""
    found, M = bk.constraints(m, q, v), bk.mass_matrix(m, q)
    tree = m.copy()
    for name in m.connections:
        tree.cut(name)
    h = bk.inverse_dynamics(tree, q, v, np.zeros(m.nv))
    U, s, Vt = np.linalg.svd(found.jacobian)
    rank = int(np.sum(s > 1e-6 * s[0]))
    free = Vt[rank:].T
    a = -Vt[:rank].T @ (U.T[:rank] @ found.bias / s[:rank])
    a = a + free @ np.linalg.solve(free.T @ M @ free, free.T @ (tau - h - M @ a))
    return a, U[:, :rank] @ (Vt[:rank] @ (M @ a + h - tau) / s[:rank]), found.jacobian


@pytest.mark.parametrize("seed", REFUSED + LOST_DIGITS)
def test_well_conditioned_redundant_structures_keep_their_digits(seed):
    """Refused, or wrong by 1e-8 to 1e-4, as long as pivots of a fixed order decided on the rank."""
    m, q, tau = at_rest(seed)
    rest = np.zeros(m.nv)
    expected, _, _ = dense(m, q, rest, tau)
    for method in ("auto", "unit_vector"):
        close(bk.forward_dynamics(m, q, rest, tau, method=method), expected, 1e-9)
    batch = bk.forward_dynamics(m, np.tile(q, (3, 1)), np.zeros((3, m.nv)), np.outer((1.0, 0.0, 1.0), tau))
    close(batch[[0, 2]], np.array([expected, expected]), 1e-9)


@pytest.mark.parametrize("seed", REFUSED[:3] + LOST_DIGITS[:3])
def test_nearly_dependent_connections_share_the_smallest_forces(seed):
    m, q, tau = at_rest(seed)
    plan = m.plan()
    _, expected, J = dense(m, q, np.zeros(m.nv), tau)
    solution = solve(plan, DYNAMICS, q, np.zeros(m.nv), tau)
    assert solution.looked_again
    multipliers, basis = forces(solution)
    close(multipliers, expected, 1e-7)
    report = bk.dynamics(m, q, np.zeros(m.nv), tau).report
    assert report.rank == np.linalg.matrix_rank(J, tol=1e-6) == report.constraints - sum(x.shape[1] for _, x in basis)


@pytest.mark.parametrize("seed", REFUSED[:2] + LOST_DIGITS[:2])
def test_nearly_dependent_connections_take_an_impact(seed):
    m, q, _ = at_rest(seed)
    v = np.random.default_rng(seed).normal(size=m.nv)
    J, M = bk.constraints(m, q).jacobian, bk.mass_matrix(m, q)
    free = np.linalg.svd(J)[2][np.linalg.matrix_rank(J, tol=1e-6):].T
    after = bk.impact(m, q, v)
    close(after, free @ np.linalg.solve(free.T @ M @ free, free.T @ M @ v), 1e-8)


@pytest.mark.parametrize(("method", "batch"), [("auto", False), ("auto", True), ("unit_vector", False)])
def test_a_loop_that_is_open_has_no_accelerations(method, batch):
    m = bk.models.four_bar()
    q = bk.project(m, m.neutral())
    wrong = q.copy()
    wrong[1] += 1.0
    name = next(iter(m.connections))
    states = np.array([q, wrong]) if batch else wrong
    with pytest.raises(bk.ConstraintError, match=rf"{name!r} is open by [0-9.]+ m .*bk.project") as caught:
        bk.forward_dynamics(m, states, np.zeros(states.shape), method=method)
    if batch:
        assert caught.value.states == (1,)
        close(caught.value.result[0], bk.forward_dynamics(m, q, np.zeros(m.nv)), 1e-10)
    with pytest.raises(bk.ConstraintError, match="is open by"):
        bk.dynamics(m, wrong, np.zeros(m.nv))
    closed_again, v = bk.project(m, wrong, np.zeros(m.nv))  # as the message says
    assert np.isfinite(bk.forward_dynamics(m, closed_again, v)).all()
