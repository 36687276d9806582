"""User interaction on the stage: requests as sent by the page, and their effect on the simulation."""

import time

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import bunraku as bk
from bunraku.errors import ViewerError
from bunraku.view.drawing import FORCES, LOOPS, WORKERS, hit, quaternions
from bunraku.view.figure import MIDDLE
from bunraku.view.gestures import CONNECT, CUT
from bunraku.view.solids import Solid, solids
from bunraku.view.stage import FRAME, Stage

viser = pytest.importorskip("viser")
GRAVITY = 9.81


def arms(n=2):
    """Arms of 0.5 m side by side, each of two links that hang down."""
    m = bk.Mechanism(name="arms")
    for k in range(n):
        for name, parent, at in (("upper", "ground", (0, 0.6 * k, 1.5)), ("lower", f"upper{k}", (0, 0, -0.5))):
            m.add_link(f"{name}{k}", parent, bk.Revolute((0, 1, 0), damping=0.2), position=at, mass=1.0,
                       com=(0, 0, -0.25), inertia=(0.02, 0.02, 0.001))
    return m


@pytest.fixture
def stage():
    with Stage(bk.Simulation(arms()), port=0) as stage:
        yield stage


def place(stage, link):
    """(batch, instance) of the first solid of a link, as a click names it."""
    groups = stage.drawing.shapes.groups
    return next((b, i) for b, group in enumerate(groups) for i, s in enumerate(group) if s.link == link)


def from_front(stage, link, point=(0.0, 0.0, -0.25)):
    """A ray along x through a point of a link."""
    rotation, position = bk.poses(stage.source.mechanism, stage.source.state[0])[link]
    return tuple(position + rotation @ point - (3.0, 0.0, 0.0)), (1.0, 0.0, 0.0)


def turns(stage, n=1):
    """Turns of the loop, as on a machine that is never slow, and the frame after them."""
    stage.clock = lambda: 0.0
    for _ in range(n):
        stage.turn()
    stage.draw()


# -- geometry ----------------------------------------------------------------------------------------------------------


def test_quaternions_are_those_of_scipy_half_turns_included():
    half = [Rotation.from_rotvec(np.pi * np.array(axis) / np.linalg.norm(axis)).as_matrix()
            for axis in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, -1, 0), (1, 2, -3))]
    R = np.concatenate([Rotation.random(200, random_state=1).as_matrix(), half, [np.eye(3)]])
    q = quaternions(R)
    assert q.dtype == np.float32
    assert np.allclose(Rotation.from_quat(q, scalar_first=True).as_matrix(), R, atol=1e-6)


def test_a_ray_meets_the_near_side_of_a_solid():
    box = Solid("a", *solids(one_box())[0][1:3], MIDDLE, (0, 0, 0, 1))
    assert np.allclose(hit(box, np.array([-5.0, 0.1, 0.2]), np.array([1.0, 0, 0])), [-0.5, 0.1, 0.2])
    assert np.allclose(hit(box, np.array([0.3, 9.0, 0.2]), np.array([0, -1.0, 0])), [0.3, 0.5, 0.2])
    assert np.allclose(hit(box, np.array([-5.0, 2.0, 0.0]), np.array([1.0, 0, 0])), 0)  # just missed: its middle


def one_box():
    m = bk.Mechanism()
    m.add_link("a", "ground", bk.Free(), mass=1, inertia=(0.1, 0.1, 0.1),
               visuals=[bk.mechanism.Visual("box", (1.0, 1.0, 1.0), np.zeros(3), np.eye(3))])
    return m


# -- play --------------------------------------------------------------------------------------------------------------


def test_a_turn_is_a_sixtieth_of_a_second_at_the_chosen_speed(stage):
    turns(stage)
    assert stage.source.t == pytest.approx(FRAME)
    stage.ask("speed", 2.0)
    turns(stage)
    assert stage.source.t == pytest.approx(3 * FRAME)
    stage.ask("play")
    turns(stage, 3)
    assert stage.source.t == pytest.approx(3 * FRAME)
    stage.ask("speed", 1.0)
    stage.ask("step")
    turns(stage, 3)
    assert stage.source.t == pytest.approx(4 * FRAME)
    assert not stage.playing


def test_reset_begins_anew_and_conditions_are_watched_again():
    sim = bk.Simulation(arms(), v=[3.0, 0, 0, 0])
    fired = []
    sim.when(lambda t, q, v: t - 0.02, lambda sim: fired.append(sim.t), name="later")
    with Stage(sim, port=0) as stage:
        turns(stage, 4)
        moved = sim.q.copy()
        stage.ask("reset")
        stage.ask("play")
        turns(stage)
        assert sim.t == 0
        assert np.array_equal(sim.v, [3.0, 0, 0, 0])
        stage.ask("play")
        turns(stage, 4)
        assert np.allclose(sim.q, moved, atol=1e-6)
    assert len(fired) == 2


