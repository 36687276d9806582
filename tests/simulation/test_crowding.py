"""Time steps in place of contact events: runs on defaults get on, energy, starts from recorded states, and back."""

from __future__ import annotations

import numpy as np
import pytest

import bunraku as bk
from bunraku.evaluate import kinematics
from bunraku.simulation import contact_events
from bunraku.simulation.crowding import WORDS, Crowding
from bunraku.simulation.simulation import running
from bunraku.tolerances import CROWD, CROWD_TIME, LOOK_STEPS, SHORTEST_STAY, STEADY, STUCK


def on_hills():
    """Three capsules above a height field, moving across it."""
    m = bk.Mechanism(name="hills")
    x = np.linspace(-2, 2, 21)
    m.add_shape("ground", bk.Heightfield(0.05 * np.sin(3 * x)[:, None] * np.cos(3 * x), (4.0, 4.0)))
    for k in range(3):
        m.add_link(f"body{k}", joint=bk.Free(), mass=1.0, inertia=(0.004,) * 3)
        m.add_shape(f"body{k}", bk.Capsule(0.05, 0.2))
    q, v = m.neutral(), np.zeros(m.nv)
    for k in range(3):
        q[7 * k:7 * k + 3], v[6 * k] = (-0.6 + 0.6 * k, 0.1, 0.4), 0.5
    return m, q, v


def figure():
    m = bk.models.human(dof=34)
    m.add_plane(friction=0.8)
    q, v = m.neutral(), np.zeros(m.nv)
    q[2], v[3:5] = q[2] + 0.3, (1.0, 0.5)
    return m, q, v


