"""The robots of the example-robot-data wheel, and Pinocchio's view of a file, for tests."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import numpy as np
import pytest

import bunraku as bk


def _folder() -> Path | None:
    """Where the wheel keeps its robots; the package has no module to ask."""
    try:
        files = importlib.metadata.files("example-robot-data") or ()
    except importlib.metadata.PackageNotFoundError:
        return None
    urdf = next((f for f in files if f.suffix == ".urdf"), None)
    return None if urdf is None else next(p for p in Path(urdf.locate()).resolve().parents if p.name == "robots")


FOLDER = _folder()
NAMES = sorted(p.relative_to(FOLDER).as_posix() for p in FOLDER.rglob("*.urdf")) if FOLDER else []
needs_robots = pytest.mark.skipif(not NAMES, reason="example-robot-data is not installed")


class Twin:
    """A URDF in Pinocchio and how its states and results map to those of the bunraku mechanism of the same file."""

    def __init__(self, path, mechanism: bk.Mechanism, base: str):
        import pinocchio as pin

        self.pin, self.mechanism = pin, mechanism
        free = (pin.JointModelFreeFlyer(),) if base == "free" else ()
        self.model = pin.buildModelFromUrdf(str(path), *free)
        self.data = self.model.createData()
        assert self.model.nv == mechanism.nv
        self.order = np.empty(mechanism.nv, int)  # of bunraku's velocities among Pinocchio's
        self.joints = []
        for k, link in enumerate(mechanism.links):
            if link.joint.nv:
                joint = self.model.joints[self.model.getJointId("root_joint" if k == 0 else link.joint_name)]
                where = mechanism.v_slice(link.joint_name)
                self.order[where] = range(joint.idx_v, joint.idx_v + joint.nv)
                self.joints.append((joint, mechanism.q_slice(link.joint_name), link.joint))

    def q(self, q):
        """Quaternions have w last, unbounded angles are cosine and sine."""
        out = np.zeros(self.model.nq)
        for joint, where, kind in self.joints:
            own = q[where]
            if isinstance(kind, bk.Free):
                own = np.r_[own[:3], own[4:], own[3]]
            elif joint.nq == 2:
                own = np.r_[np.cos(own), np.sin(own)]
            out[joint.idx_q:joint.idx_q + joint.nq] = own
        return out

    def v(self, v):
        out = np.empty(self.model.nv)
        out[self.order] = v
        return out

    def aba(self, q, v, tau):
        return self.pin.aba(self.model, self.data, self.q(q), self.v(v), self.v(tau))[self.order]

    def rnea(self, q, v, a):
        return self.pin.rnea(self.model, self.data, self.q(q), self.v(v), self.v(a))[self.order]

    def crba(self, q):
        M = np.triu(self.pin.crba(self.model, self.data, self.q(q)))
        return (M + np.triu(M, 1).T)[np.ix_(self.order, self.order)]
