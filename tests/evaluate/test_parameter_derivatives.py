"""Derivatives by parameters are those of differences with changed mechanisms; of forces of connections, and in contact,
of differences along motions that keep loops and contacts closed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
from differences import clear_of_limits, slope
from loops import random_loops
from structures import random_tree

SEEDS = st.integers(0, 10**6)
TENSOR = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))


def near(found, expected, tolerance=1e-10):
    assert np.abs(found - expected).max(initial=0.0) <= tolerance * (1.0 + np.abs(expected).max(initial=0.0))


def of_links_and_joints(m, link):
    out = [("mass", link), ("com", link), ("inertia", link), ("external", link), "gravity"]
    for name in m.joint_names:
        joint = m.joint(name)
        if joint.nv:
            out += [("damping", name), ("armature", name)]
        if joint.nv and not isinstance(joint, bk.Free):
            out += [("stiffness", name)] + ([] if isinstance(joint, bk.Spherical) else [("rest", name)])
    return out + [(what, s.name) for s in m.springs for what in ("stiffness", "damping", "rest_length")]


def changed(m, parameter, k, h):
    """The mechanism with column k of a parameter changed by h, and forces on its links."""
    if parameter == "gravity":
        other = m.copy()
        other.gravity = m.gravity + h * np.eye(3)[k]
        return other, None
    what, name = parameter
    if what == "external":
        return m, {name: h * np.eye(6)[k]}
    if what == "inertia":
        change = np.zeros((3, 3))
        change[TENSOR[k]] = change[TENSOR[k][::-1]] = h
        return m.with_link(name, inertia=m.link(name).inertia + change, physical=False), None
    if what in ("mass", "com"):
        more = h if what == "mass" else h * np.eye(3)[k]
        return m.with_link(name, **{what: getattr(m.link(name), what) + more}, physical=False), None
    for spring in m.springs:
        if spring.name == name:
            return m.with_spring(name, **{what: getattr(spring, what) + h}), None
    joint = m.connections[name].joint if name in m.connections else m.joint(name)
    return m.with_joint(name, **{what: getattr(joint, what) + h}), None


def differences(function):
    """Of order eight, over smaller steps."""
    return slope(lambda h: function(0.1 * h)) * 10.0


def with_all(m):
    """The mechanism with springs, dampers and rotors in all joints: numbers that can grow and shrink."""
    for name in m.joint_names:
        joint = m.joint(name)
        if joint.nv and not isinstance(joint, bk.Free):
            m = m.with_joint(name, stiffness=joint.stiffness + 1.0, damping=joint.damping + 0.2, armature=0.3)
        elif joint.nv:
            m = m.with_joint(name, damping=0.2, armature=0.3)
    return m


@given(SEEDS)
@settings(max_examples=8)
def test_parameters_of_trees(seed):
    tree = random_tree(seed, passive=True, springs=True)
    m, rng = with_all(tree.m), np.random.default_rng(seed)
    (q,), (v,), (a,) = tree.states(rng, 1)
    tau, link = bk.inverse_dynamics(m, q, v, a), m.link_names[rng.integers(len(m.links))]
    for parameter in of_links_and_joints(m, link):
        d = bk.parameter_derivatives(m, q, v, tau, parameters=[parameter])
        near(d.a, a, 1e-8)
        for k in range(len(d.names)):
            def acceleration(h, parameter=parameter, k=k):
                other, external = changed(m, parameter, k, h)
                return bk.forward_dynamics(other, q, v, tau, external=external)

            near(d.da[:, k], differences(acceleration))


def test_inertial_parameters_are_the_regressor():
    m = bk.models.human(dof=34)
    rng = np.random.default_rng(0)
    q, v, tau = m.integrate(m.neutral(), 0.3 * rng.normal(size=m.nv)), rng.normal(size=m.nv), rng.normal(size=m.nv)
    d = bk.parameter_derivatives(m, q, v, tau, parameters=[("inertial", name) for name in m.link_names])
    near(d.dtau, bk.inertial_regressor(m, q, v, d.a))
    near(bk.mass_matrix(m, q) @ d.da, -d.dtau, 1e-9)
    many = bk.parameter_derivatives(m, np.array([q, q]), v, tau, parameters=["gravity", ("mass", "head")])
    near(many.da[1], bk.parameter_derivatives(m, q, v, tau, parameters=["gravity", ("mass", "head")]).da)
    assert many.names == ["gravity x", "gravity y", "gravity z", "mass of 'head'"]


def well_posed(count, plain=False):
    """(random number generator, mechanism, q, v, tau) of random loops without redundant constraints."""
    found, seed = [], 0
    while len(found) < count:
        m, q, v, tau = random_loops(seed, passive=True)
        q, v = bk.project(m, q, v, tolerance=1e-14)
        report = bk.dynamics(m, q, v, tau).report
        kinds = {type(made.joint) for made in m.connections.values()}
        if (report.condition < 1e2 and report.rank == report.constraints and clear_of_limits(m, q)
                and not (plain and kinds & {bk.Compound, bk.Planar})):
            found.append((np.random.default_rng(seed), m, q, v, tau))
        seed += 1
    return found


@pytest.mark.parametrize("number", range(5))
def test_parameters_of_loops(number):
    rng, m, q, v, tau = well_posed(5)[number]
    tau = np.concatenate([tau, rng.normal(size=m.nc)])
    names = [name for name, made in m.connections.items() if made.joint.nv == 1]
    for name in names:
        m = m.with_joint(name, damping=0.3)
    parameters = [("mass", m.link_names[0]), "gravity"] + [("damping", name) for name in names]
    d = bk.parameter_derivatives(m, q, v, tau, parameters=parameters)
    column = 0
    for parameter in parameters:
        for k in range(3 if parameter == "gravity" else 1):
            expected = differences(lambda h, p=parameter, k=k: bk.forward_dynamics(changed(m, p, k, h)[0], q, v, tau))
            near(d.da[:, column], expected, 1e-9)
            column += 1


@pytest.mark.parametrize("number", range(6))
def test_forces_of_connections_along_motions_that_keep_loops_closed(number):
    rng, m, q, v, tau = well_posed(6, plain=True)[number]
    tau = np.concatenate([tau, rng.normal(size=m.nc)])
    found = bk.connection_force_derivatives(m, q, v, tau)
    d = bk.derivatives(m, q, v, tau)
    _, values, right = np.linalg.svd(d.jacobian)
    N = right[(values > 1e-8 * values.max(initial=0.0)).sum():].T
    move, faster, more = N @ rng.normal(size=N.shape[1]), rng.normal(size=m.nv), rng.normal(size=len(tau))
    move /= max(1.0, np.linalg.norm(move))

    def state(h):
        return bk.project(m, m.integrate(q, h * move), v + h * faster, tolerance=1e-14)

    dq, dv = slope(lambda h: m.difference(q, state(h)[0])), slope(lambda h: state(h)[1])
    for name, table in found.items():
        near(table.df_dq @ dq + table.df_dv @ dv, slope(lambda h, n=name: bk.joint_forces(m, *state(h), tau)[n]), 1e-8)
        near(table.df_dtau @ more,
             slope(lambda h, n=name: bk.joint_forces(m, q, v, tau + h * more)[n]), 1e-8)


def test_wrong_parameters_are_named():
    m = bk.models.chain(2)
    state = m.neutral(), np.zeros(2)
    for wrong in ("mass", ("mas", "link1"), ("mass", "link9"), ("mass", "ground"), ("rest_length", "link1")):
        with pytest.raises((bk.ModelError, bk.NamingError)):
            bk.parameter_derivatives(m, *state, parameters=[wrong])


# -- contact -----------------------------------------------------------------------------------------------------------


def block(friction=0.5, tilt=0.0):
    m = bk.Mechanism(gravity=(9.81 * np.sin(tilt), 0, -9.81 * np.cos(tilt)))
    m.add_link("block", joint=bk.Free(), mass=2.0, inertia=(0.02, 0.03, 0.04))
    m.add_shape("block", bk.Box(0.4, 0.3, 0.2), friction=friction)
    m.add_plane(friction=friction)
    q = m.neutral()
    q[2] = 0.1
    return m, q


def test_a_sliding_block_by_torque_and_speed():
    """a = -mu g along the slip; turning the slip turns friction with it."""
    m, q = block()
    v = np.zeros(6)
    v[0] = 1.5
    d = bk.derivatives(m, q, v)
    near(d.a, [-0.5 * 9.81, 0, 0, 0, 0, 0], 1e-9)
    near(d.da_dv[:2, :2], [[0, 0], [0, -0.5 * 9.81 / 1.5]], 1e-8)
    near(d.da_dtau[:3, :3], [[0.5, 0, 0.25], [0, 0.5, 0], [0, 0, 0]], 1e-9)
    assert d.jacobian.shape == (4, 6)
    assert np.linalg.matrix_rank(d.jacobian) == 3


def test_a_block_at_rest_is_held():
    m, q = block(tilt=0.2)
    d = bk.derivatives(m, q, np.zeros(6), 0.1 * np.ones(6))
    near(d.a, np.zeros(6), 1e-9)
    near(d.da_dtau, np.zeros((6, 6)), 1e-9)
    assert np.linalg.matrix_rank(d.jacobian) == 6
    with pytest.raises(bk.ContactError, match="block"):
        bk.derivatives(m, q, [0, 0, -1.0, 0, 0, 0])
    with pytest.raises(bk.ContactError, match="without contact"):
        bk.step_derivatives(m, q, np.zeros(6), step=0.01)


def test_a_foot_that_sticks_is_a_ball_joint():
    """A chain with a point on the floor: derivatives as with a Spherical connection at that point."""
    rng = np.random.default_rng(3)
    m = bk.Mechanism()
    m.add_link("trunk", joint=bk.Free(), mass=3.0, inertia=(0.1, 0.12, 0.09))
    m.add_link("leg", "trunk", bk.Revolute((0, 1, 0)), position=(0, 0, -0.2), mass=1.0, com=(0, 0, -0.2),
               inertia=(0.02, 0.02, 0.01))
    q = m.integrate(m.neutral(), 0.2 * rng.normal(size=m.nv))
    R, x = bk.poses(m, q)["leg"]
    foot = np.array([0.05, 0.02, -0.4])
    place = x + R @ foot
    held, standing = m.copy(), m.copy()
    held.connect("ground", "leg", bk.Spherical(), "foot", position_a=place, position_b=foot)
    standing.add_shape("leg", bk.Points([foot]), friction=5.0)
    standing.add_plane(point=place, friction=5.0)
    v = bk.impact(held, q, 0.3 * rng.normal(size=m.nv))
    tau = rng.normal(size=m.nv)
    pressed = {"trunk": (0, 0, -200.0, 0, 0, 0)}
    expected = bk.derivatives(held, q, v, tau, external=pressed)
    found = bk.derivatives(standing, q, v, tau, external=pressed)
    near(found.a, expected.a, 1e-9)
    near(found.da_dtau, expected.da_dtau, 1e-9)
    assert np.linalg.matrix_rank(np.vstack([found.jacobian, expected.jacobian]), tol=1e-9) == 3
    _, _, right = np.linalg.svd(expected.jacobian)
    N = right[3:].T
    dv = -np.linalg.pinv(expected.jacobian) @ expected.rates_dq @ N
    near(found.jacobian @ dv, -found.rates_dq @ N, 1e-9)
    near(found.da_dq @ N + found.da_dv @ dv, expected.da_dq @ N + expected.da_dv @ dv, 1e-9)
    near(found.da_dv @ N, expected.da_dv @ N, 1e-9)


def test_joints_with_friction_and_hard_limits():
    m = bk.models.chain(3)
    m = m.with_joint(m.joint_names[0], friction=100.0).with_joint(m.joint_names[2], lower=-0.5, hard_limits=True)
    q, v = np.array([0.3, 0.2, -0.5]), np.zeros(3)
    tau = np.array([0.0, 1.0, -50.0])
    d = bk.derivatives(m, q, v, tau)
    near(d.a[[0, 2]], [0, 0], 1e-9)
    M = bk.mass_matrix(m, q)
    near(d.da_dtau, np.diag([0.0, 1.0 / M[1, 1], 0.0]), 1e-9)
    assert len(d.jacobian) == 2
