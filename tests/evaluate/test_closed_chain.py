"""Closed chains: generalised coordinates, and the actuator torques of a motion."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.plan import fields as f
from loops import forward, parallelogram, posed, random_loops, unit_vectors, without_connections
from oracle import close

# -- generalised coordinates -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_generalised_coordinates_span_what_loops_allow(seed):
    m, q, v, _ = random_loops(seed, connections=3)
    chain, J = bk.closed_chain(m, q, v), bk.constraints(m, q).jacobian
    assert chain.freedom == m.nv - np.linalg.matrix_rank(J, tol=1e-8) == len(chain.generalised)
    assert np.abs(J @ chain.W).max(initial=0.0) < 1e-9 * max(1.0, np.abs(chain.W).max(initial=0.0))
    close(chain.W[chain.G], np.eye(chain.freedom))
    assert sorted([*chain.generalised, *chain.dependent]) == sorted(
        (link.joint_name, k) for link in m.links for k in range(link.joint.nv))


def test_a_singular_position_has_one_freedom_more():
    m = parallelogram(length=1.0)
    assert bk.closed_chain(m, posed(0.4)).freedom == 1
    flat = bk.closed_chain(m, posed(np.pi / 2))
    assert (flat.freedom, flat.undriven) == (2, 1)


def test_a_tree_is_no_closed_chain():
    with pytest.raises(bk.ModelError, match="no connections"):
        bk.closed_chain(bk.models.chain(2), np.zeros(2))


# -- actuator torques ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [0.3, -1.2, 2.5])
def test_torques_of_a_parallelogram_are_those_in_closed_form(angle):
    m, v, a = parallelogram(), 1.7, -2.3
    q = posed(angle)
    A = bk.closed_chain(m, q, posed(v)).consistent(posed(a))
    close(A, posed(a), 1e-12)
    # the coupler moves on a circle: kinetic energy (2 (0.1 + 2 0.2^2) + 3 0.5^2) w^2 / 2
    inertia, weight = 2 * (0.1 + 2.0 * 0.2**2) + 3.0 * 0.5**2, 9.81 * (2 * 2.0 * 0.2 + 3.0 * 0.5)
    tau = bk.inverse_dynamics(m, q, posed(v), A)
    close(tau, [inertia * a + weight * np.sin(angle), 0.0, 0.0], 1e-12)
    close(forward(m, q, posed(v), tau), A, 1e-11)


def test_redundant_actuators_share_the_torque():
    q, v, a = posed(0.7), posed(1.0), posed(2.0)
    one = bk.inverse_dynamics(parallelogram(), q, v, a)
    two = bk.inverse_dynamics(parallelogram(both=True), q, v, a)
    close(two, [0.5 * one[0], 0.0, 0.5 * one[0]], 1e-12)
    assert bk.closed_chain(parallelogram(both=True), q).redundant == 1


def test_too_few_actuators_are_named():
    m = parallelogram()
    m.add_link("tail", "coupler", bk.Revolute((0, 1, 0)), actuated=False, position=(0.5, 0, 0), mass=1.0,
               com=(0, 0, -0.3), inertia=(0.1, 0.1, 0.1))
    q, v = np.array([0.3, -0.3, 0.3, 0.2]), np.zeros(4)
    with pytest.raises(bk.ActuationError, match="'tail'") as caught:
        bk.inverse_dynamics(m, q, v, np.zeros(4))
    assert "2 degrees of freedom and 1 actuator, which leave 1 undriven" in str(caught.value)
    a = forward(m, q, v, np.array([2.5, 0.0, 0.0, 0.0]))  # a motion that the one actuator makes
    close(bk.inverse_dynamics(m, q, v, a), [2.5, 0.0, 0.0, 0.0], 1e-10)


def test_accelerations_must_fit_the_loops():
    m, q = parallelogram(), posed(0.3)
    with pytest.raises(bk.StateError, match=r"'pin'.*consistent"):
        bk.inverse_dynamics(m, q, posed(1.0), np.array([1.0, 0.0, 0.0]))
    fits = bk.closed_chain(m, q, posed(1.0)).consistent(np.array([1.0, 0.0, 0.0]))
    assert np.isfinite(bk.inverse_dynamics(m, q, posed(1.0), fits)).all()


def test_a_driven_connection_does_the_work_of_a_joint():
    m = parallelogram(driven=True)
    m = m.with_link(m.links[0].name, actuated=False)
    q, v, a = posed(0.7), posed(1.0), posed(2.0)
    tau = bk.inverse_dynamics(m, q, v, a)
    assert tau.shape == (4,)
    assert not tau[:3].any()
    # its angle is that of the coupler in the rocker, -q
    close(tau[3], -bk.inverse_dynamics(parallelogram(), q, v, a)[0], 1e-12)
    close(forward(m, q, v, tau[:3], tau[3:]), a, 1e-11)


def test_springs_of_connections_act_by_themselves():
    m = parallelogram(stiffness=7.0, damping=0.5)
    q, v, a = posed(0.7), posed(1.0), posed(2.0)
    plain, sprung = bk.inverse_dynamics(parallelogram(), q, v, a), bk.inverse_dynamics(m, q, v, a)
    close(sprung[0] - plain[0], 7.0 * 0.7 + 0.5 * 1.0, 1e-12)
    close(forward(m, q, v, sprung), a, 1e-11)


@pytest.mark.parametrize("passive", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_torques_found_reproduce_the_motion(seed, passive):
    m, q, v, tau = random_loops(seed, passive=passive)
    for link in m.link_names:
        m = m.with_link(link, actuated=True)
    a = forward(m, q, v, tau)
    found = bk.inverse_dynamics(m, q, v, a)
    close(forward(m, q, v, found[:m.nv], found[m.nv:]), a, 1e-7)
    # least norm: none of the torques that only strain the loops
    assert np.linalg.norm(found) <= np.linalg.norm(tau) * (1 + 1e-9)
    # virtual work: actuators do on any motion of the loops what the tree's torques would do
    chain = bk.closed_chain(m, q, v)
    needed = bk.inverse_dynamics(without_connections(m), q, v, a)
    drives = np.concatenate([found[:m.nv], found[m.nv:] if len(found) > m.nv else np.zeros(m.nc)])
    work = chain.W.T @ drives[:m.nv] + (chain.found.ways.T @ chain.W).T @ drives[m.nv:]
    close(work, chain.W.T @ (needed - chain.found.own), 1e-8)


def test_batches_name_the_states_that_fail():
    m = parallelogram()
    q, v = np.array([posed(0.1 * k) for k in range(5)]), np.zeros((5, 3))
    a = np.array([posed(1.0)] * 5)
    tau = bk.inverse_dynamics(m, q, v, a)
    close(tau[3], bk.inverse_dynamics(m, q[3], v[3], a[3]), 1e-14)
    a[1] = a[3] = (1.0, 0.0, 0.0)
    with pytest.raises(bk.StateError, match="2 of 5 states") as caught:
        bk.inverse_dynamics(m, q, v, a)
    assert caught.value.states == (1, 3)
    close(caught.value.result[[0, 2, 4]], tau[[0, 2, 4]], 1e-14)


# -- at the edge of what loops allow ---------------------------------------------------------------------------------


def test_massless_links_held_by_a_loop_move_by_every_method():
    m = parallelogram()
    m.add_link("rod", "crank", bk.Revolute((0, 1, 0)), position=(0, 0, -0.25), actuated=False)
    m.connect("rocker", "rod", bk.Revolute((0, 1, 0)), "stay", position_a=(0, 0, -0.25), position_b=(1, 0, 0),
              actuated=False)
    q, v, tau = np.array([0.4, -0.4, 0.4, -0.4]), np.array([1.0, -1.0, 1.0, -1.0]), np.array([3.0, 0, 0, 0])
    a = unit_vectors(m, q, v, tau)
    close(a, forward(m, q, v, tau), 1e-8)
    close(bk.inverse_dynamics(m, q, v, a), tau, 1e-8)
    assert m.plan().loops.dof_f[f.ARMATURE].any()  # what assembly uses; inverse dynamics must not feel it


@pytest.mark.parametrize("aside", [0.0, 1e-12])
def test_a_singular_pose_says_what_the_actuators_cannot_move(aside):
    """A slider that drives a crank at its dead centre; and cranks in line with their coupler."""
    m = bk.Mechanism()
    m.add_link("crank", joint=bk.Revolute((0, 1, 0)), actuated=False, mass=1.0, com=(0.25, 0, 0),
               inertia=(0.001, 0.02, 0.02))
    m.add_link("rod", "crank", bk.Revolute((0, 1, 0)), actuated=False, position=(0.5, 0, 0), mass=1.0, com=(0.5, 0, 0),
               inertia=(0.001, 0.02, 0.02))
    m.add_link("slider", joint=bk.Prismatic((1, 0, 0)), position=(1.5, 0, 0), mass=1.0)
    m.connect("slider", "rod", bk.Revolute((0, 1, 0)), "pin", position_b=(1, 0, 0))
    q = bk.project(m, np.array([aside, -1.5 * aside, 0.0]))
    with pytest.raises(bk.ActuationError, match=r"singular pose: the actuators cannot move 'rod' in direction "
                                                r"\(0, 0, 1\)"):
        bk.inverse_dynamics(m, q, np.zeros(3), np.zeros(3))
    assert bk.closed_chain(m, q).undriven == 1
    with pytest.raises(bk.ActuationError, match=r"singular pose: the actuators cannot turn 'rocker' about \(0, 1, 0\)"):
        bk.inverse_dynamics(parallelogram(), posed(np.pi / 2 + aside), np.zeros(3), np.zeros(3))


def test_torques_of_open_loops_are_refused():
    m = bk.models.four_bar()
    with pytest.raises(bk.ConstraintError, match=r"is open by .* bk\.project"):
        bk.inverse_dynamics(m, m.neutral() + 0.3, np.zeros(m.nv), np.zeros(m.nv))
