"""Planes and contact forces in pictures, replays and the viewer: where they are, as long as they are, or refused."""

import numpy as np
import pytest
from PIL import Image

import bunraku as bk
from browser import browser_page
from bunraku.view import Camera, Figure, filmstrip, replay_html, solids
from bunraku.view.contact_drawing import LONGEST, SLIDES, STICKS, WEIGHT, arrows, floor_height, patches, vector
from bunraku.view.figure import FIXTURE
from bunraku.view.film import film
from bunraku.view.solids import rgba
from sliding import FRICTION, GRAVITY, MASS, crate, driven, dropped


@pytest.fixture(scope="module")
def sliding():
    m = crate()
    return bk.Simulation(m, *dropped(m)).run(0.5)


def pixels(path, colour, near=12):
    """How many pixels of a picture have a colour, about."""
    wanted = 255 * np.array(rgba(colour)[:3])
    with Image.open(path) as picture:
        return int((np.abs(np.asarray(picture.convert("RGB"), float) - wanted).max(axis=-1) < near).sum())


def test_an_arrow_is_the_total_force_of_a_pair_at_its_centre_of_pressure(sliding):
    (arrow,) = arrows(sliding.contacts(0.2))
    assert arrow.pair == ("crate", "floor")
    assert arrow.sliding
    np.testing.assert_allclose(arrow.force, [-FRICTION * MASS * GRAVITY, 0, MASS * GRAVITY], atol=1e-6)
    ((m, q, _),) = sliding.sample([0.2])
    # moments about the middle: the force passes through it
    assert np.cross(arrow.point - q[:3], arrow.force) == pytest.approx(np.zeros(3), abs=0.02 * MASS * GRAVITY)


def test_the_weight_has_a_length_and_impacts_are_shortened():
    m = crate()
    weight = np.array([0, 0, MASS * GRAVITY])
    np.testing.assert_allclose(vector(weight, m, 2.0), [0, 0, 2.0 * WEIGHT])
    assert np.linalg.norm(vector(1000 * weight, m, 2.0)) == pytest.approx(2.0 * WEIGHT * LONGEST)
    assert not vector(1e-6 * weight, m, 2.0).any()


@pytest.mark.parametrize("normal", [(0, 0, 1), (0.5, 0, 1), (1, 0, 0)])
def test_planes_are_below_the_figure(normal):
    m = crate(normal=normal)
    n, q = np.array(normal, float) / np.linalg.norm(normal), m.neutral()
    q[:3] = (0.3, 0.2, 0.4)
    (patch,) = patches(Figure(m), q, 3.0)
    assert n @ patch.middle == pytest.approx(0.0, abs=1e-12)  # in the plane
    np.testing.assert_allclose(np.cross(q[:3] - patch.middle, n), 0, atol=1e-12)
    assert patch.outline(Camera(), 0.5, 0.2).shape == (4, 2)
    assert patches(Figure(m), q, 1e-3) == []


def test_the_floor_is_the_level_plane_and_others_are_slabs():
    assert floor_height(crate()) == 0.0
    assert [s.link for s in solids(crate())] == ["crate"]
    ramp = crate(normal=(0.5, 0, 1))
    ramp.add_shape("ground", bk.Sphere(0.1), position=(1, 0, 0), name="stone")
    assert floor_height(ramp) is None
    _, stone, slab = solids(ramp)
    assert stone.link == slab.link == "ground"
    assert stone.side == slab.side == FIXTURE
    np.testing.assert_allclose(np.linalg.norm(stone.vertices - (1, 0, 0), axis=1), 0.1)
    n = np.array([0.5, 0, 1]) / np.hypot(0.5, 1)
    assert (slab.vertices @ n).max() == pytest.approx(0.0, abs=1e-12)  # its upper side is the plane


def test_a_thing_by_itself_is_drawn_by_its_shape():
    (box,) = solids(crate())
    np.testing.assert_allclose(np.abs(box.vertices), 0.1)
    assert Figure(crate()).size == pytest.approx(2 * np.sqrt(3) * 0.1)


def test_pictures_have_arrows_in_the_colour_of_the_mode(sliding, tmp_path):
    filmstrip(sliding, tmp_path / "a.png", frames=4)
    filmstrip(sliding, tmp_path / "b.png", frames=4, forces=False)
    assert pixels(tmp_path / "a.png", SLIDES) > 10 * pixels(tmp_path / "b.png", SLIDES) + 100
    film(sliding, tmp_path / "a.gif", fps=5, width=240, progress=False)
    assert pixels(tmp_path / "a.gif", SLIDES) > 20
    m = crate()
    resting = bk.Simulation(m, *dropped(m, speed=0.0), solver="symplectic_euler", step=0.01).run(0.1)
    assert pixels(filmstrip(resting, tmp_path / "c.png", frames=2), STICKS) > 100


