"""Servos: joints of one degree of freedom follow a course of targets by PD control, with limited torque."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

import bunraku as bk

EVERY = 0.01  # [s] between targets
HEAD = 5      # numbers per joint, before its targets


class Servo(NamedTuple):
    """Parameters of a joint's servo: stiffness [N m/rad or N/m], damping [N m s/rad or N s/m], largest torque or
    force."""

    stiffness: float
    damping: float
    strongest: float = np.inf


@bk.actuation
def servos(t, q, v, params, tau):
    """Torques of all servos.

    params: how many targets; then for each joint: place in q, place in v, stiffness, damping, largest torque, and its
    targets, EVERY seconds.
    """
    n = int(params[0])
    k = min(max(int(t / EVERY), 0), n - 2)
    s = min(max(t / EVERY - k, 0.0), 1.0)
    for row in range(1, params.shape[0], HEAD + n):
        i, j, p = int(params[row]), int(params[row + 1]), row + HEAD + k
        change = params[p + 1] - params[p]
        torque = params[row + 2] * (params[p] + s * change - q[i]) + params[row + 3] * (change / EVERY - v[j])
        tau[j] = min(max(torque, -params[row + 4]), params[row + 4])


def servo_params(mechanism: bk.Mechanism, joints: Mapping[str, Servo], course: Callable[[float], Mapping[str, float]],
                 seconds: float) -> np.ndarray:
    """The `params` of `servos`. course: a function of t that gives {joint: coordinate}."""
    targets = [course(t) for t in EVERY * np.arange(int(np.ceil(seconds / EVERY)) + 2)]
    rows: list[float] = [len(targets)]
    for name, servo in joints.items():
        rows += [mechanism.q_slice(name).start, mechanism.v_slice(name).start, *servo, *(x[name] for x in targets)]
    return np.array(rows, float)


def smooth(times: Sequence[float], values, t: float) -> np.ndarray:
    """From value to value, at rest at each: values (n,) or (n, k)."""
    values = np.asarray(values, float)
    k = int(np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 2))
    s = float(np.clip((t - times[k]) / (times[k + 1] - times[k]), 0.0, 1.0))
    return values[k] + s**3 * (10.0 - 15.0 * s + 6.0 * s**2) * (values[k + 1] - values[k])
