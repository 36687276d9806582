"""Contact in a simulation: contact events of adaptive solvers, and memory and statistics for all solvers.

At an event (see `contact/contact_motion.py`) the contact modes are determined anew from the state:

0. Closed contacts are projected: the smallest change of position and velocity removes the gap and slip that the
   solver's errors have left.
1. Contacts with a gap below CLOSED are closed, and their overlap is removed. If any of them approach each other there
   is an impact: the contact problem on velocities, with friction and restitution. Rebounds and separations that would
   last less than REST seconds are suppressed, so that an infinite sequence of bounces comes to rest (Zeno cut-off).
   What presses a contact together, and so ends its flight, are also the forces of the other contacts.
2. Closed contacts that separate are open. For the others the contact problem on accelerations determines which stay
   closed, sticking or sliding.

With fixed steps there are no events: every step solves its own problem (`contact/contact_step.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.contact.contact_fields import OPEN, SLIDING, STICKING
from bunraku.contact.contact_memory import ITERATIONS, MARK, MARK_GAP, ROUGH_CONTACTS, ROUGHLY, SOLVED_COUNT
from bunraku.contact.contact_motion import HOLD_GAP, HOLD_SPEED, LARGE_MOVE, LOOK, contact_one, contact_signal
from bunraku.contact.contact_step import QUICK
from bunraku.errors import BunrakuError, ContactError, ModelError, SimulationError
from bunraku.evaluate import kinematics
from bunraku.evaluate.contact_workspace import CLOSED, TOO_DEEP, Acts, Touching
from bunraku.integrate.callbacks import PlainFunction
from bunraku.integrate.solver_memory import MAX_STEP
from bunraku.mechanism import Mechanism
from bunraku.runs.context import structure_of
from bunraku.runs.time_stepping_run import run_time_stepping
from bunraku.simulation.conditions import Watch
from bunraku.simulation.records.trajectory import Event
from bunraku.simulation.settings import SEQUENTIAL, Settings

if TYPE_CHECKING:
    from bunraku.simulation.running import Running

REST = 1e-6
"""[s] Shorter flights are suppressed (Zeno cut-off)."""
STILL = 1e-12
"""[m/s] Contacts that approach more slowly are at rest."""
SEPARATES = 1e-8
"""[m/s] Contacts that part faster are open."""
DRIFTED = 1e-6
"""[m/s] Slip of a sticking contact, below which it is an error of the solver; and [m] the same for gaps."""
SOON = 1e-7
"""[s] Contacts among the solver's errors that close within this time are closed."""
LEAVES = 1e-7
"""[m/s] Contacts that part more slowly seem to close again while the solver makes its first, short steps."""
WIDEST = 1e4
"""SOON and LEAVES are ten times as large at each further event at the same moment, which the solver's errors have
caused, up to this factor."""
STILL_SLIP = 1e-11
"""[m/s] Slip that rounding leaves of none."""
SLOWEST_JAM = 1e-2
"""[m/s] Slip up to which an impulse ends it where rigid bodies have no acceleration."""
TRACE = 1e-6
"""Part of the kinetic energy that may go with slip among the solver's errors."""
DEPTH = 1e-13
"""[m] Overlap at which an open contact counts as closed."""
ROUGH_ENOUGH = 1e-7
"""Residual of a contact problem from which on it is said; `stats.contact_residual` has it in any case."""
SMALLEST_MARGIN = 1e-9
"""Part of the largest acceleration by which modes must break the law after an event at which nothing has changed; ten
times as much after each further one."""
MANY = 100
"""Events at one moment, after which something is wrong."""


