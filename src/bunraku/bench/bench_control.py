"""The benchmark of controllers that know the model: compiled into the loop, beside the same laws in Python.

Talos on a free base, computed torque to a goal (the difference of two poses, then inverse dynamics):

    compiled                  @bk.actuation with the model, called by its address as solvers call it
    in Python                 the same law with NumPy and bk.inverse_dynamics, called from the compiled loop
    in Python, Pinocchio      the same with pin.difference and pin.rnea

Also the methods of the model alone, steps of symplectic Euler with each controller and the gradient of a motion by all
of its torques, and 1024 copies of an arm with operational-space control. Nothing is timed before the torques agree.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

import bunraku as bk
from bunraku.bench import machine
from bunraku.bench import model_files as files
from bunraku.bench.peers import Pinocchio, required
from bunraku.bench.timing import Contestant, Progress, race, speedup
from bunraku.errors import BunrakuError
from bunraku.integrate.callbacks import call_function
from bunraku.simulation.actuating import as_actuation

ROBOT = "talos_reduced.urdf"
FEW, COPIES, STEP = 64, 1024, 2e-3
KP, KD = 100.0, 20.0
TARGETS = {"python": 50.0, "gravity": 1.0}
AGREEMENT = 1e-10


@dataclass
class Options:
    """How long to measure."""

    seconds: float = 8.0
    steps: int = 100

    @classmethod
    def quick(cls):
        return cls(seconds=1.0, steps=20)


@bk.actuation
def inverse(t, q, v, params, tau, model):
    model.inverse_dynamics(q, v, v, tau)


@bk.actuation
def gravity(t, q, v, params, tau, model):
    model.gravity(q, tau)


@bk.actuation
def computed_torque(t, q, v, params, tau, model):
    a = np.empty(model.nv)
    model.difference(q, params, a)
    for j in range(model.nv):
        a[j] = KP * a[j] - KD * v[j]
    model.inverse_dynamics(q, v, a, tau)


@njit
def calls(address, q, v, params, tau):
    """The C function at an address, at every state."""
    status = 0
    for k in range(q.shape[0]):
        status |= call_function(address, 0.0, q[k], v[k], params, tau[k])
    return status


def in_python(m, goal):
    def law(t, q, v):
        return bk.inverse_dynamics(m, q, v, KP * m.difference(q, goal) - KD * v)
    return law


def by_pinocchio(peer, goal):
    """The same law by Pinocchio, in its coordinates."""
    pin, model, data, there = peer.pin, peer.model, peer.data, peer.q(goal)

    def law(q, v):
        return pin.rnea(model, data, q, v, KP * pin.difference(model, q, there) - KD * v)
    return law


def run(options: Options | None = None, quiet: bool = False) -> dict:
    """All results as plain data."""
    options = options or Options()
    required("pinocchio")
    progress = Progress(3, quiet)
    try:
        progress("Talos")
        m, _ = files.read(files.find(ROBOT))
        robot = _robot(m, options)
        progress.done()
        progress("steps of Talos")
        steps = _steps(m, options)
        progress.done()
        progress(f"{COPIES} arms")
        copies = _copies(options)
        progress.done()
    finally:
        progress.close()
    return {"bunraku": bk.__version__, "machine": machine.describe(), "robot": robot, "steps": steps, "copies": copies}


def _states(m, count, seed=0):
    rng = np.random.default_rng(seed)
    return m.integrate(np.tile(m.neutral(), (count, 1)), 0.3 * rng.normal(size=(count, m.nv))), (
        rng.normal(size=(count, m.nv)))


def _robot(m, options) -> dict:
    """Times of one call."""
    peer, (q, v), goal = Pinocchio(m), _states(m, FEW), m.neutral()
    law, plain, tau = by_pinocchio(peer, goal), as_actuation(in_python(m, goal), m), np.zeros((FEW, m.nv))
    theirs = list(zip(peer.q(q), peer.v(v), strict=True))
    wanted = np.array([plain.function(0.0, *state) for state in zip(q, v, strict=True)])
    compiled = as_actuation(computed_torque, m)
    calls(compiled.address, q, v, goal, tau)
    found = [tau, np.array([peer.back(law(*state)) for state in theirs])]
    agreement = float(max(np.abs(each - wanted).max() for each in found) / np.abs(wanted).max())
    if not agreement < AGREEMENT:
        raise BunrakuError(f"the laws disagree by {agreement:.1e}, so there is nothing to compare")
    alone, weight = as_actuation(inverse, m), as_actuation(gravity, m)
    by_hand, name = "computed torque in Python", "inverse dynamics"
    contestants = [
        Contestant(by_hand, lambda: calls(plain.address, q, v, goal, tau), FEW),
        Contestant("computed torque in Python, Pinocchio", lambda: [law(*state) for state in theirs], FEW),
        Contestant("computed torque, compiled", lambda: calls(compiled.address, q, v, goal, tau), FEW, against=by_hand,
                   target=TARGETS["python"]),
        Contestant(name, lambda: calls(alone.address, q, v, goal, tau), FEW),
        Contestant("gravity compensation", lambda: calls(weight.address, q, v, goal, tau), FEW, against=name,
                   target=TARGETS["gravity"]),
    ]
    race(contestants, options.seconds)
    return {"title": m.name, "dof": m.nv, "agreement": agreement, "rows": _rows(contestants)}


def _steps(m, options) -> dict:
    """Whole steps of symplectic Euler with each controller."""
    q, goal = _states(m, 1)[0][0], m.neutral()
    settings: Any = {"solver": "symplectic_euler", "step": STEP, "record": None, "progress": False}

    def stepping(actuation, params=None):
        sim = bk.Simulation(m, q, actuation=actuation, params=params, **settings)
        return lambda: sim.advance(sim.t + options.steps * STEP)

    by_hand = "a step, controller in Python"
    contestants = [
        Contestant(by_hand, stepping(in_python(m, goal)), options.steps),
        Contestant("a step, controller compiled", stepping(computed_torque, goal), options.steps, against=by_hand),
        Contestant("a step, no controller", stepping(None), options.steps),
        Contestant("a step of bk.gradient, by all torques", lambda: bk.gradient(
            m, q, np.zeros(m.nv), np.zeros((options.steps, m.nv)), step=STEP, final=_speed, workers=1), options.steps),
    ]
    race(contestants, options.seconds / 2)
    return {"rows": _rows(contestants)}


def _speed(q, v):
    """A cost at the end: half of the square of the velocity, and its derivatives."""
    return 0.5 * v @ v, 0.0 * v, v


def _rows(contestants) -> list[dict]:
    known, rows = {c.label: c for c in contestants}, []
    for c in contestants:
        row: dict[str, Any] = {"label": c.label, "best_us": 1e6 * c.best, "median_us": 1e6 * c.median}
        if c.against:
            row |= {"against": c.against, "speedup": speedup(known[c.against], c)[0]}
        if c.target is not None:
            row |= {"target": c.target, "met": row["speedup"] >= c.target}
        rows.append(row)
    return rows


def arm() -> bk.Mechanism:
    """Seven hinges about changing axes, 2.1 m long."""
    m = bk.Mechanism(name="arm of 7 hinges")
    for i in range(7):
        m.add_link(f"l{i}", f"l{i - 1}" if i else "ground", bk.Revolute(np.roll((0, 0, 1), i % 3)),
                   position=(0, 0, 0.3), mass=1.0, com=(0, 0, 0.15), inertia=(0.01, 0.01, 0.002))
    return m


def _copies(options) -> dict:
    """Copies with operational-space control, each with a target of its own."""
    m, rng = arm(), np.random.default_rng(1)
    goals = rng.uniform(0.2, 0.7, (COPIES, m.nv))
    R, p = bk.poses(m, goals)["l6"]
    controller = bk.control.operational_space(m, "l6", KP, KD, posture_kd=2.0)
    params = controller.batch(COPIES, rotation=R, position=p)
    q = goals + rng.normal(scale=0.1, size=goals.shape)
    settings: Any = {"solver": "symplectic_euler", "step": STEP, "actuation": controller, "params": params}
    reached = bk.poses(m, bk.rollout(m, q, until=2.0, **settings).q[:, -1])["l6"][1]
    until, count = options.steps * STEP, COPIES * options.steps
    rows = [{"label": "a step with operational-space control", "cpu_us": _processor_us(
                lambda: bk.rollout(m, q, until=until, **settings), count)},
            {"label": "a step without", "cpu_us": _processor_us(
                lambda: bk.rollout(m, q, until=until, solver="symplectic_euler", step=STEP), count)}]
    return {"title": m.name, "copies": COPIES, "error": float(np.abs(reached - p).max()), "rows": rows}


def _processor_us(run, count: int) -> float:
    """Processor time of all threads per step: on a busy machine threads wait."""
    run()
    times = []
    for _ in range(5):
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return 1e6 * min(times) / count


# -- for people -----------------------------------------------------------------------------------------------------


def text(result: dict) -> str:
    """The result as a page."""
    on, robot, copies = result["machine"], result["robot"], result["copies"]
    lines = [f"bunraku {result['bunraku']}: controllers that know the model",
             f"{on['processor']}, {on['lanes']} lanes, one core; {on['date'][:16].replace('T', ' ')}", "",
             f"{robot['title']}, {robot['dof']} degrees of freedom; torques agree to {robot['agreement']:.0e}", "",
             f"  {'':<40}{'best us':>9}{'median':>9}{'times faster':>14}"]
    lines += [_line(row) for row in (*robot["rows"], *result["steps"]["rows"])]
    lines += ["", f"{copies['copies']} copies of an {copies['title']}: after 2 s hands are at their targets to "
              f"{copies['error']:.0e} m", "", f"  {'':<40}{'us of all processors':>23}"]
    lines += [f"  {row['label']:<40}{row['cpu_us']:23.3f}" for row in copies["rows"]]
    return "\n".join(lines)


def _line(row) -> str:
    ratio = f"{row['speedup']:14.2f}" if "speedup" in row else ""
    verdict = f"  {'PASS' if row['met'] else 'MISS'} (at least {row['target']:g})" if "target" in row else ""
    return f"  {row['label']:<40}{row['best_us']:9.3f}{row['median_us']:9.3f}{ratio}{verdict}"
