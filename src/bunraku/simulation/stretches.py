"""Running: stretches of steps in compiled code, from event to event, until the end.

Compiled code returns at an event, at the end, if something fails, or when its record is full; then Python keeps the
record, looks at the loops and the progress, and calls it again.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator

import numpy as np

from bunraku.checks import as_number
from bunraku.errors import BunrakuError, ShapeError, SimulationError, SimulationWarning
from bunraku.evaluate import impact
from bunraku.evaluate.loop_closure import closed_position
from bunraku.integrate import solver_memory as m
from bunraku.integrate.pace import MOTION
from bunraku.runs.actuation import Actuation
from bunraku.runs.context import structure_of
from bunraku.simulation.actuating import address_of
from bunraku.simulation.checkpoint import refuse_forgotten
from bunraku.simulation.closing import look_at_loops, plan_of_moves
from bunraku.simulation.conditions import Watch, Watched, never_applied
from bunraku.simulation.crowding import SLOW, UNSOLVED
from bunraku.simulation.failures import LeftOpen, stopped
from bunraku.simulation.records.pages import Block, polynomial_room
from bunraku.simulation.records.trajectory import Event
from bunraku.simulation.running import Running
from bunraku.terminal import Bar, Interrupts

CHANGED = -1                  # a status: contact has gone from time steps to events, or back
BODY_STEPS_PER_CALL = 50_000  # compiled code runs this long (bodies times steps) before Python has its turn


def advance(run: Running, until: float, simulation=None, progress: bool | None = False) -> None:
    """See `Simulation.advance`; the simulation is the argument of actions."""
    if as_number("until", until, ShapeError) < run.t:
        raise ShapeError(f"until must be a time from {run.t:g} s on, not {until!r}")
    run.refuse_within_a_step("run")
    run.acting.refuse_beyond(run.t, until)
    refuse_forgotten(run.awaited)
    run.acting.begin()
    try:
        with Bar(progress, run.t, until) as bar, Interrupts() as interrupts:
            _from_event_to_event(run, until, simulation, bar, interrupts)
    except BaseException:
        run.in_step = False  # a signal may have raised it anywhere
        raise
    finally:
        run.tape.settle()
    said = run.contact.said() if run.contact is not None else ""
    for text in ([said] if said else []) + never_applied(run.watches, run.mechanism):
        warnings.warn(text, SimulationWarning, stacklevel=4)


def _from_event_to_event(run: Running, until: float, simulation, bar: Bar, interrupts: Interrupts) -> None:
    while True:
        contact = run.contact if run.contact is not None and not run.contact.stepping else None  # with events
        if contact is not None and contact.fresh:
            contact.settle(run)
            contact = None if contact.stepping else contact
        watched = Watched(run, run.watches if contact is None else [contact.watch, *run.watches])
        happened = watched.already()
        moved = happened is None
        if happened is None:
            begins, state = run.t, run.state.copy() if watched.watches else None
            if run.follower is not None:
                run.follower.departs(run)
            status = _Stretches(run, watched).until(until, bar, interrupts)
            if status in (m.REACHED, m.RECORD_FULL):  # or it was halted
                break
            failed = status in (m.STATE_FAILED, m.STEP_TOO_SMALL)
            if status == CHANGED or (failed and contact is not None and contact.goes_on(run, UNSOLVED)):
                continue
            if status != m.EVENT:
                _fail(run, status, watched)
            happened = watched.found()
            if run.t <= begins:  # at once: exactly where it was
                run.memory.rows[0] = state
            _tidy(run)
        if run.follower is not None:
            run.follower.arrives(run, happened, moved)
        if contact is not None and happened is contact.watch:
            contact.settle(run)
        elif _act(run, happened, simulation) or run.t > until:  # an action may set the time
            break


def _act(run: Running, watch: Watch, simulation) -> bool:
    """Execute the action of a condition that has come true. Returns whether that ends the run."""
    run.tape.event(Event(run.t, watch.name))
    watch.times.append(run.t)
    watch.holds, watch.active = True, watch.repeat
    run.restart()
    try:
        answer = watch.action(simulation)
        return isinstance(answer, (bool, np.bool_)) and bool(answer)
    except Exception as error:
        error.add_note(f"raised by the action of {watch.name!r} at t = {run.t:.6g} s")
        raise


def _tidy(run: Running) -> None:
    """A state between steps: exactly unit quaternions, closed loops and contacts, in the record too."""
    mechanism, prescribed = run.mechanism, run.acting.prescribed
    q, v = mechanism.integrate(run.q, np.zeros(mechanism.nv)), run.v
    if mechanism.constrained:
        try:
            q = closed_position(mechanism, plan_of_moves(mechanism, prescribed), q, limit=math.inf)
            v = impact(mechanism, q, v, prescribed=prescribed)
        except BunrakuError as error:
            raise SimulationError(f"the loops cannot be closed at the event at t = {run.t:.6g} s: {error}",
                                  run.trajectory) from error
    if run.contact is not None:
        q, v = run.contact.tidy(run, q, v)
    run.memory.rows[0] = np.concatenate([q, v])
    run.tape.replace_last(run.memory.rows[0])


# -- compiled code ---------------------------------------------------------------------------------------------------


class _Stretches:
    """Calls of compiled code with the present structure and conditions."""

    def __init__(self, run: Running, watched: Watched):
        settings, acting, sharing, memory = run.settings, run.acting, run.sharing, run.local
        self.run, self.watched, self.watching = run, watched, bool(watched.watches)
        self.plan, (self.entry, self.method) = acting.plan(run.mechanism, settings), settings.entry()
        # steps beyond an event would be thrown away: short stretches
        self.rows = max(1, min(512, (1 if self.watching else 4) * BODY_STEPS_PER_CALL // self.plan.bodies))
        in_lanes = sharing.in_lanes and not acting.array.size
        self.address = address_of(acting.actuation)
        self.structure = structure_of(self.plan, settings.hold, in_lanes)
        if run.contact is not None:
            self.plan, self.structure = run.contact.touching.plan, run.contact.structure()
            self.entry, self.method = run.contact.entry((self.entry, self.method))
        self.looks = run.contact is not None and run.contact.crowding.stepping
        sharing.links_in_lanes = self.plan.lanes.in_lanes if in_lanes and self.plan.lanes is not None else 0
        self.request = run.mechanism, self.plan, memory, acting, self.watching
        kept = (sharing.divided(*self.request) and self.watching) or run.tape.dense
        self.polynomials = polynomial_room(self.rows if kept else 0, memory.rows.shape[1])

    def until(self, until: float, bar: Bar, interrupts: Interrupts) -> int:
        """Run until compiled code returns a status other than a full record, `halted` returns true, or contact goes
        from time steps to events or back."""
        run = self.run
        run.local.clock[m.UNTIL] = until
        while True:
            if self.looks and run.contact is not None and run.contact.looks_for_events(run):
                return CHANGED
            tick = time.perf_counter()
            status, block = self._stretch()
            bar.show(run.t)
            interrupts.let_in()
            if status != m.RECORD_FULL or (run.halted is not None and run.halted()):
                return status
            if self._look_at_pace(block, time.perf_counter() - tick):
                return CHANGED

    def _stretch(self) -> tuple[int, Block]:
        """One stretch: its status and its steps, which are recorded and counted."""
        run, sharing, memory, contact = self.run, self.run.sharing, self.run.local, self.run.contact
        shared = sharing.shared or (sharing.may_begin(run.stats.steps) and sharing.divided(*self.request, begin=True))
        if contact is not None:
            contact.limit_step(run)
            self.rows = contact.crowding.until_look if self.looks else self.rows
        record, block = self.watched.record(self.rows, memory.rows.shape[1], self.polynomials), None
        memory.tally[m.RECORDED] = 0
        before, began, tick = memory.tally.copy(), run.t, time.perf_counter()
        given = self.address, run.acting.params, run.acting.array, memory, record
        try:
            run.in_step = True
            if shared:
                status, block = shared.run(*given)
            else:
                sharing.collect(memory)
                status = self.entry.call(*self.method, *self.structure, *given)
        finally:
            run.in_step = False
            if contact is not None:
                contact.stepped = run.t
            done = memory.tally - before
            block = block or Block.of(record, int(done[m.RECORDED]), run.tape.dense)
            run.tape.append(block)
            _count(run, done, time.perf_counter() - tick)
            if contact is not None and self.looks:
                contact.crowding.made += int(done[m.STEPS])
                run.stats.contact_stepped += run.t - began
        if status == m.CONTACTS_FULL and contact is not None and contact.touching.grow():
            self.structure, status = contact.structure(), m.RECORD_FULL
        hold = run.settings.hold
        if self.plan.loops is not None and (not shared or hold or status != m.RECORD_FULL):
            sharing.collect_state(memory)
            error, status = look_at_loops(run.mechanism, self.plan, memory, hold, status)
            run.stats.loop_error = max(run.stats.loop_error, error)
        return status, block

    def _look_at_pace(self, block: Block, seconds: float) -> bool:
        """Warn of a slow run, or go from contact events to time steps. Returns whether that was so."""
        run = self.run
        if run.pace is None or self.looks:
            return False
        order, nq = int(run.local.tally[m.ORDER]) or self.method[0].order, run.mechanism.nq
        text = run.pace.look(run.local, order, block.t, block.y, seconds,
                             (lambda t, y: run.torque(t, y[:nq], y[nq:])) if run.acting.actuation else None) or ""
        if text.startswith(MOTION.stiff) and run.contact is not None and run.contact.goes_on(run, SLOW):
            run.pace.said = False
            return True
        if text:
            warnings.warn(text, SimulationWarning, stacklevel=7)
        return False


def _count(run: Running, done: np.ndarray, seconds: float) -> None:
    """Add a stretch to the statistics."""
    stats, sharing = run.stats, run.sharing
    stats.steps += int(done[m.STEPS])
    stats.rejected += int(done[m.REJECTED])
    stats.evaluations += int(done[m.EVALUATIONS])
    stats.jacobians += int(done[m.JACOBIANS])
    stats.factorisations += int(done[m.FACTORISATIONS])
    stats.wall_time += seconds
    stats.workers, stats.in_lanes = sharing.workers, sharing.links_in_lanes
    stats.gathers += int(done[m.EVALUATIONS]) if sharing.gathers else 0
    stats.loop_drift = float(run.local.clock[m.GAP])
    if run.contact is not None:
        run.contact.report(stats)


# -- failures --------------------------------------------------------------------------------------------------------


def _fail(run: Running, status: int, watched: Watched) -> None:
    """Raise the error of a run that has ended with this status."""
    if run.t > run.tape.end:  # a step was made, and what failed was to look at it
        run.tape.append(Block(np.array([run.t]), run.state[None].copy()))
    trajectory, where, cause, actuation = run.trajectory, f"at t = {run.t:.6g} s", None, run.acting.actuation
    if status == m.CONTACTS_FULL and run.contact is not None:
        raise SimulationError(f"{where}: {run.contact.touching.full()}", trajectory)
    if status == m.ACTUATION_FAILED:
        compiled = isinstance(actuation, Actuation)
        here = run.t, run.q, run.v, run.acting.params, run.mechanism.nv + run.mechanism.nc
        cause = actuation.raised(*here) if actuation and not compiled else None
        watched.complain(alone=cause is None and not compiled)
        cause = actuation.raised(*here) if compiled else cause
        run.tape.event(Event(run.t, "the actuation failed"))
        if isinstance(cause, (KeyboardInterrupt, SystemExit)):
            raise cause
    clock = run.local.clock
    raise SimulationError(stopped(status, where, run.mechanism, run.q, run.v, cause=cause,
                                  min_step=clock[m.MIN_STEP], tried=clock[m.STEP], torques=_torques_about(run),
                                  left_open=LeftOpen.of(run.local, run.settings.hold)), trajectory) from cause


def _torques_about(run: Running) -> Iterator[tuple[str, np.ndarray]]:
    """The actuation at the moment of a failure, and just after it."""
    if run.acting.actuation:
        for t in (run.t, run.t + 1e-6, run.t + 1e-3):
            yield f"at t = {t:.6g} s", run.torque(t, run.q, run.v)
