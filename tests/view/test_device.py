"""Gamepads and 3-D mice: velocities from browser reports, and their effect on the stage."""

import json
import time

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import bunraku as bk
from bunraku.view import device
from bunraku.view.device import DEAD_ZONE, motion, read

viser = pytest.importorskip("viser")
from bunraku.view.gestures import CUT, MOVE, SPEED, STALE, TURN_LEASH, TURN_SPEED  # noqa: E402
from bunraku.view.stage import Stage  # noqa: E402


def gamepad(axes=(0, 0, 0, 0), **pressed):
    buttons = [0.0] * 17
    for name, value in pressed.items():
        buttons[{"lb": 4, "rb": 5, "lt": 6, "rt": 7}[name]] = value
    return {"id": "Pad", "mapping": "standard", "axes": list(axes), "buttons": buttons}


def mouse(*axes):
    return {"id": "SpaceMouse", "mapping": "", "axes": list(axes), "buttons": [0, 0]}


# -- reports -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("device_", "expected"), [
    (gamepad((1, 0, 0, 0)), (1, 0, 0, 0, 0, 0)), (gamepad((0, -1, 0, 0)), (0, 1, 0, 0, 0, 0)),
    (gamepad(rt=1), (0, 0, 1, 0, 0, 0)), (gamepad(lt=1), (0, 0, -1, 0, 0, 0)),
    (gamepad((0, 0, 0, -1)), (0, 0, 0, -1, 0, 0)),  # forward: the top goes away
    (gamepad(rb=1), (0, 0, 0, 0, 1, 0)), (gamepad((0, 0, 1, 0)), (0, 0, 0, 0, 0, -1)),
    (mouse(1, 0, 0, 0, 0, 0), (1, 0, 0, 0, 0, 0)), (mouse(0, -1, 0, 0, 0, 0), (0, 1, 0, 0, 0, 0)),
    (mouse(0, 0, -1, 0, 0, 0), (0, 0, 1, 0, 0, 0)), (mouse(0, 0, 0, 1, 0, 0), (0, 0, 0, 1, 0, 0)),
    (mouse(0, 0, 0, 0, -1, 0), (0, 0, 0, 0, 1, 0)), (mouse(0, 0, 0, 0, 0, -1), (0, 0, 0, 0, 0, 1))])
def test_each_axis_is_one_of_six_directions(device_, expected):
    assert np.allclose(motion(read(json.dumps([device_]))), expected)


def test_the_directions_of_a_3d_mouse_are_one_right_handed_frame():
    linear, angular = np.zeros((3, 3)), np.zeros((3, 3))
    for k in range(3):
        moved = motion(read(json.dumps([mouse(*np.eye(6)[k]), mouse(*np.eye(6)[k + 3])])))
        linear[:, k], angular[:, k] = moved[:3], moved[3:]
    assert np.linalg.det(linear) == 1
    assert np.array_equal(linear, angular)  # so that turns obey the right-hand rule


def test_within_the_dead_zone_nothing_moves_and_beyond_it_grows_from_zero():
    still = [DEAD_ZONE, -DEAD_ZONE, 0.05, -0.05, 0.1, 0.0]
    assert not motion([*read(json.dumps([mouse(*still)]))]).any()
    just = motion(read(json.dumps([mouse(DEAD_ZONE + 0.01, 0, 0, 0, 0, 0)])))
    assert 0 < just[0] < 0.02
    assert motion(read(json.dumps([mouse(1.7, 0, 0, 0, 0, 0)])))[0] == 1  # no faster than fast


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"axes": ["a"]}]', '[{"axes": [NaN]}]', "[" * 5000, b"[]", None,
                                  '[{"axes": 3}]', json.dumps([mouse(*[0] * 5000)]), json.dumps([gamepad()] * 9)])
def test_what_is_no_report_is_refused(text):
    with pytest.raises((ValueError, RecursionError)):
        read(text)


def test_devices_with_few_axes_or_buttons_are_still_where_they_have_none():
    assert not motion(read('[{"id": "pedal", "axes": [1.0]}, {"mapping": "standard"}, {}]')).any()
    assert device.name(read('[{"id": "pedal"}, {}]')) == "pedal and a device"


# -- the stage ---------------------------------------------------------------------------------------------------------


def floating():
    m = bk.Mechanism(gravity=(0, 0, 0), name="box")
    m.add_link("box", joint=bk.Free(), mass=1.0, com=(0.1, 0, 0), inertia=(0.02, 0.02, 0.02))
    return bk.Simulation(m)


def click(stage, link):
    batch, instance = next((b, i) for b, group in enumerate(stage.drawing.shapes.groups)
                           for i, s in enumerate(group) if s.link == link)
    stage.ask("mode", MOVE)
    stage.ask("click", batch, instance, (0, -5, 0), (0, 1, 0))


