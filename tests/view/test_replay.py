"""Replays: one file that plays the motion that was simulated, in a browser without a network."""

import gzip
import html
import json
import re
import struct
from importlib.resources import files

import numpy as np
import pytest

import bunraku as bk
from browser import browser_page
from bunraku.cli.scenes.highbar import HighBar
from bunraku.errors import ShapeError
from bunraku.replay_file import recorded
from bunraku.simulation import Segment, Trajectory
from bunraku.simulation.records.trajectory import Event
from bunraku.view.replay import replay_html, replay_motion, replay_page
from processes import run


def wave(mechanism, t, rng):
    """A smooth motion of all coordinates, at up to 3 Hz."""
    v = sum(rng.normal(size=mechanism.nv) * np.sin(2 * np.pi * f * t[:, None] + rng.uniform(0, 6, mechanism.nv))
            for f in (0.4, 1.1, 3.0))
    q = np.array([mechanism.integrate(mechanism.neutral(), 0.3 * row) for row in v])
    return Segment(mechanism, t, q, np.zeros((len(t), mechanism.nv)))


def grabbing():
    """A pendulum of three links: its last is caught after 0.5 s, its first comes off the ground at 0.8 s, and the catch
    lets go at 0.9 s."""
    m = bk.models.chain(3)
    sim = bk.Simulation(m, q=np.full(3, 0.4))
    sim.run(until=0.5)
    sim.connect("ground", m.link_names[-1], bk.Spherical(), name="catch")
    sim.run(until=0.8)
    sim.cut("link0")
    sim.run(until=0.9)
    sim.cut("catch")
    return sim.run(until=1.0)


def test_ten_seconds_of_a_figure_fit_in_the_limit(tmp_path):
    m = bk.models.human(dof=48)
    motion = Trajectory([wave(m, np.linspace(0, 10, 601), np.random.default_rng(0))])
    assert replay_html(motion, tmp_path / "a.html", fps=60).stat().st_size <= 2_500_000


@pytest.fixture(scope="module")
def packaged(tmp_path_factory):
    path = tmp_path_factory.mktemp("packaged") / "highbar.html"
    path.write_text(recorded("highbar"), "utf-8")
    assert path.stat().st_size <= 2_000_000
    return path


def header(motion):
    (length,) = struct.unpack_from("<I", motion)
    return json.loads(motion[4:4 + length])


def test_the_packaged_motion_is_that_of_the_scene():
    trajectory, _ = HighBar().run()
    now = header(replay_motion(trajectory, title=HighBar.title))
    then = header(gzip.decompress((files("bunraku") / "view" / "data" / "highbar.motion.gz").read_bytes()))
    assert then.keys() == now.keys(), "run tools/record_demo.py"
    for name in ("title", "frames", "fps", "links"):
        assert then[name] == now[name], name
    assert [event["text"] for event in then["events"]] == [event["text"] for event in now["events"]]
    assert [event["t"] for event in then["events"]] == pytest.approx([event["t"] for event in now["events"]], abs=1e-3)
    for old, new in zip(then["energy"], now["energy"], strict=True):
        assert old["name"] == new["name"]
        np.testing.assert_allclose(old["values"], new["values"], atol=0.01 * np.ptp(new["values"]))


def test_the_page_of_a_packaged_motion_needs_no_other_package():
    run("import sys; from bunraku.replay_file import recorded; recorded('highbar')\n"
        "assert not {'numpy', 'numba', 'bunraku.view'} & set(sys.modules)")


def test_the_packaged_replay_plays_from_the_disk_without_a_network(packaged):
    asked = []
    with browser_page(offline=True) as page:
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"file://{packaged}")
        page.evaluate("replay.ready")
        assert page.evaluate("replay.playing")
        first, early = page.locator("#stage").screenshot(), page.evaluate("replay.time")
        page.wait_for_function("replay.time > 0.3")
        second = page.locator("#stage").screenshot()
        page.keyboard.press(" ")
        assert not page.evaluate("replay.playing")
        held = page.evaluate("replay.time")
        page.wait_for_timeout(200)
        assert page.evaluate("replay.time") == held != early  # it may have begun again
        assert "the right hand slips" in page.locator("#events").inner_text()
    assert first != second
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_the_browser_shows_links_where_the_simulation_has_them(tmp_path):
    motion = grabbing()
    path = replay_html(motion, tmp_path / "a.html", fps=100)
    with browser_page(offline=True) as page:
        page.goto(f"file://{path}#t=0")
        page.evaluate("replay.ready")
        for t in (0.0, 0.3, 0.55, 0.9, 1.0):
            page.evaluate(f"replay.seek({t}); replay.stage.pose((replay.time - replay.motion.start) * 100, {t})")
            shown = page.evaluate("""replay.stage.links.map((mesh, i) => [replay.motion.links[i].name,
                mesh.position.toArray(), mesh.matrixWorld.elements])""")
            ((mechanism, q, _),) = motion.sample([t])
            poses = bk.poses(mechanism, q)
            assert [name for name, *_ in shown] == list(poses)
            for name, position, matrix in shown:
                np.testing.assert_allclose(position, poses[name][1], atol=2e-4)
                np.testing.assert_allclose(np.reshape(matrix, (4, 4)).T[:3, :3], poses[name][0], atol=2e-3)


