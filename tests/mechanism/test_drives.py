"""Limits of drives are kept by copies and files, and clip torques."""

import json

import numpy as np
import pytest

import bunraku as bk
from bunraku.mechanism.describe import describe, rebuild


def arm():
    m = bk.Mechanism()
    m.add_link("a", joint=bk.Revolute((0, 1, 0), effort=3.0, speed=2.0), mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_link("b", "a", bk.Compound(bk.Prismatic((1, 0, 0), effort=5.0), bk.Helical((0, 0, 1), 0.1)), mass=1.0,
               inertia=(0.1, 0.1, 0.1))
    m.add_link("c", "b", bk.Spherical(), mass=1.0, inertia=(0.1, 0.1, 0.1))
    return m


def test_limits_of_drives_are_kept():
    m = arm()
    assert "effort=3.0, speed=2.0" in repr(m.joint("a"))
    for twin in (m.copy(), rebuild(json.loads(json.dumps(describe(m)))), m.with_joint("a", damping=0.1)):
        np.testing.assert_array_equal(twin.effort, [3.0, 5.0, np.inf, np.inf, np.inf, np.inf])
        np.testing.assert_array_equal(twin.speed, [2.0, *5 * [np.inf]])
    assert m.with_joint("a", effort=7.0).joint("a").effort == 7.0
    np.testing.assert_array_equal(m.with_joint("b", effort=[1.0, 2.0]).effort[1:3], [1.0, 2.0])


def test_torques_are_clipped():
    m = arm()
    np.testing.assert_array_equal(m.clip_torques([-9.0, 9.0, 9.0, 0.0, 0.0, 1.0]), [-3.0, 5.0, 9.0, 0.0, 0.0, 1.0])
    assert m.clip_torques(np.full((4, 6), 8.0)).shape == (4, 6)
    with pytest.raises(bk.ShapeError, match="tau"):
        m.clip_torques(np.zeros(5))


def test_wrong_limits_are_refused():
    for value in (-1.0, np.nan):
        with pytest.raises(bk.ModelError, match="effort must not be negative"):
            bk.Revolute((0, 1, 0), effort=value)
    with pytest.raises(bk.ModelError, match="Spherical has no effort"):
        bk.Spherical(effort=1.0)
    with pytest.raises(bk.ModelError, match="belongs to the joint"):
        arm().with_link("a", speed=1.0)
