"""The list of pairs near each other: complete, in order, and without influence on what is computed."""

import pickle

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import bunraku as bk
from bunraku import tolerances
from bunraku.bench.contact_crowds import at_rest
from bunraku.contact import contact_fields as c
from bunraku.evaluate.near_contacts import near_pairs

STEPS = {"solver": "symplectic_euler", "step": 2e-3, "record": None, "progress": False}


@pytest.fixture
def few(monkeypatch):
    """All mechanisms have too many shapes for a list of all pairs."""
    monkeypatch.setattr(tolerances, "ALL_PAIRS", 0)


def random_shape(rng):
    size = 0.05 * 2.0 ** rng.integers(0, 6)
    return (bk.Sphere(size), bk.Capsule(0.5 * size, size), bk.Box(size, 2 * size, 0.3 * size),
            bk.Points(size * rng.normal(size=(3, 3))), bk.Cylinder(size, size),
            bk.Hull(size * rng.normal(size=(8, 3))))[rng.integers(6)]


def random_mechanism(seed):
    """Shapes of many sizes on chains and free links, with masks, exclusions, planes, one of them moving, and hills."""
    rng = np.random.default_rng(seed)
    m = bk.Mechanism()
    for i in range(40):
        chained = i > 0 and rng.random() < 0.5
        joint = bk.Fixed() if rng.random() < 0.1 else bk.Revolute((0, 1, 0)) if chained else bk.Free()
        m.add_link(f"link {i}", f"link {rng.integers(i)}" if chained else "ground", joint, position=rng.normal(size=3),
                   mass=1.0, inertia=(0.1, 0.1, 0.1))
        for _ in range(rng.integers(0, 3)):
            m.add_shape(f"link {i}", random_shape(rng), position=0.1 * rng.normal(size=3),
                        rotation=Rotation.random(random_state=int(rng.integers(1000))).as_matrix(),
                        group=int(rng.integers(1, 4)), meets=int(rng.integers(1, 4)), friction=float(rng.random()))
    m.add_plane(point=(0, 0, -1))
    m.add_plane("link 3", normal=(1, 0, 0))
    m.add_shape("ground", bk.Heightfield(rng.normal(size=(5, 6)), (3.0, 4.0)))
    for _ in range(20):
        a, b = rng.choice(40, 2, replace=False)
        m.exclude(f"link {a}", f"link {b}", bool(rng.random() < 0.5))
    return m, m.integrate(m.neutral(), rng.normal(size=m.nv))


def bounding_spheres(m, q):
    """Centres and radii of all shapes, from names and poses."""
    where, centres, radii = bk.poses(m, q), [], []
    names = [*m.link_names, "ground"]
    for shape in m.shapes.values():
        middle, radius = shape.shape.bound()
        R, x = where.get(names[shape.link], (np.eye(3), np.zeros(3)))
        centres.append(x + R @ (shape.position + shape.rotation @ middle))
        radii.append(radius)
    return np.array(centres), np.array(radii)


@pytest.mark.parametrize("seed", range(6))
def test_the_list_has_the_pairs_that_a_look_at_all_pairs_finds(few, seed):
    m, q = random_mechanism(seed)
    shapes, reach = list(m.shapes.values()), 0.2 * seed
    centres, radii = bounding_spheres(m, q)
    found = [tuple(row) for row in near_pairs(m, q, reach).pair_i[:, :3].tolist()]
    assert found == sorted(set(found))
    near, may_be = set(), set()
    for a, b in m.meeting_pairs():
        pair = frozenset((a, b))
        if c.PLANE in (shapes[a].kind, shapes[b].kind):
            may_be.add(pair)
            continue
        gap = np.linalg.norm(centres[a] - centres[b]) - radii[a] - radii[b]
        if gap < reach + 1e-9:
            may_be.add(pair)
            if gap < reach - 1e-9:
                near.add(pair)
    listed = {frozenset(row[1:]) for row in found}
    assert near <= listed <= may_be


@pytest.mark.parametrize("seed", range(3))
def test_contacts_are_the_same_with_a_list_and_with_all_pairs(monkeypatch, seed):
    m, q = random_mechanism(seed)
    whole = bk.contacts(m, q, margin=0.05)
    monkeypatch.setattr(tolerances, "ALL_PAIRS", 0)
    listed = bk.contacts(random_mechanism(seed)[0], q, margin=0.05)
    assert listed.pair == whole.pair
    for name in ("gap", "point", "normal"):
        assert np.array_equal(getattr(listed, name), getattr(whole, name))
    assert [contact.friction for contact in listed] == [contact.friction for contact in whole]
    batch = bk.contacts(random_mechanism(seed)[0], np.stack([q, q]), margin=0.05)
    assert all(each.pair == whole.pair for each in batch)


