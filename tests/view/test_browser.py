"""The viewer in a real browser: Chromium with software GL, driven by Playwright. Required where CI=true."""

import os
import time
from contextlib import ExitStack

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import bunraku as bk
from browser import browser_page
from bunraku.cli.scenes.byhand import ByHand
from bunraku.envs.reaching_arm import following, hand
from bunraku.view.gestures import CONNECT, CUT, MOVE

if os.environ.get("CI") != "true":
    pytest.importorskip("viser")

SIZE = {"width": 900, "height": 640}
KNOWN = (  # messages on the console that are viser's or Chromium's own
    "THREE.Clock: This module has been deprecated",                       # three.js
    "Unable to preventDefault inside passive event listener invocation",  # viser's camera, while a link is dragged
    "Automatic fallback to software WebGL",
)


class Visit:
    """A page, the stage behind it, and a mouse that knows where links are."""

    def __init__(self, page, stage):
        self.page, self.stage = page, stage
        self.page.goto(self.stage.url)
        self.page.get_by_text("Hands").wait_for(timeout=60_000)
        self.until(lambda: self.stage.screen.watched)
        self.page.wait_for_timeout(1500)  # until it has drawn what it got

    def until(self, condition, seconds=30.0):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if condition():
                return
            self.page.wait_for_timeout(20)  # the page's events need this thread
        raise AssertionError("did not happen")

    def place(self, link, point=(0.0, 0.0, 0.0)):
        """A point of a link in the world."""
        source = self.stage.source
        rotation, position = bk.poses(source.mechanism, source.state[0])[link]
        return position + rotation @ point

    def pixel(self, point):
        """Where a point of the world is on the page."""
        (client,) = self.stage.screen._server.get_clients().values()
        camera = client.camera
        seen = Rotation.from_quat(camera.wxyz, scalar_first=True).inv().apply(point - camera.position)
        focal = 0.5 * SIZE["height"] / np.tan(0.5 * camera.fov)
        return 0.5 * SIZE["width"] + focal * seen[0] / seen[2], 0.5 * SIZE["height"] + focal * seen[1] / seen[2]

    def click(self, point):
        self.page.mouse.move(*self.pixel(point))
        self.page.wait_for_timeout(300)
        self.page.mouse.down()
        self.page.wait_for_timeout(60)
        self.page.mouse.up()

    def choose(self, control, option):
        """An option of a list."""
        self.page.get_by_role("combobox", name=control).click()
        self.page.get_by_role("option", name=option, exact=True).click()

    def picture(self):
        return self.page.screenshot(clip={"x": 0, "y": 0, "width": 560, "height": SIZE["height"]})


@pytest.fixture
def visit():
    """A function that opens the viewer of a simulation."""
    with ExitStack() as stack:
        said: list[str] = []

        def visit(simulation, **settings):
            page = stack.enter_context(browser_page(errors=said, **SIZE))
            stage = stack.enter_context(bk.view(simulation, block=False, browser=False, port=0, **settings))
            return Visit(page, stage)

        yield visit
    strange = [text for text in said if not any(known in text for known in KNOWN)]
    assert not strange, strange


def arms():
    """Two arms of two links each, side by side along y; they hang still."""
    m = bk.Mechanism(name="arms")
    for k in range(2):
        for name, parent, at in (("upper", "ground", (0, 0.5 * k, 1.0)), ("lower", f"upper{k}", (0, 0, -0.5))):
            m.add_link(f"{name}{k}", parent, bk.Spherical(damping=0.3), position=at, mass=1.0, com=(0, 0, -0.25),
                       inertia=(0.02, 0.02, 0.005))
    return m


MIDDLE = (0.0, 0.0, -0.25)


def test_the_page_shows_a_figure_that_moves_and_pause_stops_it(visit):
    q = arms().neutral()
    q[:4] = np.cos(0.5), 0.0, np.sin(0.5), 0.0
    v = visit(bk.Simulation(arms(), q=q))
    first = v.picture()
    v.page.wait_for_timeout(700)
    assert v.picture() != first
    v.page.get_by_text("Pause", exact=True).click()
    v.until(lambda: not v.stage.playing)
    v.page.wait_for_timeout(1500)
    still = v.picture()
    v.page.wait_for_timeout(500)
    assert v.picture() == still
    t = v.stage.source.t
    v.page.get_by_text("Step", exact=True).click()
    v.until(lambda: v.stage.source.t > t)


