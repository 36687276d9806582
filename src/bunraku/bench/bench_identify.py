"""The benchmark of identification: simulated recordings with noise, and how often bounds of 95 % hold the truth.

    arm          seven hinges, each with friction and a rotor, in an exciting motion
    leg          a four-bar leg: thigh and lever driven at the hip, two passive joints and a loop
    angles       the arm again, from angles of encoders with noise and filtered, without velocities and accelerations

Every run starts from another wrong model (masses and inertias off by 30 %, centres of mass by 3 cm, no friction) and
has other noise. Bounds are those of the combinations that the motion determines (base parameters):

    each         part of all combinations of all runs within their own 95 % bounds; 95 % is expected
    together     runs in which all combinations at once are within the joint 95 % region (chi squared); 95 of 100
                 are expected, and somewhat more, since the bounds allow for a wrong given model as well

"angles" has no target: errors of velocity and acceleration are errors of the regressor, which bounds do not include.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

import bunraku as bk
from bunraku.bench import machine
from bunraku.bench.timing import Progress

LEVEL = 0.95
NOISE = 0.03       # of the size of each joint's torque
ENCODER = 5e-5     # [rad]
CUTOFF = 5.0       # [Hz]
WRONG, AWAY = 0.3, 0.03
AXES = ((0, 0, 1), (0, 1, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0))
JOINT = {"damping": 0.3, "friction": 0.6, "armature": 0.05}
HINGE = bk.Revolute((0, 1, 0), damping=0.1, friction=0.3, armature=0.02)


@dataclass
class Options:
    """How many runs, of how many samples."""

    runs: int = 100
    samples: int = 400

    @classmethod
    def quick(cls):
        return cls(runs=10, samples=200)


class Case(NamedTuple):
    """A mechanism in motion; `given(q, v, a, tau, rng)` returns what is known of it: arguments of `bk.identify`."""

    title: str
    m: bk.Mechanism
    motion: tuple[np.ndarray, np.ndarray, np.ndarray]
    given: Callable[..., dict]
    target: bool


# -- machines ----------------------------------------------------------------------------------------------------------


def arm() -> bk.Mechanism:
    """Seven hinges; links of different mass and shape."""
    m, parent, rng = bk.Mechanism(name="arm of seven joints"), "ground", np.random.default_rng(7)
    for k, axis in enumerate(AXES):
        x, y, z = sides = rng.uniform(0.05, 0.2, 3)
        mass = 400.0 * x * y * z + 1.0
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        inertia = turn @ np.diag(mass / 12.0 * (np.sum(sides**2) - sides**2)) @ turn.T
        m.add_link(f"link{k + 1}", parent, bk.Revolute(axis, **JOINT), joint_name=f"joint{k + 1}",
                   position=(0, 0, 0.2 if k else 0.0), mass=mass, com=0.08 * rng.normal(size=3), inertia=inertia)
        parent = f"link{k + 1}"
    return m


def leg() -> bk.Mechanism:
    """A parallelogram: the lever at the hip turns the shank through the coupler."""
    m = bk.Mechanism(name="four-bar leg")
    m.add_link("thigh", joint=HINGE, mass=2.0, com=(0.01, 0, -0.15), inertia=(0.03, 0.03, 0.004))
    m.add_link("lever", joint=HINGE, mass=0.5, com=(-0.03, 0, 0), inertia=(0.0005, 0.001, 0.001))
    m.add_link("shank", "thigh", bk.Revolute((0, 1, 0), damping=0.05), position=(0, 0, -0.3), mass=1.2,
               com=(0, 0, -0.12), inertia=(0.02, 0.02, 0.001), actuated=False)
    m.add_link("coupler", "lever", bk.Revolute((0, 1, 0)), position=(-0.06, 0, 0), mass=0.3, com=(0, 0, -0.15),
               inertia=(0.004, 0.004, 0.0001), actuated=False)
    m.connect("shank", "coupler", bk.Revolute((0, 1, 0)), name="pin", position_a=(-0.06, 0, 0), position_b=(0, 0, -0.3))
    return m


def leg_motion(samples: int, seconds: float = 10.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thigh and shank swing in Fourier series; the shank stays within 40 degrees of a right angle to the lever."""
    t, rng = np.linspace(0.0, seconds, samples), np.random.default_rng(2)
    x = np.zeros((3, samples, 2))                     # thigh, and knee: shank relative to the thigh
    for k in range(1, 6):
        w, (s, c) = 2.0 * np.pi / seconds * 2 * k, rng.normal(size=(2, 2)) * (0.35, 0.2) / k
        S, C = np.sin(w * t)[:, None], np.cos(w * t)[:, None]
        x += [s * S + c * C, w * (s * C - c * S), -w * w * (s * S + c * C)]
    thigh, knee = x[:, :, 0], x[:, :, 1]
    return tuple(np.stack([thigh, thigh + knee, knee, -knee], axis=2))


def wrong(m: bk.Mechanism, rng) -> bk.Mechanism:
    """A wrong model to start from: other masses, inertias and centres of mass, no friction, half the rotors."""
    for link in m.links:
        factor = np.exp(WRONG * rng.normal())
        m = m.with_link(link.name, mass=link.mass * factor, com=link.com + AWAY * rng.normal(size=3),
                        inertia=link.inertia * factor * np.exp(WRONG * rng.normal()))
        m = m.with_joint(link.joint_name, damping=0.0, friction=0.0, armature=0.5 * link.joint.armature)
    return m


