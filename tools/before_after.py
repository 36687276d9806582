"""Speed of two versions of bunraku beside each other: is the new one slower?

    python tools/before_after.py REVISION [--rounds N] [--pairs N] [--only WORD]

Two processes, one with the sources of REVISION (checked out into a temporary folder, or a folder), one with those of
this folder, take turns at each workload every few milliseconds, so that both meet the same neighbours on the machine.
The ratio new / old is the median over rounds. Where code and data lie in memory also makes a difference, and stays
as it is while a process lives: each of several pairs of processes gives one ratio; their median and range are printed.
Only public names are used, so any two versions can be compared that have them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
BLOCK = 0.005  # [s] of one turn, about


# -- in the child ----------------------------------------------------------------------------------------------------


def workloads() -> dict:
    """Functions without arguments, by name; each is one call of something users do."""
    import numpy as np

    import bunraku as bk

    rng = np.random.default_rng(1)

    def state(m, count=None):
        shape = () if count is None else (count,)
        q = m.integrate(np.tile(m.neutral(), (*shape, 1)), rng.normal(size=(*shape, m.nv)))
        return q, rng.normal(size=(*shape, m.nv)), rng.normal(size=(*shape, m.nv))

    human, robot, small = bk.models.human(dof=48), bk.models.humanoid(), bk.models.human(dof=16)
    figure, bars = bk.models.human(dof=34), bk.models.n_four_bar(10)
    one, many, robots = state(human), state(human, 2048), state(robot)
    held = bk.Simulation(figure)
    for hand in ("left_hand", "right_hand"):
        held.connect("ground", hand, bk.Spherical(), name=hand + " grip")
    closed, at = held.mechanism, (held.q, held.v, np.zeros(figure.nv))
    several = tuple(np.tile(x, (1024, 1)) for x in at)
    rest = bars.neutral(), np.zeros(bars.nv), np.zeros(bars.nv)

    @bk.actuation
    def damp(t, q, v, params, tau):
        for j in range(len(tau)):
            tau[j] = -params[0] * v[j]

    def simulate(m, until, solver="gear", v=None, **options):
        bk.Simulation(m, v=v, solver=solver, progress=False, **options).run(until=until)

    def change():
        held.cut("right_hand grip")
        held.connect("ground", "right_hand", bk.Spherical(), name="right_hand grip")

    swing, pendulum = 0.5 * np.ones(small.nv), bk.models.chain(2)
    bricard, crank = bk.models.bricard(), bk.models.slider_crank()
    push = bk.impact(bricard, bricard.neutral(), np.ones(bricard.nv))
    turn = bk.impact(crank, crank.neutral(), np.ones(crank.nv))
    states, speeds = state(figure, 256)[:2]
    return {
        "forward dynamics, human 48": lambda: bk.forward_dynamics(human, *one),
        "forward dynamics, humanoid": lambda: bk.forward_dynamics(robot, *robots),
        "forward dynamics, batch of 2048": lambda: bk.forward_dynamics(human, *many, workers=1),
        "inverse dynamics, human 48": lambda: bk.inverse_dynamics(human, *one),
        "mass matrix, humanoid": lambda: bk.mass_matrix(robot, robots[0]),
        "joint forces, human 48": lambda: bk.joint_forces(human, *one),
        "loops: forward dynamics, two hands held": lambda: bk.forward_dynamics(closed, *at),
        "loops: batch of 1024": lambda: bk.forward_dynamics(closed, *several, workers=1),
        "loops: ten four-bars": lambda: bk.forward_dynamics(bars, *rest),
        "loops: impact": lambda: bk.impact(closed, at[0], at[1]),
        "connect and cut": change,
        "short: construct, 0.1 s, double pendulum": lambda: simulate(pendulum, 0.1),
        "short: construct only, double pendulum": lambda: bk.Simulation(pendulum, progress=False),
        "short: a rollout of one state": lambda: bk.rollout(pendulum, until=0.1, progress=False, workers=1),
        "gear, human 16, 0.3 s": lambda: simulate(small, 0.3, v=swing),
        "gear, human 16, compiled actuation": lambda: simulate(small, 0.3, v=swing, actuation=damp, params=[0.5]),
        "gear, ten four-bars, 0.2 s": lambda: simulate(bars, 0.2),
        "gear, Bricard, 0.5 s": lambda: simulate(bricard, 0.5, v=push),
        "tsit5, human 16, 0.3 s": lambda: simulate(small, 0.3, "tsit5", v=swing),
        "tsit5, slider-crank, 0.5 s": lambda: simulate(crank, 0.5, "tsit5", v=turn),
        "rk4, slider-crank, 0.5 s": lambda: simulate(crank, 0.5, "rk4", v=turn, step=0.002),
        "implicit, human 16, 0.3 s": lambda: simulate(small, 0.3, "implicit", v=swing),
        "rollout, 256 figures, 100 steps": lambda: bk.rollout(figure, states, speeds, until=0.2, step=0.002,
                                                              solver="symplectic_euler", workers=1),
    }


def serve() -> None:
    """Read names of workloads, answer with seconds per call."""
    known = workloads()
    repeats = {}
    print(json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        call = known[line.strip()]
        if line not in repeats:
            call()
            start = time.perf_counter()
            call()
            repeats[line] = max(1, int(BLOCK / max(time.perf_counter() - start, 1e-9)))
        print(json.dumps(_timed(call, repeats[line])), flush=True)


def _timed(call, count):
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


# -- in the parent ---------------------------------------------------------------------------------------------------


class Version:
    """A child process with one version of the sources."""

    def __init__(self, sources: Path):
        environment = {**os.environ, "PYTHONPATH": str(sources), "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen([sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, env=environment)
        self.names = self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a version could not be measured: see above")
        return json.loads(line)

    def measure(self, name: str) -> float:
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        return self.read()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revision", nargs="?", help="git revision to compare with, or a folder with sources")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--only", default="", metavar="WORD", help="only workloads whose name contains this")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve()
        return 0
    if not args.revision:
        parser.error("which revision?")
    with tempfile.TemporaryDirectory() as folder:
        old = Path(args.revision)
        if not old.is_dir():
            subprocess.run(["git", "-C", HERE, "worktree", "add", "--detach", folder + "/old", args.revision],
                           check=True, capture_output=True)
            old = Path(folder) / "old"
        try:
            compare(old / "src", HERE / "src", args)
        finally:
            if not Path(args.revision).is_dir():
                subprocess.run(["git", "-C", HERE, "worktree", "remove", "--force", old], capture_output=True)
    return 0


def compare(old: Path, new: Path, args) -> None:
    from bunraku.bench.machine import describe

    on = describe()
    print(f"{on['processor']}, {on['cores']} cores; {on['date'][:16].replace('T', ' ')}; {args.rounds} rounds, "
          f"{args.pairs} pairs of processes")
    ratios, times = {}, {}
    for _ in range(args.pairs):
        versions = Version(old), Version(new)
        for name in [n for n in versions[0].names if n in versions[1].names and args.only in n]:
            ratio, *both = alternate(versions, name, args.rounds)
            ratios.setdefault(name, []).append(ratio)
            times.setdefault(name, []).append(both)
        for version in versions:
            version.process.stdin.close()
            version.process.wait()
    print(f"{'workload':<44}{'old [us]':>12}{'new [us]':>12}{'new/old':>10}    range")
    for name, found in ratios.items():
        a, b = (statistics.median(t[k] for t in times[name]) * 1e6 for k in range(2))
        print(f"{name:<44}{a:12.2f}{b:12.2f}{statistics.median(found):10.3f}    {min(found):.3f} .. {max(found):.3f}")


def alternate(versions, name: str, rounds: int) -> tuple[float, float, float]:
    """Median of the ratios of turns that follow each other, and the median times."""
    pairs = []
    for k in range(rounds + 1):
        times = {which: versions[which].measure(name) for which in ((0, 1) if k % 2 else (1, 0))}
        pairs.append((times[0], times[1]))
    pairs = pairs[1:]  # the first turn warms up
    return (statistics.median(b / a for a, b in pairs), *(statistics.median(p[k] for p in pairs) for k in range(2)))


if __name__ == "__main__":
    raise SystemExit(main())