def deepest_start(touching: Touching, q, v, settings: Settings) -> float:
    """[m] Largest admissible initial penetration: TOO_DEEP, and in fixed steps the displacement of the fastest point in
    a step, since an impact may rotate a body so that a point outside the contact margin penetrates."""
    if not settings.fixed_step:
        return TOO_DEEP
    velocities = list(kinematics(touching.mechanism, q, v).velocities.values())
    bounds = touching.arrays.shape_f[:, c.SHAPE_BOUND]
    reach = float(bounds[np.isfinite(bounds)].max(initial=0.0))
    turn = max((float(np.linalg.norm(x[3:])) for x in velocities), default=0.0)
    speed = max((float(np.linalg.norm(x[:3])) for x in velocities), default=0.0)
    step = float(settings.step)
    return TOO_DEEP + step * (speed + turn * reach + QUICK * step)


class ContactWatch(Watch):
    """The condition that the contact modes are no longer valid; its action is `Contact.settle`."""

    def __init__(self, contact: Contact):
        super().__init__(contact.signal, contact.settle, "contact", True)
        self.contact = contact

    def function(self, run: Running):
        return self.contact.signal(run)


class Contact:
    """The contacts of a simulation."""

    def __init__(self, mechanism: Mechanism, settings: Settings, locked=()):
        if settings.structured or settings.solver == "rk4":
            raise ModelError(f"solver {settings.solver!r} does not resolve contact, and shapes of this mechanism may "
                             "touch; use 'gear', 'bdf' or another adaptive solver (events), or 'symplectic_euler' with "
                             "a step (time-stepping)")
        self.settings, self.locked = settings, frozenset(locked)
        self.slack = min(1e-7, max(1e-11, 10.0 * settings.atol))  # [m] errors of a solver that has just started
        self.touching = Touching(mechanism, self.locked, settings.max_contacts, settings.impacts == SEQUENTIAL,
                                 settings.fixed_step)
        if settings.hold > 0.0:  # loops are held together by forces
            arrays = structure_of(self.touching.plan, settings.hold)[1]
            self.touching.structure = arrays._replace(touch=self.touching.structure.touch)
        self.watch = ContactWatch(self)
        self.fresh = True         # nothing is known of modes: a start, another state or structure
        self.slow = 1e-9          # [m/s] slip that has no direction, among the errors of the solver
        self.stepped: float | None = None  # time at which the last step has ended
        self._at, self._events = -np.inf, 0

    @property
    def stepping(self) -> bool:
        """Whether the steps solve contact themselves (time-stepping)."""
        return self.settings.fixed_step

    def entry(self, found):
        """The compiled run with contact, which replaces the solver's own."""
        return (run_time_stepping, ()) if self.stepping else found

    def structure(self):
        """For solvers: the motion between events, or without contact; and the plan."""
        touching = self.touching
        return (touching.base if self.stepping else contact_one).address, touching.structure

    def limit_step(self, run: Running) -> None:
        """Limit the step so that solids move by at most half of the smallest radius, and cannot tunnel through each
        other. Planes need no limit: a body behind a plane is still in contact."""
        smallest = self._smallest_solid
        if self.stepping or smallest is None:
            return
        speeds = kinematics(run.mechanism, run.q, run.v).velocities.values()
        fastest = max((float(np.linalg.norm(x[:3])) for x in speeds), default=0.0)
        gained = np.sqrt(max(1.0, float(np.linalg.norm(run.mechanism.gravity))) * smallest)
        longest = 0.5 * smallest / (fastest + gained)
        run.memory.clock[MAX_STEP] = min(self.settings.max_step, max(longest, self.settings.min_step))

    def refuse_overlap(self, q, v, what: str) -> None:
        """An error if the initial penetration exceeds the admissible depth."""
        self.touching.refuse_overlap(q, what, lambda: deepest_start(self.touching, q, v, self.settings))

    @property
    def _smallest_solid(self) -> float | None:
        """Radius of the smallest shape that may touch another one, planes aside [m]."""
        arrays = self.touching.arrays
        pairs = arrays.pair_i[arrays.pair_i[:, c.PAIR_KIND] > c.LAST_PLANE]
        if not len(pairs):
            return None
        return float(arrays.shape_f[np.unique(pairs[:, [c.PAIR_A, c.PAIR_B]]), c.SHAPE_BOUND].min())

    # -- events ------------------------------------------------------------------------------------------------------

    def acts(self, run: Running, t, q, v) -> Acts:
        """External action at a state, prescribed accelerations included."""
        nv, tau = run.mechanism.nv, run.acting.torque(run.mechanism, t, q, v)
        return Acts(tau[:nv].copy(), tau[nv:].copy(), run.acting.array)

    def signal(self, run: Running):
        """The condition that the contact modes are no longer valid, as a C function."""
        touching = self.touching
        a, work = np.empty_like(touching.a), np.empty_like(touching.work)

        def fill(t, q, v, out):
            acts = self.acts(run, t, q, v)
            out[0] = contact_signal.call(touching.structure, q, v, *acts, a, work)
            if np.isnan(out[0]):
                raise ContactError("contact: no motion was found")

        return PlainFunction(fill)

    def settle(self, run: Running) -> None:
        """Impacts and modes at the present state."""
        t, before = run.t, self.touching.touch.modes.copy()
        fastest = float(np.abs(run.v).max(initial=0.0))
        self.slow = min(1e-3, max(1e-12, 3.0 * (self.settings.atol + self.settings.rtol * fastest)))
        self._events = self._events + 1 if t - self._at <= 1e-12 * max(1.0, abs(t)) else 0
        self._at = t
        try:
            if self._events > MANY:
                raise ContactError(f"contact events follow each other without end: {self._named(before != OPEN)}")
            self._settle(run, before)
        except BunrakuError as error:
            raise SimulationError(f"at t = {t:.6g} s: {error}", run.trajectory) from error
        self.fresh = False

    @property
    def _wider(self) -> float:
        """Factor of the thresholds for the solver's errors."""
        return min(10.0 ** self._events, WIDEST)

    def tidy(self, run: Running, q, v) -> tuple[np.ndarray, np.ndarray]:
        """A state between two steps, with the gaps of closed contacts set to zero."""
        modes = self.touching.touch.modes.copy()
        if self.stepping or self.fresh or not (modes != OPEN).any():
            return q, v
        return self._cleared(q, v, self.acts(run, run.t, q, v), modes)

    def _settle(self, run: Running, before) -> None:
        touching, t, q, v = self.touching, run.t, run.q.copy(), run.v.copy()
        acts = self.acts(run, t, q, v)
        if (before != OPEN).any() and not self.fresh:
            q, v = self._cleared(q, v, acts, before)
        gap = touching.gaps(q).copy()
        closed = self._closed(q, v, acts, gap, before)
        if not self.fresh and (gap[closed] < -CLOSED).any():
            touching.set_modes(closed)
            q = self._without_gaps(q, v, acts, touching.touch.modes.copy())
            gap = touching.gaps(q).copy()
            closed = np.union1d(closed, self._closed(q, v, acts, gap, before))
        texts, jumped, leaving = [], False, np.empty(0, np.int64)
        if closed.size:
            touching.set_modes(closed)
            look = touching.solve(LOOK, q, v, acts)
            if (look.before[:, 0] < -STILL).any():
                if touching.in_turn:
                    after, answer = touching.impulses_in_turn(q, v, acts, closed, REST)
                else:
                    after, answer = touching.impulses(q, v, acts, closed, self._restitution(q, v, acts, look))
                hits = answer.force[:, 0]
                strong = (hits > 0) & (answer.before[:, 0] < -DRIFTED)
                jumped = bool(strong.any())
                texts += [f"impact of {touching.pair(int(k))}: {p:.4g} N s" for k, p in
                          zip(answer.rows[strong], np.linalg.norm(answer.force[strong], axis=1), strict=True)]
                v = after
                touching.set_modes(closed)
                look = touching.solve(LOOK, q, v, acts)
                if (look.before[:, 0] < -DRIFTED).any():
                    pair = touching.pair(int(look.rows[look.before[:, 0].argmin()]))
                    raise ContactError(f"nothing keeps {pair} apart: no force of theirs can move them, since the "
                                       "motion of their joints is prescribed, or connections hold them")
            apart = look.before[:, 0]
            slowly = apart > SEPARATES
            if slowly.any():
                slowly &= 2 * apart < REST * touching.pressing(q, v, acts, look)
            if slowly.any():
                v = self._held_back(q, v, acts, look, slowly | (apart <= SEPARATES))
                touching.set_modes(closed)
                look = touching.solve(LOOK, q, v, acts)
            stays = look.before[:, 0] <= SEPARATES
            slip = np.hypot(look.before[:, 1], look.before[:, 2])
            v = self._take_modes(q, v, acts, look, stays, slip, before)
            closed = look.rows[stays]
            leaving = look.rows[(touching.touch.modes[look.rows] == OPEN) & (
                look.before[:, 0] < LEAVES * self._wider)]
        else:
            touching.set_modes(closed)
        touch = touching.touch
        mark = touch.mark.reshape(-1, MARK)
        mark[:, MARK_GAP] = np.minimum(np.where(np.isfinite(gap), gap, 0.0), 0.0) - DEPTH
        mark[leaving, MARK_GAP] -= self.slack
        if closed.size:
            slides = touch.modes[look.rows] == SLIDING
            mark[look.rows[slides], MARK_GAP] = np.where(slip[slides] > 1.5 * self.slow, self.slow, -self.slow)
        texts += self._changes(before, touch.modes)
        touch.margin[0] = 0.0 if texts else min(1e-3, max(SMALLEST_MARGIN, 10.0 * touch.margin[0]))
        if jumped or not np.array_equal(before, touch.modes):
            run.restart()
        if not (np.array_equal(v, run.v) and np.array_equal(q, run.q)):
            run.memory.rows[0] = np.concatenate([q, v])
            run.restart()
            if jumped:
                run.tape.change(run.mechanism, t, run.memory.rows[0])
            else:
                run.tape.replace_last(run.memory.rows[0])
        for text in texts:
            run.tape.event(Event(t, text))

    def _closed(self, q, v, acts, gap, before) -> np.ndarray:
        """Indices of the closed contacts: by their gap, because they were closed and have drifted, or because they
        close within SOON. (An event is located on the solver's polynomial; projecting the contacts that were closed
        moves others by the errors of the step.)"""
        touching = self.touching
        closed = (gap <= CLOSED) | ((before != OPEN) & (gap <= DRIFTED))
        near = np.flatnonzero(~closed & (gap <= self.slack))
        if near.size:
            touching.set_modes(near)
            look = touching.solve(LOOK, q, v, acts)
            closed[look.rows[gap[look.rows] <= -SOON * self._wider * look.before[:, 0]]] = True
        return np.flatnonzero(closed)

    def _take_modes(self, q, v, acts, look, stays, slip, before) -> np.ndarray:
        """Modes of the contacts that stay closed; the velocity, without slip below the solver's errors. Slip
        without an acceleration solution (Painleve) is ended by an impulse if it is slow enough."""
        touching, closed, limit = self.touching, look.rows[stays], 1.5 * self.slow
        if not closed.size:
            touching.set_modes(closed)
            return v
        while True:
            slow = stays & (slip < np.where(before[look.rows] == STICKING, max(DRIFTED, 2.0 * limit), limit))
            after, left = v, STILL_SLIP
            if (slip[slow] > 0.0).any():
                touching.set_modes(closed, SLIDING)
                touching.touch.modes[look.rows[slow]] = STICKING
                after = self._without_slip(q, v, acts)
                left = STILL_SLIP if after is not v else float(slip[slow].max())
            try:
                touching.set_modes(closed)
                touching.forces(q, after, acts, closed, left)
                return after
            except ContactError:
                limit *= 10.0
                if limit > SLOWEST_JAM:
                    raise

    def _without_slip(self, q, v, acts) -> np.ndarray:
        """The velocity with the normal velocity of closed contacts and the slip of sticking ones removed, by the
        present modes. Unchanged if that would remove more than a trace of its energy: where contact constraints are
        nearly dependent, a small slip may be a large motion."""
        touching = self.touching
        answer = touching.solve(HOLD_SPEED, q, v, acts)
        taken = 0.5 * abs(float((answer.force * answer.before).sum()))
        kinetic = touching.mechanism.energy(q, v)[0]
        return v + touching.touch.delta if taken <= TRACE * kinetic + 1e-12 else v

    def _cleared(self, q, v, acts, modes):
        """The state with no gap, normal velocity or slip left where contacts are closed or stick."""
        q = self._without_gaps(q, v, acts, modes)
        self.touching.touch.modes[:] = modes
        return q, self._without_slip(q, v, acts)

    def _without_gaps(self, q, v, acts, modes) -> np.ndarray:
        """The pose without gaps where contacts are closed; unchanged if that would be a large move."""
        touching = self.touching
        for _ in range(2):
            touching.touch.modes[:] = modes
            touching.solve(HOLD_GAP, q, v, acts)
            if np.abs(touching.touch.delta).max(initial=0.0) > LARGE_MOVE:
                break
            q = touching.mechanism.integrate(q, touching.touch.delta)
        return q

    def _restitution(self, q, v, acts, look) -> np.ndarray:
        """Coefficient of restitution of every contact; zero for rebounds that would be too short."""
        e = np.zeros(self.touching.contacts)
        own = self.touching.arrays.contact_f[look.rows, c.RESTITUTION]
        flight = -2.0 * own * np.minimum(look.before[:, 0], 0.0)
        e[look.rows] = np.where(flight < REST * self.touching.pressing(q, v, acts, look), 0.0, own)
        return e

    def _held_back(self, q, v, acts, look, held) -> np.ndarray:
        """The velocity in which contacts that would separate only briefly stay closed, and with them all that do not
        separate: the projection in the metric of the mass matrix, which has less energy."""
        touching = self.touching
        touching.set_modes(look.rows[held], SLIDING)
        touching.solve(HOLD_SPEED, q, v, acts)
        return v + touching.touch.delta

    def _changes(self, before, after) -> list[str]:
        words = {OPEN: "lifts off", STICKING: "sticks", SLIDING: "slides"}
        seen: dict[str, None] = {}
        for k in np.flatnonzero(before != after):
            seen[f"contact of {self.touching.pair(int(k))} {words[int(after[k])]}"] = None
        return list(seen)

    def _named(self, which) -> str:
        return self.touching.named(np.flatnonzero(which))

    def report(self, stats) -> None:
        """Statistics of the contact problems so far."""
        touch = self.touching.touch
        stats.contact_problems, stats.contact_iterations = int(touch.count[SOLVED_COUNT]), int(touch.count[ITERATIONS])
        stats.contact_residual = max(stats.contact_residual, float(touch.residual[0]))

    def said(self) -> str:
        """Warning text for poorly converged contact problems, once for each of them."""
        touch = self.touching.touch
        rough, largest = int(touch.count[ROUGHLY]), int(touch.count[ROUGH_CONTACTS])
        touch.count[ROUGHLY] = touch.count[ROUGH_CONTACTS] = 0
        if not rough or not touch.residual[0] > ROUGH_ENOUGH:
            return ""
        return (f"{rough} of {int(touch.count[SOLVED_COUNT])} contact problems, of up to {largest} contacts, were "
                f"solved roughly: the largest residual is {touch.residual[0]:.1g} of their size. In contact now: "
                f"{self._named(touch.modes != OPEN)}")
