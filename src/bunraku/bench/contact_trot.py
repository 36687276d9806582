"""A trotting quadruped: many rollouts with `mujoco.rollout`.

Unitree Go2 with bent knees, a spring and a damper in every joint, a small sphere at each foot, on a floor. Diagonal
pairs of legs bend in turn by torques that depend on time alone, the same on both sides: a compiled actuation, and
forces applied to MuJoCo's joints. Feet stick, slip, are lifted and land, at times of their own in each copy, which
start with small random velocities of all joints. bk.rollout with symplectic Euler beside mujoco.rollout with Euler, as
`contact_robot` has it. After CHECKED steps, half a period, base and joints must be where MuJoCo's are with its
stiffest contacts.
"""

from __future__ import annotations

import math

import numpy as np

import bunraku as bk
from bunraku.bench import model_files as files
from bunraku.bench.contact_robot import (
    CHECKED,
    FRICTION,
    OURS,
    STEP,
    THEIRS,
    OnSpheres,
    Settings,
    Standing,
    beside_mujoco,
    sprung,
)
from bunraku.entries.pool import available

ROBOT = "go2.urdf"
LEGS = {"FL": 0, "FR": 1, "RL": 1, "RR": 0}  # which of the two pairs
THIGH, CALF, RADIUS = 0.8, -1.6, 0.022
PERIOD, BEND = 0.4, 0.3       # [s]; angle by which knees would bend without load
TARGETS = {"goal": 5.0, "height": 2e-3, "angle": 0.02}


@bk.actuation
def trot(t, q, v, params, tau):
    """Torques of the first pair of legs, then of the second: halves of `params`."""
    turn = math.sin(2.0 * math.pi * t / PERIOD)
    first, second = max(0.0, turn) ** 2, max(0.0, -turn) ** 2
    n = tau.shape[0]
    for j in range(n):
        tau[j] = first * params[j] + second * params[n + j]


def posture(m: bk.Mechanism) -> np.ndarray:
    """Knees bent, feet on the floor z = 0."""
    q = m.neutral()
    for leg in LEGS:
        q[m.q_slice(f"{leg}_thigh_joint")], q[m.q_slice(f"{leg}_calf_joint")] = THIGH, CALF
    q[2] -= min(bk.poses(m, q)[f"{leg}_foot"][1][2] for leg in LEGS) - RADIUS
    return q


def torques(m: bk.Mechanism, stiffness) -> np.ndarray:
    """`params`: torques that bend the legs of either pair."""
    bend = np.zeros((2, m.nv))
    for leg, pair in LEGS.items():
        bend[pair, m.v_slice(f"{leg}_thigh_joint")] = 0.5 * BEND
        bend[pair, m.v_slice(f"{leg}_calf_joint")] = -BEND
    return (bend * stiffness).ravel()


def on_balls(m: bk.Mechanism) -> bk.Mechanism:
    m = m.copy()
    for leg in LEGS:
        m.add_shape(f"{leg}_foot", bk.Sphere(RADIUS), friction=FRICTION, name=leg, group=2, meets=1)
    m.add_plane(friction=FRICTION)
    return m


class OnBalls(OnSpheres):
    """The quadruped in MuJoCo."""

    points, radius = {key: [(0.0, 0.0, 0.0)] for key in (f"{leg}_foot" for leg in LEGS)}, RADIUS


class Trotting(Standing):
    """The same under `mujoco.rollout`, with the torques of `trot`."""

    robot = OnBalls

    def __init__(self, m: bk.Mechanism, q, stiffness, damping, recommended: bool):
        super().__init__(m, q, stiffness, damping, recommended)
        self.params = torques(m, stiffness)

    def run(self, initial, steps: int, threads: int):
        model, tau = self.peer.model, np.zeros((steps, self.peer.model.nv))
        for k in range(steps):
            trot(k * STEP, None, None, self.params, tau[k])
        control = np.repeat(tau[None, :, self.peer.order_v], len(initial), 0)
        data = [self.mujoco.MjData(model) for _ in range(threads)]
        out = np.zeros((len(initial), steps, initial.shape[1]))
        sensors = np.zeros((len(initial), steps, model.nsensordata))

        def call():
            self.rollout.rollout(model, data, initial, control, nstep=steps, state=out, sensordata=sensors,
                                 control_spec=int(self.mujoco.mjtState.mjSTATE_QFRC_APPLIED), persistent_pool=True)
            return out
        return call


def quadruped(settings: Settings) -> dict:
    """Rollouts of both, if the motion is the same."""
    bare = files.read(files.find(ROBOT))[0]
    q = posture(bare)
    m, stiffness, damping = sprung(bare, q)

    def peer(recommended):
        return Trotting(bare, q, stiffness, damping, recommended)

    found = beside_mujoco(on_balls(m), bare, q, peer, settings, TARGETS, slice(3), slice(3, None), actuation=trot,
                          params=torques(bare, stiffness))
    return {"robot": ROBOT, "dof": m.nv, "mass": float(m.mass), "copies": settings.copies, "steps": settings.rollout,
            "threads": available(), **found}


def trot_verdicts(found: dict) -> list[dict]:
    """Targets of the quadruped; a comparison that could not run counts as failed."""
    rolled = {row["label"]: row["best_us"] for row in found["rollouts"]}
    faster = rolled[THEIRS] / rolled[OURS] if OURS in rolled else 0.0
    most = [("Quadruped: base, from MuJoCo's", found["height"], "height", "m"),
            ("Quadruped: angles, from MuJoCo's", found["angle"], "angle", "rad")]
    return [*({"what": what, "measured": value, "target": TARGETS[name], "unit": unit, "met": value <= TARGETS[name]}
              for what, value, name, unit in most),
            {"what": f"Quadruped: {found['copies']} rollouts", "measured": faster, "target": TARGETS["goal"],
             "unit": "x MuJoCo", "met": faster >= TARGETS["goal"]}]


def trot_lines(found: dict, paint) -> list[str]:
    """The comparison as text."""
    threads = f"{found['threads']} thread{'s' * (found['threads'] > 1)}"
    rows = found["rollouts"]
    title = f"{found['copies']} rollouts of {found['steps']} steps, {threads}"
    lines = [paint("1", "A quadruped trots") + f"  Go2, {found['dof']} degrees of freedom, {found['mass']:.1f} kg",
             f"after {CHECKED} steps base and angles are {1e3 * found['height']:.2f} mm and {found['angle']:.4f} rad "
             "from MuJoCo's",
             "", paint("4", f"  {title:<40}{'best us':>9}{'median':>9}{'x ' + rows[0]['label']:>36}")]
    lines += [f"  {row['label']:<40}{row['best_us']:9.2f}{row['median_us']:9.2f}{row['speedup']:36.2f}" for row in rows]
    if OURS not in {row["label"] for row in rows}:
        lines.append(f"  {OURS:<40} not timed: results differ")
    return lines
