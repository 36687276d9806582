"""The simulation shell: a mechanism, a state, a solver, and everything recorded on the way.

One long file because it is one class, whose methods are read together.
"""

from __future__ import annotations

import html
import inspect
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bunraku.checks import aligned, as_count, as_number, as_size
from bunraku.entries.explain import explain, refuse
from bunraku.entries.moves import unit_quaternions
from bunraku.errors import (
    BunrakuError,
    ConstraintError,
    ModelError,
    ReadOnlyError,
    ShapeError,
    SimulationError,
    SimulationWarning,
)
from bunraku.evaluate import Schedule, impact
from bunraku.evaluate.contact_forces import EVENTS, contact_forces, forces_of_last_step, step_forces
from bunraku.evaluate.contacts import Contacts, no_contacts
from bunraku.evaluate.dynamics import Dynamics, dynamics
from bunraku.evaluate.impulse import impulse as struck
from bunraku.evaluate.loop_closure import closed_position
from bunraku.integrate import solver_memory as m
from bunraku.integrate.pace import MOTION, Pace
from bunraku.integrate.runge_kutta import Tableau
from bunraku.mechanism import Connection, Joint, Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.mechanism.readonly import StateArray
from bunraku.runs.actuation import Actuation, PlainActuation
from bunraku.runs.context import structure_of
from bunraku.simulation.acting import Acting, as_pull
from bunraku.simulation.checkpoint import load_checkpoint, refuse_forgotten, restore, save_checkpoint
from bunraku.simulation.closing import (
    capture,
    closed_start,
    gap,
    large_enough,
    look_at_loops,
    plan_of_moves,
)
from bunraku.simulation.conditions import Condition, Watch, Watched, as_watch, never_applied, polynomial_room
from bunraku.simulation.contact_events import IMPACTS, SIMULTANEOUS, Contact
from bunraku.simulation.crew.sharing import Sharing
from bunraku.simulation.failures import LeftOpen, stopped
from bunraku.simulation.needed_kernels import prepare_simulation
from bunraku.simulation.records.pages import Block, misfit
from bunraku.simulation.records.tape import Tape, as_duration
from bunraku.simulation.records.trajectory import Event, Trajectory
from bunraku.simulation.settings import Settings, address_of, as_actuation, as_params
from bunraku.terminal import Bar, Interrupts
from bunraku.tolerances import EXACT

if TYPE_CHECKING:
    from bunraku.simulation.recorder import Recorder

_STATE = "use sim.set_state(q, v, t=None)"
_ANEW = "build a new bk.Simulation(sim.mechanism, sim.q, sim.v, {name}=..., t=sim.t)"
READ_ONLY = {  # attributes that it would do no good to set: what to do instead
    "q": _STATE, "v": _STATE, "t": _STATE,
    "mechanism": "use sim.connect and sim.cut, or build a new bk.Simulation",
    **dict.fromkeys(("solver", "rtol", "atol", "actuation", "step", "max_step", "min_step", "max_order", "baumgarte",
                     "workers", "schedule", "record", "prescribed"), _ANEW),
    "external": "use sim.push(link, wrench)"}
BODY_STEPS_PER_CALL = 50_000  # compiled code runs this long (bodies times steps) before Python has its turn


def actuation(function) -> Actuation:
    """Decorator: compile a function (t, q, v, params, tau) that writes tau, to be called inside the loop.

    q and v are read-only; params may be written to, as internal state of the function. An index out of bounds ends the
    run with an error, and so does a returned value.
    """
    try:
        inspect.signature(function).bind(0.0, None, None, None, None)
    except TypeError as error:
        name = getattr(function, "__name__", function)
        raise ModelError(f"@bk.actuation is for functions (t, q, v, params, tau) that write tau, not {name!r}: {error}"
                         "; a plain function (t, q, v) that returns tau is given to bk.Simulation without it") from None
    return Actuation(function)


@dataclass
class Statistics:
    """Statistics of a simulation so far."""

    steps: int = 0
    rejected: int = 0
    evaluations: int = 0      # of the right-hand side
    jacobians: int = 0        # of it, by differences; their evaluations are counted too
    factorisations: int = 0   # of full matrices; for "implicit" the evaluations with springs and dampers in them
    loop_error: float = 0.0   # how far loops are from closed [m, rad], at most; a tree has none
    loop_drift: float = 0.0   # what a single step has left open, at most, before it was closed [m, rad]
    wall_time: float = 0.0    # [s]
    workers: int = 1          # threads that computed the last steps
    in_lanes: int = 0         # links that one worker computes in lanes, several at a time
    contact_problems: int = 0    # solved
    contact_iterations: int = 0  # of all of them
    contact_residual: float = 0.0  # largest violation of the law of contact, over the size of its problem
    gathers: int = 0          # evaluations for which one worker had to collect the whole state, for the actuation


