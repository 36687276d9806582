"""Velocity after connections have become rigid: momentum kept, energy never gained, loops that no longer open."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
import closed_oracle
import oracle
import paper_impact
from closed import Closed, closing_tie, random_closed, random_planar
from oracle import close, close_forces
from structures import make_joint, random_tree

SEEDS = st.integers(0, 10**6)


def structures(seed, **options):
    if seed % 7 == 0:
        return random_planar(seed, 2)
    return random_closed(seed, redundant=seed % 3 == 0, massless=seed % 5 == 0, **options)


@given(SEEDS)
@settings(max_examples=80)
def test_velocities_and_impulses_equal_the_dense_solution(seed):
    closed = structures(seed)
    closed.m.length_scale = (1.0, 0.1, 3.0)[seed % 3]
    v = np.random.default_rng(seed).normal(size=closed.m.nv)
    expected, impulses = closed_oracle.impact(closed, closed.q, v, closed.m.length_scale)
    after, ours = bk.impact(closed.m, closed.q, v, impulses=True)
    close(after, expected, 1e-8)
    close_forces(ours, impulses, 1e-8)
    close(bk.impact(closed.m, closed.q, v), after, 1e-12)


@given(SEEDS)
@settings(max_examples=40)
def test_loops_stay_closed_energy_falls_by_what_the_jump_held_and_once_is_enough(seed):
    closed = structures(seed)
    v = np.random.default_rng(seed).normal(size=closed.m.nv)
    after = bk.impact(closed.m, closed.q, v)
    J = closed_oracle.jacobian(closed, closed.q)
    assert np.abs(J @ after).max(initial=0.0) < 1e-9 * max(1.0, np.abs(v).max())
    M = oracle.mass_matrix(closed, closed.q)
    before_energy, after_energy, lost = 0.5 * v @ M @ v, 0.5 * after @ M @ after, 0.5 * (v - after) @ M @ (v - after)
    assert abs(before_energy - after_energy - lost) < 1e-9 * before_energy  # Carnot
    assert after_energy <= before_energy * (1 + 1e-12)
    close(bk.impact(closed.m, closed.q, after), after, 1e-9)


@given(SEEDS)
@settings(max_examples=30)
def test_momentum_of_what_floats_is_kept(seed):
    closed = random_closed(seed, grounded=False, redundant=seed % 2 == 0)
    v = np.random.default_rng(seed).normal(size=closed.m.nv)
    before = bk.kinematics(closed.m, closed.q, v).momentum
    close(bk.kinematics(closed.m, closed.q, bk.impact(closed.m, closed.q, v)).momentum, before, 1e-8)


@given(SEEDS)
@settings(max_examples=15)
def test_a_batch_is_its_states(seed):
    closed = structures(seed)
    v = np.random.default_rng(seed).normal(size=(3, closed.m.nv))
    q = np.tile(closed.q, (3, 1))
    after, impulses = bk.impact(closed.m, q, v, impulses=True)
    for k in range(3):
        one, own = bk.impact(closed.m, q[k], v[k], impulses=True)
        close(after[k], one, 1e-10)
        close_forces({name: P[k] for name, P in impulses.items()}, own, 1e-9)


def test_a_rod_caught_at_its_end():
    """A rod that flies sideways is caught by a ball joint at its end: it turns about the end with 3/2 v / l."""
    m = bk.Mechanism(gravity=(0, 0, 0))
    m.add_link("rod", joint=bk.Free(), mass=2.0, com=(0.5, 0, 0), inertia=(0.01, 2 / 12, 2 / 12))
    m.connect("ground", "rod", bk.Spherical(), name="catch")
    after, impulses = bk.impact(m, m.neutral(), np.array([0, 3.0, 0, 0, 0, 0]), impulses=True)
    close(after, np.array([0, 0, 0, 0, 0, 4.5]), 1e-12)
    close(impulses["catch"], np.array([0, 2.0 * (0.5 * 4.5 - 3.0), 0, 0, 0, 0]), 1e-12)


def test_two_carts_couple_and_a_free_connection_does_nothing():
    m = bk.Mechanism()
    for name, mass in (("one", 1.0), ("two", 3.0)):
        m.add_link(name, joint=bk.Prismatic((1, 0, 0)), mass=mass)
    v = np.array([4.0, 0.0])
    m.connect("one", "two", bk.Free(), name="nothing")
    close(bk.impact(m, np.zeros(2), v), v, 1e-14)
    m.connect("one", "two", bk.Planar((1, 0, 0)), name="coupling")
    after, impulses = bk.impact(m, np.zeros(2), v, impulses=True)
    close(after, np.ones(2), 1e-13)
    close(impulses["coupling"], np.array([3.0, 0, 0, 0, 0, 0]), 1e-12)
    close(impulses["nothing"], np.zeros(6), 1e-12)


def test_without_connections_nothing_jumps():
    m = bk.models.chain(4, joint="spherical")
    v = np.random.default_rng(0).normal(size=m.nv)
    close(bk.impact(m, m.neutral(), v), v, 1e-12)
    after, impulses = bk.impact(m, m.neutral(), v, impulses=True)
    assert impulses == {}


@pytest.mark.parametrize("joint", [bk.Fixed(), bk.Spherical(), bk.Revolute((0, 1, 0))], ids=repr)
def test_a_figure_grabs_a_bar(joint):
    m = bk.models.human(34)
    rng = np.random.default_rng(0)
    q = m.integrate(m.neutral(), 0.3 * rng.normal(size=m.nv))
    v = rng.normal(size=m.nv)
    R, x = bk.poses(m, q)["left_hand"]
    m.connect("ground", "left_hand", joint, name="grip", position_a=x, rotation_a=R)
    after, impulses = bk.impact(m, q, v, impulses=True)
    before_momentum, momentum = (bk.kinematics(m, q, u).momentum for u in (v, after))
    close(momentum[:3] - before_momentum[:3], R @ impulses["grip"][:3], 1e-8)
    rates = bk.coordinates(m, "grip", q, after)[1]
    moved = bk.kinematics(m, q, after).velocities["left_hand"]
    close(moved[:3], np.zeros(3), 1e-9)
    if joint.nv == 1:
        close(R.T @ moved[3:], rates[0] * np.array([0.0, 1.0, 0.0]), 1e-9)


# -- the formulas of the paper -----------------------------------------------------------------------------------------


def floating_pair(seed, kind):
    """Two floating chains that a connection of this kind joins: (structure, velocities of the first)."""
    rng = np.random.default_rng(seed)
    closed = Closed(bk.Mechanism())
    for tree in (random_tree(seed + k, 4, ("revolute", "spherical"), grounded=False, massless=False) for k in (0, 1)):
        first = len(closed.parts)
        for part in tree.parts:
            number = len(closed.parts)
            part = replace(part, name=f"link{number}", joint_name=f"joint{number}",
                           parent=part.parent + first if part.parent >= 0 else -1)
            closed.add(part, make_joint(part.kind, part.screws, part.passive))
    closed.q = closed.state(rng)[0]
    tie, coordinates = closing_tie(rng, oracle.motion(closed, closed.q, np.zeros(closed.m.nv)), "tie", 1, 6, kind)
    closed.tie(tie, coordinates)
    return closed, sum(part.nv for part in closed.parts[:4])


@pytest.mark.parametrize("kind", ["fixed", "revolute", "prismatic", "spherical", "compound"])
def test_two_chains_follow_the_formulas_of_the_paper(kind):
    closed, n = floating_pair(4, kind)
    v = np.random.default_rng(1).normal(size=closed.m.nv)
    A, ring = oracle.mass_matrix(closed, closed.q), closed_oracle.loops(closed, closed.q, np.zeros(closed.m.nv))
    J, J_n = ring.A[:, :len(v)], -ring.A[:, len(v):]            # link b moves with chain 2, link a with chain 1
    after_1, after_2 = paper_impact.two_chains(A[:n, :n], A[n:, n:], -J[:, :n], J[:, n:], J_n, v[:n], v[n:])
    close(bk.impact(closed.m, closed.q, v), v + np.concatenate([after_1, after_2]), 1e-9)
    one = paper_impact.one_chain(A, J, np.zeros_like(J), J_n, v)  # both together are one chain as well
    close(bk.impact(closed.m, closed.q, v), v + one, 1e-9)


@pytest.mark.parametrize("kind", ["fixed", "revolute", "spherical"])
def test_one_chain_follows_the_formulas_of_the_paper(kind):
    closed = random_closed(12, links=9, ties=1, kinds=("spherical",), tie_kinds=(kind,), chain=True, grounded=False)
    v = np.random.default_rng(2).normal(size=closed.m.nv)
    ring = closed_oracle.loops(closed, closed.q, np.zeros(closed.m.nv))
    at = oracle.motion(closed, closed.q, np.zeros(closed.m.nv))
    sides = []
    for link in (closed.ties[0].b, closed.ties[0].a):           # 1: link b, 2: link a, at b's joint frame
        arm = ring.frames[0][1] - at.x[link]
        shift = np.block([[np.eye(3), -oracle.skew(arm)], [np.zeros((3, 3)), np.eye(3)]])
        sides.append(shift @ at.J[link])
    A = oracle.mass_matrix(closed, closed.q)
    change = paper_impact.one_chain(A, *sides, -ring.A[:, len(v):], v)
    close(bk.impact(closed.m, closed.q, v), v + change, 1e-9)
