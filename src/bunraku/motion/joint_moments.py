"""Inverse dynamics of a motion: joint moments, and residuals of the measured forces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bunraku.checks import as_array
from bunraku.errors import ShapeError
from bunraku.evaluate import inverse_dynamics, poses
from bunraku.mechanism import Free, Mechanism
from bunraku.mechanism.named import Named
from bunraku.motion.plates import Assignment, ground_forces

if TYPE_CHECKING:
    from bunraku.motion.motion import Motion


@dataclass(frozen=True, eq=False)
class JointMoments:
    """Torques of all joints at the frames of a motion."""

    mechanism: Mechanism
    t: np.ndarray                         # (frames,)
    tau: np.ndarray                       # (frames, nv)
    external: dict[str, np.ndarray]       # ground forces and others: {link: (frames, 6)} at its origin, world axes
    moments: dict[str, np.ndarray]        # {joint: (frames, its degrees of freedom)} in the components of v
    residuals: dict[str, np.ndarray]      # {Free joint on the ground: (frames, 6)}: force, moment about the link's
                                          # origin, world axes, that no measured force explains
    assignments: tuple[Assignment, ...] = ()  # which force plate acts on which link, and when

    @property
    def residual_force(self) -> float:
        """The largest residual force [N]."""
        return max((float(np.linalg.norm(r[:, :3], axis=1).max()) for r in self.residuals.values()), default=0.0)

    @property
    def residual_moment(self) -> float:
        """The largest residual moment [N m]."""
        return max((float(np.linalg.norm(r[:, 3:], axis=1).max()) for r in self.residuals.values()), default=0.0)

    def magnitude(self, joint: str) -> np.ndarray:
        """Norm of a joint's moment (frames,) [N m]."""
        return np.linalg.norm(self.moments[joint], axis=1)

    def __repr__(self):
        most = max(self.moments, key=lambda name: self.magnitude(name).max(initial=0.0), default=None)
        peak = f", most in {most!r}: {self.magnitude(most).max():.4g} N m" if most else ""
        plates = "".join(f"\n  force plate {assigned}" for assigned in self.assignments)
        return (f"JointMoments of {self.mechanism.name}: {len(self.t)} frames{peak}; residuals up to "
                f"{self.residual_force:.3g} N, {self.residual_moment:.3g} N m{plates}")


def joint_moments(motion: Motion, plates, feet: Sequence[str], external: Mapping | None) -> JointMoments:
    m = motion.mechanism
    wrenches, assignments = ground_forces(motion, plates, feet)
    for link, wrench in (external or {}).items():
        array = as_array(f"external: the wrench on {link!r}", wrench)
        if array.shape not in ((6,), (len(motion.t), 6)):
            raise ShapeError(f"external: the wrench on {link!r} has shape {array.shape}; it must be (6,) or "
                             f"({len(motion.t)}, 6)")
        wrenches[link] = wrenches.get(link, np.zeros((len(motion.t), 6))) + array
    tau = inverse_dynamics(m, motion.q, motion.v, motion.a, external=wrenches or None)
    moments, residuals = {}, {}
    where = poses(m, motion.q)
    for link in m.links:
        part = tau[:, m.v_slice(link.joint_name)]
        if isinstance(link.joint, Free) and _grounded(m, link.parent):
            turn = where[link.name][0]
            residuals[link.joint_name] = np.concatenate(
                [np.einsum("nij,nj->ni", turn, part[:, k:k + 3]) for k in (0, 3)], axis=1)
        elif link.joint.nv:
            moments[link.joint_name] = part
    return JointMoments(m, motion.t, tau, wrenches, Named(moments, m.no_joint), Named(residuals, m.no_joint),
                        tuple(assignments))


def _grounded(mechanism: Mechanism, parent: int) -> bool:
    """Whether a link is the ground, or fixed to it."""
    while parent >= 0 and mechanism.links[parent].joint.nv == 0:
        parent = mechanism.links[parent].parent
    return parent < 0
