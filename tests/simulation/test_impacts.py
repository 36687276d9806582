"""Impacts at several contacts at once, bounds on work and memory, and invariants of random drops."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import bunraku as bk
from bunraku.check import attack_drops as drops
from bunraku.contact.further_attempts import ATTEMPTS, ITERATIONS, MANY_SWEEPS, PLENTY, factorisations_allowed
from bunraku.evaluate.contact_problem import solve_problem

EVENTS = {"solver": "gear"}
STEPS = {"solver": "symplectic_euler", "step": 1e-3}


def balls_in_a_row(count, moving, restitution=1.0, gap=0.0):
    """Equal balls along x, touching or `gap` apart; the first ones come in at 1 m/s from 0.1 m away. No gravity."""
    m = bk.Mechanism(gravity=(0, 0, 0))
    for i in range(count):
        m.add_link(f"ball{i}", joint=bk.Free(), mass=1.0, inertia=(1e-3,) * 3)
        m.add_shape(f"ball{i}", bk.Sphere(0.05), friction=0.0, restitution=restitution)
    q, v = m.neutral(), np.zeros(m.nv)
    for i in range(count):
        q[7 * i] = (0.1 + gap) * i - (0.1 if i < moving else 0.0)
    v[:6 * moving:6] = 1.0
    return m, q, v


@pytest.mark.parametrize("settings", [EVENTS, STEPS], ids=["events", "steps"])
@pytest.mark.parametrize("moving", [1, 2, 3])
def test_newtons_cradle_with_balls_that_touch(settings, moving):
    m, q, v = balls_in_a_row(5, moving)
    sim = bk.Simulation(m, q, v, impacts="sequential", **settings)
    sim.run(0.3)
    leaves = np.repeat([0.0, 1.0], [5 - moving, moving])
    assert sim.v[::6] == pytest.approx(leaves, abs=1e-8)


@pytest.mark.parametrize("settings", [EVENTS, STEPS], ids=["events", "steps"])
def test_rollouts_take_the_same_law(settings):
    m, q, v = balls_in_a_row(3, 1)
    both = bk.rollout(m, np.tile(q, (2, 1)), v, until=0.3, impacts="sequential", **settings)
    for row in both.v[:, -1, ::6]:
        assert row == pytest.approx([0.0, 0.0, 1.0], abs=1e-8)
    with pytest.raises(bk.ModelError, match="'simultaneous', 'sequential'"):
        bk.rollout(m, q, v, until=0.3, impacts="first", **settings)


@pytest.mark.parametrize("settings", [EVENTS, STEPS], ids=["events", "steps"])
def test_the_simultaneous_law_is_newtons_at_every_contact(settings):
    """The contact that approaches rebounds, the others stay closed: momentum and the relative velocity say how."""
    m, q, v = balls_in_a_row(5, 1)
    sim = bk.Simulation(m, q, v, **settings)
    sim.run(0.3)
    assert sim.v[::6] == pytest.approx([-0.6, 0.4, 0.4, 0.4, 0.4], abs=1e-8)


@pytest.mark.parametrize("settings", [EVENTS, STEPS], ids=["events", "steps"])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 0.9])
def test_sequential_rebounds_end_and_lose_energy(settings, restitution):
    m, q, v = balls_in_a_row(4, 1, restitution)
    sim = bk.Simulation(m, q, v, impacts="sequential", **settings)
    sim.run(0.3)
    after = sim.v[::6]
    assert after.sum() == pytest.approx(1.0, abs=1e-8)
    gap = np.diff(sim.q[::7]) - 0.1
    assert (np.diff(after)[gap < 1e-6] > -1e-8).all()              # none that touches approaches
    assert (after @ after) < 1.0
    if restitution == 0.0:
        assert after == pytest.approx([0.25] * 4, abs=1e-8)


def random_row(seed):
    """3 to 11 balls of random masses in a row, nearly touching: in flight, on a floor, or as pendulums."""
    rng = np.random.default_rng(seed)
    count, e = int(rng.integers(3, 12)), float(rng.choice([0.0, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0]))
    friction, kind = float(rng.choice([0.0, 0.3, 0.8])), int(rng.integers(0, 3))
    m = bk.Mechanism(gravity=(0, 0, 0 if kind == 0 else -9.81))
    for i in range(count):
        mass = float(np.exp((0.5 if kind == 2 else 0.7) * rng.normal()))
        if kind == 2:
            m.add_link(f"b{i}", joint=bk.Revolute((0, 1, 0)), position=(0.1 * i, 0, 1), mass=mass, com=(0, 0, -0.5),
                       inertia=(1e-3,) * 3)
        else:
            m.add_link(f"b{i}", joint=bk.Free(), mass=mass, inertia=(1e-3 * mass,) * 3)
        m.add_shape(f"b{i}", bk.Sphere(0.05), position=(0, 0, -0.5 if kind == 2 else 0), friction=friction,
                    restitution=e)
    q, v, x = m.neutral(), np.zeros(m.nv), 0.0
    if kind == 2:
        rng.normal(size=count)
        q[0], q[-1] = 0.4 * rng.random(), -0.4 * rng.random() if rng.random() < 0.5 else 0.0
        return m, q, v
    if kind == 1:
        m.add_plane(friction=friction, restitution=e)
    for i in range(count):
        beside, above = rng.random() < 0.3, 0.05
        q[7 * i:7 * i + 2] = x, 1e-3 * rng.normal() if beside else 0.0
        q[7 * i + 2] = above + (0.0 if rng.random() < 0.7 else 0.05 * rng.random())
        x += 0.1002 + (0.0 if rng.random() < 0.4 else 0.02 * rng.random())
        v[6 * i] = rng.normal()
    v[0], v[6 * count - 6] = 2.0, -2.0
    return m, q, v


@pytest.mark.parametrize(("seed", "law", "until"), [
    (8, "simultaneous", 0.46), (20, "sequential", 0.08), (39, "sequential", 0.28), (44, "simultaneous", 0.05),
    (54, "simultaneous", 0.16)])
def test_random_rows_come_to_an_end_and_every_recorded_state_is_a_start(seed, law, until):
    """Many flights far shorter than a step, contacts without any load, balls that graze each other."""
    m, q, v = random_row(seed)
    sim = bk.Simulation(m, q, v, impacts=law)
    trajectory = sim.run(until)
    assert sim.t == until
    for segment in trajectory.segments[::max(1, len(trajectory.segments) // 20)]:
        for k in (0, -1):
            bk.Simulation(m, segment.q[k], segment.v[k], impacts=law)
    nearest = [bk.contacts(m, state)[:1] for state in trajectory.q[::3]]
    assert min(contact.gap for contacts in nearest for contact in contacts) > -5e-7


def test_a_cradle_of_pendulums_goes_on_without_end():
    m = bk.Mechanism()
    for i in range(3):
        m.add_link(f"ball{i}", joint=bk.Revolute((0, 1, 0)), position=(0.1 * i, 0, 1), mass=1.0, com=(0, 0, -0.5),
                   inertia=(1e-3,) * 3)
        m.add_shape(f"ball{i}", bk.Sphere(0.05), position=(0, 0, -0.5), friction=0.0, restitution=1.0)
    start = [0.3, 0.0, 0.0]
    trajectory = bk.Simulation(m, start, impacts="sequential").run(2.0)
    energy = np.sum(trajectory.energy()[1:], axis=0)
    assert np.ptp(energy) < 1e-4 * (energy[0] + 3 * 9.81 * 0.5)
    assert np.abs(trajectory.q[:, 1]).max() < 0.02                 # the middle one hardly moves
    assert trajectory.q[:, 2].min() == pytest.approx(-0.3, abs=0.01)


def test_the_law_of_impacts_is_checked_and_kept(tmp_path):
    m, q, v = balls_in_a_row(5, 1)
    with pytest.raises(bk.ModelError, match="impacts must be one of 'simultaneous', 'sequential'"):
        bk.Simulation(m, q, v, impacts="plastic")
    sim = bk.Simulation(m, q, v, impacts="sequential", **STEPS)
    sim.run(0.02)
    again = bk.Simulation.load(sim.save(tmp_path / "cradle.npz"))
    again.run(0.3)
    assert again.v[::6] == pytest.approx([0, 0, 0, 0, 1], abs=1e-8)


@pytest.mark.parametrize("solver", sorted(set(drops.SOLVERS)))
def test_a_dropped_body_has_no_depth_gains_no_energy_and_can_start_anywhere(solver):
    for seed in range(4):
        found = drops.look_at(*drops.dropped(seed), {"solver": solver})
        assert found["depth by events [m]"] <= drops.DEPTH
        assert found["energy gained by events / allowed"] <= 1.0


def test_recorded_states_of_fixed_steps_are_starts():
    for seed in range(8):
        drops.look_at(*drops.dropped(seed), {"solver": "symplectic_euler", "step": 2e-3})  # starts from them


def heap(count, radius=0.05):
    """Balls above a floor in a corner."""
    m = bk.Mechanism()
    for i in range(count):
        m.add_link(f"ball{i}", joint=bk.Free(), mass=0.5, inertia=(5e-4,) * 3)
        m.add_shape(f"ball{i}", bk.Sphere(radius))
    m.add_plane()
    q = m.neutral()
    for i in range(count):
        q[7 * i:7 * i + 3] = 0.105 * (i % 10), 0.105 * (i // 10), radius
    return m, q


@pytest.mark.parametrize("settings", [EVENTS, STEPS], ids=["events", "steps"])
def test_room_for_contacts_is_made_when_it_is_needed(settings):
    m, q = heap(80)
    sim = bk.Simulation(m, q, max_contacts=100_000, **settings)
    assert sum(array.nbytes for array in sim._running.contact.touching.touch) < 20e6
    sim.run(0.004)
    assert len(sim.contacts) == 80
    with pytest.raises(bk.SimulationError, match=r"more than 64 contacts at once.*max_contacts=128"):
        bk.Simulation(m, q, contact_step=None, max_contacts=64, **settings).run(0.004)


def test_fixed_steps_have_room_for_any_number_of_contacts():
    m, q = heap(80)
    sim = bk.Simulation(m, q, **STEPS)
    sim.run(0.004)
    assert len(sim.contacts) == 80


@pytest.mark.parametrize("settings", [EVENTS, STEPS], ids=["events", "steps"])
def test_a_copy_with_contact_continues_bit_for_bit(settings, tmp_path):
    """More contacts than there is room for at first; saved, copied and pickled in the middle of a run."""
    count = 80 if settings is STEPS else 6
    m, q = heap(count)
    q[2::7] += np.random.default_rng(0).uniform(0.0, 2e-3, count)
    sim = bk.Simulation(m, q, **settings)
    sim.run(0.05)
    sim.save(tmp_path / "middle.npz")
    others = [bk.Simulation.load(tmp_path / "middle.npz"), copy.deepcopy(sim), pickle.loads(pickle.dumps(sim))]
    sim.run(0.1)
    for other in others:
        other.run(0.1)
        assert np.array_equal(other.q, sim.q)
        assert np.array_equal(other.v, sim.v)


def test_room_for_contacts_in_lanes_is_made_when_it_is_needed():
    m, q = heap(130)
    rest = bk.rollout(m, np.tile(q, (2, 1)), until=0.002, max_contacts=100_000, **STEPS)
    assert np.abs(rest.q[:, 0] - q).max() < 1e-9
    with pytest.raises(bk.SimulationError, match="more than 128 contacts"):
        bk.rollout(m, np.tile(q, (2, 1)), until=0.002, **STEPS)


def test_work_on_a_contact_problem_is_bounded():
    """Small problems have all attempts, large ones few; the best forces and their residual come back in any case."""
    count = 60
    assert factorisations_allowed(8) > ATTEMPTS * ITERATIONS
    assert factorisations_allowed(count) < PLENTY
    rng = np.random.default_rng(0)
    rows, scale = rng.normal(size=(3 * count, count)), np.exp(rng.uniform(-12.0, 12.0, 3 * count))
    theta = (rows @ rows.T) * np.outer(scale, scale)
    answer = solve_problem(theta, rng.normal(size=3 * count) * scale, np.full(count, 2.0))
    sweeps = MANY_SWEEPS * -(-ATTEMPTS // 4)
    assert answer.iterations <= 1 + ITERATIONS + factorisations_allowed(count) + sweeps
    assert np.isfinite(answer.force).all()
    assert (answer.residual <= 1e-10) == (answer.status == "solved")


@pytest.mark.parametrize("step", [4e-3, 1e-3])
def test_a_ball_in_fixed_steps_gains_as_little_as_by_the_simultaneous_law(step):
    """A single contact: both laws are one."""
    m = bk.Mechanism()
    m.add_link("ball", joint=bk.Free(), mass=1.0, inertia=(0.004,) * 3)
    m.add_shape("ball", bk.Sphere(0.1), restitution=1.0)
    m.add_plane(restitution=1.0)
    q = m.neutral()
    q[2] = 1.0
    heights = [bk.Simulation(m, q, solver="symplectic_euler", step=step, impacts=law).run(3.0).q[:, 2]
               for law in ("simultaneous", "sequential")]
    np.testing.assert_allclose(heights[1], heights[0], atol=1e-9)


@pytest.mark.parametrize("copies", [1, 3])
def test_a_rod_that_clatters_on_its_ends_does_not_sink(copies):
    """The ends of a nearly level rod strike in turn. What lifts one out of the floor must not push the other one in,
    whose gap closes in the same step."""
    m, q, v = drops.dropped(71267)
    run = bk.rollout(m, np.tile(q, (copies, 1)), v, times=1e-3 * np.arange(1, 361), **STEPS)
    depth = np.array([-min(contact.gap for contact in bk.contacts(m, state, margin=2.0)) for state in run.q[-1]])
    speed = np.linalg.norm(run.v[-1, :-1, 3:], axis=1) * 0.22  # of the ends
    assert (depth[1:] <= 1e-3 * (speed + 0.1)).all()
    assert depth[320:].max() < 1e-4
