"""A hand picks up a box, carries it over and puts it down: held only by the friction of fingers and thumb.

An arm of three hinges moves the hand, which has two fingers and a thumb of two hinges each, all driven by servos. The
fingers press on one side of the box, the thumb on the other. Contact is resolved by time-stepping.
"""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.contact_scene import ContactScene, step_forces
from bunraku.cli.scenes.servo import Servo, servo_params, servos, smooth
from bunraku.models.solid_inertias import box

SHOULDER, UPPER, FORE = (0.0, 0.0, 0.62), 0.36, 0.30   # place and lengths of the arm [m]
PALM = (0.10, 0.09, 0.08)                              # [m] size
PHALANX, THIN, PAD = (0.05, 0.05), 0.009, 0.012        # of a finger: lengths, radius, radius of what touches [m]
FINGERS = {"left_finger": (0.045, 0.024), "right_finger": (0.045, -0.024), "thumb": (-0.045, 0.0)}  # x, y in the palm
CRATE, MASS, FRICTION = (0.06, 0.09, 0.10), 0.6, 0.8   # [m, kg]
HERE, THERE = 0.42, 0.24                               # where the box is taken and put [m]
LOW, HIGH = 0.185, 0.42                                # heights of the wrist [m]
OPEN, CLOSED = -0.12, 0.17                             # bend of fingers at their root [rad]
COURSE = ((0.0, (HERE, HIGH, OPEN)), (0.6, (HERE, LOW, OPEN)), (0.65, (HERE, LOW, OPEN)), (0.95, (HERE, LOW, CLOSED)),
          (1.05, (HERE, LOW, CLOSED)), (1.65, (HERE, HIGH, CLOSED)), (2.3, (THERE, HIGH, CLOSED)),
          (2.9, (THERE, LOW, CLOSED)), (3.0, (THERE, LOW, CLOSED)), (3.2, (THERE, LOW, OPEN)),
          (3.8, (THERE, HIGH, OPEN)))                  # time, place of the wrist, bend of the fingers
LIFTED, READ = (1.3, 2.7), 0.02                        # [s] the box is in the air; forces are read so often
ARM = {"shoulder": Servo(3000.0, 90.0), "elbow": Servo(1500.0, 40.0), "wrist": Servo(400.0, 6.0)}
FINGER, THUMB = Servo(20.0, 0.4, 3.0), Servo(40.0, 0.6, 6.0)  # the thumb stands against two fingers


