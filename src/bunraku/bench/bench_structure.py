"""Benchmark of structures with loops: comparison with Pinocchio in one run, schedules, structure changes, scaling.

Nothing is timed before both libraries give the same accelerations. Contestants are timed one after the other in every
round; ratios and verdicts compare best with best, Pinocchio's being the faster of its two lines. What each measures:

    pin.constraintDynamics        one call from Python, states in turn; every limb a RigidConstraintModel of CONTACT_6D
                                  (LOCAL), one proximal iteration with mu = 1e-10: its fastest sensible setting
    ... to its own accuracy       the same with up to 10 iterations to 1e-12
    one call from Python          bk.forward_dynamics(m, q, v, tau), states in turn; limbs welded to the ground
    batch                         one call with (B, n) arrays, everything included, divided by B

Velocities are consistent with the limbs held, as both libraries ask. `residual`: how much the held limbs still
accelerate, largest of J a + bias in m/s^2 and rad/s^2.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

import bunraku as bk
from bunraku.algorithms.connection_equations import AGAIN, IMPULSE
from bunraku.bench import machine
from bunraku.bench import model_files as files
from bunraku.bench.peers import Pinocchio, required
from bunraku.bench.timing import Contestant, Progress, each, race, speedup
from bunraku.entries.loop_entries import closed_one, closed_plain
from bunraku.errors import BunrakuError

ROBOT = "talos_reduced.urdf"  # of example-robot-data: 38 velocities on a free base
LIMBS = ("left_sole_link", "right_sole_link", "arm_left_7_link", "arm_right_7_link")
HELD = (1, 2, 4)
BATCH = 4096
IN_TURN = 64
DISTINCT = 256        # closed states of a batch
MU = 1e-10
AGREEMENT = 1e-6      # relative to the largest acceleration: what one proximal iteration reaches
TARGETS = {"python": 2.0, "batch": 10.0, "chain": 10.0, "human": 6.0, "change": 500.0, "exponent": 1.1}


@dataclass
class Options:
    """How long to measure."""

    seconds: float = 5.0                             # per race
    links: tuple[int, ...] = (1000, 10_000, 100_000)
    bars: tuple[int, ...] = (10, 100, 1000)
    rounds: int = 7                                  # of scaling

    @classmethod
    def quick(cls):
        return cls(seconds=1.0, links=(1000, 10_000), bars=(10, 100), rounds=5)


def run(options: Options | None = None, quiet: bool = False) -> dict:
    """Everything, as plain numbers; `structure_report.text` makes it readable."""
    options = options or Options()
    required("pinocchio")
    path = files.find(ROBOT)
    progress = Progress(len(HELD) + 3 + len(options.links) + len(options.bars), quiet)
    try:
        robots = []
        for held in HELD:
            progress(f"{held} limb{'s' * (held > 1)} held")
            robots.append(_held(files.read(path)[0], held, options))
            progress.done()
        progress("schedules")
        schedules = _schedules(options)
        progress.done()
        progress("connect and cut")
        changes = _changes(options)
        progress.done()
        scaling = {"two_loops": _scaling(two_loops, options.links, options, progress),
                   "four_bars": _scaling(four_bars, options.bars, options, progress)}
    finally:
        progress.close()
    return {"bunraku": bk.__version__, "machine": machine.describe(), "batch": BATCH, "robots": robots,
            "schedules": schedules, "changes": changes, "scaling": scaling,
            "targets": target_lines(robots, schedules, changes, scaling)}


# -- a robot with limbs held, beside Pinocchio -----------------------------------------------------------------------


def held_states(m: bk.Mechanism, many: int, seed: int = 0):
    """Random states that fit the limbs held: DISTINCT of them, over and over, with random torques each."""
    rng = np.random.default_rng(seed)
    states: list = []
    while len(states) < min(many, DISTINCT):
        q = m.integrate(m.neutral(), 0.3 * rng.normal(size=m.nv))
        with contextlib.suppress(bk.ConstraintError):  # out of reach
            states.append(bk.project(m, q, 0.3 * rng.normal(size=m.nv)))
    q, v = (np.resize(x, (many, *np.shape(x)[1:])) for x in zip(*states, strict=True))
    return q, v, 10.0 * rng.normal(size=(many, m.nv))


def hold(m: bk.Mechanism, limbs, q=None) -> None:
    """Weld limbs to the ground where they are at q, the neutral pose unless given."""
    where = bk.poses(m, m.neutral() if q is None else q)
    for name in limbs:
        rotation, position = where[name]
        m.connect("ground", name, bk.Fixed(), f"{name}_held", position_a=position, rotation_a=rotation)


class Limbs:
    """The same limbs held in Pinocchio."""

    def __init__(self, m: bk.Mechanism, limbs):
        self.peer = peer = Pinocchio(m)
        self.pin = pin = peer.pin
        self.constraints = pin.StdVec_RigidConstraintModel()
        for name in limbs:
            joint, frame = peer.carrier[m.link_names.index(name)]
            self.constraints.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_6D, peer.model, joint, frame,
                                                             pin.ReferenceFrame.LOCAL))
        self.data = pin.StdVec_RigidConstraintData()
        for constraint in self.constraints:
            self.data.append(constraint.createData())
        pin.initConstraintDynamics(peer.model, peer.data, self.constraints, self.data)
        self.once = pin.ProximalSettings(1e-12, 1e-12, MU, 1)
        self.thorough = pin.ProximalSettings(1e-12, 1e-12, MU, 10)

    def call(self, settings) -> Callable:
        peer, solve = self.peer, self.pin.constraintDynamics
        return lambda q, v, tau: solve(peer.model, peer.data, q, v, tau, self.constraints, self.data, settings)

    def forward(self, q, v, tau, settings):
        peer = self.peer
        return peer.back(self.call(settings)(peer.q(q), peer.v(v), peer.v(tau)))


def _held(tree: bk.Mechanism, held: int, options: Options) -> dict:
    m = tree.copy()
    hold(m, LIMBS[:held])
    limbs = Limbs(tree, LIMBS[:held])
    q, v, tau = held_states(m, BATCH)
    few = [x[:IN_TURN].copy() for x in (q, v, tau)]
    agreement = _agreement(m, limbs, *few)
    if not agreement["pin.constraintDynamics"] < AGREEMENT:
        raise BunrakuError(f"{held} limbs held: the libraries disagree, so there is nothing to compare: {agreement}")
    theirs = (limbs.peer.q(few[0]), limbs.peer.v(few[1]), limbs.peer.v(few[2]))
    contestants = [
        Contestant("pin.constraintDynamics", each(limbs.call(limbs.once), *theirs), IN_TURN),
        Contestant("... to its own accuracy", each(limbs.call(limbs.thorough), *theirs), IN_TURN),
        Contestant("bunraku, one call from Python", each(functools.partial(bk.forward_dynamics, m), *few), IN_TURN,
                   target=TARGETS["python"]),
        Contestant(f"bunraku, batch of {BATCH}, one core", lambda: bk.forward_dynamics(m, q, v, tau, workers=1), BATCH,
                   target=TARGETS["batch"]),
    ]
    race(contestants, options.seconds)
    faster = min(contestants[:2], key=lambda c: c.best)
    return {"robot": ROBOT, "held": held, "dof": m.nv, "constraints": m.plan().loops.rows, "agreement": agreement,
            "rows": [_row(c, faster if c.target else None) for c in contestants]}


def _agreement(m, limbs, q, v, tau) -> dict:
    """Largest difference from ours, relative to the largest acceleration, and the constraint residual."""
    worst = {"pin.constraintDynamics": 0.0, "thorough": 0.0, "batch": 0.0, "residual": 0.0, "residual_pin": 0.0,
             "residual_thorough": 0.0}
    batch = bk.forward_dynamics(m, q, v, tau)
    for k in range(len(q)):
        state = (q[k], v[k], tau[k])
        ours = bk.forward_dynamics(m, *state)
        once, thorough = limbs.forward(*state, limbs.once), limbs.forward(*state, limbs.thorough)
        size, found = np.abs(ours).max(), bk.constraints(m, q[k], v[k])
        for key, value in (("pin.constraintDynamics", np.abs(once - ours).max() / size),
                           ("thorough", np.abs(thorough - ours).max() / size),
                           ("batch", np.abs(batch[k] - ours).max() / size),
                           ("residual", np.abs(found.jacobian @ ours + found.bias).max()),
                           ("residual_pin", np.abs(found.jacobian @ once + found.bias).max()),
                           ("residual_thorough", np.abs(found.jacobian @ thorough + found.bias).max())):
            worst[key] = max(worst[key], float(value))
    return worst


def _row(c: Contestant, against: Contestant | None = None) -> dict:
    row: dict[str, Any] = {"label": c.label, "best_us": 1e6 * c.best, "median_us": 1e6 * c.median}
    if against is not None:
        row["against"] = against.label
        row["speedup"], row["speedup_median"] = speedup(against, c)
        if c.target is not None:
            row["target"], row["met"] = c.target, row["speedup"] >= c.target
    return row


# -- schedules and changes -------------------------------------------------------------------------------------------


def _schedules(options: Options) -> list[dict]:
    """One state, one call from Python: articulated bodies, assembly tips to root, assembly in balanced order."""
    out = []
    for name, m, target in (("chain of 32 balls", bk.models.chain(32, "spherical"), TARGETS["chain"]),
                            ("human 48", bk.models.human(48), TARGETS["human"])):
        q, v, tau = (x[0] for x in _random(m))
        balanced = bk.schedule(m, workers=len(m.links), exactly=True)
        ways: dict[str, dict] = {"articulated bodies": {}, "assembly, tips to root": {"method": "ada"}}
        ways[f"assembly, balanced (depth {balanced.depth})"] = {"method": "ada", "schedule": balanced}
        a = bk.forward_dynamics(m, q, v, tau)
        contestants = [Contestant(label, functools.partial(bk.forward_dynamics, m, q, v, tau, **how), 1)
                       for label, how in ways.items()]
        race(contestants, options.seconds / 2)
        worst = max(float(np.abs(c.run() - a).max() / np.abs(a).max()) for c in contestants)
        out.append({"name": name, "dof": m.nv, "links": len(m.links), "target": target, "difference": worst,
                    "rows": [_row(c) for c in contestants]})
    return out


def _random(m, many=1):
    rng = np.random.default_rng(0)
    q = m.integrate(np.tile(m.neutral(), (many, 1)), 0.3 * rng.normal(size=(many, m.nv)))
    return q, rng.normal(size=(many, m.nv)), 10.0 * rng.normal(size=(many, m.nv))


def _changes(options: Options) -> list[dict]:
    """A change of structure and the next evaluation: human 48, hands to a bar and off it, a knee cut."""
    m = bk.models.human(48)
    q, v, tau = (x[0] for x in _random(m))
    where, number = bk.poses(m, q), count()
    rotation, position = where["left_hand"]
    held = m.copy()
    held.connect("ground", "right_hand", bk.Spherical(), "right", position_a=where["right_hand"][1])

    def connect(base):
        twin = base.copy()
        start = time.perf_counter()
        twin.connect("ground", "left_hand", bk.Spherical(), f"grip{next(number)}", position_a=position,
                     rotation_a=rotation)
        bk.forward_dynamics(twin, q, v, tau)
        return time.perf_counter() - start

    def cut(base, name):
        twin = base.copy()
        twin.plan()
        start = time.perf_counter()
        carry = twin.cut(name)
        new = carry(q, v)
        bk.forward_dynamics(twin, *new)
        return time.perf_counter() - start

    cases = {"connect a hand, then evaluate": lambda: connect(m),
             "connect the other, then evaluate": lambda: connect(held),
             "cut a hand off, then evaluate": lambda: cut(held, "right"),
             "cut a knee, then evaluate": lambda: cut(m, "left_knee")}
    times: dict[str, list[float]] = {name: [] for name in cases}
    for case in cases.values():
        case()
    end = time.perf_counter() + options.seconds / 2
    while time.perf_counter() < end:
        for name, case in cases.items():
            times[name].append(case())
    return [{"name": name, "best_us": 1e6 * min(t), "median_us": 1e6 * float(np.median(t))}
            for name, t in times.items()]


# -- scaling ---------------------------------------------------------------------------------------------------------


def two_loops(n: int):
    """A chain of n hinges in space with two long loops, and a state of it."""
    m = bk.models.chain(n, axes=((0, 1, 0), (1, 0, 0)))
    q, _, tau = (x[0] for x in _random(m))
    where = bk.poses(m, q)
    for name, a, b in (("first", n // 10, n // 2 - 1), ("second", n // 2, n - n // 10 - 1)):
        (R_a, x_a), (_, x_b) = where[f"link{a}"], where[f"link{b}"]
        m.connect(f"link{a}", f"link{b}", bk.Spherical(), name, position_a=R_a.T @ (x_b - x_a))
    return m, q, np.zeros(m.nv), tau


def four_bars(n: int):
    """n four-bars in a row, and a state of them."""
    m = bk.models.n_four_bar(n)
    return m, m.neutral(), np.zeros(m.nv), np.random.default_rng(0).normal(size=m.nv)


def _scaling(build, sizes, options: Options, progress) -> dict:
    """Time of one state in compiled code, its memory at hand, over size; interleaved; and the exponent of time."""
    cases, times, impulses, rows = {}, {}, {}, []
    for n in sizes:
        progress(f"{build.__name__.replace('_', ' ')}: {n}")
        m, *state = build(n)
        plan = m.plan()
        loops = plan.loops
        cases[n] = (m, functools.partial(closed_plain.load().call, plan.with_rotors, *state, np.empty(m.nv),
                                         np.empty(loops.work_size)))
        bk.forward_dynamics(m, *state)  # an error if there is no solution
        times[n] = [_time(cases[n][1], 1)]
        impulses[n] = _impulses(m, *state[:2])
        progress.done()
    for _ in range(options.rounds):
        for n, (_m, solve) in cases.items():
            if sum(times[n]) < options.seconds:
                times[n].append(_time(solve, max(1, 3000 // n)))
    best = [min(times[n]) for n in sizes]
    for n, t in zip(sizes, best, strict=True):
        m = cases[n][0]
        loops, links = m.plan().loops, len(m.links)
        rows.append({"size": n, "links": links, "constraints": loops.rows, "ms": 1e3 * t,
                     "us_per_link": 1e6 * t / links, "bytes_per_link": 8.0 * loops.work_size / links,
                     "again": impulses[n]})
    return {"rows": rows, "exponent": float(np.polyfit(np.log(sizes), np.log(best), 1)[0])}


def _impulses(m, q, v) -> float:
    """Time of an impulse that closes velocities by the factors at hand, as a part of that with new ones."""
    plan, best = m.plan(), [np.inf, np.inf]
    loops, (change, push) = plan.loops, np.empty((2, m.nv))
    constants = plan.with_rotors, loops.dof_f, q, v, plan.zero_tau, plan.nothing, plan.nothing
    work = np.empty(loops.work_size)
    solve = closed_one.load().call
    for _ in range(15):
        for k, (mode, out) in enumerate(((IMPULSE, change), (IMPULSE + AGAIN, push))):
            best[k] = min(best[k], _time(functools.partial(solve, mode, *constants, out, work), 1))
        if not np.allclose(change, push, rtol=1e-6, atol=1e-9 * (1.0 + np.abs(change).max())):
            raise BunrakuError(f"{m.name}: an impulse by the factors at hand differs from one by new factors")
    return best[1] / best[0]


def _time(solve, repeats) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        solve()
    return (time.perf_counter() - start) / repeats


def target_lines(robots, schedules, changes, scaling) -> list[dict]:
    """Every target, the measured value, and whether it is met."""
    rows = [{"what": f"{robot['held']} held: {row['label'].removeprefix('bunraku, ')}", "measured": row["speedup"],
             "target": row["target"], "unit": "x pin", "met": row["met"]}
            for robot in robots for row in robot["rows"] if "target" in row]
    for s in schedules:
        us = s["rows"][1]["best_us"]
        rows.append({"what": f"{s['name']}: assembly, tips to root", "measured": us, "target": s["target"],
                     "unit": "us", "met": us <= s["target"]})
    for c in changes:
        rows.append({"what": f"human 48: {c['name']}", "measured": c["best_us"], "target": TARGETS["change"],
                     "unit": "us", "met": c["best_us"] <= TARGETS["change"]})
    for what, key in (("two loops in a chain: exponent", "two_loops"), ("n four-bars: exponent", "four_bars")):
        exponent = scaling[key]["exponent"]
        rows.append({"what": what, "measured": exponent, "target": TARGETS["exponent"], "unit": "",
                     "met": exponent <= TARGETS["exponent"]})
    return rows
