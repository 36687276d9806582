"""Derivatives of accelerations while contacts are closed: the motion in which every contact keeps its mode.

Idea: sticking contacts are equality constraints, three each; sliding ones are one each, with friction against the slip.
In fixed modes the accelerations are a smooth function of state and torques (`contact/contact_motion.py`), also a little
off the states in which gaps and slips vanish. Its derivatives are differences of order eight over 1e-3, exact to about
1e-11, for every kind of contact, with loops, friction of joints and hard limits. Cost: 16 nv motions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bunraku.algorithms.connection_equations import DYNAMICS
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_fields import OPEN, SLIDING, STICKING
from bunraku.contact.contact_motion import KEEP, LOOK, contact_one
from bunraku.entries.explain import refuse
from bunraku.entries.signatures import FINE
from bunraku.evaluate.contact_workspace import Acts, Touching

WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
"""Of f(k h) - f(-k h), k = 1 .. 4: exact for polynomials of degree 8."""
STEP = 1e-3  # [rad, m, rad/s, m/s]
SLOWER = 0.01  # part of the slowest slip by which velocities are varied: directions of slip turn with them


def slope(function: Callable, step: float = STEP):
    """Derivative at 0 of a function of one number, of order eight."""
    return sum(w * (function(k * step) - function(-k * step)) for k, w in enumerate(WEIGHTS, 1)) / step


def columns(function: Callable, count: int, step: float = STEP) -> np.ndarray:
    """Derivatives along `count` directions, as columns."""
    found = [slope(lambda h, d=d: function(h * d), step) for d in np.eye(count)]
    return np.stack(found, axis=-1) if found else np.zeros((*np.shape(function(np.zeros(0))), 0))


class ContactDerivatives(NamedTuple):
    a: np.ndarray
    da_dq: np.ndarray
    da_dv: np.ndarray
    da_dtau: np.ndarray   # columns for the torques of the tree, then for the drives of connections
    jacobian: np.ndarray  # of the closed contacts: normal velocity, and slip where they stick
    rates_dq: np.ndarray


class ModeMotion:
    """Accelerations of a mechanism whose contacts keep the present modes of a workspace."""

    def __init__(self, touching: Touching, q, v, acts: Acts):
        self.touching = touching
        self.modes = touching.touch.modes.copy()
        touching.touch.features[:] = 0.0
        touching.solve(KEEP, q, v, acts)
        self.touched = bool((self.modes != OPEN).any())

    def acceleration(self, q, v, acts: Acts) -> np.ndarray:
        touching = self.touching
        a, structure = np.empty(touching.plan.nv), touching.structure
        dof_f = structure.dof_f if touching.plan.loops is None else touching.plan.loops.dof_f
        if contact_one.call(DYNAMICS, structure, dof_f, q, v, *acts, a, touching.work) != FINE:
            refuse(touching.plan, q, {"v": v, "tau": acts.tau})
        return a

    def held(self, q, v, acts: Acts) -> np.ndarray:
        """Velocities that the modes keep at zero: of gaps, and of slip where contacts stick."""
        touching = self.touching
        touching.touch.modes[:] = self.modes
        look = touching.solve(LOOK, q, v, acts)
        return np.concatenate([u[self._kept(int(k))] for k, u in zip(look.rows, look.before, strict=True)]
                              or [np.zeros(0)])

    def _kept(self, k: int) -> slice:
        """Components of a contact's velocity (normal, two tangents) that its mode keeps at zero."""
        if k < self.touching.joints and self.touching.given.joint_i[k, c.JOINT_KIND] == c.DRY:
            return slice(1, 2) if self.modes[k] == STICKING else slice(0, 0)
        if self.touching.is_moment(k):
            return slice(1, 1 if self.modes[k] != STICKING else 2 if self.touching.role(k) == c.SPIN else 3)
        return slice(0, 3 if self.modes[k] == STICKING and k >= self.touching.joints else 1)

    def finest(self, q, v, acts: Acts) -> float:
        """By how much velocities are varied."""
        touching = self.touching
        touching.touch.modes[:] = self.modes
        look = touching.solve(LOOK, q, v, acts)
        slips = np.hypot(look.before[:, 1], look.before[:, 2])[self.modes[look.rows] == SLIDING]
        slips = slips[slips > 0.0]
        return min(STEP, SLOWER * float(slips.min(initial=1.0)))


def contact_derivatives(touching: Touching, q, v, acts: Acts) -> ContactDerivatives:
    """Of one state in the present modes of the workspace."""
    motion, moved = ModeMotion(touching, q, v, acts), touching.mechanism.integrate
    nv, nc, fine = len(v), len(acts.drives), motion.finest(q, v, acts)

    def pushed(more):
        return motion.acceleration(q, v, acts._replace(tau=acts.tau + more[:nv], drives=acts.drives + more[nv:]))

    force = max(1.0, float(np.abs(acts.tau).max(initial=0.0)))  # accelerations are linear in forces
    by_torque = [(pushed(force * unit) - pushed(-force * unit)) / (2.0 * force) for unit in np.eye(nv + nc)]
    still = motion.held(q, 0.0 * v, acts)  # belts move
    rows = [motion.held(q, unit, acts) - still for unit in np.eye(nv)]
    found = ContactDerivatives(
        motion.acceleration(q, v, acts),
        columns(lambda move: motion.acceleration(moved(q, move), v, acts), nv),
        columns(lambda more: motion.acceleration(q, v + more, acts), nv, fine), np.stack(by_torque, axis=-1),
        np.stack(rows, axis=-1), columns(lambda move: motion.held(moved(q, move), v, acts), nv))
    touching.touch.modes[:] = motion.modes
    return found


def friction_derivative(touching: Touching, q, v, acts: Acts, of) -> np.ndarray:
    """Of the accelerations in the present modes, by the friction coefficients of contacts: `of` holds those of all
    contacts as their change with one number."""
    motion, friction = ModeMotion(touching, q, v, acts), touching.arrays.contact_f[:, c.FRICTION]
    before = friction.copy()
    if not of.any():
        return np.zeros(len(v))

    def changed(h):
        friction[:] = before + h * of
        try:
            return motion.acceleration(q, v, acts)
        finally:
            friction[:] = before

    return np.asarray(slope(changed))