def test_dragging_moves_a_link_towards_the_pointer_and_releasing_lets_go(visit):
    v = visit(bk.Simulation(arms()))
    sim = v.stage.source.simulation
    mouse, before = v.page.mouse, v.place("lower1", MIDDLE)
    x, y = v.pixel(before)
    mouse.move(x, y)
    v.page.wait_for_timeout(300)
    mouse.down()
    for k in range(1, 11):
        mouse.move(x + 9 * k, y - 3 * k)
        v.page.wait_for_timeout(30)
    v.until(lambda: "lower1" in sim._running.acting.pulls)
    pointer = np.array([x + 90, y - 30])
    far = np.linalg.norm(pointer - (x, y))
    v.until(lambda: np.linalg.norm(pointer - v.pixel(v.place("lower1", MIDDLE))) < 0.5 * far)
    mouse.up()
    v.until(lambda: not sim._running.acting.pulls)
    v.until(lambda: np.linalg.norm(pointer - v.pixel(v.place("lower1", MIDDLE))) > 0.8 * far)


def test_clicking_two_links_connects_them_and_clicking_a_mark_cuts(visit):
    v = visit(bk.Simulation(arms()))
    sim = v.stage.source.simulation
    v.choose("click", CONNECT)
    v.until(lambda: v.stage.hands.mode == CONNECT)
    v.click(v.place("lower0", MIDDLE))
    v.until(lambda: v.stage.hands.first == "lower0")
    v.click(v.place("lower1", MIDDLE))
    v.until(lambda: sim.mechanism.connections)
    (connection,) = sim.mechanism.connections.values()
    assert {connection.link_a, connection.link_b} == {1, 3}
    v.page.get_by_text("are connected", exact=False).wait_for()

    v.choose("click", CUT)
    v.until(lambda: v.stage.hands.mode == CUT and len(v.stage.drawing.marks) == 5)
    v.page.wait_for_timeout(1000)
    v.click(v.place("lower0"))  # the elbow
    v.until(lambda: sim.mechanism.nq > 16)
    assert isinstance(sim.mechanism.joint("lower0"), bk.Free)
    v.page.get_by_text("is cut", exact=False).wait_for()

    v.page.get_by_text("Undo", exact=True).click()
    v.until(lambda: sim.mechanism.nq == 16)
    v.page.get_by_text("Undo", exact=True).click()
    v.until(lambda: not sim.mechanism.connections)


# -- six degrees of freedom --------------------------------------------------------------------------------------------


def box(name="box"):
    m = bk.Mechanism(gravity=(0, 0, 0), name=name)
    m.add_link("box", joint=bk.Free(), mass=1.0, inertia=(0.02, 0.02, 0.02))
    return m


class Device:
    """A gamepad or 3-D mouse that exists only for the scripts of a page."""

    def __init__(self, visit, mapping="", axes=6):
        self.page = visit.page
        self.page.evaluate("""([mapping, n]) => {
            window.pad = {id: "Test device", index: 0, connected: true, mapping, axes: Array(n).fill(0),
                          buttons: Array.from({length: 17}, () => ({pressed: false, touched: false, value: 0}))};
            navigator.getGamepads = () => [window.pad, null, null, null];
            const event = new Event("gamepadconnected");
            event.gamepad = window.pad;
            window.dispatchEvent(event);
        }""", [mapping, axes])

    def axes(self, *values):
        self.page.evaluate("values => { window.pad.axes = values }", list(values))

    def press(self, button, value=1.0):
        self.page.evaluate("([k, value]) => { window.pad.buttons[k].value = value }", [button, value])

    def unplug(self):
        self.page.evaluate("""() => {
            navigator.getGamepads = () => [null, null, null, null];
            window.dispatchEvent(new Event("gamepaddisconnected"));
        }""")


def turned(stage):
    return Rotation.from_quat(stage.source.state[0][3:7], scalar_first=True).as_rotvec()


def right_and_away(visit):
    """Horizontal directions of the camera."""
    (client,) = visit.stage.screen._server.get_clients().values()
    away = (client.camera.look_at - client.camera.position) * (1, 1, 0)
    away /= np.linalg.norm(away)
    return np.array([away[1], -away[0], 0.0]), away


def test_a_3d_mouse_moves_and_turns_the_link_that_is_held(visit):
    v = visit(bk.Simulation(box()))
    stage, sim = v.stage, v.stage.source.simulation
    v.choose("click", MOVE)
    v.until(lambda: stage.hands.mode == MOVE)
    v.click(v.place("box"))
    v.until(lambda: stage.hands.hold is not None)
    device = Device(v)
    v.page.get_by_text("Test device", exact=False).wait_for()
    device.axes(0.1, -0.11, 0.05, 0.1, -0.1, 0.08)  # noise of a device at rest
    v.until(lambda: stage.hands._steering)
    v.page.wait_for_timeout(500)
    assert np.abs(sim.q[:3]).max() < 1e-9
    assert np.abs(turned(stage)).max() < 1e-9

    device.axes(1.0, 0, 0, 0, 0, 0)
    v.until(lambda: np.linalg.norm(sim.q[:3]) > 0.1 * stage.drawing.reach)
    device.axes(0, 0, 0, 0, 0, 0)
    right, _ = right_and_away(v)
    assert np.allclose(sim.q[:3] / np.linalg.norm(sim.q[:3]), right, atol=1e-6)
    assert np.abs(turned(stage)).max() < 1e-9
    device.axes(0, 0, 0, 0, 0, -1.0)  # 3Dconnexion's z points down
    v.until(lambda: turned(stage)[2] > 0.4)
    assert np.abs(turned(stage)[:2]).max() < 1e-6

    device.unplug()  # while it is turned
    v.page.get_by_text("is connected any more", exact=False).wait_for()
    v.page.wait_for_timeout(300)
    target = stage.hands.hold.position.copy(), stage.hands.hold.rotation.as_rotvec()
    v.until(lambda: np.allclose(turned(stage), target[1], atol=2e-3))
    v.page.wait_for_timeout(500)
    assert np.array_equal(stage.hands.hold.position, target[0])
    assert np.array_equal(stage.hands.hold.rotation.as_rotvec(), target[1])
    assert np.allclose(sim.q[:3], target[0], atol=2e-3)


