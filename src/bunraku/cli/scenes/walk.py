"""A biped that steps: a humanoid robot walks some steps and stops, on a flat floor.

The walk is planned, then executed by servos; only its feet support the robot. The plan consists of footsteps and the
zero-moment point (ZMP), which must stay under the feet. The centre of mass moves as an inverted pendulum of constant
height with this ZMP [Kajita et al. 2003], here as the solution of a boundary-value problem:

    x'' = g/z (x - zmp),   at rest above the feet at both ends.

Inverse dynamics of the whole robot gives its actual ZMP; the difference corrects the plan.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_banded

import bunraku as bk
from bunraku.cli.scenes.contact_scene import ContactScene, step_forces
from bunraku.cli.scenes.servo import EVERY, Servo, servo_params, servos, smooth

STEPS, LENGTH, LIFT = 6, 0.24, 0.05      # how many, from foot to foot [m], height of a lifted foot [m]
BEGIN, SINGLE, DOUBLE, STOP = 1.2, 0.55, 0.2, 1.2  # [s] to shift the weight, on one foot, on both, to stop
REST = 0.7                               # [s] at the end
HEIGHT = 0.915                           # of the base [m]
HIP, LEG, ANKLE = (0.0, 0.09, -0.14), 0.36, 0.10  # place in the base, length of thigh and of shank, above the sole [m]
SOLE = 0.03                              # middle of the sole before the ankle [m]
CORRECTIONS = 4
FRICTION = 0.8
ARMATURE = 0.3                           # rotors of the motors, seen at the joints [kg m^2]
STRONG, WEAK = Servo(8000.0, 400.0), Servo(1000.0, 60.0)  # of legs and waist; of arms and head
ARMS = {"elbow_pitch": -0.5, "shoulder_roll": 0.12}       # [rad]
READ = 0.02                              # [s] forces are read so often
SIDES = {"left": 1.0, "right": -1.0}


class Walk(ContactScene):
    title = "A biped that steps"
    seconds = BEGIN + STEPS * (SINGLE + DOUBLE) + STOP + REST
    step = 5e-4
    frames, elevation = 10, 0.0
    figures = ()
    drive = servos

    def __init__(self):
        m = self.mechanism = bk.models.humanoid(armature=ARMATURE)
        m.add_plane(friction=FRICTION)
        self.plan = Plan(m, self.seconds - REST)
        legs = ("hip", "knee", "ankle", "waist")
        joints = {link.joint_name: STRONG if any(part in link.joint_name for part in legs) else WEAK
                  for link in m.links if isinstance(link.joint, bk.Revolute)}
        targets = self.plan.q[:, [m.q_slice(name).start for name in joints]]
        torques = self.plan.torques()[:, [m.v_slice(name).start for name in joints]]
        targets = targets + torques / [servo.stiffness for servo in joints.values()]  # for what servos yield by
        course = [dict(zip(joints, row, strict=True)) for row in targets]
        self.params = servo_params(m, joints, lambda t: course[min(round(t / EVERY), len(course) - 1)], self.seconds)
        self.q, self.v = self.plan.q[0], np.zeros(m.nv)

    def advance(self, sim, until):
        """In pieces, to read the forces under the feet."""
        self.loads = []
        for t in READ * np.arange(1, int(until / READ + 1e-9) + 1):
            sim.advance(t)
            forces = step_forces(sim)
            self.loads.append((t, *(sum(force[0] for names, force in forces if side in names) for side in SIDES)))
        sim.advance(until)

    def report(self, sim):
        motion = self.motion
        moving = bk.kinematics(self.mechanism, motion.q, motion.v)
        _, left, right = np.array(self.loads).T
        lifted = [moving.poses[f"{side}_ankle_roll"][1][:, 2] - ANKLE > 0.5 * LIFT for side in SIDES]
        upright = moving.poses["base"][0][:, 2, 2]
        return super().report(sim) | {
            "steps_taken": int(sum(np.count_nonzero(np.diff(up.astype(int)) == 1) for up in lifted)),
            "distance": float(moving.com[-1, 0] - moving.com[0, 0]),
            "on_one_foot": float(((left == 0) != (right == 0)).mean()),
            "tilt_max": float(np.degrees(np.arccos(np.minimum(upright, 1.0))).max()),
            "planned_zmp_error": self.plan.zmp_error}

    def about_motion(self, r):
        return [
            ("walk", f"{r['steps_taken']} steps, {r['distance']:.2f} m; {100 * r['on_one_foot']:.0f} % of the time on "
                     f"one foot; the base tilts by at most {r['tilt_max']:.1f} degrees"),
            ("plan", f"its ZMP is within {1e3 * r['planned_zmp_error']:.1f} mm of the wanted one, by inverse dynamics"),
            *super().about_motion(r)]

    def subtitle(self, r):
        return (f"humanoid robot with {r['dof']} degrees of freedom  ·  {r['steps_taken']} steps, {r['distance']:.2f} m"
                f"  ·  in the end the floor carries {r['force_end'][2]:.1f} N, the weight is {r['weight']:.1f} N")

    def panels(self, trajectory, report):
        when, left, right = np.array(self.loads).T
        return {"force [N]": {"left foot": (when, left), "right foot": (when, right)}}


class Plan:
    """Times t, coordinates q (n, nq) of a walk, and the largest error of its ZMP [m]."""

    def __init__(self, m: bk.Mechanism, seconds: float):
        self.mechanism = m
        self.t = EVERY * np.arange(int(np.ceil(seconds / EVERY)) + 2)
        self.feet, wanted = footsteps(self.t)
        com = bk.kinematics(m, self.coordinates(pendulum(wanted, HEIGHT))[0], np.zeros(m.nv)).com - (*wanted[0], 0.0)
        asked = wanted.copy()
        for _ in range(CORRECTIONS + 1):
            self.q = self.coordinates(pendulum(asked, com[2]) - com[:2])
            error = wanted - self.zmp()
            asked += error
        self.zmp_error = float(np.abs(error).max())

    def coordinates(self, base: np.ndarray) -> np.ndarray:
        """Coordinates for base positions (n, 2) and the planned feet."""
        m = self.mechanism
        q = np.tile(m.neutral(), (len(self.t), 1))
        q[:, :2] = base
        q[:, 2] = HEIGHT - m.links[0].position[2]
        apart = self.feet["left"][:, 0] - self.feet["right"][:, 0]
        for side, y in SIDES.items():
            hip = np.column_stack([base, np.full(len(base), HEIGHT)]) + np.multiply(HIP, (1, y, 1))
            for joint, angles in leg(self.feet[side] - hip).items():
                q[:, m.q_slice(f"{side}_{joint}").start] = angles
            for joint, angle in ARMS.items():
                q[:, m.q_slice(f"{side}_{joint}").start] = angle * (y if joint.endswith("roll") else 1.0)
            q[:, m.q_slice(f"{side}_shoulder_pitch").start] = y * apart  # arms against legs
        return q

    def rates(self) -> tuple[np.ndarray, np.ndarray]:
        """Velocities and accelerations, by differences."""
        ahead = np.array([self.mechanism.difference(a, b) for a, b in zip(self.q[:-2], self.q[2:], strict=True)])
        v = np.concatenate([ahead[:1], ahead, ahead[-1:]]) / (2.0 * EVERY)
        return v, np.gradient(v, EVERY, axis=0)

    def needed(self) -> np.ndarray:
        """(n, 6): required floor force and moment about the origin, by inverse dynamics."""
        root = bk.inverse_dynamics(self.mechanism, self.q, *self.rates())[:, :6]
        place = self.q[:, :3] + self.mechanism.links[0].position
        return np.hstack([root[:, :3], root[:, 3:] + np.cross(place, root[:, :3])])  # the base is upright

    def zmp(self) -> np.ndarray:
        """(n, 2): zero-moment point, at which the floor force has no horizontal moment."""
        need = self.needed()
        return np.column_stack([-need[:, 4], need[:, 3]]) / need[:, 2:3]

    def torques(self) -> np.ndarray:
        """(n, nv): joint torques, with the floor force at the middle of the soles, distributed by the position of the
        ZMP."""
        force, ankles = self.needed()[:, :3], np.stack([self.feet[side] for side in SIDES])
        across = ankles[0] - ankles[1]
        across[:, 2] = 0.0
        middle = self.zmp() - (ankles[1, :, :2] + (SOLE, 0.0))
        share = np.clip(np.sum(middle * across[:, :2], axis=1) / np.sum(across**2, axis=1), 0.0, 1.0)
        arm = np.array([SOLE, 0.0, -ANKLE])
        external = {f"{side}_ankle_roll": np.hstack([part[:, None] * force, np.cross(arm, part[:, None] * force)])
                    for side, part in zip(SIDES, (share, 1.0 - share), strict=True)}
        return bk.inverse_dynamics(self.mechanism, self.q, *self.rates(), external=external)


def footsteps(t: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Positions of the ankles {side: (n, 3)} and of the ZMP (n, 2)."""
    now = {side: np.array([0.0, y * HIP[1], ANKLE]) for side, y in SIDES.items()}
    feet = {side: np.tile(place, (len(t), 1)) for side, place in now.items()}
    to_sole = np.array([SOLE, 0.0])
    at, points = BEGIN, [(0.0, to_sole), (0.5 * BEGIN, to_sole)]
    for k in range(STEPS):
        swings, stands = ("right", "left") if k % 2 == 0 else ("left", "right")
        pressed = now[stands][:2] + to_sole
        points += [(at, pressed), (at + SINGLE, pressed)]
        goal = now[swings].copy()
        goal[0] = now[stands][0] + (LENGTH if k < STEPS - 1 else 0.0)  # the last one closes up
        s = np.clip((t - at) / SINGLE, 0.0, 1.0)
        feet[swings] += np.array([smooth((0.0, 1.0), (0.0 * goal, goal - now[swings]), x) for x in s])
        feet[swings][:, 2] += LIFT * 64.0 * (s * (1.0 - s)) ** 3
        now[swings] = goal
        at += SINGLE + DOUBLE
    middle = 0.5 * (now["left"] + now["right"])[:2] + to_sole
    points += [(at - DOUBLE + 0.5 * STOP, middle), (at + STOP, middle)]
    return feet, np.array([smooth([time for time, _ in points], [place for _, place in points], x) for x in t])


def pendulum(zmp: np.ndarray, height: float) -> np.ndarray:
    """The centre of mass (n, 2) whose ZMP this is, at rest above it at both ends."""
    n, rate = len(zmp), 9.81 / height * EVERY**2
    bands = np.zeros((3, n))
    bands[0, 2:], bands[1, 1:-1], bands[2, :-2] = 1.0, -2.0 - rate, 1.0
    bands[1, [0, -1]] = 1.0
    right = -rate * zmp
    right[[0, -1]] = zmp[[0, -1]]
    return solve_banded((1, 1), bands, right)


def leg(reach: np.ndarray) -> dict[str, np.ndarray]:
    """Angles of a leg whose ankle is at `reach` (n, 3) from the hip, with the sole level."""
    x, y, z = reach.T
    roll, down = np.arctan2(y, -z), np.hypot(y, z)
    knee = 2.0 * np.arccos(np.hypot(x, down) / (2.0 * LEG))
    pitch = -np.arctan2(x, down) - 0.5 * knee
    return {"hip_roll": roll, "hip_pitch": pitch, "knee_pitch": knee, "ankle_pitch": -pitch - knee, "ankle_roll": -roll}
