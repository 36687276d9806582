"""Mechanisms with connections by several workers: any cuts, any number of workers, results of one worker."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
import closed_oracle
from bunraku.algorithms.connection_equations import AGAIN, DYNAMICS, IMPULSE, POSITION, TWICE
from bunraku.entries.loop_entries import closed_one
from bunraku.entries.part_entries import part_closed, part_of_state
from bunraku.entries.signatures import DOUBTFUL, FINE
from bunraku.plan import fields as f
from bunraku.plan.chunk_loops import ClosedDivision
from bunraku.workers.threads import Team
from closed import random_closed, random_planar
from loops import connect_here
from structures import random_tree

SEEDS = st.integers(0, 10**6)


def close(a, b, tolerance=1e-10):
    assert np.abs(a - b).max(initial=0.0) <= tolerance * max(1.0, np.abs(b).max(initial=0.0))


def random_cuts(m, rng, part=0.5):
    """A schedule cut at about this part of the joints that may be cut."""
    cuts = []
    for name in m.joint_names:
        with contextlib.suppress(bk.ModelError):  # Fixed joints, and links that cannot stand alone
            if rng.random() < part:
                bk.Schedule(m, cuts=[name])
                cuts.append(name)
    return bk.Schedule(m, cuts=cuts)


def teams(plan, schedule, rng, count=2):
    """The chunks of a schedule on one worker, on one each, and spread at random over up to four."""
    assembly = schedule.assembly(plan)
    m = len(assembly.worker)
    spread = [np.unique(rng.integers(0, min(m, 4), m), return_inverse=True)[1] for _ in range(count)]
    return [Team(ClosedDivision(plan, assembly._replace(worker=w)))
            for w in (np.zeros(m, np.int64), assembly.worker, *spread)]


def by_team(team, plan, mode, q, v, tau, external=None):
    """What all workers answer, and the result."""
    a, motion = np.full(plan.nv, np.nan), part_closed.address
    pushed = plan.nothing if external is None else external
    part_of_state.load()

    def work(k):
        part = team.parts[k]
        return part_of_state.call(motion, mode, team.arrays[k], part.q_index, part.v_index, part.drive_index,
                                  part.link_index, q, v, tau[:plan.nv], tau[plan.nv:], pushed, a)

    answers = set(team.run(work))
    assert len(answers) == 1
    return answers.pop(), a


def by_one(plan, mode, q, v, tau, external=None):
    a, work = np.empty(plan.nv), np.empty(plan.loops.work_size)
    answer = closed_one.call(mode, plan.with_rotors, plan.loops.dof_f, q, v, tau[:plan.nv], tau[plan.nv:],
                             plan.nothing if external is None else external, a, work)
    return answer, a


def compare(m, schedule, rng, q, v, tau, modes=(DYNAMICS, DYNAMICS + TWICE), external=None):
    """Every team gets the same to the last bit, and what one worker gets to rounding."""
    plan = m.plan()
    several = teams(plan, schedule, rng)
    for mode in modes:
        answer, expected = by_one(plan, mode, q, v, tau, external)
        _, first = by_team(several[0], plan, mode, q, v, tau, external)
        close(first, expected)
        for team in several:
            said, a = by_team(team, plan, mode, q, v, tau, external)
            assert np.array_equal(a, first)
            assert said in ((FINE, DOUBTFUL) if answer == FINE else (answer,))
    return several


@given(SEEDS)
@settings(max_examples=40)
def test_random_structures_with_random_cuts(seed):
    rng = np.random.default_rng(seed)
    closed = random_closed(seed, links=None if seed % 4 else 14, passive=seed % 2 == 0, springs=seed % 3 == 0,
                           massless=seed % 5 == 0)
    v, tau = closed.motion(rng)
    schedule = random_cuts(closed.m, rng)
    close(bk.forward_dynamics(closed.m, closed.q, v, tau, schedule=schedule),
          closed_oracle.solve(closed, closed.q, v, tau).a, 1e-8)
    compare(closed.m, schedule, rng, closed.q, v, tau,
            external=rng.normal(size=6 * len(closed.m.links)) if seed % 2 else None)


@given(SEEDS)
@settings(max_examples=30)
def test_redundant_loops_with_random_cuts(seed):
    rng = np.random.default_rng(seed)
    closed = random_planar(seed, 1 + seed % 4) if seed % 3 == 0 else random_closed(seed, redundant=True,
                                                                                   passive=seed % 2 == 0)
    v, tau = closed.motion(rng)
    schedule = random_cuts(closed.m, rng)
    expected = bk.forward_dynamics(closed.m, closed.q, v, tau)
    close(bk.forward_dynamics(closed.m, closed.q, v, tau, schedule=schedule), expected)
    close(expected, closed_oracle.solve(closed, closed.q, v, tau).a, 1e-8)
    compare(closed.m, schedule, rng, closed.q, v, tau)


@given(SEEDS)
@settings(max_examples=20)
def test_impulses_and_moves(seed):
    rng = np.random.default_rng(seed)
    closed = random_closed(seed, redundant=seed % 3 == 0)
    q = closed.m.integrate(closed.q, 1e-3 * rng.normal(size=closed.m.nv))
    v, nothing = rng.normal(size=closed.m.nv), np.zeros(closed.m.nv)
    compare(closed.m, random_cuts(closed.m, rng), rng, q, v, nothing, modes=(IMPULSE, POSITION, IMPULSE + TWICE))


@given(SEEDS)
@settings(max_examples=15)
def test_factors_are_used_again(seed):
    rng = np.random.default_rng(seed)
    closed = random_closed(seed, redundant=seed % 2 == 0)
    m, plan = closed.m, closed.m.plan()
    nothing, v, more = np.zeros(m.nv), rng.normal(size=m.nv), rng.normal(size=m.nv)
    near = m.integrate(closed.q, (seed % 2) * 1e-6 * rng.normal(size=m.nv))  # factors from elsewhere are inexact
    requests = ((IMPULSE, closed.q, v), (IMPULSE + AGAIN, near, more), (POSITION + AGAIN, near, nothing))
    work = np.empty(plan.loops.work_size)
    expected = []
    for mode, q, rates in requests:
        a = np.empty(m.nv)
        closed_one.call(mode, plan.with_rotors, plan.loops.dof_f, q, rates, nothing, nothing[:0], nothing[:0], a, work)
        expected.append(a)
    before = None
    for team in teams(plan, random_cuts(m, rng), rng):
        found = [np.full(m.nv, np.nan) for _ in requests]
        part_closed.load()

        def run(k, team=team, found=found):
            part, arrays = team.parts[k], team.arrays[k]
            size = len(part.v_index)
            mine, own = np.empty(int(arrays.body_i[-1, f.HEAD_WORK]) + size), np.empty(size)
            for (mode, q, rates), result in zip(requests, found, strict=True):
                part_closed.call(mode, arrays, arrays.dof_f, q[part.q_index], rates[part.v_index], np.zeros(size),
                                 plan.nothing, plan.nothing, own, mine)
                result[part.v_index] = own

        team.run(run)
        for a, b in zip(found, expected, strict=True):
            close(a, b, 1e-3 if seed % 2 else 1e-9)
        assert before is None or np.array_equal(found, before)
        before = found


@given(SEEDS)
@settings(max_examples=15)
def test_drives_and_prescribed_motion(seed):
    rng = np.random.default_rng(seed)
    closed = random_closed(seed, links=8, freedom=4, passive=seed % 2 == 0)
    v, tau = closed.motion(rng)
    schedule, name = random_cuts(closed.m, rng), str(rng.choice(closed.m.joint_names))
    told = {name: rng.normal(size=closed.m.joint(name).nv)}
    try:
        expected = bk.forward_dynamics(closed.m, closed.q, v, tau, prescribed=told)
    except bk.ConstraintError:  # the loops do not allow it
        return
    close(bk.forward_dynamics(closed.m, closed.q, v, tau, prescribed=told, schedule=schedule), expected, 1e-8)


@given(SEEDS)
@settings(max_examples=15)
def test_trees_with_springs_and_external_forces(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, links=9, passive=True, springs=seed % 2 == 0)
    q, v, tau = tree.state(rng)
    external = tree.external(rng)
    close(bk.forward_dynamics(tree.m, q, v, tau, external=external, schedule=random_cuts(tree.m, rng)),
          bk.forward_dynamics(tree.m, q, v, tau, external=external))


# -- mechanisms ------------------------------------------------------------------------------------------------------


def on_a_bar():
    """A figure that holds a bar with both hands, and a bar that turns about its axis."""
    m = bk.models.human(48)
    q = m.neutral()
    m.add_link("bar", joint=bk.Revolute((0, 1, 0)), position=(0.0, 0.0, 0.8), mass=3.0, inertia=(0.1, 0.01, 0.1))
    q = np.append(q, 0.0)
    for side in ("left", "right"):
        connect_here(m, q, "bar", f"{side}_hand", bk.Revolute((0, 1, 0)), f"{side}_grip")
    return m, q


def hand_in_hand(count=3):
    """Figures in a ring, each holding its neighbours' hands."""
    ring = bk.Mechanism()
    one = bk.models.human(34)
    for k in range(count):
        for link in one.links:
            above = "ground" if link.parent < 0 else f"{one.links[link.parent].name}{k}"
            ring.add_link(f"{link.name}{k}", above, link.joint, f"{link.joint_name}{k}", mass=link.mass, com=link.com,
                          position=link.position + (link.parent < 0) * np.array([0.0, 1.0 * k, 0.0]),
                          rotation=link.rotation, inertia=link.inertia)
    q = ring.neutral()
    for k in range(count):
        connect_here(ring, q, f"left_hand{k}", f"right_hand{(k + 1) % count}", bk.Spherical(), f"hands{k}")
    return ring, q


