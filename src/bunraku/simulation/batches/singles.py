"""States of a batch one by one, in fixed steps, a few at a time: worlds whose mechanism has connections, or so many
shapes that the list of their pairs changes. Each state may have connections of its own (`change`).

The interface is that of `Tiles`. Each state with contact has a workspace of its own, which keeps its contacts between
steps. Torques that are given reach compiled code as parameters of an actuation, `given`, which calls the user's own.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numba import carray

from bunraku.contact.contact_memory import ROUGHLY
from bunraku.entries.pool import take_turns
from bunraku.evaluate.contact_workspace import Touching
from bunraku.integrate import solver_memory as m
from bunraku.integrate.callbacks import PROTOTYPE, CompiledFunction, address_of, call_function, view
from bunraku.integrate.record import empty_record
from bunraku.jit import JIT_OFF
from bunraku.mechanism import Mechanism
from bunraku.plan.build import Plan
from bunraku.plan.plan_arrays import Arrays
from bunraku.runs.context import structure_of
from bunraku.runs.time_stepping_run import run_time_stepping
from bunraku.simulation import actuating
from bunraku.simulation.batches.group import NOTHING, Group, torques_of
from bunraku.simulation.closing import look_at_loops
from bunraku.simulation.failures import LeftOpen
from bunraku.simulation.needed_kernels import prepare_simulation

KEPT = 64  # structures without a state whose arrays are kept


def _given(t, q, nq, v, nv, params, count, out, n):
    """params: n torques; the address of the user's actuation, or 0; its parameters."""
    given, tau = carray(params, count), carray(out, n)
    tau[:] = given[:n]
    address = np.int64(given[n])
    return call_function(address, t, carray(q, nq), carray(v, nv), given[n + 1:], tau) if address != 0 else 0


def _given_in_python(t, q, nq, v, nv, params, count, out, n):
    given, tau = view(params, count), view(out, n)
    tau[:] = given[:n]
    return call_function(int(given[n]), t, view(q, nq), view(v, nv), given[n + 1:], tau) if given[n] else 0


class _CallbackInPython:
    def __init__(self):
        self._kept = PROTOTYPE(_given_in_python)
        self.address = address_of(self._kept)


@functools.cache
def _callback():
    return _CallbackInPython() if JIT_OFF else CompiledFunction(_given)


class Base(NamedTuple):
    """A structure as compiled code gets it."""

    plan: Plan
    structure: tuple[int, Arrays]  # the motion without contact, and its arrays
    torques: int


