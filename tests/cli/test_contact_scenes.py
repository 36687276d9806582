"""The scenes with contact: the described events happen, checked by laws independent of the contact problem."""

from itertools import pairwise

import numpy as np
import pytest

import bunraku as bk
from bunraku import cli
from bunraku.cli.scenes.capstan import HAND, LOAD, ratio, rope
from bunraku.cli.scenes.dismount import FLOOR, Dismount
from bunraku.cli.scenes.lift import solid_of
from bunraku.cli.scenes.pickup import HERE, THERE, Pickup
from bunraku.cli.scenes.walk import LENGTH as LENGTH_OF_STEP
from bunraku.cli.scenes.walk import STEPS, Walk
from bunraku.cli.scenes.wheel import ALPHA, LENGTH, SLOPE, Wheel


def carried(segment):
    """Sum of the contact forces at the end of a segment, in world axes."""
    tau = None if segment.tau is None else segment.tau[-1]
    found = bk.dynamics(segment.mechanism, segment.q[-1], segment.v[-1], tau).contacts
    return np.sum([contact.force for contact in found], axis=0)


def deepest(segment, every=20):
    return max(-contacts.gap.min(initial=0.0) for contacts in bk.contacts(segment.mechanism, segment.q[::every]))


def test_the_wheel_loses_at_every_impact_what_its_closed_form_says(reports):
    segments = reports("wheel")["trajectory"].segments
    assert len(segments) == 15
    m = segments[0].mechanism
    masses = [link.mass for link in m.links]
    inertia = m.links[0].inertia[1, 1] + sum(link.inertia[1, 1] + link.mass * (LENGTH / 2) ** 2 for link in m.links[1:])
    about_foot = inertia + sum(masses) * LENGTH**2
    ratio = 1.0 - sum(masses) * LENGTH**2 * (1.0 - np.cos(2 * ALPHA)) / about_foot
    for before, after in pairwise(segments):
        assert after.v[0, 4] / before.v[-1, 4] == pytest.approx(ratio, abs=1e-9)
        fall = 2.0 * sum(masses) * 9.81 * LENGTH * np.sin(ALPHA) * np.sin(SLOPE)
        if len(after.t) > 1 and after is not segments[-1]:
            assert 0.5 * about_foot * (after.v[-1, 4] ** 2 - after.v[0, 4] ** 2) == pytest.approx(fall, rel=1e-8)


def test_the_speed_of_the_wheel_tends_to_its_closed_form(reports):
    report = reports("wheel")
    assert report["speed_error"] < 1e-9
    assert report["energy_drift"] < 1e-8
    assert report["speed_end"] == pytest.approx(report["steady"], rel=1e-4)


def test_with_all_mass_in_the_hub_the_ratio_is_the_cosine(monkeypatch):
    monkeypatch.setattr("bunraku.cli.scenes.wheel.SPOKE", 1e-9)
    monkeypatch.setattr("bunraku.cli.scenes.wheel.RADIUS", 1e-3)
    scene = Wheel()
    assert scene.ratio == pytest.approx(np.cos(2 * ALPHA), abs=1e-5)


def test_the_figure_falls_and_lies_still(reports):
    report = reports("fall")
    end = report["trajectory"].segments[-1]
    assert report["speed_end"] < 1e-9
    assert np.abs(end.v[-1]).max() < 1e-9
    assert bk.poses(end.mechanism, end.q[-1])["head"][1][2] < 0.3


def test_the_energy_of_the_fall_never_rises(reports):
    _, kinetic, potential = reports("fall")["trajectory"].energy()
    energy = kinetic + potential
    after_push = energy[1:]
    assert np.diff(after_push).max() < 1e-10
    assert energy[0] - energy[-1] > 500.0