def test_connections_are_seen_while_they_last(tmp_path):
    path = replay_html(grabbing(), tmp_path / "a.html")
    with browser_page(offline=True) as page:
        page.goto(f"file://{path}#t=0")
        page.evaluate("replay.ready")
        seen = []
        for t in (0.45, 0.55, 0.85, 0.95):
            page.evaluate(f"replay.stage.pose({t} * 60, {t})")
            seen.append(page.evaluate("replay.stage.joints.map((joint) => [joint.name, joint.dot.visible])"))
        assert seen == [[["link0", top], ["catch", tip]] for top, tip in ((True, False), (True, True), (False, True),
                                                                          (False, False))]
        assert page.locator("#events li").count() == 3


def test_scrubbing_clicks_and_keys_move_in_time(packaged):
    with browser_page(offline=True) as page:
        page.goto(f"file://{packaged}#t=0.5")
        page.evaluate("replay.ready")
        assert page.evaluate("[replay.time, replay.playing]") == [0.5, False]
        page.keyboard.press("ArrowRight")
        assert page.evaluate("replay.time") == pytest.approx(0.5 + 1 / 60)
        box = page.locator("#line").bounding_box()
        page.mouse.click(box["x"] + 0.75 * box["width"], box["y"] + box["height"] / 2)
        assert page.evaluate("replay.time") == pytest.approx(1.5, abs=0.03)
        page.locator("#events button").first.click()
        assert page.evaluate("replay.time") == pytest.approx(0.65, abs=0.01)
        for playing in (True, False):  # once a press, also where a button has the focus
            page.locator("#play").focus()
            page.keyboard.press(" ")
            assert page.evaluate("replay.playing") == playing
        eye = page.evaluate("replay.stage.camera.position.toArray()")
        page.mouse.move(500, 300)
        page.mouse.down()
        page.mouse.move(600, 320, steps=4)
        page.mouse.up()
        assert page.evaluate("replay.stage.camera.position.toArray()") != eye


def test_names_are_shown_as_text_whatever_they_contain(tmp_path):
    odd = '</script><script>window.broken = 1</script>{{motion}} & "quotes"'
    m = bk.models.chain(2)
    motion = Trajectory([wave(m, np.linspace(0, 0.2, 5), np.random.default_rng(1))], [Event(0.1, odd)])
    path = replay_html(motion, tmp_path / "a.html", title=odd)
    with browser_page(offline=True) as page:
        page.goto(f"file://{path}")
        page.evaluate("replay.ready")
        assert page.evaluate("window.broken") is None
        assert page.locator("h1").inner_text() == page.title() == odd


def test_a_notebook_shows_a_trajectory_as_its_replay():
    motion = grabbing()
    shown = motion._repr_html_()
    (page,) = re.findall(r'srcdoc="([^"]*)"', shown)
    with browser_page(offline=True) as browser:
        browser.set_content(shown)
        frame = browser.frames[1]
        frame.wait_for_function("window.replay && replay.stage")
        assert frame.evaluate("replay.motion.links.length") == 3
    assert html.unescape(page) == replay_page(motion, fps=30)
    assert Trajectory()._repr_html_() is None


def test_what_goes_far_is_followed(tmp_path):
    m = bk.Mechanism()
    m.add_link("stone", joint=bk.Free(), mass=1, inertia=(0.01, 0.01, 0.01))
    sim = bk.Simulation(m, v=[30.0, 0, 0, 0, 1, 0])
    path = replay_html(sim.run(until=2.0), tmp_path / "a.html")
    with browser_page(offline=True) as page:
        page.goto(f"file://{path}#t=0")
        page.evaluate("replay.ready")
        away = []
        for t in (0.0, 2.0):
            page.evaluate(f"replay.stage.pose({t} * 60, {t})")
            away.append(page.evaluate("replay.stage.camera.position.distanceTo(replay.stage.links[0].position)"))
        assert away[1] == pytest.approx(away[0], rel=0.01)


@pytest.mark.parametrize(("motion", "options", "words"), [
    (Trajectory(), {}, "empty"),
    (None, {"fps": 0}, "frames per second"),
    (None, {"fps": "many"}, "fps"),
])
def test_what_cannot_be_replayed_is_refused(tmp_path, motion, options, words):
    if motion is None:
        motion = Trajectory([wave(bk.models.chain(2), np.linspace(0, 1, 5), np.random.default_rng(2))])
    with pytest.raises(ShapeError, match=words):
        replay_html(motion, tmp_path / "a.html", **options)
    assert not (tmp_path / "a.html").exists()
