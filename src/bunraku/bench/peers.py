"""The same mechanism in Pinocchio and in MuJoCo, built in code, with states carried over both ways.

Both are built from the links of the `Mechanism`, not from its plan, so that agreement also checks the plan. Revolute,
Prismatic, Compound (of these), Spherical, Free and Fixed joints, without springs, dampers and armature. Joints are
added depth first, as Pinocchio asks, so coordinates are permuted. Links on Fixed joints are merged into their parents
in both.
"""

from __future__ import annotations

import importlib
import re

import numpy as np

from bunraku.errors import MissingExtra, ModelError
from bunraku.mechanism import Compound, Fixed, Free, Joint, Mechanism, Prismatic, Revolute, Spherical
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
        if not all(isinstance(joint, (Revolute, Prismatic, Spherical, Free, Fixed)) for joint in _simple(link.joint)):
            raise ModelError(f"{m.name}: peers have Revolute, Prismatic, Spherical, Free and Fixed joints only, not "
                             f"{link.joint!r} (joint {link.joint_name!r})")


def _simple(joint: Joint) -> list[Joint]:
    """The sequence of joints of a Compound; any other joint alone."""
    return list(joint.screws) if isinstance(joint, Compound) else [joint]


class Pinocchio:
    """`model` and `data` of Pinocchio. Velocities mean the same on both sides; quaternions are x y z w there."""

    def __init__(self, m: Mechanism):
        _refuse_unknown(m)
        self.pin = pin = required("pinocchio")
        self.model = model = pin.Model()
        model.gravity.linear[:] = m.gravity
        # joint that carries each link, link frame in the joint's frame
        self.carrier = carrier = {-1: (0, pin.SE3.Identity())}
        order_q: list[int] = []
        order_v: list[int] = []
        for i, link in _depth_first(m):
            parent, frame = carrier[link.parent]
            place = frame * pin.SE3(link.rotation, link.position)
            joint, frame, chain = parent, place, _simple(link.joint)
            for k, simple in enumerate(chain):
                if isinstance(simple, Fixed):
                    continue
                own = pin.SE3.Identity()  # the frame of Pinocchio's joint in ours
                if isinstance(simple, (Revolute, Prismatic)):  # the fast aligned joint z, in a frame turned to suit
                    own = pin.SE3(rotation_from_z(simple.axis), simple.at)
                    kind = pin.JointModelRZ() if isinstance(simple, Revolute) else pin.JointModelPZ()
                else:
                    kind = pin.JointModelSpherical() if isinstance(simple, Spherical) else pin.JointModelFreeFlyer()
                name = link.joint_name + (f"/{k}" if len(chain) > 1 else "")
                joint, frame = model.addJoint(joint, kind, frame * own, name), own.inverse()
            q, v = m.q_slice(link.joint_name), m.v_slice(link.joint_name)
            first = q.stop - 4
            order_q += ([*range(q.start, first), first + 1, first + 2, first + 3, first]
                        if isinstance(link.joint, (Spherical, Free)) else range(q.start, q.stop))
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
    """`model` and `data` of MuJoCo, with everything but tree dynamics disabled.

    A free joint's q is in world axes there, and so is its linear velocity. A ModelError if MuJoCo rejects the
    mechanism: it requires mass on every moving body and physical inertias.
    """

    def __init__(self, m: Mechanism):
        _refuse_unknown(m)
        self.mujoco = mujoco = required("mujoco")
        spec = mujoco.MjSpec()
        spec.option.gravity = m.gravity
        spec.compiler.fusestatic = True
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
            six = link.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
            inertia = {"fullinertia": six} if six.any() else {}  # zeros are refused, nothing is not
            body = bodies[i] = bodies[link.parent].add_body(
                name="" if link.name == "world" else link.name, pos=link.position, quat=quaternion_of(link.rotation),
                mass=link.mass, ipos=link.com, explicitinertial=True, **inertia)
            for joint in _simple(link.joint):
                if isinstance(joint, (Revolute, Prismatic)):
                    kind = mujoco.mjtJoint.mjJNT_HINGE if isinstance(joint, Revolute) else mujoco.mjtJoint.mjJNT_SLIDE
                    body.add_joint(type=kind, axis=joint.axis, pos=joint.at)
                elif isinstance(joint, Spherical):
                    body.add_joint(type=mujoco.mjtJoint.mjJNT_BALL)
                elif isinstance(joint, Free):
                    if link.parent >= 0:
                        raise ModelError("it has free joints on the ground only")
                    body.add_freejoint()
                    self.free.append((len(self.order_q), len(self.order_v), link.rotation, link.position))
            q, v = m.q_slice(link.joint_name), m.v_slice(link.joint_name)
            self.order_q += range(q.start, q.stop)
            self.order_v += range(v.start, v.stop)
        self.add_shapes(m, bodies)
        try:
            self.model = spec.compile()
        except ValueError as error:
            reason = str(error).strip().removeprefix("Error: ").splitlines()[0]
            where = re.search(r"Element name '(.+?)'", str(error))
            raise ModelError(reason + (f" (link {where[1]!r})" if where else "")) from None
        self.data = mujoco.MjData(self.model)

    def add_shapes(self, m: Mechanism, bodies: dict) -> None:
        """For subclasses with contacts: shapes on MuJoCo's bodies, by link; -1 is the ground."""

    def q(self, q):
        out = np.array(q)[self.order_q]
        for k, _, R, p in self.free:
            out[k:k + 3] = p + R @ out[k:k + 3]
            out[k + 3:k + 7] = _product(quaternion_of(R), out[k + 3:k + 7])
        return out

    def v(self, q, v):
        """Velocities, and torques (a force on a free joint turns like its velocity)."""
        out = np.array(v)[self.order_v]
        for k, j, R, _ in self.free:
            out[j:j + 3] = R @ rotation_of(np.array(q)[self.order_q][k + 3:k + 7]) @ out[j:j + 3]
        return out

    def back(self, q, v, a):
        """Accelerations: d/dt (R v) = R (a + w x v)."""
        a = np.array(a)
        own = np.array(v)[self.order_v]
        for k, j, R, _ in self.free:
            turn = R @ rotation_of(np.array(q)[self.order_q][k + 3:k + 7])
            a[j:j + 3] = turn.T @ a[j:j + 3] - np.cross(own[j + 3:j + 6], own[j:j + 3])
        out = np.empty_like(a)
        out[self.order_v] = a
        return out

    def forward(self, q, v, tau):
        d = self.data
        d.qpos[:], d.qvel[:], d.qfrc_applied[:] = self.q(q), self.v(q, v), self.v(q, tau)
        self.mujoco.mj_forward(self.model, d)
        return self.back(q, v, d.qacc)


def rotation_of(quaternion):
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def quaternion_of(R):
    from scipy.spatial.transform import Rotation

    return np.roll(Rotation.from_matrix(R).as_quat(), 1)


def _product(a, b):
    w, u = a[0], a[1:]
    return np.concatenate([[w * b[0] - u @ b[1:]], w * b[1:] + b[0] * u + np.cross(u, b[1:])])