def test_the_floor_carries_the_figure_that_lies(reports):
    report = reports("fall")
    end = report["trajectory"].segments[-1]
    assert report["force_end"][2] == pytest.approx(report["weight"], rel=1e-9)
    np.testing.assert_allclose(carried(end), [0, 0, report["weight"]], atol=1e-6)
    assert deepest(end) < 1e-3


def test_a_fixed_step_can_be_exchanged_for_events(tmp_path):
    assert cli.main(["demo", "fall", "--seconds", "0.2", "--solver", "gear", "--no-picture", "--json", "--out",
                     str(tmp_path)]) == 0


def test_the_box_is_carried_by_friction_alone(reports):
    report = reports("pickup")
    motion = report["trajectory"].segments[0]
    assert not motion.mechanism.connections
    bottom = [min(c.gap for c in bk.contacts(motion.mechanism, q, margin=1.0) if c.links == ("box", "ground"))
              for q in motion.q[::100]]
    assert max(bottom) == pytest.approx(report["lift"], abs=1e-3)
    assert report["lift"] > 0.2
    assert report["shift"] < 2e-3
    assert report["friction_used"] < 1.0
    assert report["press"] == pytest.approx(report["press_fingers"], rel=0.02)  # it moves at an even pace on average


def test_the_box_stands_where_it_was_put(reports):
    report = reports("pickup")
    end = report["trajectory"].segments[-1]
    assert report["moved"] == pytest.approx(THERE - HERE, abs=5e-3)
    assert np.abs(end.v[-1, end.mechanism.v_slice("box")]).max() < 1e-9
    np.testing.assert_allclose(carried(end), [0, 0, report["box_weight"]], atol=1e-6)


def test_a_slippery_box_stays_where_it_is(monkeypatch):
    monkeypatch.setattr("bunraku.cli.scenes.pickup.FRICTION", 0.05)
    scene = Pickup()
    sim = scene.simulation()
    sim.run(until=2.0)
    assert bk.poses(sim.mechanism, sim.q)["box"][1][2] < 0.06


def test_the_stone_is_carried_by_friction_and_slopes(reports):
    report = reports("lift")
    end = report["trajectory"].segments[-1]
    assert report["lift"] > 0.2
    assert report["shift"] < 2e-3
    assert report["moved"] == pytest.approx(THERE - HERE, abs=1e-2)
    np.testing.assert_allclose(carried(end), [0, 0, report["box_weight"]], atol=1e-6)


def test_the_mass_of_a_solid_hull_is_spread_as_in_closed_form():
    corners = np.array([(x, y, z) for x in (0.0, 1.0) for y in (0.0, 2.0) for z in (0.0, 3.0)])
    com, inertia = solid_of(corners, 12.0)
    np.testing.assert_allclose(com, [0.5, 1.0, 1.5], rtol=1e-14)
    np.testing.assert_allclose(inertia, np.diag([13.0, 10.0, 5.0]), rtol=0, atol=1e-13)


@pytest.mark.filterwarnings("ignore:.*contact problems:bunraku.errors.SimulationWarning")  # the pile that falls
def test_the_wall_stands_until_the_ball_arrives(reports):
    report = reports("wall")
    assert report["stood"] < 1e-9
    assert report["fallen"] > 0
    assert report["energy_rise"] < 1e-9


def test_the_rope_holds_until_the_ratio_of_tensions_is_that_of_the_capstan(reports):
    report = reports("capstan")
    assert report["creep"] < 1e-9
    assert report["ratio"] == pytest.approx(report["ratio_exact"], rel=5e-3)


@pytest.mark.parametrize("touching", [6, 12, 40])
@pytest.mark.parametrize(("part", "holds"), [(1.01, True), (0.99, False)])
def test_a_rope_of_any_number_of_links_slips_at_its_closed_form(touching, part, holds):
    m, q = rope(touching)
    sim = bk.Simulation(m, q, solver="symplectic_euler", step=1e-3)
    sim.push("hand", (0.0, 0.0, 9.81 * (HAND - part * LOAD / ratio(touching)), 0.0, 0.0, 0.0))
    sim.run(until=0.02)
    speed = abs(bk.kinematics(m, sim.q, sim.v).velocities["load"][2])
    assert (speed < 1e-8) == holds
    assert (speed > 1e-4) != holds


