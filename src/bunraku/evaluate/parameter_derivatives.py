"""Derivatives of torques and accelerations with respect to parameters of the mechanism and to external forces.

Idea: at given accelerations the torques that a mechanism needs are linear in the inertial parameters of its links
(`inertial_regressor`), in stiffness, damping and armature of its joints, in gravity and in external forces; so their
derivatives are columns of known matrices. Those of accelerations are da/dp = -(da/dtau) (dtau/dp), with (da/dtau) of
the mechanism as it is: tree, loops or closed contacts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bunraku.algorithms.connection_equations import IMPULSE
from bunraku.checks import aligned, hint
from bunraku.entries import closed_solution as closed
from bunraku.entries.inverse_entries import inverse_dynamics
from bunraku.entries.motion_matrix_entries import regressors
from bunraku.errors import ModelError, NamingError
from bunraku.evaluate.derivatives import derivatives
from bunraku.evaluate.kinematics import kinematics
from bunraku.mechanism import Free, Mechanism, Spherical
from bunraku.mechanism.joints import FRICTION
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.plan import fields as f

INERTIAL = 10  # numbers of a link in `inertial_parameters`
OF_INERTIA = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
AXES = ("x", "y", "z")
TENSOR = ("xx", "xy", "yy", "xz", "yz", "zz")
LINKS = {"mass": ("mass",), "com": tuple(f"com {x}" for x in AXES), "inertia": tuple(f"inertia {x}" for x in TENSOR),
         "inertial": ("mass", *(f"moment {x}" for x in AXES), *(f"inertia at origin {x}" for x in TENSOR)),
         "external": (*(f"force {x}" for x in AXES), *(f"moment {x}" for x in AXES))}
"""Parameters of links, and what their columns are called."""
JOINTS = ("stiffness", "damping", "rest", "armature", "friction", "torque")
SPRINGS = ("stiffness", "damping", "rest_length")
GRAVITY = "gravity"


class ParameterDerivatives(NamedTuple):
    """Derivatives with respect to parameters, a column for each of `names`; (B, ...) for a batch."""

    da: np.ndarray     # (nv, k): of the accelerations, at given tau
    dtau: np.ndarray   # (nv, k), or (nv + nc, k) with connections: of the torques, at given accelerations
    a: np.ndarray      # the accelerations
    names: list[str]


def parameter_derivatives(mechanism: Mechanism, q, v, tau=None, *, parameters: Sequence,
                          external: Mapping | None = None) -> ParameterDerivatives:
    """How accelerations and torques change with parameters of the mechanism; other arguments as in `derivatives`.

    parameters  a list of (what, name):
                ("mass", link), ("com", link) 3 columns, ("inertia", link) about the centre of mass 6 columns (xx xy yy
                xz yz zz), ("inertial", link) the 10 numbers of `inertial_parameters`;
                ("external", link) 6 columns: force and moment at its frame's origin, world axes;
                ("stiffness", joint), and "damping", "rest", "armature", "friction", "torque" of a joint: one column,
                for a change common to its degrees of freedom; the same of a connection, without armature;
                ("stiffness", spring), "damping" and "rest_length" of a spring between points;
                "gravity", 3 columns
    """
    mechanism = as_mechanism(mechanism)
    wanted = [as_parameter(mechanism, parameter) for parameter in parameters]
    nv, nc = mechanism.nv, mechanism.nc
    if nc and (tau is None or np.shape(tau)[-1] == nv):
        tau = np.zeros(nv) if tau is None else np.asarray(tau, float)
        tau = np.concatenate([tau, np.zeros((*tau.shape[:-1], nc))], axis=-1)
    d = derivatives(mechanism, q, v, tau, external=external)
    dtau = torque_derivatives(mechanism, q, v, d.a, wanted)
    return ParameterDerivatives(-d.da_dtau @ dtau, dtau, d.a, [name for p in wanted for name in p.names])


class Parameter(NamedTuple):
    what: str
    name: str
    names: tuple[str, ...]  # of its columns


def as_parameter(mechanism: Mechanism, given) -> Parameter:
    """A parameter from the user's description; errors name the remedy."""
    if given == GRAVITY or tuple(given) == (GRAVITY,):
        return Parameter(GRAVITY, "", tuple(f"gravity {x}" for x in AXES))
    if isinstance(given, str) or len(given) != 2 or not all(isinstance(x, str) for x in given):
        raise ModelError(f'a parameter is a pair such as ("mass", "upper"), or "gravity", not {given!r}')
    what, name = given
    if what in LINKS:
        if mechanism.find_link(name, what) < 0:
            raise NamingError(f"{what} of the ground is not a parameter; name a link")
        return Parameter(what, name, tuple(f"{part} of {name!r}" for part in LINKS[what]))
    spring = name in [s.name for s in mechanism.springs]
    known = {*JOINTS, *SPRINGS, *LINKS, GRAVITY}
    if what not in known:
        raise ModelError(f"{what!r} is not a parameter{hint(what, sorted(known)) or f': there are {sorted(known)}'}")
    if what in SPRINGS and spring:
        return Parameter(what, name, (f"{what} of spring {name!r}",))
    if what == "rest_length":
        raise NamingError(f"rest_length: there is no spring {name!r}{hint(name, [s.name for s in mechanism.springs])}")
    if name in mechanism.connections:
        joint = mechanism.connections[name].joint
        if what in ("armature", "friction", "rest_length"):
            raise ModelError(f"connection {name!r} has no {what}")
    else:
        joint = mechanism.links[mechanism.find_joint(name, f"{what}: ", mechanism.connections)].joint
    if what in ("stiffness", "rest") and isinstance(joint, Free):
        raise ModelError(f"joint {name!r} is free, and free joints have no springs")
    if what == "rest" and isinstance(joint, Spherical):
        raise ModelError(f"joint {name!r} is a ball: its spring rests in the neutral pose")
    if what == "friction" and not joint.has_laws:
        raise ModelError(f"joint {name!r} has no friction: it has several degrees of freedom")
    return Parameter(what, name, (f"{what} of {name!r}",))


