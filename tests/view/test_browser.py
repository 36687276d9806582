"""The viewer in a real browser: Chromium with software GL, driven by Playwright. Required where CI=true."""

import os
import time
from contextlib import ExitStack

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import bunraku as bk
from browser import browser_page
from bunraku.view.hands import CONNECT, CUT

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
    v.until(lambda: "lower1" in sim._acting.pulls)
    pointer = np.array([x + 90, y - 30])
    far = np.linalg.norm(pointer - (x, y))
    v.until(lambda: np.linalg.norm(pointer - v.pixel(v.place("lower1", MIDDLE))) < 0.5 * far)
    mouse.up()
    v.until(lambda: not sim._acting.pulls)
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


def test_the_page_for_other_machines_opens_with_its_token(visit):
    v = visit(bk.Simulation(arms()), host="127.0.0.2")  # no name of loopback: treated as any other address
    assert "token=" in v.stage.url
    assert v.page.evaluate("document.cookie") == ""  # not for scripts
