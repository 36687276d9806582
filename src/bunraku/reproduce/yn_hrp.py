"""The humanoid simulation of [YN-HRP]: a 34-DOF figure, 2 s of motion at 2 ms, by assembly and by the O(N^3) method.
Its table 1 and fig. 3 are in `yn_hrp_processes.py`.

The paper: 6.8 s with assembly and disassembly, 17 s with the O(N^3) method of [YN99], both serial on a 1 GHz Pentium
III; a ratio of 0.40, while its abstract says 1/3 for 30-40 degrees of freedom. Without collision checks and display.

The motion is ours, since the paper does not give one: the figure stands with both feet held to the ground, bends its
knees and raises its arms, and halfway lets the right foot go and lifts the leg. Torques come from closed-chain inverse
dynamics once; they and a feedback that holds the figure on its path drive both methods: symplectic Euler steps, one
forward dynamics each, loops closed after every step. Timed is forward dynamics alone: for assembly
`bk.forward_dynamics` with everything it does in Python, for the O(N^3) method the compiled function, which favours the
latter. Then the same motion by `bk.Simulation`, timed as a whole: torques, forward dynamics, closing of the loops.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import bunraku as bk
from bunraku.entries.reference import unit_vector_loops
from bunraku.reproduce import yn_hrp_processes as processes
from bunraku.reproduce.page import finish, plots_in_a_row
from bunraku.reproduce.speedups import Progress, nothing

PAPER: dict[str, Any] = {"assembly_s": 6.8, "unit_vector_s": 17.0, "ratio": 0.40, "claimed_ratio": 1 / 3,
                         "simulated_s": 2.0, "machine": "Pentium III, 1 GHz"}
DOF, STEP = 34, 2e-3
FREQUENCY = 12.0  # how fast joints follow their targets [rad/s]
HOLD = 60.0       # feedback that holds the figure on its path [rad/s]; the trunk on bent legs topples at 28 1/s
FEET = ("left_foot", "right_foot")

# Turn of joints at moments of the motion (shares of its length), as rotation vectors [rad]; others are straight
POSES: tuple[tuple[float, dict], ...] = (
    (0.0, {}),
    (0.35, {"hip": (0, -0.8, 0), "knee": (0, 1.5, 0), "ankle": (0, -0.7, 0), "waist": (0, 0.3, 0),
            "shoulder": (0, -1.2, 0), "elbow": (0, -0.4, 0)}),
    (0.5, {"hip": (0, -0.3, 0), "knee": (0, 0.55, 0), "ankle": (0, -0.25, 0), "shoulder": (0, -0.8, 0)}),
    (0.8, {"left_hip": (0, -0.3, 0), "left_knee": (0, 0.55, 0), "left_ankle": (0, -0.25, 0),
           "right_hip": (0, -1.3, 0), "right_knee": (0, 1.4, 0), "left_shoulder": (0.9, -0.3, 0),
           "right_shoulder": (-0.9, 0.3, 0)}),
    (1.0, {"left_hip": (0, -0.3, 0), "left_knee": (0, 0.55, 0), "left_ankle": (0, -0.25, 0),
           "right_hip": (0, -0.6, 0), "right_knee": (0, 0.8, 0)}),
)


@dataclass
class Options:
    """How much to do."""

    seconds: float = 2.0
    repeats: int = 5                              # of the whole motion, for the best time
    chains: tuple[int, ...] = (4, 8, 16, 32, 64)  # links of chains of balls held at both ends
    rounds: int = 25

    @classmethod
    def quick(cls):
        return cls(seconds=0.4, repeats=2, chains=(4, 16), rounds=7)


def pieces(options: Options) -> int:
    """How often `run` says what begins."""
    return 4


def run(options: Options | None = None, progress: Progress = nothing) -> dict:
    """Everything, as plain numbers."""
    options = options or Options()
    progress("the motion")
    motion = Motion(round(options.seconds / STEP))
    progress("2 s of a figure")
    figure = _figure(motion, options)
    progress("cost over degrees of freedom")
    scaling = _scaling(options)
    progress("several processes")
    return {"paper": PAPER, "figure": figure, "scaling": scaling, "processes": processes.run(options.rounds)}


# -- the motion ------------------------------------------------------------------------------------------------------


def standing(dof: int = DOF) -> bk.Mechanism:
    """A figure with both feet held to the ground where they stand."""
    m = bk.models.human(dof)
    where = bk.poses(m, m.neutral())
    for foot in FEET:
        rotation, position = where[foot]
        m.connect("ground", foot, bk.Fixed(), f"{foot}_held", position_a=position, rotation_a=rotation)
    return m


def target(m: bk.Mechanism, share: float) -> np.ndarray:
    """Where the joints should be at a share of the motion."""
    times = [t for t, _ in POSES]
    k = min(max(int(np.searchsorted(times, share)) - 1, 0), len(times) - 2)
    (t0, before), (t1, after) = list(pairwise(POSES))[k]
    s = min(max((share - t0) / (t1 - t0), 0.0), 1.0)
    s = s**3 * (10.0 - 15.0 * s + 6.0 * s * s)
    dq = np.zeros(m.nv)
    for name in m.joint_names:
        turn = (1.0 - s) * _turn(before, name) + s * _turn(after, name)
        joint, where = m.joint(name), m.v_slice(name)
        if isinstance(joint, bk.Spherical):
            dq[where] = turn
        elif isinstance(joint, bk.Revolute):
            dq[where] = joint.axis @ turn
    return m.integrate(m.neutral(), dq)


def _turn(pose, name):
    return np.array(pose.get(name, pose.get(name.split("_")[-1], (0.0, 0.0, 0.0))), float)


class Motion:
    """The structures, the torques of every step, and the states they lead through."""

    def __init__(self, steps: int):
        both = standing()
        one = both.copy()
        one.cut(f"{FEET[1]}_held")
        self.steps, self.structures = steps, (both, one)
        self.released = steps // 2
        self.tau, self.v = np.empty((2, steps, both.nv))
        self.q = np.empty((steps, both.nq))
        self.stiffness = np.zeros((steps, both.nv, both.nv))  # of the feedback: as stiff as the joints are heavy
        q, v, joints = both.neutral(), np.zeros(both.nv), slice(6, both.nv)  # the pelvis is not driven
        for k in range(steps):
            m = self.at(k)
            self.q[k], self.v[k] = q, v
            wanted = FREQUENCY * (FREQUENCY * m.difference(q, target(m, k / steps)) - 2.0 * v)
            chain = bk.closed_chain(m, q, v)
            follow = chain.W @ np.linalg.pinv(chain.W[joints])
            self.stiffness[k, joints, joints] = HOLD**2 * follow.T @ bk.mass_matrix(m, q) @ follow
            a_G = np.linalg.lstsq(chain.W[joints], (wanted - chain.at_rest)[joints], rcond=None)[0]
            self.tau[k] = bk.inverse_dynamics(m, q, v, chain.accelerations(a_G))
            q, v = self.step(k, q, v, bk.forward_dynamics(m, q, v, self.tau[k]))

    def at(self, k: int) -> bk.Mechanism:
        return self.structures[k >= self.released]

    def step(self, k: int, q, v, a):
        """Symplectic Euler, and the nearest state with closed loops."""
        v = v + STEP * a
        return bk.project(self.at(k), self.structures[0].integrate(q, STEP * v), v)

    def play(self, method: Callable) -> tuple[float, float, np.ndarray]:
        """(seconds in forward dynamics, seconds in all, coordinates of every step)."""
        solve = [method(m) for m in self.structures]
        path = np.empty((self.steps, self.structures[0].nq))
        q, v, spent, clock = self.q[0], self.v[0], 0.0, time.perf_counter
        begin = clock()
        for k in range(self.steps):
            off = self.structures[0].difference(self.q[k], q) + 2.0 / HOLD * (v - self.v[k])
            tau = self.tau[k] - self.stiffness[k] @ off
            start = clock()
            a = solve[k >= self.released](q, v, tau)
            spent += clock() - start
            q, v = self.step(k, q, v, a)
            path[k] = q
        return spent, clock() - begin, path

    def simulate(self) -> tuple[float, bk.Simulation]:
        """(seconds in all, the simulation at its end)."""
        m = self.structures[0]
        sim = bk.Simulation(m, self.q[0], self.v[0], "symplectic_euler", step=STEP, actuation=follow,
                            params=self.params(), record=None, workers=1, progress=False)
        start = time.perf_counter()
        sim.run(until=self.released * STEP)
        sim.cut(f"{FEET[1]}_held")
        sim.run(until=self.steps * STEP)
        return time.perf_counter() - start, sim

    def params(self) -> np.ndarray:
        """The motion for `follow`: kinds of joints, then for every step q, v, torques and feedback."""
        m = self.structures[0]
        kinds = [(m.q_slice(name).start, m.v_slice(name).start, isinstance(m.joint(name), bk.Spherical))
                 for name in m.joint_names if isinstance(m.joint(name), (bk.Spherical, bk.Revolute))]
        rows = np.hstack([self.q, self.v, self.tau, self.stiffness.reshape(self.steps, -1)])
        return np.concatenate([[len(kinds), self.steps], np.ravel(kinds), rows.ravel()])


@bk.actuation
def follow(t, q, v, params, tau):
    """The torques of `Motion.play`, compiled: those of the path and its feedback."""
    nq, nv, joints = len(q), len(v), int(params[0])
    size = nq + 2 * nv + nv * nv
    k = min(int(t / STEP + 0.5), int(params[1]) - 1)
    path = params[2 + 3 * joints + k * size:][:size]
    off = 2.0 / HOLD * (v - path[nq:nq + nv])
    for j in range(joints):
        i, o, ball = int(params[2 + 3 * j]), int(params[3 + 3 * j]), params[4 + 3 * j] > 0.0
        if not ball:
            off[o] += q[i] - path[i]
            continue
        w, x, y, z = path[i], -path[i + 1], -path[i + 2], -path[i + 3]  # turn from the path, small: 2 vec(p* q)
        W, X, Y, Z = q[i], q[i + 1], q[i + 2], q[i + 3]
        off[o] += 2.0 * (w * X + x * W + y * Z - z * Y)
        off[o + 1] += 2.0 * (w * Y - x * Z + y * W + z * X)
        off[o + 2] += 2.0 * (w * Z + x * Y - y * X + z * W)
    for i in range(nv):
        tau[i] = path[nq + nv + i]
        for j in range(nv):
            tau[i] -= path[nq + 2 * nv + i * nv + j] * off[j]


def assembly(m: bk.Mechanism):
    """Forward dynamics as people call it."""
    return lambda q, v, tau: bk.forward_dynamics(m, q, v, tau)


def unit_vectors(m: bk.Mechanism):
    """The O(N^3) method, compiled, without anything around it."""
    plan = m.plan()
    loops, a = plan.loops, np.empty((1, m.nv))
    multipliers, answers = np.empty((1, loops.rows)), np.zeros(1, np.uint8)
    no_drives, no_forces = np.zeros((1, 0)), np.zeros((0, 6 * plan.links))
    call = unit_vector_loops.load().call

    def solve(q, v, tau):
        call(plan.arrays, q[None], v[None], tau[None], no_drives, no_forces, a, multipliers, answers, 0, 1)
        return a[0]

    return solve


# -- measurements ----------------------------------------------------------------------------------------------------


def _figure(motion: Motion, options: Options) -> dict:
    runs = {"assembly": assembly, "unit_vector": unit_vectors}
    best: dict[str, tuple[float, float]] = {}
    paths = {}
    for _ in range(options.repeats):
        for name, method in runs.items():
            spent, total, paths[name] = motion.play(method)
            best[name] = min(best.get(name, (np.inf, np.inf)), (spent, total))
    whole, sim = min((motion.simulate() for _ in range(options.repeats)), key=lambda found: found[0])
    seconds = motion.steps * STEP
    both, one = motion.structures
    last = paths["assembly"][-1]
    apart = max(float(np.abs(both.difference(x, y)).max()) for x, y in zip(*paths.values(), strict=True))
    feet = bk.poses(one, last)
    gaps = [float(np.abs(bk.constraints(motion.at(k), q).gap).max()) for k, q in enumerate(paths["assembly"])]
    return {
        "dof": both.nv, "links": len(both.links), "step_s": STEP, "steps": motion.steps, "simulated_s": seconds,
        "released_s": motion.released * STEP, "right_foot_raised_m": float(feet[FEET[1]][1][2] - feet[FEET[0]][1][2]),
        "methods": {name: {"s": spent, "us_per_step": 1e6 * spent / motion.steps, "with_python_s": total,
                           "real_time_factor": seconds / spent} for name, (spent, total) in best.items()},
        "simulation": {"s": whole, "us_per_step": 1e6 * whole / motion.steps, "real_time_factor": seconds / whole,
                       "difference": float(np.abs(both.difference(last, sim.q)).max()),
                       "loop_drift": sim.stats.loop_drift, "loop_error": sim.stats.loop_error},
        "ratio": best["assembly"][0] / best["unit_vector"][0],
        "largest_difference": apart,
        "largest_gap": max(gaps),
        "faster_than_paper": {name: PAPER[f"{name}_s"] / PAPER["simulated_s"] * seconds / spent
                              for name, (spent, _) in best.items()},
    }


def _scaling(options: Options) -> list[dict]:
    """Both methods on figures with held feet and on chains held at both ends, over degrees of freedom."""
    rng = np.random.default_rng(0)
    cases = [(f"human {dof}, both feet held", standing(dof)) for dof in (16, 34, 48)]
    cases += [(f"chain of {n} balls, both ends held", bk.models.chain_held(n)) for n in options.chains]
    rows = []
    for name, m in cases:
        q, v, tau = m.neutral(), np.zeros(m.nv), rng.normal(size=m.nv)
        solvers = (assembly(m), unit_vectors(m))
        reference, found = solvers[1](q, v, tau).copy(), solvers[0](q, v, tau)
        times: list[list[float]] = [[], []]
        counts = [max(1, round(1e-3 / _once(solve, q, v, tau))) for solve in solvers]
        for _ in range(options.rounds):
            for solve, count, out in zip(solvers, counts, times, strict=True):
                start = time.perf_counter()
                for _ in range(count):
                    solve(q, v, tau)
                out.append((time.perf_counter() - start) / count)
        a, b = (1e6 * min(t) for t in times)
        rows.append({"name": name, "dof": m.nv, "assembly_us": a, "unit_vector_us": b, "ratio": a / b,
                     "difference": float(np.abs(found - reference).max() / max(1.0, np.abs(reference).max()))})
    return rows


def _once(solve, *state) -> float:
    solve(*state)
    start = time.perf_counter()
    solve(*state)
    return time.perf_counter() - start


# -- for people ------------------------------------------------------------------------------------------------------


def text(result: dict) -> str:
    """The result as a page."""
    f, paper = result["figure"], result["paper"]
    names = {"assembly": "assembly and disassembly", "unit_vector": "O(N^3), unit vectors"}
    lines = [
        f"A {f['dof']}-DOF figure, {f['simulated_s']:g} s of motion in {f['steps']} steps of {1e3 * f['step_s']:g} ms",
        f"both feet held to the ground; at {f['released_s']:g} s the right one is let go and raised by "
        f"{f['right_foot_raised_m']:.2f} m",
        "",
        f"  {'forward dynamics':<28}{'paper, s':>10}{'here, s':>10}{'us a step':>11}{'real time x':>13}"
        f"{'paper / here':>14}",
    ]
    for name, label in names.items():
        own = f["methods"][name]
        lines.append(f"  {label:<28}{paper[f'{name}_s']:10.1f}{own['s']:10.4f}{own['us_per_step']:11.1f}"
                     f"{own['real_time_factor']:13.0f}{f['faster_than_paper'][name]:14.0f}")
    whole = f["simulation"]
    lines += [
        f"  {'ratio':<28}{paper['ratio']:10.2f}{f['ratio']:10.3f}   (the paper's text: about 1/3)",
        "",
        f"  bk.Simulation of the same motion, torques and closing of the loops included: {whole['s']:.4f} s, "
        f"{whole['us_per_step']:.1f} us a step, {whole['real_time_factor']:.0f} times real time",
        f"  paper: {paper['machine']}, {paper['simulated_s']:g} s of another motion, all but collision checks and "
        "display.",
        f"  The two trajectories differ by {f['largest_difference']:.1e} at most, that of bk.Simulation at its end by "
        f"{whole['difference']:.1e} (rad, m).",
        f"  Loops are closed after every step: open by {f['largest_gap']:.1e} at most (m, rad), in bk.Simulation by "
        f"{whole['loop_error']:.1e},",
        f"  where a single step leaves up to {whole['loop_drift']:.1e} to be closed.",
        "",
        f"  {'structure':<36}{'DOF':>5}{'assembly us':>13}{'O(N^3) us':>12}{'ratio':>8}",
    ]
    lines += [f"  {row['name']:<36}{row['dof']:>5}{row['assembly_us']:13.2f}{row['unit_vector_us']:12.1f}"
              f"{row['ratio']:8.3f}" for row in result["scaling"]]
    lines += ["", *processes.text(result["processes"])]
    return "\n".join(line.rstrip() for line in lines)


def picture(result: dict, path: Path, drawing) -> Path:
    """Cost of both methods and their ratio over degrees of freedom; several processes. `drawing`: Matplotlib's figure
    and canvas."""
    page, (left, right, third) = plots_in_a_row(3, drawing, 4.0)
    processes.picture(third, result["processes"])
    rows = sorted(result["scaling"], key=lambda row: row["dof"])
    for kind, marker in (("human", "o"), ("chain", "s")):
        own = [row for row in rows if row["name"].startswith(kind)]
        dof = [row["dof"] for row in own]
        for method, colour, label in (("unit_vector", "#d1603d", "O(N³)"), ("assembly", "#2f7f86", "assembly")):
            cost = [row[f"{method}_us"] for row in own]
            left.loglog(dof, cost, f"{marker}-", color=colour, label=f"{label}, {kind}s")
        right.loglog(dof, [row["ratio"] for row in own], f"{marker}-", color="#39424e", label=f"{kind}s")
    right.plot([DOF], [result["paper"]["ratio"]], "*", color="#d1603d", markersize=12, label="[YN-HRP], measured")
    right.axhline(1 / 3, color="#d1603d", linewidth=0.8, linestyle=":", label="[YN-HRP], text")
    left.set(title="one evaluation with both feet or ends held", xlabel="degrees of freedom of the joints",
             ylabel="forward dynamics [µs]")
    right.set(title="assembly and disassembly beside the O(N³) method", xlabel="degrees of freedom of the joints",
              ylabel="assembly / O(N³)", ylim=(0.01, 1.0))
    return finish(page, (left, right), [10, 20, 50, 100, 200], path)