def test_a_gamepad_moves_and_turns_the_suspension_of_a_mobile(visit):
    sim = ByHand().live()
    v = visit(sim)
    device = Device(v, mapping="standard", axes=4)
    device.axes(0, -1.0, 0, 0)  # left stick forward
    device.press(7)             # right trigger
    v.until(lambda: sim.q[2] > 0.1 * v.stage.drawing.reach)
    _, away = right_and_away(v)
    device.axes(0, 0, -1.0, 0)  # right stick to the left
    device.press(7, 0.0)
    there = sim.q[:3].copy()
    assert there @ away > 0.05 * v.stage.drawing.reach
    v.until(lambda: turned(v.stage)[2] > 0.4)
    device.unplug()
    v.until(lambda: np.abs(sim.v[:6]).max() < 1e-2)
    assert np.abs(sim.v[6:]).max() > 0.05  # the mobile swings


def test_the_handles_of_the_gizmo_move_and_turn_a_link(visit):
    v = visit(bk.Simulation(box()))
    stage, sim, mouse = v.stage, v.stage.source.simulation, v.page.mouse
    v.choose("click", MOVE)
    v.until(lambda: stage.hands.mode == MOVE)
    v.click(v.place("box"))
    v.until(lambda: stage.hands.hold is not None)
    v.page.wait_for_timeout(1500)
    v.page.mouse.move(5, 300)  # off the link
    size = stage.screen._hand.scale

    def drag(begin, end):
        (x, y), (to_x, to_y) = v.pixel(np.asarray(begin)), v.pixel(np.asarray(end))
        mouse.move(x, y)
        v.page.wait_for_timeout(400)
        mouse.down()
        for k in range(1, 11):
            mouse.move(x + 0.1 * k * (to_x - x), y + 0.1 * k * (to_y - y))
            v.page.wait_for_timeout(40)
        mouse.up()

    drag((0, 0, 0.9 * size), (0, 0, 0.7 * size))  # the arrow along z
    v.until(lambda: abs(sim.q[2] + 0.2 * size) < 0.05 * size)
    assert np.abs(sim.q[:2]).max() < 1e-6
    assert np.abs(turned(stage)).max() < 1e-6
    v.until(lambda: np.abs(sim.v).max() < 1e-3)
    v.page.wait_for_timeout(500)
    begin, end = (0.65 * size * np.array([np.cos(a), np.sin(a), sim.q[2] / (0.65 * size)]) for a in (0.6, 1.1))
    drag(begin, end)  # the arc about z
    v.until(lambda: abs(turned(stage)[2] - 0.5) < 0.15)
    assert np.abs(turned(stage)[:2]).max() < 1e-6


def test_the_page_for_other_machines_opens_with_its_token(visit):
    v = visit(bk.Simulation(arms()), host="127.0.0.2")  # no name of loopback: treated as any other address
    assert "token=" in v.stage.url
    assert v.page.evaluate("document.cookie") == ""  # not for scripts


def test_an_arm_follows_a_target_that_is_dragged(visit):
    sim = following()
    v = visit(sim)
    away = lambda: np.linalg.norm(hand(sim.q[:3]) - sim.q[3:6])  # noqa: E731
    v.until(lambda: away() < 0.05)
    mouse, before = v.page.mouse, sim.q[3:6].copy()
    size = v.stage.screen._gizmos["target"].scale
    begin, end = (v.pixel(before + np.array([0.0, 0.0, part * size])) for part in (0.9, 0.5))  # the arrow along z
    mouse.move(*begin)
    v.page.wait_for_timeout(400)
    mouse.down()
    for k in range(1, 11):
        mouse.move(*(np.array(begin) + 0.1 * k * (np.array(end) - begin)))
        v.page.wait_for_timeout(40)
    mouse.up()
    v.until(lambda: sim.q[5] < before[2] - 0.2 * size)
    np.testing.assert_allclose(sim.q[3:5], before[:2], atol=1e-3)
    v.until(lambda: away() < 0.05)
    assert hand(sim.q[:3])[2] < before[2] - 0.1 * size