class Singles:
    """The states of a group, each by itself."""

    places = 0

    def __init__(self, group: Group, changing: bool = False):
        """`changing`: whether states may get connections of their own."""
        self.group, settings, count = group, group.settings, len(group.y)
        plan, self.touches = group.plan, group.mechanism.needs_contact()
        prepare_simulation(settings, loops=changing or plan.loops is not None, contact=self.touches)
        self.torques = torques_of(plan)
        self._kept = _callback()
        self.given = self._kept.address
        self.own = actuating.address_of(group.actuation)
        (entry, self.method), self.bases = settings.entry(), dict[Mechanism, Base]()
        self.entry = run_time_stepping if self.touches else entry
        self.residual = np.zeros(count)
        self.touching: dict[int, Touching] = {}  # by state, from its first step on

    def _base(self, mechanism: Mechanism) -> Base:
        if mechanism not in self.bases:
            plan = mechanism.plan()
            self.bases[mechanism] = Base(plan, structure_of(plan, self.group.settings.hold), torques_of(plan))
        return self.bases[mechanism]

    def _structure(self, k: int, base: Base):
        """The motion of state k, and its arrays."""
        if not self.touches:
            return base.structure
        touching = self._touching(k)
        arrays = touching.structure
        if self.group.settings.hold > 0.0:
            arrays = base.structure[1]._replace(touch=arrays.touch)
        return touching.base.address, arrays

    def _touching(self, k: int) -> Touching:
        if k not in self.touching:
            self.touching[k] = Touching(self.group.mechanism_of(k), most=self.group.settings.max_contacts,
                                        stepping=True)
        return self.touching[k]

    def change(self, k: int, mechanism: Mechanism | None) -> None:
        """State k has this structure from now on; None: that of the batch."""
        structures, known = self.group.structures, self.touching.pop(k, None)
        if mechanism is None:
            structures.pop(k, None)
        else:
            structures[k] = mechanism
        if known is not None:
            self._touching(k).recall(known.known())
        if len(self.bases) > len(structures) + KEPT:
            used = {id(one) for one in structures.values()}
            self.bases = {one: base for one, base in self.bases.items() if id(one) in used}

    def advance(self, workers: int, mean: None = None, most: int = 1, taken: int = 0) -> None:
        group, settings = self.group, self.group.settings

        def work(turns):
            record = empty_record(group.substeps, group.y.shape[1])
            blank, memory = (settings.memory(group.y[0]) for _ in range(2))
            controls = group.controls
            for k in turns:
                if group.status[k] != 0:
                    continue
                for array, beginning in zip(memory, blank, strict=True):
                    array[:] = beginning
                memory.rows[0], memory.clock[m.TIME], memory.clock[m.UNTIL] = group.y[k], group.origin[k], np.inf
                base = self._base(group.mechanism_of(k))
                n, given = base.torques, group.nv if k in group.structures else self.torques
                params = np.zeros(n + 1 + group.params.shape[1])
                params[n], params[n + 1:] = self.own, group.params[k]
                for number in range(-(-most // group.substeps)):
                    if len(controls):
                        at = min(number * self.torques, controls.shape[1] - self.torques)
                        params[:given] = controls[k, at:at + given]
                    status = self._steps(k, base, params, memory, record)
                    if status != m.RECORD_FULL or turns.stopped:
                        break
                group.y[k], group.params[k] = memory.rows[0], params[n + 1:]
                group.steps[k] += memory.tally[m.STEPS]
                group.loop_drift[k] = max(group.loop_drift[k], memory.clock[m.GAP])
                if status != m.RECORD_FULL:
                    group.status[k], group.left_open[k] = status, LeftOpen.of(memory, settings.hold)
                    group.reached[k] = memory.clock[m.TIME]
                    if status == m.CONTACTS_FULL:
                        group.stops[k] = f"at t = {group.reached[k]:.6g} s: {self._touching(k).full()}"

        take_turns(work, len(group.y), workers)

    def _steps(self, k: int, base: Base, params, memory, record) -> int:
        """As many steps as there are in a record."""
        group = self.group
        memory.tally[m.RECORDED] = 0
        while True:
            motion = self._structure(k, base)
            status = self.entry.call(*self.method, *motion, self.given, params, NOTHING, memory, record)
            if status != m.CONTACTS_FULL or not self._touching(k).grow():
                break
        if base.plan.loops is not None:
            error, status = look_at_loops(group.mechanism_of(k), base.plan, memory, group.settings.hold, status)
            group.loop_error[k] = max(group.loop_error[k], error)
        if self.touches:
            touch = self._touching(k).touch
            self.residual[k], touch.count[ROUGHLY] = max(self.residual[k], touch.residual[0]), 0
        return status

    def more_places(self) -> bool:
        return False

    def crowded(self, where: str = "") -> None:
        """Reasons are known already."""

    def forget(self, states: np.ndarray) -> None:
        """Nothing is known of the contacts of these states, and their structure is that of the batch."""
        self.residual[states] = 0.0
        for k in states.tolist():
            self.touching.pop(k, None)
            self.group.structures.pop(k, None)

    def known(self):
        """What is remembered of all states."""
        return (self.residual.copy(), {k: touching.known() for k, touching in self.touching.items()},
                dict(self.group.structures))

    def recall(self, states: np.ndarray, known, sources: np.ndarray) -> None:
        """Remember of each of these states what was known of its source."""
        residual, contacts, structures = known
        self.forget(states)
        self.residual[states] = residual[sources]
        for k, source in zip(states.tolist(), sources.tolist(), strict=True):
            if source in structures:
                self.group.structures[k] = structures[source]
            if source in contacts:
                self._touching(k).recall(contacts[source])

    @property
    def bytes_each(self) -> float:
        """Memory of a state's contacts."""
        sizes = [sum(array.nbytes for array in touching.touch) for touching in self.touching.values()]
        return float(np.mean(sizes)) if sizes else 0.0
