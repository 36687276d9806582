"""Net wrenches and centres of pressure of contacts, and contacts in tables and recordings."""

import json

import numpy as np
import pytest

import bunraku as bk
from bunraku.cli import main
from bunraku.evaluate.contact_resultants import resultants
from bunraku.simulation.records.data_frame import write_csv
from bunraku.view.plots import plot

G = 9.81


def crate(push=0.0, speed=0.0, name="crate"):
    m = bk.Mechanism()
    m.add_link(name, joint=bk.Free(), mass=2.0, inertia=(0.02, 0.02, 0.02))
    m.add_shape(name, bk.Box(0.2, 0.2, 0.2), friction=0.3)
    m.add_plane(friction=0.3, name="floor")
    q, v = m.neutral(), np.zeros(6)
    q[2], v[0] = 0.1, speed
    return m, q, v


def test_the_centre_of_pressure_of_a_pushed_crate_is_where_moments_balance():
    """A force F at the height h moves it by F h / (m g), into the direction of the force."""
    m, q, v = crate()
    for push, height in ((2.0, 0.05), (4.0, 0.1)):
        r = bk.dynamics(m, q, v, external={"crate": (push, 0, 0, 0, push * (height - 0.1), 0)})
        total = r.contacts.resultants["crate", "ground"]
        assert total.mode == "sticking"
        assert np.abs(total.center_of_pressure - [push * height / (2 * G), 0, 0]).max() < 1e-12
        assert np.abs(total.force - [-push, 0, 2 * G]).max() < 1e-10
        assert abs(total.normal_force - 2 * G) < 1e-10
        assert np.abs(total.friction - [-push, 0, 0]).max() < 1e-10
        assert np.abs(total.moment).max() < 1e-12
        at = np.array([0.3, -0.2, 0.7])
        whole = sum(np.cross(c.point - at, c.force) for c in r.contacts)
        assert np.abs(total.moment_about(at) - whole).max() < 1e-10


def test_the_tangential_moment_vanishes_there_for_any_forces_and_the_order_of_links_does_not_matter():
    rng = np.random.default_rng(1)
    for _ in range(20):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        contacts = []
        for k in range(4):
            n = turn @ np.array([*0.2 * rng.normal(size=2), 1.0])
            n /= np.linalg.norm(n)
            sign = (-1.0) ** k
            force = sign * (rng.uniform(0.1, 2.0) * n + 0.1 * np.cross(n, rng.normal(size=3)))
            names = ("a", "b")[::int(sign)]
            contacts.append(bk.evaluate.Contact(names, names, rng.normal(size=3), sign * n, 0.0, 0.5, 0.0, force,
                                                "sticking"))
        (total,) = resultants(contacts).values()
        whole = sum(np.cross(c.point - total.center_of_pressure, c.force) * (1 if c.links[0] == "a" else -1)
                    for c in contacts)
        assert np.abs(whole - total.normal * (total.normal @ whole)).max() < 1e-12
        assert np.abs(whole - total.moment).max() < 1e-12


def test_a_contact_without_load_has_no_centre_of_pressure():
    m, q, v = crate()
    (total,) = bk.dynamics(m, q, v, external={"crate": (0, 0, 50.0, 0, 0, 0)}).contacts.resultants.values()
    assert total.center_of_pressure is None
    assert total.normal_force == 0.0
    assert total.mode == "open"
    with pytest.raises(bk.ModelError, match="geometry"):
        _ = bk.contacts(m, q).resultants


@pytest.fixture(scope="module", params=[{}, {"solver": "symplectic_euler", "step": 0.002}], ids=["events", "steps"])
def sliding(request):
    return bk.Simulation(*crate(speed=1.0), **request.param).run(0.5)


def test_a_frame_has_contacts_by_pair(sliding):
    pytest.importorskip("pandas")
    frame = sliding.to_frame(contacts=True)
    assert list(sliding.to_frame()) == [name for name in frame if " - " not in name]
    stops = 1.0 / (0.3 * G)
    slides = (frame.index > 0.01) & (frame.index < stops - 0.01)
    assert np.abs(frame["crate - floor.normal"][slides] - 2 * G).max() < 1e-6
    assert np.abs(frame["crate - floor.friction"][slides] - 0.6 * G).max() < 1e-6
    assert (frame["crate - floor.mode"][slides] == 2).all()
    assert (frame["crate - floor.mode"][frame.index > stops + 0.01] == 1).all()
    assert np.abs(frame["crate - floor.x"] - frame["crate.x"] - np.where(slides, 0.3 * 0.1, 0.0))[slides].max() < 1e-6


def test_pairs_that_are_apart_have_no_columns_and_gaps_in_those_they_have(tmp_path):
    pytest.importorskip("pandas")
    m, q, v = crate()
    q[2] = 0.3
    falling = bk.Simulation(m, q, v, solver="symplectic_euler", step=0.002).run(0.1)
    assert not [name for name in falling.to_frame(contacts=True) if " - " in name]
    landed = bk.Simulation(m, q, v, solver="symplectic_euler", step=0.002).run(0.4).to_frame(contacts=True)
    assert landed["crate - floor.normal"].isna()[landed.index < 0.15].all()
    assert landed["crate - floor.normal"].notna()[landed.index > 0.3].all()
    path = write_csv(falling, tmp_path / "a.csv", contacts=True)
    assert " - " not in path.read_text()


def test_exports_have_contacts(sliding, tmp_path):
    pytest.importorskip("mcap")
    recording = sliding.save(tmp_path / "a.mcap")
    assert main(["export", str(recording), "--to", str(tmp_path / "a.csv"), "--contacts"]) == 0
    header = (tmp_path / "a.csv").read_text().splitlines()[0]
    assert "crate - floor.normal,crate - floor.friction,crate - floor.mode" in header
    assert main(["export", str(recording), "--to", str(tmp_path / "b.mcap"), "--contacts"]) == 0
    from mcap.reader import make_reader

    with open(tmp_path / "b.mcap", "rb") as file:
        said = [json.loads(message.data) for _, _, message in make_reader(file).iter_messages(topics="/contact")]
    assert len(said) == len(sliding.t)
    (first,) = said[len(said) // 10]["contacts"]
    assert first["pair"] == ["crate", "floor"]
    assert first["mode"] == "sliding"
    assert abs(first["normal"] - 2 * G) < 1e-6
    again = bk.load_trajectory(tmp_path / "b.mcap")
    assert np.array_equal(again.q, sliding.q)
    with open(recording, "rb") as file:
        assert not list(make_reader(file).iter_messages(topics="/contact"))


def test_the_plot_of_the_centre_of_pressure(sliding, tmp_path):
    x, y, z = plot(sliding, tmp_path / "a.png", ["pressure"])
    t, place = x.curves["crate - ground"]
    assert np.nanmax(np.abs(z.curves["crate - ground"][1])) < 1e-9
    assert np.nanmax(np.abs(y.curves["crate - ground"][1])) < 1e-9
    moved = np.interp(t, sliding.t, sliding.q[:, 0])
    assert abs((place - moved)[len(t) // 4] - 0.03) < 1e-4
