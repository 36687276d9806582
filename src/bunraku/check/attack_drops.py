"""Random bodies dropped on a floor and on each other, and pairs that spin and fly into each other, by events and in
fixed steps: every run ends, depth, energy, and starts from recorded states.

By events the energy rises by no more than the solver's tolerance. A time step of order 1 may raise it by its own error:
h^2 a.M a for the accelerations a without contact, M being the mass matrix, which changes too; and h |a.M dv| for a
rebound by dv somewhere in the step, likewise for the accelerations at rest (those of a free body that turns have a part
that only the rotation of its axes makes, which may cancel its weight). The depth in time steps is checked by the
starts: a simulation accepts an overlap of up to the distance that the fastest point travels in a step.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.spatial.transform import Rotation

import bunraku as bk
from bunraku.check import Case
from bunraku.simulation.simulation import running

TITLE = "bodies dropped at random: runs end, no depth, energy does not rise, recorded states are accepted as starts"
UNIT = "runs"
SEEDS, SHORT, LIMIT = 1000, 20, 300.0

SOLVERS = ("gear", "tsit5", "gear", "bdf", "gear", "rkf")
RTOL, ATOL = 1e-6, 1e-8    # the default of `bk.Simulation`
STEP = 1e-3                # [s] in fixed steps
UNTIL = 0.5                # [s]
DEPTH = 3.01e-7            # [m] by events: GRAZED, and the slack of contacts that begin to separate (1e-7 m)
ENERGY = 10.0              # tolerances of a step by which it may raise the energy
RESTARTS = 20              # recorded states that a simulation starts from: the deepest ones
MOST = {"depth by events [m]": DEPTH, "changes to time steps": np.inf}
PILES = 5                  # one case in so many has a small pile, too


def dropped(seed: int) -> tuple[bk.Mechanism, np.ndarray, np.ndarray]:
    """A box, a hull, a capsule, a box with an arm, or several boxes and hulls above a floor, with any orientation and
    velocity."""
    rng = np.random.default_rng([19, seed])
    kind = rng.integers(6)
    friction, restitution = rng.choice([0.0, 0.2, 0.5, 0.8]), rng.choice([0.0, 0.0, 0.3, 0.8])
    m = bk.Mechanism(name="dropped")
    count = int(rng.integers(2, 4)) if kind == 5 else 1
    for k in range(count):
        edges, mass, name = rng.uniform(0.05, 0.4, 3), rng.uniform(0.2, 5.0), "body" if k == 0 else f"body{k}"
        m.add_link(name, joint=bk.Free(), mass=mass, inertia=mass / 12 * (edges @ edges - edges**2))
        shape: bk.Box | bk.Hull | bk.Capsule = bk.Box(*edges)
        if kind == 1 or (kind == 5 and rng.integers(2)):
            shape = bk.Hull(0.5 * edges * rng.uniform(-1, 1, (int(rng.integers(6, 20)), 3)))
        elif kind == 2:
            shape = bk.Capsule(0.5 * edges[0], edges[1])
        m.add_shape(name, shape, friction=friction, restitution=restitution)
    if kind == 3:
        m.add_link("arm", "body", bk.Revolute((0, 1, 0)), position=(0, 0, 0.5 * edges[2]), mass=0.3 * mass,
                   com=(0, 0, 0.1), inertia=(1e-3 * mass,) * 3)
        m.add_shape("arm", bk.Sphere(0.03), position=(0, 0, 0.2), friction=friction, restitution=restitution)
    m.add_plane(friction=friction)
    q, v = m.neutral(), rng.normal(size=m.nv)
    for k in range(count):
        x = 7 * k
        q[x + 2], q[x + 3:x + 7] = rng.uniform(0.4, 0.7) + 0.75 * k, rng.normal(size=4)
        q[x + 3:x + 7] /= np.linalg.norm(q[x + 3:x + 7])
        v[6 * k + 3:6 * k + 6] *= 5.0
    return m, q, v


def edges_and_shape(rng) -> tuple[np.ndarray, bk.Box | bk.Hull]:
    """Edges of a box [m], and this box, or a hull inside."""
    edges = rng.uniform(0.05, 0.4, 3)
    points = 0.5 * edges * rng.uniform(-1, 1, (int(rng.integers(6, 20)), 3))
    return edges, bk.Hull(points) if rng.integers(2) else bk.Box(*edges)


def add_body(m: bk.Mechanism, rng, name: str, friction: float, restitution: float) -> None:
    edges, shape = edges_and_shape(rng)
    mass = rng.uniform(0.2, 5.0)
    m.add_link(name, joint=bk.Free(), mass=mass, inertia=mass / 12 * (edges @ edges - edges**2))
    m.add_shape(name, shape, friction=friction, restitution=restitution)


def spinning(seed: int) -> tuple[bk.Mechanism, np.ndarray, np.ndarray]:
    """Two boxes or hulls without friction or gravity that spin and fly into each other: edges slide on edges."""
    rng = np.random.default_rng([20, seed])
    m = bk.Mechanism(gravity=(0, 0, 0), name="spinning")
    restitution = float(rng.choice([0.0, 0.0, 0.5]))
    for name in ("left", "right"):
        add_body(m, rng, name, friction=0.0, restitution=restitution)
    q, v = m.neutral(), np.zeros(m.nv)
    for k, side in enumerate((-1.0, 1.0)):
        turn = Rotation.random(random_state=rng)
        q[7 * k:7 * k + 3] = 0.36 * side, *rng.uniform(-0.03, 0.03, 2)
        q[7 * k + 3:7 * k + 7] = turn.as_quat()[[3, 0, 1, 2]]
        v[6 * k:6 * k + 3] = turn.inv().apply((-2.0 * side, 0.0, 0.0))
        v[6 * k + 3:6 * k + 6] = 10.0 * rng.normal(size=3)
    return m, q, v


def piled(seed: int) -> tuple[bk.Mechanism, np.ndarray, np.ndarray]:
    """Four to six boxes and hulls that fall on each other."""
    rng = np.random.default_rng([21, seed])
    m, count = bk.Mechanism(name="pile"), int(rng.integers(4, 7))
    friction, restitution = float(rng.choice([0.0, 0.3, 0.8])), float(rng.choice([0.0, 0.0, 0.3]))
    for k in range(count):
        add_body(m, rng, f"body{k}", friction=friction, restitution=restitution)
    m.add_plane(friction=friction)
    q, v = m.neutral(), rng.normal(size=m.nv)
    for k in range(count):
        q[7 * k:7 * k + 3] = *rng.uniform(-0.1, 0.1, 2), 0.4 + 0.72 * k
        q[7 * k + 3:7 * k + 7] = Rotation.random(random_state=rng).as_quat()[[3, 0, 1, 2]]
        v[6 * k:6 * k + 3] = 0.0
        v[6 * k + 3:6 * k + 6] *= 5.0
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


def step_error(m: bk.Mechanism, q, v, dv, h: float) -> float:
    """[J] Energy that a step of order 1 may add, at whose ends velocities differ by dv."""
    nothing = np.zeros(m.nv)
    bias, weight = bk.inverse_dynamics(m, q, v, nothing), bk.inverse_dynamics(m, q, nothing, nothing)  # -M a
    return float(h * h * bias @ np.linalg.solve(bk.mass_matrix(m, q), bias) + h * (abs(bias @ dv) + abs(weight @ dv)))


def in_steps(trajectory: bk.Trajectory) -> np.ndarray:
    """Whether each state of a run by events was made by time steps in their place."""
    stepped = np.zeros(len(trajectory.t), bool)
    for event in trajectory.events:
        if event.text.startswith("contact by"):
            stepped[trajectory.t >= event.t] = event.text.startswith("contact by time steps")
    return stepped


def look_at(m: bk.Mechanism, q, v, settings: dict) -> dict[str, float]:
    """One run, and starts from its recorded states: depth by events [m], largest rise of energy over what is
    allowed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bk.SimulationWarning)
        sim = bk.Simulation(m, q, v, **settings)
        trajectory = sim.run(UNTIL)
    gaps = np.array([smallest_gap(m, state) for state in trajectory.q])
    for k in np.argsort(gaps)[:RESTARTS]:
        bk.Simulation(m, trajectory.q[k], trajectory.v[k], **settings)  # refuses what it does not accept
    fixed = "step" in settings
    stepped = np.ones(len(gaps), bool) if fixed else in_steps(trajectory)
    rise = np.diff(np.sum(trajectory.energy()[1:], axis=0))
    worst, h = 0.0, STEP if fixed else running(sim).settings.contact_step or 0.0
    for k in np.flatnonzero(rise > 0.0):
        states = [(trajectory.q[j], trajectory.v[j]) for j in (k, k + 1)]
        allowed = ENERGY * max(energy_tolerance(m, *state) for state in states)
        if stepped[k + 1]:
            allowed += max(step_error(m, *state, states[1][1] - states[0][1], h) for state in states)
        worst = max(worst, float(rise[k]) / allowed)
    by_events = gaps[~stepped & ~np.roll(stepped, 1)]
    what = "in steps" if fixed else "by events"
    return {"depth by events [m]": float(max(0.0, -by_events.min(initial=0.0))),
            f"energy gained {what} / allowed": worst, "changes to time steps": float(sim.stats.contact_switches)}


def case(seed: int) -> Case:
    """One drop, a spinning pair, and sometimes a small pile, by one adaptive solver and in fixed steps."""
    worst: dict[str, float] = {}
    scenes = [dropped(seed), spinning(seed), *([piled(seed)] if seed % PILES == 0 else [])]
    for m, q, v in scenes:
        for settings in ({"solver": SOLVERS[seed % len(SOLVERS)]}, {"solver": "symplectic_euler", "step": STEP}):
            for what, value in look_at(m, q, v, settings).items():
                if not value <= MOST.get(what, 1.0):
                    raise AssertionError(f"{m.name}: {what}: {value:.3g}, {MOST.get(what, 1.0):g} is allowed")
                worst[what] = max(worst.get(what, 0.0), value)
    return Case(2 * len(scenes), worst)
