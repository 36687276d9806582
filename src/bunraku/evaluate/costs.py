"""Costs of this machine: forward dynamics of chains, timed, as seconds per link and joint kind."""

from __future__ import annotations

import functools
import time

import numpy as np

from bunraku.entries.forward import forward_one
from bunraku.mechanism import Cylindrical, Free, Mechanism, Planar, Prismatic, Revolute, Spherical
from bunraku.scheduling import Costs, by_differences

SIZES = (16, 144)      # links
SECONDS = 0.02         # for each chain
KINDS = {"revolute": Revolute((0, 1, 0)), "prismatic": Prismatic((0, 1, 0)), "cylindrical": Cylindrical((0, 1, 0)),
         "planar": Planar((0, 0, 1)), "spherical": Spherical(), "free": Free()}


@functools.cache
def measured_costs() -> Costs:
    """Measured once per process, in about half a second. What cannot be measured yet is named in `assumed`."""
    return by_differences({kind: {n: _seconds(kind, n) for n in SIZES} for kind in KINDS})


def _seconds(kind: str, n: int) -> float:
    """Least time of one evaluation of a chain of n links."""
    m = Mechanism()
    for i in range(n):
        m.add_link(f"link{i}", f"link{i - 1}" if i else "ground", KINDS[kind], position=(0.0, 0.0, -0.2), mass=1.0,
                   com=(0.0, 0.0, -0.1), inertia=(0.01, 0.01, 0.005))
    plan, rng = m.plan(), np.random.default_rng(0)
    q, v = m.integrate(m.neutral(), 0.1 * rng.normal(size=m.nv)), 0.1 * rng.normal(size=m.nv)
    a = np.empty(m.nv)
    best, end = np.inf, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(10):
            forward_one.call(plan.arrays, q, v, plan.zero_tau, plan.nothing, a)
        best = min(best, (time.perf_counter() - start) / 10)
    return best
