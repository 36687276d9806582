"""A synthetic walk, as a laboratory records it: joint angles in a BVH file, ground forces of both feet in a MOT file.

The feet follow a plan: flat, heel off, swing, heel strike. The pelvis moves as an inverted pendulum of constant height
whose centre of pressure p rolls over each foot from heel to toes (x'' = g/h (x - p), solved for a periodic p by its
Fourier series); p is corrected until that of the whole body does. Legs follow by inverse kinematics. Ground forces are
those that the motion needs, shared in double support; noise is added to all of it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

import bunraku as bk
from bunraku.io.axes import turned
from bunraku.models.human import HEEL, Body

HEIGHT, MASS = 1.75, 70.0
STEP, CYCLE = 0.50, 1.10            # length of a step [m], duration of two [s]
STANCE = 0.62                       # share of the cycle that a foot is on the ground
OFF, SWUNG = (0.38, 0.70), 0.55     # when the heel rises, how far the foot turns [rad]
STRIKE, TOES_UP = 0.10, -0.25       # until when it lies flat after heel strike, how far the toes are up then [rad]
CLEARANCE = 0.03                    # [m]
BENT, BOB = 0.94, 0.012            # height of the hips as a share of a straight leg; how far they go up and down [m]
YAW, ARMS, ELBOWS = 0.08, 0.35, 0.35
FINE = 2048                         # samples of a cycle
NOISE = 0.02, 0.1, 1.0              # of angles [degrees], places [mm], forces [N]: standard deviations


class Walk:
    """Feet, pelvis and centre of pressure at the times t."""

    def __init__(self, seconds: float, rate: float):
        self.mechanism = bk.models.human(48, height=HEIGHT, mass=MASS)
        self.body = Body(HEIGHT, MASS)
        self.t = np.arange(round(seconds * rate) + 1) / rate
        long = self.body.length("foot")
        self.ankle = np.array([HEEL * long, self.body.ankle_height])              # from the heel, x and z
        self.toes = np.array([(1.0 - HEEL) * long * 0.75, -self.body.ankle_height])  # ball of the foot, from the ankle
        self.heel = np.array([-HEEL * long, -self.body.ankle_height])
        self.correction = np.zeros((FINE, 2))
        self._settle()

    # -- feet ------------------------------------------------------------------------------------------------------

    def phase(self, left: bool, t):
        """Phase of the cycle since heel strike, and the number of the cycle."""
        cycles = t / CYCLE + (0.5 if left else 0.0)
        return cycles - np.floor(cycles), np.floor(cycles)

    @staticmethod
    def pitch(phase):
        """Turn of a foot; positive raises the heel."""
        return np.where(phase < OFF[0], TOES_UP * (1.0 - _smooth(phase / STRIKE)), 0.0) + np.where(
            phase >= OFF[0], SWUNG * _smooth((phase - OFF[0]) / (OFF[1] - OFF[0])), 0.0) + np.where(
            phase >= OFF[1], (TOES_UP - SWUNG) * _smooth((phase - OFF[1]) / (1.0 - OFF[1])), 0.0)

    def flat(self, left: bool, cycle):
        """x of the ankle while the foot is flat."""
        return 2.0 * STEP * (cycle - (0.5 if left else 0.0))

    def standing(self, phase, x):
        """Ankle of a foot on the ground: it rolls over the heel, then over the ball; x, z."""
        turn = self.pitch(phase)
        pivot = np.where(turn[..., None] > 0.0, self.toes, self.heel)
        c, s = np.cos(turn), np.sin(turn)
        back = np.stack([-c * pivot[..., 0] - s * pivot[..., 1], s * pivot[..., 0] - c * pivot[..., 1]], axis=-1)
        return back + np.stack([x + pivot[..., 0], np.zeros_like(x)], axis=-1)

    def foot(self, left: bool, t):
        """Ankle (n, 3) and turn of a foot."""
        phase, cycle = self.phase(left, t)
        x = self.flat(left, cycle)
        place = self.standing(np.minimum(phase, STANCE), x)
        swing = phase > STANCE
        share, h = (phase - STANCE) / (1.0 - STANCE), 1e-4
        start = [self.standing(np.full_like(x, STANCE + k * h), x) for k in (-1, 0, 1)]
        end = [self.standing(np.full_like(x, k * h), x + 2.0 * STEP) for k in (0, 1, 2)]
        length = (1.0 - STANCE) / h
        flown = _quintic(share[:, None], start[1], 0.5 * (start[2] - start[0]) * length,
                         (start[2] - 2 * start[1] + start[0]) * length**2,
                         end[0], (end[1] - end[0]) * length, (end[2] - 2 * end[1] + end[0]) * length**2)
        flown[:, 1] += CLEARANCE * 64.0 * np.clip(share * (1.0 - share), 0.0, None) ** 3
        place = np.where(swing[:, None], flown, place)
        side = self.body.half_hips * (1.0 if left else -1.0)
        return np.stack([place[:, 0], np.full_like(x, side), place[:, 1]], axis=1), self.pitch(phase)

    # -- pressure --------------------------------------------------------------------------------------------------

    def weight(self, left: bool, t):
        """Share of the ground force that a foot carries."""
        phase, _ = self.phase(left, t)
        double = STANCE - 0.5
        return _smooth(phase / double) * (1.0 - _smooth((phase - 0.5) / double))

    def pressure(self, left: bool, t):
        """Centre of pressure under a foot (n, 3), also while it swings: then the last or the next one on the ground."""
        phase, cycle = self.phase(left, t)
        over = np.clip(phase / STANCE, 0.0, 1.0)
        x = self.flat(left, cycle) + self.heel[0] + (self.toes[0] - self.heel[0]) * _smooth(over)
        side = self.body.half_hips * (1.0 if left else -1.0)
        return np.stack([x, np.full_like(x, side), np.zeros_like(x)], axis=1)

    def pelvis(self, t):
        """Position of the pelvis (n, 3)."""
        fine = np.arange(FINE) / FINE * CYCLE
        p = self.planned(fine)[:, :2] + self.correction
        speed = 2.0 * STEP / CYCLE
        p[:, 0] -= speed * fine
        height = self.body.ankle_height + BENT * (self.body.length("thigh") + self.body.length("shank"))
        series = np.fft.rfft(p, axis=0)
        frequency = 2.0 * np.pi * np.fft.rfftfreq(len(fine), fine[1])
        series /= (1.0 + frequency**2 * height / 9.81)[:, None] * len(fine)
        few = 24
        waves = np.exp(1j * np.outer(t, frequency[:few]))
        xy = (2.0 * waves[:, 1:] @ series[1:few] + series[0]).real
        return np.column_stack([xy[:, 0] + speed * t, xy[:, 1], height + BOB * np.cos(4 * np.pi * (t / CYCLE - 0.27))])

    def planned(self, t):
        """Centre of pressure of both feet together (n, 3)."""
        return sum(self.weight(left, t)[:, None] * self.pressure(left, t) for left in (True, False))

    def _settle(self):
        """Move the pelvis so that the centre of pressure of the whole body is where it is planned."""
        t = np.linspace(-0.1 * CYCLE, 1.1 * CYCLE, 241)
        fine = np.arange(FINE) / FINE * CYCLE
        for _ in range(6):
            off = (self.planned(t) - self.needed(self.motion(t))[2])[:, :2]
            self.correction += 0.7 * np.column_stack([np.interp(fine, t, column) for column in off.T])

    def needed(self, motion: bk.Motion):
        """Required ground force, vertical moment and centre of pressure."""
        left_over = motion.inverse_dynamics().residuals["root"]
        origin = bk.poses(self.mechanism, motion.q)["pelvis"][1]
        force, moment = left_over[:, :3], left_over[:, 3:] + np.cross(origin, left_over[:, :3])
        cop = np.column_stack([-moment[:, 1] / force[:, 2], moment[:, 0] / force[:, 2], np.zeros(len(force))])
        return force, (moment - np.cross(cop, force)) * [0.0, 0.0, 1.0], cop

    # -- everything ------------------------------------------------------------------------------------------------

    def motion(self, t: np.ndarray | None = None) -> bk.Motion:
        """Coordinates of the figure."""
        m, t = self.mechanism, self.t if t is None else t
        q = np.tile(m.neutral(), (len(t), 1))
        swing = np.sin(2.0 * np.pi * (t / CYCLE + 0.17))
        pelvis, yaw = self.pelvis(t), Rotation.from_rotvec(np.outer(YAW * swing, [0.0, 0.0, 1.0]))
        q[:, m.q_slice("root")] = np.column_stack([pelvis - m.links[0].position, _wxyz(yaw)])
        q[:, m.q_slice("waist")] = _wxyz(Rotation.from_rotvec(np.outer(-2.0 * YAW * swing, [0.0, 0.0, 1.0])))
        q[:, m.q_slice("neck")] = _wxyz(Rotation.from_rotvec(np.outer(YAW * swing, [0.0, 0.0, 1.0])))
        for left in (True, False):
            side = "left" if left else "right"
            hip, knee, ankle = self._leg(left, t, pelvis, yaw)
            q[:, m.q_slice(f"{side}_hip")], q[:, m.q_slice(f"{side}_knee")] = _wxyz(hip), knee[:, None]
            q[:, m.q_slice(f"{side}_ankle")] = _wxyz(ankle)
            back = -swing if left else swing
            q[:, m.q_slice(f"{side}_shoulder")] = _wxyz(Rotation.from_rotvec(np.outer(ARMS * back, [0.0, 1.0, 0.0])))
            q[:, m.q_slice(f"{side}_elbow")] = (ELBOWS - 0.2 * back)[:, None]
        return bk.Motion(m, t, q, "walk")

    def _leg(self, left: bool, t, pelvis, yaw: Rotation):
        """Turn of the hip, angle of the knee, turn of the ankle, for the planned pose of the foot."""
        target, turn = self.foot(left, t)
        hip = yaw.apply([0.0, self.body.half_hips * (1.0 if left else -1.0), 0.0]) + pelvis
        d = yaw.inv().apply(target - hip)
        thigh, shank = self.body.length("thigh"), self.body.length("shank")
        far = np.linalg.norm(d, axis=1)
        knee = np.arccos(np.clip((far**2 - thigh**2 - shank**2) / (2.0 * thigh * shank), -1.0, 1.0))
        straight = np.column_stack([-shank * np.sin(knee), np.zeros_like(knee), -thigh - shank * np.cos(knee)])
        hip_turn = _between(straight, d)
        upper = yaw * hip_turn * Rotation.from_rotvec(np.outer(knee, [0.0, 1.0, 0.0]))
        return hip_turn, knee, upper.inv() * Rotation.from_rotvec(np.outer(turn, [0.0, 1.0, 0.0]))

    def plates(self, motion: bk.Motion) -> dict[str, bk.ForcePlate]:
        """Readings of force plates under the feet: {left or right: plate}."""
        force, free, cop = self.needed(motion)
        weights = {left: self.weight(left, self.t)[:, None] for left in (True, False)}
        planned = {left: self.pressure(left, self.t) for left in (True, False)}
        off = cop - self.planned(self.t)
        return {name: bk.ForcePlate.of_cop(name, self.t, weights[left] * force, planned[left] + off,
                                           weights[left] * free) for name, left in (("left", True), ("right", False))}


def record(folder: Path, seconds: float = 1.65, rate: float = 100.0, noise: bool = True) -> tuple[Path, Path]:
    """Write walk.bvh (metres, z up) and walk.mot (OpenSim's axes: y up, x forward); the same on every call."""
    walk = Walk(seconds, rate)
    motion = walk.motion()
    plates = walk.plates(motion)
    rng = np.random.default_rng(0)
    angle, place, newtons = (amount if noise else 0.0 for amount in NOISE)
    shaken = rng.standard_normal(motion.v.shape) * np.radians(angle)
    shaken[:, :3] = 1e-3 * place * rng.standard_normal((len(motion.t), 3))
    recorded = bk.Motion(motion.mechanism, motion.t, motion.mechanism.integrate(motion.q, shaken), "walk")
    columns, rows = ["time"], [motion.t]
    for name, plate in plates.items():
        on = plate.loaded[:, None]
        force = plate.force + newtons * rng.standard_normal(plate.force.shape)
        free = np.outer(plate.free_moment, [0.0, 0.0, 1.0])
        for kind, values in (("force_v", force * on), ("force_p", np.nan_to_num(plate.cop)), ("torque_", free * on)):
            columns += [f"{name}_ground_{kind}{axis}" for axis in "xyz"]
            rows += list((values @ turned("y", "x")).T)  # from our axes to the file's
    table = np.array(rows).T
    path = folder / "walk.mot"
    lines = ["walk", "version=1", f"nRows={len(table)}", f"nColumns={len(columns)}", "inDegrees=no", "endheader",
             "\t".join(columns), *("\t".join(f"{x:.6f}" for x in row) for row in table)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return recorded.save(folder / "walk.bvh"), path


def _smooth(share):
    """From 0 to 1, with two derivatives that vanish at the ends."""
    s = np.clip(share, 0.0, 1.0)
    return s * s * s * (10.0 - 15.0 * s + 6.0 * s * s)


def _quintic(s, x0, v0, a0, x1, v1, a1):
    """The polynomial of degree 5 with these values, first and second derivatives at s = 0 and 1."""
    d, b, c = x1 - x0 - v0 - 0.5 * a0, v1 - v0 - a0, a1 - a0
    return (x0 + v0 * s + 0.5 * a0 * s**2 + (10 * d - 4 * b + 0.5 * c) * s**3 + (-15 * d + 7 * b - c) * s**4
            + (6 * d - 3 * b + 0.5 * c) * s**5)


def _between(a, b) -> Rotation:
    """The shortest turns that take directions a to b."""
    a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
    half = np.column_stack([np.cross(a, b), 1.0 + np.sum(a * b, axis=1)])
    return Rotation.from_quat(half)


def _wxyz(turn: Rotation) -> np.ndarray:
    return np.roll(turn.as_quat(), 1, axis=1)
