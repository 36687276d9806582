"""Contact forces of motions: those of Newton's law, of the solver's own steps, or refused."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.simulation.records.trajectory import Segment
from bunraku.simulation.watching import with_torques
from sliding import FRICTION, GRAVITY, MASS, crate, driven, dropped

WEIGHT = MASS * GRAVITY
STEPS = {"solver": "symplectic_euler", "step": 0.002}


@pytest.mark.parametrize("settings", [{}, STEPS], ids=["events", "steps"])
def test_a_crate_that_slides_is_carried_and_braked(settings):
    m = crate()
    trajectory = bk.Simulation(m, *dropped(m), **settings).run(0.5)
    for when in (0.1, 0.3):
        contacts = trajectory.contacts(when)
        assert set(contacts.mode) == {"sliding"}
        np.testing.assert_allclose(contacts.force.sum(axis=0), [-FRICTION * WEIGHT, 0, WEIGHT], atol=1e-6 * WEIGHT)
    t, force = trajectory.contact_forces("crate")
    np.testing.assert_array_equal(t, trajectory.t)
    np.testing.assert_allclose(force[:, 2], WEIGHT, rtol=1e-6)
    np.testing.assert_array_equal(trajectory.contact_forces(("crate", "floor"))[1], force)
    np.testing.assert_array_equal(trajectory.contact_forces(("ground", "crate"))[1], -force)


@pytest.mark.parametrize("settings", [{}, STEPS], ids=["events", "steps"])
def test_nothing_presses_before_the_impact_and_the_weight_after_it(settings):
    m = crate()
    trajectory = bk.Simulation(m, *dropped(m, height=0.3), **settings).run(0.5)
    lands = np.sqrt(2 * 0.2 / GRAVITY)
    flying, resting = trajectory.contacts([0.5 * lands, 1.1 * lands])
    assert len(flying) == 0
    assert resting.force[:, 2].sum() == pytest.approx(WEIGHT, rel=1e-6)
    t, force = trajectory.contact_forces("crate")
    momentum = MASS * GRAVITY * t[-1]  # gravity's impulse is that of the floor
    if settings:
        assert 0.002 * force[:-1, 2].sum() == pytest.approx(momentum, rel=1e-9)
    else:
        struck = sum(float(event.text.split(": ")[1][:-4]) for event in trajectory.events if "impact" in event.text)
        assert struck >= MASS * GRAVITY * lands


def test_steps_made_again_have_the_forces_that_the_simulation_had():
    m = bk.models.human(dof=16)
    m.add_plane(friction=0.8, name="floor")
    q = m.neutral()
    q[2] += 1e-9 - bk.contacts(m, q, margin=2.0)[0].gap
    v = np.zeros(m.nv)
    v[0] = 0.5
    sim = bk.Simulation(m, q, v, **STEPS)
    had = []
    for _ in range(60):
        sim.advance(sim.t + 0.002)
        had.append(-sim.contacts.force.sum(axis=0))
    t, force = sim.trajectory.contact_forces("floor")
    apart = np.abs(force[:60] - had).max(axis=1)
    assert np.quantile(apart, 0.95) < 1e-6 * m.mass * GRAVITY  # the law of friction may have two solutions


def test_before_the_first_step_forces_are_those_of_that_step():
    m = crate()
    sim = bk.Simulation(m, *dropped(m, speed=0.0), **STEPS)
    assert sim.contacts.force[:, 2].sum() == pytest.approx(WEIGHT)
    assert set(sim.contacts.mode) == {"sticking"}
    sim.run(0.01)
    assert sim.contacts.force[:, 2].sum() == pytest.approx(WEIGHT)


def test_an_impact_in_fixed_steps_is_a_large_force():
    m = crate()
    sim = bk.Simulation(m, *dropped(m, height=0.3, speed=0.0), **STEPS)
    largest = 0.0
    while sim.t < 0.3:
        sim.advance(sim.t + 0.002)
        largest = max(largest, sim.contacts.force[:, 2].sum())
    assert largest > 0.5 * MASS * np.sqrt(2 * GRAVITY * 0.2) / 0.002


@pytest.mark.parametrize("solver", ["gear", "symplectic_euler"])
def test_forces_without_the_torques_that_moved_it_are_refused(solver):
    sim, trajectory = driven(solver)
    with pytest.raises(bk.ShapeError, match="torques of the actuators"):
        trajectory.contacts(0.5)
    force = with_torques(sim).contacts(0.5).force.sum(axis=0)
    np.testing.assert_allclose(force, [-FRICTION * WEIGHT, 0, WEIGHT], rtol=1e-6, atol=1e-9)


def test_forces_of_something_that_was_pushed_are_refused():
    m = crate()
    sim = bk.Simulation(m, *dropped(m), external={"crate": (1.0, 0, 0, 0, 0, 0)})
    trajectory = sim.run(0.2)
    with pytest.raises(bk.ShapeError, match="what else acted"):
        trajectory.contact_forces("crate")
    assert sim.contacts.force[:, 2].sum() == pytest.approx(WEIGHT)  # while it runs they are known


def test_joint_forces_take_contact_forces_that_are_known():
    sim, _ = driven()
    trajectory = with_torques(sim)
    segment, k = trajectory.segments[0], 100
    known = bk.dynamics(segment.mechanism, segment.q[k], segment.v[k], segment.tau[k],
                        contacts=trajectory.contacts(segment.t[k]))
    assert known.a[0] == pytest.approx((segment.tau[k, 0] - FRICTION * WEIGHT) / (MASS + 0.1))
    assert known.a[1] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(("of", "words"), [("crat", "did you mean 'crate'"), (3, "a link or a shape"),
                                           (("crate", "wall"), "no link or shape 'wall'")])
def test_wrong_names_are_said(of, words):
    m = crate()
    with pytest.raises(bk.NamingError, match=words):
        bk.Simulation(m, *dropped(m)).run(0.01).contact_forces(of)


def test_without_shapes_there_is_nothing_to_touch():
    sim = bk.Simulation(bk.models.chain(2))
    with pytest.raises(bk.ModelError, match="no shapes"):
        sim.run(0.1).contacts(0.0)
    with pytest.raises(bk.ModelError, match="no shapes"):
        _ = sim.contacts
    assert len(bk.Simulation(bk.models.human(dof=16)).contacts) == 0  # shapes, but no floor


@pytest.mark.parametrize("settings", [{}, STEPS], ids=["events", "steps"])
def test_a_crate_that_tumbles_is_passive(settings):
    m = crate(restitution=0.3)
    q, v = dropped(m, height=0.4)
    v[3:] = 8.0, 5.0, -3.0
    trajectory = bk.Simulation(m, q, v, **settings).run(0.4)
    flying, later = trajectory.contacts([0.05, 0.4])  # forces follow from the states, in whatever axes these turn
    assert len(flying) == 0
    assert later.residual < 1e-9


@pytest.mark.parametrize("settings", [{}, STEPS], ids=["events", "steps"])
def test_motions_recorded_at_few_instants_are_simulated_in_between(settings):
    m = crate()
    q, v = dropped(m, height=0.3)
    few = bk.rollout(m, q, v, times=[0.0, 0.1, 0.35, 0.5], **settings).trajectory()
    assert few.contacts(0.35).force.sum(axis=0) == pytest.approx([-FRICTION * WEIGHT, 0, WEIGHT], rel=1e-6, abs=1e-9)
    pushed = bk.Simulation(m, q, v, external={"crate": (5.0, 0, 0, 0, 0, 0)}, **settings).run(0.5)
    states = pushed.sample(few.t)
    without_events = bk.Trajectory([Segment(m, few.t, *(np.array([state[k] for state in states]) for k in (1, 2)))])
    with pytest.raises(bk.ShapeError, match="torques of the actuators"):
        without_events.contacts(0.35)


def test_forces_of_redundant_contacts_are_the_same_wherever_they_are_asked_for():
    m = bk.Mechanism()
    m.add_plane(friction=0.5)
    for k in range(2):
        m.add_link(f"box{k}", joint=bk.Free(), mass=1.0 + k, inertia=(0.01,) * 3)
        m.add_shape(f"box{k}", bk.Box(0.2, 0.2, 0.1), friction=0.5)
    q = m.neutral()
    q[2], q[7:14] = 0.05, (0.03, 0.02, 0.15, np.cos(0.2), 0.0, 0.0, np.sin(0.2))
    sim = bk.Simulation(m, q)
    trajectory = sim.run(0.05)
    smallest = bk.dynamics(m, sim.q, sim.v).contacts.force
    for force in (sim.contacts.force, trajectory.contacts(0.05).force):
        np.testing.assert_allclose(force, smallest, atol=1e-8)
