"""`bk.sensitivities`: derivatives of the motion of a simulation with respect to its start and to parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bunraku.checks import as_positive
from bunraku.errors import ModelError, ShapeError
from bunraku.simulation.records.trajectory import Trajectory
from bunraku.simulation.sensitivity.collocation import propagators
from bunraku.simulation.sensitivity.following import Arc, Crossing, Tangent
from bunraku.simulation.sensitivity.smooth_motion import Wanted
from bunraku.simulation.simulation import Simulation, running

FIRST = 4  # steps of the solver in the first intervals


class EventSensitivity(NamedTuple):
    """Derivatives of the time of an event; NaN where slip begins or contacts separate, since the motion is smooth
    there."""

    t: float
    text: str
    by_state: np.ndarray       # (2 nv,)
    by_parameters: np.ndarray  # (parameters,)


@dataclass(frozen=True, eq=False)
class Sensitivities:
    """Derivatives of a motion with respect to its start and to parameters.

    A state varies by x = (small move, change of v), 2 nv numbers, with moves as in `Mechanism.integrate`. Where an
    event has ended the run, the derivatives are those of the state at the event, whose time varies too.
    """

    t: np.ndarray                    # (n,) times: those asked for, or the end
    by_state: list[np.ndarray]       # at each (2 nv, 2 nv at the start)
    by_parameters: list[np.ndarray]  # at each (2 nv, parameters)
    names: list[str]                 # of the parameters' columns
    events: list[EventSensitivity]
    trajectory: Trajectory


def sensitivities(simulation: Simulation, until: float, *, parameters: Sequence = (), times: Sequence | None = None,
                  tolerance: float | None = None) -> Sensitivities:
    """Run a simulation to `until`, and differentiate its motion with respect to its present state and parameters.

    simulation  adaptive, with dense=True and record="all"; it is advanced to `until`, as by `run`
    parameters  those of `bk.parameter_derivatives`, and ("params", k) of a compiled actuation, ("friction", shape) and
                ("restitution", shape)
    times       at which derivatives are returned; by default the end
    tolerance   of the variational equations, by default the simulation's rtol

    Events are included: impacts, ends of slip, hard limits, conditions of `when` with connect, cut and impulse in their
    actions, also at given times. An event that the motion only grazes is an error, since its time does not vary
    smoothly. Contacts that close at the same moment are assumed to do so after small changes, too.
    """
    run = running(simulation)
    if run.settings.fixed_step or not run.tape.dense:
        raise ModelError("sensitivities are along the steps of an adaptive solver: bk.Simulation(..., dense=True); for "
                         "fixed steps see bk.gradient and bk.step_derivatives")
    if run.follower is not None:
        raise ModelError("sensitivities of this simulation are being computed already")
    tolerance = run.settings.rtol if tolerance is None else as_positive("tolerance", tolerance, ShapeError)
    wanted = Wanted.of(run.mechanism, parameters, len(run.acting.params))
    begin, nv = run.t, run.mechanism.nv
    run.follower = tangent = Tangent(run, wanted)
    try:
        simulation.advance(until)
        tangent.ends(run)
    finally:
        run.follower = None
    at = np.array([run.t] if times is None else times, float)
    if at.ndim != 1 or (at < begin).any() or (at > run.t).any() or (np.diff(at) < 0).any():
        raise ShapeError(f"times must increase from {begin:g} to {run.t:g} s")
    S, found, events = np.eye(2 * nv, 2 * nv + len(wanted.names)), [], []
    trajectory, waiting = simulation.trajectory, at.tolist()
    for part in tangent.parts:
        if isinstance(part, Crossing):
            S, later = part.across(S)
            if part.leaving is not None:  # not the start
                events.append(EventSensitivity(part.t, part.text, later[:2 * nv], later[2 * nv:]))
            continue
        stops = [t for t in waiting if t < part.end]
        waiting = waiting[len(stops):]
        for t, now in _along(part, trajectory, S, stops, tolerance):
            S = now
            if t in stops:
                found += [S] * stops.count(t)
    found += [S] * len(waiting)
    return Sensitivities(at, [x[:, :2 * nv] for x in found], [x[:, 2 * nv:] for x in found], wanted.names, events,
                         trajectory)


def _along(arc: Arc, trajectory: Trajectory, S, stops, tolerance: float):
    """(time, sensitivities) at the ends of the intervals of an arc, the last is its end."""
    motion, begin, end = arc.motion, arc.motion.start, arc.end
    segment = next(s for s in reversed(trajectory.segments)
                   if s.mechanism is motion.mechanism and s.t[0] <= begin and s.t[-1] >= end)

    def matrices(times):
        states = [segment.at(float(t)) for t in times]
        return motion.model(times, np.array([q for q, _ in states]), np.array([v for _, v in states]))

    inside = segment.t[(segment.t > begin) & (segment.t < end)]
    breaks = np.unique(np.concatenate([[begin, end], inside[FIRST - 1::FIRST], [t for t in stops if t > begin]]))
    if begin in stops:
        yield begin, S
    for step in propagators(matrices, breaks, S, tolerance):
        S = step.carry(S)
        yield step.end, S
