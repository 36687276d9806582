"""Structures with loops by several workers: any cuts, any number of workers, the accelerations of one worker."""

from __future__ import annotations

import contextlib

import numpy as np

from bunraku.check import Case
from bunraku.check.structures import well_conditioned_structure
from bunraku.entries.closed_solution import velocity_change
from bunraku.errors import ConstraintError, ModelError
from bunraku.evaluate import Schedule, forward_dynamics

TITLE = "random structures with loops, cut at random joints: several workers against one"
UNIT = "structures"
SEEDS, SHORT = 5_000, 100
LIMIT = 300.0
AGREE = 1e-9  # of the largest acceleration


def random_cuts(m, rng) -> Schedule:
    """A schedule cut at some of the joints that may be cut."""
    part, cuts = rng.uniform(0.1, 1.0), []
    for name in m.joint_names:
        with contextlib.suppress(ModelError):  # Fixed joints, and links that cannot stand alone
            if rng.random() < part:
                Schedule(m, cuts=[name])
                cuts.append(name)
    return Schedule(m, cuts=cuts)


def case(seed: int) -> Case:
    """At rest for even seeds, in motion for odd ones."""
    structure = well_conditioned_structure(seed, large=seed % 4 > 1)
    m, q = structure.mechanism, structure.q
    rng = np.random.default_rng(seed + 2 * 10**9)
    tau, v = 5.0 * rng.normal(size=m.nv), (seed % 2) * rng.normal(size=m.nv)
    v = v + velocity_change(m.plan(), q, v)
    schedule = random_cuts(m, rng)
    try:
        expected = forward_dynamics(m, q, v, tau)
    except ConstraintError:  # in motion, loops that are redundant in this configuration alone may contradict each other
        with contextlib.suppress(ConstraintError):
            forward_dynamics(m, q, v, tau, schedule=schedule)
            raise AssertionError(f"refused by one worker, but not by {schedule.workers}") from None
        return Case(1, {})
    several = forward_dynamics(m, q, v, tau, schedule=schedule)
    one = forward_dynamics(m, q, v, tau, schedule=schedule, workers=1)
    if not np.array_equal(one, several):
        raise AssertionError(f"{len(schedule.chunks)} chunks on {schedule.workers} workers and on one differ by "
                             f"{np.abs(one - several).max():.2g}")
    error = float(np.abs(several - expected).max(initial=0.0) / (1.0 + np.abs(expected).max(initial=0.0)))
    if not error <= AGREE:
        raise AssertionError(f"accelerations differ by {error:.2g} of the largest ({structure.family}, {len(m.links)} "
                             f"links, {len(m.connections)} connections, {len(schedule.chunks)} chunks)")
    return Case(1, {"accelerations": error})
