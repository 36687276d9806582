"""Contact cases with exact solutions: the scene, its closed form, the error of a motion, and the targets.

    box at 0.9, 1.3 of the friction angle   rests; slides with g (sin - mu cos)
    cube at 6 m/s on mu = 0.5               stays flat and stops after v^2 / (2 mu g)
    ball, slip to roll                      v = 5/7 v0 from t = 2 v0 / (7 mu g) on
    bouncing ball, e = 0.8                  n-th bounce at sqrt(2h/g) (1 + 2 e + ... + 2 e^n), at rest from
                                            sqrt(2h/g) (1 + e) / (1 - e) on
    rimless wheel, spokes at an angle c     w+ / w- = (I + m l^2 cos c) / (I + m l^2)
    rocking block, edges 2b and 2h          w+ / w- = (I + m (h^2 - b^2)) / (I + m (h^2 + b^2)), Housner's 1963
    sphere dropped from 1 m                 no penetration
    Painleve's rod                          no forces exist: 1 + 3 cos a (cos a - mu sin a) < 0, at rest
                                            against turning; an impulse stops the tip

Wheel and block: w+ is taken from the energy after the impact, which a stance keeps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.integrate import quad, solve_ivp
from scipy.spatial.transform import Rotation

import bunraku as bk
from bunraku.bench.contact_peers import G, Motion, Scene

STEP = 2e-3
MU = 0.5
BOUNCES = 20
TIGHT = {"rtol": 1e-12, "atol": 1e-13}


@dataclass(frozen=True)
class Case:
    """A scene for some seconds; `measure(scene, motion)` gives errors by name; targets by the same names."""

    title: str
    exact: str
    scene: Scene
    seconds: float
    measure: Callable[[Scene, Motion], dict[str, float]]
    units: dict[str, str]
    event: dict[str, float] = field(default_factory=dict)     # largest errors, event-driven
    stepping: dict[str, float] = field(default_factory=dict)  # ... of steps of 2 ms
    order: str = ""                                           # the error that halves with the step
    settings: dict = field(default_factory=dict)              # of the event-driven simulation
    may_refuse: bool = False  # event-driven, an error that names the contact is an answer


def _about_y(angle: float) -> np.ndarray:
    return Rotation.from_rotvec([0.0, angle, 0.0]).as_matrix()


def _steps(seconds: float) -> float:
    """A whole number of steps, not shorter."""
    return STEP * math.ceil(seconds / STEP - 1e-9)


def cases(hold: float = 60.0) -> dict[str, Case]:
    """All of the table; the box rests for `hold` seconds."""
    return {"hold": _hold(hold), "slide": _slide(), "cube": _cube(), "roll": _roll(), "bounce": _bounce(),
            "wheel": _wheel(), "block": _block(), "drop": _drop(), "painleve": _painleve()}


# -- boxes -------------------------------------------------------------------------------------------------------------


def box_inertia(x: float, y: float, z: float, mass: float = 1.0) -> tuple[float, float, float]:
    return mass * (y * y + z * z) / 12, mass * (x * x + z * z) / 12, mass * (x * x + y * y) / 12


def _on_a_slope(share: float) -> tuple[Scene, float]:
    """A box on a slope of this share of the friction angle, down along x; and the slope's angle."""
    angle = share * math.atan(MU)
    R = _about_y(angle)
    normal = tuple(R[:, 2])
    return Scene(bk.Box(0.2, 0.2, 0.1), box_inertia(0.2, 0.2, 0.1), MU, normal=normal, rotation=R,
                 position=tuple(0.05 * R[:, 2])), angle


def _hold(seconds):
    def measure(scene, motion):
        return {"moved": float(np.linalg.norm(motion.position - motion.position[0], axis=1).max())}

    return Case("box at 0.9 of the friction angle", f"rests, {seconds:g} s", _on_a_slope(0.9)[0], seconds, measure,
                {"moved": "m"}, {"moved": 1e-12}, {"moved": 1e-12})


def _slide():
    scene, angle = _on_a_slope(1.3)
    a = G * (math.sin(angle) - MU * math.cos(angle))

    def measure(scene, motion):
        down = scene.rotation[:, 0]
        return {"speed": abs(motion.velocity[-1] @ down / (a * motion.t[-1]) - 1.0)}

    return Case("box at 1.3 of the friction angle", f"{a:.6f} m/s^2", scene, 1.0, measure, {"speed": "relative"},
                {"speed": 1e-9}, {"speed": 1e-6})