def test_scrubbing_shows_what_was_recorded_and_play_goes_on_from_the_present(stage):
    sim = stage.source.simulation
    sim.set_state(q=[1.0, 0, 0, 0])
    turns(stage, 30)
    now, then = sim.t, 10 * FRAME
    stage.ask("scrub", then)
    turns(stage)
    _, q, _ = sim.trajectory.sample([then])[0]
    shown, expected = stage.source.shown()[1], q
    assert np.array_equal(shown, expected)
    assert sim.t == now
    stage.ask("scrub", 1e9)  # beyond the record
    turns(stage)
    assert np.allclose(stage.source.shown()[1], sim.q)
    stage.ask("play")
    turns(stage)
    assert sim.t > now


def test_a_run_that_fails_pauses_and_says_why():
    def fails(t, q, v):
        if t > 0.03:
            raise ValueError("the battery is empty")
        return np.zeros(4)

    with Stage(bk.Simulation(arms(), actuation=fails), port=0) as stage:
        turns(stage, 6)
        assert not stage.playing
        assert "battery is empty" in stage.panel.message or "actuation" in stage.panel.message


def test_a_recording_is_played_and_pauses_at_its_end():
    trajectory = bk.Simulation(arms(), q=[1.0, 0, 0, 0]).run(0.1)
    with Stage(trajectory, port=0) as stage:
        turns(stage, 10)
        assert not stage.playing
        assert stage.source.t == 0.1
        stage.ask("play")
        turns(stage)
        assert stage.source.t == pytest.approx(FRAME)
        stage.ask("scrub", 0.05)
        stage.ask("click", 0, 0, (0, 0, 0), (1, 0, 0))  # nothing to take in hand here
        stage.ask("grab", 1, 0, 0, (0, 0, 0))
        turns(stage)
        assert np.array_equal(stage.source.shown()[1], trajectory.sample([0.05])[0][1])


# -- hands -------------------------------------------------------------------------------------------------------------


def tip(sim, link="lower0"):
    rotation, position = bk.poses(sim.mechanism, sim.q)[link]
    return position + rotation @ (0, 0, -0.5)


def test_dragging_pulls_the_point_that_was_grabbed_and_dropping_lets_go(stage):
    sim = stage.source.simulation
    target = (0.4, 0.0, 0.75)
    stage.ask("grab", 7, *place(stage, "lower0"), tuple(tip(sim)))
    stage.ask("drag", 7, target)
    before = np.linalg.norm(tip(sim) - target)
    turns(stage, 60)
    assert np.linalg.norm(tip(sim) - target) < 0.3 * before
    assert np.abs(tip(sim, "lower1")[0]) < 1e-6  # the other arm hangs as before
    stage.ask("drag", 8, (-1.0, 0, 0))           # from a client that holds nothing
    stage.ask("drop", 8)
    turns(stage)
    assert "lower0" in sim._running.acting.pulls
    stage.ask("drop", 7, target)
    turns(stage, 25)
    assert not sim._running.acting.pulls
    assert np.linalg.norm(tip(sim) - target) > 0.05


def test_two_clicks_connect_where_the_links_are_and_undo_takes_it_back(stage):
    sim = stage.source.simulation
    turns(stage, 2)
    before = sim.mechanism, sim.q.copy()
    stage.ask("mode", CONNECT)
    stage.ask("joint", "Fixed")
    stage.ask("click", *place(stage, "lower0"), *from_front(stage, "lower0"))
    stage.ask("play")
    turns(stage)
    assert stage.hands.first == "lower0"
    stage.ask("click", *place(stage, "lower1"), *from_front(stage, "lower1"))
    turns(stage)
    (connection,) = sim.mechanism.connections.values()
    assert isinstance(connection.joint, bk.Fixed)
    assert connection.position_b[0] < 0   # on the side that was clicked
    assert connection.position_b[2] == pytest.approx(-0.25)
    assert np.allclose(sim.q, before[1])
    stage.ask("undo")
    stage.ask("undo")  # nothing more: says so
    turns(stage)
    assert not sim.mechanism.connections
    assert np.array_equal(sim.q, before[1])
    assert "nothing to undo" in stage.panel.message


