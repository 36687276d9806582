"""The benchmark of whole rollouts: one copy and many of the 34-degree figure, beside MuJoCo's `rollout` in one run.

Steps of 2 ms, one evaluation each: symplectic Euler here, `mjINT_EULER` there, which does the same: velocities move
first, positions with the new ones. MuJoCo keeps the state after every step, in an array made before, ours the last.
Contestants are timed one after the other in every round; ratios compare best with best. The CPU time of all threads
is shown as well: on a busy machine threads wait, and CPU time shows the speed on an idle one.

    mujoco.rollout                constraints, contacts, sensors and implicit damping off; a persistent pool of threads
    bk.rollout                    the public call, all its overhead included
    actuation, compiled           a controller on every joint, @bk.actuation, called inside the loop
    actuation, plain Python       the same as a function of NumPy arrays, called from the loop
    gear                          adaptive, one state at a time in every thread

Nothing is timed before the results agree: with `bk.Simulation` of single states, and with MuJoCo. The steps of the
libraries are identical except at a free joint, whose velocity is in body axes here and in world axes there. So the
figure is also put on three sliders and a ball, whose coordinates are MuJoCo's own, and must then end where MuJoCo's
does; with the free joint the gap must halve with the step, as it does between two methods of order 1.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

import bunraku as bk
from bunraku.bench import machine
from bunraku.bench.peers import MuJoCo, required, rotation_of
from bunraku.bench.report import WIDE, painter, target_lines
from bunraku.bench.timing import Contestant, Progress, race
from bunraku.entries.pool import available
from bunraku.errors import BunrakuError
from bunraku.mechanism import Free, Mechanism, Prismatic, Spherical

STEP = 2e-3
COPIES = 1024
FEW = 64               # copies with an actuation in plain Python
TARGETS = {"real_time": 200.0, "copies": 10.0, "mujoco": 5.0}
SAME, AGREES = 1e-12, 1e-9   # largest difference of an entry of q or v: of the same code in lanes, from MuJoCo
EULER: dict = {"solver": "symplectic_euler", "step": STEP}


@dataclass
class Options:
    """How long to measure."""

    seconds: float = 8.0    # per race
    steps: int = 100        # of each of many copies
    long: int = 1000        # of one copy
    checked: int = 500

    @classmethod
    def quick(cls):
        return cls(seconds=1.5, steps=25, long=500, checked=200)


@bk.actuation
def hold(t, q, v, params, tau):
    """Damp every joint but the free one."""
    for j in range(6, len(tau)):
        tau[j] = -params[0] * v[j]


def hold_in_python(t, q, v):
    tau = -0.5 * v
    tau[:6] = 0.0
    return tau


def starts(m: Mechanism, count: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    return (m.integrate(np.tile(m.neutral(), (count, 1)), 0.3 * rng.normal(size=(count, m.nv))),
            rng.normal(size=(count, m.nv)))


# -- MuJoCo --------------------------------------------------------------------------------------------------------


class Rolled:
    """The same mechanism under `mujoco.rollout`."""

    def __init__(self, m: Mechanism, step: float = STEP):
        self.peer = peer = MuJoCo(m)
        self.mujoco, self.rollout = peer.mujoco, required("mujoco.rollout")
        option = peer.model.opt
        option.timestep, option.integrator = step, self.mujoco.mjtIntegrator.mjINT_EULER
        option.disableflags |= int(self.mujoco.mjtDisableBit.mjDSBL_EULERDAMP)

    def states(self, q, v) -> np.ndarray:
        """Time, qpos, qvel for every state."""
        peer = self.peer
        return np.array([np.concatenate([[0.0], peer.q(a), peer.v(a, b)]) for a, b in zip(q, v, strict=True)])

    def run(self, initial, steps: int, threads: int):
        """A function to call: rolls all states out and returns them after every step."""
        model = self.peer.model
        data = [self.mujoco.MjData(model) for _ in range(threads)]
        out = np.zeros((len(initial), steps, initial.shape[1]))
        sensors = np.zeros((len(initial), steps, model.nsensordata))

        def call():
            self.rollout.rollout(model, data, initial, nstep=steps, state=out, sensordata=sensors,
                                 persistent_pool=True)
            return out
        return call


def on_sliders(m: Mechanism) -> Mechanism:
    """The mechanism with three sliders and a ball for its free root."""
    root, twin = m.links[0], Mechanism(gravity=tuple(m.gravity), name=f"{m.name} on sliders")
    if not isinstance(root.joint, Free) or root.parent >= 0:
        raise BunrakuError("the figure must float")
    below, where = "ground", root.position
    for name, axis in zip("xyz", np.eye(3), strict=True):
        twin.add_link(f"slider {name}", below, Prismatic(axis), position=where,
                      rotation=root.rotation if name == "x" else None)
        below, where = f"slider {name}", np.zeros(3)
    for link in m.links:
        parent = below if link is root else m.links[link.parent].name
        twin.add_link(link.name, parent, Spherical() if link is root else link.joint, joint_name=link.joint_name,
                      position=where if link is root else link.position,
                      rotation=None if link is root else link.rotation,
                      mass=link.mass, com=link.com, inertia=link.inertia)
    return twin


def between(q, v, to_sliders: bool) -> np.ndarray:
    """Velocities of the figure from those of its free root to those of sliders and a ball, or back; q is the same."""
    v = v.copy()
    for k in range(len(q)):
        R = rotation_of(q[k, 3:7])
        v[k, :3] = (R if to_sliders else R.T) @ v[k, :3]
    return v


# -- do they agree? ------------------------------------------------------------------------------------------------


def _largest(a, b) -> float:
    """Largest difference between states (q and -q of a quaternion do not occur on short ways)."""
    return float(np.abs(a - b).max())


def agreement(m: Mechanism, steps: int, copies: int = 3 * 8 + 1) -> dict:
    """Differences of final states: lanes from single states, sliders from MuJoCo, the free joint from MuJoCo."""
    q, v = starts(m, copies)
    end = steps * STEP
    ours = bk.rollout(m, q, v, until=end, **EULER)
    single = 0.0
    for k in (0, copies // 2, copies - 1):
        sim = bk.Simulation(m, q[k], v[k], **EULER)
        sim.run(end)
        single = max(single, _largest(sim.q, ours.q[k, -1]), _largest(sim.v, ours.v[k, -1]))
    rolled = Rolled(m)
    theirs = rolled.run(rolled.states(q, v), steps, 1)()[:, -1]
    sliders = bk.rollout(on_sliders(m), q, between(q, v, True), end, **EULER)
    q_end = sliders.q[:, -1]
    return {"steps": steps, "copies": copies, "simulation": single,
            "mujoco": _largest(rolled.states(q_end, between(q_end, sliders.v[:, -1], False))[:, 1:],
                               theirs[:, 1:]),
            "free_joint": [_free_joint(m, q[:4], v[:4], end, steps * n) for n in (1, 2, 4)]}


def _free_joint(m, q, v, end, steps) -> float:
    ours = bk.rollout(m, q, v, until=end, solver="symplectic_euler", step=end / steps)
    rolled = Rolled(m, end / steps)
    theirs = rolled.run(rolled.states(q, v), steps, 1)()[:, -1]
    return _largest(rolled.states(ours.q[:, -1], ours.v[:, -1])[:, 1:], theirs[:, 1:])


def refuse_disagreement(found: dict) -> None:
    """An error if the results differ: only identical computations are timed."""
    gaps = found["free_joint"]
    halving = all(1.6 < a / b < 2.5 for a, b in pairwise(gaps))
    if not (found["simulation"] < SAME and found["mujoco"] < AGREES and halving):
        raise BunrakuError(f"rollouts disagree, so there is nothing to compare: {found}")


# -- races ---------------------------------------------------------------------------------------------------------


def run(options: Options | None = None, quiet: bool = False) -> dict:
    """All results as plain data; `text` formats them."""
    options = options or Options()
    required("mujoco")
    m, threads = bk.models.human(dof=34), available()
    progress = Progress(4, quiet)
    try:
        progress("do they agree?")
        agrees = agreement(m, options.checked)
        refuse_disagreement(agrees)
        progress.done()
        races = {}
        for title, contestants in (("one copy, one thread", _one(m, options)),
                                   (f"{COPIES} copies", _many(m, options, threads)),
                                   ("actuation and adaptive steps", _others(m, options, threads))):
            progress(title)
            race(contestants, options.seconds)
            races[title] = [_row(c) for c in contestants]
            progress.done()
    finally:
        progress.close()
    return {"bunraku": bk.__version__, "machine": machine.describe(), "step": STEP, "copies": COPIES,
            "threads": threads, "load": os.getloadavg()[0], "agreement": agrees, "races": races,
            "targets": _verdicts(races, threads)}


def _row(c: Contestant) -> dict:
    """Microseconds for a step of one copy; how much faster than real time all copies together go."""
    return {"label": c.label, "best_us": 1e6 * c.best, "median_us": 1e6 * c.median, "cpu_us": 1e6 * _cpu(c),
            "real_time": STEP / c.best}


def _cpu(c: Contestant, rounds: int = 5) -> float:
    """CPU seconds of all threads for a step of one copy."""
    spent = []
    for _ in range(rounds):
        start = time.process_time()
        c.run()
        spent.append(time.process_time() - start)
    return min(spent) / c.states


def _one(m, options) -> list[Contestant]:
    q, v = starts(m, 1)
    rolled, n = Rolled(m), options.long
    return [Contestant("mujoco.rollout", rolled.run(rolled.states(q, v), n, 1), n),
            Contestant("bk.rollout", lambda: bk.rollout(m, q[0], v[0], n * STEP, workers=1, **EULER), n),
            Contestant("bk.Simulation, every step kept", lambda: bk.Simulation(m, q[0], v[0], **EULER).run(n * STEP),
                       n)]


def _many(m, options, threads) -> list[Contestant]:
    q, v = starts(m, COPIES)
    rolled, n, contestants = Rolled(m), options.steps, []
    initial = rolled.states(q, v)
    for count in sorted({1, threads}):
        contestants += [
            Contestant(_label("mujoco.rollout", count), rolled.run(initial, n, count), n * COPIES),
            Contestant(_label("bk.rollout", count), _rollout(m, q, v, n, workers=count), n * COPIES)]
    every = STEP * np.arange(1, n + 1)
    contestants.append(Contestant(
        "... every step kept", lambda: bk.rollout(m, q, v, times=every, workers=threads, **EULER), n * COPIES))
    return contestants


def _others(m, options, threads) -> list[Contestant]:
    q, v = starts(m, COPIES)
    n, long, params = options.steps, options.long, np.linspace(0.1, 1.0, COPIES)[:, None]
    plain = {"actuation": hold_in_python}
    return [
        Contestant("one copy, no actuation", _rollout(m, q[0], v[0], long), long),
        Contestant("... compiled", _rollout(m, q[0], v[0], long, actuation=hold, params=params[0]), long),
        Contestant("... plain Python", _rollout(m, q[0], v[0], long, **plain), long),
        Contestant(f"{COPIES} copies, compiled", _rollout(m, q, v, n, actuation=hold, params=params, workers=threads),
                   n * COPIES),
        Contestant(f"{FEW} copies, plain Python", _rollout(m, q[:FEW], v[:FEW], n, **plain), n * FEW),
        *(Contestant(_label(f"{COPIES} copies, gear 1e-6", count), _gear(m, q, v, n, count), n * COPIES)
          for count in sorted({1, threads}))]


def _label(words, threads):
    return f"{words}, {threads} thread{'s' * (threads > 1)}"


def _rollout(m, q, v, steps, **settings):
    return lambda: bk.rollout(m, q, v, steps * STEP, **EULER, **settings)


def _gear(m, q, v, steps, workers):
    """Over the same time; counted as if it took the same steps."""
    return lambda: bk.rollout(m, q, v, steps * STEP, workers=workers)


def _verdicts(races, threads) -> list[dict]:
    one = {row["label"]: row for row in races["one copy, one thread"]}
    many = {row["label"]: row for row in races[f"{COPIES} copies"]}
    ours, theirs = (many[_label(name, threads)] for name in ("bk.rollout", "mujoco.rollout"))
    measured = (
        ("one copy on one core, against real time", "real_time", one["bk.rollout"]["real_time"], "x real time"),
        (f"{COPIES} copies in total, against one copy", "copies",
         ours["real_time"] / one["bk.rollout"]["real_time"], "x one copy"),
        (f"{COPIES} copies, against mujoco.rollout, {threads} thread{'s' * (threads > 1)} both", "mujoco",
         theirs["best_us"] / ours["best_us"], "x"))
    return [{"what": what, "measured": value, "target": TARGETS[name], "unit": unit, "met": value >= TARGETS[name]}
            for what, name, value, unit in measured]


# -- in words ------------------------------------------------------------------------------------------------------


def text(result: dict, colour: bool = False) -> str:
    """Tables of times, then every target with what was measured."""
    paint = painter(colour)
    on, agrees = result["machine"], result["agreement"]
    versions, gaps = on["versions"], agrees["free_joint"]
    lines = [
        paint("1", f"bunraku {result['bunraku']} beside MuJoCo {versions.get('mujoco', '?')}: rollouts of a figure "
                   f"with 34 degrees of freedom, steps of {1e3 * result['step']:g} ms"),
        machine.line(on),
        f"load of the machine {result['load']:.1f} ({result['threads']} when otherwise idle)",
        f"after {agrees['steps']} steps lanes agree with bk.Simulation to {agrees['simulation']:.0e}, and with MuJoCo "
        f"on sliders and a ball to {agrees['mujoco']:.0e};",
        f"with a free joint, whose axes differ, to {', '.join(f'{x:.1e}' for x in gaps)} at 1, 1/2, 1/4 of the step",
    ]
    for title, rows in result["races"].items():
        heading = f"  {title:<{WIDE}}{'best us':>9}{'median':>9}{'CPU us':>9}{'x real time':>13}"
        heading += f"{'x ' + rows[0]['label']:>28}"
        lines += ["", paint("4", heading)]
        for row in rows:
            ratio = rows[0]["best_us"] / row["best_us"]
            lines.append(f"  {row['label']:<{WIDE}}{row['best_us']:9.3f}{row['median_us']:9.3f}{row['cpu_us']:9.3f}"
                         f"{row['real_time']:13.0f}{ratio:28.2f}")
    lines += ["", "  us: for a step of one copy, all copies together", "", *target_lines(result["targets"], paint)]
    return "\n".join(line.rstrip() for line in lines)