def _cube():
    way, speed = 0.1, 6.0
    exact = speed ** 2 / (2 * MU * G)

    def measure(scene, motion):
        sole = scene.corners[:, 2] < 0
        return {"lift": float(np.abs(scene.gaps(motion)[:, sole]).max()),  # or sinks
                "stop": abs(float(motion.position[-1, 0]) - exact),
                "still": float(np.linalg.norm(motion.velocity[-1]))}

    scene = Scene(bk.Box(way, way, way), box_inertia(way, way, way), MU, position=(0, 0, 0.5 * way),
                  velocity=(speed, 0, 0))
    return Case("cube of 0.1 m at 6 m/s", f"flat, stops after {exact:.6f} m", scene, 1.5, measure,
                {"lift": "m", "stop": "m", "still": "m/s"}, {"lift": 1e-9, "stop": 1e-8}, {"stop": 0.005 * exact},
                order="stop")


# -- balls -------------------------------------------------------------------------------------------------------------


def _ball(radius, friction, height=0.0, restitution=0.0, velocity=(0.0, 0.0, 0.0)):
    return Scene(bk.Sphere(radius), (0.4 * radius ** 2,) * 3, friction, restitution=restitution,
                 position=(0.0, 0.0, radius + height), velocity=velocity)


def _roll():
    radius, speed = 0.1, 5.0
    sliding = 2.0 * speed / (7.0 * MU * G)
    rolling = 5.0 / 7.0 * speed
    scene = _ball(radius, MU, velocity=(speed, 0.0, 0.0))

    def measure(scene, motion):
        spin = np.einsum("nij,nj->ni", motion.rotation, motion.spin)
        slip = np.abs(motion.velocity[:, 0] - radius * spin[:, 1])
        rolls = np.flatnonzero(slip < 1e-7 * speed)
        began = motion.t[rolls[0]] if len(rolls) else math.inf
        t = motion.t[-1]
        place = 6.0 / 7.0 * speed * sliding + rolling * (t - sliding)
        return {"speed": abs(float(motion.velocity[-1, 0]) / rolling - 1.0),
                "place": abs(float(motion.position[-1, 0]) / place - 1.0),
                "time": abs(float(began) / sliding - 1.0)}

    return Case("ball, slip to roll", f"{rolling:.6f} m/s from {sliding:.6f} s on", scene, 1.0, measure,
                {"speed": "relative", "place": "relative", "time": "relative"},
                {"speed": 1e-9, "place": 1e-9, "time": 1e-9}, {"speed": 1e-3, "place": 1e-3}, order="place",
                settings={"solver": "tsit5", **TIGHT})


def bounce_times(motion: Motion, floor: float) -> np.ndarray:
    """Times at which the centre left the height `floor`, extrapolated backwards along the parabola of every flight."""
    up, z = motion.velocity[:, 2], motion.position[:, 2] - floor
    flies = (up > 1e-3) & (z > -1e-9)
    first = np.flatnonzero(flies[1:] & ~flies[:-1]) + 1
    return motion.t[first] - (np.sqrt(up[first] ** 2 + 2.0 * G * np.maximum(z[first], 0.0)) - up[first]) / G


def _bounce():
    e, radius = 0.8, 0.1
    fall = math.sqrt(2.0 / G)
    end = fall * (1 + e) / (1 - e)
    exact = fall * (1.0 + 2.0 * np.concatenate([[0.0], np.cumsum(e ** np.arange(1, BOUNCES))]))
    scene = _ball(radius, 0.5, 1.0, e)

    def measure(scene, motion):
        found = bounce_times(motion, radius)[:BOUNCES]
        return {"first": abs(found[0] - exact[0]) if len(found) else math.inf,
                "20 bounces": float(np.abs(found - exact).max()) if len(found) == BOUNCES else math.inf,
                "rest": float(np.linalg.norm(motion.velocity[-1])),
                "height": abs(float(motion.position[-1, 2]) - radius)}

    return Case("bouncing ball, e = 0.8", f"at rest after {end:.6f} s", scene, 6.0, measure,
                {"first": "s", "20 bounces": "s", "rest": "m/s", "height": "m"},
                {"20 bounces": 1e-9, "rest": 1e-9, "height": 1e-9}, {"rest": 1e-6, "height": STEP * G * STEP},
                settings={"solver": "tsit5", **TIGHT})


def _drop():
    radius = 0.1

    def measure(scene, motion):
        depth = -scene.gaps(motion)[:, 0]
        inside = depth > 1e-9
        runs = np.diff(np.flatnonzero(np.diff(np.concatenate([[0], inside, [0]]))))[::2]
        return {"depth": max(0.0, float(depth.max())), "steps inside": float(runs.max(initial=0)),
                "rest": float(np.linalg.norm(motion.velocity[-1]))}

    return Case("sphere dropped from 1 m", "no penetration", _ball(radius, MU, 1.0), 1.0, measure,
                {"depth": "m", "steps inside": "", "rest": "m/s"}, {"depth": 1e-10},
                {"depth": STEP * math.sqrt(2 * G), "steps inside": 1.0})


