"""The benchmark of joints: Coulomb friction and hard limits against closed forms, beside MuJoCo's frictionloss.

    block            a sliding block stops after m v^2 / (2 F)
    belt             held back by a spring, on a belt with friction: rides until k x = F, then swings about F / k
    pendulum         Coulomb friction in its hinge: the swings follow from the energy balance, and the rest at the end
    arm              held out by 95 % of its friction: it does not move
    bounce           a mass on a hard limit with restitution 0.6: height after the first rebound
    chain            a chain of hinges with friction: the time of a step

Every case has the error at its end. Event-driven runs (gear) have tolerances of 1e-11; steps, and MuJoCo's, are of
2 ms; a second run with half the step gives the order. MuJoCo: Euler, `frictionloss` and `limited` at their defaults,
and with the stiffest constraints that its manual allows for the step (time constants of two steps, impedance 0.9999).
It has no restitution: the limit is a spring of that damping ratio. Its belt is at rest, and the spring's other end is
moved instead, by a position servo.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

import bunraku as bk
from bunraku.bench import machine
from bunraku.bench.peers import required
from bunraku.bench.report import painter, target_lines
from bunraku.bench.timing import Progress

G, STEP, E = 9.81, 2e-3, 0.6
EVENTS, STEPS, DEFAULT, STIFF = "bunraku, events", "bunraku, steps", "MuJoCo, defaults", "MuJoCo, stiff"
EXACT = {"rtol": 1e-11, "atol": 1e-13}
LINKS = 12
ROUNDS = 7
TARGET = 1e-8  # errors of event-driven runs


@dataclass
class Options:
    """How long to measure."""

    hold: float = 60.0     # [s] the arm is held
    seconds: float = 6.0   # of the rounds of the chain

    @classmethod
    def quick(cls):
        return cls(hold=6.0, seconds=1.0)


class Case(NamedTuple):
    """A mechanism and the same in MJCF, from (q, v) for some seconds; `error(q, v)` at the end."""

    title: str
    make: Callable[[], bk.Mechanism]
    xml: str
    q: list[float]
    v: list[float]
    seconds: float
    error: Callable[[np.ndarray], float]
    unit: str
    exact: float = TARGET   # largest error by events
    order: bool = True      # whether the error of steps halves with the step
    options: dict = {}      # noqa: RUF012
    belt: float = 0.0       # [m/s] its speed


# -- cases -------------------------------------------------------------------------------------------------------------


def slider(axis, **joint) -> bk.Mechanism:
    m = bk.Mechanism()
    m.add_link("block", joint=bk.Prismatic(axis, **joint), mass=2.0, inertia=(0.1, 0.1, 0.1))
    return m


def mjcf(body: str, rest: str = "") -> str:
    return f"<mujoco><option gravity='0 0 -9.81'/><worldbody>{body}</worldbody>{rest}</mujoco>"


BLOCK = "<inertial pos='0 0 0' mass='2' diaginertia='.1 .1 .1'/>"


def block() -> Case:
    F, v = 0.5, 1.0
    return Case("a sliding block stops", lambda: slider((1, 0, 0), friction=F),
                mjcf(f"<body><joint type='slide' axis='1 0 0' frictionloss='{F}'/>{BLOCK}</body>"),
                [0.0], [v], 6.0, lambda q: q[0] - v**2 / F, "m")


def belt() -> Case:
    F, k, mass, V = 3.0, 50.0, 2.0, 0.4
    slips, w, end = F / (k * V), math.sqrt(k / mass), 1.3

    def make():
        m = bk.Mechanism()
        m.add_link("belt", joint=bk.Prismatic((1, 0, 0)), mass=1.0)
        m.add_link("block", "belt", bk.Prismatic((1, 0, 0), friction=F), mass=mass, inertia=(0.1, 0.1, 0.1))
        m.add_spring("ground", "block", stiffness=k)
        return m

    xml = mjcf(f"<body><joint name='b' type='slide' axis='1 0 0' frictionloss='{F}'/>{BLOCK}</body>",
               f"<actuator><position joint='b' kp='{k}'/></actuator>")
    return Case("stick-slip on a belt", make, xml, [0.0, 0.0], [V, 0.0], end,
                lambda q: float(q.sum()) - F / k - V / w * math.sin(w * (end - slips)), "m",
                options={"prescribed": {"belt": lambda t: V * t}}, belt=V)


def pendulum() -> Case:
    F, mass, length, at = 0.4, 1.5, 0.6, 1.2
    weight, side = mass * G * length, 1.0
    while weight * abs(math.sin(at)) > F:
        start, side = at, -side

        def balance(b, start=start):
            return weight * (math.cos(b) - math.cos(start)) - F * abs(start - b)

        lowest = -side * math.asin(F / weight)  # where it is fastest
        at = brentq(balance, lowest, side * abs(start), xtol=1e-14)

    def make():
        m = bk.Mechanism()
        m.add_link("bob", joint=bk.Revolute((0, 1, 0), friction=F), mass=mass, com=(0, 0, -length))
        return m

    xml = mjcf(f"<body><joint type='hinge' axis='0 1 0' frictionloss='{F}'/>"
               f"<inertial pos='0 0 {-length}' mass='{mass}' diaginertia='1e-12 1e-12 1e-12'/></body>")
    return Case("Coulomb pendulum", make, xml, [1.2], [0.0], 12.0, lambda q: q[0] - at, "rad")


def arm(hold: float) -> Case:
    F = G * 0.5 / 0.95

    def make():
        m = bk.Mechanism()
        m.add_link("arm", joint=bk.Revolute((0, 1, 0), friction=F), mass=1.0, com=(0.5, 0, 0))
        return m

    xml = mjcf(f"<body><joint type='hinge' axis='0 1 0' frictionloss='{F}'/><inertial pos='.5 0 0' mass='1' "
               "diaginertia='1e-12 1e-12 1e-12'/></body>")
    return Case(f"an arm held for {hold:g} s", make, xml, [0.0], [0.0], hold, lambda q: q[0], "rad", 0.0, False)


def bounce() -> Case:
    height, first = 1.0, math.sqrt(2.0 / G)
    t = 0.7 - first
    ratio = -math.log(E) / math.hypot(math.pi, math.log(E))
    xml = mjcf(f"<body><joint type='slide' axis='0 0 1' limited='true' range='0 10' DAMPING='{ratio}'/>{BLOCK}</body>")
    return Case("a stop with restitution", lambda: slider((0, 0, 1), lower=0.0, hard_limits=True, restitution=E), xml,
                [height], [0.0], 0.7, lambda q: q[0] - (E * G * first * t - 0.5 * G * t * t), "m")


def cases(options: Options) -> dict[str, Case]:
    return {"block": block(), "belt": belt(), "pendulum": pendulum(), "arm": arm(options.hold), "bounce": bounce()}


# -- MuJoCo ------------------------------------------------------------------------------------------------------------


def model_of(xml: str, step: float, stiff: bool):
    """The model with steps of Euler's method; the limit of `DAMPING` as a spring of that damping ratio."""
    mujoco, ratio = required("mujoco"), "1"
    head, found, tail = xml.partition(" DAMPING='")
    if found:
        ratio, tail = tail.split("'", 1)
        xml = head + tail
    model = mujoco.MjModel.from_xml_string(xml)
    model.opt.timestep, model.opt.integrator = step, mujoco.mjtIntegrator.mjINT_EULER
    if stiff or found:
        model.jnt_solref[:], model.dof_solref[:] = (2 * step / float(ratio), float(ratio)), (2 * step, 1.0)
    if stiff:
        model.jnt_solimp[:, :2] = model.dof_solimp[:, :2] = 0.9999
    return model


