"""Schedules: the order in which a structure is assembled, and its division among workers.

A schedule is a binary tree whose leaves are links, or chunks of links, and whose nodes are joints [YN02, sec. 5.1].
This module is the bridge from mechanisms to `scheduling/`, which sees arrays of parents and costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from bunraku.checks import as_count, hint
from bunraku.errors import ModelError, NamingError
from bunraku.evaluate.chunked import Chunked
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.plan.build import Plan
from bunraku.plan.chunk_plan import Assembly
from bunraku.scheduling import Costs, Partition
from bunraku.scheduling.assembly import assembly_depth

CLOSINGS = ("inside", "together")
METHODS = ("auto", "jung")


@dataclass(frozen=True, eq=False)
class WhatIf:
    """Predicted seconds of one evaluation and speed-ups, by the number of workers available; and the number used."""

    workers: np.ndarray
    used: np.ndarray
    time: np.ndarray
    speedup: np.ndarray


class Schedule:
    """An order of assembly for `forward_dynamics(..., schedule=)`.

    order    names of all tree joints and connections; None: the order for one processor, tips to root
    closing  how loops are closed [YN02, sec. 4.3]: "inside", a connection within one subchain, each by itself; or
             "together", all connections between two subchains at once with the joint that joins them
    cuts     in place of an order: names of the tree joints between parts for different workers. A part that would have
             more than two boundary links is cut once more
    costs    for predictions: None, the stated ones; "measured", those of this machine; a `bunraku.scheduling.Costs` or
             a dict with some of its fields

    far      whether chunks may have far handles, with which they compute at the same time as the chunks they carry,
             at 1.2 times the cost; without, each waits for the chunks it carries
    passes   predictions are for 3: forward dynamics; 4: with the vector work and the sums of a solver

    Results do not depend on it beyond rounding. A connection that comes in the order before its links belong to one
    subchain waits until they do. `depth` is the number of joins above the deepest link.
    """

    def __init__(self, mechanism: Mechanism, order: Sequence[str] | None = None, closing: str = "inside", *,
                 cuts: Sequence[str] | None = None, costs: Costs | Mapping | str | None = None, far: bool = True,
                 passes: int = 3):
        if closing not in CLOSINGS:
            raise ModelError(f"closing {closing!r} is not one of {', '.join(CLOSINGS)}")
        if order is not None and cuts is not None:
            raise ModelError("give a schedule an order of joints or cuts, not both")
        self.name = as_mechanism(mechanism).name
        self.closing = closing
        self.asked: int | None = None  # workers that were asked for
        self._links = [link.name for link in mechanism.links]
        self.joint_names = [link.joint_name for link in mechanism.links]
        self._parents = [link.parent for link in mechanism.links]
        self._freedoms = [link.joint.nv for link in mechanism.links]
        self._connected = {c.name: (c.link_a, c.link_b) for c in mechanism.connections.values()}
        self.coupled = bool(mechanism.couplings)
        if self.coupled and cuts is not None:
            raise ModelError(f"{mechanism.name} has coupled joints, and couplings are computed by one worker: leave "
                             "cuts out, or give an order")
        known = _as_costs(costs)
        self._request: dict = {"cuts": None if cuts is None else tuple(cuts), "far": far, "passes": passes,
                               "costs": None if costs is None else known.to_dict()}
        self._made: tuple[Chunked, Partition] | None = None
        if order is not None:
            self.serial = False
            self.order = self._checked(order)
        else:
            chunked = Chunked(mechanism, known, passes, far)
            part = chunked.partitions.serial() if cuts is None else chunked.at(mechanism, cuts)
            self._take(chunked, part)

    def _take(self, chunked: Chunked, partition: Partition):
        """Take the attributes of this schedule from a partition."""
        self._made = chunked, partition
        self.serial = len(partition.chunks) <= 1
        if self.serial:
            self.order = (*reversed(self.joint_names), *self._connected)
        else:  # connections come first: each is closed as soon as one cluster contains both its links
            self.order = (*self._connected, *(self.joint_names[i] for i in chunked.order(partition)))

    def _checked(self, order) -> tuple[str, ...]:
        names = dict.fromkeys([*self.joint_names, *self._connected])
        chosen = list(order)
        if len(set(chosen)) != len(chosen):
            twice = next(name for name in chosen if chosen.count(name) > 1)
            raise ModelError(f"the schedule adds {twice!r} twice")
        for name in chosen:
            if name not in names:
                raise NamingError(f"the schedule adds {name!r}, which is neither a joint nor a connection of "
                                  f"{self.name}")
        missing = set(names) - set(chosen)
        if missing:
            raise ModelError(f"the schedule leaves out {', '.join(map(repr, sorted(missing)[:5]))}"
                             f"{' ...' if len(missing) > 5 else ''}: every joint and connection must have its turn")
        return tuple(chosen)

    # -- parts and workers ---------------------------------------------------------------------------------------------

    @property
    def workers(self) -> int:
        """Number of workers used: at most one per chunk, and no more than reduce the predicted time."""
        return 1 if self._made is None else self._made[1].workers

    @property
    def method(self) -> str:
        """How the chunks were found: "auto", or "jung"."""
        return self._request.get("method", "auto")

    @cached_property
    def chunks(self) -> tuple[tuple[str, ...], ...]:
        """Names of the links of each chunk; of a schedule made from an order of joints, one link each."""
        if self._made is None:
            return tuple((name,) for name in self._links)
        chunked, part = self._made
        members: list[list[str]] = [[] for _ in range(len(part.chunks) or min(len(self._links), 1))]
        for name, k in zip(self._links, chunked.members(part).tolist(), strict=True):
            members[k].append(name)
        return tuple(map(tuple, members))

    @property
    def chunk_workers(self) -> tuple[int, ...]:
        """The worker of each chunk."""
        return tuple(self._parts()[1].chunks.worker.tolist()) or (0,) * len(self.chunks)

    @property
    def cuts(self) -> tuple[str, ...]:
        """Joints between chunks, also those that were added to keep two boundary links."""
        if self._made is None:
            return tuple(name for name, p in zip(self.joint_names, self._parents, strict=True) if p >= 0)
        chunked, part = self._made
        tops = chunked.top_links(part)
        return tuple(self.joint_names[i] for k, p in enumerate(part.chunks.parent.tolist()) if p >= 0 for i in tops[k])

    @cached_property
    def depth(self) -> int:
        """Joins above the deepest link, the joint to the ground included: the number of sequential steps.
        Subtrees of one link are added in pairs."""
        if self._made is not None:
            chunked, part = self._made
            return assembly_depth(part, chunked.heights(part))
        level: dict[int, int] = {}
        joined: dict[int, int] = {}

        def find(link):
            while joined.get(link, link) != link:
                link = joined[link]
            return link

        ends = {**{name: (p, k) for k, (name, p) in enumerate(zip(self.joint_names, self._parents, strict=True))},
                **self._connected}
        for name in self.order:
            a, b = (find(link) for link in ends[name])
            level[a] = 1 + max(level.get(a, 0), level.get(b, 0))
            joined[b] = a
        return max(level.values(), default=0)

    @property
    def handles(self) -> tuple[int, ...]:
        """Handles of each chunk: its top, its far link, and ends of connections to other chunks."""
        chunked, part = self._parts()
        return tuple((1 + (part.chunks.far >= 0) + chunked.open_ends(part)).tolist()) or (0,) * len(self.chunks)

    # -- predictions ---------------------------------------------------------------------------------------------------

    def _parts(self) -> tuple[Chunked, Partition]:
        if self._made is None:
            raise ModelError("this schedule is an order of joints; only schedules made by bk.schedule(m, workers=...) "
                             "or with cuts=... have predictions")
        return self._made

    @property
    def costs(self) -> Costs:
        """Cost model of the predictions."""
        return self._parts()[0].costs

    @property
    def predicted_time(self) -> float:
        """Predicted seconds of one evaluation of forward dynamics by `workers` workers."""
        return self._parts()[1].prediction.time

    @property
    def predicted_speedup(self) -> float:
        """Predicted time of one worker without any cuts, over `predicted_time`."""
        chunked, part = self._parts()
        time = part.prediction.time
        return chunked.partitions.serial().prediction.time / time if time else 1.0

    @property
    def floats_per_edge(self) -> tuple[int, ...]:
        """The most numbers in one message of passes 1 to 4 (zero: none is sent); the same for any number of links."""
        chunked, part = self._parts()
        return chunked.with_sums(part).floats

    def what_if(self, workers: int | Iterable[int]) -> WhatIf:
        """Predicted times with other numbers of workers, each with its own cuts by the same method."""
        partitions = self._parts()[0].partitions
        choose = partitions.jung if self.method == "jung" else partitions.best
        numbers = [workers] if isinstance(workers, (int, np.integer, bool, float, str)) else list(workers)
        counts = [as_count("workers", p) for p in numbers]
        found = [choose(p) for p in counts]
        time = np.array([x.prediction.time for x in found])
        serial = partitions.serial().prediction.time
        return WhatIf(np.array(counts), np.array([x.workers for x in found]), time,
                      np.divide(serial, time, out=np.ones_like(time), where=time > 0))

    def plot(self, file: str | Path) -> Path:
        """Draw the assembly tree and the predicted evaluation (needs matplotlib); the file extension selects the
        format."""
        from bunraku.view.schedule_plot import plot

        if not len(self._parts()[1].chunks):
            raise ModelError(f"{self.name} has no moving links: there is nothing to draw")
        return plot(self, *self._parts(), file)

    # -- use -----------------------------------------------------------------------------------------------------------

    def rebuilt(self, mechanism: Mechanism) -> Schedule:
        """The same request for the structure that the mechanism has now, after `connect` or `cut`."""
        if self._made is None:
            raise ModelError("an order of joints cannot be rebuilt: give the new one to bk.Schedule")
        return made_again(mechanism, {"workers": self.asked, "closing": self.closing, **self._request})

    @property
    def request(self) -> dict | None:
        """Arguments of this schedule, for JSON and `made_again`; None for an order of joints."""
        if self._made is None:
            return None
        return {"workers": self.asked, "closing": self.closing, **self._request}

    def assembly(self, plan: Plan) -> Assembly | None:
        """The chunks in the form that divides a plan of this mechanism; None for an order of joints."""
        if self._made is None:
            return None
        chunked, part = self._made
        return chunked.assembly(plan, part)

    def fits(self, mechanism: Mechanism) -> None:
        """Raise an error if it was made for another structure than the mechanism's present one."""
        joints = {link.joint_name: k for k, link in enumerate(mechanism.links)}
        connections = {name: c for c, name in enumerate(mechanism.connections)}
        same = set(self.order) == {*joints, *connections}
        if self._made is not None:
            same = (same and self._parents == [link.parent for link in mechanism.links]
                    and self._freedoms == [link.joint.nv for link in mechanism.links]
                    and self.coupled == bool(mechanism.couplings)
                    and self._connected == {c.name: (c.link_a, c.link_b) for c in mechanism.connections.values()})
        if not same:
            raise ModelError(f"this schedule was made for another structure than {mechanism.name} has now; make a new "
                             "one with bk.schedule")

    def items(self, mechanism: Mechanism) -> list[tuple[str, int]]:
        """The order as ("joint", body) and ("connection", index)."""
        self.fits(mechanism)
        joints = {link.joint_name: k for k, link in enumerate(mechanism.links)}
        connections = {name: c for c, name in enumerate(mechanism.connections)}
        plan = mechanism.plan("tree")
        first = np.full(len(mechanism.links), -1)
        first[plan.body_link[::-1]] = np.arange(plan.bodies)[::-1]
        items = [("joint", int(first[joints[name]])) if name in joints else ("connection", connections[name])
                 for name in self.order]
        return [item for item in items if item[1] >= 0]

    def __repr__(self):
        if self._made is None:
            shown = ", ".join(self.order[:6]) + (", ..." if len(self.order) > 6 else "")
            return f"Schedule of {len(self.order)} joints, depth {self.depth}, loops {self.closing}: {shown}"
        used, count = self.workers, len(self.chunks)
        who = f"{used} worker{'s' * (used > 1)}"
        if self.why_fewer:
            who += f" (of {self.asked} asked for: {self.why_fewer})"
        return (f"Schedule of {self.name}: {len(self.order)} joints, depth {self.depth}, {count} "
                f"chunk{'s' * (count > 1)} for {who}; predicted {_seconds(self.predicted_time)}, "
                f"{self.predicted_speedup:.3g}x one worker")

    @property
    def why_fewer(self) -> str:
        """Reason for using fewer workers than requested; empty if all are used."""
        if self.asked is None or self.asked == self.workers:
            return ""
        if self.method == "jung":
            return "no branch is worth another processor by [J]'s estimate, and chains are not divided"
        if self.coupled:
            return "joints are coupled, and couplings are computed by one worker"
        if self._request["exactly"]:
            return "it cannot be cut into more chunks"
        return "more are not predicted to be faster"


