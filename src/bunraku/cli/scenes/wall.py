"""A wall of boxes stands by its weight and friction; a heavy ball hits it.

Boxes lie in courses, each shifted by half a box, with gaps between neighbours: they touch those above and below.
Contact is resolved by time-stepping; faces touch at up to four points, so contact forces are redundant, the motion is
unique.
"""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.contact_scene import ContactScene
from bunraku.models.solid_inertias import box

COURSES, BOXES = 3, 3                   # boxes in a course
SIZE, MASS, GAP = (0.30, 0.15, 0.14), 6.0, 0.01  # [m, kg, m]
BALL, HEAVY, SPEED = 0.14, 25.0, 6.0    # radius, mass, speed [m, kg, m/s]
AWAY, FRICTION = 1.2, 0.6               # [m] distance of the ball at the start
STANDS = 0.15                           # [s] before the ball arrives


class Wall(ContactScene):
    title = "A ball hits a wall of boxes"
    seconds = 0.9
    step = 1e-3
    frames, elevation = 7, 12.0
    figures = ()

    def __init__(self):
        self.mechanism, self.q = wall(COURSES, BOXES)
        m = self.mechanism
        m.add_link("ball", joint=bk.Free(), mass=HEAVY, inertia=np.full(3, 0.4 * HEAVY * BALL**2))
        m.add_shape("ball", bk.Sphere(BALL), friction=FRICTION)
        self.q, self.v = np.append(self.q, (0.0, -AWAY, 0.4, 1.0, 0.0, 0.0, 0.0)), np.zeros(m.nv)
        self.v[m.v_slice("ball")][:3] = 0.0, SPEED, 0.0

    def report(self, sim):
        t, q = self.motion.t, self.motion.q
        places = bk.poses(self.mechanism, q)
        boxes = [name for name in places if name.startswith("box")]
        moved = np.max([np.linalg.norm(places[name][1] - places[name][1][0], axis=1) for name in boxes], axis=0)
        fallen = sum(places[name][1][-1, 2] < places[name][1][0, 2] - 0.5 * SIZE[2] for name in boxes)
        return super().report(sim) | {"boxes": len(boxes), "fallen": int(fallen),
                                      "stood": float(moved[t <= STANDS].max()), "farthest": float(moved[-1])}

    def about_motion(self, r):
        return [
            ("the wall", f"{r['boxes']} boxes; until the ball arrives none moves by more than {r['stood']:.1e} m"),
            ("the ball", f"knocks down {r['fallen']} of them; one lies {r['farthest']:.2f} m from its place"),
            ("energy", f"rises in no step by more than {max(r['energy_rise'], 0.0):.1e} J")]

    def subtitle(self, r):
        return f"{r['boxes']} boxes held by friction  ·  {r['fallen']} fall  ·  {r['energy_lost']:.0f} J lost"

    def panels(self, trajectory, report):
        return {}


def wall(courses: int, boxes: int, friction: float = FRICTION, gap: float = GAP) -> tuple[bk.Mechanism, np.ndarray]:
    """A wall of boxes on a floor, each course shifted by half a box, with half boxes at the ends of every other one;
    and the state in which it stands."""
    m = bk.Mechanism(name="wall")
    m.add_plane(friction=friction)
    pitch = SIZE[0] + gap
    q: list[tuple[float, ...]] = []
    for course in range(courses):
        ends = [] if course % 2 == 0 else [-0.25, boxes - 0.75]
        for k in [*range(boxes - course % 2), *ends]:
            half = k in ends
            size = (0.5 * (SIZE[0] - gap) if half else SIZE[0], *SIZE[1:])
            name = f"box {course}.{len(q)}"
            m.add_link(name, joint=bk.Free(), **box(MASS * size[0] / SIZE[0], size)._asdict())
            m.add_shape(name, bk.Box(*size), friction=friction)
            place = k - 0.5 * (boxes - 1) + (0.5 * (course % 2) if not half else 0.0)
            q.append((pitch * place, 0.0, SIZE[2] * (course + 0.5), 1.0, 0.0, 0.0, 0.0))
    return m, np.concatenate(q)
