"""Closed structures: accelerations, forces and reports are those of the dense oracle, by every method and schedule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
import closed_oracle
from closed import described, random_closed, random_planar
from flow import rate_along_the_flow
from oracle import close, close_forces

SEEDS = st.integers(0, 10**6)
METHODS = ("auto", "ada", "unit_vector")


def check(closed, v, tau, external=None):
    """One state in every respect."""
    expected = closed_oracle.solve(closed, closed.q, v, tau, external=external, length=closed.m.length_scale)
    result = bk.dynamics(closed.m, closed.q, v, tau, external=external)
    close(result.a, expected.a, 1e-8)
    close(np.array(list(result.links.values())), expected.links, 1e-8)
    close_forces(result.forces, expected.forces, 1e-8)
    assert (result.report.constraints, result.report.rank) == (expected.constraints, expected.rank)
    open_forces = {name: count for name, count in result.report.indeterminate.items() if count}
    assert open_forces == {name: count for name, count in expected.indeterminate.items() if count}
    close(bk.forward_dynamics(closed.m, closed.q, v, tau, external=external), expected.a, 1e-8)


@given(SEEDS)
@settings(max_examples=80)
def test_accelerations_forces_and_reports_equal_the_oracle(seed):
    rng = np.random.default_rng(seed)
    closed = random_closed(seed, passive=seed % 2 == 0, springs=seed % 3 == 0)
    check(closed, *closed.motion(rng), closed.external(rng))


@given(SEEDS)
@settings(max_examples=25)
def test_massless_links_in_loops_equal_the_oracle(seed):
    closed = random_closed(seed, massless=True, kinds=("revolute", "helical", "fixed", "spherical", "prismatic"))
    check(closed, *closed.motion(np.random.default_rng(seed)))


@given(SEEDS)
@settings(max_examples=60)
def test_redundant_connections_share_the_smallest_forces(seed):
    closed = random_closed(seed, redundant=True, passive=seed % 2 == 0)
    closed.m.length_scale = (1.0, 0.1, 3.0)[seed % 3]
    check(closed, *closed.motion(np.random.default_rng(seed)))


@given(SEEDS)
@settings(max_examples=20)
def test_planar_linkages_of_hinges_in_space_equal_the_oracle(seed):
    closed = random_planar(seed, 1 + seed % 4)
    check(closed, *closed.motion(np.random.default_rng(seed)))


@given(SEEDS)
@settings(max_examples=5)
def test_deep_structures_equal_the_oracle(seed):
    closed = random_closed(seed, links=25, chain=True, ties=6)
    check(closed, *closed.motion(np.random.default_rng(seed)))


@given(SEEDS)
@settings(max_examples=20)
def test_all_methods_agree_on_one_state_and_on_batches(seed):
    rng = np.random.default_rng(seed)
    closed = random_closed(seed, passive=seed % 2 == 0, springs=seed % 3 == 0, redundant=seed % 5 < 2)
    q, v, tau = closed.motions(rng, 3)
    external = closed.external(rng, 3)
    pushed = [{name: w[k] for name, w in external.items()} for k in range(3)]
    expected = np.array([closed_oracle.solve(closed, *state, external=push).a
                         for *state, push in zip(q, v, tau, pushed, strict=True)])
    for method in METHODS:
        close(bk.forward_dynamics(closed.m, q, v, tau, external=external, method=method), expected, 1e-8)
        close(bk.forward_dynamics(closed.m, q[0], v[0], tau[0], external=pushed[0], method=method), expected[0], 1e-8)


@given(SEEDS)
@settings(max_examples=30)
def test_any_schedule_gives_the_same(seed):
    rng = np.random.default_rng(seed)
    closed = random_closed(seed, passive=seed % 2 == 0, redundant=seed % 5 < 2, massless=seed % 3 == 0)
    q, v, tau = closed.motions(rng, 2)
    expected = np.array([closed_oracle.solve(closed, *state).a for state in zip(q, v, tau, strict=True)])
    names = [*closed.m.joint_names, *closed.m.connections]
    for closing in ("inside", "together"):
        schedule = bk.Schedule(closed.m, order=[str(name) for name in rng.permutation(names)], closing=closing)
        close(bk.forward_dynamics(closed.m, q, v, tau, schedule=schedule), expected, 1e-8)
        close(bk.forward_dynamics(closed.m, q[0], v[0], tau[0], schedule=schedule), expected[0], 1e-8)


@given(SEEDS)
@settings(max_examples=10)
def test_forces_of_a_batch_are_those_of_its_states(seed):
    rng = np.random.default_rng(seed)
    closed = random_closed(seed, passive=True, redundant=seed % 2 == 0)
    q, v, tau = closed.motions(rng, 4)
    batch = bk.joint_forces(closed.m, q, v, tau)
    assert list(batch) == [*closed.m.joint_names, *closed.m.connections]
    for k in range(4):
        one = bk.joint_forces(closed.m, q[k], v[k], tau[k])
        close_forces({name: wrench[k] for name, wrench in batch.items()}, one, 1e-9)


@given(SEEDS)
@settings(max_examples=20)
def test_prescribed_joints_and_connections_move_as_told(seed):
    rng = np.random.default_rng(seed)
    closed = random_closed(seed, links=7, passive=seed % 2 == 0, freedom=4)
    v, tau = closed.motion(rng)
    told, indices = {}, {}
    ring = closed_oracle.loops(closed, closed.q, v)
    chosen = ring.A
    for name in rng.permutation([*closed.m.joint_names, *closed.m.connections]):
        where = closed.m.drive_slice(str(name))
        rows = np.concatenate([chosen, np.eye(ring.A.shape[1])[where]])
        independent = np.linalg.svd(rows, compute_uv=False)
        if where.stop > where.start and rng.random() < 0.5 and len(rows) < rows.shape[1] \
                and independent[-1] > 1e-2 * independent[0]:
            told[str(name)], chosen = rng.normal(size=where.stop - where.start), rows
            indices.update(zip(range(where.start, where.stop), told[str(name)], strict=True))
    expected = closed_oracle.solve(closed, closed.q, v, tau, prescribed=indices)
    assert expected.inconsistent < 1e-10
    close(bk.forward_dynamics(closed.m, closed.q, v, tau, prescribed=told), expected.a, 1e-8)
    batch = bk.forward_dynamics(closed.m, np.tile(closed.q, (2, 1)), np.tile(v, (2, 1)), np.tile(tau, (2, 1)),
                                prescribed=told)
    close(batch, np.tile(expected.a, (2, 1)), 1e-8)


@given(SEEDS)
@settings(max_examples=20)
def test_without_passive_forces_connections_have_none_either(seed):
    closed = random_closed(seed, passive=True, springs=True)
    v, tau = closed.motion(np.random.default_rng(seed))
    expected = closed_oracle.solve(closed, closed.q, v, tau, passive=False).a
    close(bk.forward_dynamics(closed.m, closed.q, v, tau, passive=False), expected, 1e-8)


@given(SEEDS)
@settings(max_examples=10)
def test_drives_of_connections_are_the_tail_of_tau(seed):
    closed = random_closed(seed)
    m, q = closed.m, closed.q
    v, tau = closed.motion(np.random.default_rng(seed))
    assert m.nc == closed.nc
    for name in m.joint_names:
        assert m.drive_slice(name) == m.v_slice(name)
    first = m.nv
    for tie in closed.ties:
        assert m.drive_slice(tie.name) == slice(first, first + tie.nv)
        first += tie.nv
    short = bk.forward_dynamics(m, q, v, tau[:m.nv])
    close(short, bk.forward_dynamics(m, q, v, np.concatenate([tau[:m.nv], np.zeros(m.nc)])), 1e-12)
    close(bk.forward_dynamics(m, q, v), bk.forward_dynamics(m, q, v, np.zeros(m.nv + m.nc)), 1e-12)


def two_figures():
    """Two people, 16 degrees of freedom each, who hold hands: left to right by balls, right to left by hinges."""
    m = bk.Mechanism(gravity=(0, 0, -9.81))
    for who, x in (("one", 0.0), ("two", 0.6)):
        figure = bk.models.human(16)
        for link in figure.links:
            parent = "ground" if link.parent < 0 else f"{who} {figure.link_names[link.parent]}"
            position = link.position + ([x, 0.0, 0.0] if link.parent < 0 else [0.0, 0.0, 0.0])
            m.add_link(f"{who} {link.name}", parent, link.joint, joint_name=f"{who} {link.joint_name}",
                       position=position, rotation=link.rotation, mass=link.mass, com=link.com, inertia=link.inertia)
    rng = np.random.default_rng(0)
    q = m.integrate(m.neutral(), 0.4 * rng.normal(size=m.nv))
    p = bk.poses(m, q)
    for side, other, joint in (("left", "right", bk.Spherical()), ("right", "left", bk.Revolute((0, 0, 1)))):
        (R_a, x_a), (R_b, x_b) = p[f"one {side}_hand"], p[f"two {other}_hand"]
        middle = 0.5 * (x_a + x_b)  # where the hands would meet, fixed to both: a stick between them
        m.connect(f"one {side}_hand", f"two {other}_hand", joint, name=f"{side} grip",
                  position_a=R_a.T @ (middle - x_a), rotation_a=R_a.T, position_b=R_b.T @ (middle - x_b),
                  rotation_b=R_b.T)
    return m, q, rng


def test_two_figures_who_hold_hands_equal_the_oracle_and_keep_momentum():
    m, q, rng = two_figures()
    closed = described(m, q)
    v, tau = closed.motion(rng)
    for link in m.links:
        if link.parent < 0:
            tau[m.v_slice(link.joint_name)] = 0.0
    check(closed, v, tau)
    a = bk.forward_dynamics(m, q, v, tau)
    rate = rate_along_the_flow(m, q, v, a, lambda q, v: bk.kinematics(m, q, v).momentum)
    close(rate, np.array([0.0, 0.0, -9.81 * m.mass, 0.0, 0.0, 0.0]), 1e-6)
    report = bk.dynamics(m, q, v, tau).report
    assert (report.constraints, report.rank) == (8, 8)


def double_pendulum():
    m = bk.Mechanism()
    m.add_link("upper", joint=bk.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -1))
    m.add_link("lower", "upper", joint=bk.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -1))
    return m


@pytest.mark.parametrize("call", [
    lambda m: m.connect("upper", "absent"), lambda m: m.connect("upper", "upper"),
    lambda m: m.connect("ground", "ground"),
    lambda m: m.connect("ground", "upper", bk.Revolute((0, 1, 0), armature=0.1)),
    lambda m: m.connect("ground", "upper", joint="rope"), lambda m: m.connect("ground", "upper", name="upper"),
    lambda m: m.connect("ground", "upper", position_a=(1, 2)), lambda m: m.connect("ground", "upper", name="grip"),
    lambda m: m.connect("ground", "upper", rotation_b=2 * np.eye(3)), lambda m: m.cut("nothing"),
    lambda m: bk.Schedule(m, order=["upper"]), lambda m: bk.Schedule(m, order=["upper", "upper", "grip"]),
    lambda m: bk.Schedule(m, order=["upper", "lower", "grip"], closing="sideways"),
])
def test_connections_and_schedules_that_make_no_sense_are_refused(call):
    m = double_pendulum()
    m.connect("ground", "lower", bk.Spherical(), name="grip")
    with pytest.raises(bk.ModelError):
        call(m)


@pytest.mark.parametrize("size", [0, 1, 3, 4, 6])
def test_torques_of_a_wrong_length_are_refused(size):
    m = double_pendulum()
    m.connect("upper", "lower", bk.Spherical(), name="grip")
    with pytest.raises(bk.ShapeError):
        bk.forward_dynamics(m, np.zeros(2), np.zeros(2), np.zeros(size))
