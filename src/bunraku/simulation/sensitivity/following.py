"""The tangent of a simulation: what small changes of its start and of parameters do, from event to event.

Between events x' = A x + B p (`motion.py`), solved by `collocation.py` along the recorded motion. At an event, where a
guard g(t, x) becomes zero and the state is mapped by R, changes of the event's time count too: with the rates f of the
state before and after,

    x+ = (D + (f+ - D f-) dg / g') x- ,    D = dR/dx,    g' = dg/dt + (dg/dx) f-

which is the saltation matrix. Events at given times have dg = 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bunraku.contact.contact_fields import OPEN, SLIDING, STICKING
from bunraku.errors import ModelError, SimulationError
from bunraku.integrate.callbacks import call_function
from bunraku.mechanism import Mechanism
from bunraku.mechanism.connections import Carry
from bunraku.simulation.conditions import ForceAbove, Watch
from bunraku.simulation.sensitivity import jumps
from bunraku.simulation.sensitivity.jumps import Guard, Jump
from bunraku.simulation.sensitivity.slopes import STEP, slopes
from bunraku.simulation.sensitivity.smooth_motion import Motion, Wanted
from bunraku.simulation.state_changes import Kick
from bunraku.simulation.structure_changes import KEEPS, Strikes

if TYPE_CHECKING:
    from bunraku.simulation.contact_settling import Settling
    from bunraku.simulation.running import Running

STILL = 1e-9  # of a guard's rate, in units of its terms: below, the motion grazes the event


class Arc(NamedTuple):
    """Smooth motion from `motion.start` to `end`."""

    motion: Motion
    end: float


class Crossing:
    """An event: what is known of it so far."""

    def __init__(self, t: float, text: str, before: Motion | None, q, v, guard: Guard | None, count: int):
        self.t, self.text, self.guard = t, text, guard
        self.leaving = None if before is None else np.concatenate([v, before.acceleration(t, q, v)])
        nv = len(v)
        self.jump = Jump(np.eye(2 * nv), np.zeros((2 * nv, count)))
        self.smooth = False  # rates are continuous, so that its moment does not matter, and is not known
        self.arriving: np.ndarray | None = None  # rates of the state after the event; None: the run has ended there

    def then(self, jump: Jump) -> None:
        """A further map of the state."""
        self.jump = Jump(jump.D @ self.jump.D, jump.D @ self.jump.P + jump.P)

    def across(self, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(sensitivities after the event, those of its time), from those before it; the last columns are parameters."""
        after = self.jump.D @ S
        after[:, S.shape[1] - self.jump.P.shape[1]:] += self.jump.P
        if self.guard is None or self.leaving is None:
            return after, np.full(S.shape[1], np.nan if self.smooth else 0.0)
        terms = self.guard.by_state * self.leaving
        rate = self.guard.by_time + terms.sum()
        if not abs(rate) > STILL * (abs(self.guard.by_time) + np.abs(terms).sum()) or rate == 0.0:
            raise SimulationError(f"sensitivities: the event {self.text!r} at t = {self.t:.6g} s is only grazed, or "
                                  "its condition is not a number that passes through zero: small changes may avoid it")
        later = -(self.guard.by_state @ S) / rate
        through = 0.0 if self.arriving is None else self.arriving
        return after + np.outer(self.jump.D @ self.leaving - through, later), later


