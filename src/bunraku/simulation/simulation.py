"""The simulation of a mechanism: the interface for users. What is behind it is in `running.py`."""

from __future__ import annotations

import html
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bunraku.checks import as_number
from bunraku.errors import ModelError, ReadOnlyError, ShapeError
from bunraku.evaluate import Schedule
from bunraku.evaluate.contact_forces import EVENTS, contact_forces, forces_of_last_step, step_forces
from bunraku.evaluate.contacts import Contacts, no_contacts
from bunraku.evaluate.dynamics import dynamics
from bunraku.evaluate.dynamics_results import Dynamics
from bunraku.integrate import solver_memory as m
from bunraku.integrate.runge_kutta import Tableau
from bunraku.mechanism import Connection, Coupling, Joint, Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.runs.actuation import Actuation
from bunraku.simulation import force_changes, state_changes, stretches, structure_changes
from bunraku.simulation.acting import Acting
from bunraku.simulation.actuating import as_params
from bunraku.simulation.checkpoint import load_checkpoint, restore, save_checkpoint
from bunraku.simulation.conditions import Condition, Watch, as_watch
from bunraku.simulation.crew.sharing import Sharing
from bunraku.simulation.records.tape import Extent
from bunraku.simulation.records.trajectory import Trajectory
from bunraku.simulation.running import Running, Statistics
from bunraku.simulation.settings import CONTACT_STEP, SIMULTANEOUS, Settings

if TYPE_CHECKING:
    from bunraku.simulation.recorder import Recorder

_STATE = "use sim.set_state(q, v, t=None)"
_ANEW = "build a new bk.Simulation(sim.mechanism, sim.q, sim.v, {name}=..., t=sim.t)"
READ_ONLY = {  # attributes that it would do no good to set: what to do instead
    "q": _STATE, "v": _STATE, "t": _STATE,
    "mechanism": "use sim.connect and sim.cut, or build a new bk.Simulation",
    **dict.fromkeys(("solver", "rtol", "atol", "actuation", "step", "max_step", "min_step", "max_order", "baumgarte",
                     "workers", "schedule", "record", "prescribed"), _ANEW),
    "external": "use sim.push(link, wrench)", "stats": "to count from now on, subtract copy.copy(sim.stats)",
    "impulses": "sim.connect and sim.impulse set it"}