def test_the_ratio_of_many_links_is_that_of_a_rope():
    errors = [ratio(n) / np.exp(0.25 * 3.0 * np.pi) - 1.0 for n in (100, 1000)]
    assert errors[0] / errors[1] == pytest.approx(100.0, rel=1e-2)
    assert errors[1] < 1e-4


def test_the_gymnast_lets_go_flies_and_lands(reports):
    report = reports("dismount")
    on_bar, free = report["trajectory"].segments[0], report["trajectory"].segments[-1]
    assert set(on_bar.mechanism.connections) == {"left_grip", "right_grip"}
    assert not free.mechanism.connections
    assert 0.1 < report["landed"] - report["let_go"] < 0.5
    flight = free.t < report["landed"] - 0.01
    moving = bk.kinematics(free.mechanism, free.q[flight], free.v[flight])
    gained = np.diff(moving.momentum[[0, -1], :3], axis=0)[0] / np.ptp(free.t[flight])
    np.testing.assert_allclose(gained, [0, 0, -report["weight"]], atol=0.1)  # order 1
    assert report["landing_speed"] > 2.0


def test_the_gymnast_stands_on_the_feet(reports):
    report = reports("dismount")
    end = report["trajectory"].segments[-1]
    assert report["touching_end"] == ["left_foot", "right_foot"]
    assert report["pelvis_height"] > 0.85
    assert report["speed_end"] < 2e-3
    assert report["feet_slip"] < 1e-3
    assert 20.0 < report["knees_bent"] < 90.0
    assert report["force_end"][2] == pytest.approx(report["weight"], rel=1e-3)
    np.testing.assert_allclose(carried(end), [0, 0, report["weight"]], atol=1.0)


def test_the_gymnast_stands_also_after_letting_go_elsewhere(monkeypatch):
    monkeypatch.setattr("bunraku.cli.scenes.dismount.LET_GO", -0.5)
    scene = Dismount()
    sim = scene.simulation()
    sim.run(until=1.8)
    assert bk.poses(sim.mechanism, sim.q)["head"][1][2] > FLOOR + 1.3
    assert np.abs(sim.v[:3]).max() < 0.2


def test_the_biped_steps_and_stops(reports):
    report = reports("walk")
    motion = report["trajectory"].segments[0]
    assert report["steps_taken"] == STEPS
    assert report["distance"] == pytest.approx((STEPS - 1) * LENGTH_OF_STEP, abs=0.01)
    assert report["tilt_max"] < 1.0
    assert report["speed_end"] < 1e-3
    assert report["touching_end"] == ["left_ankle_roll", "right_ankle_roll"]
    np.testing.assert_allclose(carried(motion), [0, 0, report["weight"]], atol=0.5)
    feet = [bk.poses(motion.mechanism, motion.q)[f"{side}_ankle_roll"][1] for side in ("left", "right")]
    assert np.minimum(feet[0][:, 2], feet[1][:, 2]).max() < 0.1 + 2e-3  # one of them is always on the floor


def test_the_plan_of_the_walk_has_the_zmp_under_its_feet():
    plan = Walk().plan
    found, need = plan.zmp(), plan.needed()
    feet = np.stack([plan.feet[side][:, :2] for side in ("left", "right")])
    low, high = feet.min(axis=0) - np.array([0.09, 0.055]), feet.max(axis=0) + np.array([0.15, 0.055])  # of the soles
    assert ((found > low) & (found < high)).all()
    assert plan.zmp_error < 1e-3
    np.testing.assert_allclose(plan.torques()[:, :3], 0, atol=1e-6)  # the floor carries the base
    assert need[:, 2].min() > 500.0
