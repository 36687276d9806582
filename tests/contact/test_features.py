"""How fast the gap of a contact changes: second derivatives for all pairs of features, and edges that slide."""

import itertools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import bunraku as bk
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_motion import LOOK
from bunraku.evaluate.contact_workspace import Acts, Touching

HEIGHTS = 0.1 * np.random.default_rng(5).normal(size=(6, 7))
SHAPES = {
    "sphere": bk.Sphere(0.11), "capsule": bk.Capsule(0.05, 0.3), "box": bk.Box(0.3, 0.2, 0.25),
    "hull": bk.Hull(0.2 * np.random.default_rng(3).normal(size=(14, 3))), "cylinder": bk.Cylinder(0.12, 0.2),
    "points": bk.Points(0.15 * np.random.default_rng(4).normal(size=(5, 3))),
    "field": bk.Heightfield(HEIGHTS, (1.5, 1.8)), "plane": None,
}
SOLIDS = [name for name in SHAPES if name not in ("field", "plane", "points")]
PAIRS = [*itertools.combinations_with_replacement(SOLIDS, 2), *((s, g) for s in [*SOLIDS, "points"]
                                                               for g in ("field", "plane")),
         *(("points", s) for s in SOLIDS)]


def pair(one: str, other: str) -> bk.Mechanism:
    m = bk.Mechanism()
    for name, kind in (("a", one), ("b", other)):
        if SHAPES[kind] is not None:
            m.add_link(name, joint=bk.Free(), mass=1.5, com=(0.02, -0.01, 0.03), inertia=(0.02, 0.03, 0.04))
            m.add_shape(name, SHAPES[kind], position=(0.01, 0.02, -0.03))
        else:
            m.add_link(name, joint=bk.Free(), mass=2.0, inertia=(0.1, 0.1, 0.1))
            m.add_plane(name)
    return m


def placed(touching, m, other, rng, gap):
    """A pose in which the shapes are `gap` apart."""
    q = m.neutral()
    for x in (0, 7):
        q[x + 3:x + 7] = Rotation.random(random_state=rng).as_quat()[[3, 0, 1, 2]]
    direction = rng.normal(size=3)
    if other in ("field", "plane"):
        turn = Rotation.from_quat(q[[11, 12, 13, 10]])
        direction = turn.apply((*rng.uniform(-0.3, 0.3, 2), 1.0))
    direction /= np.linalg.norm(direction)
    low, high = 0.0, 3.0
    for _ in range(40):
        q[:3] = 0.5 * (low + high) * direction
        low, high = (low, 0.5 * (low + high)) if touching.gaps(q).min() > gap else (0.5 * (low + high), high)
    return q


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_the_second_derivative_of_the_gap_is_that_along_the_motion(one, other):
    m = pair(one, other)
    touching, rng, looked, h = Touching(m), np.random.default_rng(7), 0, 2e-4
    acts = Acts(np.zeros(m.nv), np.empty(0), np.empty(0))
    for _ in range(40):
        q, v = placed(touching, m, other, rng, 0.008), rng.normal(size=m.nv)
        a = bk.forward_dynamics(m, q, v)
        found = touching.gaps(q).copy()
        at = np.array([touching.gaps(m.integrate(q, v * t + 0.5 * a * t * t)).copy()
                       for t in (-2 * h, -h, 0.0, h, 2 * h)])
        normals = touching.found[:, c.FOUND_NORMAL:c.FOUND_NORMAL + 3]
        for k in np.flatnonzero(np.isfinite(at).all(axis=0) & (found < 0.015)):
            if k > 0 and {one, other} <= set(SOLIDS):
                continue  # of flat features that are nearly parallel: the gap along the normal of one of them
            expected = (-at[0, k] + 16 * at[1, k] - 30 * at[2, k] + 16 * at[3, k] - at[4, k]) / (12 * h * h)
            coarse = (at[0, k] - 2 * at[2, k] + at[4, k]) / (4 * h * h)
            if abs(expected - coarse) > 3e-4 * (1.0 + abs(expected)) or not np.isfinite(normals[k]).all():
                continue  # another feature is nearest in between
            touching.set_modes([k])
            answer = touching.solve(LOOK, q, v, acts)
            assert answer.after[0, 0] == pytest.approx(expected, rel=1e-4, abs=1e-4), (k, q, v)
            looked += 1
        if looked >= 10:
            break
    assert looked >= 5


def spinning_cubes(draw: int):
    """Two frictionless cubes that spin and fly towards each other, without gravity: random draw number `draw`."""
    rng = np.random.default_rng(0)
    for _ in range(draw):
        turns, spins = rng.normal(size=(2, 4)), 10.0 * rng.normal(size=(2, 3))
    m = bk.Mechanism(gravity=(0, 0, 0))
    q, v = np.zeros(14), np.zeros(12)
    for i, side in enumerate((-1, 1)):
        m.add_link(f"cube{i}", joint=bk.Free(), mass=1.0, inertia=(0.0067,) * 3)
        m.add_shape(f"cube{i}", bk.Box(0.2, 0.2, 0.2), friction=0.0)
        turn = turns[i] / np.linalg.norm(turns[i])
        q[7 * i], q[7 * i + 3:7 * i + 7] = 0.2 * side, turn
        v[6 * i:6 * i + 3] = Rotation.from_quat(turn[[1, 2, 3, 0]]).inv().apply((-2.0 * side, 0, 0))
        v[6 * i + 3:6 * i + 6] = spins[i]
    return m, q, v


@pytest.mark.parametrize("draw", [5, 17, 18, 20, 27, 32, 37, 40])
def test_edges_that_slide_and_become_parallel_add_no_energy(draw):
    """Crossings of edges run along them the faster the more parallel these are, beyond their ends, and onto faces."""
    m, q, v = spinning_cubes(draw)
    trajectory = bk.Simulation(m, q, v).run(0.15)
    energy = trajectory.energy()[1]
    assert (energy - np.minimum.accumulate(energy)).max() < 3e-5 * energy[0]
