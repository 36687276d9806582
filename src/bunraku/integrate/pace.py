"""Detection of slow runs during the run: stiffness, and chattering torques.

Both make steps far shorter than the motion needs. If the interpolation of p + 1 states (order p), SPREAD steps apart,
reproduces the states between, steps SPREAD times as long would have met the tolerances, and accuracy does not limit
them. Then a torque that jumps within the tolerances of the state is chattering; without one,
an explicit method is at its limit of stability, which an implicit one does not have. Checked between stretches of
compiled code, and only if the run would take long at this pace: ordinary runs have no overhead.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bunraku.integrate.solver_memory import MAX_STEP, REJECTED, STEPS, TIME, UNTIL, Memory

SPREAD = 32         # steps between the states that are compared with
MANY = 20_000       # steps left at this pace from which on it is looked at
WITHIN = 10.0       # times the tolerance: how well those between must fit
JUMP = 0.4          # of the range of a torque, within a 64th of the way through the tolerance: a jump
OFTEN = 0.5         # rejected steps per step, from which on a torque that jumps is looked for in any case
LAST = 8            # states about which a jump is looked for
LARGE = 1e-3        # of the largest torque: a range that matters


class Words(NamedTuple):
    """Words of the messages for the integrated problem."""

    unit: str       # of time
    stiff: str      # who is stiff, and the remedy
    cure: str
    jumps: str      # who chatters, and the remedy; {} is the place in the array
    switch: str


MOTION = Words(" s", "the motion is stiff", "take solver='implicit', or 'bdf'", "the actuation chatters: tau[{}]",
               "make it continuous, such as tanh(v / 0.01) in place of sign(v)")
EQUATION = Words("", "the equation is stiff", "take method='bdf'", "f(t, y) chatters: component {} of it",
                 "make it continuous, such as tanh(y / 0.01) in place of sign(y), or end the run by an event there")


def squares(y, weights, nodes, tolerance) -> np.ndarray:
    """(states,): squares of the differences between the states y and `weights` of those at some of them (`nodes`), over
    the tolerances, added up over the components."""
    return (((weights @ y[nodes] - y) / (tolerance[0] * np.abs(y) + tolerance[1])) ** 2).sum(axis=1)


def _of_arrays(pages, skip, weights, nodes, tolerance):
    return squares(np.concatenate(pages)[skip:], weights, nodes, tolerance)


class Pace:
    """Progress monitor of a run: warns at most once of a slow run.

    misfit    `squares` of the states on some pages but the first `skip`, for pages that are not arrays
    """

    def __init__(self, explicit: bool, words: Words, misfit: Callable[..., np.ndarray] = _of_arrays):
        self.explicit, self.words, self.misfit = explicit, words, misfit
        self.said, self.next_look = False, 2 * SPREAD
        self.recent: list[tuple[np.ndarray, Any]] = []  # times and states of the last stretches, where they are short

    def look(self, memory: Memory, order: int, t: np.ndarray, y, seconds: float, torque=None) -> str | None:
        """Warning text, if any, after a stretch of steps with end times t and states y that took `seconds`.

        order    of the last step
        torque   of the actuation at (t, y), if there is one
        """
        clock = memory.clock
        if self.said or len(t) < 2 or memory.tally[STEPS] < self.next_look:
            return None
        step = abs(t[-1] - t[0]) / (len(t) - 1)
        left = abs(clock[UNTIL] - clock[TIME]) / step if step > 0.0 else np.inf
        if left < MANY or step > 0.5 * clock[MAX_STEP]:
            self.recent = []
            return None
        need, pace = order * SPREAD + 1, left * seconds / len(t)
        if self.recent and self.recent[0][1].shape[1] != y.shape[1]:
            self.recent = []
        self.recent.append((t.copy(), y.copy()))  # stretches of large mechanisms are short
        times, pages = map(list, zip(*self.recent, strict=True))
        if sum(map(len, times)) < need:
            return None
        self.next_look, self.recent = 2 * int(memory.tally[STEPS]), []
        t = np.concatenate(times)
        smooth = _smooth(t[-need:], y.shape[1], lambda *fit: self.misfit(pages, len(t) - need, *fit, memory.tolerance))
        if not smooth and memory.tally[REJECTED] < OFTEN * memory.tally[STEPS]:
            return None
        found = None
        if torque is not None:
            with contextlib.suppress(Exception):  # one that is not defined this near, and never had to be
                last = np.concatenate([np.asarray(page) for page in pages[-LAST:]])[-LAST:]
                found = _chattering(t[-LAST:], last, memory.tolerance, torque)
        if found is None and not (self.explicit and smooth):
            return None
        self.said = True
        unit, stiff, cure, jumps, switch = self.words
        where = f"at t = {clock[TIME]:.6g}{unit}"
        much = f"to {step:.1g}{unit}: {left:.1g} more of them, {_duration(pace)} at this pace"
        if found is None:
            return f"{stiff}: {where} stability, not accuracy, limits the steps {much}; {cure}"
        return f"{jumps.format(found)} jumps within the tolerances {where}, which limits the steps {much}; {switch}"


def _smooth(t, components: int, misfit) -> bool:
    """Whether the states between every SPREAD-th one follow from those, within the tolerances."""
    nodes = np.arange(0, len(t), SPREAD)
    x = (t - t[0]) / (t[-1] - t[0])
    weights = np.ones((len(t), len(nodes)))  # Lagrange's polynomials
    for i, a in enumerate(nodes):
        for b in nodes:
            if b != a:
                weights[:, i] *= (x - x[b]) / (x[a] - x[b])
    return bool(np.sqrt(misfit(weights, nodes) / components).max() < WITHIN)


def _chattering(t, y, tolerance, torque) -> int | None:
    """Index of a torque that jumps between states which differ by less than the tolerance; None if there is none."""
    share, signs = np.linspace(-WITHIN, WITHIN, 65), np.random.default_rng(0).choice([-1.0, 1.0], (4, y.shape[1]))
    for when, state in zip(t, y, strict=True):
        for sign in signs:
            way = sign * (tolerance[0] * np.abs(state) + tolerance[1])
            tau = np.array([torque(when, state + s * way) for s in share])
            jump, span = np.abs(np.diff(tau, axis=0)).max(axis=0), np.ptp(tau, axis=0)
            at = np.flatnonzero((jump > JUMP * span) & (span > LARGE * np.abs(tau).max(initial=0.0)))
            if at.size:
                return int(at[0])
    return None


def _duration(seconds: float) -> str:
    for size, unit in ((86400.0 * 365, "years"), (86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} s"


def step_too_small(where: str, min_step: float, tried: float | None, unit: str, else_do: str) -> str:
    """Error text for a step below the smallest admissible one."""
    if min_step > 0:
        return (f"the step became too small {where}: the tolerances ask for less than min_step = {min_step:g}{unit}; "
                "lower min_step, or loosen rtol and atol")
    last = "" if tried is None else f" (last tried {tried:.3g}{unit})"
    return (f"the step became too small {where}{last}: the problem is very stiff, singular or discontinuous; loosen "
            f"rtol and atol, {else_do}")
