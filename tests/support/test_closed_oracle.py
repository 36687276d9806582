"""Tests of the oracle for closed structures: against closed forms, energy, and itself; and of the generator."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
import by_hand
import closed_oracle
import oracle
from closed import Closed, Tie, described, random_closed, random_planar
from oracle import close, close_forces
from structures import KINDS, NO_PASSIVE, Part, Screw, random_tree

SEEDS = st.integers(0, 10**6)
Y = np.array([0.0, 1.0, 0.0])


def hinge(at=(0.0, 0.0, 0.0)):
    return Screw(Y, np.array(at), 1.0, 0.0)


def test_four_bar_by_hand():
    lengths, angle, rate, torque = (1.2, 0.5, 1.0, 0.9), 1.1, 2.3, 0.7
    closed = described(bk.models.four_bar(lengths, angle))
    v = closed_oracle.consistent(closed, closed.q, np.ones(3))
    v *= rate / v[0]
    answer = closed_oracle.solve(closed, closed.q, v, np.array([torque, 0.0, 0.0]))
    close(answer.a[0], by_hand.acceleration(by_hand.four_bar(lengths), angle, rate, torque), 1e-11)
    assert (answer.constraints, answer.rank, answer.indeterminate) == (5, 2, {"pin": 3})


def on_two_strings(angle, length=0.8, width=0.6, mass=3.0):
    """A bar that hangs from two parallel strings: each a massless rod with a hinge at either end."""
    closed = Closed(bk.Mechanism(gravity=(0, 0, -9.81)))
    closed.add(Part("bar", "bar", -1, "free", [], [dict(NO_PASSIVE)] * 6, np.zeros(3), np.eye(3), mass, np.zeros(3),
                    np.diag([0.1, 0.2, 0.3])), bk.Free())
    closed.q = np.array([-length * np.sin(angle), 0.0, -length * np.cos(angle), 1.0, 0.0, 0.0, 0.0])
    for name, x in (("left", -width / 2), ("right", width / 2)):
        closed.tie(Tie(name, -1, 0, "compound", [hinge(), hinge((0.0, 0.0, -length))], [dict(NO_PASSIVE)] * 2,
                       np.array([x, 0.0, 0.0]), np.eye(3), np.array([x, 0.0, length]), np.eye(3)), [angle, -angle])
    return closed


def test_a_bar_on_two_strings_moves_on_an_arc_and_both_pull_the_same():
    angle, rate, length, mass = 0.4, 1.7, 0.8, 3.0
    closed = on_two_strings(angle, length, mass=mass)
    towards = -length * rate * np.array([np.cos(angle), 0.0, -np.sin(angle)])
    answer = closed_oracle.solve(closed, closed.q, np.array([*towards, 0.0, 0.0, 0.0]))
    along, up = np.array([np.cos(angle), 0, -np.sin(angle)]), np.array([np.sin(angle), 0, np.cos(angle)])
    expected = 9.81 * np.sin(angle) * along + length * rate**2 * up
    close(answer.a, np.array([*expected, 0.0, 0.0, 0.0]), 1e-13)
    pull = 0.5 * mass * (9.81 * np.cos(angle) + length * rate**2) * up
    for name in ("left", "right"):  # through the bar's end, a string's length below the bar's joint frame
        close(answer.forces[name], np.array([*pull, *np.cross([0.0, 0.0, -length], pull)]), 1e-12)
    assert (answer.constraints, answer.rank) == (8, 5)


@given(SEEDS)
@settings(max_examples=20)
def test_energy_grows_by_the_power_of_drives_less_damping(seed):
    closed = random_closed(seed, passive=True, redundant=seed % 2 == 0)
    q = closed.q
    v, tau = closed.motion(np.random.default_rng(seed))
    for row in (row for joint in (*closed.parts, *closed.ties) for row in joint.passive):
        row["limit_stiffness"] = 0.0  # left out of the energy below
    answer = closed_oracle.solve(closed, q, v, tau)
    ring = closed_oracle.loops(closed, q, v)

    def energy(h):
        at, moved = closed.m.integrate(q, h * v), v + h * answer.a
        x = oracle.motion(closed, at, 0 * v)
        stored = -sum(p.mass * closed.m.gravity @ (x.x[k] + x.R[k] @ p.com) for k, p in enumerate(closed.parts))
        for part, q_j, _ in oracle.by_joint(closed, at, moved):
            for row, c in zip(part.passive, oracle.joint_coordinates(part, q_j), strict=True):
                stored += 0.5 * row["stiffness"] * (c - row["rest"])**2
        return 0.5 * moved @ oracle.mass_matrix(closed, at) @ moved + stored + closed_oracle.potential(closed, at)

    h = 1e-4
    gained = (energy(-2 * h) - 8 * energy(-h) + 8 * energy(h) - energy(2 * h)) / (12 * h)
    rates = np.concatenate([v, ring.v])
    damping = np.array([row["damping"] for joint in (*closed.parts, *closed.ties) for row in joint.passive])
    power = rates @ tau - rates @ (damping * rates)
    assert abs(gained - power) < 1e-7 * (np.abs(rates * tau).sum() + abs(energy(0.0)) + rates @ (damping * rates))


@given(SEEDS)
@settings(max_examples=40)
def test_every_link_obeys_newton_and_the_constraints_hold(seed):
    closed = random_closed(seed, passive=seed % 2 == 0, springs=seed % 3 == 0, redundant=seed % 5 < 2, massless=True)
    rng = np.random.default_rng(seed)
    v, tau = closed.motion(rng)
    answer = closed_oracle.solve(closed, closed.q, v, tau, external=closed.external(rng))
    ring = closed_oracle.loops(closed, closed.q, v)
    assert answer.residual < 1e-10
    assert answer.inconsistent < 1e-10
    assert np.abs(ring.gap).max(initial=0.0) < 1e-12
    close(ring.A @ np.concatenate([answer.a, answer.a_ties]), -ring.drift, 1e-10)


@given(SEEDS)
@settings(max_examples=30)
def test_a_connection_instead_of_a_joint_makes_no_difference(seed):
    """Any tree, with a joint taken out and put back as a connection of a link that floats."""
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, links=4, passive=True, massless=False)
    q, v, tau = tree.state(rng)
    for part in tree.parts:
        for row in part.passive:
            row["armature"] = 0.0  # connections have none
        if part.kind not in ("spherical", "free"):
            q[tree.m.q_slice(part.joint_name)] = rng.uniform(-0.6, 0.6, part.nq)
    twin = reconnected(tree, q, v)
    expected = oracle.solve(tree, q, v, tau)
    drive = np.concatenate([np.zeros(24), tau])
    answer = closed_oracle.solve(*twin, drive)
    close(answer.links, expected.links, 1e-8)
    close_forces({part.joint_name: answer.forces[f"{part.joint_name} tie"] for part in tree.parts}, expected.forces,
                 1e-8)


def reconnected(tree, q, v):
    """The same links all floating, held by connections where joints were: closed structure, q and v."""
    closed = Closed(bk.Mechanism(gravity=tree.m.gravity))
    at = oracle.motion(tree, q, v)
    states, rates = [], []
    for k, part in enumerate(tree.parts):
        closed.add(Part(part.name, part.joint_name, -1, "free", [], [dict(NO_PASSIVE)] * 6, np.zeros(3), np.eye(3),
                        part.mass, part.com, part.inertia), bk.Free())
        states += [at.x[k], closed_oracle.quaternion(at.R[k])]
        rates += [at.R[k].T @ at.velocity[k, :3], at.R[k].T @ at.velocity[k, 3:]]
    for k, (part, q_j, _) in enumerate(oracle.by_joint(tree, q, v)):
        closed.tie(Tie(f"{part.joint_name} tie", part.parent, k, part.kind, part.screws, part.passive, part.position,
                       part.rotation, np.zeros(3), np.eye(3)), q_j)
    closed.q = np.concatenate(states)
    return closed, closed.q, np.concatenate(rates)


@pytest.mark.parametrize("length", [0.1, 1.0, 10.0])
def test_no_force_is_smaller_that_does_the_same(length):
    closed = random_closed(7, redundant=True)
    v, tau = closed.motion(np.random.default_rng(7))
    ring = closed_oracle.loops(closed, closed.q, v)
    answer = closed_oracle.solve(closed, closed.q, v, tau, length=length)
    F = np.concatenate([(answer.forces[tie.name].reshape(2, 3) @ R.T).ravel()
                        for tie, (R, _) in zip(closed.ties, ring.frames, strict=True)])
    nothing = np.linalg.svd(ring.A.T)[2][np.linalg.matrix_rank(ring.A):]
    scale = np.tile([1.0, 1.0, 1.0, length, length, length], len(closed.ties))
    assert nothing.shape[0] > 0
    assert np.abs(nothing @ (F / scale**2)).max() < 1e-9 * np.abs(F).max()


def test_random_structures_hold_every_joint_and_every_way_to_close():
    seen, counts = set(), set()
    for seed in range(40):
        closed = random_closed(seed, redundant=seed % 2 == 0)
        counts.add(len(closed.ties))
        for tie in closed.ties:
            seen.add(tie.kind)
            seen.add("to ground" if -1 in (tie.a, tie.b) else "between links")
            if -1 not in (tie.a, tie.b) and root(closed, tie.a) != root(closed, tie.b):
                seen.add("between figures")
        linked = [link for tie in closed.ties for link in (tie.a, tie.b) if link >= 0]
        if len(set(linked)) < len(linked):
            seen.add("loops that share a link")
    assert seen >= {*KINDS, "to ground", "between links", "between figures", "loops that share a link"}
    assert counts >= {1, 2, 3, 4, 5, 6}


def root(tree, link):
    while tree.parts[link].parent >= 0:
        link = tree.parts[link].parent
    return link


def test_planar_structures_have_three_constraints_too_many_for_each_loop():
    for seed in range(6):
        closed = random_planar(seed, 1 + seed % 3)
        v, tau = closed.motion(np.random.default_rng(seed))
        answer = closed_oracle.solve(closed, closed.q, v, tau)
        assert answer.constraints - answer.rank == 3 * len(closed.ties) > 0
        assert answer.inconsistent < 1e-12


def test_impact_of_two_balls_that_stick_together():
    closed = Closed(bk.Mechanism())
    for k, mass in enumerate((1.0, 3.0)):
        closed.add(Part(f"ball{k}", f"ball{k}", -1, "prismatic", [Screw(np.eye(3)[0], np.zeros(3), 0.0, 1.0)],
                        [dict(NO_PASSIVE)], np.zeros(3), np.eye(3), mass, np.zeros(3), np.zeros((3, 3))),
                   bk.Prismatic((1, 0, 0)))
    closed.q = np.zeros(2)
    closed.tie(Tie("grip", 0, 1, "fixed", [], [], np.zeros(3), np.eye(3), np.zeros(3), np.eye(3)), [])
    v, impulses = closed_oracle.impact(closed, closed.q, np.array([4.0, 0.0]))
    close(v, np.array([1.0, 1.0]), 1e-14)
    close(impulses["grip"], np.array([3.0, 0, 0, 0, 0, 0]), 1e-14)