def schedule(mechanism: Mechanism, workers: int = 1, *, method: str = "auto", closing: str = "inside",
             exactly: bool = False, costs: Costs | Mapping | str | None = None, far: bool = True,
             passes: int = 3) -> Schedule:
    """A schedule for `workers` workers: chunks with at most two boundary links, of equal cost, joined in an assembly
    tree whose depth grows with the logarithm of their number.

    method    "auto": the fastest by prediction. "jung": the distribution of [J, sec. III-D] as it is; unbranched chains
              are never divided, each branch starts at most two siblings, the longer first, and a processor that would
              not shorten [J]'s estimated duration is not used. Chunks have no far handles (`far` does not matter)
    exactly   use that many workers, even if fewer are predicted to be faster; not with "jung"
    costs, far, passes   see `Schedule`; [J]'s CMPTM and ROITM are `costs={"cmptm": s, "roitm": s}`
    """
    if method not in METHODS:
        raise ModelError(f"method {method!r} is not one of {', '.join(METHODS)}{hint(method, METHODS, close=True)}")
    if method == "jung" and exactly:
        raise ModelError("method 'jung' uses as many workers as shorten [J]'s estimated duration: leave out exactly")
    asked = as_count("workers", workers)
    found = Schedule(mechanism, None, closing, costs=costs, far=far, passes=passes)
    chunked, _ = found._parts()
    partitions = chunked.partitions
    if asked > 1 and not found.coupled:
        choose = partitions.jung if method == "jung" else partitions.exactly if exactly else partitions.best
        found._take(chunked, choose(asked))
    found.asked = asked
    found._request |= {"exactly": exactly, "method": method}
    return found


def made_again(mechanism: Mechanism, request: Mapping) -> Schedule:
    """The schedule made from the result of `Schedule.request`."""
    given = dict(request)
    workers = given.pop("workers")
    if workers is None:
        return Schedule(mechanism, **given)
    given.pop("cuts")
    return schedule(mechanism, workers, **given)


def _as_costs(given) -> Costs:
    if given is None:
        return Costs()
    if isinstance(given, Costs):
        return given
    if isinstance(given, Mapping):
        return Costs.from_dict(given)
    if isinstance(given, str) and given == "measured":
        from bunraku.evaluate.measured_costs import measured_costs

        return measured_costs()
    raise ModelError(f"costs must be None, 'measured', a dict or bunraku.scheduling.Costs, not {given!r}")


def _seconds(time: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if time >= size:
            return f"{time / size:.3g} {unit}"
    return f"{time * 1e9:.3g} ns"