def truth(m: bk.Mechanism, names) -> np.ndarray:
    """The true parameters, by the names of an identification."""
    parts = ("mass", "mx", "my", "mz", "ixx", "ixy", "iyy", "ixz", "iyz", "izz")
    inertial = dict(zip([f"{link}.{part}" for link in m.link_names for part in parts], bk.inertial_parameters(m),
                        strict=True))
    return np.array([inertial[name] if name in inertial else
                     getattr(m.joint(name.rpartition(".")[0]), name.rpartition(".")[2]) for name in names])


def with_noise(q, v, a, tau, rng) -> dict:
    """Exact motion, torques with noise."""
    size = np.sqrt(np.mean(tau**2, axis=0))
    return {"q": q, "v": v, "a": a, "tau": tau + NOISE * size * rng.normal(size=tau.shape)}


def cases(samples: int) -> list[Case]:
    m = arm()
    motion = bk.exciting_motion(m, 10.0, rate=samples / 10.0, tries=50)
    states = motion.q, motion.v, motion.a
    fast = bk.exciting_motion(m, 10.0, rate=250.0, tries=50)
    t = fast.t

    def angles(q, v, a, tau, rng):
        size = np.sqrt(np.mean(tau**2, axis=0))
        return {"q": q + ENCODER * rng.normal(size=q.shape), "t": t, "cutoff": CUTOFF,
                "tau": tau + NOISE * size * rng.normal(size=tau.shape)}

    return [Case("arm", m, states, with_noise, True), Case("leg", leg(), leg_motion(samples), with_noise, True),
            Case("arm, angles only", m, (fast.q, fast.v, fast.a), angles, False)]


# -- runs --------------------------------------------------------------------------------------------------------------


def run(options: Options | None = None, quiet: bool = False) -> dict:
    """All results as plain data."""
    options = options or Options()
    todo = cases(options.samples)
    progress = Progress(len(todo), quiet)
    rows = []
    try:
        for case in todo:
            progress(case.title)
            rows.append(_case(case, options.runs))
            progress.done()
    finally:
        progress.close()
    targets = [{"name": f"{row['title']}: runs with all combinations within the joint 95 % region",
                "value": row["together"], "target": int(LEVEL * options.runs),
                "met": row["together"] >= int(LEVEL * options.runs)} for row, case in zip(rows, todo, strict=True)
               if case.target]
    targets.append({"name": "physically consistent fits", "value": sum(row["consistent"] for row in rows),
                    "target": options.runs * len(rows),
                    "met": all(row["consistent"] == options.runs for row in rows)})
    return {"bunraku": bk.__version__, "machine": machine.describe(), "runs": options.runs, "noise": NOISE,
            "rows": rows, "targets": targets}


def _case(case: Case, runs: int) -> dict:
    m, (q, v, a) = case.m, case.motion
    tau = bk.inverse_dynamics(m, q, v, a)
    each, together, consistent, before, after, seconds, rank = [], 0, 0, [], [], [], 0
    for k in range(runs):
        rng = np.random.default_rng(1000 + k)
        start = wrong(m, rng)
        known = case.given(q, v, a, tau, rng)
        begin = time.perf_counter()
        r = bk.identify(start, **known)
        seconds.append(time.perf_counter() - begin)
        found = r.identifiable
        rank = found.rank
        error = found.values - found.matrix @ truth(m, r.parameters)
        each.append(np.mean(np.abs(error) <= 1.96 * found.deviation))
        together += bool(error @ np.linalg.solve(found.covariance, error) <= chi2.ppf(LEVEL, rank))
        consistent += _consistent(r.mechanism)
        before.append(_error(start, q, v, a, tau))
        after.append(_error(r.mechanism, q, v, a, tau))
    return {"title": case.title, "samples": r.samples, "parameters": len(r.parameters), "rank": rank,
            "each": float(np.mean(each)), "together": together, "consistent": consistent,
            "before": float(np.median(before)), "after": float(np.median(after)), "seconds": float(np.median(seconds))}


def _consistent(m: bk.Mechanism) -> bool:
    """Whether every link is a body that could be built, and no friction or rotor is negative."""
    for link in m.links:
        moments = np.linalg.eigvalsh(link.inertia)
        if not (link.mass > 0.0 and moments[0] > 0.0 and moments[0] + moments[1] >= moments[2]):
            return False
    return True


def _error(m: bk.Mechanism, q, v, a, tau) -> float:
    """Of the torques without noise, relative to their size."""
    return float(np.sqrt(np.mean((bk.inverse_dynamics(m, q, v, a) - tau) ** 2) / np.mean(tau**2)))


def text(result: dict) -> str:
    """The result as a page."""
    runs = result["runs"]
    lines = [f"bunraku {result['bunraku']}: {runs} identifications from simulated recordings, torque noise "
             f"{result['noise']:.0%} of each joint's torque", machine.line(result["machine"]), "",
             f"  {'':<18}{'samples':>8}{'unknowns':>9}{'found':>6}{'each':>8}{'together':>10}{'torque error':>22}"
             f"{'ms':>7}"]
    lines += [f"  {row['title']:<18}{row['samples']:8}{row['parameters']:9}{row['rank']:6}{row['each']:8.1%}"
              f"{row['together']:6}/{runs:<3}{row['before']:12.1%} ->{row['after']:6.2%}{1e3 * row['seconds']:8.0f}"
              for row in result["rows"]]
    lines += ["", *(f"  {'PASS' if t['met'] else 'MISS'}  {t['name']}: {t['value']} (at least {t['target']})"
                    for t in result["targets"])]
    return "\n".join(lines)
