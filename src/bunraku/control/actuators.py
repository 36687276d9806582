"""The actuators of an MJCF file as a controller: motors, position and velocity servos, affine gain and bias.

Their force is that of `io/mjcf_actuators.py`, eq. (1). Lengths are linear in the coordinates of hinges and sliders; the
length of an actuator on a ball is the part of its rotation vector along the gear, that on a free joint zero, as MuJoCo
defines them. Cost: O(actuators and joints on them).
"""

from __future__ import annotations

import math
import os
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from bunraku.checks import as_array, as_positive
from bunraku.control.controller import Controller
from bunraku.control.held import ROUNDING
from bunraku.control.joint_control import OTHER
from bunraku.convert.match import Piece, part_names, pieces
from bunraku.errors import ModelError, ShapeError
from bunraku.io.mjcf_actuators import ActuatorData, read_actuators
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism


def from_file(mechanism, path: str | os.PathLike, *, control=None, period: float | None = None,
              strict: bool = False) -> Controller:
    """The actuators of an MJCF file as a controller, for a mechanism whose joints have the names in the file.

    controller["control"]   (nu,) inputs of the actuators; controller["hip"]: the input of the actuator "hip"
    control     these inputs; zero by default. With `period` (n, nu): row k is applied from k period to (k + 1) period
    strict      raise a LoadError instead of a LoadWarning for actuators that cannot be represented and are left out

    controller["gain"] and controller["bias"] are (nu, 3): the force is (g0 + g1 l + g2 l') control + b0 + b1 l + b2 l',
    with l the length of the actuator. Ranges of controls, forces and joint torques are enforced.
    """
    m, found = as_mechanism(mechanism), read_actuators(path, strict)
    actuators, nv = found.actuators, m.nv
    if not actuators:
        raise ModelError(f"{os.fspath(path)}: has no actuators that can be represented")
    places = _Places(m)
    scalars, turns = places.of(actuators)
    ranges = [(places.of_scalar(name), *bounds) for name, bounds in found.joint_ranges.items() if places.has(name)]
    limits = Limits(np.array([a.control_range for a in actuators]), np.array([a.force_range for a in actuators]),
                    np.array([a.tendon if a.tendon in found.tendon_ranges else -1 for a in actuators]),
                    np.array([found.tendon_ranges.get(a.tendon, (-np.inf, np.inf)) for a in actuators]),
                    np.array([at for at, _, _ in ranges], np.int64),
                    np.array([bounds for _, *bounds in ranges]).reshape(-1, 2))
    nu, rows = len(actuators), 1
    inputs = as_array("from_file: control", np.zeros(nu) if control is None else control)
    if period is not None:
        period, rows = as_positive("from_file: period [s]", period, ShapeError), len(np.atleast_2d(inputs))
    if inputs.shape != ((nu,) if period is None else (rows, nu)) or not np.isfinite(inputs).all():
        shape = f"({nu},)" if period is None else f"(n, {nu})"
        raise ShapeError(f"from_file: control must be finite numbers of shape {shape}, one for each actuator, not of "
                         f"{inputs.shape}")
    held, size = 0.0 if period is None else period, rows * nu + 6 * nu

    def actuators_of_file(t, q, v, params, tau, model):
        if model.nv != nv or params.shape[0] != size:
            raise ValueError(OTHER)
        k = min(max(math.floor(t / held + ROUNDING), 0), rows - 1) if held > 0.0 else 0
        actuator_torques(q, v, params[k * nu:(k + 1) * nu], params[size - 6 * nu:size - 3 * nu], params[size - 3 * nu:],
                         scalars, turns, limits, tau[:nv])
    return Controller(actuators_of_file, {"control": inputs, "gain": np.array([a.gain for a in actuators]),
                                          "bias": np.array([a.bias for a in actuators])},
                      entries={a.name: ("control", k) for k, a in enumerate(actuators)})


class Scalars(NamedTuple):
    """Hinges and sliders on actuators, a row each: numbers of actuator, coordinate, velocity; weight in the length."""

    actuator: np.ndarray
    q: np.ndarray
    v: np.ndarray
    weight: np.ndarray