def balls(count, restitution, spread=0.0):
    """Balls that fall side by side, none touching another."""
    m, rng = bk.Mechanism(name="balls"), np.random.default_rng(3)
    for k in range(count):
        m.add_link(f"ball{k}", joint=bk.Free(), mass=1.0, inertia=(0.004,) * 3)
        m.add_shape(f"ball{k}", bk.Sphere(0.1), restitution=restitution)
    m.add_plane()
    q = m.neutral()
    for k in range(count):
        q[7 * k:7 * k + 3] = 0.3 * (k % 10), 0.3 * (k // 10), 0.1 + spread * rng.uniform()
    return m, q, np.zeros(m.nv)


def forced(sim: bk.Simulation) -> None:
    """Steps from the first event on, for good."""
    crowding = running(sim).contact.crowding
    crowding.event, crowding.stay = lambda t: "crowded", np.inf
    crowding.begin = lambda t: setattr(crowding, "stepping", True)


@pytest.mark.parametrize(("scene", "until"), [(on_hills, 2.0), (figure, 0.7)])
def test_runs_on_defaults_get_on_and_say_how(scene, until):
    m, q, v = scene()
    sim = bk.Simulation(m, q, v)
    trajectory = sim.run(until)
    stats = sim.stats
    assert sim.t == until
    assert stats.contact_switches > 0
    assert 0.0 < stats.contact_stepped < until
    assert sum(value for name, value in vars(stats).items() if name.startswith("switches_")) == stats.contact_switches
    told = [event for event in trajectory.events if event.text.startswith("contact by time steps")]
    assert len(told) == stats.contact_switches
    energy = np.sum(trajectory.energy()[1:], axis=0)
    assert np.diff(energy).max() < 1e-4 * np.ptp(energy)
    for k in range(0, len(trajectory.t), 1 + len(trajectory.t) // 60):
        bk.Simulation(m, trajectory.q[k], trajectory.v[k])
    with pytest.raises((bk.SimulationError, bk.SimulationWarning), match=r"without end|stiff"):
        bk.Simulation(m, q, v, contact_step=None).run(until)


def test_free_flight_in_such_steps_gains_no_energy_and_keeps_its_spin():
    """Angular momentum about the centre of mass and kinetic energy, where nothing but a joint acts."""
    m = bk.Mechanism(gravity=(0, 0, 0))
    m.add_link("body", joint=bk.Free(), mass=1.0, com=(0.02, 0.01, 0.03), inertia=(0.01, 0.02, 0.03))
    m.add_link("arm", "body", bk.Revolute((0, 1, 0)), position=(0.1, 0, 0), mass=0.5, com=(0, 0, 0.2),
               inertia=(1e-3,) * 3)
    m.add_shape("body", bk.Sphere(0.1))
    m.add_plane()
    q, v = m.neutral(), np.array([1.0, 2.0, 3.0, 6.0, 7.0, 8.0, 5.0])
    q[2] = 5.0
    found = []
    for step in (2e-3, 1e-3):
        sim = bk.Simulation(m, q, v, contact_step=step)
        forced(sim)
        sim.run(0.2)
        assert sim.stats.contact_stepped == pytest.approx(0.2)
        now, before = kinematics(m, sim.q, sim.v).momentum, kinematics(m, q, v).momentum
        assert np.linalg.norm(now - before) < 2e-2 * np.linalg.norm(before)
        found.append(abs(m.energy(sim.q, sim.v)[0] - m.energy(q, v)[0]))
    assert found[1] < 0.6 * found[0] < 0.6e-2 * m.energy(q, v)[0]


def test_steps_end_when_contacts_are_steady_and_rest_is_exact():
    m, q, v = balls(30, 0.7, spread=0.1)
    sim = bk.Simulation(m, q, v)
    trajectory = sim.run(2.5)
    texts = [event.text for event in trajectory.events]
    assert sim.stats.switches_crowded > 0
    assert "contact by events" in texts
    assert sim.stats.contact_stepped < 1.5
    assert np.abs(sim.q[2::7] - 0.1).max() < 1e-6
    assert np.abs(sim.v).max() < 1e-12
    energy = np.sum(trajectory.energy()[1:], axis=0)
    assert np.diff(energy).max() < 1e-4


def test_more_contacts_than_events_have_room_for():
    m, q, v = balls(80, 0.0)
    sim = bk.Simulation(m, q, v)
    sim.run(0.1)
    assert sim.stats.switches_full >= 1
    assert np.abs(sim.q - q).max() < 1e-9
    assert len(sim.contacts) == 80
    with pytest.raises(bk.SimulationError, match=r"more than 64 contacts at once.*max_contacts=128"):
        bk.Simulation(m, q, v, contact_step=None).run(0.1)


@pytest.mark.parametrize("pieces", [1, 7])
def test_a_checkpoint_between_steps_goes_on_as_before(pieces, tmp_path):
    m, q, v = on_hills()
    once, again = bk.Simulation(m, q, v), bk.Simulation(m, q, v)
    for sim in (once, again):
        forced(sim)
        sim.run(0.5)
    again = bk.Simulation.load(again.save(tmp_path / "steps.npz"))
    assert running(again).contact.crowding.to_header() == running(once).contact.crowding.to_header()
    forced(again)
    for t in np.round(np.linspace(0.5, 0.7, pieces + 1)[1:], 3):
        again.run(float(t))
    once.run(0.7)
    if pieces == 1:
        assert np.array_equal(once.q, again.q)
        assert np.array_equal(once.v, again.v)
    assert np.abs(once.q - again.q).max() < 1e-3


def test_the_rule():
    rule = Crowding(1e-3)
    apart = 0.9 * CROWD_TIME / CROWD
    assert [rule.event(k * apart) for k in range(CROWD)] == [None] * (CROWD - 1) + ["crowded"]
    slow = Crowding(1e-3)
    assert [slow.event(2.0 * k * apart) for k in range(3 * CROWD)] == [None] * (3 * CROWD)
    stuck = Crowding(1e-3)
    assert [stuck.event(0.1) for _ in range(STUCK + 1)] == [None] * STUCK + ["stuck"]
    never = Crowding(None)
    assert {never.event(0.1) for _ in range(3 * CROWD)} == {None}
    assert set(WORDS) >= {"crowded", "stuck"}


def test_steps_stay_twice_as_long_if_they_are_needed_again():
    rule, closed, t = Crowding(1e-3), np.arange(3), 0.0
    stays = []
    for _ in range(4):
        rule.begin(t)
        while not rule.look(t, closed, True):
            t += LOOK_STEPS * 1e-3
        stays.append(t - rule.since)
        rule.end(t)
        t += 0.01
    assert stays[0] >= max(SHORTEST_STAY, STEADY * LOOK_STEPS * 1e-3)
    assert rule.stay == 8.0 * SHORTEST_STAY
    rule.begin(t + 100.0)
    assert rule.stay == SHORTEST_STAY
    assert not any(rule.look(t + 101.0, closed, False) for _ in range(9))                # the state does not fit
    rule.begin(t)
    assert not any(rule.look(t + 1.0 + k, np.array([k]), True) for k in range(9))        # contacts change


def test_contact_step_is_checked():
    m, q, v = balls(1, 0.5)
    with pytest.raises(bk.ShapeError, match="contact_step"):
        bk.Simulation(m, q, v, contact_step=-1.0)


def test_no_python_between_events(monkeypatch):
    """The signal is called from Python at the start of a stretch only, once or twice for each event."""
    calls = []
    own = contact_events.contact_signal.load().call
    monkeypatch.setattr(contact_events.contact_signal, "call", lambda *given: calls.append(1) or own(*given))
    m, q, v = balls(1, 0.8, spread=1.0)
    sim = bk.Simulation(m, q, v)
    trajectory = sim.run(1.0)
    assert len(trajectory.events) >= 2
    assert len(calls) <= 2 * len(trajectory.events) + 2 < sim.stats.steps