def bow():
    m = bk.models.chain_held(40)
    return m, m.neutral()


def windows():
    m = bk.models.n_four_bar(6)
    return m, m.integrate(m.neutral(), np.array([0.4] * 7 + [-0.4] * 6))


def bricard():
    m = bk.models.bricard()
    return m, bk.project(m, m.integrate(m.neutral(), 0.1 * np.ones(m.nv)), np.zeros(m.nv))[0]


MECHANISMS = {"figure on a bar": on_a_bar, "figures hand in hand": hand_in_hand, "chain held at both ends": bow,
              "four-bar linkages in a row": windows, "Bricard": bricard}


@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanisms(name):
    m, q = MECHANISMS[name]()
    for seed in range(4):
        rng = np.random.default_rng(seed)
        chain = bk.closed_chain(m, q)
        v = chain.W @ rng.normal(size=len(chain.G))
        tau = rng.normal(size=m.nv)
        schedule = random_cuts(m, rng, (0.1, 0.3, 0.6, 1.0)[seed])
        close(bk.forward_dynamics(m, q, v, tau, schedule=schedule), bk.forward_dynamics(m, q, v, tau))
        compare(m, schedule, rng, q, v, tau)


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_workers_asked_for(workers):
    m, q = hand_in_hand(4)
    tau = np.ones(m.nv)
    expected = bk.forward_dynamics(m, q, np.zeros(m.nv), tau)
    for schedule in (None, bk.schedule(m, workers, exactly=True)):
        close(bk.forward_dynamics(m, q, np.zeros(m.nv), tau, workers=workers, schedule=schedule), expected)


