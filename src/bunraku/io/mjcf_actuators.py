"""Actuators of an MJCF file as numbers: how each is coupled to joints, and its force.

The force of an actuator without a state of its own, at control u,

    f = (g0 + g1 l + g2 l') u + b0 + b1 l + b2 l'                                                               (1)

with u and f within their ranges; its length l is gear times a joint's coordinate, or times that of a fixed tendon: a
linear combination of joints. The torque of a joint is the derivative of l times f, within the joint's own range.
Actuators of other kinds (activation dynamics, muscles, sites, spatial tendons, adhesion, ...) are left out, with a
finding each.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bunraku.convert.mujoco import joint_names
from bunraku.errors import LoadError
from bunraku.io.findings import Findings
from bunraku.io.mjcf import imported_mujoco
from bunraku.io.mjcf_compile import compile_model
from bunraku.io.prescan import prescan

FIXED, AFFINE = 0, 1                          # mjtGain
NO_BIAS, AFFINE_BIAS = 0, 1                   # mjtBias
JOINT, IN_PARENT, TENDON = 0, 1, 3            # mjtTrn
FREE, BALL = 0, 1                             # mjtJoint
WRAP_JOINT = 1                                # mjtWrap
UNCLAMPED = "mjDSBL_CLAMPCTRL"


class Coupled(NamedTuple):
    """One joint that an actuator moves.

    gear       of a hinge or slider: its weight in the length; of a ball or free joint three or six, angular last
    in_parent  angular ones are about axes of the joint's parent frame
    """

    joint: str
    gear: np.ndarray
    in_parent: bool = False


class ActuatorData(NamedTuple):
    """One actuator. Ranges are infinite where there are none; `tendon`: number of its tendon, -1: none."""

    name: str
    coupled: list[Coupled]
    gain: np.ndarray           # (3,) g0, g1, g2 of eq. (1)
    bias: np.ndarray           # (3,) b0, b1, b2
    control_range: np.ndarray  # (2,)
    force_range: np.ndarray    # (2,)
    tendon: int


class ActuatorFile(NamedTuple):
    actuators: list[ActuatorData]
    joint_ranges: dict[str, np.ndarray]   # of the torque of all actuators together, by joint
    tendon_ranges: dict[int, np.ndarray]  # of the force of all actuators together, by number of the tendon


def read_actuators(path: str | os.PathLike, strict: bool = False) -> ActuatorFile:
    """The actuators of an MJCF file that eq. (1) describes; LoadWarnings about others, or a LoadError if `strict`."""
    path = Path(path)
    if path.suffix.lower() != ".xml":
        raise LoadError(f"{path}: actuators are read from MJCF files (.xml)")
    findings, unused = Findings(path, strict), Findings(path, False)
    model, _ = compile_model(imported_mujoco(), unused, prescan(path, unused), keep=("actuators", "tendons"))
    found = _Reader(model, findings).read()
    findings.report(stacklevel=4)
    return found


class _Reader:
    def __init__(self, model, findings: Findings):
        self.model, self.findings, self.joint_names = model, findings, joint_names(model)

    def read(self) -> ActuatorFile:
        model = self.model
        actuators = []
        for i in range(getattr(model, "nactuator", model.nu)):
            name = model.actuator(i).name or f"actuator{i}"
            reason = self._strange(i)
            coupled = self._coupled(i) if not reason else []
            reason = reason or ("" if coupled else "its transmission is none of joints or fixed tendons")
            if reason:
                self.findings.note(f"actuator {name!r}", f"is left out: {reason}")
            else:
                actuators.append(self._actuator(i, name, coupled))
        ranges = {self.joint_names[j]: np.array(model.jnt_actfrcrange[j], float)
                  for j in np.flatnonzero(model.jnt_actfrclimited)}
        limited = getattr(model, "tendon_actfrclimited", np.zeros(0))
        tendons = {int(k): np.array(model.tendon_actfrcrange[k], float) for k in np.flatnonzero(limited)}
        for j in np.flatnonzero(getattr(model, "jnt_actgravcomp", np.zeros(0))):
            if np.any(model.body_gravcomp):
                self.findings.note(f"joint {self.joint_names[j]!r}",
                                   "gravity compensation by its actuators (actuatorgravcomp) is left out")
        return ActuatorFile(actuators, ranges, tendons)

    def _strange(self, i: int) -> str:
        """Why an actuator cannot be represented, or nothing."""
        model = self.model
        if model.opt.disableactuator and 0 <= model.actuator_group[i] <= 30 \
                and model.opt.disableactuator >> int(model.actuator_group[i]) & 1:
            return "its group is disabled in the file"
        if getattr(model, "actuator_plugin", np.full(model.nu, -1))[i] >= 0:
            return "it is a plugin"
        if model.actuator_dyntype[i] != 0:
            return "it has activation dynamics, a state of its own"
        gain, bias = model.actuator_gaintype[i], model.actuator_biastype[i]
        if gain not in (FIXED, AFFINE) or bias not in (NO_BIAS, AFFINE_BIAS):
            return "its force is no linear function of control, length and velocity"
        if np.any(getattr(model, "actuator_delay", np.zeros(i + 1))[i]):
            return "its control is delayed (bk.control.sampled delays controllers)"
        return ""

    def _actuator(self, i: int, name: str, coupled: list[Coupled]) -> ActuatorData:
        model = self.model
        for quantity in ("armature", "damping"):
            if np.any(getattr(model, f"actuator_{quantity}", np.zeros(i + 1))[i]):
                self.findings.note(f"actuator {name!r}", f"its {quantity} is left out; m.with_joint(name, "
                                                         f"{quantity}=...) gives it to its joint")
        gain = np.array(model.actuator_gainprm[i, :3], float)
        if model.actuator_gaintype[i] == FIXED:
            gain[1:] = 0.0
        bias = np.array(model.actuator_biasprm[i, :3], float) * (model.actuator_biastype[i] == AFFINE_BIAS)
        clamped = model.actuator_ctrllimited[i] and not self._unclamped()
        tendon = int(model.actuator_trnid[i, 0]) if model.actuator_trntype[i] == TENDON else -1
        return ActuatorData(name, coupled, gain, bias, _range(clamped, model.actuator_ctrlrange[i]),
                            _range(model.actuator_forcelimited[i], model.actuator_forcerange[i]), tendon)

    def _unclamped(self) -> bool:
        import mujoco

        return bool(self.model.opt.disableflags & int(getattr(mujoco.mjtDisableBit, UNCLAMPED)))

    def _coupled(self, i: int) -> list[Coupled]:
        """The joints of an actuator; none if they cannot be represented."""
        model, kind, target = self.model, self.model.actuator_trntype[i], int(self.model.actuator_trnid[i, 0])
        gear = np.array(model.actuator_gear[i], float)
        if kind in (JOINT, IN_PARENT):
            count = {FREE: 6, BALL: 3}.get(int(model.jnt_type[target]), 1)
            return [Coupled(self.joint_names[target], gear[:count], kind == IN_PARENT)]
        if kind != TENDON:
            return []
        wraps = range(model.tendon_adr[target], model.tendon_adr[target] + model.tendon_num[target])
        if any(model.wrap_type[w] != WRAP_JOINT or model.jnt_type[model.wrap_objid[w]] in (FREE, BALL) for w in wraps):
            return []
        return [Coupled(self.joint_names[model.wrap_objid[w]], gear[:1] * float(model.wrap_prm[w])) for w in wraps]


def _range(limited, bounds) -> np.ndarray:
    return np.array(bounds, float) if limited else np.array([-np.inf, np.inf])