def test_the_same_link_twice_is_held_to_the_ground_with_axes_of_the_world(stage):
    sim = stage.source.simulation
    stage.ask("mode", CONNECT)
    stage.ask("joint", "Revolute y")
    for _ in range(2):
        stage.ask("click", *place(stage, "lower0"), *from_front(stage, "lower0"))
    turns(stage, 30)
    (connection,) = sim.mechanism.connections.values()
    assert connection.link_a == -1
    assert np.allclose(bk.poses(sim.mechanism, sim.q)["lower0"][0] @ connection.rotation_b, connection.rotation_a)
    assert np.abs(sim.q[:2]).max() < 1e-6  # two hinges and a third: nothing moves


def test_a_click_on_a_mark_cuts_a_joint_and_undo_hangs_it_up_again(stage):
    sim = stage.source.simulation
    stage.ask("mode", CUT)
    turns(stage)
    assert stage.drawing.marks == ["upper0", "lower0", "upper1", "lower1"]
    stage.ask("mark", stage.drawing.marks.index("lower0"))
    turns(stage, 30)
    assert sim.mechanism.nq == 4 - 1 + 7
    fallen = 0.5 * GRAVITY * (sim.t - FRAME) ** 2
    assert bk.poses(sim.mechanism, sim.q)["lower0"][1][2] == pytest.approx(1.0 - fallen, abs=1e-3)
    assert stage.drawing.marks == ["upper0", "upper1", "lower1"]  # it hangs from nothing now
    stage.ask("undo")
    turns(stage)
    assert sim.mechanism.nq == 4


def test_connections_are_cut_by_their_marks_only_when_that_is_chosen(stage):
    sim = stage.source.simulation
    sim.connect("lower0", "lower1", bk.Spherical(), name="grip")
    turns(stage)
    assert stage.drawing.marks == ["grip"]
    stage.ask("mark", 0)
    turns(stage)
    assert "grip" in sim.mechanism.connections
    stage.ask("mode", CUT)
    stage.ask("mark", 0)
    turns(stage)
    assert not sim.mechanism.connections


@pytest.mark.parametrize("request_", [("grab", 1, 99, 0, (0, 0, 0)), ("grab", 1, 0, -5, (0, 0, 0)), ("mark", 77),
                                      ("click", 9, 9, (0, 0, 0), (1, 0, 0)), ("drag", 1, (np.nan, 0, 0)),
                                      ("mode", "dance"), ("joint", "Glue"), ("speed", 1e99), ("show", "nothing", True),
                                      ("guide", "absent", (0, 0, 0), (0, 0, 0, 0))])
def test_requests_that_make_no_sense_change_nothing(stage, request_):
    stage.ask(*request_)
    stage.ask("speed", 1.0)
    turns(stage, 2)
    assert stage.source.t == pytest.approx(2 * FRAME)
    assert stage.source.mechanism.nq == 4


def test_more_requests_than_anybody_makes_are_not_heard(stage):
    for _ in range(100_000):
        stage.ask("speed", 1.0)
    assert stage.waiting <= 1000
    turns(stage)
    assert stage.waiting == 0


# -- shown -------------------------------------------------------------------------------------------------------------


def test_arrows_are_the_forces_in_the_joints(stage):
    sim = stage.source.simulation
    arrows = stage.drawing.forces(sim.mechanism, sim.q, sim.v)
    forces = bk.joint_forces(sim.mechanism, sim.q, sim.v, np.zeros(4))
    assert len(arrows) == 4
    lengths = np.linalg.norm(arrows[:, 1] - arrows[:, 0], axis=1)
    expected = [np.linalg.norm(forces[name][:3]) for name in ("upper0", "lower0", "upper1", "lower1")]
    assert np.allclose(lengths / lengths[0], np.array(expected) / expected[0])
    assert np.allclose(arrows[1, 0], (0, 0, 1.0))


def test_arrows_count_pulls_and_prescribed_motion():
    m = arms(1)
    still = bk.Guide([0.3])
    sim = bk.Simulation(m, q=[0.3, -0.3], prescribed={"upper0": still})
    sim.pull("lower0", (0, 0, -0.5), (1.0, 0.0, 0.5), stiffness=10.0, damping=0.0)
    with Stage(sim, port=0) as stage:
        acting = stage.source.acting(sim.mechanism, sim.q, sim.v)
        reach = np.array([1.0, 0.0, 0.5]) - tip(sim)
        assert np.allclose(acting["external"]["lower0"][:3], 10.0 * reach)
        a = bk.forward_dynamics(m, sim.q, sim.v, **acting)
        assert a[0] == pytest.approx(0.0, abs=1e-9)  # it stays where it is


def test_everything_can_be_shown_and_hidden(stage):
    sim = stage.source.simulation
    sim.connect("lower0", "lower1", bk.Spherical(), name="grip")
    for name in (FORCES, WORKERS, LOOPS):
        for on in (True, False):
            stage.ask("show", name, on)
            turns(stage)
    assert stage.drawing.marks == []
    assert stage.source.t == pytest.approx(6 * FRAME)


