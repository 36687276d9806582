"""The stage: a simulation or a recording that people watch, stop, pull, connect and cut in a browser.

One thread owns the simulation: it answers requests, simulates a slice of 1/60 s and shows where the links are, in
turn. The page (`viser_adapter`) only queues requests. What people do becomes calls that a script could make:
`sim.pull`, `sim.connect`, `sim.cut`, `sim.advance`.
"""

from __future__ import annotations

import math
import os
import re
import sys
import threading
import time
import webbrowser
from collections import deque
from queue import Empty, SimpleQueue
from typing import NamedTuple

import numpy as np

from bunraku.entries.kinematics import observation
from bunraku.errors import BunrakuError, ContactError, ShapeError, ViewerError
from bunraku.evaluate import constraints, dynamics, schedule
from bunraku.integrate import memory as m
from bunraku.mechanism import Fixed, Free, Mechanism, Prismatic, Revolute, Spherical
from bunraku.mechanism.links import GROUND
from bunraku.simulation import Guide, Segment, Simulation, Trajectory
from bunraku.simulation.recorded_forces import contacts_at, refuse_unknown_forces
from bunraku.view.contact import Arrow, arrows, floor_height, vector
from bunraku.view.figure import FIXTURE, Camera, Figure
from bunraku.view.filmstrip import OTHERS, TONES
from bunraku.view.solids import Solid, rgba, solids

LOOP_ERROR = "log10 of loop error [m, rad]"
FRAME = 1.0 / 60.0     # [s]
PATIENCE = 0.3         # [s] for a slice: a simulation that crawls must let requests in
TELL = 0.25            # [s] between two updates of texts and plots
KEPT = 400             # points of a plot
WAITING = 1000         # requests: a client that sends more is not heard
UNDONE = 50            # changes that can be undone
PORT = 8080
PULL, CONNECT, CUT = "pull", "connect two links", "cut a joint"
FORCES, LOOPS, WORKERS, CONTACTS = "forces in joints", "connections", "schedule by worker", "contact forces"
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
JOINTS = {"Spherical": Spherical(), "Fixed": Fixed(),
          **{f"Revolute {name}": Revolute(axis) for name, axis in AXES.items()},
          **{f"Prismatic {name}": Prismatic(axis) for name, axis in AXES.items()}}  # axes as the world's are now
CHOSEN = "#f2c14e"     # of the first of two links
HINTS = {PULL: "Drag a link to pull it.",
         CONNECT: "Click two links to connect them where they are; the same link twice holds it to the ground.",
         CUT: "Click the mark of a joint or connection to cut it."}


class Moment(NamedTuple):
    """A structure and a state."""

    mechanism: Mechanism
    q: np.ndarray
    v: np.ndarray
    prescribed: dict


class Live:
    """A simulation as the stage sees it."""

    live = True

    def __init__(self, simulation: Simulation):
        self.simulation = simulation
        self.start = (self.moment(), simulation.t)
        self.armed = [(watch, watch.holds, watch.active) for watch in simulation._watches]

    mechanism = property(lambda self: self.simulation.mechanism)
    t = property(lambda self: self.simulation.t)
    state = property(lambda self: (self.simulation.q, self.simulation.v))
    trajectory = property(lambda self: self.simulation.trajectory)

    def advance(self, seconds: float) -> bool:
        """Go on; whether there is more to come."""
        self.simulation.advance(self.simulation.t + seconds)
        return True

    def moment(self) -> Moment:
        """Structure and state, to come back to."""
        sim = self.simulation
        return Moment(sim.mechanism, sim.q.copy(), sim.v.copy(), dict(sim._acting.prescribed))

    def restore(self, moment: Moment, what: str, t: float | None = None) -> None:
        """Structure and state of an earlier moment."""
        self.simulation._acting.prescribed = dict(moment.prescribed)
        self.simulation._change(moment.mechanism.copy(), moment.q, moment.v, what, t)

    def reset(self) -> None:
        """The start: conditions are watched anew."""
        moment, t = self.start
        self.restore(moment, "reset", t)
        for watch, holds, active in self.armed:
            watch.holds, watch.active = holds, active

    def span(self) -> tuple[float, float]:
        tape = self.simulation._tape
        return float(tape.past[0].t[0] if tape.past else tape.blocks[0][0][0]), self.t

    def acting(self, mechanism: Mechanism, q, v) -> dict:
        """All that acts at this moment, as arguments of `bk.dynamics`."""
        sim = self.simulation
        return {"tau": sim.torque(sim.t, q, v), **sim._acting.at(mechanism, sim.t, q, v)}


