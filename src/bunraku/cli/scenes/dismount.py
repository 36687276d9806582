"""Dismount: a figure swings on a high bar, lets go, lands with bending knees and stands.

The figure stands by the torques of its joints and the forces of the floor under its feet, nothing else: after landing
the hips keep the trunk upright, and the ankles move the centre of pressure so that the centre of mass comes to rest
above the feet. Contact is resolved by time-stepping, with the loops of the hands on the bar until they let go.
"""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.bar import on_bar
from bunraku.cli.scenes.contact_scene import FORCE, ContactScene
from bunraku.cli.scenes.servo import smooth

DOF = 34
FLOOR, FRICTION = -2.45, 0.9     # below the bar [m]
START = 1.0                      # the body is so far behind the bar [rad]
LET_GO = -0.49                   # where the pelvis is then, before the bar [m]

# Bend of joints [rad] at times after the hands let go
HANGING = {"shoulder": -3.05}
FLYING = {"shoulder": -2.0, "hip": -0.18, "knee": 0.4}
LANDING = {"shoulder": -1.0, "hip": -0.3, "knee": 0.6, "elbow": 0.3}
STANDING = {"shoulder": -0.1, "hip": -0.15, "knee": 0.25, "elbow": 0.2}
POSES: tuple[tuple[float, dict[str, float]], ...] = (
    (0.0, HANGING), (0.15, FLYING), (0.35, LANDING), (0.9, LANDING), (1.6, STANDING))
BENT = ("shoulder", "elbow", "hip", "knee")

GAINS = {"shoulder": (80.0, 8.0), "elbow": (40.0, 4.0), "waist": (800.0, 50.0), "neck": (60.0, 5.0),
         "hip": (500.0, 40.0), "knee": (450.0, 40.0), "ankle": (150.0, 6.0)}  # [N m/rad, N m s/rad]
TOES_POINTED, ANKLE_RANGE = 0.5, 0.8     # on the bar; largest turn [rad]
UPRIGHT, LEAN = (800.0, 80.0), 0.1       # of the trunk, by the hips [N m/rad, N m s/rad]; forward [rad]
STRONGEST = 250.0                        # of a hip [N m]
MIDDLE, HEEL, TOES = 0.05, -0.045, 0.165  # where to stand, and limits of the centre of pressure, before the ankle [m]
SWAY, RESPONSE = 3.3, 3.0                # rate at which a figure falls over [1/s]; gain of the centre of pressure
ANKLE_DAMPING = 2.0                      # [N m s/rad]
STANDING_GAP = 0.004                             # soles lower than this above the floor stand on it [m]
SIDES = ("left", "right")


class Gymnast:
    """Torques (t, q, v) -> tau of the figure."""

    def __init__(self):
        m = self.figure = bk.models.human(dof=DOF)
        self.ankle_height = bk.poses(m, m.neutral())["left_foot"][1][2]
        self.released = np.inf
        of_kind = {kind: [link.joint_name for link in m.links if isinstance(link.joint, kind)]
                   for kind in (bk.Spherical, bk.Revolute)}
        self.hinges = np.array(of_kind[bk.Revolute])
        (self.ball_q, self.ball_v), (self.hinge_q, self.hinge_v) = (
            [np.array([find(name).start for name in names]) for find in (m.q_slice, m.v_slice)]
            for names in of_kind.values())
        self.ball_q, self.ball_v = self.ball_q[:, None] + np.arange(4), self.ball_v[:, None] + np.arange(3)
        self.ball_gains, self.hinge_gains = (np.array([GAINS[part(name)] for name in names]).T
                                             for names in of_kind.values())
        self.of_ball, self.of_hinge = ([part(name) for name in names] for names in of_kind.values())
        self.ankles, self.hips = (np.array([p == name for p in self.of_ball]) for name in ("ankle", "hip"))

    def pose(self, t: float) -> dict[str, float]:
        """Target pose: bending angles of the joints."""
        since = 0.0 if t <= self.released else t - self.released
        bent = smooth([time for time, _ in POSES], [[pose.get(name, 0.0) for name in BENT] for _, pose in POSES], since)
        return dict(zip(BENT, bent, strict=True))

    def __call__(self, t, q, v):
        pose, free = self.pose(t), t > self.released
        pitch, ball, knee = turn(q[3:7]), q[self.ball_q], q[self.hinge_q[self.hinges == "left_knee"]][0]
        bend = np.array([pose.get(name, 0.0) for name in self.of_ball])
        level = -(pitch + turn(ball[self.hips][0]) + knee)  # with this bend of the ankles the soles are level
        bend[self.ankles] = np.clip(level, -ANKLE_RANGE, ANKLE_RANGE) if free else TOES_POINTED
        stiffness, damping = self.ball_gains
        torque = -stiffness[:, None] * off(ball, bend) - damping[:, None] * v[self.ball_v]
        if free:
            self._stand(q, v, pitch, torque)
        tau = np.zeros(self.figure.nv)
        tau[self.ball_v] = torque
        stiffness, damping = self.hinge_gains
        wanted = np.array([pose[name] for name in self.of_hinge])
        tau[self.hinge_v] = -stiffness * (q[self.hinge_q] - wanted) - damping * v[self.hinge_v]
        return tau

    def _stand(self, q, v, pitch, torque) -> None:
        """Hips and ankles of a figure on its feet."""
        moving = bk.kinematics(self.figure, q, v)
        feet = np.array([moving.poses[f"{side}_foot"][1] for side in SIDES])
        if feet[:, 2].min() - self.ankle_height - FLOOR > STANDING_GAP:
            return
        stands = feet[:, 0].mean()
        # the point above which it would come to rest [Pratt et al. 2006]; the centre of pressure goes beyond it
        capture = moving.com[0] + moving.com_velocity[0] / SWAY - stands - MIDDLE
        pressure = np.clip(MIDDLE + RESPONSE * capture, HEEL, TOES)
        torque[self.ankles, 1] = (0.5 * moving.mass * 9.81 * pressure
                                  - ANKLE_DAMPING * v[self.ball_v[self.ankles, 1]])
        upright = 0.5 * (UPRIGHT[0] * (pitch - LEAN) + UPRIGHT[1] * v[4])
        torque[self.hips, 1] = np.clip(upright, -STRONGEST, STRONGEST)


