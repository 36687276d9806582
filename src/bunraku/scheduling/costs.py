"""The cost model: seconds per body and pass, per join, per chunk, per message.

An evaluation has four passes over the tree [J, table IX]: 1 velocities (to the tips), 2 articulated inertias (to the
root), 3 accelerations (to the tips), 4 the solver's error sums (to the root). Forward dynamics alone is passes 1 to 3.

Origin of the default numbers (AMD EPYC, 2 shared cores, 18 November 2026, `evaluate/measured_costs.py`):
  measured    everything about bodies, chunks, joins: operations of the engine, timed one by one in compiled loops
  measured    `latency`, `per_float`: round trips of two threads
  measured    pass 4: Gear steps of a chain of 1000 hinges, less their evaluations; other joints by degrees of freedom
  assumed     `row`
"Assumed" stays in `Costs.assumed`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace

from bunraku.errors import ModelError

PASSES = 4
FLOATS = (6, 27, 6, 7)   # per edge and pass [J, table IX: 6 to 8, 33, 6, 5]; inertia packed: 21 + 6
FLOATS_FAR = 90          # pass 2 with a far handle: 27, Y 36, beta 6, Theta 21 [YN02, sec. 5.2: 78 + 12]
FLOATS_FAR_DOWN = 12     # pass 3: acceleration above and force below
FLOATS_MOTION = 18       # pass 1 with a far handle: pose and velocity across a chunk
FLOATS_LOOPS = (27, 30, 8, 8)  # with connections: states in world axes, and what loops are judged by; for each open row
                               # 9 and its part of Theta in pass 2, and its force in pass 3

HINGE = (34e-9, 25e-9, 12e-9, 20e-9)
SLIDER = (40e-9, 36e-9, 12e-9, 20e-9)
BODIES: dict[str, tuple[float, float, float, float]] = {
    "revolute": HINGE, "prismatic": SLIDER, "helical": SLIDER,
    "cylindrical": (61e-9, 64e-9, 23e-9, 40e-9), "planar": (86e-9, 100e-9, 35e-9, 60e-9),
    "spherical": (38e-9, 35e-9, 10e-9, 65e-9), "free": (48e-9, 65e-9, 7e-9, 125e-9), "fixed": (0.0, 0.0, 0.0, 0.0),
}


@dataclass(frozen=True)
class Costs:
    """Costs in seconds, unless stated otherwise. `to_dict()` and `Costs.from_dict` are for JSON."""

    bodies: Mapping[str, tuple[float, ...]] = field(default_factory=lambda: dict(BODIES))  # joint kind: passes 1 to 4
    far: float = 1.17           # cost of a sweep between two boundary links, in plain sweeps
    follow: float = 0.33        # of pass 1: motion across a chunk, needed first where there is a far handle
    row: float = 6e-9           # per open row of a connection and body between its ends, in pass 2
    join: float = 0.22e-6       # of a chunk with a far handle and what hangs there
    join_far: float = 0.28e-6   # if that has a far handle too
    add: float = 60e-9          # of two subtrees at the same link
    split: float = 20e-9        # of a join, in pass 3
    chunk: float = 90e-9        # to begin a chunk, in each pass
    latency: float = 0.3e-6     # of a message
    per_float: float = 3e-9
    assumed: tuple[str, ...] = ("row",)
    source: str = "stated"      # or "measured", "paper", "yours"

    def __post_init__(self):
        for kind, passes in self.bodies.items():
            if len(passes) != PASSES or not all(x >= 0 for x in passes):
                raise ModelError(f"costs: {kind} must have {PASSES} times, one for each pass and none negative, not "
                                 f"{passes!r}")
        for name in _NUMBERS:
            if not getattr(self, name) >= 0:
                raise ModelError(f"costs: {name} must not be negative, but is {getattr(self, name)!r}")

    def of(self, kind: str, elements: int = 1) -> tuple[float, ...]:
        """Passes 1 to 4 of a link by the kind of its joint; compound joints count as hinges, one per element."""
        if kind in self.bodies:
            return tuple(self.bodies[kind])
        return tuple(elements * x for x in self.bodies["revolute"])

    def message(self, floats: int) -> float:
        return self.latency + floats * self.per_float

    @property
    def cmptm(self) -> float:
        """One body and evaluation, all four passes [J, sec. III-D]."""
        return sum(self.of("revolute"))

    @property
    def roitm(self) -> float:
        """One remote edge and evaluation: four messages [J, sec. III-D]."""
        return sum(map(self.message, FLOATS))

    def to_dict(self) -> dict:
        return {**asdict(self), "bodies": {kind: list(x) for kind, x in self.bodies.items()},
                "assumed": list(self.assumed), "cmptm": self.cmptm, "roitm": self.roitm}

    @classmethod
    def from_dict(cls, given: Mapping) -> Costs:
        """Costs of which some are given; the others are the stated ones. With "cmptm" or "roitm" alone, [J]'s model:
        a time per body and one per remote edge, nothing else."""
        if given and set(given) <= {"cmptm", "roitm"}:
            stated = cls()
            for name, value in given.items():
                if not isinstance(value, (int, float)) or not 0 <= value < math.inf:
                    raise ModelError(f"costs: {name} must be a number of seconds, not {value!r}")
            return replace(paper(given.get("cmptm", stated.cmptm), given.get("roitm", stated.roitm)), source="yours")
        known = {f.name for f in fields(cls)}
        unknown = set(given) - known - {"cmptm", "roitm"}
        if unknown:
            raise ModelError(f"costs: {min(unknown)!r} is not one of {', '.join(sorted(known))}")
        chosen = {name: value for name, value in given.items() if name in known}
        if "bodies" in chosen:
            chosen["bodies"] = {**BODIES, **{kind: tuple(x) for kind, x in chosen["bodies"].items()}}
        if "assumed" in chosen:
            chosen["assumed"] = tuple(chosen["assumed"])
        return cls(**{"source": "yours", **chosen})


_NUMBERS = ("far", "follow", "row", "join", "join_far", "add", "split", "chunk", "latency", "per_float")


def paper(cmptm: float = 0.4e-3, roitm: float = 1.5e-3) -> Costs:
    """Costs as [J, sec. III-E] has them on MANNA: a time per body and one per remote edge, nothing else.

    [J] has no far handles. Joins are given the same share of a body's time as in the stated costs.
    """
    stated = Costs()
    scale = cmptm / stated.cmptm
    bodies = {kind: tuple(0.0 if kind == "fixed" else scale * x for x in HINGE) for kind in BODIES}
    return replace(stated, bodies=bodies, join=scale * stated.join, join_far=scale * stated.join_far, add=0.0,
                   split=scale * stated.split, chunk=0.0, latency=roitm / PASSES, per_float=0.0,
                   row=scale * stated.row, source="paper")