class Turns(NamedTuple):
    """Three velocities of a ball or free joint each: linear or angular ones, about axes of the child."""

    actuator: np.ndarray
    q: np.ndarray        # where the quaternion begins
    v: np.ndarray        # first of the three velocities
    gear: np.ndarray     # (n, 3)
    turned: np.ndarray   # 1: the gear has axes of the parent, 0: of the child
    angle: np.ndarray    # 1: the rotation vector counts in the length


class Limits(NamedTuple):
    control: np.ndarray  # (nu, 2)
    force: np.ndarray    # (nu, 2)
    tendon: np.ndarray   # (nu,) number of a tendon with a range, -1: none
    tendons: np.ndarray  # (nu, 2) this range
    v: np.ndarray        # numbers of velocities whose torque has a range
    torque: np.ndarray   # (n, 2) this range


@register_jitable
def child_axes(q, at, gear, turned, out):
    """`out` = the gear in axes of the child: turned back by the quaternion at q[at]."""
    w, x, y, z = q[at], q[at + 1], q[at + 2], q[at + 3]
    if not turned:
        w, x, y, z = 1.0, 0.0, 0.0, 0.0
    s = 2.0 / (w * w + x * x + y * y + z * z)
    a, b, c = gear[0], gear[1], gear[2]
    out[0] = (1.0 - s * (y * y + z * z)) * a + s * (x * y + w * z) * b + s * (x * z - w * y) * c
    out[1] = s * (x * y - w * z) * a + (1.0 - s * (x * x + z * z)) * b + s * (y * z + w * x) * c
    out[2] = s * (x * z + w * y) * a + s * (y * z - w * x) * b + (1.0 - s * (x * x + y * y)) * c


@register_jitable
def along(q, at, axis):
    """Part of the rotation vector of the quaternion at q[at] along an axis."""
    sine = math.sqrt(q[at + 1] * q[at + 1] + q[at + 2] * q[at + 2] + q[at + 3] * q[at + 3])
    if sine == 0.0:
        return 0.0
    angle = 2.0 * math.atan2(sine, q[at])
    if angle > math.pi:
        angle -= 2.0 * math.pi
    return angle / sine * (q[at + 1] * axis[0] + q[at + 2] * axis[1] + q[at + 3] * axis[2])


@register_jitable
def actuator_torques(q, v, control, gain, bias, scalars, turns, limits, tau):
    """Torques of all actuators, [io/mjcf_actuators.py, eq. (1)]; `gain` and `bias` have three numbers for each."""
    nu, axes = control.shape[0], np.empty((turns.v.shape[0], 3))
    length, rate, force = np.zeros(nu), np.zeros(nu), np.empty(nu)
    for k in range(scalars.v.shape[0]):
        i, weight = scalars.actuator[k], scalars.weight[k]
        length[i] += weight * q[scalars.q[k]]
        rate[i] += weight * v[scalars.v[k]]
    for k in range(turns.v.shape[0]):
        i, at = turns.actuator[k], turns.v[k]
        child_axes(q, turns.q[k], turns.gear[k], turns.turned[k] == 1, axes[k])
        rate[i] += axes[k, 0] * v[at] + axes[k, 1] * v[at + 1] + axes[k, 2] * v[at + 2]
        if turns.angle[k] == 1:
            length[i] += along(q, turns.q[k], axes[k])
    for i in range(nu):
        u = min(max(control[i], limits.control[i, 0]), limits.control[i, 1])
        force[i] = ((gain[3 * i] + gain[3 * i + 1] * length[i] + gain[3 * i + 2] * rate[i]) * u
                    + bias[3 * i] + bias[3 * i + 1] * length[i] + bias[3 * i + 2] * rate[i])
    share_tendons(limits, force)
    for i in range(nu):
        force[i] = min(max(force[i], limits.force[i, 0]), limits.force[i, 1])
    tau[:] = 0.0
    for k in range(scalars.v.shape[0]):
        tau[scalars.v[k]] += scalars.weight[k] * force[scalars.actuator[k]]
    for k in range(turns.v.shape[0]):
        for x in range(3):
            tau[turns.v[k] + x] += axes[k, x] * force[turns.actuator[k]]
    for k in range(limits.v.shape[0]):
        tau[limits.v[k]] = min(max(tau[limits.v[k]], limits.torque[k, 0]), limits.torque[k, 1])


