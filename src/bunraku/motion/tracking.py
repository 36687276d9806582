"""PD control that follows a motion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve

from bunraku.checks import as_positive, as_size
from bunraku.errors import ModelError, NamingError
from bunraku.evaluate import mass_matrix
from bunraku.mechanism import Free

if TYPE_CHECKING:
    from bunraku.motion.motion import Motion

LOOKED_AT = 20  # frames over which inertias are averaged


def tracking(motion: Motion, kp, kd, frequency: float, feedforward: bool, external, hold: bool) -> Callable:
    m, curve = motion.mechanism, motion.curve
    if m.constrained:
        raise ModelError(f"{m.name} has connections or couplings; tracking is for trees")
    stiffness, damping = gains(motion, kp, kd, frequency)
    driven = np.ones(m.nv)
    for link in m.links:
        if isinstance(link.joint, Free) and not hold:
            driven[m.v_slice(link.joint_name)] = 0.0
    torque = motion.inverse_dynamics(external=external).tau if feedforward else np.zeros((len(motion.t), m.nv))
    t, first, last = motion.t, motion.t[0], motion.t[-1]

    def follow(now, q, v):
        inside = first <= now <= last
        at = min(max(now, first), last)
        place, speed, _ = curve(at)
        k = min(max(int(np.searchsorted(t, at, side="right")) - 1, 0), len(t) - 2)
        share = (at - t[k]) / (t[k + 1] - t[k])
        tau = (1.0 - share) * torque[k] + share * torque[k + 1]
        wanted = speed if inside else np.zeros(m.nv)
        return driven * (tau + stiffness * m.difference(q, place) + damping * (wanted - v))

    follow.__name__ = f"tracking of {motion.name}"
    return follow


def gains(motion: Motion, kp, kd, frequency) -> tuple[np.ndarray, np.ndarray]:
    """Stiffness and damping for every degree of freedom."""
    m = motion.mechanism
    stiffness, damping = _as_gains(m, "kp", kp), _as_gains(m, "kd", kd)
    if np.isnan(stiffness).any() or np.isnan(damping).any():
        some = motion.q[::max(len(motion.t) // LOOKED_AT, 1)]
        inertia = np.mean([1.0 / np.diag(solve(mass_matrix(m, q), np.eye(m.nv), assume_a="pos")) for q in some], axis=0)
        frequency = as_positive("frequency [rad/s]", frequency)
        stiffness = np.where(np.isnan(stiffness), frequency**2 * inertia, stiffness)
        damping = np.where(np.isnan(damping), 2.0 * np.sqrt(stiffness * inertia), damping)
    return stiffness, damping


def _as_gains(m, what: str, value) -> np.ndarray:
    """One number per degree of freedom; NaN where none is given."""
    if value is None:
        return np.full(m.nv, np.nan)
    if not isinstance(value, Mapping):
        return np.full(m.nv, as_size(what, value))
    out = np.full(m.nv, np.nan)
    for name, number in value.items():
        if name not in m.joint_names:
            raise NamingError(f"{what}: {m.no_joint(name)}")
        out[m.v_slice(name)] = as_size(f"{what} of {name!r}", number)
    return out
