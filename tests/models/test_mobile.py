"""Mobiles: mass and inertia of the wedge against quadrature, structure as in [J], rest at the neutral position."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

import bunraku as bk
from bunraku.errors import ModelError
from bunraku.models.mobile import wedge

TABLE_I = {"a": 0.2, "b": 0.1, "c": 0.2, "h": 0.5, "s": 3, "l": 4, "o": 5, "p": 2.0, "rho": 2.0}
SHAPES = [(0.2, 0.3, 0.2, 1.0), (0.2, 0.1, 0.2, 0.5), (0.2, 0.0, 5.0, 1.0), (0.0, 0.3, 0.1, 2.0), (1.5, 0.1, 0.3, 0.2)]


def slice_moments(straight, radius):
    """Area and second moments (x^2, y^2) of a stadium, by quadrature over y: its chords end on half circles."""
    chord = lambda y: straight + math.sqrt(max(radius**2 - y**2, 0.0))  # noqa: E731
    over = lambda f: 2.0 * quad(f, 0.0, radius, epsabs=1e-13)[0]  # noqa: E731
    return (over(lambda y: 2 * chord(y)), over(lambda y: 2 * chord(y) ** 3 / 3), over(lambda y: 2 * y**2 * chord(y)))


@pytest.mark.parametrize("shape", SHAPES)
def test_wedge_is_what_integration_over_its_volume_gives(shape):
    a, b, c, h = shape
    rho = 2.0
    nodes, weights = np.polynomial.legendre.leggauss(8)      # exact: moments of slices are polynomials of the depth
    depths, weights = (nodes + 1) / 2, rho * h * weights / 2
    area, xx, yy = np.array([slice_moments(a + t * (b - a), t * c) for t in depths]).T
    mass, height = weights @ area, weights @ (area * -depths * h)
    zz = weights @ (area * (depths * h) ** 2)
    xx, yy = weights @ xx, weights @ yy
    body = wedge(a, b, c, h, rho)
    assert body.mass == pytest.approx(mass, rel=1e-9)
    np.testing.assert_allclose(body.com, [0, 0, height / mass], rtol=1e-9)
    about_edge = body.inertia + body.mass * body.com[2] ** 2 * np.diag([1, 1, 0])
    np.testing.assert_allclose(about_edge, np.diag([yy + zz, xx + zz, xx + yy]), rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_wedge_has_an_inertia_that_a_body_can_have(shape):
    x, y, z = np.diag(wedge(*shape, rho=2.0).inertia)
    assert min(x, y, z) > 0
    assert x + y > z
    assert y + z > x
    assert z + x > y


@pytest.mark.parametrize(("s", "l", "o", "joints"), [(3, 4, 5, 124), (3, 5, 9, 455), (2, 3, 11, 36), (1, 12, 1, 12),
                                                     (4, 1, 2, 15), (3, 2, 1, 6)])
def test_a_mobile_has_the_number_of_joints_of_its_parameters(s, l, o, joints):
    m = bk.models.mobile(0.2, 0.1, 0.2, 0.5, s, l, o, 2.0, 2.0)
    assert m.nv == m.nq == joints


@pytest.mark.parametrize("changes", [{}, {"o": 9, "l": 5}, {"s": 2, "o": 11, "l": 3, "p": 3.0, "b": 0.3, "h": 1.0},
                                     {"s": 1, "l": 12, "o": None, "p": None}, {"s": 4, "o": 2}, {"o": 1}, {"a": 0.0}])
def test_a_mobile_rests_when_released_at_zero(changes):
    m = bk.models.mobile(**{**TABLE_I, **changes})
    rest = np.zeros(m.nv)
    weight, reach = 9.81 * sum(link.mass for link in m.links), np.ptp([p for _, p in bk.poses(m, m.neutral()).values()])
    held = bk.inverse_dynamics(m, m.neutral(), rest, rest)
    assert np.abs(held).max() <= 1e-14 * weight * reach     # rounding of the weights' moments, nothing more
    a = bk.forward_dynamics(m, m.neutral(), rest)
    stiffest = np.linalg.norm(np.linalg.inv(bk.mass_matrix(m, m.neutral())), 2)
    assert np.abs(a).max() <= 1e-14 * weight * reach * stiffest
    if m.nv <= 36:
        assert np.abs(a).max() < 1e-12


def test_a_chain_rests_exactly():
    m = bk.models.mobile(0.2, 0.3, 0.2, 1.0, 1, 12, None, None, 2.0)
    assert not bk.forward_dynamics(m, m.neutral(), np.zeros(m.nv)).any()


def test_plateaus_are_as_wide_as_what_hangs_from_them():
    m = bk.models.mobile(**TABLE_I)
    where = {name: position for name, (_, position) in bk.poses(m, m.neutral()).items()}
    for path, k in (("", 2), ("3/", 1)):
        radius = TABLE_I["p"] * 5**k / (2 * math.pi)
        edges = np.array([where[f"{path}{i}/link0"] for i in range(5)])
        centre = where[f"{path}plateau"] - np.array([0, 0, 0.5])
        np.testing.assert_allclose(np.linalg.norm(edges - centre, axis=1), radius - TABLE_I["a"], rtol=1e-12)
        np.testing.assert_allclose(edges[:, 2], centre[2])
        outer = edges + TABLE_I["a"] * (edges - centre) / (radius - TABLE_I["a"])
        gap = np.linalg.norm(outer - np.roll(outer, 1, axis=0), axis=1)
        np.testing.assert_allclose(gap, 2 * radius * math.sin(math.pi / 5), rtol=1e-12)
    masses = {link.name: link.mass for link in m.links}
    assert masses["0/0/plateau"] == pytest.approx(wedge(0.2, 0.0, 0.3, 0.5, 2.0).mass)  # of the last stage: b + c
    assert masses["0/plateau"] == pytest.approx(wedge(0.2, 0.0, 10 / (2 * math.pi), 0.5, 2.0).mass)


def test_axes_are_the_edges_and_radial():
    m = bk.models.mobile(**TABLE_I)
    where = bk.poses(m, m.neutral())
    for i in range(5):
        rotation, position = where[f"{i}/link0"]
        axis = rotation @ np.array([1.0, 0.0, 0.0])
        np.testing.assert_allclose(np.cross(axis, position - where["plateau"][1] - [0, 0, -0.5]), 0, atol=1e-12)
        np.testing.assert_allclose(where[f"{i}/plateau"][0], rotation, atol=1e-14)  # parallel along a chain


def test_a_mobile_swings_with_its_energy_and_less_with_damping():
    q, args = np.array([0.8, 0.0, 0.0, 0.0]), (0.2, 0.3, 0.2, 1.0, 1, 4, None, None, 2.0)
    kept, lost = (bk.Simulation(bk.models.mobile(*args, damping=k), q, rtol=1e-9, atol=1e-9) for k in (0.0, 2.5))
    start = sum(kept.mechanism.energy(q, np.zeros(4)))
    for sim in (kept, lost):
        sim.run(until=2.0)
    assert sum(kept.mechanism.energy(kept.q, kept.v)) == pytest.approx(start, abs=1e-5)
    assert sum(lost.mechanism.energy(lost.q, lost.v)) < start - 1.0


@pytest.mark.parametrize("bad", [{"a": -0.1}, {"b": -1}, {"c": 0}, {"h": math.nan}, {"rho": 0}, {"s": 0}, {"s": 1.5},
                                 {"l": True}, {"o": 0}, {"o": None}, {"p": 0}, {"p": None}, {"damping": -1},
                                 {"h": "tall"}, {"s": 9, "o": 9}, {"s": 10**9}])
def test_bad_parameters_are_named(bad):
    with pytest.raises(ModelError, match=r"mobile: .*(stages|must be)"):
        bk.models.mobile(**{**TABLE_I, **bad})