def test_forces_that_are_not_known_are_left_out_or_refused(tmp_path):
    _, trajectory = driven()
    filmstrip(trajectory, tmp_path / "a.png", frames=2)
    assert pixels(tmp_path / "a.png", SLIDES) == 0
    for draw, name in ((filmstrip, "b.png"), (replay_html, "b.html"), (film, "b.gif")):
        with pytest.raises(bk.ShapeError, match="torques of the actuators"):
            draw(trajectory, tmp_path / name, forces=True)
        assert not (tmp_path / name).exists()


def test_a_replay_shows_forces_and_floor_where_they_are_and_hides_them(sliding, tmp_path):
    path = replay_html(sliding, tmp_path / "a.html", fps=100)
    with browser_page(offline=True) as page:
        page.goto(f"file://{path}#t=0.2")
        page.evaluate("replay.ready")
        page.wait_for_function("replay.stage.arrows[0][0].visible")
        floor, pairs, colour = page.evaluate("""[replay.motion.floor, replay.motion.pairs,
            '#' + replay.stage.arrows[0][0].material.color.getHexString()]""")
        assert (floor, pairs, colour) == (0, ["crate - floor"], SLIDES)
        tail, tip, length = page.evaluate("""(() => { const [shaft, tip] = replay.stage.arrows[0];
            return [shaft.position.toArray(), tip.position.toArray(), shaft.scale.z + tip.scale.z]; })()""")
        (arrow,) = arrows(sliding.contacts(0.2))
        along = vector(arrow.force, sliding.segments[0].mechanism, Figure(crate()).size)
        np.testing.assert_allclose(tail, arrow.point, atol=1e-4)
        np.testing.assert_allclose(np.cross(np.subtract(tip, tail), along), 0, atol=1e-5)
        assert length == pytest.approx(np.linalg.norm(along), rel=1e-3)
        page.keyboard.press("f")
        page.wait_for_function("!replay.stage.arrows[0][0].visible")
        page.locator("#forces input").click()
        page.wait_for_function("replay.stage.arrows[0][0].visible")


def test_a_replay_without_contact_has_no_box_for_forces(tmp_path):
    path = replay_html(bk.Simulation(bk.models.chain(2), [0.3, 0.1]).run(0.1), tmp_path / "a.html")
    with browser_page(offline=True) as page:
        page.goto(f"file://{path}#t=0")
        page.evaluate("replay.ready")
        assert not page.locator("#forces").is_visible()


# -- viewer ------------------------------------------------------------------------------------------------------------


def test_the_viewer_shows_contact_forces_of_simulations_and_recordings(sliding):
    pytest.importorskip("viser")
    from bunraku.view.drawing import CONTACTS, FORCES
    from bunraku.view.stage import Stage

    m = crate()
    steps = {"solver": "symplectic_euler", "step": 0.002}
    for what in (bk.Simulation(m, *dropped(m)), bk.Simulation(m, *dropped(m), **steps), sliding):
        with Stage(what, port=0) as stage:
            assert stage.drawing.shown[CONTACTS] is False
            for name in (CONTACTS, FORCES):
                stage.ask("show", name, True)
            for _ in range(5):
                stage.turn()
            stage.drawing.frames = 0
            stage.draw()
            sticking, slides = stage.screen._contacts
            assert (sticking.visible, slides.visible) == (False, True)
            tail, tip = slides.points[0]
            assert tail[2] == pytest.approx(0.0, abs=1e-3)
            assert (tip - tail)[0] / (tip - tail)[2] == pytest.approx(-FRICTION, rel=1e-3)
            stage.ask("show", CONTACTS, False)
            stage.turn()
            assert not slides.visible


def test_the_viewer_says_why_forces_of_a_recording_are_not_known():
    pytest.importorskip("viser")
    from bunraku.view.drawing import CONTACTS
    from bunraku.view.stage import Stage

    with Stage(driven()[1], port=0) as stage:
        stage.ask("show", CONTACTS, True)
        stage.turn()
        stage.drawing.frames = 0
        stage.draw()
        assert "torques of the actuators" in stage.panel.message


def test_obstacles_on_the_ground_stay_where_they_are_in_the_viewer():
    pytest.importorskip("viser")
    from bunraku.view.stage import Stage

    m = crate()
    m.add_shape("ground", bk.Sphere(0.1), position=(1, 0, 0), name="stone")
    with Stage(bk.Simulation(m, *dropped(m)), port=0) as stage:
        row = stage.drawing.shapes.rows["ground"]
        stage.turn()
        stage.draw()
        np.testing.assert_array_equal(stage.drawing.positions[row], 0)
        batch, instance = next((b, i) for b, group in enumerate(stage.drawing.shapes.groups)
                               for i, s in enumerate(group) if s.link == "ground")
        stage.ask("grab", 0, batch, instance, (1.0, 0, 0))
        stage.turn()
        assert stage.hands.grip is None
