"""A rope wound on a drum holds a load by friction, until the hand at its other end pulls too little.

Between the tensions at its ends, a rope that is about to slip obeys T_load / T_hand = exp(mu theta), theta the wrapped
angle [Euler, Eytelwein]. A rope of links touches the drum at n joints, with the same angle delta at each: balance of
forces at a joint gives

    T_load / T_hand = ((1 + mu tan(delta / 2)) / (1 - mu tan(delta / 2)))^n  ->  exp(mu theta),  n delta = theta.

The hand's force falls linearly; the rope slips when it has fallen to T_load divided by this ratio. Rope and drum are
seen along the axis; turns of the rope lie one behind the other and do not touch. Contact is resolved by time-stepping.
"""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.contact_scene import ContactScene
from bunraku.plan.elements import rotation_from_z

DRUM, WIDTH, ROPE = 0.2, 0.3, 0.01  # radius and length of the drum, radius of the rope [m]
TURNS, FRICTION = 1.5, 0.25         # half a turn, or whole turns more: both ends hang straight down
LOAD, HAND, LINEAR = 40.0, 1.0, 0.02  # [kg]; of the rope [kg/m]
TAIL = 0.3                         # [m] length that hangs from the drum, on either side
SLIPPING, SETTLED = 1e-6, 0.05     # speed of the load that counts as slip [m/s]; from here on creep is read [s]
FIRST, LAST = 1.25, 0.9            # the hand's force at the start and the end, in units of the one at which it slips


class Capstan(ContactScene):
    title = "A rope on a drum"
    seconds = 1.0
    step = 1e-3
    frames, elevation = 5, 0.0
    figures = ()

    def __init__(self, touching: int = 40):
        self.mechanism, self.q = rope(touching)
        self.v = np.zeros(self.mechanism.nv)
        self.ratio = ratio(touching)
        self.weight = LOAD * 9.81

    def hand(self, t: float) -> float:
        """[N] Force of the hand, its weight included, downwards."""
        return self.weight / self.ratio * (FIRST + (LAST - FIRST) * t / self.seconds)

    def watch(self, sim):
        sim.push("hand", lambda t: (0.0, 0.0, HAND * 9.81 - self.hand(t), 0.0, 0.0, 0.0))

    def report(self, sim):
        place = bk.poses(self.mechanism, self.motion.q)["load"][1]
        speed = -bk.kinematics(self.mechanism, self.motion.q, self.motion.v).velocities["load"][:, 2]
        holds = np.flatnonzero(speed <= SLIPPING)[-1]
        when = float(self.motion.t[holds]) if holds < len(speed) - 1 else None
        held = speed[(self.motion.t > SETTLED) & (np.arange(len(speed)) < holds)]
        found = {} if when is None else {"slips": when, "ratio": self.weight / self.hand(when),
                                         "sunk": float(place[0, 2] - place[-1, 2])}
        return super().report(sim) | found | {"ratio_exact": self.ratio, "creep": float(np.abs(held).max(initial=0.0)),
                                              "ratio_rope": float(np.exp(FRICTION * 2.0 * np.pi * TURNS))}

    def about_motion(self, r):
        return [
            ("rope", f"{TURNS:g} turns, coefficient of friction {FRICTION:g}: a load of {self.weight:.0f} N is held by "
                     f"{self.weight / r['ratio_exact']:.1f} N"),
            ("while it holds", f"the load moves by at most {r['creep']:.1e} m/s"),
            *([("it slips", f"at {r['slips']:.3f} s, at a ratio of tensions of {r['ratio']:.2f}; closed form for its "
                            f"links {r['ratio_exact']:.2f}, for a rope {r['ratio_rope']:.2f}")] if "slips" in r
              else [])]

    def subtitle(self, r):
        return (f"{TURNS:g} turns hold {r['ratio_exact']:.1f} times the force of the hand"
                + (f"; it slips at {r['ratio']:.2f}" if "slips" in r else ""))

    def panels(self, trajectory, report):
        t = trajectory.t
        limit = self.weight / self.ratio
        return {"force [N]": {"of the hand": (t, np.array([self.hand(time) for time in t])),
                              "least that holds": (t[[0, -1]], np.full(2, limit))}}


def ratio(touching: int, friction: float = FRICTION, turns: float = TURNS) -> float:
    """Ratio of the tensions at which a rope of links slips that touches a drum with so many joints."""
    half = np.pi * turns / touching
    return float(((1.0 + friction * np.tan(half)) / (1.0 - friction * np.tan(half))) ** touching)


def rope(touching: int, friction: float = FRICTION, turns: float = TURNS) -> tuple[bk.Mechanism, np.ndarray]:
    """A rope with a hand at one end and a load at the other, whose links touch a drum with so many points; and the
    state in which both ends hang straight down."""
    delta = 2.0 * np.pi * turns / touching                     # angle between links
    length = 2.0 * DRUM * np.sin(delta / 2.0)                  # chord between points on the drum
    m = bk.Mechanism(name="rope on a drum")
    m.add_shape("ground", bk.Capsule(DRUM, WIDTH), rotation=((1, 0, 0), (0, 0, 1), (0, -1, 0)), friction=friction,
                name="drum", group=1, meets=2)
    m.add_link("hand", joint=bk.Planar((0, 1, 0)), mass=HAND, inertia=HAND * np.full(3, ROPE**2))
    above = TAIL
    for i in range(touching):
        here = length if i < touching - 1 else TAIL
        mass = LINEAR * here
        m.add_link(f"link{i}", f"link{i - 1}" if i else "hand", bk.Revolute((0, 1, 0)), position=(0, 0, -above),
                   mass=mass, com=(0, 0, -here / 2),
                   inertia=mass * (here**2 / 12.0 * np.array([1.0, 1.0, 0.0]) + ROPE**2 / 4.0))
        m.add_shape(f"link{i}", bk.Points(np.zeros((1, 3))), friction=friction, group=2, meets=1)
        above = here
    m.add_link("load", f"link{touching - 1}", bk.Fixed(), position=(0, 0, -TAIL), mass=LOAD, inertia=(0.1, 0.1, 0.1))
    q = m.neutral()
    q[2], q[3:] = np.pi, -delta                                # up from the hand, over the drum, down to the load
    foot = DRUM * np.array([np.cos(delta / 2.0), 0.0, np.sin(delta / 2.0)]) - (0, 0, TAIL)
    q[:2] = rotation_from_z(np.array([0.0, 1.0, 0.0]))[:, :2].T @ foot
    return m, q
