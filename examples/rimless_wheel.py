"""A rimless wheel rolls down a slope, from spoke to spoke; speeds after impacts are compared with the closed form.

    python examples/rimless_wheel.py [DIR]

Contact is event-driven: the time at which a spoke strikes the slope is located, an impact changes the velocities, and
each segment of the trajectory lasts from one impact to the next. The wheel is that of `bunraku demo wheel`.
"""

import sys
from itertools import pairwise
from pathlib import Path

import bunraku as bk
from bunraku.cli.scenes.wheel import Wheel
from bunraku.view import Camera, filmstrip


def main(folder: Path) -> None:
    wheel = Wheel()
    sim = bk.Simulation(wheel.mechanism, wheel.q, wheel.v, rtol=1e-12, atol=1e-14)
    trajectory = sim.run(until=3.0)

    print(f"closed form: an impact leaves {wheel.ratio:.12f} of the speed, which tends to {wheel.steady:.6f} rad/s")
    for before, after in pairwise(trajectory.segments):
        was, becomes = before.v[-1, 4], after.v[0, 4]
        print(f"{after.t[0]:.3f} s: {was:.6f} -> {becomes:.6f} rad/s, ratio {becomes / was:.12f}")
    folder.mkdir(parents=True, exist_ok=True)
    print("wrote", filmstrip(bk.Trajectory(trajectory.segments), folder / "rimless_wheel.png", title="A rimless wheel",
                             camera=Camera(elevation=0)))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("bunraku-rimless-wheel"))
