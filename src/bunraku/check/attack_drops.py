"""Random bodies dropped on a floor, by events and in fixed steps: depth, energy, and starts from recorded states."""

from __future__ import annotations

import warnings

import numpy as np

import bunraku as bk
from bunraku.check import Case

TITLE = "bodies dropped at random: no depth, energy does not rise, recorded states are accepted as starts"
UNIT = "runs"
SEEDS, SHORT, LIMIT = 500, 20, 300.0

SOLVERS = ("tsit5", "rkf", "gear", "bdf")
RTOL, ATOL = 1e-6, 1e-8    # the default of `bk.Simulation`
STEP = 1e-3                # [s] in fixed steps
UNTIL = 0.5                # [s]
DEPTH = 2e-7               # [m] by events
ENERGY = 10.0              # tolerances of a step by which it may raise the energy
RESTARTS = 20              # recorded states that a simulation starts from: the deepest ones


def dropped(seed: int) -> tuple[bk.Mechanism, np.ndarray, np.ndarray]:
    """A box, a capsule, or a box with an arm above a floor, with any orientation and velocity."""
    rng = np.random.default_rng([19, seed])
    edges, mass = rng.uniform(0.05, 0.4, 3), rng.uniform(0.2, 5.0)
    friction, restitution = rng.choice([0.0, 0.2, 0.5, 0.8]), rng.choice([0.0, 0.0, 0.3, 0.8])
    m = bk.Mechanism(name="dropped")
    m.add_link("body", joint=bk.Free(), mass=mass, inertia=mass / 12 * (edges @ edges - edges**2))
    kind = rng.integers(4)
    shape = bk.Capsule(0.5 * edges[0], edges[1]) if kind == 2 else bk.Box(*edges)
    m.add_shape("body", shape, friction=friction, restitution=restitution)
    if kind == 3:
        m.add_link("arm", "body", bk.Revolute((0, 1, 0)), position=(0, 0, 0.5 * edges[2]), mass=0.3 * mass,
                   com=(0, 0, 0.1), inertia=(1e-3 * mass,) * 3)
        m.add_shape("arm", bk.Sphere(0.03), position=(0, 0, 0.2), friction=friction, restitution=restitution)
    m.add_plane(friction=friction)
    q, v = m.neutral(), rng.normal(size=m.nv)
    q[2], q[3:7] = rng.uniform(0.4, 0.7), rng.normal(size=4)
    q[3:7] /= np.linalg.norm(q[3:7])
    v[3:6] *= 5.0
    return m, q, v


def energy_tolerance(m: bk.Mechanism, q, v) -> float:
    """[J] Energy change that the tolerance of a step allows, to first order."""
    momentum, weight = bk.mass_matrix(m, q) @ v, bk.inverse_dynamics(m, q, np.zeros(m.nv), np.zeros(m.nv))
    return float(np.abs(momentum) @ (ATOL + RTOL * np.abs(v)) + np.abs(weight).sum() * (ATOL + RTOL * np.abs(q).max()))


def smallest_gap(m: bk.Mechanism, q) -> float:
    """[m] Up to a centimetre."""
    found = bk.contacts(m, q, margin=0.01)
    assert not isinstance(found, list)
    return float(np.min(found.gap, initial=0.01))


def look_at(m: bk.Mechanism, q, v, settings: dict) -> dict[str, float]:
    """One run, and starts from its recorded states: depth [m], largest rise of energy in tolerances. In fixed steps
    neither: a step may leave an overlap, and is of order 1, so that flight or tipping over an edge raises the energy
    by up to 1e-3 of it in a step of 2 ms. (Impulses take energy, by `contact/contact_step.py`.)"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bk.SimulationWarning)
        trajectory = bk.Simulation(m, q, v, **settings).run(UNTIL)
    gaps = np.array([smallest_gap(m, state) for state in trajectory.q])
    for k in np.argsort(gaps)[:RESTARTS]:
        bk.Simulation(m, trajectory.q[k], trajectory.v[k], **settings)  # refuses what it does not accept
    if "step" in settings:
        return {}
    rise = np.diff(np.sum(trajectory.energy()[1:], axis=0))
    allowed = np.array([max(energy_tolerance(m, trajectory.q[k + j], trajectory.v[k + j]) for j in (0, 1))
                        for k in np.flatnonzero(rise > 0.0)])
    return {"depth [m]": float(max(0.0, -gaps.min())),
            "energy gained / tolerance": float((rise[rise > 0.0] / allowed).max(initial=0.0))}


def case(seed: int) -> Case:
    """One drop by one adaptive solver, and in fixed steps."""
    m, q, v = dropped(seed)
    worst: dict[str, float] = {}
    for settings in ({"solver": SOLVERS[seed % len(SOLVERS)]}, {"solver": "symplectic_euler", "step": STEP}):
        worst.update(look_at(m, q, v, settings))
    for what, most in (("depth [m]", DEPTH), ("energy gained / tolerance", ENERGY)):
        if not worst[what] <= most:
            raise AssertionError(f"{what}: {worst[what]:.3g}, {most:g} is allowed")
    return Case(2, worst)