def theirs(case: Case, step: float, stiff: bool) -> float:
    mujoco = required("mujoco")
    model = model_of(case.xml, step, stiff)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = case.q[-model.nq:], case.v[-model.nv:]
    for _ in range(round(case.seconds / step)):
        data.ctrl[:] = -case.belt * data.time
        mujoco.mj_step(model, data)
    return float(case.error(np.append(case.belt * data.time, data.qpos) if case.belt else data.qpos))


def ours(case: Case, **settings) -> float:
    sim = bk.Simulation(case.make(), case.q, case.v, record=None, **settings, **case.options)
    sim.advance(case.seconds)
    return float(case.error(np.asarray(sim.q)))


# -- the time of a step ------------------------------------------------------------------------------------------------


def chain(friction: float = 0.05):
    """(mechanism, MJCF) of LINKS hinges with friction."""
    m, parent = bk.Mechanism(), "ground"
    body = ""
    for k in range(LINKS):
        axis = (0, 1, 0) if k % 2 else (1, 0, 0)
        m.add_link(f"l{k}", parent, bk.Revolute(axis, friction=friction), position=(0, 0, -0.2 if k else 0.0), mass=1.0,
                   com=(0, 0, -0.1), inertia=(0.003, 0.003, 0.003))
        parent = f"l{k}"
        body += (f"<body pos='0 0 {-0.2 if k else 0}'><joint type='hinge' axis='{axis[0]} {axis[1]} {axis[2]}' "
                 f"frictionloss='{friction}'/><inertial pos='0 0 -.1' mass='1' diaginertia='.003 .003 .003'/>")
    return m, mjcf(body + LINKS * "</body>")


