"""Energy and momentum balance along the motion: power of torques and forces, dissipation in dampers."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
import oracle
from closed import random_closed
from flow import rate_along_the_flow
from oracle import close
from structures import make_joint, random_tree

SEEDS = st.integers(0, 10**6)


def damping_power(tree, q, v):
    """Power of the dampers in joints, limits and point springs: all passive torque less that at rest."""
    moving, resting = (oracle.motion(tree, q, u) for u in (v, 0 * v))
    pull = oracle.spring_wrenches(tree, moving)[0] - oracle.spring_wrenches(tree, resting)[0]
    joints = oracle.passive_torque(tree, q, v) - oracle.passive_torque(tree, q, 0 * v)
    return v @ joints + np.sum(pull * moving.velocity)


@given(SEEDS)
@settings(max_examples=60)
def test_energy_grows_by_the_power_of_torques_less_damping(seed):
    tree = random_tree(seed, passive=True, springs=seed % 2 == 0)
    q, v, tau = tree.state(np.random.default_rng(seed))
    a = bk.forward_dynamics(tree.m, q, v, tau)
    gained = rate_along_the_flow(tree.m, q, v, a, lambda q, v: sum(tree.m.energy(q, v)))
    lost = damping_power(tree, q, v)
    assert lost <= 1e-12
    scale = np.abs(v * tau).sum() + abs(lost) + np.abs(tree.m.energy(q, v)).sum()
    assert abs(gained - (v @ tau + lost)) < 1e-8 * scale


@given(SEEDS)
@settings(max_examples=60)
def test_momentum_of_a_floating_mechanism_changes_by_weight_and_external_wrenches(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, passive=False, springs=False, grounded=False)
    q, v, tau = tree.state(rng)
    tau[:6] = 0.0  # nothing pulls at the root
    external = tree.external(rng)
    a = bk.forward_dynamics(tree.m, q, v, tau, external=external)
    at = bk.kinematics(tree.m, q, v)
    force, moment = at.mass * tree.m.gravity, np.zeros(3)
    for name, wrench in external.items():
        force = force + wrench[:3]
        moment = moment + wrench[3:] + np.cross(at.poses[name][1] - at.com, wrench[:3])
    rate = rate_along_the_flow(tree.m, q, v, a, lambda q, v: bk.kinematics(tree.m, q, v).momentum)
    close(rate, np.concatenate([force, moment]), 1e-8)


@given(SEEDS)
@settings(max_examples=30)
def test_inner_springs_and_torques_do_not_change_momentum(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, links=5, grounded=False, kinds=("revolute", "spherical", "prismatic", "free"))
    tree.m.gravity = (0, 0, 0)
    tree.m.add_spring("link0", "link4", position_a=rng.normal(size=3), stiffness=20.0, damping=3.0)
    q, v, tau = tree.state(rng)
    tau[:6] = 0.0
    a = bk.forward_dynamics(tree.m, q, v, tau)
    rate = rate_along_the_flow(tree.m, q, v, a, lambda q, v: bk.kinematics(tree.m, q, v).momentum)
    assert np.abs(rate).max() < 1e-8 * np.abs(a).max()


@given(SEEDS)
@settings(max_examples=30)
def test_energy_of_closed_structures_grows_by_the_power_of_drives_less_damping(seed):
    closed = random_closed(seed, passive=True, redundant=seed % 2 == 0)
    for joint in (*closed.parts, *closed.ties):
        for row in joint.passive:
            row.update(limit_damping=0.0)
    closed = rebuilt(closed)
    m, q = closed.m, closed.q
    v, tau = closed.motion(np.random.default_rng(seed))
    a = bk.forward_dynamics(m, q, v, tau)
    gained = rate_along_the_flow(m, q, v, a, lambda q, v: sum(m.energy(q, v)))
    rates = np.concatenate([v, *(bk.coordinates(m, name, q, v)[1] for name in m.connections)])
    damping = np.array([row["damping"] for joint in (*closed.parts, *closed.ties) for row in joint.passive])
    power, lost = rates @ tau, rates @ (damping * rates)
    assert abs(gained - (power - lost)) < 1e-7 * (np.abs(rates * tau).sum() + lost + np.abs(m.energy(q, v)).sum())


def rebuilt(closed):
    """The same structure with its rows as they are now."""
    twin = type(closed)(bk.Mechanism(gravity=closed.m.gravity), q=closed.q)
    for part in closed.parts:
        twin.add(part, make_joint(part.kind, part.screws, part.passive))
    for tie, guess in zip(closed.ties, closed.guesses, strict=True):
        twin.tie(tie, guess)
    return twin


@given(SEEDS)
@settings(max_examples=30)
def test_connections_do_not_change_the_momentum_of_what_floats(seed):
    closed = random_closed(seed, grounded=False, redundant=seed % 2 == 0)
    m, q = closed.m, closed.q
    v, tau = closed.motion(np.random.default_rng(seed))
    tau[:6] = 0.0  # nothing pulls at the root
    if any(-1 in (tie.a, tie.b) for tie in closed.ties):  # the root's own joint, doubled: a Free one
        tau[m.nv:] = 0.0
    a = bk.forward_dynamics(m, q, v, tau)
    rate = rate_along_the_flow(m, q, v, a, lambda q, v: bk.kinematics(m, q, v).momentum)
    expected = np.concatenate([m.mass * m.gravity, np.zeros(3)])
    assert np.abs(rate - expected).max() < 1e-7 * max(1.0, np.abs(a).max())