def test_messages_do_not_grow_with_the_mechanism():
    sizes = []
    for n in (20, 80):
        m = bk.models.chain_held(n)
        assembly = bk.Schedule(m, cuts=[m.joint_names[n // 3], m.joint_names[2 * n // 3]]).assembly(m.plan())
        edges = ClosedDivision(m.plan(), assembly).edges
        sizes.append(sorted(edge.floats for edge in edges))
    assert sizes[0] == sizes[1]
    assert max(sizes[0]) == f.PARCEL_SLOT + f.PARCEL_JUDGED + f.row_start(3)


@pytest.mark.parametrize("name", MECHANISMS)
def test_messages_are_as_long_as_predicted(name):
    m, _ = MECHANISMS[name]()
    for schedule in (bk.schedule(m, 2, exactly=True), random_cuts(m, np.random.default_rng(1), 0.3)):
        edges = ClosedDivision(m.plan(), schedule.assembly(m.plan())).edges
        sent = tuple(max((edge.floats for edge in edges if edge.number == number), default=0) for number in range(1, 5))
        assert all(a <= b for a, b in zip(sent, schedule.floats_per_edge, strict=True))


def test_states_without_a_solution_are_refused_as_by_one_worker():
    m, q = bow()
    schedule = bk.Schedule(m, cuts=[m.joint_names[20]])
    apart = m.integrate(q, 0.1 * np.ones(m.nv))
    for x, v in ((apart, np.zeros(m.nv)), (q, np.full(m.nv, np.nan))):
        with pytest.raises(bk.ConstraintError if np.isfinite(v).all() else Exception) as one:
            bk.forward_dynamics(m, x, v)
        with pytest.raises(type(one.value)) as several:
            bk.forward_dynamics(m, x, v, schedule=schedule)
        assert str(several.value) == str(one.value)


def test_an_error_in_one_worker_ends_the_others():
    m, q = hand_in_hand()
    plan = m.plan()
    team = Team(ClosedDivision(plan, bk.schedule(m, 3, exactly=True).assembly(plan)))
    part_of_state.load()

    def work(k):
        if k == 1:
            raise RuntimeError("lost")
        part, a = team.parts[k], np.empty(m.nv)
        return part_of_state.call(part_closed.address, DYNAMICS, team.arrays[k], part.q_index, part.v_index,
                                  part.drive_index, part.link_index, q, np.zeros(m.nv), np.zeros(m.nv), plan.nothing,
                                  plan.nothing, a)

    with pytest.raises(RuntimeError, match="lost"):
        team.run(work)
    rest = np.zeros(m.nv)
    assert by_team(team, plan, DYNAMICS, q, rest, rest)[0] == FINE  # the team is as good as new
