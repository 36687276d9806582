"""Contact with friction: closed forms, conservation laws, and independent solutions of the contact problem."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
from scipy.optimize import linprog

import bunraku as bk

G = 9.81
STEPPING = {"solver": "symplectic_euler", "step": 2e-3}
TIGHT = {"solver": "tsit5", "rtol": 1e-11, "atol": 1e-13}


def box(friction=0.5, tilt=0.0, edge=0.1, restitution=0.0):
    """A cube on a plane that is tilted about y, and its place on it."""
    m = bk.Mechanism()
    m.add_link("box", joint=bk.Free(), mass=1.0, inertia=(edge**2 / 6,) * 3)
    m.add_shape("box", bk.Box(edge, edge, edge), friction=friction, restitution=restitution)
    m.add_plane(normal=(-np.sin(tilt), 0, np.cos(tilt)), friction=friction)
    q = m.neutral()
    q[:3] = 0.5 * edge * np.array([-np.sin(tilt), 0, np.cos(tilt)])
    q[3:7] = np.cos(tilt / 2), 0, -np.sin(tilt / 2), 0
    return m, q


def ball(radius=0.1, restitution=0.0, friction=0.5):
    m = bk.Mechanism()
    m.add_link("ball", joint=bk.Free(), mass=1.0, inertia=(0.4 * radius**2,) * 3)
    m.add_shape("ball", bk.Sphere(radius), friction=friction, restitution=restitution)
    m.add_plane(friction=friction)
    q = m.neutral()
    q[2] = radius
    return m, q


@pytest.mark.parametrize("settings", [{}, STEPPING], ids=["events", "steps"])
def test_a_box_below_the_friction_angle_does_not_move_at_all(settings):
    m, q = box(tilt=0.9 * np.arctan(0.5))
    sim = bk.Simulation(m, q, **settings)
    sim.run(60.0)
    assert np.abs(sim.q - q).max() < 1e-12


@pytest.mark.parametrize(("settings", "allowed"), [({}, 1e-9), (STEPPING, 1e-6)], ids=["events", "steps"])
def test_a_box_above_the_friction_angle_slides_with_the_friction_of_coulomb(settings, allowed):
    tilt = 1.3 * np.arctan(0.5)
    m, q = box(tilt=tilt)
    sim = bk.Simulation(m, q, **settings)
    sim.run(1.0)
    assert np.linalg.norm(sim.v[:3]) == pytest.approx(G * (np.sin(tilt) - 0.5 * np.cos(tilt)), rel=allowed)


@pytest.mark.parametrize(("settings", "allowed"), [({}, 1e-8), (STEPPING, 0.005 * 3.67)], ids=["events", "steps"])
def test_a_cube_slides_flat_and_stops_where_its_energy_is_used_up(settings, allowed):
    m, q = box()
    sim = bk.Simulation(m, q, [6.0, 0, 0, 0, 0, 0], **settings)
    trajectory = sim.run(2.0)
    assert abs(sim.q[0] - 36 / (2 * 0.5 * G)) < allowed
    assert np.abs(trajectory.q[:, 2] - 0.05).max() < 1e-9


def test_a_sliding_ball_ends_rolling():
    m, q = ball()
    sim = bk.Simulation(m, q, [5.0, 0, 0, 0, 0, 0], **TIGHT)
    trajectory = sim.run(1.0)
    assert np.linalg.norm(sim.v[:3]) == pytest.approx(5 / 7 * 5, rel=1e-9)
    rolls = next(e.t for e in trajectory.events if "sticks" in e.text)
    assert rolls == pytest.approx(2 * 5 / (7 * 0.5 * G), rel=1e-9)


def test_every_bounce_is_in_time_and_bouncing_ends():
    m, q = ball(restitution=0.8)
    q[2] += 1.0
    sim = bk.Simulation(m, q, **TIGHT)
    trajectory = sim.run(6.0)
    times = np.array([e.t for e in trajectory.events if "impact" in e.text])
    fall = np.sqrt(2 / G)
    exact = fall * (1 + 2 * np.concatenate([[0], np.cumsum(0.8 ** np.arange(1, len(times)))]))
    assert len(times) > 40
    assert np.abs(times - exact)[:25].max() < 1e-9
    assert abs(times[-1] - 9 * fall) < 1e-5
    assert abs(sim.q[2] - 0.1) < 1e-9
    assert np.abs(sim.v).max() < 1e-9


@pytest.mark.filterwarnings("ignore:.*solved roughly")  # one in some thousands; energy and depth hold all the same
@pytest.mark.parametrize("restitution", [0.0, 0.9])
def test_energy_never_rises_and_nothing_sinks_in_time_stepping(restitution):
    """Flight in steps is exact to a few parts in 1e7 of the energy; friction and rebound take, and never give."""
    rng = np.random.default_rng(3)
    for friction in (0.0, 0.3, 0.5, 1.0, 2.0):
        m, q = box(friction=friction, restitution=restitution)
        q[2], q[3:7] = 0.2, rng.normal(size=4)
        v = rng.normal(size=6) * [2, 2, 2, 20, 20, 20]
        sim = bk.Simulation(m, q, v, solver="symplectic_euler", step=1e-3)
        trajectory = sim.run(1.5)
        energy = np.sum(trajectory.energy()[1:], axis=0)
        assert np.diff(energy).max() < 1e-6 * energy[0]
        assert bk.contacts(m, sim.q, margin=1.0).gap.min() > -1e-6


@pytest.mark.parametrize("settings", [{}, STEPPING], ids=["events", "steps"])
def test_a_run_in_pieces_is_the_same_motion(settings):
    m, q = ball(friction=0.4)
    whole, pieces = (bk.Simulation(m, q, [2.0, 0.5, 0, 1, 2, 3], **settings) for _ in range(2))
    whole.run(1.0)
    for t in np.arange(1, 51) / 50:
        pieces.run(float(t))
    assert np.abs(pieces.q - whole.q).max() < 1e-4
    assert [e.text for e in pieces.trajectory.events] == [e.text for e in whole.trajectory.events]


@pytest.mark.parametrize("settings", [{}, STEPPING], ids=["events", "steps"])
def test_a_copy_of_a_simulation_has_contacts_of_its_own(settings):
    m, q = box()
    one = bk.Simulation(m, q, [3.0, 0, 0, 0, 0, 0], **settings)
    one.run(0.2)
    other = copy.deepcopy(one)
    other.set_state(v=[0.0, 1.0, 0, 0, 0, 0])
    other.run(0.4)
    alone = bk.Simulation(m, q, [3.0, 0, 0, 0, 0, 0], **settings)
    alone.run(0.2)
    one.run(0.8)
    alone.run(0.8)
    assert np.array_equal(one.q, alone.q)


@pytest.mark.parametrize("made", [ball, box])
def test_rollouts_in_lanes_do_what_simulations_do(made):
    """To rounding, which lanes and floats do differently. A box that slides and turns on four points has no unique
    friction: it comes to lie on the floor alike, though not at the same place."""
    rng = np.random.default_rng(1)
    m, start = made()
    q, v = np.tile(start, (11, 1)), np.zeros((11, 6))
    q[:, 2] += 0.1 * rng.random(11)
    v[:, :2], v[:, 3:] = rng.normal(size=(11, 2)), 2 * rng.normal(size=(11, 3))
    together = bk.rollout(m, q, v, 0.5, **STEPPING)
    for k in range(11):
        sim = bk.Simulation(m, q[k], v[k], **STEPPING)
        sim.run(0.5)
        if made is ball:
            np.testing.assert_allclose(together.q[k, 0], sim.q, atol=1e-9)
            np.testing.assert_allclose(together.v[k, 0], sim.v, atol=1e-8)
        else:
            np.testing.assert_allclose(together.q[k, 0, 2], sim.q[2], atol=1e-9)
            np.testing.assert_allclose(together.v[k, 0], sim.v, atol=1e-2)


@pytest.mark.parametrize("settings", [{}, STEPPING], ids=["events", "steps"])
def test_a_checkpoint_in_contact_goes_on_as_before(settings, tmp_path):
    m, q = box(tilt=0.1)
    q[2] += 0.05
    sim = bk.Simulation(m, q, [1.0, 0.3, 0, 0, 2, 1], **settings)
    sim.run(0.3)
    again = bk.Simulation.load(sim.save(tmp_path / "in_contact.npz"))
    sim.run(0.6)
    again.run(0.6)
    assert np.array_equal(sim.q, again.q)
    assert np.array_equal(sim.v, again.v)


def test_forces_of_a_standing_figure_carry_its_weight_and_obey_newton():
    m = bk.models.human(dof=34)
    m.add_plane(friction=0.8)
    q, v = m.neutral(), np.zeros(m.nv)
    r = bk.dynamics(m, q, v)  # on straight legs: at rest, if not for long
    weight = sum(link.mass for link in m.links) * G
    assert r.contacts.force.sum(axis=0) == pytest.approx([0, 0, weight], abs=1e-9 * weight)
    assert np.abs(r.a).max() < 1e-9
    assert np.abs(bk.forward_dynamics(m, q, v) - r.a).max() < 1e-11
    # a solution with the same motion exists with forces in the cones (linear program on the normal forces)
    heights = r.contacts.point[:, :2]
    total, moments = weight, (r.contacts.force[:, 2:] * heights).sum(axis=0)
    exists = linprog(np.ones(len(heights)), A_eq=np.vstack([np.ones(len(heights)), heights.T]),
                     b_eq=[total, *moments])
    assert exists.status == 0
    assert np.linalg.norm(r.contacts.force[:, 2]) <= np.linalg.norm(exists.x) * (1 + 1e-9)


def test_contact_and_loops_together():
    """A four-bar of two rods on a beam that falls on the floor: loops stay closed, nothing sinks, forces carry it."""
    m = bk.Mechanism()
    m.add_link("base", joint=bk.Free(), mass=1.0, inertia=(0.02,) * 3)
    m.add_shape("base", bk.Box(0.4, 0.2, 0.1))
    for name, x in (("left", -0.1), ("right", 0.1)):
        m.add_link(name, "base", bk.Revolute((0, 1, 0)), position=(x, 0, 0.05), mass=0.2, com=(0, 0, 0.1),
                   inertia=(1e-3,) * 3)
    m.add_link("top", "left", bk.Revolute((0, 1, 0)), position=(0, 0, 0.2), mass=0.3, com=(0.1, 0, 0),
               inertia=(1e-3,) * 3)
    m.connect("right", "top", bk.Revolute((0, 1, 0)), "hinge", position_a=(0, 0, 0.2), position_b=(0.2, 0, 0))
    m.add_plane()
    q = m.neutral()
    q[2] = 0.07
    q[m.q_slice("left")], q[m.q_slice("right")], q[m.q_slice("top")] = 0.3, 0.3, -0.3
    for settings in ({}, STEPPING):
        sim = bk.Simulation(m, q, **settings)
        sim.run(0.15)
        assert bk.contacts(m, sim.q, margin=1.0).gap.min() > -1e-6
        assert sim.stats.loop_error < 1e-8


def test_what_cannot_be_is_refused_in_words():
    m, q = box()
    q[2] = 0.04
    for start in (lambda: bk.Simulation(m, q), lambda: bk.Simulation(m, q, **STEPPING),
                  lambda: bk.dynamics(m, q, np.zeros(6))):
        with pytest.raises(bk.ContactError, match=r"'box' and 'ground' overlap by 0.01 m.*move link 'box' by"):
            start()
    q[2] = 0.05
    for settings in ({}, STEPPING):
        with pytest.raises(bk.SimulationError, match=r"more than 3 contacts at once.*max_contacts=6"):
            bk.Simulation(m, q, max_contacts=3, **settings).run(0.1)
    slider = bk.Mechanism()
    slider.add_link("s", joint=bk.Prismatic((0, 0, 1)), mass=2.0, inertia=(0.1,) * 3)
    slider.add_shape("s", bk.Sphere(0.1))
    slider.add_plane()
    with pytest.raises(bk.SimulationError, match="nothing keeps 's' and 'ground' apart"):
        bk.Simulation(slider, [0.5], [-1.0], prescribed={"s": lambda t: 0.5 - t}).run(1.0)
    with pytest.raises(bk.ContactError, match="approach each other"):
        bk.forward_dynamics(m, q, np.array([0, 0, -1.0, 0, 0, 0]))
    with pytest.raises(bk.ModelError, match="one worker"):
        bk.Simulation(m, q, workers=2)


def test_painleves_rod_is_named_by_events_and_jams_in_steps():
    m = bk.Mechanism()
    m.add_link("rod", joint=bk.Free(), mass=1.0, inertia=(1 / 12, 1 / 12, 1e-4))
    m.add_shape("rod", bk.Points([(0, 0, -0.5)]), friction=2.0)
    m.add_plane(friction=2.0)
    q, tilt = m.neutral(), np.radians(30.0)
    q[2], q[3:7] = 0.5 * np.cos(tilt), (np.cos(tilt / 2), 0, np.sin(tilt / 2), 0)
    R = np.array([[np.cos(tilt), 0, np.sin(tilt)], [0, 1, 0], [-np.sin(tilt), 0, np.cos(tilt)]])
    v = np.concatenate([R.T @ [-3.0, 0, 0], np.zeros(3)])
    with pytest.raises(bk.SimulationError, match=r"'rod' and 'ground'.*Painleve"):
        bk.Simulation(m, q, v, contact_step=None).run(0.1)
    for settings in (STEPPING, {}):  # by events it goes on in time steps
        sim = bk.Simulation(m, q, v, **settings)
        sim.run(0.1)
        assert bk.contacts(m, sim.q, margin=10.0).gap.min() > -2e-3
    assert sim.stats.switches_unsolved == 1


@pytest.mark.parametrize("floor", [False, True])
def test_a_ball_hits_another_however_long_the_steps(floor):
    m = bk.Mechanism(gravity=(0, 0, -G if floor else 0))
    if floor:
        m.add_plane(friction=0.0, restitution=0.0)
    for name in "ab":
        m.add_link(name, joint=bk.Free(), mass=1.0, inertia=(1e-3,) * 3)
        m.add_shape(name, bk.Sphere(0.05), friction=0.0, restitution=1.0)
    q, v = m.neutral(), np.zeros(12)
    q[7], v[0] = 5.0, 1.0
    q[2::7] = 0.05
    sim = bk.Simulation(m, q, v)
    sim.run(10.0)
    assert sim.q[[0, 7]] == pytest.approx([4.9, 10.1], abs=1e-7)
    assert sim.v[[0, 6]] == pytest.approx([0.0, 1.0], abs=1e-9)


def extreme_stack(masses):
    """Boxes on each other; a state in which they stand."""
    m = bk.Mechanism()
    for i, mass in enumerate(masses):
        m.add_link(f"b{i}", joint=bk.Free(), mass=mass, inertia=(0.004 * mass,) * 3)
        m.add_shape(f"b{i}", bk.Box(0.2, 0.2, 0.2))
    m.add_plane()
    q = m.neutral()
    q[2::7] = 0.1 + 0.2 * np.arange(len(masses))
    return m, q


def warnings_of(runs):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", bk.SimulationWarning)
        for run in runs:
            run()
    return [str(warning.message) for warning in found]


def test_forces_that_are_not_solved_are_an_error():
    """Of extremely heavy boxes on extremely light ones, some problems are beyond floating-point numbers."""
    named = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        masses = 10.0 ** rng.uniform(-9.0, 9.0, 6)
        m, q = extreme_stack(masses)
        push = np.zeros(m.nv)
        push[::6] = 5.0 * masses * rng.normal(size=6)
        try:
            bk.forward_dynamics(m, q, np.zeros(m.nv), push)
        except bk.ContactError as error:
            named.append(str(error))
    assert any("solved to" in text for text in named)


def test_steps_that_are_not_solved_are_a_warning():
    cases = []
    for power in (5, 5.5, 6):
        m, q = extreme_stack((1.0, 10.0**power, 10.0**(2 * power)))
        for slide in (0.05, 0.1, 0.2):
            v = np.zeros(m.nv)
            v[::6] = slide * np.arange(3)
            cases.append((m, q, v))
    said = warnings_of(lambda m=m, q=q, v=v: bk.Simulation(m, q, v, **STEPPING).run(0.01) for m, q, v in cases)
    assert any("contact problems" in text for text in said)
    said = warnings_of(lambda m=m, q=q, v=v: bk.rollout(m, np.tile(q, (2, 1)), np.tile(v, (2, 1)), until=0.01,
                                                        **STEPPING) for m, q, v in cases)
    assert any("contact problems of 2 states" in text for text in said)


def test_redundant_friction_is_the_smallest():
    """A rod on a pivot leans on the floor: any friction in the cone balances; the smallest force is across the rod."""
    m = bk.Mechanism()
    m.add_link("rod", joint=bk.Revolute((0, 1, 0)), position=(0, 0, 0.3), mass=1.0, com=(0.25, 0, 0),
               inertia=(0.02,) * 3)
    m.add_shape("rod", bk.Sphere(0.02), position=(0.5, 0, 0), friction=5.0)
    m.add_plane(friction=5.0)
    q = np.array([np.arcsin(0.56)])
    force = bk.dynamics(m, q, np.zeros(1)).contacts[0].force
    arm = np.array([0.5 * np.cos(q[0]), 0, -0.28 - 0.02])
    across = np.array([-arm[2], 0, arm[0]]) / np.hypot(arm[0], arm[2])
    size = G * 0.25 * np.cos(q[0]) / np.hypot(arm[0], arm[2])
    assert force == pytest.approx(size * across, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("loop", [False, True], ids=["tree", "loop"])
def test_slip_that_reverses_where_contacts_nearly_depend_on_each_other(loop):
    """Two links on a hinge lie on two balls: where they pass each other a small slip is a large motion. Events and
    small time steps agree, also if the hinge is a connection."""
    m = bk.Mechanism()
    m.add_link("a", joint=bk.Free(), mass=1, inertia=(0.01, 0.02, 0.03))
    m.add_shape("a", bk.Sphere(0.05))
    heavy = {"mass": 2, "com": (0.1, 0, 0), "inertia": (0.02, 0.01, 0.03)}
    if loop:
        m.add_link("c", joint=bk.Free(), **heavy)
    else:
        m.add_link("c", "a", bk.Revolute((0, 1, 0)), position=(0.4, 0, 0), **heavy)
    m.add_shape("c", bk.Sphere(0.05), position=(0.2, 0, 0))
    m.add_plane()
    q, v = m.neutral(), np.zeros(m.nv)
    q[2], v[0] = 0.4, 1.0
    if loop:
        q[7:10], v[6] = (0.4, 0, 0.4), 1.0
        m.connect("a", "c", bk.Revolute((0, 1, 0)), position_a=(0.4, 0, 0))
    by_events, steps = bk.Simulation(m, q, v), bk.Simulation(m, q, v, solver="symplectic_euler", step=1e-4)
    by_events.run(1.0)
    steps.run(1.0)
    assert by_events.q[0] == pytest.approx(steps.q[0], abs=1e-3)