def segment_at(trajectory: Trajectory, t: float) -> Segment:
    return [trajectory.segments[0], *(s for s in trajectory.segments if s.t[0] <= t)][-1]


def state_at(trajectory: Trajectory, t: float):
    """(mechanism, q, v) at any time: in a gap of the recorded motion, and beyond its ends, the nearest before."""
    segment = segment_at(trajectory, t)
    return segment.mechanism, *segment.at(min(max(t, float(segment.t[0])), float(segment.t[-1])))


class Playback:
    """A recording as the stage sees it."""

    live = False

    def __init__(self, trajectory: Trajectory):
        if not trajectory.segments:
            raise ShapeError("this trajectory is empty: there is nothing to show")
        self.trajectory = trajectory
        self.t = self.span()[0]

    def span(self) -> tuple[float, float]:
        return float(self.trajectory.segments[0].t[0]), float(self.trajectory.segments[-1].t[-1])

    @property
    def mechanism(self) -> Mechanism:
        return state_at(self.trajectory, self.t)[0]

    @property
    def state(self):
        return state_at(self.trajectory, self.t)[1:]

    def advance(self, seconds: float) -> bool:
        end = self.span()[1]
        self.t = min(self.t + seconds, end)
        return self.t < end

    def reset(self) -> None:
        self.t = self.span()[0]


