"""Couplings are named, copied, described and refused by name."""

import json
import pickle

import numpy as np
import pytest

import bunraku as bk
from bunraku.mechanism.describe import describe, rebuild


def arm():
    m = bk.Mechanism()
    for k, joint in enumerate((bk.Revolute((0, 1, 0)), bk.Prismatic((1, 0, 0)), bk.Revolute((0, 0, 1)), bk.Spherical(),
                               bk.Fixed())):
        m.add_link(f"link{k}", f"link{k - 1}" if k else "ground", joint, f"joint{k}", position=(0, 0, -0.3), mass=1.0,
                   inertia=(0.1, 0.1, 0.1))
    return m


def test_couplings_are_refused_by_name():
    m = arm()
    for arguments, kind, text in (
            (("nowhere", "joint0"), bk.NamingError, "nowhere"),
            (("joint0", "nowhere"), bk.NamingError, "nowhere"),
            (("joint3", "joint0"), bk.ModelError, "'joint3' is a Spherical with 3 degrees of freedom"),
            (("joint0", "joint4"), bk.ModelError, "'joint4' is a Fixed with 0 degrees"),
            (("joint0", "joint0"), bk.ModelError, "cannot follow itself"),
            (("joint0", "link0"), bk.ModelError, "cannot follow itself"),
            (("joint0", "joint1", np.nan), bk.ModelError, "ratio of joint 'joint0'"),
            (("joint0", "joint1", 1.0, "x"), bk.ModelError, "offset of joint 'joint0'")):
        with pytest.raises(kind, match=text):
            m.couple(*arguments)
    assert not m.couplings
    m.couple("joint1", "joint0", 0.1)
    m.couple("link2", "joint1")
    with pytest.raises(bk.ModelError, match="already follows 'joint0'"):
        m.couple("joint1", "joint2")
    with pytest.raises(bk.ModelError, match="follow itself through 'joint2', 'joint1'"):
        m.couple("joint0", "joint2")
    with pytest.raises(bk.NamingError, match="follows no other joint; it leads: uncouple 'joint1'"):
        m.uncouple("joint0")
    with pytest.raises(bk.ReadOnlyError, match="table of couplings"):
        m.couplings.clear()
    with pytest.raises(bk.ReadOnlyError, match="couple anew"):
        m.couplings["joint1"].ratio = 2.0
    with pytest.raises(bk.ModelError, match="coupled"):
        m.with_joint("joint1", joint=bk.Spherical())


def test_copies_files_and_names_keep_couplings():
    m = arm()
    m.couple("joint2", "joint0", -0.5, 0.1)
    assert "joint2 = -0.5 joint0 + 0.1" in repr(m)
    assert "joint2" in m._repr_html_()
    for twin in (m.copy(), rebuild(json.loads(json.dumps(describe(m)))), pickle.loads(pickle.dumps(m)),
                 m.with_link("link1", mass=3.0), m.with_joint("joint0", damping=1.0)):
        assert [c.equation for c in twin.couplings.values()] == ["joint2 = -0.5 joint0 + 0.1"]
        twin.uncouple("joint2")
        assert list(m.couplings) == ["joint2"]
    renamed = m.with_joint("joint0", joint_name="base").with_joint("joint2", joint_name="tip")
    assert renamed.couplings["tip"].equation == "tip = -0.5 base + 0.1"
    carry = m.cut("joint2")
    assert not m.couplings
    q, v = carry(np.eye(7)[3], np.zeros(6))
    assert np.isfinite(bk.forward_dynamics(m, q, v)).all()
