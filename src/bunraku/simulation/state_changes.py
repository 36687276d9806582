"""States that a simulation starts or continues from: checked, closed and recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bunraku.checks import aligned, as_number
from bunraku.entries.explain import explain, refuse
from bunraku.entries.moves import unit_quaternions
from bunraku.errors import ConstraintError, ShapeError, SimulationError
from bunraku.evaluate.impulse import impulse as struck
from bunraku.evaluate.impulse import wrench_of
from bunraku.integrate import solver_memory as m
from bunraku.simulation.closing import closed_start, neutral_start
from bunraku.simulation.records.tape import Extent
from bunraku.simulation.records.trajectory import Event

if TYPE_CHECKING:
    from bunraku.simulation.running import Running


class Kick(NamedTuple):
    """An impulse on a link."""

    link: str
    wrench: np.ndarray  # (6,) impulse and moment of impulse, world axes
    point: Any          # where it acts, in the link's frame


def start(run: Running, q, v, t: float, extent: Extent) -> None:
    """Begin at a state; by default neutral, or the nearest state that closes all loops, and at rest."""
    plan = run.mechanism.plan()
    if q is None:
        q = neutral_start(run.mechanism, run.acting.prescribed)
    q, v, closed = as_state(run, q, plan.zero_tau if v is None else v,
                            "cannot start", t)
    memory = run.settings.memory(np.concatenate([q, v]))
    memory.clock[m.TIME] = t
    run.begin(memory, extent)
    for text in (closed, *run.acting.said()):
        if text:
            run.tape.event(Event(t, text))


def set_state(run: Running, q, v, t: float | None) -> None:
    """See `Simulation.set_state`."""
    time_, before = run.t if t is None else as_number("set_state: t [s]", t, ShapeError), run.t
    q, v, closed = as_state(run, run.q if q is None else q, run.v if v is None else v, "set_state", time_)
    what = "set_state" if time_ == before else f"set_state: from t = {before:.6g} s"
    run.change(run.mechanism, q, v, f"{what}; {closed}" if closed else what, time_)


def impulse(run: Running, link: str, impulse, moment, point) -> None:
    """See `Simulation.impulse`."""
    q, v, _ = as_state(run, run.q, run.v, "impulse", run.t)
    after, answers = struck(run.mechanism, q, v, link, impulse, moment, point=point, locked=run.acting.locked)
    given = np.array2string(np.asarray(impulse, float), precision=4, separator=", ")
    run.change(run.mechanism, q, after, f"impulse on {link!r}: {given} N s",
               by=Kick(link, wrench_of(impulse, moment), point))
    run.impulses = answers


def as_state(run: Running, q, v, what: str, t: float) -> tuple[np.ndarray, np.ndarray, str]:
    """A state to continue from at the time t: of the right size, finite, quaternions normalised, prescribed joints on
    their motion, loops closed; and a description of the corrections. `what` begins error messages."""
    plan = run.mechanism.plan()
    batch, (q, v) = aligned(("q", q, plan.nq), ("v", v, plan.nv))
    if batch is not None:
        raise ShapeError("a simulation goes on from one state, not from a batch; bk.rollout simulates every state "
                         "of a batch")
    if not (np.isfinite(q).all() and np.isfinite(v).all()):
        raise SimulationError(f"{what}: {explain(plan, q, {'v': v})}")
    unit = unit_quaternions(plan, q[None])[0]  # as in a rollout, to the last bit
    if not np.isfinite(unit).all():
        refuse(plan, q, {"v": v})
    moved: list[str] = []
    if run.acting.courses:
        unit, v, moved = run.acting.start(unit, v, t)
    try:
        unit, v, said = closed_start(run.mechanism, unit, v, run.acting.prescribed)
    except ConstraintError as error:
        raise SimulationError(f"{what}: {error}") from None
    if moved:
        said = "; ".join(filter(None, (said, f"prescribed: {', '.join(moved)} moved to where the motion begins")))
    if run.contact is not None:
        run.contact.refuse_overlap(unit, v, what)
        run.contact.fresh = True
    return unit, v, said