def torque_derivatives(mechanism: Mechanism, q, v, a, wanted: Sequence[Parameter], plan=None) -> np.ndarray:
    """(nv + nc, columns), or (B, ...): of the torques of joints, then of connections, that give accelerations a.
    `plan`: of the mechanism, if its gravity is another one."""
    plan = mechanism.plan() if plan is None else plan
    batch, (q, v, a) = aligned(("q", q, plan.nq), ("v", v, plan.nv), ("a", a, plan.nv))
    state = _State(mechanism, plan, q, v, a)
    shape = (*(() if batch is None else (batch,)), plan.nv + mechanism.nc)
    columns = [np.zeros((*shape, 0))]
    for parameter in wanted:
        column = np.zeros((*shape, len(parameter.names)))
        state.fill(parameter, column)
        columns.append(column)
    return np.concatenate(columns, axis=-1)


class _State:
    """What derivatives by several parameters have in common."""

    def __init__(self, mechanism: Mechanism, plan, q, v, a):
        self.mechanism, self.plan, self.q, self.v, self.a = mechanism, plan, q, v, a
        self._regressor: np.ndarray | None = None

    def fill(self, parameter: Parameter, out: np.ndarray) -> None:
        what, name, mechanism = parameter.what, parameter.name, self.mechanism
        tree = out[..., :self.plan.nv, :]
        if what == GRAVITY:
            self.fill_gravity(tree)
        elif what == "external":
            tree[:] = -kinematics(mechanism, self.q).jacobian(name).swapaxes(-1, -2)
        elif what in LINKS:
            tree[:] = self.regressor(name) @ self.inertial_change(what, name)
        elif name in [s.name for s in mechanism.springs] and what in SPRINGS:
            self.fill_spring(what, name, tree[..., 0])
        elif name in mechanism.connections:
            at = mechanism.drive_slice(name)
            out[..., at, 0] = self.passive_change(what, mechanism.connections[name].joint, *self.of_connection(name))
        else:
            link, at = mechanism.links[mechanism.find_joint(name, "")], mechanism.v_slice(name)
            x = self.q[..., mechanism.q_slice(name)]
            x = rotation_vectors(x) if isinstance(link.joint, Spherical) else x
            tree[..., at, 0] = self.passive_change(what, link.joint, x, self.v[..., at], self.a[..., at])

    def regressor(self, name: str) -> np.ndarray:
        """(nv, 10) of a link."""
        if self._regressor is None:
            self._regressor = regressors(self.plan, self.q, self.v, self.a)
        k = INERTIAL * self.mechanism.find_link(name, "")
        return self._regressor[..., k:k + INERTIAL]

    def inertial_change(self, what: str, name: str) -> np.ndarray:
        """(10, columns): `inertial_parameters` of a link by the numbers that it is given by."""
        link = self.mechanism.link(name)
        c, unit = link.com, np.eye(3)
        if what == "inertial":
            return np.eye(INERTIAL)
        if what == "inertia":
            return np.vstack([np.zeros((4, 6)), np.eye(6)])
        if what == "mass":
            about = c @ c * unit - np.outer(c, c)
            return np.array([1.0, *c, *(about[ij] for ij in OF_INERTIA)])[:, None]
        out = np.zeros((INERTIAL, 3))
        for k in range(3):
            about = link.mass * (2.0 * c[k] * unit - np.outer(unit[k], c) - np.outer(c, unit[k]))
            out[1 + k, k], out[4:, k] = link.mass, [about[ij] for ij in OF_INERTIA]
        return out

    @staticmethod
    def passive_change(what: str, joint, x, v, a):
        if what == "stiffness":
            return x - (0.0 if isinstance(joint, Spherical) else joint.passive[:, f.REST])
        return {"damping": lambda: v, "armature": lambda: a, "torque": lambda: -np.ones_like(v),
                "rest": lambda: 0.0 * x - joint.passive[:, f.STIFFNESS],
                "friction": lambda: np.sign(v) * np.ones(len(joint.laws[:, FRICTION]))}[what]()

    def of_connection(self, name: str):
        """Coordinates and rates of a connection; there is no acceleration."""
        c, both = self.plan.loops.names.index(name), []
        for q, v in zip(np.atleast_2d(self.q), np.atleast_2d(self.v), strict=True):
            both.append(closed.solve(self.plan, IMPULSE, q, v, judge=False).coordinates(c))
        x, rate = (np.array(part) for part in zip(*both, strict=True))
        return (x, rate, rate) if self.q.ndim == 2 else (x[0], rate[0], rate[0])

    def fill_gravity(self, out: np.ndarray) -> None:
        """Weight is linear in gravity."""
        still = np.zeros_like(self.v)
        for k, unit in enumerate(np.eye(3)):
            out[..., k] = inverse_dynamics(inertia_alone(self.plan, unit), self.q, still, still, None, None)

    def fill_spring(self, what: str, name: str, out: np.ndarray) -> None:
        """Tension k (L - L0) + d dL/dt, and dL/dq = n . (J_b - J_a)."""
        spring = next(s for s in self.mechanism.springs if s.name == name)
        names, moved = self.mechanism.link_names, kinematics(self.mechanism, self.q, self.v)
        ends, slopes = [], []
        for link, point in ((spring.link_a, spring.position_a), (spring.link_b, spring.position_b)):
            if link < 0:
                ends.append(np.broadcast_to(point, (*self.q.shape[:-1], 3)))
                slopes.append(np.zeros((*self.q.shape[:-1], 3, self.plan.nv)))
                continue
            R, x = moved.poses[names[link]]
            ends.append(x + R @ point)
            slopes.append(moved.jacobian(names[link], point)[..., :3, :])
        apart = ends[1] - ends[0]
        length = np.linalg.norm(apart, axis=-1, keepdims=True)
        by_q = ((apart / length)[..., None, :] @ (slopes[1] - slopes[0]))[..., 0, :]
        if what == "stiffness":
            out[:] = by_q * (length - spring.rest_length)
        elif what == "rest_length":
            out[:] = -spring.stiffness * by_q
        else:
            out[:] = by_q * (by_q * self.v).sum(axis=-1, keepdims=True)


def rotation_vectors(p: np.ndarray) -> np.ndarray:
    """Of unit quaternions w x y z: within half a turn."""
    p = np.where(p[..., :1] < 0.0, -p, p)
    sine = np.linalg.norm(p[..., 1:], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, p[..., :1])
    return p[..., 1:] * np.where(sine > 1e-9, angle / np.maximum(sine, 1e-300), 2.0)


def inertia_alone(plan, gravity=(0.0, 0.0, 0.0)):
    """The same mechanism, rotors included, without springs, dampers and limits, in other gravity."""
    body_i, body_f, dof_f = plan.body_i.copy(), plan.body_f.copy(), np.zeros_like(plan.dof_f)
    body_i[-1, f.HEAD_PASSIVE] = body_i[-1, f.HEAD_SPRINGS] = 0
    body_f[-1, f.GRAVITY:f.GRAVITY + 3] = gravity
    dof_f[f.ARMATURE], dof_f[f.LOWER], dof_f[f.UPPER] = plan.dof_f[f.ARMATURE], -np.inf, np.inf
    return replace(plan, body_i=body_i, body_f=body_f, dof_f=dof_f, spring_i=plan.spring_i[:0],
                   spring_f=plan.spring_f[:0])