def pile():
    """Balls and boxes that fall onto each other."""
    m, q = bk.Mechanism(), []
    m.add_plane(friction=0.6)
    for i in range(8):
        m.add_link(f"body {i}", joint=bk.Free(), mass=1.0, inertia=(0.005, 0.005, 0.005))
        m.add_shape(f"body {i}", bk.Box(0.2, 0.2, 0.2) if i % 2 else bk.Sphere(0.1), restitution=0.1 * (i % 3))
        q += [0.05 * (i % 3), 0.04 * (i % 2), 0.15 + 0.25 * i, 1, 0, 0, 0]
    return m, np.array(q)


def test_forces_at_a_state_are_the_same_with_a_list_and_with_all_pairs(monkeypatch):
    m, q = pile()
    q = q.reshape(-1, 7)
    q[:, 2] = 0.1 + 0.4 * np.arange(8)  # one on the floor, the others in the air
    whole = bk.dynamics(m, q.ravel(), np.zeros(m.nv))
    monkeypatch.setattr(tolerances, "ALL_PAIRS", 0)
    listed = bk.dynamics(pile()[0], q.ravel(), np.zeros(m.nv))
    assert np.array_equal(listed.a, whole.a)
    assert listed.contacts.pair == whole.contacts.pair
    assert np.array_equal(listed.contacts.force, whole.contacts.force)


def test_a_motion_does_not_depend_on_when_pairs_are_listed(tmp_path):
    """A run continued from a file, and a copy, make their lists anew: their motion is the same to the last bit."""
    m, q = pile()
    whole, part = bk.Simulation(m, q, **STEPS), bk.Simulation(m, q, **STEPS)
    for until in (0.3, 0.31, 0.35, 0.6):
        part.advance(until)
        part = bk.Simulation.load(part.save(tmp_path / "run.npz"))
        part._running.contact.touching = pickle.loads(pickle.dumps(part._running.contact.touching))
        whole.advance(until)
        assert np.array_equal(part.q, whole.q)
        assert np.array_equal(part.v, whole.v)
    assert whole.stats.contact_problems > 100
    assert np.abs(whole.contacts.force).max() > 1.0


def test_memory_grows_with_the_number_of_bodies():
    sizes = []
    for n in (150, 600):
        m, q, _ = at_rest(n)
        sim = bk.Simulation(m, q, max_contacts=10_000, **STEPS)
        sim.advance(0.01)
        assert np.array_equal(sim.q, q)
        assert len(sim._running.contact.touching.arrays.pair_i) < 6 * n
        sizes.append(sum(array.nbytes for array in sim._running.contact.touching.touch))
    assert sizes[1] < 5 * sizes[0]


def test_forces_of_many_bodies_after_a_step():
    """Each ball is carried by the floor."""
    m, q, _ = at_rest(150)
    sim = bk.Simulation(m, q, max_contacts=1000, **STEPS)
    sim.advance(0.02)
    assert len(sim.contacts) == 150
    assert sim.contacts.force == pytest.approx(np.tile([0, 0, 9.81], (150, 1)), abs=1e-9)
    assert set(sim.contacts.mode) == {"sticking"}


def test_events_of_too_many_bodies_are_refused(monkeypatch):
    from bunraku.evaluate import contact_workspace

    monkeypatch.setattr(contact_workspace, "MOST_SHAPES", 20)
    m, q, _ = at_rest(30)
    with pytest.raises(bk.ContactError, match=r"31 shapes.*fixed steps"):
        bk.Simulation(m, q, progress=False)


def test_a_damaged_contact_in_a_file_is_refused(tmp_path):
    m, q = pile()
    sim = bk.Simulation(m, q, **STEPS)
    sim.advance(0.3)
    file = sim.save(tmp_path / "run.npz")
    with np.load(file) as data:
        arrays = dict(data)
    name = next(name for name in arrays if name.endswith("contact identity"))
    for column, value in ((0, 99), (1, -1), (2, 50)):
        wrong = arrays[name].copy()
        wrong[0, column] = value
        np.savez(tmp_path / "damaged.npz", **{**arrays, name: wrong})
        with pytest.raises(bk.BunrakuError):
            bk.Simulation.load(tmp_path / "damaged.npz")
