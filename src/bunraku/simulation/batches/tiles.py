"""States of a batch in lanes, in fixed steps by compiled code: for rollouts, from their start to their end, and for
worlds, some steps at a time.

`Tiles` owns what compiled code remembers of each state besides its motion: contact impulses, with which the next step
begins. Every worker takes the next piece of the batch when it has finished its last one. Compiled code returns
regularly, for progress bars and Ctrl-C.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from bunraku.contact.contact_memory import handles_of
from bunraku.contact.problem import contact_problem
from bunraku.contact.solid_pairs import solids_in_lanes
from bunraku.entries.pool import take_turns
from bunraku.errors import SimulationWarning
from bunraku.integrate import solver_memory as m
from bunraku.integrate.methods import FIXED_STEP
from bunraku.jit import prepare
from bunraku.runs.contact_lane_run import contact_steps_lanes
from bunraku.runs.lane_run import CLOCK, NEXT, TAKEN, TIME, fixed_steps_lanes
from bunraku.simulation.actuating import address_of
from bunraku.simulation.batches.group import Group, MeanTime
from bunraku.simulation.stretches import BODY_STEPS_PER_CALL
from bunraku.spatial.lanes import WIDTH
from bunraku.tolerances import LAST_STAGE, LAST_STEP, ROUGH_ENOUGH

TURNS_EACH = 4       # pieces per worker: machines are shared
ASIDE = -1           # status of states that are not computed now
ROOM_IN_LANES = 128  # contacts that states in the same lanes may have, all together; with a larger `max_contacts`, at
                     # first
ENDLESS = 1 << 62    # steps


class Tiles:
    """The states of a group in tiles of W; the result of one does not depend on those beside it.

    held      (B, 3 contacts + 1) impulses of the last step; the last column is 1 in states that are solved one by one
    residual  (B,) the largest of their contact problems
    places    contacts that the states of a tile may have, all together
    """

    def __init__(self, group: Group):
        self.group, settings, self.touches = group, group.settings, group.mechanism.needs_contact()
        count, mechanisms = len(group.y), group.mechanisms
        self.addresses = [address_of(actuation) for actuation in group.actuations]
        method = FIXED_STEP.get(settings.solver) if isinstance(settings.solver, str) else None
        self.stages = len(method.B) if method else 1
        self.residual = np.zeros(count)
        if not self.touches:
            self.entry, self.most, self.places, self.held = fixed_steps_lanes.load(), 0, 0, np.zeros((count, 0))
            scheme = (method.A, method.B, method.C) if method else (np.zeros((0, 0)), np.zeros(0), np.zeros(0))
            self.method = (*scheme, float(settings.step), LAST_STAGE if method else LAST_STEP)
            self.plans, self.steps = [one.plan() for one in mechanisms], 4 * BODY_STEPS_PER_CALL // group.plan.bodies
            return
        prepare((contact_steps_lanes, solids_in_lanes, contact_problem))
        self.entry, self.arrays = contact_steps_lanes, [one.contact_pairs().arrays for one in mechanisms]
        contacts, joints = len(self.arrays[0].contact_i), len(self.arrays[0].joint_i)
        self.most = min(contacts, max(ROOM_IN_LANES, settings.max_contacts or 0) + joints)
        self.places = min(self.most, ROOM_IN_LANES + joints)
        self.handles = handles_of(self.arrays[0], self.places)
        self.held, self.method = np.zeros((count, 3 * contacts + 1)), (float(settings.step), LAST_STEP)
        self.plans = [mechanism.touching_plan(frozenset()) for mechanism in mechanisms]
        self.steps = BODY_STEPS_PER_CALL // self.plans[0].bodies

    def call(self, *tiles) -> None:
        """(clock, room, start, stop): at most `room` steps of the states of a piece."""
        group = self.group
        *clock_and_room, start, stop = tiles
        blocks = range(start // group.block, -(-stop // group.block))
        begin = clock_and_room[0].copy() if len(blocks) > 1 else None
        for k in blocks:
            if begin is not None:
                clock_and_room[0][:] = begin
            self._call(k, *clock_and_room, max(start, k * group.block), min(stop, (k + 1) * group.block))

    def _call(self, block: int, *tiles) -> None:
        """The same of states with the same mechanism."""
        group = self.group
        driven = (self.addresses[block], group.params, group.controls, group.substeps, group.origin, *self.method,
                  group.y)
        kept = group.times, group.q_at, group.v_at, group.status, group.reached, group.steps
        if self.touches:
            self.entry.call(self.plans[block].arrays, self.arrays[block], self.places, self.handles, *driven, self.held,
                            *kept, self.residual, *tiles)
        else:
            self.entry.call(self.plans[block].arrays, *driven, *kept, *tiles)

    def advance(self, workers: int, mean: MeanTime | None = None, most: int = ENDLESS, taken: int = 0) -> None:
        """All running states to the last of the times, or by `most` steps, of which some are `taken`."""
        group = self.group
        count, tiles = len(group.y), -(-len(group.y) // WIDTH)
        if workers == 1 and most * tiles <= self.steps:  # at once
            clock = np.zeros(CLOCK)
            clock[TAKEN] = taken
            self.call(clock, most - taken, 0, count)
            return
        each = max(1, tiles // (TURNS_EACH * workers))

        def work(turns):
            for piece in turns:
                start, stop = piece * each * WIDTH, min(count, (piece + 1) * each * WIDTH)
                status, clock, room = group.status[start:stop], np.zeros(CLOCK), max(1, self.steps // each)
                clock[TAKEN] = taken
                while (clock[TAKEN] < most and clock[NEXT] < len(group.times) and not turns.stopped
                       and (status == 0).any()):
                    t, before = clock[TIME], status.copy()
                    self.call(clock, min(room, most - int(clock[TAKEN])), start, stop)
                    lost = start + np.flatnonzero((status == m.ACTUATION_FAILED) & (before == 0))
                    if lost.size:  # tile by tile, then by time, then by place
                        group.blame(lost[np.lexsort((lost, group.reached[lost], lost // WIDTH))])
                    if mean:
                        mean.add((clock[TIME] - t) * (stop - start))

        take_turns(work, -(-tiles // each), workers)

    def forget(self, states: np.ndarray) -> None:
        """Nothing is known of the contacts of these states."""
        self.held[states], self.residual[states] = 0.0, 0.0

    def known(self):
        """What is remembered of all states."""
        return self.residual.copy(), self.held.copy()

    def recall(self, states: np.ndarray, known, sources: np.ndarray) -> None:
        """Remember of each of these states what was known of its source."""
        residual, held = known
        self.residual[states], self.held[states] = residual[sources], held[sources]

    @property
    def bytes_each(self) -> float:
        """Memory of a state's contacts."""
        return self.held.nbytes / len(self.held) + self.residual.itemsize

    def more_places(self) -> bool:
        """Twice as many, up to the most."""
        before, self.places = self.places, min(self.most, 2 * self.places)
        self.handles = handles_of(self.arrays[0], self.places) if self.touches else 0
        return self.places > before

    def crowded(self, where: str = " in the states that are computed together") -> None:
        """Say why states stopped that have more contacts than there are places."""
        group = self.group
        for k in np.flatnonzero(group.status == m.CONTACTS_FULL).tolist():
            group.stops[k] = (f"at t = {group.reached[k]:.6g} s there are more than {self.places} contacts{where}; "
                              f"give room for more: max_contacts={2 * self.places}")