class Simulation:
    """A mechanism in motion. Works on its own copy of the mechanism, whose structure `connect` and `cut` change.

    q, v        start; neutral and at rest by default
    solver      adaptive: "gear" (Adams, orders 1 to 12), "implicit" (stiff, at the cost of forward dynamics; orders 1
                to 5), "bdf" (stiff, full matrices; orders 1 to 5), "tsit5", "rkf" (5), "rkg" (4), "rki" (3), "iec" (2);
                with a fixed `step` "rk4" (order 4), "symplectic_euler" (order 1); or a custom Runge-Kutta method:
                a `bunraku.integrate.runge_kutta.Tableau`
    actuation   a function (t, q, v) -> tau, or one decorated with @bk.actuation
    params      float array given to a compiled actuation; may be changed while running
    baumgarte   loops are closed after every step by the smallest move; with this rate [1/s], instead by forces that
                make a gap g obey g'' + 2 rate g' + rate^2 g = 0
    dense       keep the polynomial of every step for `Trajectory.sample`: order + 1 times the memory, and some time.
                Without, samples are interpolated from the recorded states: as accurate as the steps of multistep
                methods and fixed steps, less accurate than the long steps of adaptive Runge-Kutta methods. None: kept
                for these, if record is "all"
    progress    progress bar: True, False, or None for a bar if the output is a terminal
    t           the time at which it starts [s]
    workers     threads that share the mechanism, at most: each has chunks of it (`bk.schedule`), their state and their
                part of the solver. None: chosen by the cost model, or one that computes equal chunks in SIMD lanes
    schedule    assignment of parts to workers, from `bk.schedule` or `bk.Schedule`; made again after `connect` and
                `cut`
    record      extent of `trajectory`: "all", a number of most recent seconds (and the step in which they begin), or
                None for the present state only
    external    {link: (fx, fy, fz, mx, my, mz) or a function of t that returns it}: forces at the origin of the link's
                frame, world axes; `push` changes them
    prescribed  {joint: function of t, table (times, values), or bk.Guide}: joints whose motion is given. A function
                returns q, or (q, v, a); from q alone derivatives are taken by differences over milliseconds
    reads       joints that the actuation reads, if not all: several workers then gather only these; the others are
                NaN
    max_contacts  maximum number of simultaneous contacts; 64 by default. Memory is allocated as needed
    impacts     law of impacts at several contacts at once: "simultaneous", all rebound together (Newton's law at each),
                or "sequential", one after another, the fastest approach first (Newton's cradle)

    `q`, `v`, `t` and `mechanism` are read-only: `set_state`, `impulse`, `connect` and `cut` change them.
    """

    mechanism: Mechanism
    solver: str | Tableau

    def __init__(self, mechanism: Mechanism, q=None, v=None, solver: str | Tableau = "gear", rtol: float = 1e-6,
                 atol: float = 1e-8, actuation=None, params=None, *, step: float | None = None,
                 max_step: float = math.inf, min_step: float = 0.0, max_order: int | None = None,
                 baumgarte: float | None = None, dense: bool | None = None, progress: bool | None = None,
                 t: float = 0.0, workers: int | None = None, schedule: Schedule | None = None,
                 record: str | float | None = "all",
                 external=None, prescribed=None, reads=None, max_contacts: int | None = None,
                 impacts: str = SIMULTANEOUS, _resumed: bool = False, _in_batch: bool = False):
        self._settings = Settings.of(solver, rtol, atol, step=step, max_step=max_step, min_step=min_step,
                                     max_order=max_order, baumgarte=baumgarte)
        self.__dict__.update(mechanism=as_mechanism(mechanism).copy().locked(), solver=solver)
        self._sharing = Sharing(self._settings, self.mechanism, workers, schedule)
        duration, time_ = as_duration(record, bool(dense)), as_number("t [s]", t, ShapeError)
        self._acting = Acting(self.mechanism, external, prescribed, reads)
        self._room = None if max_contacts is None else as_count("max_contacts", max_contacts)
        if impacts not in IMPACTS:
            raise ModelError(f"impacts must be one of {', '.join(map(repr, IMPACTS))}, not {impacts!r}")
        self._impacts = impacts
        self._contact = self._contact_of(self.mechanism)
        self.progress = progress
        self.stats = Statistics()
        if not _in_batch:
            prepare_simulation(self._settings, loops=bool(self.mechanism.connections),
                               contact=self._contact is not None)
        plan = self.mechanism.plan()
        if _resumed:  # from a checkpoint: the state is that of the run, to the last bit
            start, speed, closed = q, v, ""
        else:
            start, speed, closed = self._as_state(self.mechanism.neutral() if q is None else q,
                                                  plan.zero_tau if v is None else v, t=time_)
        self._local = self._settings.memory(np.concatenate([start, speed]))
        self._local.clock[m.TIME] = time_
        self.params = np.zeros(0) if params is None else params
        self._drive = actuation
        self._take_up_actuation()
        self._tape = Tape(duration, self.mechanism, self.t, self._local.rows[0])
        self._pace = None if self._settings.fixed_step else Pace(self._settings.explicit, MOTION, misfit)
        self._dense = self._settings.long_steps and math.isinf(duration) if dense is None else bool(dense)
        if not _resumed:
            for text in (closed, *self._acting.said()):
                if text:
                    self._tape.event(Event(self.t, text))
        self._watches: list[Watch] = []
        self._awaited: list[dict] = []  # states of conditions that a checkpoint had, until `when` names them again
        self._in_step = False
        self._halted: Callable[[], bool] | None = None  # asked now and then whether `advance` shall stop where it is
        self.impulses: dict[str, np.ndarray] = {}  # of the last connection made: see `connect`

    def __setattr__(self, name, value):
        if name in READ_ONLY:
            raise ReadOnlyError(f"sim.{name} is read-only; {READ_ONLY[name].format(name=name)}")
        super().__setattr__(name, as_params(value) if name == "params" else value)

    def _begun_anew(self, q, v, params) -> Simulation:
        """Another simulation of the same mechanism with the same settings and actuation, from another state."""
        s = self._settings
        return Simulation(self.mechanism, q, v, s.solver, s.rtol, s.atol, self._drive, params, step=s.step or None,
                          max_step=s.max_step, min_step=0.0 if s.fixed_step else s.min_step, max_order=s.max_order,
                          baumgarte=s.hold or None, progress=False, record=None, max_contacts=self._room,
                          impacts=self._impacts)

    def _contact_of(self, mechanism: Mechanism) -> Contact | None:
        """Contact, if any shapes may touch."""
        if not mechanism.may_touch():
            return None
        if (self._sharing.asked or 1) > 1 or self._sharing.given is not None:
            raise ModelError("contact is computed by one worker: leave workers and schedule out, or keep shapes from "
                             "touching (masks, m.exclude)")
        self._sharing.stay_alone()
        return Contact(mechanism, self._settings, self._acting.locked, self._room, self._impacts)

    # -- ask -------------------------------------------------------------------------------------------------------

    @property
    def t(self) -> float:
        return float(self._local.clock[m.TIME])

    @property
    def q(self) -> np.ndarray:
        return StateArray.of(self._state[:self.mechanism.nq])

    @property
    def v(self) -> np.ndarray:
        return StateArray.of(self._state[self.mechanism.nq:])

    @property
    def _state(self) -> np.ndarray:
        """q and v; not to be written to."""
        self._sharing.collect_state(self._local)
        return self._local.rows[0]

    @property
    def _memory(self) -> m.Memory:
        """The solver's memory, gathered, to read and to change. (`_local` is this process's part: clock and tally
        are always there, `rows` may be with the workers.)"""
        self._sharing.collect(self._local)
        return self._local

    @_memory.setter
    def _memory(self, memory: m.Memory) -> None:
        self._sharing.holder, self._local = None, memory

    def __getstate__(self) -> dict:
        """State of a copy: gathered, without workers."""
        self._sharing.collect(self._local)
        return self.__dict__

    @property
    def schedule(self) -> Schedule | None:
        """Chunks of the mechanism and their workers in the last run: `schedule.chunks`, `chunk_workers`. None
        if it is not divided. (`stats.workers` is the number of threads that computed them.)"""
        return self._sharing.schedule

    @property
    def trajectory(self) -> Trajectory:
        """The recorded motion: see `record`."""
        return self._tape.trajectory()

    @property
    def _events(self) -> list[Event]:
        return self._tape.events

    # -- keep ------------------------------------------------------------------------------------------------------

    def record_to(self, path, *, single: bool = False, torques: bool | None = None) -> Recorder:
        """Write the motion from now on to a recording (.mcap) as it is computed: a crash loses at most one second.

        single    states in float32
        torques   also record torques: the actuation is called once more for each recorded state. By default if it is
                  compiled; a plain function without internal state may be called as well: torques=True

        Returns the recorder, to be closed (`close()`, or `with`).
        """
        from bunraku.simulation.recorder import Recorder

        return Recorder(self, path, single=single, torques=torques)

    def save(self, path) -> Path:
        """Write a checkpoint: everything that `Simulation.load` needs for a bit-exact continuation.

        The file (NumPy's .npz; no pickles) is replaced atomically: a crash leaves the previous one.
        Functions are not stored: the actuation and the actions of `when` are given again after loading. May be called
        between runs and by an action of `when`.
        """
        return save_checkpoint(self, path)

    @classmethod
    def load(cls, path, actuation=None, *, mechanism: Mechanism | None = None, forget=(),
             progress: bool | None = None, external=None, prescribed=None) -> Simulation:
        """The simulation of a checkpoint, which continues the saved one bit by bit.

        actuation   the same function as before, if there was one
        mechanism   expected mechanism: the file is rejected if its present mechanism differs
        forget      names of conditions that are no longer watched
        external    functions of time that acted on links, and `prescribed` motions of joints: the same as before

        Conditions are given again by `when` under the same names, which restores their state; `run` refuses to go on
        without one that was being watched.
        """
        return load_checkpoint(cls, path, actuation, mechanism, forget, progress, external, prescribed)

    # -- change the state ------------------------------------------------------------------------------------------

    def set_state(self, q=None, v=None, t: float | None = None) -> None:
        """Continue from another state or time; omitted arguments keep their values. Recorded as an event, in a new
        segment.

        Loops must be closed (`bk.project`). A later t leaves a gap in the record; an earlier one begins a new record:
        keep `sim.trajectory` before it. If anything fails nothing has changed.
        """
        time_, before = self.t if t is None else as_number("set_state: t [s]", t, ShapeError), self.t
        q, v, closed = self._as_state(self.q if q is None else q, self.v if v is None else v, "set_state", time_)
        what = "set_state" if time_ == before else f"set_state: from t = {before:.6g} s"
        self._change(self.mechanism, q, v, f"{what}; {closed}" if closed else what, time_)

    def impulse(self, link: str, impulse, moment=None, *, point=(0.0, 0.0, 0.0)) -> None:
        """Apply an impulse to a link: velocities jump as the constraints allow; `impulses` holds the reactions of the
        connections.

        impulse  (px, py, pz) [N s] in world axes; or six numbers, with a moment of impulse [N m s]
        moment   moment of impulse about the point, if not given so
        point    where the impulse acts, in the link's frame: its origin by default

        Recorded as an event, in a new segment. If anything fails nothing has changed.
        """
        q, v, _ = self._as_state(self.q, self.v, "impulse")
        after, answers = struck(self.mechanism, q, v, link, impulse, moment, point=point,
                                locked=self._acting.locked)
        given = np.array2string(np.asarray(impulse, float), precision=4, separator=", ")
        self._change(self.mechanism, q, after, f"impulse on {link!r}: {given} N s")
        self.impulses = answers

    def _as_state(self, q, v, what: str = "cannot start",
                  t: float | None = None) -> tuple[np.ndarray, np.ndarray, str]:
        """A state to continue from: of the right size, finite, quaternions normalised, prescribed joints on their
        motion at the time t, loops closed; and a description of the corrections."""
        plan = self.mechanism.plan()
        batch, (q, v) = aligned(("q", q, plan.nq), ("v", v, plan.nv))
        if batch is not None:
            raise ShapeError("a simulation goes on from one state, not from a batch; bk.rollout simulates every state "
                             "of a batch")
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            raise SimulationError(f"{what}: {explain(self.mechanism.plan(), q, {'v': v})}")
        unit = unit_quaternions(plan, q[None])[0]  # as in a rollout, to the last bit
        if not np.isfinite(unit).all():
            refuse(plan, q, {"v": v})
        moved: list[str] = []
        if self._acting.courses:
            unit, v, moved = self._acting.start(unit, v, self.t if t is None else t)
        try:
            unit, v, said = closed_start(self.mechanism, unit, v, self._acting.prescribed)
            if moved:
                said = "; ".join(filter(None, (said, f"prescribed: {', '.join(moved)} moved to where the motion "
                                                     "begins")))
        except ConstraintError as error:
            raise SimulationError(f"{what}: {error}") from None
        if self._contact is not None:
            self._contact.refuse_overlap(unit, v, what)
            self._contact.fresh = True
        return unit, v, said

    # -- change the structure --------------------------------------------------------------------------------------

    def connect(self, link_a: str, link_b: str, joint: Joint | None = None, name: str | None = None, *,
                position_a=None, rotation_a=None, position_b=None, rotation_b=None, actuated: bool | None = None,
                max_gap: float = 1e-6) -> Connection:
        """Close a loop now: `joint` connects link b to link a, and velocities jump to satisfy its constraints.

        Without frames the links are held as they are now, the joint's frame being link b's own; with one side's frame
        given, the other side's is captured. With both given they must fit the joint up to `max_gap` [m, rad]; the
        remaining gap is closed by a small motion of all links. `impulses` then holds {connection: (impulse, moment of
        impulse)}: six numbers on link b at the joint frame's origin, in child-side axes. If anything fails nothing has
        changed.
        """
        max_gap = as_size("max_gap [m, rad]", max_gap, ShapeError, infinite=True)
        q, v = self.q, self.v
        a, b = capture(self.mechanism, q, link_a, link_b, (position_a, rotation_a), (position_b, rotation_b))
        mechanism = self.mechanism.copy()
        connection = mechanism.connect(link_a, link_b, joint, name, position_a=a[0], rotation_a=a[1], position_b=b[0],
                                       rotation_b=b[1], actuated=actuated)
        open_ = gap(mechanism, q, connection)
        if not max(open_) <= max_gap:
            raise SimulationError(f"connect {connection.name!r} at t = {self.t:.6g} s: the frames on {link_a!r} and "
                                  f"{link_b!r} are {open_.length:.3g} m and {open_.angle:.3g} rad from where "
                                  f"{connection.joint!r} lets them be; leave one side's frame out to capture it, bring "
                                  f"the links together, or allow max_gap={large_enough(open_)}", self.trajectory)
        if max(open_) > EXACT:
            plan = plan_of_moves(mechanism, self._acting.prescribed)
            q = closed_position(mechanism, plan, q)  # the velocity stays for the impact to change, and to count
        v, impulses = impact(mechanism, q, v, impulses=True, prescribed=self._acting.prescribed)
        hit = impulses[connection.name]
        self._change(mechanism, q, v, f"connect {connection.name!r}: {link_a} - {link_b} by {connection.joint!r}, "
                     f"impulse {np.linalg.norm(hit[:3]):.4g} N s, {np.linalg.norm(hit[3:]):.4g} N m s")
        self.impulses = impulses
        return connection

    def cut(self, name: str) -> None:
        """Remove a connection or cut a tree joint now: every link keeps its pose and velocity.

        The link of a tree joint (by joint name, else by link name) is then connected to the ground by a Free joint of
        the same name, so q and v become longer. If anything fails nothing has changed.
        """
        mechanism = self.mechanism.copy()
        carry = mechanism.cut(name)
        link = None if name in self.mechanism.connections else self.mechanism._find_joint(name)
        mechanism.plan()  # refuses ends without mass
        q, v = carry(self.q, self.v)
        if name in self.mechanism.connections:
            old, names = self.mechanism.connections[name], [*mechanism.link_names, "ground"]
            what = f"{names[old.link_a]} - {names[old.link_b]} by {old.joint!r}"
        else:
            what = f"{mechanism.links[mechanism._find_joint(name)].name} is free"
        self._change(mechanism, q, v, f"cut {name!r}: {what}", cut=link)

    def _refuse_within_a_step(self, what: str) -> None:
        if self._in_step:
            raise SimulationError(f"{what}: not allowed during a step: actuation and conditions must not change the "
                                  "state. Change it between runs, or from an action of `when`")

    def _change(self, mechanism, q, v, event, t=None, cut=None):
        """Continue with another structure or state from here, or from the time t."""
        self._refuse_within_a_step(event.partition(":")[0])
        self._acting.fit(mechanism, cut)
        self._sharing.changed(mechanism)
        self.__dict__["mechanism"] = mechanism.locked()
        self._contact = self._contact_of(mechanism)
        clock = self._local.clock
        self._memory = self._settings.memory(np.concatenate([q, v]))
        self._memory.clock[:m.SIZE] = clock[:m.SIZE]
        if t is not None:
            self._memory.clock[m.TIME] = t
        self._restart()  # what was a good step before says nothing now
        self._tape.change(self.mechanism, self.t, self._memory.rows[0])
        self._take_up_actuation()
        self._tape.event(Event(self.t, event))

    def _take_up_actuation(self) -> None:
        self._own = as_actuation(self._drive, self.mechanism.nv)
        self._actuation = self._acting.actuation(self._own, self.mechanism, lambda: self.params)

    # -- act from outside ------------------------------------------------------------------------------------------

    def push(self, link: str, wrench=None) -> None:
        """Set the external force on a link from now on, replacing its previous one: (fx, fy, fz, mx, my, mz) at the
        origin of its frame in world axes, or a function of t that returns it; None ends it."""
        self._refuse_within_a_step("push")
        before = dict(self._acting.external)
        try:
            self.mechanism._find_link(link, "push")
            self._acting.external.pop(link, None)
            if wrench is not None:
                self._acting.external[link] = wrench
            self._acting.fit(self.mechanism)
        except BunrakuError:
            self._acting.external = before
            self._acting.fit(self.mechanism)
            raise
        self._tape.event(Event(self.t, f"push {link!r}{' no more' if wrench is None else ''}"))
        self._take_up_actuation()
        self._restart()

    def pull(self, link: str, point, target, stiffness: float | None = None, damping: float | None = None, *,
             rotation=None, turn_stiffness: float | None = None, turn_damping: float | None = None) -> None:
        """Pull a point of a link (in its frame) to a target (in the world) by a spring, until `release`; with
        `rotation` turn the link, too.

        stiffness, damping    [N/m], [N s/m]; by default a spring with a period of half a second for the link's mass,
                              critically damped
        rotation              3x3, of the link's frame in the world: a spring acts along the shortest turn to it
        turn_stiffness        [N m/rad]; by default a period of half a second for the link's largest moment of inertia
                              about the point
        turn_damping          [N m s/rad]; by default critical about each principal axis of inertia

        Called again it moves the targets of the link's springs, which costs microseconds. The springs are conservative:
        they store k/2 of the squared distance and angle.
        """
        self._refuse_within_a_step("pull")
        acting = self._acting
        row = as_pull(self.mechanism, link, point, target, stiffness, damping, rotation, turn_stiffness, turn_damping)
        known = acting.pulls.get(link)
        if known is None:
            acting.pulls[link] = row
            acting.fit(self.mechanism)
            self._tape.event(Event(self.t, f"pull {link!r}"))
        else:
            known[:] = row
            place = 6 * len(self.mechanism.links) + len(row) * list(acting.pulls).index(link)
            acting.array[place:place + len(row)] = row
        self._restart()

    def release(self, link: str | None = None) -> None:
        """End the pull on a link, or on all."""
        self._refuse_within_a_step("release")
        if link is not None and link not in self._acting.pulls:
            self.mechanism._find_link(link, "release")
            raise SimulationError(f"release: {link!r} is not being pulled")
        for name in [link] if link is not None else list(self._acting.pulls):
            del self._acting.pulls[name]
            self._tape.event(Event(self.t, f"release {name!r}"))
        self._acting.fit(self.mechanism)
        self._restart()

    # -- move ------------------------------------------------------------------------------------------------------

    def when(self, condition: Condition, action, name: str | None = None, *, repeat: bool = False) -> Watch:
        """Call `action(simulation)` at the moment a condition comes true during `run`; return True from
        `action` to stop the run.

        condition   a function (t, q, v) -> number, true where that is positive; `bk.force_above`, `bk.points_meet`,
                    `bk.points_part`. One compiled by `numba.njit` is watched without Python in the loop.
        action      may connect, cut, change `params` and so on; the solver restarts after it
        repeat      every time it comes true; otherwise the first time only

        The moment is located within the step that passes it. A condition that holds when a run or a new structure
        begins comes true there. One on a joint or connection that does not exist yet waits for it; if it never
        existed, a SimulationWarning is issued at the end of the run. A connection cut and made again is a new one.
        """
        watch = as_watch(self.mechanism, condition, action, name, repeat, len(self._watches))
        restore(self._awaited, watch, self.mechanism)
        self._watches.append(watch)
        return watch

    def torque(self, t: float, q, v) -> np.ndarray:
        """Torques of the actuation: those of the joints, then those of the connections."""
        size, tau = self.mechanism.nv + self.mechanism.nc, np.zeros(self.mechanism.nv + self.mechanism.nc)
        if self._own is not None:
            given = self._own.torque(t, q, v, self.params, size)
            tau[:len(given)] = given
        return tau

    def dynamics(self) -> Dynamics:
        """`bk.dynamics` at the present state, with actuation, external forces, pulls and prescribed joints."""
        tau = self.torque(self.t, self.q, self.v)
        return dynamics(self.mechanism, self.q, self.v, tau, **self._acting.at(self.mechanism, self.t, self.q, self.v))

    @property
    def contacts(self) -> Contacts:
        """Contacts at the present state, with forces and modes. In fixed steps: those of the last step (before the
        first step, of that one), impulses divided by the step, so that impacts show as large forces."""
        contact = self._contact
        if contact is None:
            if not self.mechanism.shapes:
                raise ModelError(f"{self.mechanism.name} has no shapes, so nothing can touch; use m.add_shape(link, "
                                 "bk.Sphere(0.1)) and m.add_plane()")
            return no_contacts(self.mechanism, self.q)
        if contact.stepping and contact.stepped == self.t:
            return forces_of_last_step(contact.touching, self.q, float(self._local.clock[m.TAKEN]))
        tau = self.torque(self.t, self.q, self.v)
        acting = self._acting.at(self.mechanism, self.t, self.q, self.v)
        if contact.stepping:
            return step_forces(self.mechanism, self.q, self.v, tau, float(self._settings.step), **acting)
        return contact_forces(self.mechanism, self.q, self.v, tau, **acting, limits=EVENTS)[1]

    def run(self, until: float) -> Trajectory:
        """Simulate to the time `until`, or until a watched condition's action ends it; returns the whole trajectory.

        If something fails, or Ctrl-C is pressed, what was computed stays in `trajectory` and in t, q, v; a
        SimulationError carries it too.
        """
        self.advance(until)
        return self.trajectory

    def advance(self, until: float) -> None:
        """As `run`, without assembling the trajectory: for many short runs in sequence."""
        if as_number("until", until, ShapeError) < self.t:
            raise ShapeError(f"until must be a time from {self.t:g} s on, not {until!r}")
        self._refuse_within_a_step("run")
        self._acting.refuse_beyond(self.t, until)
        refuse_forgotten(self._awaited)
        for actuation in (self._own, self._actuation):
            if isinstance(actuation, PlainActuation):
                actuation.begin()
        try:
            with Bar(self.progress, self.t, until) as bar, Interrupts() as interrupts:
                self._go_on(until, bar, interrupts)
        except BaseException:
            self._in_step = False  # a signal may have raised it anywhere
            raise
        finally:
            self._tape.settle()
        if self._contact is not None:
            said = self._contact.said()
            if said:
                warnings.warn(said, SimulationWarning, stacklevel=3)
        for text in never_applied(self._watches, self.mechanism):
            warnings.warn(text, SimulationWarning, stacklevel=3)

    def _go_on(self, until: float, bar: Bar, interrupts: Interrupts) -> None:
        """Run from event to event."""
        contact = self._contact
        while True:
            if contact is not self._contact:
                contact = self._contact
            by_events = contact is not None and not contact.stepping
            if contact is not None and by_events and contact.fresh:
                contact.settle(self)
            watches = [contact.watch, *self._watches] if contact is not None and by_events else self._watches
            watched = Watched(self, watches)
            happened = watched.already()
            if happened is None:
                begins, state = self.t, self._state.copy() if watched.watches else None
                status = self._advance(until, watched, bar, interrupts)
                if status in (m.REACHED, m.RECORD_FULL):  # or it was halted
                    break
                if status != m.EVENT:
                    self._fail(status, watched)
                happened = watched.found()
                if self.t <= begins:  # at once: exactly where it was
                    self._memory.rows[0] = state
                self._tidy()
            if contact is not None and happened is contact.watch:
                contact.settle(self)
            elif self._act(happened) or self.t > until:  # an action may set the time
                break

    def _act(self, watch: Watch) -> bool:
        """Execute the action of a condition that has come true. Returns whether that ends the run."""
        self._tape.event(Event(self.t, watch.name))
        watch.times.append(self.t)
        watch.holds, watch.active = True, watch.repeat
        self._restart()
        try:
            answer = watch.action(self)
            return isinstance(answer, (bool, np.bool_)) and bool(answer)
        except Exception as error:
            error.add_note(f"raised by the action of {watch.name!r} at t = {self.t:.6g} s")
            raise

    def _advance(self, until, watched, bar, interrupts) -> int:
        """Run compiled code until it returns a status other than a full record."""
        settings, acting, external = self._settings, self._acting, self._acting.array
        plan, (entry, method) = acting.plan(self.mechanism, settings, self._actuation is not None), settings.entry()
        contact = self._contact
        watching = bool(watched.watches)  # steps beyond an event would be thrown away: short stretches
        rows = max(1, min(512, (1 if watching else 4) * BODY_STEPS_PER_CALL // plan.bodies))
        in_lanes = self._sharing.in_lanes and not external.size
        address, structure = address_of(self._actuation), structure_of(plan, settings.hold, in_lanes)
        if contact is not None:
            plan, structure = contact.touching.plan, contact.structure()
            entry, method = contact.entry((entry, method))
        memory = self._local
        memory.clock[m.UNTIL] = until
        self._sharing.links_in_lanes = plan.lanes.in_lanes if in_lanes and plan.lanes is not None else 0
        sharing = self._sharing
        request = self.mechanism, plan, memory, acting, self._own is not None, watching
        kept = (sharing.divided(*request) and watching) or self._dense
        polynomials = polynomial_room(rows if kept else 0, memory.rows.shape[1])
        status = m.RECORD_FULL
        while status == m.RECORD_FULL:
            shared = sharing.shared or (sharing.may_begin(self.stats.steps) and sharing.divided(*request, begin=True))
            if contact is not None:
                contact.limit_step(self)
            record, block = watched.record(rows, memory.rows.shape[1], polynomials), None
            memory.tally[m.RECORDED] = 0
            before, tick = memory.tally.copy(), time.perf_counter()
            try:
                self._in_step = True
                if shared:
                    status, block = shared.run(address, self.params, external, memory, record)
                else:
                    sharing.collect(memory)
                    status = entry.call(*method, *structure, address, self.params, external, memory, record)
            finally:
                self._in_step = False
                if contact is not None:
                    contact.stepped = self.t
                done = memory.tally - before
                block = block or Block.of(record, int(done[m.RECORDED]), self._dense)
                self._keep(done, block, time.perf_counter() - tick)
            if status == m.CONTACTS_FULL and contact is not None and contact.touching.grow():
                structure, status = contact.structure(), m.RECORD_FULL
            if plan.loops is not None and (not shared or settings.hold or status != m.RECORD_FULL):
                sharing.collect_state(memory)
                error, status = look_at_loops(self.mechanism, plan, memory, settings.hold, status)
                self.stats.loop_error = max(self.stats.loop_error, error)
            bar.show(self.t)
            interrupts.let_in()
            if status == m.RECORD_FULL and self._halted is not None and self._halted():
                break
            if self._pace and status == m.RECORD_FULL:
                order = int(memory.tally[m.ORDER]) or method[0].order
                text = self._pace.look(memory, order, block.t, block.y, time.perf_counter() - tick,
                                       self._torque_at if self._actuation else None)
                if text:
                    warnings.warn(text, SimulationWarning, stacklevel=5)
        return status

    def _torque_at(self, t, y):
        return self.torque(t, y[:self.mechanism.nq], y[self.mechanism.nq:])

    def _restart(self):
        """Discard the solver's history: the motion may have a discontinuity here."""
        self._local.tally[m.STARTED] = 0
        if not self._settings.fixed_step:
            self._local.clock[m.STEP] = 0.0

    def _tidy(self):
        """A state between steps: exactly unit quaternions, closed loops and contacts, in the record too."""
        q = self.mechanism.integrate(self.q, np.zeros(self.mechanism.nv))
        v = self.v
        if self.mechanism.connections:
            try:
                prescribed = self._acting.prescribed
                q = closed_position(self.mechanism, plan_of_moves(self.mechanism, prescribed), q, limit=math.inf)
                v = impact(self.mechanism, q, v, prescribed=prescribed)
            except BunrakuError as error:
                raise SimulationError(f"the loops cannot be closed at the event at t = {self.t:.6g} s: {error}",
                                      self.trajectory) from error
        if self._contact is not None:
            q, v = self._contact.tidy(self, q, v)
        self._memory.rows[0] = np.concatenate([q, v])
        self._tape.replace_last(self._memory.rows[0])

    def _keep(self, done, block, seconds):
        stats = self.stats
        self._tape.append(block)
        stats.steps += int(done[m.STEPS])
        stats.rejected += int(done[m.REJECTED])
        stats.evaluations += int(done[m.EVALUATIONS])
        stats.jacobians += int(done[m.JACOBIANS])
        stats.factorisations += int(done[m.FACTORISATIONS])
        stats.wall_time += seconds
        stats.workers, stats.in_lanes = self._sharing.workers, self._sharing.links_in_lanes
        stats.gathers += int(done[m.EVALUATIONS]) if self._sharing.gathers else 0
        stats.loop_drift = float(self._local.clock[m.GAP])
        if self._contact is not None:
            self._contact.report(stats)

    def _fail(self, status, watched):
        if self.t > self._tape.end:  # a step was made, and what failed was to look at it
            self._tape.append(Block(np.array([self.t]), self._state[None].copy()))
        trajectory, where, cause = self.trajectory, f"at t = {self.t:.6g} s", None
        if status == m.CONTACTS_FULL and self._contact is not None:
            raise SimulationError(f"{where}: {self._contact.touching.full()}", trajectory)
        if status == m.ACTUATION_FAILED:
            compiled = isinstance(self._actuation, Actuation)
            here = self.t, self.q, self.v, self.params, self.mechanism.nv + self.mechanism.nc
            cause = self._actuation.raised(*here) if self._actuation and not compiled else None
            watched.complain(alone=cause is None and not compiled)
            cause = self._actuation.raised(*here) if compiled else cause
            self._tape.event(Event(self.t, "the actuation failed"))
            if isinstance(cause, (KeyboardInterrupt, SystemExit)):
                raise cause
        clock = self._local.clock
        raise SimulationError(stopped(status, where, self.mechanism, self.q, self.v, cause=cause,
                                      min_step=clock[m.MIN_STEP], tried=clock[m.STEP], torques=self._torques_about(),
                                      left_open=LeftOpen.of(self._local, self._settings.hold)), trajectory) from cause

    def _torques_about(self):
        """The actuation at the moment of a failure, and just after it."""
        if self._actuation:
            for t in (self.t, self.t + 1e-6, self.t + 1e-3):
                yield f"at t = {t:.6g} s", self.torque(t, self.q, self.v)

    def __repr__(self):
        name = self.solver if isinstance(self.solver, str) else f"a tableau of order {self.solver.order}"
        return f"Simulation of {self.mechanism.name} at {self.t:g} s: solver {name}, {self.stats.steps} steps"

    def _repr_html_(self) -> str:
        """In notebooks: a summary line and a replay of the motion so far."""
        moved = self.trajectory
        replay = moved._repr_html_() if len(moved.t) > 1 else None
        return f"<p>{html.escape(repr(self))}</p>{replay or self.mechanism._repr_html_()}"
