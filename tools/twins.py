"""What the second of two compiled functions saves where one would do: microseconds per call, and their ratio.

    python tools/twins.py

ARCHITECTURE.md quotes the output under "Twins".
"""

from __future__ import annotations

import statistics
import time

import numpy as np

import bunraku as bk
from bunraku.bench.machine import describe
from bunraku.entries.loop_entries import closed_one, closed_plain
from bunraku.plan.loop_plan import with_connections
from bunraku.runs.context import tree_one

ROUNDS, CALLS = 200, 200


def per_call(*calls) -> list[float]:
    """Median time of each call [us], measured in turns."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for call, taken in zip(calls, times, strict=True):
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            taken.append((time.perf_counter() - start) / CALLS * 1e6)
    return [statistics.median(taken) for taken in times]


def main() -> None:
    on = describe()
    print(f"{on['processor']}, {on['cores']} cores; {on['date'][:10]}")
    print(f"{'kept': <14}{'instead of': <14}{'saves [us]': >12}{'of': >8}   on")
    human = bk.models.human(dof=48)
    plan, q, v, tau, a = human.plan(), human.neutral(), np.ones(human.nv), np.zeros(human.nv), np.empty(human.nv)
    open_loops = with_connections(plan, ())
    loops = open_loops.loops
    work, external = np.empty(max(loops.work_size, 10 * plan.work_size)), plan.nothing
    closed = open_loops.with_rotors
    report("tree_one", "closed_one", "human, 48 DOF, no loop",
           lambda: tree_one.call(0, plan.arrays, plan.dof_f, q, v, tau, external, external, a, work),
           lambda: closed_one.call(0, closed, closed.dof_f, q, v, tau, external, external, a, work))
    sim = bk.Simulation(bk.models.human(dof=34))
    for hand in ("left_hand", "right_hand"):
        sim.connect("ground", hand, bk.Spherical())
    held, s = sim.mechanism.plan(), np.array(sim.q)
    loops, speed, torque, out = held.loops, np.array(sim.v), np.zeros(held.nv), np.empty(held.nv)
    memory = np.empty(loops.work_size)
    report("closed_plain", "closed_one", "human, 34 DOF, two hands held",
           lambda: closed_plain.call(held.with_rotors, s, speed, torque, out, memory),
           lambda: closed_one.call(0, held.with_rotors, loops.dof_f, s, speed, torque, external, external, out, memory))


def report(kept: str, instead: str, on: str, *calls) -> None:
    first, second = per_call(*calls)
    print(f"{kept: <14}{instead: <14}{second - first: >12.2f}{second: >8.2f}   {on}")


if __name__ == "__main__":
    main()
