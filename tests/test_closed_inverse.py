"""Constraints as matrices, generalised coordinates, actuator torques of closed chains, unit vectors with loops."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.plan import fields as f
from bunraku.run import reference
from oracle import close
from structures import arm, random_joint, random_rotation, random_tree

KINDS = ("fixed", "revolute", "prismatic", "helical", "cylindrical", "planar", "spherical", "compound", "free")


def connect_here(m, q, a, b, joint, name, position_b=(0, 0, 0), rotation_b=None, **more):
    """Connect two links where they are: the joint at its neutral position."""
    where = {"ground": (np.eye(3), np.zeros(3)), **bk.poses(m, q)}
    (R_a, x_a), (R_b, x_b) = where[a], where[b]
    turn = np.eye(3) if rotation_b is None else rotation_b
    return m.connect(a, b, joint, name, position_a=R_a.T @ (x_b + R_b @ position_b - x_a),
                     rotation_a=R_a.T @ R_b @ turn, position_b=position_b, rotation_b=turn, **more)


def random_loops(seed, connections=2, passive=False, links=7):
    """A random mechanism with loops, and a state that closes them in position and velocity."""
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, links=links, passive=passive)
    m, (q, v, tau) = tree.m, tree.state(rng)
    names = ["ground", *m.link_names]
    for k in range(connections):
        a, b = rng.choice(len(names), 2, replace=False)
        joint = random_joint(rng, KINDS[rng.integers(len(KINDS))], passive)[0]
        joint = joint if not joint.nv else joint.changed(armature=0.0)
        connect_here(m, q, names[a], names[b], joint, f"loop{k}", rng.normal(size=3) * 0.3, random_rotation(rng),
                     actuated=bool(rng.integers(2)))
    chain = bk.closed_chain(m, q)
    return m, q, chain.W @ v[chain.G], tau


def forward(m, q, v, tau, drives=None):
    """Accelerations by assembly and disassembly."""
    return bk.forward_dynamics(m, q, v, tau if drives is None else np.concatenate([tau, drives]))


def unit_vectors(m, q, v, tau, drives=None, external=None):
    return bk.forward_dynamics(m, q, v, tau if drives is None else np.concatenate([tau, drives]), external=external,
                               method="unit_vector")


def parallelogram(both=False, length=0.5, driven=False, **passive):
    """Two equal cranks about y and a coupler of length 1 that stays level; gravity down."""
    m = bk.Mechanism()
    rod = {"mass": 2.0, "com": (0, 0, -0.2), "inertia": (0.1, 0.1, 0.01)}
    m.add_link("crank", joint=bk.Revolute((0, 1, 0)), **rod)
    m.add_link("coupler", "crank", bk.Revolute((0, 1, 0)), actuated=False, position=(0, 0, -length), mass=3.0,
               com=(0.5, 0, 0), inertia=(0.01, 0.2, 0.2))
    m.add_link("rocker", joint=bk.Revolute((0, 1, 0)), position=(1, 0, 0), actuated=both, **rod)
    m.connect("rocker", "coupler", bk.Revolute((0, 1, 0), **passive), "pin", position_a=(0, 0, -length),
              position_b=(1, 0, 0), actuated=driven)
    return m


def posed(angle):
    return np.array([angle, -angle, angle])


# -- constraints -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_jacobian_and_bias_are_derivatives_of_the_gap(seed):
    m, q, v, _ = random_loops(seed)
    rng = np.random.default_rng(seed)
    now, h = bk.constraints(m, q, v), 1e-4
    assert np.abs(now.gap).max(initial=0.0) < 1e-13
    close(now.rates, np.zeros(len(now.rates)), 1e-11)

    def gap(way):
        return bk.constraints(m, m.integrate(q, way)).gap

    any_way, a = rng.normal(size=m.nv), rng.normal(size=m.nv)
    close((gap(1e-6 * any_way) - gap(-1e-6 * any_way)) / 2e-6, now.jacobian @ any_way, 1e-6)
    second = (gap(h * v + 0.5 * h * h * a) + gap(-h * v + 0.5 * h * h * a)) / h**2
    close(second, now.jacobian @ a + now.bias, 1e-4)


def test_rows_are_named_and_coordinates_follow():
    m = parallelogram()
    m.connect("ground", "coupler", bk.Planar((0, 1, 0)), "table")
    found = bk.constraints(m, posed(0.3), np.array([2.0, -2.0, 2.0]))
    assert found.rows == {"pin": slice(0, 5), "table": slice(5, 8)}
    assert found.jacobian.shape == (8, 3)
    close(found.coordinates["pin"], [-0.3], 1e-14)
    close(found.velocities["pin"], [-2.0], 1e-14)
    assert bk.constraints(bk.models.chain(2), np.zeros(2)).jacobian.shape == (0, 2)
    with pytest.raises(bk.ShapeError, match="one state"):
        bk.constraints(m, np.zeros((4, 3)))


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
def test_parallelogram_in_closed_form(angle):
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


def test_a_driven_connection():
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
    needed = bk.inverse_dynamics(_tree(m), q, v, a)
    drives = np.concatenate([found[:m.nv], found[m.nv:] if len(found) > m.nv else np.zeros(m.nc)])
    work = chain.W.T @ drives[:m.nv] + (chain.found.ways.T @ chain.W).T @ drives[m.nv:]
    close(work, chain.W.T @ (needed - chain.found.own), 1e-8)


def _tree(m):
    twin = m.copy()
    for name in list(twin.connections):
        twin.cut(name)
    return twin


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


# -- unit vectors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(16))
def test_unit_vectors_agree_with_assembly(seed):
    m, q, v, tau = random_loops(seed, connections=1 + seed % 4, passive=bool(seed % 2))
    drives = np.random.default_rng(seed).normal(size=m.nc)
    a, multipliers = reference.closed_forward_dynamics(m, m.plan(), q, v, np.concatenate([tau, drives]), None, 1)
    close(a, unit_vectors(m, q, v, tau, drives), 1e-15)
    close(a, forward(m, q, v, tau, drives), 1e-7)
    found = bk.constraints(m, q, v)
    close(found.jacobian @ a + found.bias, np.zeros(len(found.bias)), 1e-8 * max(1.0, np.abs(a).max()))
    needed = bk.inverse_dynamics(_tree(m), q, v, a)
    chain = bk.closed_chain(m, q, v)
    close(needed, tau + chain.found.own + chain.found.ways @ drives + found.jacobian.T @ multipliers, 1e-8)


def test_unit_vectors_take_external_forces_and_batches():
    m, q, v, tau = random_loops(3)
    external = {m.link_names[k]: np.random.default_rng(k).normal(size=6) for k in (1, 4)}
    a = unit_vectors(m, q, v, tau, external=external)
    close(a, bk.forward_dynamics(m, q, v, tau, external=external), 1e-8)
    many = unit_vectors(m, np.array([q] * 3), np.array([v] * 3), tau, external=external)
    close(many, np.array([a] * 3), 1e-14)


def test_unit_vectors_tell_constraints_that_contradict_each_other():
    m, q = arm(2), np.array([0.3, 0.5])
    connect_here(m, q, "ground", "link1", bk.Fixed(), "weld")
    close(unit_vectors(m, q, np.zeros(2), np.ones(2)), np.zeros(2))
    with pytest.raises(bk.ConstraintError, match="'weld'"):
        unit_vectors(m, q, np.ones(2), np.ones(2))  # moves, though nothing can
    with pytest.raises(bk.ConstraintError, match="1 of 2 states"):
        unit_vectors(m, q, np.array([np.zeros(2), np.ones(2)]), np.ones(2))


def test_massless_links_held_by_a_loop():
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