class Pickup(ContactScene):
    title = "A hand picks up a box"
    seconds = 4.0
    step = 5e-4
    frames = 9
    figures = ()
    drive = servos

    def __init__(self):
        m = self.mechanism = bk.Mechanism(name="hand and box")
        hinge = bk.Revolute((0, 1, 0))
        limb = lambda length, mass, r: box(mass, (r, r, length), (0, 0, -length / 2))._asdict()  # noqa: E731
        m.add_link("upper_arm", joint=hinge, joint_name="shoulder", position=SHOULDER, **limb(UPPER, 2.0, 0.07))
        m.add_link("forearm", "upper_arm", hinge, "elbow", position=(0, 0, -UPPER), **limb(FORE, 1.2, 0.06))
        m.add_link("palm", "forearm", hinge, "wrist", position=(0, 0, -FORE),
                   **box(0.4, PALM, (0, 0, -PALM[2] / 2))._asdict())
        bend = bk.Revolute((0, 1, 0), armature=5e-4)
        for name, (x, y) in FINGERS.items():
            for part, parent, place, length in (
                    ("root", "palm", (x, y, -PALM[2]), PHALANX[0]),
                    ("tip", f"{name}_root", (0, 0, -PHALANX[0]), PHALANX[1])):
                m.add_link(f"{name}_{part}", parent, bend, position=place, **limb(length, 0.05, 2 * THIN))
            m.add_shape(f"{name}_tip", bk.Sphere(PAD), (0, 0, PAD - PHALANX[1]), friction=FRICTION, group=2, meets=1)
        self.body(m)
        m.add_plane(friction=FRICTION)
        hand = {name: THUMB if name.startswith("thumb") else FINGER for name in grasp(0.0)}
        self.params = servo_params(m, ARM | hand, course, self.seconds)
        self.q, self.v = m.neutral(), np.zeros(m.nv)
        for joint, at in course(0.0).items():
            self.q[m.q_slice(joint)] = at
        self.q[m.q_slice("box")][:3] = HERE, 0, CRATE[2] / 2

    def body(self, m: bk.Mechanism) -> None:
        """What is picked up."""
        m.add_link("box", joint=bk.Free(), **box(MASS, CRATE)._asdict())
        m.add_shape("box", bk.Box(*CRATE), friction=FRICTION)

    def advance(self, sim, until):
        """In pieces, to read the forces of the fingers."""
        self.touches = []
        for t in READ * np.arange(1, int(until / READ + 1e-9) + 1):
            sim.advance(t)
            self.touches.append((t, *fingers_press(sim)))
        sim.advance(until)

    def report(self, sim):
        t, q = self.motion.t, self.motion.q
        places = bk.poses(self.mechanism, q)
        height, up = places["box"][1][:, 2] - CRATE[2] / 2, places["box"][0][:, 2, 2]
        when, thumb, fingers, rubs = np.array(self.touches).T
        carried = (when > LIFTED[0]) & (when < LIFTED[1])
        in_hand = places["box"][1] - places["palm"][1]
        held = in_hand[(t > LIFTED[0]) & (t < LIFTED[1])]
        return super().report(sim) | {
            "lift": float(height.max()), "moved": float(places["box"][1][-1, 0] - HERE),
            "tilt_max": float(np.degrees(np.arccos(np.minimum(up, 1.0))).max()), "box_weight": MASS * 9.81,
            **({"press": float(thumb[carried].mean()), "press_fingers": float(fingers[carried].mean()),
                "friction_used": float(rubs[carried].max()), "shift": float(np.ptp(held, axis=0).max())}
               if carried.any() else {})}

    def about_motion(self, r):
        return [
            ("the box", f"weighs {r['box_weight']:.2f} N; lifted by {r['lift']:.3f} m, tilted by at most "
                        f"{r['tilt_max']:.1f} degrees, put down {abs(r['moved']):.3f} m away"),
            *([("the hand", f"thumb and fingers press with {r['press']:.1f} N from each side; friction is at most "
                            f"{100 * r['friction_used']:.0f} % of what it can be"),
               ("carried", f"the box moves in the hand by at most {1e3 * r['shift']:.2f} mm")] if "press" in r else []),
            ("at the end", f"touching: {', '.join(name.replace('_', ' ') for name in r['touching_end'])}")]

    def subtitle(self, r):
        return (f"held by friction alone: {r['press']:.0f} N from each side hold {r['box_weight']:.1f} N"
                if "press" in r else "held by friction alone")

    def panels(self, trajectory, report):
        when, thumb, fingers, _ = np.array(self.touches).T
        return {"force on the box [N]": {"thumb": (when, thumb), "both fingers": (when, fingers)}}


def fingers_press(sim: bk.Simulation) -> tuple[float, float, float]:
    """Normal force of the thumb and of both fingers on the box in the last step [N], and their largest friction
    utilisation."""
    touches = [(names, force) for names, force in step_forces(sim) if "box" in names and "ground" not in names]
    sides = [sum(force[0] for names, force in touches if ("thumb" in names) == thumb) for thumb in (True, False)]
    return (*sides, max((force[1] / (FRICTION * force[0]) for _, force in touches), default=0.0))


def course(t: float) -> dict[str, float]:
    """Targets of the servos."""
    times, places = zip(*COURSE, strict=True)
    x, z, bend = smooth(times, places, t)
    return reach(x, z) | grasp(bend)


def reach(x: float, z: float) -> dict[str, float]:
    """Inverse kinematics: angles of the arm for a wrist position with the palm upright and the elbow behind."""
    x, z = x - SHOULDER[0], SHOULDER[2] - z
    far = np.hypot(x, z)
    inner = np.arccos((far**2 - UPPER**2 - FORE**2) / (2 * UPPER * FORE))
    shoulder = -np.arctan2(x, z) + np.arctan2(FORE * np.sin(inner), UPPER + FORE * np.cos(inner))
    return {"shoulder": shoulder, "elbow": -inner, "wrist": inner - shoulder}


def grasp(bend: float) -> dict[str, float]:
    """Fingers bent at their root, their tips upright."""
    return {f"{name}_{part}": (bend if x > 0 else -bend) * (1 if part == "root" else -1)
            for name, (x, _) in FINGERS.items() for part in ("root", "tip")}