def pose(stage):
    return (stage.source.state[0][:3].copy(), Rotation.from_quat(stage.source.state[0][3:], scalar_first=True))


def turns(stage, n, *requests):
    for _ in range(n):
        for request in requests:
            stage.ask(*request)
        stage.turn()
        stage.draw()


def simulated(stage, seconds):
    """Turns for so much simulated time: slices are shorter on a machine that is busy."""
    end = stage.source.t + seconds
    while stage.source.t < end - 1e-9:
        turns(stage, 1)


@pytest.fixture
def stage():
    with Stage(floating(), port=0) as stage:
        click(stage, "box")
        turns(stage, 1)
        yield stage


def test_a_link_that_is_held_follows_its_gizmo_and_turns_with_it(stage):
    goal, point = Rotation.from_rotvec([0.3, -0.8, 1.1]), np.array([0.1, 0, 0])
    assert stage.screen._hand.visible
    assert np.allclose(stage.screen._hand.position, point)  # its centre of mass
    stage.ask("target", (0.5, -0.2, 0.3), tuple(goal.as_quat(scalar_first=True)))
    simulated(stage, 1.5)
    position, rotation = pose(stage)
    assert (goal * rotation.inv()).magnitude() < 1e-3
    assert np.allclose(position + rotation.apply(point), (0.5, -0.2, 0.3), atol=1e-3)
    click(stage, "box")  # again: lets go
    turns(stage, 1)
    assert not stage.screen._hand.visible
    assert not stage.source.simulation._running.acting.pulls
    assert stage.hands.hold is None


def test_a_device_moves_and_turns_the_target_in_simulated_time(stage):
    before, t = stage.hands.hold.position.copy(), stage.source.t
    turns(stage, 30, ("steer", 1, (0.0, 1.0, 0.0), (0.0, 0.0, -0.5)))
    seconds, reach = stage.source.t - t, stage.drawing.reach
    assert np.allclose(stage.hands.hold.position - before, (0, SPEED * reach * seconds, 0))
    assert np.allclose(stage.hands.hold.rotation.as_rotvec(), (0, 0, -0.5 * TURN_SPEED * seconds))
    assert np.allclose(stage.screen._hand.position, stage.hands.hold.position)
    stage.ask("unplug", 1)
    simulated(stage, 1.5)
    position, rotation = pose(stage)
    assert np.allclose(position + rotation.apply((0.1, 0, 0)), stage.hands.hold.position, atol=1e-3)
    assert np.allclose(rotation.as_rotvec(), stage.hands.hold.rotation.as_rotvec(), atol=1e-3)