class Tangent:
    """The follower of a run."""

    def __init__(self, run: Running, wanted: Wanted):
        self.wanted, self.frozen = wanted, frozenset[int]()
        self.parts: list[Arc | Crossing] = []
        self.present: Motion | None = None     # the motion that has begun and not ended
        self.open: Crossing | None = None      # the event that is not over
        self.params = run.acting.params.copy()

    # -- told by the run ---------------------------------------------------------------------------------------------

    def departs(self, run: Running) -> None:
        """Smooth motion begins."""
        if len(self.params) == len(run.acting.params):
            self.frozen |= frozenset(np.flatnonzero(self.params != run.acting.params).tolist())
        self.params = run.acting.params.copy()
        self.present = Motion(run, self.wanted, self.frozen)
        if self.open is not None:
            self.open.arriving = np.concatenate([run.v, self.present.acceleration(run.t, run.q.copy(), run.v.copy())])
            self.open = None

    def arrives(self, run: Running, watch: Watch, moved: bool) -> None:
        """A condition has become true, or the modes of contacts are not valid any more."""
        if not moved and self.open is not None:
            return
        before = self.close(run)
        guard = None
        if moved and before is not None and (run.contact is None or watch is not run.contact.watch):
            guard = self._guard(run, watch)
        self._begin(run, before, watch.name, guard)

    def changes(self, run: Running, mechanism: Mechanism, q, v, t: float | None, by: object) -> None:
        """The structure or the state changes, from the present to (q, v)."""
        if self.open is None:
            self._begin(run, self.close(run), "change", None)
        assert self.open is not None
        here, count = (run.q.copy(), run.v.copy()), len(self.wanted.names)
        if isinstance(by, Carry):
            self.open.then(jumps.cut(by, *here, run.mechanism, mechanism, count))
        elif isinstance(by, Strikes):
            self.open.then(jumps.connect(by, *here, mechanism, self.wanted))
        elif isinstance(by, Kick):
            self.open.then(jumps.kick(by, *here, mechanism, self.wanted))
        elif by != KEEPS:
            raise ModelError("sensitivities: sim.set_state in an action does not say how nearby states change; use "
                             "impulse, connect, cut, push or params")

    def settles(self, run: Running, before: np.ndarray, found: Settling) -> None:
        """Contact has found its modes, after impacts."""
        q, v, count = run.q.copy(), run.v.copy(), len(self.wanted.names)
        if self.open is None:
            self._begin(run, self.close(run), "contact", None)
        crossing, motion = self.open, Motion(run, self.wanted, self.frozen)
        assert crossing is not None
        modes = found.touching.touch.modes.copy()
        at_event = crossing.text == "contact" and crossing.guard is None and crossing.leaving is not None
        if found.jumped:
            if found.struck is None:
                raise ModelError("sensitivities: impacts by the sequential law have none; use impacts='simultaneous'")
            if at_event:
                crossing.guard = jumps.gap_guard(motion, run.t, q, found.struck.v, self._first(motion, run, found))
            crossing.then(jumps.strike(motion, run.t, q, found.struck, self.wanted))
            q, v = found.q, found.v
        slipped = np.flatnonzero((before == SLIDING) & (modes == STICKING))
        if not found.jumped and at_event:
            closed = np.flatnonzero((before == OPEN) & (modes != OPEN))
            turned = slipped if slipped.size else jumps.slow_slips(motion, run.t, q, v, before, modes)
            if closed.size:
                crossing.guard = jumps.gap_guard(motion, run.t, q, v, int(closed[0]))
            elif turned.size:
                crossing.guard = jumps.slip_guard(motion, run.t, q, v, int(turned[0]))
            crossing.smooth = crossing.guard is None
        if slipped.size and not found.jumped:
            crossing.then(jumps.hold(motion, run.t, q, v, modes, count))

    def ends(self, run: Running) -> None:
        """The run has ended."""
        self.close(run)

    # -- parts -------------------------------------------------------------------------------------------------------

    def close(self, run: Running) -> Motion | None:
        """The present motion ends here."""
        motion, self.present = self.present, None
        if motion is not None and run.t > motion.start:
            self.parts.append(Arc(motion, run.t))
        return motion

    def _begin(self, run: Running, before: Motion | None, text: str, guard: Guard | None) -> None:
        self.open = Crossing(run.t, text, before, run.q.copy(), run.v.copy(), guard, len(self.wanted.names))
        self.parts.append(self.open)

    def _guard(self, run: Running, watch: Watch) -> Guard:
        """Derivatives of a condition."""
        if isinstance(watch.condition, ForceAbove) and self.wanted.names:
            raise ModelError(f"sensitivities: forces, and so the condition {watch.name!r}, depend on the parameters "
                             "directly; watch something of the state, or ask for none")
        function, value, mechanism, t = watch.function(run), np.zeros(1), run.mechanism, run.t
        q, v, values = run.q.copy(), run.v.copy(), set[float]()

        def ask(t=t, q=q, v=v):
            if call_function(function.address, t, q, v, run.acting.params, value) != 0:
                raise SimulationError(f"sensitivities: the condition {watch.name!r} failed near t = {run.t:.6g} s")
            values.add(value[0])
            return value[0]

        by_q = slopes(lambda move: ask(q=mechanism.integrate(q, move)), mechanism.nv)
        by_v = slopes(lambda more: ask(v=v + more), mechanism.nv)
        by_time = float(slopes(lambda h: ask(t=t + h[0]), 1, STEP)[0])
        if values <= {0.0, 1.0}:
            raise ModelError(f"sensitivities: the condition {watch.name!r} is True or False, which does not say how "
                             "the event moves; let it return a number that passes zero")
        return Guard(np.concatenate([by_q, by_v]), by_time)

    @staticmethod
    def _first(motion: Motion, run: Running, found: Any) -> int:
        """The contact that approaches fastest."""
        touching = motion.in_modes()
        q, v, acts = motion.state(run.t, run.q, found.struck.v)
        touching.set_modes(found.struck.closed)
        look = touching.solve(jumps.LOOK, q, v, acts)
        return int(look.rows[look.before[:, 0].argmin()])