@register_jitable
def share_tendons(limits, force):
    """Forces of actuators on one tendon, all in proportion, so that their sum is within its range."""
    shares = np.ones(force.shape[0])
    for i in range(force.shape[0]):
        if limits.tendon[i] >= 0:
            total = 0.0
            for k in range(force.shape[0]):
                if limits.tendon[k] == limits.tendon[i]:
                    total += force[k]
            if total != 0.0:
                shares[i] = min(max(total, limits.tendons[i, 0]), limits.tendons[i, 1]) / total
    for i in range(force.shape[0]):
        force[i] *= shares[i]


class _Places:
    """Where joints of an MJCF file are in a mechanism that was read from it, by name."""

    def __init__(self, mechanism: Mechanism):
        self.mechanism = mechanism
        self.found: dict[str, list[Piece]] = {}
        for link in mechanism.links:
            own = pieces(mechanism, link)
            names = part_names(link) or [link.joint_name]
            for name, group in zip(names, [[piece] for piece in own] if len(names) > 1 else [own], strict=True):
                self.found[name] = group
        for name in [name for name in self.found if name.endswith("/turn")]:  # a free joint in four parts
            free = name.removesuffix("/turn")
            if all(f"{free}/{x}" in self.found for x in "xyz"):
                self.found[free] = [*(self.found[f"{free}/{x}"][0] for x in "xyz"), *self.found[name]]

    def has(self, name: str) -> bool:
        return name in self.found

    def of_scalar(self, name: str) -> int:
        return self.found[name][0].v

    def of(self, actuators: list[ActuatorData]) -> tuple[Scalars, Turns]:
        scalars: list[tuple] = []
        turns: list[tuple] = []
        for i, actuator in enumerate(actuators):
            for joint, gear, in_parent in actuator.coupled:
                if joint not in self.found:
                    self.mechanism.find_joint(joint, f"from_file: actuator {actuator.name!r}: ")
                kinds = [piece.kind for piece in self.found[joint]]
                parts = self.found[joint]
                if kinds == ["scalar"] and len(gear) == 1:
                    scalars.append((i, parts[0].q, parts[0].v, gear[0]))
                elif kinds == ["ball"] and len(gear) == 3:
                    turns.append((i, parts[0].q, parts[0].v, gear, in_parent, True))
                elif kinds == ["free"] and len(gear) == 6:
                    turns.append((i, parts[0].q + 3, parts[0].v, gear[:3], True, False))
                    turns.append((i, parts[0].q + 3, parts[0].v + 3, gear[3:], in_parent, False))
                elif kinds == ["scalar"] * 3 + ["ball"] and len(gear) == 6:
                    raise ModelError(f"from_file: actuator {actuator.name!r}: the free joint {joint!r} has a spring or "
                                     "armature; actuators on it are not supported")
                else:
                    raise ModelError(f"from_file: actuator {actuator.name!r}: joint {joint!r} is "
                                     f"{parts[0].link.joint!r} here, but has {len(gear)} freedoms in the file")
        mover, at_q, at_v = (np.array([row[k] for row in scalars], np.int64) for k in range(3))
        weights = np.array([row[3] for row in scalars], float)
        turner, quaternion, turn_v, turned, angle = (np.array([row[k] for row in turns], np.int64)
                                                     for k in (0, 1, 2, 4, 5))
        axes = np.array([row[3] for row in turns], float).reshape(-1, 3)
        return (Scalars(mover, at_q, at_v, weights), Turns(turner, quaternion, turn_v, axes, turned, angle))
