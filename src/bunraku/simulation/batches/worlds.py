"""Worlds: copies of a mechanism that stay in compiled memory between steps, for learning and for planning.

`rollout` in pieces: the same tiles of states, advanced by some steps at a time.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from bunraku.checks import as_count, as_finite, as_floats, as_size
from bunraku.entries.pool import how_many
from bunraku.errors import ModelError, ShapeError, SimulationError, SimulationWarning
from bunraku.integrate import solver_memory as m
from bunraku.mechanism import Joint, Mechanism
from bunraku.runs.actuation import Actuation
from bunraku.simulation.actuating import given_params
from bunraku.simulation.batches.copies import NAMED, Snapshot, alike, form, listed, numbers_of
from bunraku.simulation.batches.given_torques import GivenTorques
from bunraku.simulation.batches.group import CANNOT_START, Group
from bunraku.simulation.batches.observing import Observer
from bunraku.simulation.batches.own_connections import connect, cut
from bunraku.simulation.batches.singles import Singles
from bunraku.simulation.batches.streams import Streams
from bunraku.simulation.batches.tiles import Tiles
from bunraku.simulation.closing import neutral_start
from bunraku.simulation.settings import WITH_STEP, Settings
from bunraku.tolerances import ROUGH_ENOUGH

STOPPED = -2      # a status: by `Worlds.stop`
FOREVER = np.array([np.inf])
WORDS = {STOPPED: "stopped by w.stop"}


class Worlds:
    """n copies of a mechanism, which move by `step`.

    mechanism   or several, k, that differ only in numbers: masses, lengths, friction, gravity, ... The first n/k copies
                are of the first, and so on; n/k must be a multiple of 8
    step        [s] of the solver, "symplectic_euler" or (without contact) "rk4"
    substeps    steps of the solver in a `step` of the worlds: torques are held during these
    q, v        start of all copies, (nq,) and (nv,), or of each, (n, nq) and (n, nv); by default as of `Simulation`
    actuation   made by @bk.actuation; it finds the torques of `step` in tau and may change or replace them
    params      of the actuation, (k,) or (n, k); `w.params` has a row for each copy, which may be written to
    seed        of `random`
    workers     threads; by default one for each core. They do not change any result
    warn        whether a SimulationWarning names copies that stop
    baumgarte, max_contacts     as for `Simulation`
    own_connections     whether `connect` and `cut` may change the connections of single copies; always True if the
                        mechanism has connections. Copies are then computed one after the other
    observe     a function (t, q, v, params, out) or (t, q, v, params, out, model) that writes `observation_size`
                numbers into out; it is compiled, and called by `w.observe()`

    Trees take W copies at a time in lanes of the processor; mechanisms with connections one copy after the other.
    The motion of a copy depends on no other copy, and is that of `bk.rollout`. A copy that cannot go on stops where it
    is, with a SimulationWarning; the others go on, and `reset` or `restore` starts it again.
    """

    def __init__(self, mechanism: Mechanism | Sequence[Mechanism], n: int, step: float = 0.002, substeps: int = 1, *,
                 q=None, v=None, solver: str = "symplectic_euler", actuation: Actuation | None = None, params=None,
                 seed: int = 0, baumgarte: float | None = None, max_contacts: int | None = None,
                 workers: int | None = None, warn: bool = True, own_connections: bool = False,
                 observe=None, observation_size: int = 0):
        self.warn = warn
        self.n = as_count("n, the number of copies,", n)
        mechanisms = alike(list(mechanism) if isinstance(mechanism, Iterable) else [mechanism], self.n)
        mechanism = mechanisms[0]
        if actuation is not None and not isinstance(actuation, Actuation):
            raise ModelError("the actuation of Worlds must be made by @bk.actuation; torques of a function in Python "
                             "are given to w.step(tau), for all copies at once")
        self.reseed(seed)
        if solver not in WITH_STEP:
            raise ModelError(f"Worlds take fixed steps ({', '.join(map(repr, WITH_STEP))}), not {solver!r}; bk.rollout "
                             "takes every solver")
        settings = Settings.of(solver, 1e-6, 1e-8, step=step, baumgarte=baumgarte, max_contacts=max_contacts)
        self.start = (self._rows("q", neutral_start(mechanism) if q is None else q, mechanism.nq),
                      self._rows("v", np.zeros(mechanism.nv) if v is None else v, mechanism.nv))
        params = given_params(actuation, params)
        own = as_finite("params", np.zeros(0) if params is None else params, infinite=True)
        own = self._rows("params", own, own.shape[-1] if own.ndim else 1)
        self._group = group = Group(mechanisms, *self.start, own, FOREVER, settings, actuation)
        group.substeps, group.origin = as_count("substeps", substeps), np.zeros(self.n)
        self._refuse_starts(np.arange(self.n))
        self.workers = how_many(workers, self.n)
        lanes = group.plan.loops is None and group.mechanism.contact_pairs().complete and not own_connections
        if not lanes and len(mechanisms) > 1:
            raise ModelError("several mechanisms need trees with few shapes, which are computed in lanes; make a "
                             "Worlds for each of these")
        self._tiles: Tiles | Singles = Tiles(group) if lanes else Singles(group, own_connections)
        self._torques, self._changing = GivenTorques(group), own_connections or group.plan.loops is not None
        self._busy = threading.Lock()
        self._observer = Observer(group, observe, as_count("observation_size", observation_size)) if observe else None
        self._known = np.zeros(self.n, bool)   # failures that a warning has named
        self._rough, self._reasons = 0.0, dict[int, str]()
        self._q, self._v = _read_only(group.y[:, :group.nq]), _read_only(group.y[:, group.nq:])

    def __repr__(self):
        failed = int((self._group.status != 0).sum())
        return (f"Worlds of {self.mechanism.name}: {self.n} copies, {failed} of them stopped; steps of "
                f"{self.substeps} x {self._group.settings.step:g} s, {self.bytes_each / 1000:.1f} kB a copy")

    def __reduce__(self):
        raise SimulationError("Worlds cannot be copied or sent to another process, but w.snapshot() can: restore it in "
                              "worlds made there")

    # -- ask -----------------------------------------------------------------------------------------------------------

    @property
    def mechanism(self) -> Mechanism:
        return self._group.mechanism

    @property
    def q(self) -> np.ndarray:
        """(n, nq) coordinates: a read-only view of the memory, always of the present state."""
        return self._q

    @property
    def v(self) -> np.ndarray:
        """(n, nv) velocities: a read-only view, as q."""
        return self._v

    @property
    def t(self) -> np.ndarray:
        """(n,) [s] time of each copy since its reset."""
        return self._group.steps * self._group.settings.step

    @property
    def substeps(self) -> int:
        return self._group.substeps

    @property
    def params(self) -> np.ndarray:
        """(n, k) parameters of the actuation, to be written to."""
        return self._group.params

    @property
    def strength(self) -> np.ndarray | None:
        """(n, torques) factors of the torques that `step` is given, one number for each copy, or one for each of its
        torques; None for 1."""
        return self._torques.strength

    @strength.setter
    def strength(self, factors) -> None:
        self._torques.strengthen(factors)

    @property
    def running(self) -> np.ndarray:
        """(n,) which copies are moved by `step`."""
        return self._group.status == 0

    @property
    def failed(self) -> dict[int, str]:
        """Copies that could not go on, with the reasons."""
        bad = np.flatnonzero((self._group.status != 0) & (self._group.status != STOPPED))
        return {k: self._reason(k) for k in bad.tolist()}

    @property
    def bytes_each(self) -> float:
        """Memory of a copy."""
        group = self._group
        rows = group.y, group.params, self._torques.rows, group.status, group.steps, group.reached, group.origin
        return sum(x.nbytes for x in rows) / self.n + self._tiles.bytes_each

    def connected(self, name: str) -> np.ndarray:
        """(n,) which copies have a connection of this name."""
        here = np.full(self.n, name in self.mechanism.connections)
        for k, mechanism in self._group.structures.items():
            here[k] = name in mechanism.connections
        return here

    def mechanism_of(self, copy: int) -> Mechanism:
        """The mechanism of a copy, with its own numbers and connections."""
        return self._group.mechanism_of(int(numbers_of("copy", copy, self.n)[0]))

    def observe(self, out: np.ndarray | None = None) -> np.ndarray:
        """(n, observation_size) numbers that the function `observe` writes for the present state of each copy; if `out`
        is given, it is filled and returned."""
        if self._observer is None:
            raise SimulationError("these worlds have no function for it; make them by bk.Worlds(..., "
                                  "observe=function, observation_size=k)")
        with self._alone("observe"):
            array = self._observer.array(out)
            self._observer.fill(self.t, array, self.workers)
            return array

    # -- move ----------------------------------------------------------------------------------------------------------

    def step(self, tau=None, count: int | None = None) -> None:
        """Move all running copies by one step, or by `count`.

        tau     torques in the order of v, with those of the connections, if there are any, at the end or left out:
                (nv,) for all copies, (n, nv), or (n, T, nv) for T steps; none by default. Without T they are held for
                all `count` steps.
        """
        with self._alone("step"):
            group, tiles = self._group, self._tiles
            group.controls, steps = self._torques.of(tau, count)
            most, before = steps * group.substeps, group.steps.copy()
            np.multiply(before, group.settings.step, out=group.origin)
            try:
                tiles.advance(self.workers, most=most)
                if group.status.any():
                    self._make_room(most, before)
            finally:
                group.controls = self._torques.none
            if group.status.any():
                self._look_at_failures()
            if tiles.touches and self.warn:
                self._look_at_contact()

    def _make_room(self, most: int, before) -> None:
        """Steps of the copies of tiles that had no room for all their contacts: with more room, or each by itself."""
        group, more = self._group, isinstance(self._tiles, Tiles)
        while more and (full := np.flatnonzero((group.status == m.CONTACTS_FULL) & ~self._known)).size:
            more = self._tiles.more_places()
            taken = (group.steps - before)[full]
            for part in [full[taken == done] for done in np.unique(taken)] if more else full[:, None]:
                others, done = group.status.copy(), int(group.steps[part[0]] - before[part[0]])
                group.status[:] = STOPPED
                group.status[part] = 0
                np.multiply(group.steps, group.settings.step, out=group.origin)
                try:
                    self._tiles.advance(1, most=most, taken=done)
                finally:
                    others[part] = group.status[part]
                    group.status[:] = others

    # -- set -----------------------------------------------------------------------------------------------------------

    def reset(self, which=None, q=None, v=None, *, overlapping: bool = False) -> None:
        """Put copies at a start, at time 0: all, those of a mask (n,), or those with these numbers.

        q, v    one row for all of them, a row for each of them, or a row for each of the n copies; by default the start
                that the worlds were made with
        overlapping     whether shapes may overlap, which the next steps part; otherwise that is an error
        """
        with self._alone("reset"):
            copies = self._copies(which)
            q, v = (self._starts(name, given, own, copies)
                    for name, given, own in (("q", q, self.start[0]), ("v", v, self.start[1])))
            group = self._group
            before = group.y[copies].copy(), group.status[copies].copy()
            try:
                group.begin(copies, q, v, overlapping)
                self._refuse_starts(copies, q, v)
            except BaseException:
                group.y[copies], group.status[copies] = before
                raise
            group.steps[copies], group.reached[copies] = 0, 0.0
            self._begin_memory(copies)
            self._tiles.forget(copies)
            self._forget(copies)

    def _begin_memory(self, copies) -> None:
        """A controller with a memory in its parameters remembers nothing of what was before a reset."""
        own = self._group.function
        if getattr(own, "memory", False):
            for name, where in own.memories():
                self._group.params[copies, where] = own[name].ravel()

    def connect(self, which, link_a: str, link_b: str, joint: Joint | None = None, name: str | None = None, *,
                position_a=None, rotation_a=None, position_b=None, rotation_b=None, max_gap: float = 1e-6) -> None:
        """Close a loop in copies, as `Simulation.connect`: velocities jump, and links are held as they are now where no
        frame is given. A reset gives a copy the connections of the mechanism again; if anything fails nothing has
        changed."""
        with self._alone("connect"):
            singles, copies = self._own_connections("connect"), self._copies(which)
            running = copies[self._group.status[copies] == 0]
            connect(singles, running, link_a, link_b, joint, name, (position_a, rotation_a), (position_b, rotation_b),
                    as_size("max_gap [m, rad]", max_gap, ShapeError, infinite=True))

    def cut(self, which, name: str) -> None:
        """Remove a connection of copies: every link keeps its pose and velocity. If anything fails nothing has
        changed."""
        with self._alone("cut"):
            cut(self._own_connections("cut"), self._copies(which), name)

    def _own_connections(self, what: str) -> Singles:
        if not self._changing or not isinstance(self._tiles, Singles):
            raise SimulationError(f"{what}: copies of these worlds move together in lanes, so they have the same "
                                  "connections; make them by bk.Worlds(..., own_connections=True)")
        return self._tiles

    def stop(self, which) -> None:
        """Leave copies where they are until they are reset or restored."""
        with self._alone("stop"):
            copies = self._copies(which)
            self._group.status[copies] = np.where(self._group.status[copies] == 0, STOPPED, self._group.status[copies])

    def random(self, which=None, size: int = 1) -> np.ndarray:
        """(copies, size) numbers from [0, 1): of each copy the next ones of a stream of its own, so that they do not
        depend on when other copies draw."""
        return self._streams.uniform(self._copies(which), as_count("size", size))

    def reseed(self, seed: int) -> None:
        """Begin all streams of `random` anew, with another seed."""
        if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or not 0 <= seed < 1 << 64:
            raise ShapeError(f"seed must be a whole number from 0 to 2**64 - 1, not {seed!r}")
        self._streams = Streams(int(seed), self.n)

    def snapshot(self) -> Snapshot:
        """The present state of all copies, to go back to."""
        with self._alone("snapshot"):
            group = self._group
            return Snapshot(group.y.copy(), group.params.copy(), group.steps.copy(), group.status.copy(),
                            self._streams.drawn.copy(), self._tiles.known(), {k: self._reason(k) for k in self.failed},
                            self._form())

    def restore(self, snapshot: Snapshot, which=None, copies=None) -> None:
        """Put copies (all, those of a mask, or those with these numbers) where copies of a snapshot were.

        copies  numbers in the snapshot, one for all, or one for each; by default the same numbers as here. The snapshot
                may be of other worlds with the same mechanism.
        """
        with self._alone("restore"):
            group, here = self._group, self._copies(which)
            if not isinstance(snapshot, Snapshot):
                raise ShapeError(f"w.restore takes a snapshot, from w.snapshot(), not {snapshot!r:.60}")
            if snapshot.form != self._form() or snapshot.params.shape[1] != group.params.shape[1]:
                raise ShapeError("the snapshot is of another mechanism, of another number of params, or of worlds that "
                                 "differ in own_connections")
            there = here if copies is None else numbers_of("copies", copies, len(snapshot), unique=False)
            if len(there) == 1:
                there = np.repeat(there, len(here))
            if len(there) != len(here) or there.max(initial=-1) >= len(snapshot):
                raise ShapeError(f"{len(here)} copies here, {len(there)} of a snapshot of {len(snapshot)}: copies must "
                                 "name one of the snapshot's for each, or one for all")
            self._tiles.recall(here, snapshot.contacts, there)
            for own, kept in ((group.y, snapshot.y), (group.params, snapshot.params), (group.steps, snapshot.steps),
                              (group.status, snapshot.status)):
                own[here] = kept[there]
            self._streams.drawn[here] = snapshot.drawn[there]
            group.reached[here] = self.t[here]
            self._forget(here)
            for k, source in zip(here.tolist(), there.tolist(), strict=True):
                if source in snapshot.reasons:
                    self._reasons[k], self._known[k] = snapshot.reasons[source], True

    # -- inside --------------------------------------------------------------------------------------------------------

    @contextmanager
    def _alone(self, what: str) -> Iterator[None]:
        if not self._busy.acquire(blocking=False):
            raise SimulationError(f"{what}: another thread is working with these worlds; let it finish, or make a "
                                  "Worlds for each thread")
        try:
            yield
        finally:
            self._busy.release()

    def _form(self) -> tuple:
        return form(self.mechanism), isinstance(self._tiles, Singles)

    def _rows(self, what: str, given, width: int) -> np.ndarray:
        """(n, width)"""
        array = as_floats(what, given, width)
        if array.ndim == 2 and len(array) != self.n:
            raise ShapeError(f"{what} has {len(array)} rows; there are {self.n} copies")
        return np.ascontiguousarray(np.broadcast_to(array, (self.n, width))).copy()

    def _copies(self, which) -> np.ndarray:
        return np.arange(self.n) if which is None else numbers_of("which", which, self.n)

    def _starts(self, what: str, given, own, copies) -> np.ndarray:
        """A row for each of the copies."""
        if given is None:
            return own[copies]
        array = as_floats(what, given, own.shape[1])
        if array.ndim == 1:
            return np.repeat(array[None], len(copies), axis=0)
        if len(array) == len(copies):
            return array
        if len(array) == self.n:
            return array[copies]
        raise ShapeError(f"{what} has {len(array)} rows; it must have one for each of the {len(copies)} copies that "
                         f"are reset, or for each of all {self.n}")

    def _refuse_starts(self, copies, q=None, v=None) -> None:
        group = self._group
        bad = copies[group.status[copies] == CANNOT_START]
        if bad.size:
            if q is not None:
                group.given = dict(zip(copies.tolist(), q, strict=True))
            listed = "\n  ".join(f"copy {k}: {group.reason(k)}" for k in bad[:NAMED].tolist())
            more = f" (and {len(bad) - NAMED} more)" if len(bad) > NAMED else ""
            raise SimulationError(f"{len(bad)} of {len(copies)} copies have no start{more}\n  {listed}",
                                  states=bad.tolist())

    def _forget(self, copies) -> None:
        self._known[copies] = False
        for k in copies.tolist():
            self._reasons.pop(k, None)
            self._group.causes.pop(k, None)
            self._group.stops.pop(k, None)
            self._group.left_open.pop(k, None)

    def _reason(self, k: int) -> str:
        if k not in self._reasons:
            self._reasons[k] = self._group.reason(k)
        return self._reasons[k]

    def _look_at_failures(self) -> None:
        """Warn of copies that have just stopped."""
        group = self._group
        copies = np.flatnonzero((group.status != 0) & (group.status != STOPPED) & ~self._known)
        if not copies.size:
            return
        group.reached[copies] = self.t[copies]
        self._tiles.crowded("")
        self._known[copies] = True
        if not self.warn:
            return
        more = f" (and {len(copies) - 1} more: {listed(copies[1:])})" if len(copies) > 1 else ""
        warnings.warn(f"copy {copies[0]} stopped{more}: {self._reason(int(copies[0]))}. The others go on; w.failed has "
                      "all reasons, and w.reset starts copies again", SimulationWarning, stacklevel=3)

    def _look_at_contact(self) -> None:
        worst = self._tiles.residual.max()
        if worst > max(ROUGH_ENOUGH, 10.0 * self._rough):
            self._rough = float(worst)
            warnings.warn(f"a contact problem of copy {self._tiles.residual.argmax()} was solved roughly, with a "
                          f"residual of {worst:.1g} of its size; the next warning comes at ten times that",
                          SimulationWarning, stacklevel=3)


def _read_only(view: np.ndarray) -> np.ndarray:
    view.flags.writeable = False
    return view
