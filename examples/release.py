"""A figure releases a bar, right hand first, then left, and flies: each release makes forward dynamics cheaper.

    python examples/release.py [DIR]

[Yamane and Nakamura 2002, fig. 7] report 3.4 to 5.0 ms per evaluation for this motion. Conditions are plain functions
of time and state; an action that returns True ends the run.
"""

import sys
from pathlib import Path
from time import perf_counter

import bunraku as bk
from bunraku.cli.scenes.muscles import muscles
from bunraku.cli.scenes.release import Release
from bunraku.view import filmstrip


def main(folder: Path) -> None:
    scene = Release(dof=34)
    sim = bk.Simulation(scene.mechanism, scene.q, scene.v, solver="tsit5", actuation=muscles, params=scene.params)
    x = sim.mechanism.q_slice("root").start  # index of the pelvis coordinate in front of (+) or behind the bar
    sim.when(lambda t, q, v: q[x] - 0.3, lambda sim: sim.cut("right_grip"), name="the right hand lets go")
    sim.when(lambda t, q, v: q[x] - 0.7, lambda sim: sim.cut("left_grip"), name="the left hand lets go")
    sim.when(lambda t, q, v: q[x] - 1.6, lambda sim: True, name="far enough")
    trajectory = sim.run(until=5.0)

    for event in trajectory.events:
        print(f"{event.t:.3f} s: {event.text}")
    for segment in trajectory.segments:
        m, hands = segment.mechanism, len(segment.mechanism.connections)
        states = list(zip(segment.q, segment.v, strict=True))[::max(1, len(segment.t) // 100)]
        best = float("inf")
        for _ in range(5):
            begin = perf_counter()
            for q, v in states:
                bk.forward_dynamics(m, q, v)
            best = min(best, (perf_counter() - begin) / len(states))
        print(f"{hands} hand{'s' * (hands != 1)} on the bar: {1e6 * best:.1f} µs per forward dynamics")

    folder.mkdir(parents=True, exist_ok=True)
    print("wrote", filmstrip(trajectory, folder / "release.png", title="Two hands, one hand, none", frames=8))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-release"))
