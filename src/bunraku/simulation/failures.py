"""Why a run had to stop, in words: of a simulation, of a state of a rollout, of an equation."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bunraku.errors import BunrakuError
from bunraku.integrate import memory as m
from bunraku.run.states import explain


def stopped(status: int, where: str, mechanism, q, v, *, cause: BaseException | None = None, min_step: float = 0.0,
            tried: float | None = None, torques: Iterable[tuple[str, np.ndarray]] = ()) -> str:
    """What to say of a mechanism's motion that ended with `status` at `where`.

    cause     what the actuation raised
    tried     the last step [s]
    torques   those of the actuation about there, each with the time in words
    """
    if status == m.ACTUATION_FAILED:
        return f"the actuation failed {where}" + (f": {said(cause)}" if cause else "")
    if status == m.STEP_TOO_SMALL:
        return step_too_small(where, min_step, tried, " s", "or soften it")
    if status == m.LOOPS_CLASH:
        return (f"the motion cannot go on {where}: the loops have come to a dead point, where their constraints ask "
                "for what cannot be (see bk.dynamics(...).report); start it off the dead point, or give it smaller "
                "steps")
    return f"the motion cannot go on {where}: {_not_finite(mechanism, q, v, torques)}"


def step_too_small(where: str, min_step: float, tried: float | None, unit: str, else_do: str) -> str:
    """What to say where error control asks for a shorter step than there may be."""
    if min_step > 0:
        return (f"the step became too small {where}: the tolerances ask for less than min_step = {min_step:g}{unit}; "
                "lower min_step, or loosen rtol and atol")
    last = "" if tried is None else f" (last tried {tried:.3g}{unit})"
    return (f"the step became too small {where}{last}: something very stiff, singular or discontinuous; loosen rtol "
            f"and atol, {else_do}")


def said(error: BaseException) -> str:
    """What an error says; of those that are not ours also what it is."""
    return str(error) if isinstance(error, BunrakuError) else f"{type(error).__name__}: {error}".removesuffix(": ")


def cannot_compile(what: str, error: Exception) -> str:
    """What Numba says of a function that it cannot compile, without what it says of ours."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and not line.startswith(("Failed in nopython", "During:", "File "))]
    return f"{what} cannot be compiled by Numba: {told[0] if told else error}"


def _not_finite(mechanism, q, v, torques) -> str:
    if np.isfinite(q).all() and np.isfinite(v).all():
        for when, tau in torques:
            bad = np.flatnonzero(~np.isfinite(tau))
            if bad.size:
                return f"tau[{bad[0]}] of {_owner(mechanism, bad[0])} is {tau[bad[0]]}, from the actuation {when}"
    return explain(mechanism, q, {"v": v})


def _owner(mechanism, place) -> str:
    """Of a torque: its joint, or its connection."""
    if place < mechanism.nv:
        return f"joint {mechanism.links[mechanism.plan().dof_link[place]].joint_name!r}"
    return next(f"connection {name!r}" for name in mechanism.connections if place < mechanism.drive_slice(name).stop)
