"""Redundant structures at rest. At rest the constraints are consistent with gravity and any torques, so an error
is always wrong, and accelerations are unique however many constraints are redundant."""

from __future__ import annotations

import numpy as np

from bunraku.check import Case
from bunraku.check.structures import well_conditioned_structure
from bunraku.evaluate import forward_dynamics

TITLE = "random structures with redundant loops at rest: assembly and disassembly against the unit-vector method"
UNIT = "structures"
SEEDS, SHORT = 10_000, 200
LIMIT = 300.0
AGREE = 1e-9  # of the largest acceleration


def case(seed: int) -> Case:
    """A small structure for even seeds, a large one for odd ones."""
    structure = well_conditioned_structure(seed, large=seed % 2 == 1)
    m, q = structure.mechanism, structure.q
    rng = np.random.default_rng(seed + 10**9)
    tau, rest = 5.0 * rng.normal(size=(2, m.nv)), np.zeros(m.nv)
    expected = forward_dynamics(m, q, rest, tau[0], method="unit_vector")
    size = 1.0 + np.abs(expected).max(initial=0.0)
    single = forward_dynamics(m, q, rest, tau[0])
    batch = forward_dynamics(m, np.tile(q, (2, 1)), np.zeros((2, m.nv)), tau, workers=1)[0]
    worst = {what: float(np.abs(a - expected).max(initial=0.0) / size)
             for what, a in (("one state", single), ("in a batch", batch))}
    for what, error in worst.items():
        if not error <= AGREE:
            raise AssertionError(f"accelerations of {what} differ by {error:.2g} of the largest ({structure.family}, "
                                 f"{len(m.links)} links, {len(m.connections)} connections)")
    return Case(1, worst)