def speed(seconds: float) -> dict[str, float]:
    """[s] of processor time of a step of the chain, swinging for a second from the same state: the median of rounds."""
    mujoco = required("mujoco")
    rollout = required("mujoco.rollout")
    m, xml = chain()
    q, steps = 0.3 * np.cos(np.arange(LINKS)), 500
    found: dict[str, Callable[[], object]] = {STEPS: lambda: bk.Simulation(
        m, q, solver="symplectic_euler", step=STEP, record=None).advance(steps * STEP)}
    for label, stiff in ((DEFAULT, False), (STIFF, True)):
        model = model_of(xml, STEP, stiff)
        data, state = mujoco.MjData(model), np.concatenate([[0.0], q, np.zeros(LINKS)])[None]
        found[label] = partial(rollout.rollout, model, data, state, nstep=steps)
    times: dict[str, list[float]] = {label: [] for label in found}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[STEPS]) < ROUNDS:
        for label, advance in found.items():
            begin = time.process_time()
            advance()
            times[label].append((time.process_time() - begin) / steps)
    return {label: float(np.median(taken[1:])) for label, taken in times.items()}


# -- the benchmark -----------------------------------------------------------------------------------------------------


def run(options: Options | None = None, quiet: bool = False) -> dict:
    """All results as plain data; `text` formats them."""
    options = options or Options()
    table = cases(options)
    progress = Progress(len(table) + 1, quiet)
    found: dict = {}
    try:
        for name, case in table.items():
            progress(case.title)
            half = STEP / 2
            found[name] = {
                "title": case.title, "unit": case.unit, "exact": case.exact, "order": case.order,
                "errors": {EVENTS: ours(case, **EXACT), STEPS: ours(case, solver="symplectic_euler", step=STEP),
                           DEFAULT: theirs(case, STEP, False), STIFF: theirs(case, STEP, True)},
                "half": {STEPS: ours(case, solver="symplectic_euler", step=half), DEFAULT: theirs(case, half, False),
                         STIFF: theirs(case, half, True)}}
            progress.done()
        progress(f"a chain of {LINKS} hinges")
        times = speed(options.seconds)
        progress.done()
    finally:
        progress.close()
    return {"bunraku": bk.__version__, "machine": machine.describe(), "cases": found, "times": times,
            "targets": targets(found)}


def targets(found: dict) -> list[dict]:
    """Errors by events; the arm, which does not move in steps either."""
    rows = [(f"{case['title']}, by events: error", case["exact"], abs(case["errors"][EVENTS]), case["unit"])
            for case in found.values()]
    rows.append(("the arm, in steps: creep", 0.0, abs(found["arm"]["errors"][STEPS]), "rad"))
    return [{"what": what, "target": most, "measured": measured, "unit": unit, "met": measured <= most}
            for what, most, measured, unit in rows]


def text(result: dict, colour: bool = False) -> str:
    """Errors and times, then the targets."""
    paint, labels = painter(colour), (EVENTS, STEPS, DEFAULT, STIFF)
    versions = result["machine"]["versions"]
    lines = [paint("1", f"bunraku {result['bunraku']} beside MuJoCo {versions.get('mujoco', '?')}"),
             machine.line(result["machine"]), "",
             paint("1", f"error at the end, steps of {1e3 * STEP:g} ms (in brackets with half the step)"),
             f"{'':30}" + "".join(f"{label:>22}" for label in labels)]
    for case in result["cases"].values():
        row = f"{case['title'] + ' [' + case['unit'] + ']':30}"
        for label in labels:
            half = f" ({case['half'][label]:.0e})" if label in case["half"] else ""
            row += f"{case['errors'][label]:>12.1e}{half:>10}"
        lines.append(row)
    lines += ["", paint("1", f"a step of a chain of {LINKS} hinges with friction [us of processor time]")]
    lines += [f"{label:30}{1e6 * seconds:12.2f}" for label, seconds in result["times"].items()]
    return "\n".join([*lines, "", *target_lines(result["targets"], paint)])
