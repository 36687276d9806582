"""A double pendulum is filmed, and its numbers are found from the film: masses, damping, and how it was let go.

The film is made by a simulation: 30 pictures a second, in which two dots on the rods are found with errors of some
millimetres. `scipy.optimize.least_squares` finds the numbers; the motions for a Jacobian, one for each number changed a
little, are a single batch of `bk.Worlds`, whose motors are the dampers (`params` of each copy), and whose mechanisms
differ in mass. As only ratios of masses change the motion, the upper rod's is known.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.optimize import least_squares

import bunraku as bk
from bunraku.cli.scenes.scene import Scene

LENGTHS = 0.6, 0.5            # of the rods [m], from pivot to dot
HIGH = 1.4                    # of the pivot [m]
NAMES = "mass of the lower rod", "damping above", "damping below", "angle above", "angle below"
UNITS = "kg", "N m s/rad", "N m s/rad", "rad", "rad"
TRUE = np.array([0.5, 0.02, 0.008, 2.0, 1.2])
GUESS = np.array([0.9, 0.005, 0.005, 1.7, 1.0])
RATE, SHOTS, NOISE = 30, 75, 0.006  # pictures a second, how many, errors of the dots [m]
STEP = 1.0 / (RATE * 16)
LANES = 8                     # copies of one mechanism in `Worlds`


@bk.actuation
def dampers(t, q, v, params, tau):
    for j in range(2):
        tau[j] = -params[j] * v[j]


def pendulum(mass: float = TRUE[0]) -> bk.Mechanism:
    m = bk.Mechanism(name="double pendulum")
    for name, parent, length, own, z in (("upper", "ground", LENGTHS[0], 0.8, HIGH),
                                         ("lower", "upper", LENGTHS[1], mass, -LENGTHS[0])):
        across = own * length**2 / 12.0
        m.add_link(name, parent, bk.Revolute((0, 1, 0)), position=(0, 0, z), mass=own, com=(0, 0, -length / 2),
                   inertia=(across, across, 0.02 * across))
    return m


def motions(numbers: np.ndarray) -> np.ndarray:
    """(sets, SHOTS, 2) angles in the pictures, for sets of numbers (sets, 5)."""
    sets = len(numbers)
    each = np.repeat(numbers, LANES, axis=0)  # the copies of a lane are of one mechanism
    w = bk.Worlds([pendulum(mass) for mass in numbers[:, 0]], sets * LANES, STEP, 1, q=each[:, 3:],
                  actuation=dampers, params=each[:, 1:3], solver="rk4", workers=1, warn=False)
    q = np.empty((sets, SHOTS, 2))
    for k in range(SHOTS):
        q[:, k] = w.q[::LANES]
        w.step(count=16)
    return q


def dots(q: np.ndarray) -> np.ndarray:
    """(..., 4) places x, z of both dots."""
    above, below = q[..., 0], q[..., 0] + q[..., 1]
    x, z = -LENGTHS[0] * np.sin(above), HIGH - LENGTHS[0] * np.cos(above)
    return np.stack([x, z, x - LENGTHS[1] * np.sin(below), z - LENGTHS[1] * np.cos(below)], axis=-1)


class Filmed(Scene):
    title = "A double pendulum from its film"
    caption = f"{SHOTS} pictures, dots with errors of {1e3 * NOISE:.0f} mm"
    seconds = (SHOTS - 1) / RATE
    frames, elevation = 12, 0.0
    rtol = 1e-9
    figures = ()

    def __init__(self):
        rng = np.random.default_rng(6)
        self.seen = dots(motions(TRUE[None])[0]) + NOISE * rng.normal(size=(SHOTS, 4))
        self.calls = 0
        began = time.perf_counter()
        # numbers that grow with the length of film: a pendulum that swings twice differently is like no other
        found = GUESS
        for part in (SHOTS // 4, SHOTS // 2, SHOTS):
            self.fit = least_squares(lambda x, part=part: self.off(x[None])[0, :part].ravel(), found,
                                     lambda x, part=part: self.slopes(x, part), bounds=(1e-3, 10.0), x_scale=TRUE)
            found = self.fit.x
        self.fit_seconds = time.perf_counter() - began
        self.found = found
        self.errors = NOISE * np.sqrt(np.diag(np.linalg.inv(self.fit.jac.T @ self.fit.jac)))
        self.mechanism = pendulum(found[0])
        for joint, damping in (("upper", found[1]), ("lower", found[2])):
            self.mechanism = self.mechanism.with_joint(joint, damping=damping)
        self.q, self.v = found[3:].copy(), np.zeros(2)

    def off(self, numbers):
        """(sets, SHOTS, 4) [m]"""
        self.calls += 1
        return dots(motions(numbers)) - self.seen

    def slopes(self, x, part):
        """Differences: all motions in one batch."""
        change = 1e-6
        off = self.off(np.concatenate([x + change * np.eye(len(x)), x - change * np.eye(len(x))]))[:, :part]
        return ((off[:len(x)] - off[len(x):]) / (2 * change)).reshape(len(x), -1).T

    def report(self, sim):
        return super().report(sim) | {
            "found": self.found.tolist(), "true": TRUE.tolist(), "errors": self.errors.tolist(), "calls": self.calls,
            "fit_seconds": self.fit_seconds, "off_rms": float(np.sqrt(np.mean(self.fit.fun**2)))}

    def rows(self, r):
        numbers = [(name, f"{x:.4f} ± {e:.4f} {unit}, true {true:g}, first guess {guess:g}")
                   for name, x, e, true, guess, unit
                   in zip(NAMES, r["found"], r["errors"], TRUE, GUESS, UNITS, strict=True)]
        return [("film", self.caption), *numbers,
                ("left", f"{1e3 * r['off_rms']:.2f} mm of the dots unexplained (rms)"),
                ("found in", f"{r['fit_seconds']:.2f} s, {r['calls']} batches of motions")]

    def subtitle(self, r):
        return f"{self.caption}  ·  mass {r['found'][0]:.3f} ± {r['errors'][0]:.3f} kg (true: {TRUE[0]:g} kg)"

    def panels(self, trajectory, report):
        at = np.arange(SHOTS) / RATE
        found, guessed = dots(motions(np.array([self.found, GUESS])))
        return {"lower dot, x [m]": {"film": (at, self.seen[:, 2]), "found": (at, found[:, 2]),
                                     "first guess": (at, guessed[:, 2])},
                "film minus found [mm]": {"x": (at, 1e3 * (self.seen - found)[:, 2]),
                                          "z": (at, 1e3 * (self.seen - found)[:, 3])}}