class Dismount(ContactScene):
    title = "Dismount"
    seconds, pictured = 2.8, 1.8
    step = 2.5e-4
    frames = 11
    figures = (DOF,)

    def __init__(self, dof: int = DOF):
        self.mechanism, self.q, self.v = on_bar(dof, {"root": (0, START, 0), "shoulder": (0, HANGING["shoulder"], 0)})
        self.mechanism.add_plane(point=(0, 0, FLOOR), friction=FRICTION, name="floor")
        self.gymnast = Gymnast()

    def simulation(self, **settings):
        return super().simulation(**{"actuation": self.gymnast, **settings})

    def watch(self, sim):
        x = sim.mechanism.q_slice("root").start
        sim.when(lambda t, q, v: q[x] - LET_GO, self.let_go, name="the hands let go")
        sole = FLOOR + self.gymnast.ankle_height
        sim.when(lambda t, q, v: sole + 1e-3 - bk.poses(self.gymnast.figure, q)["left_foot"][1][2],
                 lambda sim: None, name="the feet touch the floor")

    def let_go(self, sim):
        self.gymnast.released = sim.t
        for grip in ("left_grip", "right_grip"):
            sim.cut(grip)

    def report(self, sim):
        last = self.motion.segments[-1]
        moving = bk.kinematics(self.gymnast.figure, last.q, last.v)
        events = {event.text: event.t for event in self.motion.events}
        landed = events.get("the feet touch the floor", np.inf)
        at = min(int(np.searchsorted(last.t, landed)), len(last.t) - 1)
        ankles = moving.poses["left_foot"][1]
        return super().report(sim) | {
            "let_go": events.get("the hands let go"), "landed": events.get("the feet touch the floor"),
            "landing_speed": float(-moving.com_velocity[at, 2]), "landing_forward": float(moving.com_velocity[at, 0]),
            "knees_bent": float(np.degrees(last.q[:, last.mechanism.q_slice("left_knee").start].max())),
            "feet_slip": float(np.ptp(ankles[at + int(0.1 / self.step):, 0])) if landed < last.t[-1] - 0.2 else None,
            "pelvis_height": float(moving.poses["pelvis"][1][-1, 2]) - FLOOR,
            "balance": float(moving.com[-1, 0] - ankles[-1, 0])}

    def about_motion(self, r):
        landing = [("landing", f"at {r['landing_speed']:.1f} m/s down and {r['landing_forward']:.1f} m/s forward; "
                               f"knees bend by {r['knees_bent']:.0f} degrees")] if r["landed"] else []
        return [*landing, *super().about_motion(r),
                ("balance", f"pelvis {r['pelvis_height']:.2f} m above the floor, centre of mass "
                            f"{100 * r['balance']:.1f} cm before the ankles")]

    def subtitle(self, r):
        return (f"human figure with {DOF} degrees of freedom  ·  lands at {r['landing_speed']:.1f} m/s  ·  stands: the "
                f"floor carries {r['force_end'][2]:.1f} N, the weight is {r['weight']:.1f} N")

    def panels(self, trajectory, report):
        (curves,) = super().panels(trajectory, report).values()
        return {FORCE: {"of bar and floor": curves["of the ground"], "weight": curves["weight"]}}


def part(joint: str) -> str:
    return joint.split("_")[-1]


def turn(quaternion) -> float:
    """Angle of a turn about y."""
    return 2.0 * float(np.arctan2(quaternion[2], quaternion[0]))


def off(quaternions: np.ndarray, bend: np.ndarray) -> np.ndarray:
    """Rotation vectors (n, 3) from turns about y by `bend` to quaternions (n, 4)."""
    c, s = np.cos(bend / 2), np.sin(bend / 2)
    w, x, y, z = quaternions.T
    cosine = c * w + s * y
    sine = np.stack([c * x - s * z, c * y - s * w, c * z + s * x], axis=1)
    size = np.linalg.norm(sine, axis=1)
    angle = np.where(size > 1e-9, 2.0 * np.arctan2(size, cosine) / np.maximum(size, 1e-9), 2.0)
    return angle[:, None] * sine
