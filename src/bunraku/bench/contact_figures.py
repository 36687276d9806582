"""A crowd of figures of 16 degrees of freedom on a floor, pushed into each other: time steps beside real time.

Joints have damping; every figure touches the floor and the other figures. Steps of 2 ms, one worker.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from itertools import combinations

import numpy as np

import bunraku as bk
from bunraku.bench.contact_cases import STEP

SPACING = 0.55      # [m] between figures side by side: their hands almost touch
DAMPING = 4.0       # of every joint [N m s/rad]
FRICTION = 0.8
PUSH = 0.6          # [m/s] velocity at the start, along x and y; half of it in rad/s
REAL_TIME = 1.0     # of the largest crowd


@dataclass
class Figures:
    """Sizes to measure, and how long the crowd falls."""

    counts: tuple[int, ...] = (1, 10, 100)
    seconds: float = 0.4


def crowd(n: int, seed: int = 0) -> tuple[bk.Mechanism, np.ndarray, np.ndarray]:
    """n figures in a square, and the state in which they begin to fall."""
    one, m = bk.models.human(dof=16, damping=DAMPING), bk.Mechanism(name=f"crowd of {n}")
    m.add_plane(friction=FRICTION)
    names = [link.name for link in one.links]
    for k in range(n):
        for link in one.links:
            parent = "ground" if link.parent < 0 else f"{names[link.parent]} {k}"
            m.add_link(f"{link.name} {k}", parent, link.joint, joint_name=f"{link.joint_name} {k}",
                       position=link.position, rotation=link.rotation, mass=link.mass, com=link.com,
                       inertia=link.inertia)
        for shape in one.shapes.values():
            m.add_shape(f"{names[shape.link]} {k}", shape.shape, shape.position, shape.rotation, FRICTION)
        for a, b in combinations(names, 2):
            m.exclude(f"{a} {k}", f"{b} {k}")
    q, v, rng, side = m.neutral(), np.zeros(m.nv), np.random.default_rng(seed), int(np.ceil(np.sqrt(n)))
    for k in range(n):
        at, to = m.q_slice(f"pelvis {k}").start, m.v_slice(f"pelvis {k}").start
        q[at:at + 3] += SPACING * (k % side), 1.2 * SPACING * (k // side), 0.001
        v[to:to + 2] = PUSH * rng.normal(size=2)
        v[to + 3:to + 6] = 0.5 * PUSH * rng.normal(size=3)
    return m, q, v


def figures(options: Figures) -> list[dict]:
    """A row for each size, as plain data."""
    rows = []
    for n in options.counts:
        m, q, v = crowd(n)
        sim = bk.Simulation(m, q, v, solver="symplectic_euler", step=STEP, record=None, max_contacts=200 * n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bk.SimulationWarning)  # the residual is in the table
            begin = time.perf_counter()
            sim.advance(options.seconds)
        taken, touching = time.perf_counter() - begin, bk.contacts(m, sim.q, margin=0.0)
        assert not isinstance(touching, list)
        rows.append({"figures": n, "shapes": len(m.shapes), "contacts": len(touching), "us": 1e6 * taken * STEP
                     / options.seconds, "real_time": options.seconds / taken,
                     "residual": float(sim.stats.contact_residual)})
    return rows


def figure_verdicts(rows: list[dict]) -> list[dict]:
    """Target: the largest crowd in real time."""
    row = rows[-1]
    return [{"what": f"{row['figures']} figures fall into each other", "measured": row["real_time"],
             "target": REAL_TIME, "unit": "x real time", "met": row["real_time"] >= REAL_TIME}]


def figure_lines(rows: list[dict], paint) -> list[str]:
    """The table."""
    return [paint("1", "figures of 16 degrees of freedom, pushed into each other"),
            paint("4", f"  {'figures':>8}{'shapes':>8}{'contacts':>10}{'us/step':>12}{'x real time':>13}"
                       f"{'residual':>12}"),
            *(f"  {row['figures']:>8}{row['shapes']:>8}{row['contacts']:>10}{row['us']:>12.1f}{row['real_time']:>13.3f}"
              f"{row['residual']:>12.1e}" for row in rows)]
