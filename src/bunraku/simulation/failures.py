"""Error messages for failed runs: of a simulation, of a state of a rollout, of an equation."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bunraku.entries.explain import explain
from bunraku.errors import BunrakuError
from bunraku.integrate import solver_memory as m
from bunraku.integrate.pace import step_too_small
from bunraku.runs.model import PlanModel

MODEL_CALL = (r"ModelType'>, '(\w+)'\)", r"TypingError: (missing a required argument.*|too many .*arguments.*|"
              r"got an unexpected keyword argument.*)")
"""A wrong call of a method of the model in Numba's message: the method, and what is wrong."""


def stopped(status: int, where: str, mechanism, q, v, *, cause: BaseException | None = None, min_step: float = 0.0,
            tried: float | None = None, torques: Iterable[tuple[str, np.ndarray]] = (),
            left_open: LeftOpen | None = None) -> str:
    """Error text for a mechanism's motion that ended with `status` at `where`.

    cause     what the actuation raised
    tried     the last step [s]
    torques   those of the actuation about there, each with the time in words
    left_open the connection that could not be closed
    """
    if status == m.LOOPS_OPEN and left_open is not None:
        return still_open(where, mechanism, left_open)
    if status == m.ACTUATION_FAILED:
        return f"the actuation failed {where}" + (f": {said(cause)}" if cause else "")
    if status == m.STEP_TOO_SMALL:
        return step_too_small(where, min_step, tried, " s", "or reduce stiffness")
    if status == m.LOOPS_CLASH:
        return (f"the motion cannot go on {where}: the loops have come to a dead point, where their constraints ask "
                "for what cannot be (see bk.dynamics(...).report); start it off the dead point, or give it smaller "
                "steps")
    return f"the motion cannot go on {where}: {_not_finite(mechanism, q, v, torques)}"


class LeftOpen(NamedTuple):
    """The connection whose gap after a step was too large for its loop to be closed."""

    connection: int  # its number
    gap: float       # [m, rad]
    step: float      # [s]
    fixed: bool      # the step was given, not chosen
    hold: float      # rate of `baumgarte`, or 0 [1/s]

    @classmethod
    def of(cls, memory: m.Memory, hold: float) -> LeftOpen:
        clock = memory.clock
        return cls(int(memory.tally[m.OPEN_AT]), float(clock[m.OPEN_BY]), abs(float(clock[m.TAKEN])),
                   bool(clock[m.MIN_STEP] == clock[m.MAX_STEP]), hold)


def still_open(where: str, mechanism, left: LeftOpen) -> str:
    """Error text for a run that would continue with open loops."""
    label = mechanism.plan().loops.label(left.connection)
    gap = f"{left.gap:.3g} (m, rad)" if np.isfinite(left.gap) else "more than numbers can hold"
    if left.hold > 0.0:
        return (f"the loops come apart {where}: baumgarte={left.hold:g} leaves {label} open by {gap}; take "
                "smaller steps, another rate, or leave baumgarte out: then loops are closed after every step")
    what = (f"the loops cannot be closed {where}: a step of {left.step:.3g} s leaves {label} open by "
            f"{gap}, and closing it would change ")
    if left.fixed:
        return what + ("the step or the velocities by more than half; take smaller steps, or a solver that chooses "
                       "them (gear)")
    return what + ("the state by more than ten error tolerances; the linkage is at a singular pose, with more than one "
                   "possible motion; start it elsewhere, change rtol and atol, or try another solver (gear)")


def said(error: BaseException) -> str:
    """Text of an exception, with its notes; with its type if it is not a BunrakuError."""
    text = str(error) if isinstance(error, BunrakuError) else f"{type(error).__name__}: {error}".removesuffix(": ")
    return " ".join([text, *getattr(error, "__notes__", ())])


def cannot_compile(what: str, error: Exception) -> str:
    """Error text for a function that Numba cannot compile: the essential line of Numba's message."""
    method, wrong = (re.search(pattern, str(error)) for pattern in MODEL_CALL)
    if method and wrong:
        form = str(inspect.signature(getattr(PlanModel, method[1]))).partition(" ->")[0].replace("self, ", "")
        return f"{what}: model.{method[1]}: {wrong[1]}; call model.{method[1]}{form}"
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and not line.startswith(("Failed in nopython", "During:", "File "))]
    return f"{what} cannot be compiled by Numba: {told[0] if told else error}"


def _not_finite(mechanism, q, v, torques) -> str:
    if np.isfinite(q).all() and np.isfinite(v).all():
        for when, tau in torques:
            bad = np.flatnonzero(~np.isfinite(tau))
            if bad.size:
                return (f"tau[{bad[0]}] of {_owner(mechanism, bad[0])} is {tau[bad[0]]}, from the actuation {when}; "
                        "it must be finite")
    return explain(mechanism.plan(), q, {"v": v})


def _owner(mechanism, place) -> str:
    """The joint or connection of a torque."""
    if place < mechanism.nv:
        return f"joint {mechanism.links[mechanism.plan().dof_link[place]].joint_name!r}"
    return next(f"connection {name!r}" for name in mechanism.connections if place < mechanism.drive_slice(name).stop)
