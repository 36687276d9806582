"""The result of `plan_motion`: the motion, its torques and gains, how they were found, and the controller of both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.control import Controller, state_feedback
from bunraku.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class PlannedMotion:
    """Result of `plan_motion`: a motion, with one more state than steps."""

    mechanism: Mechanism
    step: float         # [s]
    q: np.ndarray       # (steps + 1, nq)
    v: np.ndarray       # (steps + 1, nv)
    tau: np.ndarray     # (steps, nv) torques, held for a step
    gains: np.ndarray   # (steps, nv, 2 nv): torques change by gain x, x = (difference of q, of v) from the motion
    limits: np.ndarray  # (nv,) largest torques, feedback included; infinity without limits
    cost: float
    costs: np.ndarray   # of the first motion, and after each iteration
    gap: float          # largest jump between steps left from a first guess of the states; 0 without such a guess
    iterations: int
    seconds: float      # wall time of all iterations
    converged: bool
    message: str

    @property
    def t(self) -> np.ndarray:
        """(steps + 1,) [s]"""
        return self.step * np.arange(len(self.q))

    @property
    def seconds_each(self) -> float:
        """Wall time of an iteration."""
        return self.seconds / max(self.iterations, 1)

    def controller(self, limits=None) -> Controller:
        """A compiled controller for simulations from the start of the motion: `control.state_feedback` along it.

        limits      largest torques, a number or (nv,); by default those of the plan
        """
        return state_feedback(self.mechanism, self.q, self.gains, v=self.v, tau=self.tau, step=self.step,
                              limits=self.limits if limits is None else limits)

    def __repr__(self):
        return (f"PlannedMotion of {self.mechanism.name}: {len(self.tau)} steps of {self.step:g} s, cost "
                f"{self.cost:.6g} after {self.iterations} iterations, {self.message}")
