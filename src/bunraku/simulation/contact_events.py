"""Contact in a simulation: contact events of adaptive solvers, and memory and statistics for all solvers.

`Contact` owns contact during a run. With adaptive solvers the motion goes from event to event
(`contact/contact_motion.py`); at an event the contact modes are determined anew from the state
(`contact_settling.py`). With fixed steps there are no events: every step solves its own problem
(`contact/contact_step.py`). They also replace events for a time where these are crowded or have no end (`crowding.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.contact.contact_fields import OPEN
from bunraku.contact.contact_memory import ITERATIONS, ROUGH_CONTACTS, ROUGHLY, SOLVED_COUNT
from bunraku.contact.contact_motion import contact_one, contact_signal
from bunraku.errors import BunrakuError, ContactError, ModelError, SimulationError
from bunraku.evaluate import kinematics
from bunraku.evaluate.contact_forces import needs_steps
from bunraku.evaluate.contact_workspace import Acts, TooManyContacts, Touching, most_of
from bunraku.integrate.callbacks import PlainFunction
from bunraku.integrate.solver_memory import FLIGHT, MAX_STEP, STEP
from bunraku.mechanism import Mechanism
from bunraku.runs.context import structure_of
from bunraku.runs.time_stepping_run import run_time_stepping
from bunraku.simulation.conditions import Watch
from bunraku.simulation.contact_settling import Errors, Immovable, Settling
from bunraku.simulation.crowding import FULL, OVERLAP, UNSOLVED, WORDS, Crowding
from bunraku.simulation.records.trajectory import Event
from bunraku.simulation.settings import SEQUENTIAL, Settings
from bunraku.tolerances import DRIFTED, FLIGHT_TURN, QUICK, ROUGH_ENOUGH, TOO_DEEP, WIDEST, ZENO

if TYPE_CHECKING:
    from bunraku.simulation.running import Running


def deepest_start(touching: Touching, q, v, settings: Settings) -> float:
    """[m] Largest admissible initial penetration: TOO_DEEP, and the displacement of the fastest point in a time step,
    since an impact may rotate a body so that a point outside the contact margin penetrates."""
    step = settings.step if settings.fixed_step else settings.contact_step
    if step is None:
        return TOO_DEEP
    velocities = list(kinematics(touching.mechanism, q, v).velocities.values())
    bounds = touching.given.shape_f[:, c.SHAPE_BOUND]
    reach = float(bounds[np.isfinite(bounds)].max(initial=0.0))
    turn = max((float(np.linalg.norm(x[3:])) for x in velocities), default=0.0)
    speed = max((float(np.linalg.norm(x[:3])) for x in velocities), default=0.0)
    return TOO_DEEP + step * (speed + turn * reach + QUICK * step)


class Signal(PlainFunction):
    """`contact_signal`: Python calls it at the start of a stretch, compiled code by its own address."""

    @property
    def event_address(self) -> int:
        own = contact_signal.address
        return self.address if callable(own) else -own


def never(t, q, v) -> float:
    """The condition in Python, which is not called: compiled code evaluates the signal."""
    return np.nan


class ContactWatch(Watch):
    """The condition that the contact modes are no longer valid; its action is `Contact.settle`."""

    def __init__(self, contact: Contact):
        super().__init__(never, contact.settle, "contact", True)
        self.contact = contact

    def function(self, run: Running):
        return self.contact.signal(run)


class Contact:
    """The contacts of a simulation."""

    def __init__(self, mechanism: Mechanism, settings: Settings, locked=()):
        if settings.structured or settings.solver == "rk4":
            raise ModelError(f"solver {settings.solver!r} does not resolve contact, and {mechanism.why_contact()}; use "
                             "'gear', 'bdf' or another adaptive solver (events), or 'symplectic_euler' with a step "
                             "(time-stepping)")
        self.settings, self.locked = settings, frozenset(locked)
        self.slack = min(1e-7, max(1e-11, 10.0 * settings.atol))  # [m] errors of a solver that has just started
        self.touching = Touching(mechanism, self.locked, settings.max_contacts, settings.impacts == SEQUENTIAL,
                                 settings.fixed_step)
        if settings.hold > 0.0:  # loops are held together by forces
            arrays = structure_of(self.touching.plan, settings.hold)[1]
            self.touching.structure = arrays._replace(touch=self.touching.structure.touch)
        if not settings.fixed_step and self.touching.soft:
            raise ModelError(needs_steps(mechanism))
        self.watch = ContactWatch(self)
        self.crowding = Crowding(None if settings.fixed_step else settings.contact_step)
        self.fresh = True         # nothing is known of modes: a start, another state or structure
        self.slow = 1e-9          # [m/s] slip that has no direction, among the errors of the solver
        self.stepped: float | None = None  # time at which the last step has ended

    @property
    def stepping(self) -> bool:
        """Whether the steps solve contact themselves (time-stepping)."""
        return self.settings.fixed_step or self.crowding.stepping

    @property
    def step(self) -> float:
        """[s] Length of time steps."""
        return float(self.settings.step if self.settings.fixed_step else self.settings.contact_step or 0.0)

    def entry(self, found):
        """The compiled run with contact, which replaces the solver's own."""
        return (run_time_stepping, ()) if self.stepping else found

    def structure(self):
        """For solvers: the motion between events, or without contact; and the plan."""
        touching = self.touching
        return (touching.base if self.stepping else contact_one).address, touching.structure

    def limit_step(self, run: Running) -> None:
        """Limit the step so that solids move by at most half of the smallest radius, and cannot tunnel through each
        other. Planes need no limit: a body behind a plane is still in contact. Steps that replace events also limit the
        rotation of bodies."""
        smallest, clock, settings = self._smallest_solid, run.memory.clock, self.settings
        known = clock[STEP] > 0.0 and self.crowding.made > 0
        if settings.fixed_step or (known if self.stepping else smallest is None):
            return
        speeds, longest = list(kinematics(run.mechanism, run.q, run.v).velocities.values()), settings.max_step
        if smallest is not None:
            fastest = max((float(np.linalg.norm(x[:3])) for x in speeds), default=0.0)
            gained = np.sqrt(max(1.0, float(np.linalg.norm(run.mechanism.gravity))) * smallest)
            longest = min(longest, max(0.5 * smallest / (fastest + gained), settings.min_step))
        if self.stepping:
            turning = max((float(np.linalg.norm(x[3:])) for x in speeds), default=0.0)
            clock[STEP] = min(longest, max(min(self.step, FLIGHT_TURN / (turning + 1e-300)), settings.min_step))
            run.memory.tally[FLIGHT] = 1
        else:
            clock[MAX_STEP] = longest

    def refuse_overlap(self, q, v, what: str) -> None:
        """An error if the initial penetration exceeds the admissible depth."""
        self.touching.refuse_overlap(q, what, lambda: deepest_start(self.touching, q, v, self.settings))

    @property
    def _smallest_solid(self) -> float | None:
        """Radius of the smallest shape that may touch another one, planes aside [m]."""
        arrays = self.touching.given
        pairs = arrays.pair_i[arrays.pair_i[:, c.PAIR_KIND] > c.LAST_PLANE]
        if not len(pairs):
            return None
        return float(arrays.shape_f[np.unique(pairs[:, [c.PAIR_A, c.PAIR_B]]), c.SHAPE_BOUND].min())

    # -- events ------------------------------------------------------------------------------------------------------

    def acts(self, run: Running, t, q, v) -> Acts:
        """External action at a state, prescribed accelerations included."""
        nv, tau = run.mechanism.nv, run.acting.torque(run.mechanism, t, q, v)
        return Acts(tau[:nv].copy(), tau[nv:].copy(), run.acting.array)

    def signal(self, run: Running) -> PlainFunction:
        """The condition that the contact modes are no longer valid."""
        touching = self.touching
        a, work = np.empty_like(touching.a), np.empty_like(touching.work)

        def fill(t, q, v, out):
            acts = self.acts(run, t, q, v)
            out[0] = contact_signal.call(touching.structure, q, v, *acts, a, work)
            if np.isnan(out[0]):  # there is no motion with these modes
                out[0] = np.inf

        return Signal(fill)

    def settle(self, run: Running) -> None:
        """Impacts and modes at the present state, or a change to time steps."""
        t, before = run.t, self.touching.touch.modes.copy()
        fastest = float(np.abs(run.v).max(initial=0.0))
        self.slow = min(1e-3, max(1e-12, 3.0 * (self.settings.atol + self.settings.rtol * fastest)))
        reason = self.crowding.event(t)
        if reason is None and self.fresh and self.crowding.step is not None and self._deepest(run.q) > TOO_DEEP:
            reason = OVERLAP
        if reason is None:
            try:
                if self.crowding.moment > ZENO:
                    raise ContactError(f"contact events follow each other without end: {self._named(before != OPEN)}")
                self._settle(run, before)
            except BunrakuError as error:
                full = isinstance(error, TooManyContacts)
                for_good = isinstance(error, Immovable) or (full and self.settings.max_contacts is not None)
                if self.crowding.step is None or for_good:
                    raise SimulationError(f"at t = {t:.6g} s: {error}", run.trajectory) from error
                reason = FULL if full else UNSOLVED
        if reason is not None:
            self._to_steps(run, reason)
        self.fresh = False

    # -- time steps in place of events -----------------------------------------------------------------------------

    def lay_out(self) -> None:
        """The workspace for events, or for time steps."""
        if self.touching.stepping != self.stepping:
            self.touching.lay_out(self.stepping)

    def _deepest(self, q) -> float:
        """[m] Largest penetration."""
        return -float(self.touching.gaps(q).min(initial=0.0))

    def _to_steps(self, run: Running, reason: str) -> None:
        if run.follower is not None:
            raise SimulationError(f"at t = {run.t:.6g} s contact goes on in time steps ({WORDS[reason]}), which "
                                  "have no sensitivities", run.trajectory)
        self.crowding.begin(run.t)
        self.lay_out()
        run.restart()
        stats = run.stats
        stats.contact_switches += 1
        setattr(stats, f"switches_{reason}", getattr(stats, f"switches_{reason}") + 1)
        run.tape.event(Event(run.t, f"contact by time steps of up to {self.step:g} s: {WORDS[reason]}"))

    def goes_on(self, run: Running, reason: str) -> bool:
        """Whether time steps go on where a solver with events fails or crawls: only if contacts are closed."""
        if self.stepping or self.crowding.step is None or not (self.touching.touch.modes != OPEN).any():
            return False
        self._to_steps(run, reason)
        return True

    def looks_for_events(self, run: Running) -> bool:
        """After LOOK_STEPS time steps in place of events: whether events have taken over again."""
        if not self.crowding.stepping or self.crowding.until_look > 0:
            return False
        touch, gap = self.touching.touch, self.touching.gaps(run.q)
        closed = np.flatnonzero((touch.modes != OPEN) & (gap <= DRIFTED))
        fit = gap.min(initial=0.0) >= -TOO_DEEP and len(closed) <= most_of(self.touching.contacts, self.touching.asked)
        if not self.crowding.look(run.t, closed, fit):
            return False
        modes = np.full_like(touch.modes, OPEN)
        modes[closed] = touch.modes[closed]
        if self.touching.has_moments:
            open_points = modes[self.touching.arrays.contact_i[:, c.CONTACT_POINT]] == OPEN
            modes = np.where(open_points | ~self.touching.is_moment(slice(None)), modes, touch.modes)
        self.crowding.end(run.t)
        self.lay_out()
        self.touching.touch.modes[:] = modes
        run.restart()
        run.tape.event(Event(run.t, "contact by events"))
        self.settle(run)
        return True

    # -- an event --------------------------------------------------------------------------------------------------

    def _settling(self, run: Running, before, fresh: bool) -> Settling:
        errors = Errors(self.slow, self.slack, min(10.0 ** self.crowding.moment, WIDEST))
        q, v = run.q.copy(), run.v.copy()
        return Settling(self.touching, q, v, self.acts(run, run.t, q, v), errors, before, fresh)

    def tidy(self, run: Running, q, v) -> tuple[np.ndarray, np.ndarray]:
        """A state between two steps, with the gaps of closed contacts set to zero."""
        modes = self.touching.touch.modes.copy()
        if self.stepping or self.fresh or not (modes != OPEN).any():
            return q, v
        settling = self._settling(run, modes, False)
        settling.q, settling.v, settling.acts = q, v, self.acts(run, run.t, q, v)
        settling.clear()
        return settling.q, settling.v

    def _settle(self, run: Running, before) -> None:
        """Settle, and hand the state back to the solver and the record."""
        found = self._settling(run, before, self.fresh)
        found.settle()
        if run.follower is not None:
            run.follower.settles(run, before, found)
        if found.jumped or found.released or not np.array_equal(before, self.touching.touch.modes):
            run.restart()
        if not (np.array_equal(found.v, run.v) and np.array_equal(found.q, run.q)):
            run.memory.rows[0] = np.concatenate([found.q, found.v])
            run.restart()
            if found.jumped:
                run.tape.change(run.mechanism, run.t, run.memory.rows[0])
            else:
                run.tape.replace_last(run.memory.rows[0])
        for text in found.texts:
            run.tape.event(Event(run.t, text))

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
                f"{self._named(touch.modes[:self.touching.contacts] != OPEN)}")
