"""The same mechanism in Pinocchio and in MuJoCo, built in code, with states carried over both ways.

Both are built from the links people named, not from our plan, so agreement also checks the plan. Revolute, Spherical,
Free and Fixed joints, without springs, dampers and armature. Joints are added depth first, as Pinocchio asks, so
coordinates are permuted.
"""

from __future__ import annotations

import importlib

import numpy as np

from bunraku.errors import MissingExtra, ModelError
from bunraku.mechanism import Fixed, Free, Mechanism, Revolute, Spherical
from bunraku.plan import fields as f
from bunraku.plan.elements import rotation_from_z


def required(module: str):
    """An optional library, or the pip command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(f"this benchmark needs {module}: pip install 'bunraku[bench]'") from error


def _depth_first(m: Mechanism):
    """Links with every subtree in one piece."""
    children: dict[int, list[int]] = {}
    for i, link in enumerate(m.links):
        children.setdefault(link.parent, []).append(i)
    stack = children.get(-1, [])[::-1]
    while stack:
        i = stack.pop()
        yield i, m.links[i]
        stack += children.get(i, [])[::-1]


def _refuse_unknown(m: Mechanism):
    acting = [f.ARMATURE, f.DAMPING, f.STIFFNESS, f.LIMIT_STIFFNESS, f.LIMIT_DAMPING]
    if m.springs or m.plan().dof_f[acting].any():
        raise ModelError("peers are built without springs, dampers, acting limits and armature")
    for link in m.links:
        known = (Revolute, Spherical, Free, Fixed)
        if not isinstance(link.joint, known) or (isinstance(link.joint, Revolute) and link.joint.at.any()):
            raise ModelError(f"peers have Revolute, Spherical, Free and Fixed joints only, not {link.joint!r}")


class Pinocchio:
    """`model` and `data` of Pinocchio. Velocities mean the same on both sides; quaternions are x y z w there."""

    def __init__(self, m: Mechanism):
        _refuse_unknown(m)
        self.pin = pin = required("pinocchio")
        self.model = model = pin.Model()
        model.gravity.linear[:] = m.gravity
        carrier = {-1: (0, pin.SE3.Identity())}  # joint that carries the link, link frame in the joint's frame
        order_q: list[int] = []
        order_v: list[int] = []
        for i, link in _depth_first(m):
            parent, frame = carrier[link.parent]
            place = frame * pin.SE3(link.rotation, link.position)
            turn = np.eye(3)
            if isinstance(link.joint, Fixed):
                joint, frame = parent, place
            else:
                if isinstance(link.joint, Revolute):  # the fast aligned joint about z, in a frame turned to suit
                    turn, kind = rotation_from_z(link.joint.axis), pin.JointModelRZ()
                else:
                    kind = pin.JointModelSpherical() if isinstance(link.joint, Spherical) else pin.JointModelFreeFlyer()
                joint = model.addJoint(parent, kind, place * pin.SE3(turn, np.zeros(3)), link.joint_name)
                frame = pin.SE3(turn.T, np.zeros(3))
                q, v = m.q_slice(link.joint_name), m.v_slice(link.joint_name)
                first = q.stop - 4
                order_q += ([*range(q.start, first), first + 1, first + 2, first + 3, first]
                            if q.stop - q.start > 1 else [q.start])
                order_v += range(v.start, v.stop)
            model.appendBodyToJoint(joint, pin.Inertia(link.mass, link.com, link.inertia), frame)
            carrier[i] = (joint, frame)
        self.order_q, self.order_v = np.array(order_q), np.array(order_v)
        self.data = model.createData()

    def q(self, q):
        return np.ascontiguousarray(np.asarray(q)[..., self.order_q])

    def v(self, v):
        """Velocities, torques and accelerations."""
        return np.ascontiguousarray(np.asarray(v)[..., self.order_v])

    def back(self, v):
        out = np.empty_like(v)
        out[..., self.order_v] = v
        return out

    def forward(self, q, v, tau):
        return self.back(self.pin.aba(self.model, self.data, self.q(q), self.v(v), self.v(tau)))


class MuJoCo:
    """`model` and `data` of MuJoCo, with everything off that is not the dynamics of a tree.

    A free joint's q is in world axes there, and so is its linear velocity.
    """

    def __init__(self, m: Mechanism):
        _refuse_unknown(m)
        self.mujoco = mujoco = required("mujoco")
        spec = mujoco.MjSpec()
        spec.option.gravity = m.gravity
        off = mujoco.mjtDisableBit
        spec.option.disableflags = int(sum(
            int(flag) for flag in (off.mjDSBL_CONSTRAINT, off.mjDSBL_EQUALITY, off.mjDSBL_FRICTIONLOSS,
                                   off.mjDSBL_LIMIT, off.mjDSBL_CONTACT, off.mjDSBL_SPRING, off.mjDSBL_DAMPER,
                                   off.mjDSBL_ACTUATION, off.mjDSBL_SENSOR, off.mjDSBL_WARMSTART)))
        bodies = {-1: spec.worldbody}
        self.order_q: list[int] = []
        self.order_v: list[int] = []
        self.free: list[tuple[int, int, np.ndarray, np.ndarray]] = []  # first q, first v (theirs), place of the joint
        for i, link in _depth_first(m):
            body = bodies[i] = bodies[link.parent].add_body(
                name=link.name, pos=link.position, quat=_quaternion(link.rotation), mass=link.mass, ipos=link.com,
                fullinertia=link.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]], explicitinertial=True)
            if isinstance(link.joint, Fixed):
                continue
            q, v = m.q_slice(link.joint_name), m.v_slice(link.joint_name)
            if isinstance(link.joint, Revolute):
                body.add_joint(name=link.joint_name, type=mujoco.mjtJoint.mjJNT_HINGE, axis=link.joint.axis)
            elif isinstance(link.joint, Spherical):
                body.add_joint(name=link.joint_name, type=mujoco.mjtJoint.mjJNT_BALL)
            else:
                if link.parent >= 0:
                    raise ModelError("MuJoCo has free joints on the ground only")
                body.add_freejoint(name=link.joint_name)
                self.free.append((len(self.order_q), len(self.order_v), link.rotation, link.position))
            self.order_q += range(q.start, q.stop)
            self.order_v += range(v.start, v.stop)
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)

    def q(self, q):
        out = np.array(q)[self.order_q]
        for k, _, R, p in self.free:
            out[k:k + 3] = p + R @ out[k:k + 3]
            out[k + 3:k + 7] = _product(_quaternion(R), out[k + 3:k + 7])
        return out

    def v(self, q, v):
        """Velocities, and torques (a force on a free joint turns like its velocity)."""
        out = np.array(v)[self.order_v]
        for k, j, R, _ in self.free:
            out[j:j + 3] = R @ _rotation(np.array(q)[self.order_q][k + 3:k + 7]) @ out[j:j + 3]
        return out

    def back(self, q, v, a):
        """Accelerations: d/dt (R v) = R (a + w x v)."""
        a = np.array(a)
        own = np.array(v)[self.order_v]
        for k, j, R, _ in self.free:
            turn = R @ _rotation(np.array(q)[self.order_q][k + 3:k + 7])
            a[j:j + 3] = turn.T @ a[j:j + 3] - np.cross(own[j + 3:j + 6], own[j:j + 3])
        out = np.empty_like(a)
        out[self.order_v] = a
        return out

    def forward(self, q, v, tau):
        d = self.data
        d.qpos[:], d.qvel[:], d.qfrc_applied[:] = self.q(q), self.v(q, v), self.v(q, tau)
        self.mujoco.mj_forward(self.model, d)
        return self.back(q, v, d.qacc)


def _rotation(quaternion):
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def _quaternion(R):
    from scipy.spatial.transform import Rotation

    return np.roll(Rotation.from_matrix(R).as_quat(), 1)


def _product(a, b):
    w, u = a[0], a[1:]
    return np.concatenate([[w * b[0] - u @ b[1:]], w * b[1:] + b[0] * u + np.cross(u, b[1:])])