def test_a_guide_goes_where_its_gizmo_is_put():
    m = bk.Mechanism()
    m.add_link("suspension", "ground", bk.Free(), mass=1.0, inertia=(0.01, 0.01, 0.01))
    m.add_link("pendulum", "suspension", bk.Revolute((0, 1, 0), damping=0.1), mass=1.0, com=(0, 0, -0.4),
               inertia=(0.01, 0.01, 0.01))
    with Stage(bk.Simulation(m, prescribed={"suspension": bk.Guide(m.neutral()[:7])}), port=0) as stage:
        assert list(stage.hands.guides) == ["suspension"]
        stage.ask("guide", "suspension", (0.2, 0.1, 0.3), (1.0, 0.0, 0.0, 0.0))
        turns(stage, 60)
        assert np.allclose(stage.source.state[0][:3], (0.2, 0.1, 0.3), atol=1e-3)


# -- open and close ----------------------------------------------------------------------------------------------------


def test_bk_view_is_a_function_and_a_package():
    sim = bk.Simulation(arms())
    stage = bk.view(sim, block=False, browser=False, port=0)
    try:
        assert "iframe" in stage._repr_html_()
        assert stage.url in stage._repr_html_()
        assert bk.view.filmstrip
    finally:
        stage.close()
    t = sim.t
    sim.advance(t + 0.01)  # it is ours again


def test_a_port_in_use_is_said_in_one_line(stage):
    with pytest.raises(ViewerError, match=rf"port {stage.screen.port} .*choose another") as caught:
        Stage(bk.Simulation(arms()), port=stage.screen.port)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", [None, 3, "robot.urdf"])
def test_other_things_are_refused(wrong):
    with pytest.raises(bk.ShapeError, match="Simulation, a Trajectory or a Mechanism"):
        bk.view(wrong)


# -- invalid requests and recordings -----------------------------------------------------------------------------------


def test_requests_that_make_no_sense_are_left_out(stage):
    batch, instance = place(stage, "lower0")
    for request in (("scrub", float("nan")), ("scrub", float("inf")), ("speed", float("nan")), ("scrub", "soon"),
                    ("grab", 1, batch, instance, (0.0, 0.0)), ("grab", 1, batch, instance, ("a", "b", "c")),
                    ("grab", 1, "a", instance, (0, 0, 0)), ("grab", 1, batch, 10**9, (0, 0, 0))):
        stage.ask(*request)
        turns(stage)
    before = stage.source.t
    turns(stage)
    assert stage.source.t > before


def test_a_recording_with_a_gap_plays_and_scrubs():
    sim = bk.Simulation(arms(1), [0.5, 0.0])
    sim.advance(0.1)
    held = sim.q.copy()
    sim.set_state(t=0.5)
    sim.advance(0.6)
    for what in (sim.trajectory, sim):
        with Stage(what, port=0) as stage:
            stage.ask("scrub", 0.3)
            turns(stage)
            assert np.array_equal(stage.source.shown()[1], held)  # the last that is known
            turns(stage, 3)


def test_what_is_no_longer_recorded_cannot_be_scrubbed_to():
    sim = bk.Simulation(arms(1), [0.5, 0.0], record=0.1)
    sim.advance(1.0)
    with Stage(sim, port=0, playing=False) as stage:
        stage.ask("scrub", 0.0)
        turns(stage)
        assert np.array_equal(stage.source.shown()[1], sim.trajectory.q[0])


def test_a_hand_lets_go_of_its_own_link_only(stage):
    sim = stage.source.simulation
    sim.pull("upper1", (0, 0, 0), (0, 0, 1))
    stage.ask("grab", 1, *place(stage, "lower0"), (0.0, 0.0, 0.75))
    stage.ask("drag", 1, (0.3, 0.0, 0.75))
    turns(stage)
    assert set(sim._running.acting.pulls) == {"upper1", "lower0"}
    stage.ask("drop", 1)
    turns(stage)
    assert set(sim._running.acting.pulls) == {"upper1"}


def test_a_simulation_that_crawls_lets_requests_in():
    sim = bk.Simulation(arms(1), [0.5, 0.0], max_step=1e-8)  # hours for a frame
    stage = Stage(sim, port=0).start()
    stage.drawing.frames = 2  # as if a client had drawn it
    time.sleep(0.5)
    begin = time.perf_counter()
    stage.close()
    assert time.perf_counter() - begin < 60.0
    assert 0.0 < sim.t < 0.5
