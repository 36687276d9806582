"""Constraints as matrices: rows, their derivatives and names."""

import numpy as np
import pytest

import bunraku as bk
from loops import parallelogram, posed, random_loops
from oracle import close


@pytest.mark.parametrize("seed", range(12))
def test_jacobian_and_bias_are_derivatives_of_the_gap(seed):
    m, q, v, _ = random_loops(seed)
    rng = np.random.default_rng(seed)
    now, h = bk.constraints(m, q, v), 1e-4
    assert np.abs(now.gap).max(initial=0.0) < 1e-13
    close(now.rates, np.zeros(len(now.rates)), 1e-11)

    def gap(way):
        return bk.constraints(m, m.integrate(q, way)).gap

    any_way, a = rng.normal(size=m.nv), rng.normal(size=m.nv)
    close((gap(1e-6 * any_way) - gap(-1e-6 * any_way)) / 2e-6, now.jacobian @ any_way, 1e-6)
    second = (gap(h * v + 0.5 * h * h * a) + gap(-h * v + 0.5 * h * h * a)) / h**2
    close(second, now.jacobian @ a + now.bias, 1e-4)


def test_rows_are_named_and_coordinates_follow():
    m = parallelogram()
    m.connect("ground", "coupler", bk.Planar((0, 1, 0)), "table")
    found = bk.constraints(m, posed(0.3), np.array([2.0, -2.0, 2.0]))
    assert found.rows == {"pin": slice(0, 5), "table": slice(5, 8)}
    assert found.jacobian.shape == (8, 3)
    close(found.coordinates["pin"], [-0.3], 1e-14)
    close(found.velocities["pin"], [-2.0], 1e-14)
    assert bk.constraints(bk.models.chain(2), np.zeros(2)).jacobian.shape == (0, 2)
    with pytest.raises(bk.ShapeError, match="one state"):
        bk.constraints(m, np.zeros((4, 3)))