class Stage:
    """A viewer that is open: `url` says where, `close()` ends it; in a notebook it shows itself."""

    def __init__(self, what: Simulation | Trajectory | Mechanism, *, host: str = "127.0.0.1", port: int | None = None,
                 title: str | None = None, playing: bool = True):
        from bunraku.view import viser_adapter as adapter

        if isinstance(what, Mechanism):
            what = Simulation(what)
        if not isinstance(what, (Simulation, Trajectory)):
            raise ShapeError(f"view shows a Simulation, a Trajectory or a Mechanism, not {type(what).__name__}")
        self.source: Live | Playback = Live(what) if isinstance(what, Simulation) else Playback(what)
        mechanism = self.source.mechanism
        self._solids = solids(mechanism)
        self._names = list(mechanism.link_names)
        self._rows = {name: k for k, name in enumerate([*self._names, GROUND])}  # the ground is the last row of poses
        self._solids_of: dict[str, list[Solid]] = {}
        for solid in self._solids:
            self._solids_of.setdefault(solid.link, []).append(solid)
        self._groups = _alike(self._solids)
        self._tones = [np.array([_bytes(s.colour) for s in group], np.uint8) for group in self._groups]
        self._requests: SimpleQueue = SimpleQueue()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self.playing, self.speed = playing, 1.0
        self.mode, self.joint = PULL, "Spherical"
        self.shown = {LOOPS: True, FORCES: False, **({WORKERS: False} if self.source.live else {}),
                      **({CONTACTS: False} if mechanism.may_touch() else {})}
        self.frames = 0                                # shown so far
        self._share = 1.0                              # of a slice, if the simulation is slower than its clock
        self._pace = 0.0                               # simulated seconds per second
        self._at: float | None = None                  # time at which the recording is looked at
        self._record: Trajectory | None = None
        self._judged: tuple[Trajectory | None, str] = (None, "")  # a recording, and why its forces are not known
        self._grip: tuple[int, str, np.ndarray] | None = None  # client, link, point in its frame
        self._first: str | None = None                 # of two links to connect
        self._done: deque = deque(maxlen=UNDONE)
        self._message, self._dirty, self._told = "", True, -math.inf
        self._drawn: Mechanism | None = None           # whose marks are shown
        self._curves: deque = deque(maxlen=KEPT)
        self._steps = (self.source.t, 0)
        self._failure: BaseException | None = None
        self._began = 0.0                              # when the present slice did [s]
        rotations, self._positions = self._poses()
        self._rotations = rotations
        self.title = title or mechanism.name
        texts = adapter.Texts(self.title, (PULL, CONNECT, CUT), tuple(JOINTS), self.shown, self.source.live)
        batches = [adapter.Batch(group[0].vertices, group[0].faces, tones, group[0].colour[3],
                                 np.array([self._rows[s.link] for s in group]))
                   for group, tones in zip(self._groups, self._tones, strict=True)]
        self.guides = self._find_guides()
        figure = Figure(mechanism)
        self._size, self._fixtures = figure.size, figure.fixtures
        look = adapter.Look(*_look(figure, self._solids, self._rows, rotations, self._positions))
        self._reach = look.size
        open_ = lambda at: adapter.Screen(batches, look, texts, self.ask, host, at, tuple(self.guides))  # noqa: E731
        try:
            self.screen = open_(PORT if port is None else port)
        except ViewerError:
            if port is not None:
                raise
            self.screen = open_(0)  # no port was asked for: any will do
        self.url = self.screen.url
        for name, guide in self.guides.items():
            self.screen.guide(name, guide.q[:3], guide.q[3:])
        if isinstance(self.source, Playback):
            self._plot_recording()
        self._draw()

    # -- ask, from any thread ----------------------------------------------------------------------------------------

    def ask(self, name: str, *arguments) -> None:
        """Queue a request; the thread that owns the simulation answers it before its next slice."""
        if self._requests.qsize() < WAITING:
            self._requests.put((name, arguments))

    def start(self) -> Stage:
        """Go on in a thread of its own, which owns the simulation until `close`."""
        self._thread = threading.Thread(target=self._quietly, name="bunraku view", daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        """End the viewer; the simulation stays as it is now."""
        self._closing.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
            self._thread = None
        self.screen.close()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return (f'<iframe src="{self.url}" width="100%" height="560" style="border:none" '
                'allow="fullscreen"></iframe>')

    def __repr__(self):
        return f"viewer of {self.title} at {self.url}"

    # -- go on ---------------------------------------------------------------------------------------------------------

    def _quietly(self):
        try:
            self.run()
        except BaseException as error:  # told by close(), where somebody is there to read it
            self._failure = error
            self._say(f"stopped: {error}")
            self._tell()

    def run(self) -> None:
        """Answer, simulate and show until `close`, in the thread that calls."""
        simulation = self.source.simulation if isinstance(self.source, Live) else None
        progress = simulation.progress if simulation else None
        if simulation:
            simulation.progress = False
            simulation._halted = lambda: self._closing.is_set() or time.perf_counter() - self._began > PATIENCE
        try:
            while not self._closing.is_set():
                begin = time.perf_counter()
                if self.screen.watched or self.frames > 1:
                    self.turn()
                else:  # what moves waits until somebody is there to see it
                    self._answer()
                self._closing.wait(max(0.0, FRAME - (time.perf_counter() - begin)))
        finally:
            if simulation:
                simulation.progress, simulation._halted = progress, None

    def turn(self) -> None:
        """Requests, a slice of the simulation, a frame."""
        begin = time.perf_counter()
        self._answer()
        if self.playing:
            self._slice(FRAME * self.speed * self._share)
            wall = time.perf_counter() - begin
            self._share = max(self._share / 2, 1 / 64) if wall > 2 * FRAME else min(1.25 * self._share, 1.0)
            self._pace += 0.05 * (FRAME * self.speed * self._share / max(wall, FRAME) - self._pace)
        if self._dirty and self.screen.watched:
            self._draw()
        if time.perf_counter() - self._told > TELL:
            self._tell()

    def _slice(self, seconds: float) -> None:
        self._began = time.perf_counter()
        try:
            more = self.source.advance(seconds)
        except BunrakuError as error:
            more = False
            self._say(f"stopped at {self.source.t:.3f} s: {error}")
        self.playing, self._dirty, self._record = more, True, None

    def _answer(self) -> None:
        for _ in range(WAITING):
            try:
                name, arguments = self._requests.get_nowait()
            except Empty:
                return
            try:
                getattr(self, f"_on_{name}")(*arguments)
            except BunrakuError as error:
                self._say(str(error))
            except (TypeError, ValueError, LookupError, OverflowError):  # nothing that our page would send
                self._say(f"a request that makes no sense was left out: {name}")
            self._dirty, self._told = True, -math.inf

    # -- show ----------------------------------------------------------------------------------------------------------

    def _shown_state(self):
        if self._at is not None:
            self._record = self._record or self.source.trajectory
            return state_at(self._record, self._at)
        return self.source.mechanism, *self.source.state

    def _poses(self, mechanism=None, q=None):
        if mechanism is None:
            mechanism, q = self.source.mechanism, self.source.state[0]
        links, _ = observation(mechanism.plan(), q)
        rotations = np.concatenate([links[:, :9].reshape(-1, 3, 3), np.eye(3)[None]])
        return rotations, np.vstack([links[:, 9:12], np.zeros(3)])

    def _draw(self) -> None:
        mechanism, q, v = self._shown_state()
        self._rotations, self._positions = self._poses(mechanism, q)
        self.screen.show(quaternions(self._rotations), self._positions.astype(np.float32))
        self._draw_marks(mechanism)
        if self.frames % 3 == 0:
            self._draw_forces(mechanism, q, v)
        self.frames += 1
        self._dirty = False

    def _draw_marks(self, mechanism: Mechanism) -> None:
        """Marks: joints while one can be cut, connections if they are shown."""
        changed = mechanism is not self._drawn
        if changed:
            self._drawn = mechanism
            self._connections = list(mechanism.connections.values()) if self.shown[LOOPS] or self.mode == CUT else []
            self._joints = [] if self.mode != CUT else [k for k, link in enumerate(mechanism.links)
                                                        if link.parent >= 0 or not isinstance(link.joint, Free)]
            self.marks = [c.name for c in self._connections] + [mechanism.links[k].joint_name for k in self._joints]
            sites = [(c.link_a, c.position_a, c.link_b, c.position_b) for c in self._connections]
            sites += [(mechanism.links[k].parent, mechanism.links[k].position, k, np.zeros(3)) for k in self._joints]
            self._radii = np.array([self._radius(*site) for site in sites])
            if not self.marks:
                self.screen.mark(np.zeros((0, 3)))
        if self.marks:
            at = [c.position_b if c.link_b < 0 else self._positions[c.link_b] + self._rotations[c.link_b] @ c.position_b
                  for c in self._connections]
            points = np.concatenate([np.reshape(at, (-1, 3)), self._positions[self._joints]]).astype(np.float32)
            tones = np.array([_bytes(rgba(OTHERS[0]))] * len(at) + [_bytes(rgba(CHOSEN))] * len(self._joints), np.uint8)
            self.screen.mark(points, *((tones, self._radii) if changed else ()))
            self._points = points

    def _radius(self, a: int, place_a, b: int, place_b) -> float:
        """Of a mark, so that it stands out from the links around it."""
        near = [float(np.linalg.norm(s.vertices - place, axis=1).min())
                for k, place in ((a, place_a), (b, place_b)) if k >= 0
                for s in self._solids_of.get(self._names[k], ())]
        return float(np.clip(1.35 * min(near, default=0.0), 0.02 * self._reach, 0.05 * self._reach))

    def _draw_forces(self, mechanism: Mechanism, q, v) -> None:
        """Arrows of joints and contacts."""
        for name, draw in ((FORCES, lambda: self.screen.arrows(self._forces(mechanism, q, v))),
                           (CONTACTS, lambda: self.screen.contacts(*self._contact_arrows(mechanism)))):
            if self.shown.get(name):
                try:
                    draw()
                except ContactError:  # at this moment
                    self._hide(name)
                except BunrakuError as error:
                    self._hide(name)
                    self._say(f"{name}: {error}")

    def _hide(self, name: str) -> None:
        if name == FORCES:
            self.screen.arrows(np.zeros((0, 2, 3)))
        elif name == CONTACTS:
            self.screen.contacts(np.zeros((0, 2, 3)), np.zeros((0, 2, 3)))

    def _contact_arrows(self, mechanism: Mechanism) -> tuple[np.ndarray, np.ndarray]:
        """(n, 2, 3) each: arrows of contacts that stick, and of those that slide."""
        found: list[Arrow] = []
        if mechanism.may_touch() and isinstance(self.source, Live) and self._at is None:
            found = arrows(self.source.simulation.contacts)
        elif mechanism.may_touch():
            record = self._record = self._record or self.source.trajectory
            if self._judged[0] is not record:
                self._judged = (record, _why_unknown(record))
            if self._judged[1]:
                raise ShapeError(self._judged[1])
            t = self.source.t if self._at is None else self._at
            found = arrows(contacts_at(segment_at(record, t), t))
        drawn = [(a.point, a.point + vector(a.force, mechanism, self._size, self._fixtures), a.sliding) for a in found]
        long = [(tail, tip, slides) for tail, tip, slides in drawn if (tail != tip).any()]
        sticking, sliding = (np.array([(a, b) for a, b, slides in long if slides == which]).reshape(-1, 2, 3)
                             for which in (False, True))
        return sticking, sliding

    def _forces(self, mechanism: Mechanism, q, v) -> np.ndarray:
        """Arrows of the forces on the child links of joints and connections, of a length by the whole weight."""
        acting = {}
        if isinstance(self.source, Live) and self._at is None:
            touching = self.source.simulation.contacts if mechanism.may_touch() else None
            acting = {**self.source.acting(mechanism, q, v), "contacts": touching}
        found = dynamics(mechanism, q, v, **acting).forces
        size = 0.4 * self._reach / (9.81 * max(mechanism.mass, 1e-9))
        pushes = []
        for k, link in enumerate(mechanism.links):
            pushes.append((self._positions[k], self._rotations[k] @ found[link.joint_name][:3]))
        for name, c in mechanism.connections.items():
            rotation, position = ((np.eye(3), np.zeros(3)) if c.link_b < 0
                                  else (self._rotations[c.link_b], self._positions[c.link_b]))
            pushes.append((position + rotation @ c.position_b, rotation @ c.rotation_b @ found[name][:3]))
        points = np.array([(at, at + size * force) for at, force in pushes])
        long = np.linalg.norm(points[:, 1] - points[:, 0], axis=1)
        return points[long > 0.01 * self._reach]

    def _colour(self) -> None:
        """Colours of all links: by side, or by worker; the chosen one stands out."""
        tones = [given.copy() for given in self._tones]
        workers = self._workers() if self.shown.get(WORKERS) else {}
        palette = [_bytes(rgba(c)) for c in (*OTHERS, *TONES.values())]
        for group, colours in zip(self._groups, tones, strict=True):
            for k, solid in enumerate(group):
                if solid.link in workers:
                    colours[k] = palette[workers[solid.link] % len(palette)]
                if solid.link == self._first:
                    colours[k] = _bytes(rgba(CHOSEN))
        self.screen.colour(tones)

    def _workers(self) -> dict[str, int]:
        """{link: its worker}, of the simulation's own schedule or else of one for two workers."""
        assert isinstance(self.source, Live)
        used = self.source.simulation.schedule or schedule(self.source.mechanism, workers=2, exactly=True)
        self._say(f"schedule: {len(used.chunks)} chunks, {used.workers} workers"
                  f"{'' if self.source.simulation.schedule else ' (as it would be; this simulation is not cut)'}")
        return {link: worker for links, worker in zip(used.chunks, used.chunk_workers, strict=True) for link in links}

    def _say(self, text: str) -> None:
        self._message, self._told = text, -math.inf

    def _tell(self) -> None:
        """Texts, controls and plots: a few times a second."""
        self._told = time.perf_counter()
        t = self.source.t if self._at is None else self._at
        pace = (f" · {self._pace:.2f} of real time" if self.playing else
                " · paused" if self._at is None else " · recorded")
        text = self._message or (HINTS[self.mode] if self.source.live else "")
        self.screen.tell(f"**t = {t:.3f} s**{pace}\n\n{_plain(text)}", self.playing, t,
                         self.source.span(), self._at is not None)
        if isinstance(self.source, Live) and self.playing:
            self._plot(self.source.simulation)

    def _plot(self, sim: Simulation) -> None:
        kinetic, potential = sim.mechanism.energy(sim.q, sim.v)
        gap = np.abs(constraints(sim.mechanism, sim.q).gap).max(initial=0.0)
        before, steps = self._steps
        step = 1e3 * (sim.t - before) / max(sim.stats.steps - steps, 1)
        self._steps = (sim.t, sim.stats.steps)
        if self._curves and sim.t < self._curves[-1][0]:
            self._curves.clear()
        self._curves.append((sim.t, kinetic, potential, kinetic + potential, gap, step,
                             float(sim._memory.tally[m.ORDER])))
        t, kinetic, potential, total, gap, step, order = np.array(self._curves).T
        self.screen.plot("energy [J]", t, kinetic, potential, total)
        self.screen.plot(LOOP_ERROR, t, np.log10(np.maximum(gap, 1e-18)))
        self.screen.plot("step [ms]", t, step)
        self.screen.plot("order", t, order)

    def _plot_recording(self) -> None:
        t, kinetic, potential = self.source.trajectory.energy()
        some = np.unique(np.linspace(0, len(t) - 1, KEPT).astype(int))
        self.screen.plot("energy [J]", t[some], kinetic[some], potential[some], (kinetic + potential)[some])

    # -- requests: play ------------------------------------------------------------------------------------------------

    def _on_play(self):
        self.playing, self._at = not self.playing, None
        if self.playing and isinstance(self.source, Playback) and self.source.t >= self.source.span()[1]:
            self.source.reset()
        self._message = ""

    def _on_step(self):
        self.playing, self._at = False, None
        self._slice(FRAME * self.speed)
        self.playing = False

    def _on_reset(self):
        self._at, self._record, self._first = None, None, None
        self._let_go()
        self.source.reset()
        self._done.clear()
        self._steps = (self.source.t, self._steps[1])
        self._say("")

    def _on_speed(self, value):
        if math.isfinite(value):
            self.speed = min(max(float(value), 0.0), 16.0)

    def _on_scrub(self, value):
        if not math.isfinite(value):
            return
        self.playing = False
        if isinstance(self.source, Playback):
            first, last = self.source.span()
            self.source.t = min(max(float(value), first), last)
        else:
            self._at = float(value)

    def _on_show(self, name, on):
        if name in self.shown:
            self.shown[name] = on
        self._drawn = None
        if not on:
            self._hide(name)
        if name in (FORCES, CONTACTS):
            self._fade()
        if name == WORKERS:
            self._colour()

    # -- requests: hands -----------------------------------------------------------------------------------------------

    def _on_mode(self, value):
        self.mode, self._first, self._drawn = (value if value in HINTS else PULL), None, None
        self._say("")
        self._colour()
        self._fade()

    def _fade(self):
        """Arrows, and marks of joints that can be cut, are inside the links."""
        self.screen.fade(self.shown[FORCES] or self.shown.get(CONTACTS, False) or self.mode == CUT)

    def _on_joint(self, value):
        if value in JOINTS:
            self.joint = value

    def _solid(self, batch: int, instance: int) -> Solid | None:
        """The solid that a request names; None if there is none: requests come from anywhere."""
        if 0 <= batch < len(self._groups) and 0 <= instance < len(self._groups[batch]):
            return self._groups[batch][instance]
        return None

    def _on_grab(self, client, batch, instance, point):
        solid = self._solid(batch, instance)
        if solid is None or solid.link == GROUND or self._grip is not None or not isinstance(self.source, Live):
            return
        k = self._rows[solid.link]
        self._grip = (client, solid.link, self._rotations[k].T @ (np.asarray(point, float) - self._positions[k]))
        if not self.playing:
            self._say("Paused: press Play to pull.")

    def _on_drag(self, client, target):
        target = np.asarray(target, float)
        if self._grip is not None and self._grip[0] == client and np.isfinite(target).all():
            _, link, point = self._grip
            self._hands().pull(link, point, target)

    def _on_drop(self, client, _=None):
        if self._grip is not None and self._grip[0] == client:
            self._let_go()

    def _let_go(self):
        if self._grip is not None:
            _, link, _ = self._grip
            self._grip, hands = None, self._hands()
            if link in hands._acting.pulls:
                hands.release(link)

    def _hands(self):
        assert isinstance(self.source, Live)
        return self.source.simulation

    def _on_click(self, batch, instance, origin, direction):
        solid = self._solid(batch, instance)
        if solid is None or not isinstance(self.source, Live) or self._at is not None:
            return
        if self.mode == CUT:  # a mark may be hidden in the link
            away = self._points - np.asarray(origin, float) if self.marks else np.zeros((0, 3))
            miss = np.linalg.norm(np.cross(away, np.asarray(direction, float)), axis=1)
            nearest = int(miss.argmin()) if len(miss) else -1
            if nearest >= 0 and miss[nearest] < 1.3 * self._radii[nearest]:
                self._on_mark(nearest)
            else:
                self._say(HINTS[CUT])
        elif self.mode == PULL:
            self._say(f"{solid.link}: drag it to pull it")
        elif self._first is None:
            self._first = solid.link
            self._say(f"{solid.link}: now click the other link, or this one again to hold it to the ground")
            self._colour()
        else:
            a, self._first = self._first, None
            self._colour()
            self._connect("ground" if a == solid.link else a, solid, origin, direction)

    def _connect(self, a: str, solid: Solid, origin, direction):
        """Connect two links where they are; the joint is at the point that was clicked, its axes are the world's."""
        k = self._rows[solid.link]
        rotation, position = self._rotations[k], self._positions[k]
        eye, ray = np.asarray(origin, float) - position, np.asarray(direction, float)
        point = hit(solid, rotation.T @ eye, rotation.T @ ray)
        made = self._change(lambda sim: sim.connect(a, solid.link, JOINTS[self.joint], position_b=point,
                                                    rotation_b=rotation.T))
        self._say(f"{a} and {solid.link} are connected: {made.name}, {self.joint}")

    def _on_mark(self, index):
        if self.mode != CUT:
            if 0 <= index < len(self.marks):
                self._say(f"{self.marks[index]}: a connection; choose “{CUT}” to cut it")
        elif 0 <= index < len(self.marks):
            name = self.marks[index]
            self._change(lambda sim: sim.cut(name))
            self._say(f"{name} is cut")

    def _change(self, do):
        """A change of structure that can be undone."""
        assert isinstance(self.source, Live)
        before = self.source.moment()
        result = do(self.source.simulation)
        self._done.append(before)
        self._record = None
        return result

    def _on_undo(self):
        if not self._done:
            self._say("There is nothing to undo.")
            return
        self._let_go()
        assert isinstance(self.source, Live)
        self.source.restore(self._done[-1], "undo")
        self._done.pop()
        self._say("undone")

    # -- guides --------------------------------------------------------------------------------------------------------

    def _find_guides(self) -> dict:
        """{joint: guide} of joints that are moved by hand, in six directions."""
        prescribed = self.source.simulation._acting.prescribed if isinstance(self.source, Live) else {}
        return {name: guide for name, guide in prescribed.items()
                if isinstance(guide, Guide) and isinstance(self.source.mechanism.joint(name), Free)}

    def _on_guide(self, name, position, wxyz):
        if name in self.guides:
            target = np.array([*position, *wxyz], float)
            if np.isfinite(target).all() and np.linalg.norm(target[3:]) > 0.5:
                self.guides[name].to(target, 0.3)


def _why_unknown(trajectory: Trajectory) -> str:
    try:
        refuse_unknown_forces(trajectory)
    except ShapeError as error:
        return str(error)
    return ""


# -- geometry ----------------------------------------------------------------------------------------------------------


def quaternions(rotations: np.ndarray) -> np.ndarray:
    """(n, 4) of float32, w x y z, of matrices (n, 3, 3)."""
    R = rotations
    a, b, c = R[:, 0, 0], R[:, 1, 1], R[:, 2, 2]
    four = np.empty((len(R), 4, 4))  # 4 q q^T: its row with the largest diagonal is a multiple of q
    four[:, 0, 0], four[:, 1, 1] = 1 + a + b + c, 1 + a - b - c
    four[:, 2, 2], four[:, 3, 3] = 1 - a + b - c, 1 - a - b + c
    skew, even = R - R.transpose(0, 2, 1), R + R.transpose(0, 2, 1)
    four[:, 0, 1] = four[:, 1, 0] = skew[:, 2, 1]
    four[:, 0, 2] = four[:, 2, 0] = skew[:, 0, 2]
    four[:, 0, 3] = four[:, 3, 0] = skew[:, 1, 0]
    four[:, 1, 2] = four[:, 2, 1] = even[:, 0, 1]
    four[:, 1, 3] = four[:, 3, 1] = even[:, 0, 2]
    four[:, 2, 3] = four[:, 3, 2] = even[:, 1, 2]
    rows = np.arange(len(R))
    largest = np.diagonal(four, axis1=1, axis2=2).argmax(axis=1)
    q = four[rows, largest]
    return (q / np.sqrt(np.einsum("ij,ij->i", q, q))[:, None]).astype(np.float32)


def hit(solid: Solid, origin: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Where a ray meets a solid first, in the link's frame; its middle if the ray has just missed it."""
    a, b, c = solid.vertices[solid.faces].transpose(1, 0, 2)
    ab, ac = b - a, c - a
    across = np.cross(direction, ac)
    det = np.einsum("ij,ij->i", ab, across)
    with np.errstate(divide="ignore", invalid="ignore"):
        away = origin - a
        u = np.einsum("ij,ij->i", away, across) / det
        other = np.cross(away, ab)
        w = other @ direction / det
        far = np.einsum("ij,ij->i", other, ac) / det
        met = (u >= 0) & (w >= 0) & (u + w <= 1) & (far > 0) & (det != 0)
    if not met.any():
        return 0.5 * (solid.vertices.min(axis=0) + solid.vertices.max(axis=0))
    return origin + far[met].min() * direction


def _alike(found: list[Solid]) -> list[list[Solid]]:
    """Solids of equal shape and opacity."""
    groups: dict[tuple, list[Solid]] = {}
    for solid in found:
        key = (solid.vertices.shape, np.round(solid.vertices, 6).tobytes(), solid.faces.tobytes(), solid.colour[3])
        groups.setdefault(key, []).append(solid)
    return list(groups.values())


def _look(figure: Figure, found: list[Solid], rows, rotations, positions):
    """Centre, direction, radius and floor of the first view."""
    corners = [positions[rows[s.link]] + s.vertices[[*s.vertices.argmin(axis=0), *s.vertices.argmax(axis=0)]]
               @ rotations[rows[s.link]].T for s in found] or [np.zeros((1, 3))]
    moving = [c for c, s in zip(corners, found, strict=False) if s.side != FIXTURE] or corners
    points = np.concatenate(moving)
    low, high = points.min(axis=0), points.max(axis=0)
    centre, floor = 0.5 * (low + high), float(low[2])
    size = 0.5 * float(np.linalg.norm(high - low))
    if figure.anchored:  # what hangs can swing
        anchor = np.mean(figure.anchors, axis=0)
        reach = float(np.linalg.norm(points - anchor, axis=1).max())
        floor = min(floor, float(anchor[2]) - reach)
        centre, size = anchor - (0.0, 0.0, 0.35 * reach), max(size, 0.85 * reach)
    level = floor_height(figure.mechanism)
    return (centre, Camera(azimuth=-35.0, elevation=12.0).away, max(size, 1e-3),
            floor - 0.02 * size if level is None else level)


def _bytes(colour) -> tuple[int, int, int]:
    red, green, blue = (round(255 * float(c)) for c in colour[:3])
    return red, green, blue


def _plain(text: str) -> str:
    """Text that Markdown shows as it is: names come from files."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(text.split()))


# -- open --------------------------------------------------------------------------------------------------------------


def view(what: Simulation | Trajectory | Mechanism, *, host: str = "127.0.0.1", port: int | None = None,
         block: bool | None = None, browser: bool | None = None, title: str | None = None,
         playing: bool = True) -> Stage:
    """Show a simulation in a browser, to watch it, pull at it, connect and cut; or a recording, to look at.

    host      the address to listen at. On another than loopback the page can be opened with the token in its url only
    port      8080 if it is free, else any other
    block     whether to return only when Ctrl-C is pressed; None: yes, but in notebooks. While it is open the viewer
              owns the simulation; after `close()` it is yours again, at the time and with the structure it has then
    browser   whether to open a browser; None: where there is a display, but not in notebooks
    playing   whether it moves at once

    In a notebook the result, if it is the last line of a cell, is the page itself.
    """
    notebook = "ipykernel" in sys.modules
    stage = Stage(what, host=host, port=port, title=title, playing=playing)
    if browser or (browser is None and not notebook and _display()):
        webbrowser.open(stage.url)
    if block is None:
        block = not notebook
    if not block:
        return stage.start()
    try:
        print(f"bunraku: {stage.title} at {stage.url} (Ctrl-C ends)", file=sys.stderr, flush=True)
        stage.run()
    except KeyboardInterrupt:
        pass
    finally:
        stage.close()
    return stage


def _display() -> bool:
    """Whether a browser has somewhere to appear."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
