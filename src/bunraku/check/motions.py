"""Small mechanisms in random motion, for attacks on solvers."""

from __future__ import annotations

import numpy as np

import bunraku as bk


def body() -> bk.Mechanism:
    """A free body that tumbles."""
    m = bk.Mechanism()
    m.add_link("body", joint=bk.Free(), mass=2.0, com=(0.02, 0.0, 0.05), inertia=np.diag([0.03, 0.05, 0.02]))
    return m


def top() -> bk.Mechanism:
    """A body on a ball joint."""
    m = bk.Mechanism()
    m.add_link("top", joint=bk.Spherical(), mass=1.0, com=(0, 0, 0.2), inertia=np.diag([0.02, 0.03, 0.01]))
    return m


MODELS = {
    "free body": body,
    "top": top,
    "chain": lambda: bk.models.chain(5),
    "chain of balls": lambda: bk.models.chain(3, "spherical"),
    "human figure": lambda: bk.models.human(dof=16),
    "four-bar": bk.models.four_bar,
    "slider-crank": bk.models.slider_crank,
}


def start(rng: np.random.Generator) -> tuple[str, bk.Mechanism, np.ndarray, np.ndarray]:
    """(name, mechanism, q, v) of a random motion of a random mechanism; at rest now and then."""
    name = str(rng.choice(list(MODELS)))
    m = MODELS[name]()
    speed = rng.choice([0.0, 1.0, 3.0], p=[0.2, 0.6, 0.2])
    q, v = m.neutral(), speed * rng.normal(size=m.nv)
    if m.connections:
        return name, m, q, bk.project(m, q, v)[1]
    return name, m, m.integrate(q, 0.5 * rng.normal(size=m.nv)), v


def error(m: bk.Mechanism, state, other) -> float:
    """Largest difference of two states (q, v), coordinates [m, rad] and velocities [m/s, rad/s] alike."""
    return float(max(np.abs(m.difference(state[0], other[0])).max(), np.abs(state[1] - other[1]).max()))