def test_a_device_that_is_unplugged_silent_or_gone_leaves_the_target_where_it_is(stage):
    steer = ("steer", 1, (1.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    turns(stage, 3, steer)
    stage.ask("steer", 1, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    turns(stage, 1)
    for end in (lambda: None, lambda: stage.ask("unplug", 1)):
        end()
        turns(stage, 1)
        there = stage.hands.hold.position.copy(), stage.hands.hold.rotation.as_matrix()
        turns(stage, 5)
        assert np.array_equal(stage.hands.hold.position, there[0])
        assert np.array_equal(stage.hands.hold.rotation.as_matrix(), there[1])
    turns(stage, 2, steer)
    time.sleep(STALE + 0.05)  # the page hangs
    there = stage.hands.hold.position.copy()
    turns(stage, 5)
    assert np.array_equal(stage.hands.hold.position, there)


def test_while_paused_a_device_moves_nothing(stage):
    stage.ask("play")
    turns(stage, 1)
    there = stage.hands.hold.position.copy()
    turns(stage, 5, ("steer", 1, (1.0, 0.0, 0.0), (1.0, 0.0, 0.0)))
    assert np.array_equal(stage.hands.hold.position, there)


def test_the_target_does_not_run_away_from_a_link_that_cannot_follow():
    m = bk.Mechanism(gravity=(0, 0, 0))
    m.add_link("arm", joint=bk.Revolute((0, 1, 0), lower=-0.1, upper=0.1, limit_stiffness=1e3, limit_damping=1.0),
               mass=1.0, com=(0, 0, -0.5), inertia=(0.05, 0.05, 0.01))
    with Stage(bk.Simulation(m), port=0) as stage:
        click(stage, "arm")
        turns(stage, 1)
        while stage.source.t < 6.0:
            turns(stage, 1, ("speed", 4.0), ("steer", 1, (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
        assert stage.hands.hold.position[1] < 1.1 * stage.drawing.reach
        assert np.abs(stage.hands.hold.rotation.magnitude()) < TURN_LEASH + 0.2
        while stage.source.t < 7.0:
            turns(stage, 1, ("steer", 1, (0.0, -1.0, 0.0), (0.0, 0.0, -1.0)))  # back at once
        assert stage.hands.hold.position[1] < 0.8 * stage.drawing.reach


def test_a_link_that_is_held_is_not_dragged_and_others_are():
    m = bk.Mechanism(gravity=(0, 0, 0))
    for k in range(2):
        m.add_link(f"box{k}", joint=bk.Free(), mass=1.0, inertia=(0.02, 0.02, 0.02))
    q = m.neutral()
    q[7] = 1.0
    with Stage(bk.Simulation(m, q), port=0) as stage:
        click(stage, "box0")
        turns(stage, 1)
        row = stage.source.simulation._running.acting.pulls["box0"].copy()
        places = {s.link: (b, i) for b, group in enumerate(stage.drawing.shapes.groups) for i, s in enumerate(group)}
        for link in ("box0", "box1"):
            stage.ask("grab", 3, *places[link], (0.0, 0.0, 0.0))
            stage.ask("drag", 3, (9.0, 9.0, 9.0))
            turns(stage, 1)
        assert np.array_equal(stage.source.simulation._running.acting.pulls["box0"], row)
        assert set(stage.source.simulation._running.acting.pulls) == {"box0", "box1"}
        stage.ask("drop", 3)
        turns(stage, 1)
        assert set(stage.source.simulation._running.acting.pulls) == {"box0"}
        stage.ask("release")
        turns(stage, 1)
        assert not stage.source.simulation._running.acting.pulls


def test_reset_and_undo_let_go(stage):
    stage.ask("reset")
    turns(stage, 1)
    assert stage.hands.hold is None
    assert not stage.source.simulation._running.acting.pulls
    stage.ask("mode", CUT)
    stage.source.simulation.connect("ground", "box", bk.Spherical(), name="peg")
    turns(stage, 1)
    stage.ask("mark", stage.drawing.marks.index("peg"))
    turns(stage, 1)
    click(stage, "box")
    turns(stage, 1)
    assert stage.hands.hold is not None
    stage.ask("undo")
    turns(stage, 1)
    assert "peg" in stage.source.mechanism.connections
    assert stage.hands.hold is None
    assert not stage.source.simulation._running.acting.pulls


def test_a_suspension_with_a_guide_is_not_held_by_a_spring():
    m = bk.Mechanism(gravity=(0, 0, 0), name="hand")
    m.add_link("hand", joint=bk.Free(), mass=1.0, inertia=(0.02, 0.02, 0.02))
    with Stage(bk.Simulation(m, prescribed={"hand": bk.Guide(m.neutral())}), port=0) as stage:
        click(stage, "hand")
        turns(stage, 1)
        assert stage.hands.hold is None
        assert "its own gizmo" in stage.panel.message


def test_a_device_moves_a_suspension_while_no_link_is_held():
    from bunraku.cli.scenes.byhand import ByHand

    sim = ByHand().live()
    with Stage(sim, port=0) as stage:
        stage.ask("plug", "Pad")
        turns(stage, 30, ("steer", 1, (0.0, 0.0, 1.0), (0.0, 0.0, 1.0)))
        assert "suspension" in stage.panel.message
        stage.ask("unplug", 1)
        seconds = sim.t
        simulated(stage, 1.0)
        goal, rise = stage.hands.guides["suspension"].q, SPEED * stage.drawing.reach * seconds
        assert np.allclose(goal[:3], (0, 0, rise))
        assert np.allclose(Rotation.from_quat(goal[3:], scalar_first=True).as_rotvec(), (0, 0, TURN_SPEED * seconds))
        assert np.allclose(sim.q[:7], goal, atol=2e-3)
        assert np.allclose(stage.screen._gizmos["suspension"].position, goal[:3])


@pytest.mark.parametrize("request_", [("steer", 1, (np.nan, 0, 0), (0, 0, 0)), ("steer", 1, (0, 0), (0, 0, 0)),
                                      ("steer", 1, "abc", None), ("target", (0, 0, np.inf), (1, 0, 0, 0)),
                                      ("target", (0, 0, 0), (0, 0, 0, 0)), ("target", (0, 0), (1, 0, 0, 0)),
                                      ("unplug", 77), ("steer", 1, (1e308, 0, 0), (0, 0, 0))])
def test_requests_that_make_no_sense_leave_the_target_sane(stage, request_):
    turns(stage, 2, request_)
    assert np.isfinite(stage.hands.hold.position).all()
    assert np.linalg.norm(stage.hands.hold.position - (0.1, 0, 0)) < 0.2
    assert stage.playing
