"""Figures with motors from the MJCF files of Gymnasium: hopper, half-cheetah, walker, ant, humanoid.

Shapes, masses and joints are those of the file (`bunraku.load`). Ranges of joints act as in MuJoCo's default, springs
with a time constant of 20 ms that are critically damped; they stay within the range where the joint's own inertia is
least. A motor's torque is its control, within its range, times its gear.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bunraku.checks import hint
from bunraku.errors import LoadWarning, MissingExtra, NamingError
from bunraku.evaluate import mass_matrix
from bunraku.io import load
from bunraku.mechanism import Compound, Mechanism, Revolute

FILES = {"hopper": "hopper.xml", "half-cheetah": "half_cheetah.xml", "walker": "walker2d_v5.xml", "ant": "ant.xml",
         "humanoid": "humanoid.xml"}
SOFT = 0.02  # [s] time constant of limits: MuJoCo's solref


@dataclass(frozen=True, eq=False)
class Figure:
    """A mechanism with motors."""

    mechanism: Mechanism
    joints: np.ndarray  # (nu,) numbers in v of the motors' joints
    gear: np.ndarray    # (nu,) torque per control [N m]
    low: np.ndarray     # (nu,) least control
    high: np.ndarray    # (nu,) largest control
    start: np.ndarray   # (nq,) pose in which the figure begins
    step: float         # [s] of the file
    path: Path

    def torques(self, control) -> np.ndarray:
        """(..., nv) torques of controls (..., nu)."""
        control = np.asarray(control, float)
        tau = np.zeros((*control.shape[:-1], self.mechanism.nv))
        tau[..., self.joints] = self.gear * np.clip(control, self.low, self.high)
        return tau


def figure(name: str, touching: bool = True) -> Figure:
    """A figure by its name in FILES; without its shapes unless `touching`."""
    if name not in FILES:
        raise NamingError(f"there is no figure {name!r}{hint(name, tuple(FILES))}")
    path = folder() / FILES[name]
    mujoco = _imported("mujoco")
    model = mujoco.MjModel.from_xml_path(str(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LoadWarning)  # of limits and motors, which are added here
        mechanism = load(path, shapes=touching)
    start = np.array(model.qpos0)
    own = 1.0 / np.diag(np.linalg.inv(mass_matrix(mechanism, start)))
    for link in mechanism.links:
        at, joint = mechanism.v_slice(link.name), link.joint
        screws = joint.screws if isinstance(joint, Compound) else (joint,) if isinstance(joint, Revolute) else ()
        ends = [bool(np.isfinite([screw.lower, screw.upper]).any()) for screw in screws]
        if any(ends):
            mechanism = mechanism.with_joint(link.joint_name, **_limits(own[at] * ends))
    joints = model.jnt_dofadr[model.actuator_trnid[:, 0]]
    return Figure(mechanism, np.array(joints, np.int64), np.array(model.actuator_gear[:, 0]),
                  np.array(model.actuator_ctrlrange[:, 0]), np.array(model.actuator_ctrlrange[:, 1]), start,
                  float(model.opt.timestep), path)


def _limits(inertia) -> dict[str, Any]:
    stiffness, damping = inertia / SOFT**2, 2.0 * inertia / SOFT
    one = len(inertia) == 1
    return {"limit_stiffness": float(stiffness[0]) if one else stiffness,
            "limit_damping": float(damping[0]) if one else damping}


def folder() -> Path:
    """Where Gymnasium keeps its models."""
    return Path(_imported("gymnasium").__file__).parent / "envs" / "mujoco" / "assets"


def _imported(name: str):
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra(f'figures of Gymnasium need {name}: pip install "bunraku[gym]"') from None