# -- impacts of wheel and block ----------------------------------------------------------------------------------------


def _jump(exact, about, height):
    """Relative error of the speed of turning after the impact, from the energy at the end."""
    def measure(scene, motion):
        kinetic = float(scene.energy(motion)[-1]) - scene.mass * G * height
        return {"jump": abs(math.sqrt(max(0.0, 2.0 * kinetic / about)) / exact - 1.0)}
    return measure


def _wheel():
    length, inertia, spokes, start, half = 1.0, 0.1, 8, 1.5, 0.1
    c = 2.0 * math.pi / spokes
    about = inertia + length ** 2
    angles = c * np.arange(spokes)
    tips = np.array([(length * math.sin(a), y, -length * math.cos(a)) for a in angles for y in (-half, half)])
    scene = Scene(bk.Points(tips), (inertia, inertia, inertia), 1.0, position=(0, 0, length),
                  velocity=(start * length, 0, 0), spin=(0, start, 0))
    low = length * math.cos(0.5 * c)
    before = math.sqrt(start ** 2 + 2 * G * (length - low) / about)
    after = before * (inertia + length ** 2 * math.cos(c)) / about

    def rate(angle, at_vertical):  # a stance: energy
        return math.sqrt(at_vertical + 2 * G * length * (1 - math.cos(angle)) / about)

    again = after ** 2 - 2 * G * (length - low) / about
    impact = quad(lambda a: 1 / rate(a, start ** 2), 0, 0.5 * c)[0]
    seconds = impact + quad(lambda a: 1 / rate(a, again), 0, 0.5 * c)[0]
    return Case("rimless wheel, 8 spokes", f"{before:.6f} to {after:.6f} rad/s", scene, _steps(seconds),
                _jump(after, about, low), {"jump": "relative"}, {"jump": 1e-9}, order="jump", settings=TIGHT)


def _block():
    b, h, tilt = 0.1, 0.2, 0.2
    inertia = box_inertia(2 * b, 2 * b, 2 * h)
    about, slender = inertia[1] + b * b + h * h, math.atan(b / h)
    R = _about_y(tilt)
    scene = Scene(bk.Box(2 * b, 2 * b, 2 * h), inertia, 1.0, rotation=R, position=tuple(-R @ np.array([b, 0, -h])))
    before = math.sqrt(2 * G * (b * math.sin(tilt) + h * math.cos(tilt) - h) / about)
    after = before * (inertia[1] + h * h - b * b) / about

    def flat(t, y):
        return y[0]
    flat.terminal = True  # type: ignore[attr-defined]
    fall = solve_ivp(lambda t, y: (y[1], -G * math.hypot(b, h) * math.sin(slender - y[0]) / about), (0, 2),
                     (tilt, 0.0), events=flat, rtol=1e-10, atol=1e-12).t[-1]
    return Case("rocking block, 0.2 by 0.4 m", f"{before:.6f} to {after:.6f} rad/s", scene, _steps(1.3 * fall),
                _jump(after, about, h), {"jump": "relative"}, {"jump": 1e-9}, order="jump", settings=TIGHT)


def _painleve():
    half, angle, mu, speed = 0.5, math.radians(60), 2.0, 2.0
    coefficient = 1 + 3 * math.cos(angle) * (math.cos(angle) - mu * math.sin(angle))
    if coefficient >= 0:
        raise ValueError("forces exist")
    inertia = half ** 2 / 3
    R = _about_y(-angle)  # the rod along its x
    scene = Scene(bk.Points(np.array([(-half, 0, 0), (half, 0, 0)])), (1e-3, inertia, inertia), mu, rotation=R,
                  position=tuple(half * R[:, 0]), velocity=(-speed, 0, 0))

    def measure(scene, motion):
        energy = scene.energy(motion)
        risen = float((energy - np.minimum.accumulate(energy)).max()) / float(energy[0])
        return {"energy": risen if np.isfinite(energy).all() else math.inf,
                "depth": max(0.0, float(-scene.gaps(motion).min()))}

    return Case("Painleve's rod, mu = 2, at 60 degrees", "jams", scene, 0.2, measure,
                {"energy": "relative", "depth": "m"}, {"energy": 1e-6, "depth": 1e-9},
                {"energy": 1e-2, "depth": STEP * speed}, may_refuse=True)
