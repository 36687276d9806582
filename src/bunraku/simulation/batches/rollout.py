"""Many simulations of one mechanism at once: different states and parameters, the same actuation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bunraku.checks import aligned, as_array, as_finite
from bunraku.entries.explain import several
from bunraku.entries.pool import how_many
from bunraku.errors import ShapeError, SimulationError
from bunraku.integrate.runge_kutta import Tableau
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.runs.actuation import Actuation
from bunraku.simulation.actuating import given_params
from bunraku.simulation.batches.group import Group, one_by_one, touching_one_by_one
from bunraku.simulation.batches.tiles import in_lanes
from bunraku.simulation.closing import neutral_start
from bunraku.simulation.needed_kernels import prepare_simulation
from bunraku.simulation.records.trajectory import Segment, Trajectory
from bunraku.simulation.settings import SIMULTANEOUS, Settings
from bunraku.terminal import Bar


@dataclass(eq=False)
class Rollout:
    """Results of a batch of states. For a single state all arrays are without the axis B.

    A state that failed has NaN at the times it did not reach; `reached` is the last time it reached.
    """

    mechanism: Mechanism
    t: np.ndarray            # (T,) the times asked for
    q: np.ndarray            # (B, T, nq)
    v: np.ndarray            # (B, T, nv)
    reached: np.ndarray      # (B,) time
    steps: np.ndarray        # (B,)
    rejected: np.ndarray     # (B,) steps
    evaluations: np.ndarray  # (B,) of the right-hand side
    loop_error: np.ndarray   # (B,) how far loops were from closed, at most [m, rad]
    loop_drift: np.ndarray   # (B,) what a single step has left open, at most, before it was closed [m, rad]
    failed: tuple[int, ...]  # numbers of the states that did not get to the end
    workers: int
    wall_time: float         # [s] of the runs, without compiling

    def trajectory(self, state: int | None = None) -> Trajectory:
        """One of the motions, as far as it was recorded, as a trajectory for viewing or saving."""
        if (state is None) != (self.q.ndim == 2):
            raise ShapeError("say which state of the batch" if state is None else "there is one state only")
        if state is not None and not -len(self.q) <= state < len(self.q):
            raise ShapeError(f"there is no state {state}: the batch has {len(self.q)}, from 0 on")
        q, v = (self.q, self.v) if state is None else (self.q[state], self.v[state])
        n = int(np.isfinite(q).all(axis=1).sum())
        return Trajectory([Segment(self.mechanism, self.t[:n].copy(), q[:n].copy(), v[:n].copy())])

    def __repr__(self):
        states = "one state" if self.q.ndim == 2 else f"{len(self.q)} states"
        return (f"Rollout of {self.mechanism.name}: {states} to {self.t[-1]:g} s, {len(self.t)} recorded, "
                f"{len(self.failed)} failed; {int(np.sum(self.steps))} steps in {self.wall_time:.3g} s")


def rollout(mechanism: Mechanism, q=None, v=None, until: float | None = None, *, times=None,
            solver: str | Tableau = "gear", step: float | None = None, rtol: float = 1e-6, atol: float = 1e-8,
            actuation=None, params=None, max_step: float = math.inf, min_step: float = 0.0,
            max_order: int | None = None, baumgarte: float | None = None, max_contacts: int | None = None,
            impacts: str = SIMULTANEOUS, workers: int | None = None, progress: bool | None = None) -> Rollout:
    """Simulate every state of a batch from time 0, as `Simulation` does, entirely in compiled code.

    q, v        (nq,), (nv,), or with a leading axis B; a single one is used for all; default as of `Simulation`
    until       the end; only the state there is kept. Or `times`: an increasing array of times, whose states are kept.
                Steps end at each exactly, as by sim.run(until=t) for each in turn
    params      (k,), or (B, k): given to a compiled actuation
    workers     threads; by default as many as there are cores, and one for a plain Python actuation
    solver, step, rtol, atol, actuation, ...    as for `Simulation`

    Fixed steps ("symplectic_euler", "rk4") without connections take several states at once in lanes of the processor.
    Where shapes may touch, or joints have friction or hard limits, fixed steps are time-stepping; adaptive solvers go
    from event to event. These, and fixed steps with impacts="sequential", take the states one after the other.
    A SimulationError names all the states that failed, after the others are done, and has everything in `.result`.
    """
    ends = _times(until, times)
    batch, q, v, params = _states(as_mechanism(mechanism), q, v, params, actuation)
    if workers is None and actuation is not None and not isinstance(actuation, Actuation):
        workers = 1  # the interpreter lets in one thread at a time
    settings = Settings.of(solver, rtol, atol, step=step, max_step=max_step, min_step=min_step, max_order=max_order,
                           baumgarte=baumgarte, max_contacts=max_contacts, impacts=impacts)
    group, used = Group(mechanism, q, v, params, ends, settings, actuation), how_many(workers, len(q))
    seconds = 0.0
    if (group.status == 0).any():
        touches = group.mechanism.needs_contact()
        together = settings.fixed_step and group.plan.loops is None and len(q) > 1
        together = together and (not touches or (group.mechanism.contact_pairs().complete and impacts == SIMULTANEOUS))
        if together:
            run = in_lanes
        else:
            run = touching_one_by_one if touches else one_by_one
            prepare_simulation(settings, loops=group.plan.loops is not None, contact=touches)
        used = 1 if run is touching_one_by_one else used
        with Bar(progress, 0.0, float(ends[-1])) as bar:
            seconds = run(group, used, bar)
    return _result(group, batch, used, seconds)


# -- what people give ----------------------------------------------------------------------------------------------


def _times(until, times) -> np.ndarray:
    if until is not None and times is not None:
        raise ShapeError("give until or times, not both: the last of the times is the end")
    if until is None and times is None:
        raise ShapeError("say how long: until=2.0 for the state at the end, or times=[...] for several")
    ends = as_array("until" if times is None else "times", [until] if times is None else times)
    if ends.ndim != 1 or ends.size == 0 or not np.isfinite(ends).all() or ends[0] < 0 or (np.diff(ends) <= 0).any():
        what = "until must be a time from 0 s on" if times is None else "times must increase, from 0 s on"
        raise ShapeError(f"{what}, not {until if times is None else times!r}")
    return ends.copy()


def _states(mechanism, q, v, params, actuation):
    """(size of the batch or None, q, v, params): all with a leading axis, params with one row where shared."""
    params = given_params(actuation, params)
    given = np.zeros(0) if params is None else as_finite("params", params, infinite=True)
    if given.ndim not in (1, 2):
        raise ShapeError(f"params has shape {given.shape}; it must be (k,), or (B, k) for a batch")
    if given.ndim == 2 and not isinstance(actuation, Actuation):
        raise ShapeError("params of a batch are for an actuation made by @bk.actuation; others never see them")
    batch, (q, v, own) = aligned(("q", neutral_start(mechanism) if q is None else q, mechanism.nq),
                                 ("v", np.zeros(mechanism.nv) if v is None else v, mechanism.nv),
                                 ("params", given, given.shape[-1]))
    if batch == 0:
        raise ShapeError("a batch without any states")
    if batch is None:
        q, v = q[None], v[None]
    return batch, q, v, (own.copy() if given.ndim == 2 else given[None].copy())


# -- what people get -----------------------------------------------------------------------------------------------


def _result(group, batch, workers, wall_time) -> Rollout:
    """The results; if states have failed, an error that names them all and holds the results."""
    count, records = len(group.y), len(group.times)
    arrays: list = [group.q_at.reshape(count, records, group.nq), group.v_at.reshape(count, records, group.nv),
              group.reached, group.steps, group.rejected, group.evaluations, group.loop_error,
              group.loop_drift]
    failed = np.flatnonzero(group.status).tolist()
    if batch is None:
        arrays = [x[0] for x in arrays]
    q, v, reached, steps, rejected, evaluations, error, drift = arrays
    done = Rollout(group.mechanism, group.times, q, v, reached, steps, rejected, evaluations, error, drift,
                   tuple(failed), workers, wall_time)
    if not failed:
        return done
    if batch is None:
        message = group.reason(0)
    else:
        message = several(group.status, group.reason, "did not get to the end")
    raise SimulationError(message, states=failed, result=done) from group.causes.get(failed[0])