def in_lanes(group: Group, workers: int, bar) -> float:
    """A rollout in lanes. Returns the seconds it took."""
    tiles = Tiles(group)
    begin, start, params = time.perf_counter(), group.y.copy(), group.params.copy()
    mean, count = MeanTime(bar, len(group.y)), len(group.y)
    tiles.advance(workers, mean)
    while (group.status == m.CONTACTS_FULL).any() and tiles.more_places():  # those without room, from the start
        full = group.status == m.CONTACTS_FULL
        others = np.where(full, 0, group.status)
        group.y[full], tiles.held[full], tiles.residual[full] = start[full], 0.0, 0.0
        group.steps[full], group.status[:] = 0, np.where(full, 0, ASIDE)
        if len(params) == count:
            group.params[full] = params[full]
        tiles.advance(workers, mean)
        group.status[:] = np.where(full, group.status, others)
    tiles.crowded()
    group.evaluations[:] = group.steps * tiles.stages
    if not tiles.touches:
        group.evaluations += group.status == m.STATE_FAILED
    seconds, rough = time.perf_counter() - begin, np.flatnonzero(tiles.residual > ROUGH_ENOUGH)
    if rough.size:
        warnings.warn(f"contact problems of {rough.size} states (the first is {rough[0]}) were solved roughly, with a "
                      f"residual of up to {tiles.residual.max():.1g} of their size", SimulationWarning, stacklevel=3)
    return seconds