class Simulation:
    """A mechanism in motion. Works on its own copy of the mechanism, whose structure `connect` and `cut` change.

    q, v        start; by default neutral, or the nearest state that closes all loops, and at rest
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
    max_contacts  maximum number of simultaneous contacts; by default 64 with events, any number in fixed steps. Memory
                is allocated as needed
    impacts     law of impacts at several contacts at once: "simultaneous", all rebound together (Newton's law at each),
                or "sequential", one after another, the fastest approach first (Newton's cradle)
    contact_step  [s] length of the time steps that replace contact events where these are crowded or have no end, for
                as long as they are (docs/contact.md has the rule); None: never, a Zeno error instead

    `q`, `v`, `t` and `mechanism` are read-only: `set_state`, `impulse`, `connect`, `cut`, `couple` and `uncouple`
    change them.
    """

    def __init__(self, mechanism: Mechanism, q=None, v=None, solver: str | Tableau = "gear", rtol: float = 1e-6,
                 atol: float = 1e-8, actuation=None, params=None, *, step: float | None = None,
                 max_step: float = math.inf, min_step: float = 0.0, max_order: int | None = None,
                 baumgarte: float | None = None, dense: bool | None = None, progress: bool | None = None,
                 t: float = 0.0, workers: int | None = None, schedule: Schedule | None = None,
                 record: str | float | None = "all",
                 external=None, prescribed=None, reads=None, max_contacts: int | None = None,
                 impacts: str = SIMULTANEOUS, contact_step: float | None = CONTACT_STEP):
        settings = Settings.of(solver, rtol, atol, step=step, max_step=max_step, min_step=min_step,
                               max_order=max_order, baumgarte=baumgarte, max_contacts=max_contacts, impacts=impacts,
                               contact_step=contact_step)
        own = as_mechanism(mechanism).copy().locked()
        sharing = Sharing(settings, own, workers, schedule)
        extent, time_ = Extent.of(record, dense, settings.long_steps), as_number("t [s]", t, ShapeError)
        acting = Acting(own, actuation, params, external, prescribed, reads)
        if isinstance(actuation, Actuation):
            actuation.refuse(settings.solver, settings.step, True)
        self._running = Running(own, settings, acting, sharing)
        self.progress = progress
        state_changes.start(self._running, q, v, time_, extent)

    def __setattr__(self, name, value):
        if name in READ_ONLY:
            raise ReadOnlyError(f"sim.{name} is read-only; {READ_ONLY[name].format(name=name)}")
        super().__setattr__(name, value)

    # -- ask -------------------------------------------------------------------------------------------------------

    @property
    def mechanism(self) -> Mechanism:
        """The present structure."""
        return self._running.mechanism

    @property
    def solver(self) -> str | Tableau:
        return self._running.settings.solver

    @property
    def t(self) -> float:
        return self._running.t

    @property
    def q(self) -> np.ndarray:
        return self._running.q

    @property
    def v(self) -> np.ndarray:
        return self._running.v

    @property
    def params(self) -> np.ndarray:
        """Parameters of a compiled actuation: to be changed in place, or replaced."""
        return self._running.acting.params

    @params.setter
    def params(self, value) -> None:
        self._running.acting.params = as_params(value)

    @property
    def stats(self) -> Statistics:
        """Statistics so far."""
        return self._running.stats

    @property
    def impulses(self) -> dict[str, np.ndarray]:
        """Impulses of the last connection made, or of the last `impulse`: see `connect`."""
        return self._running.impulses

    @property
    def schedule(self) -> Schedule | None:
        """Chunks of the mechanism and their workers in the last run: `schedule.chunks`, `chunk_workers`. None
        if it is not divided. (`stats.workers` is the number of threads that computed them.)"""
        return self._running.sharing.schedule

    @property
    def trajectory(self) -> Trajectory:
        """The recorded motion: see `record`."""
        return self._running.trajectory

    # -- keep ------------------------------------------------------------------------------------------------------

    def record_to(self, path, *, single: bool = False, torques: bool | None = None) -> Recorder:
        """Write the motion from now on to a recording (.mcap) as it is computed: a crash loses at most one second.

        single    states in float32
        torques   also record torques: the actuation is called once more for each recorded state. By default if it is
                  compiled; a plain function without internal state may be called as well: torques=True

        Returns the recorder, to be closed (`close()`, or `with`).
        """
        from bunraku.simulation.recorder import Recorder

        return Recorder(self._running, path, single=single, torques=torques)

    def save(self, path) -> Path:
        """Write a checkpoint: everything that `Simulation.load` needs for a bit-exact continuation.

        The file (NumPy's .npz; no pickles) is replaced atomically: a crash leaves the previous one.
        Functions are not stored: the actuation and the actions of `when` are given again after loading. May be called
        between runs and by an action of `when`.
        """
        return save_checkpoint(self._running, path)

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
        simulation = cls.__new__(cls)
        simulation._running = load_checkpoint(path, actuation, mechanism, forget, external, prescribed)
        simulation.progress = progress
        return simulation

    # -- change the state ------------------------------------------------------------------------------------------

    def set_state(self, q=None, v=None, t: float | None = None) -> None:
        """Continue from another state or time; omitted arguments keep their values. Recorded as an event, in a new
        segment.

        Loops must be closed (`bk.project`). A later t leaves a gap in the record; an earlier one begins a new record:
        keep `sim.trajectory` before it. If anything fails nothing has changed.
        """
        state_changes.set_state(self._running, q, v, t)

    def impulse(self, link: str, impulse, moment=None, *, point=(0.0, 0.0, 0.0)) -> None:
        """Apply an impulse to a link: velocities jump as the constraints allow; `impulses` holds the reactions of the
        connections.

        impulse  (px, py, pz) [N s] in world axes; or six numbers, with a moment of impulse [N m s]
        moment   moment of impulse about the point, if not given so
        point    where the impulse acts, in the link's frame: its origin by default

        Recorded as an event, in a new segment. If anything fails nothing has changed.
        """
        state_changes.impulse(self._running, link, impulse, moment, point)

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
        return structure_changes.connect(self._running, link_a, link_b, joint, name, (position_a, rotation_a),
                                         (position_b, rotation_b), actuated, max_gap)

    def cut(self, name: str) -> None:
        """Remove a connection or cut a tree joint now: every link keeps its pose and velocity.

        The link of a tree joint (by joint name, else by link name) is then connected to the ground by a Free joint of
        the same name, so q and v become longer. If anything fails nothing has changed.
        """
        structure_changes.cut(self._running, name)

    def couple(self, joint: str, to: str, ratio: float = 1.0, offset: float | None = None, *,
               max_gap: float = 1e-6) -> Coupling:
        """Couple two joints now, as `Mechanism.couple`: velocities jump to satisfy q = ratio * q_to + offset.

        Without offset the joints are coupled as they are now; a given one must fit up to `max_gap`, and the remaining
        gap is closed by a small motion of all links. If anything fails nothing has changed.
        """
        return structure_changes.couple(self._running, joint, to, ratio, offset, max_gap)

    def uncouple(self, joint: str) -> None:
        """Remove the coupling by which a joint follows another one now: states stay as they are."""
        structure_changes.uncouple(self._running, joint)

    # -- change the forces -----------------------------------------------------------------------------------------

    def push(self, link: str, wrench=None) -> None:
        """Set the external force on a link from now on, replacing its previous one: (fx, fy, fz, mx, my, mz) at the
        origin of its frame in world axes, or a function of t that returns it; None ends it."""
        force_changes.push(self._running, link, wrench)

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
        force_changes.pull(self._running, link, point, target, stiffness, damping, rotation, turn_stiffness,
                           turn_damping)

    def release(self, link: str | None = None) -> None:
        """End the pull on a link, or on all."""
        force_changes.release(self._running, link)

    # -- move ------------------------------------------------------------------------------------------------------

    def when(self, condition: Condition, action, name: str | None = None, *, repeat: bool = False) -> Watch:
        """Call `action(simulation)` at the moment a condition comes true during `run`; return True from
        `action` to stop the run.

        condition   a function (t, q, v) -> number, true where that is positive; `bk.force_above`, `bk.points_meet`,
                    `bk.points_part`. One compiled by `numba.njit` is watched without Python in the loop. A fourth
                    argument is given the model (`bk.Model`)
        action      may connect, cut, change `params` and so on; the solver restarts after it
        repeat      every time it comes true; otherwise the first time only

        The moment is located within the step that passes it. A condition that holds when a run or a new structure
        begins comes true there. One on a joint or connection that does not exist yet waits for it; if it never
        existed, a SimulationWarning is issued at the end of the run. A connection cut and made again is a new one.
        """
        watch = as_watch(self.mechanism, condition, action, name, repeat, len(self._running.watches))
        restore(self._running.awaited, watch, self.mechanism)
        self._running.watches.append(watch)
        return watch

    def torque(self, t: float, q, v) -> np.ndarray:
        """Torques of the actuation: those of the joints, then those of the connections."""
        return self._running.torque(t, q, v)

    def dynamics(self) -> Dynamics:
        """`bk.dynamics` at the present state, with actuation, external forces, pulls and prescribed joints."""
        tau = self.torque(self.t, self.q, self.v)
        return dynamics(self.mechanism, self.q, self.v, tau, **self._running.acts())

    @property
    def contacts(self) -> Contacts:
        """Contacts at the present state, with forces and modes. In fixed steps: those of the last step (before the
        first step, of that one), impulses divided by the step, so that impacts show as large forces."""
        contact = self._running.contact
        if not self.mechanism.shapes:
            raise ModelError(f"{self.mechanism.name} has no shapes, so nothing can touch; use m.add_shape(link, "
                             "bk.Sphere(0.1)) and m.add_plane()")
        if contact is None:
            return no_contacts(self.mechanism, self.q)
        if contact.stepping and contact.stepped == self.t:
            return forces_of_last_step(contact.touching, self.q, float(self._running.local.clock[m.TAKEN]))
        tau = self.torque(self.t, self.q, self.v)
        acting = self._running.acts()
        if contact.stepping:
            return step_forces(self.mechanism, self.q, self.v, tau, contact.step, **acting)
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
        stretches.advance(self._running, until, self, self.progress)

    def __repr__(self):
        name = self.solver if isinstance(self.solver, str) else f"a tableau of order {self.solver.order}"
        return f"Simulation of {self.mechanism.name} at {self.t:g} s: solver {name}, {self.stats.steps} steps"

    def _repr_html_(self) -> str:
        """In notebooks: a summary line and a replay of the motion so far."""
        moved = self.trajectory
        replay = moved._repr_html_() if len(moved.t) > 1 else None
        return f"<p>{html.escape(repr(self))}</p>{replay or self.mechanism._repr_html_()}"


def running(simulation: Simulation) -> Running:
    """The inside of a simulation, for modules that store, draw, measure or attack it."""
    return simulation._running
