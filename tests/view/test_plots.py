"""Plots: each curve shows the numbers of the recording."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.simulation.watching import with_torques
from bunraku.view.plots import MOST, plot
from moving import pendulum
from sliding import FRICTION, GRAVITY, MASS, crate, driven, dropped


@pytest.fixture(scope="module")
def held():
    """A figure held by both hands, without muscles, that loses one."""
    sim = bk.Simulation(bk.models.human(dof=16), dense=True)
    for hand in ("left", "right"):
        sim.connect("ground", f"{hand}_hand", bk.Spherical(), name=f"{hand}_grip")
    sim.run(0.05)
    sim.cut("right_grip")
    return sim.run(0.1)


def test_curves_are_the_recorded_numbers(tmp_path):
    trajectory = bk.Simulation(bk.models.chain(3), q=[0.3, 0.2, 0.1]).run(0.5)
    energy, q, v = plot(trajectory, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    kinetic, potential = trajectory.segments[0].mechanism.energy(trajectory.q, trajectory.v)
    np.testing.assert_array_equal(energy.curves["total"][1], kinetic + potential)
    for k, name in enumerate(trajectory.segments[0].mechanism.joint_names):
        np.testing.assert_array_equal(q.curves[name][0], trajectory.t)
        np.testing.assert_array_equal(q.curves[name][1], trajectory.q[:, k])
        np.testing.assert_array_equal(v.curves[f"{name}.rate"][1], trajectory.v[:, k])


def test_forces_are_those_of_joint_forces_and_end_with_the_grip(held, tmp_path):
    (panel,) = plot(held, tmp_path / "a.png", ["forces"], ["left_grip", "right_grip"])
    first = held.segments[0]
    forces = bk.joint_forces(first.mechanism, first.q[-1], first.v[-1])
    t, force = panel.curves["right_grip"]
    assert t[-1] == first.t[-1]
    assert force[-1] == pytest.approx(np.linalg.norm(forces["right_grip"][:3]))
    t, force = panel.curves["left_grip"]
    assert t[-1] == held.t[-1]
    assert np.isnan(force).sum() == 1  # the gap between two structures


def test_forces_without_the_torques_that_moved_it_are_refused(tmp_path):
    driven = bk.Simulation(pendulum(), [0.0], actuation=lambda t, q, v: np.array([5.0 * np.cos(9 * t)])).run(0.5)
    with pytest.raises(bk.ShapeError, match="torques of the actuators"):
        plot(driven, tmp_path / "a.png", ["forces"])
    segment = driven.segments[0]
    segment.tau = 5.0 * np.cos(9 * segment.t)[:, None]
    (panel,) = plot(driven, tmp_path / "a.png", ["forces"])
    expected = bk.joint_forces(segment.mechanism, segment.q, segment.v, segment.tau)["rod"][:, :3]
    np.testing.assert_allclose(panel.curves["rod"][1], np.linalg.norm(expected, axis=1))


def test_forces_of_a_figure_that_is_pulled_are_refused(tmp_path):
    sim = bk.Simulation(pendulum(), [0.0], external={"rod": (0, 0, 0, 0, 5.0, 0)}, actuation=lambda t, q, v: 0.0 * v)
    sim.run(0.5)
    trajectory = with_torques(sim)
    with pytest.raises(bk.ShapeError, match="what else acted"):
        plot(trajectory, tmp_path / "a.png", ["forces"])


def test_loops_steps_and_orders_are_shown_where_they_are_recorded(held, tmp_path):
    loops, step, order = plot(held, tmp_path / "a.png", ["loops", "steps"])
    assert np.nanmax(loops.curves["largest gap"][1]) < 1e-8
    np.testing.assert_array_equal(step.curves["step"][1][:5], np.diff(held.t[:6]))
    assert 1 <= np.nanmin(order.curves["order"][1]) <= np.nanmax(order.curves["order"][1]) <= 12
    (step,) = plot(bk.Simulation(pendulum(), [0.1]).run(0.1), tmp_path / "a.png", ["steps"])
    assert "dense" in step.note


def test_the_largest_curves_are_chosen_and_that_is_said(held, tmp_path):
    (panel,) = plot(held, tmp_path / "a.png", ["v"])
    assert len(panel.curves) == MOST
    assert "--joints" in panel.note
    spans = {name: np.ptp(y[np.isfinite(y)]) for name, (_, y) in panel.curves.items()}
    (everything,) = plot(held, tmp_path / "a.png", ["v"], held.segments[0].mechanism.joint_names[:3])
    left_out = {name: np.ptp(y[np.isfinite(y)]) for name, (_, y) in everything.curves.items() if name not in spans}
    assert max(left_out.values(), default=0.0) <= min(spans.values())


def test_a_joint_is_shown_in_the_panels_that_have_it(held, tmp_path):
    energy, v, forces = plot(held, tmp_path / "a.png", ["energy", "v", "forces"], ["left_grip", "left_shank"])
    assert list(v.curves) == ["left_knee.rate"]  # of the joint by which the shank hangs
    assert list(forces.curves) == ["left_grip", "left_knee"]
    with pytest.raises(bk.NamingError, match="coordinates: 'left_grip' has none"):
        plot(held, tmp_path / "a.png", ["q"], ["left_grip"])


@pytest.mark.parametrize(("what", "joints", "error", "words"), [
    ("q", ["rod", "rot"], bk.NamingError, "did you mean 'rod'"),
    ("energie", None, bk.NamingError, "did you mean 'energy'"), ("q", ["rot"], bk.NamingError, "did you mean 'rod'"),
    ("tau", None, bk.ShapeError, "torques are not in this recording"), ("loops", None, bk.ShapeError, "no connections"),
])
def test_what_cannot_be_drawn_is_said(tmp_path, what, joints, error, words):
    with pytest.raises(error, match=words):
        plot(bk.Simulation(pendulum(), [0.1]).run(0.1), tmp_path / "a.png", [what], joints)
    assert not list(tmp_path.iterdir())


def test_a_single_state_is_no_motion(tmp_path):
    with pytest.raises(bk.ShapeError, match="no duration"):
        plot(bk.Simulation(pendulum(), [0.1]).trajectory, tmp_path / "a.png")


def test_contacts_are_normal_force_and_friction_of_pairs_with_their_events(tmp_path):
    m = crate()
    trajectory = bk.Simulation(m, *dropped(m, height=0.3)).run(0.4)
    normal, friction = plot(trajectory, tmp_path / "a.png", ["contacts"])
    assert list(normal.curves) == list(friction.curves) == ["crate - floor"]
    t, force = normal.curves["crate - floor"]
    lands = np.sqrt(2 * 0.2 / GRAVITY)
    assert not force[t < lands - 1e-6].any()
    np.testing.assert_allclose(force[t > lands + 1e-6], MASS * GRAVITY, rtol=1e-6)
    np.testing.assert_allclose(friction.curves["crate - floor"][1], FRICTION * force, atol=1e-6)
    ((kind, pair, at),) = normal.marks
    assert (kind, pair, at) == ("impact", "crate - floor", pytest.approx(lands))


def test_impacts_of_fixed_steps_are_cut_off_and_that_is_said(tmp_path):
    m = crate()
    trajectory = bk.Simulation(m, *dropped(m, height=0.3), solver="symplectic_euler", step=0.002).run(0.6)
    normal, _ = plot(trajectory, tmp_path / "a.png", ["contacts"])
    assert np.nanmax(normal.curves["crate - floor"][1]) > 10 * MASS * GRAVITY
    assert MASS * GRAVITY < normal.top < 3 * MASS * GRAVITY
    assert "cut off" in normal.note
    assert [kind for kind, *_ in normal.marks] == ["touch"]


def test_contacts_that_are_not_there_are_said(tmp_path):
    m = crate()
    falling = bk.Simulation(m, *dropped(m, height=3.0)).run(0.1)
    with pytest.raises(bk.ShapeError, match="no contact force"):
        plot(falling, tmp_path / "a.png", ["contacts"])
    with pytest.raises(bk.ModelError, match="no shapes"):
        plot(bk.Simulation(pendulum(), [0.1]).run(0.1), tmp_path / "a.png", ["contacts"])


def test_joint_forces_of_a_motion_in_contact_are_drawn(tmp_path):
    sim, _ = driven()
    (panel,) = plot(with_torques(sim), tmp_path / "a.png", ["forces"], ["z"])
    _, force = panel.curves["z"]
    assert np.nanmedian(force) > 0


def test_long_names_are_shortened_in_pictures_alone(tmp_path):
    name = "x" * 500
    m = bk.Mechanism(name=name)
    m.add_link(name, joint=bk.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -0.5), inertia=(0.1,) * 3)
    sim = bk.Simulation(m, [0.5])
    sim.when(lambda t, q, v: t - 0.1, lambda s: None, name=name)
    trajectory = sim.run(0.2)
    drawn = plot(trajectory, tmp_path / "a.png", what=("q", "v"))
    assert name in drawn[0].curves
    axes = drawn.figure.axes
    words = [text.get_text() for text in (*drawn.figure.texts, *(text for a in axes for text in a.texts))]
    assert max(map(len, words)) <= 80
    assert "…" in "".join(words)
    assert any(word.endswith(".rate") for word in words)
    assert all(a.get_position().width > 0.4 for a in axes)
