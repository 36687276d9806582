"""A tucked somersault: a human figure in free flight, moved by muscles that follow a schedule of poses.

Angular momentum about the centre of mass cannot change in the air. A tuck makes the figure three times smaller in
inertia, so it turns three times faster: muscles do the work, and get it back (as loss) when the figure opens.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import trapezoid
from scipy.interpolate import CubicSpline

import bunraku as bk
from bunraku.mechanism import Link

# Turn of each joint in a pose, as a rotation vector [rad]: x forward, y left, z up; +y bends forward. Joints that
# are not named stay straight; left and right do the same.
STRETCHED = {"shoulder": (0, -3.0, 0)}
TUCKED = {"waist": (0, 0.7, 0), "neck": (0, 0.5, 0), "shoulder": (0, -0.1, 0), "elbow": (0, -1.4, 0),
          "hip": (0, -2.15, 0), "knee": (0, 2.5, 0), "ankle": (0, 0.5, 0)}
LANDING = {"shoulder": (0, -1.6, 0), "waist": (0, 0.15, 0), "hip": (0, -0.4, 0), "knee": (0, 0.5, 0),
           "ankle": (0, -0.15, 0)}
SCHEDULE = ((0.06, STRETCHED), (0.30, TUCKED), (0.58, TUCKED), (0.88, LANDING))  # poses and when they are reached [s]

SPEED = (0.8, 0.0, 4.6)  # of the pelvis at take-off, forward and up [m/s]
SPIN = {16: 3.2, 34: 2.68, 48: 2.72}  # forward [rad/s], for each figure so that the feet come down first
MUSCLE = 32.0            # stiffness of the muscles, as the frequency at which a limb would swing by them [rad/s]
STRONGEST = 0.7          # muscles are made to move no more inertia than this [kg m^2]
SLACK = 0.15             # a ball's muscles feel at least this share of its largest inertia about every axis


@bk.actuation
def muscles(t, q, v, params, tau):
    """Every joint pulled towards the scheduled pose by a critically damped spring.

    params: how many poses, frequency of the muscles [rad/s], times of the poses, then for each joint: dof (3: a ball),
    place in q, place in v, inertia felt (3), and three numbers (rotation vector, or an angle) per pose.
    """
    poses, frequency = int(params[0]), params[1]
    k = 0
    while k < poses - 2 and t > params[3 + k]:
        k += 1
    s = (t - params[2 + k]) / (params[3 + k] - params[2 + k])
    s = min(max(s, 0.0), 1.0)
    s = s * s * s * (10.0 - 15.0 * s + 6.0 * s * s)  # from pose to pose smoothly
    for row in range(2 + poses, params.shape[0], 6 + 3 * poses):
        i, j, p = int(params[row + 1]), int(params[row + 2]), row + 6 + 3 * k
        x = params[p] + s * (params[p + 3] - params[p])
        if params[row] == 1.0:
            tau[j] = -params[row + 3] * frequency * (frequency * (q[i] - x) + 2.0 * v[j])
            continue
        y = params[p + 1] + s * (params[p + 4] - params[p + 1])
        z = params[p + 2] + s * (params[p + 5] - params[p + 2])
        half = 0.5 * (x * x + y * y + z * z) ** 0.5
        c, f = np.cos(half), -0.5 * np.sinc(half / np.pi)
        x, y, z = f * x, f * y, f * z  # quaternion (c, x, y, z) back from the pose; times q: how far off the joint is
        a, b, d, e = q[i], q[i + 1], q[i + 2], q[i + 3]
        w = c * a - x * b - y * d - z * e
        off = (c * b + x * a + y * e - z * d, c * d - x * e + y * a + z * b, c * e + x * d - y * b + z * a)
        sine = (off[0] ** 2 + off[1] ** 2 + off[2] ** 2) ** 0.5
        turn = 2.0 * np.arctan2(sine, abs(w)) / sine if sine > 1e-9 else 2.0  # rotation vector = turn * off
        turn = turn if w >= 0.0 else -turn
        for n in range(3):
            tau[j + n] = -params[row + 3 + n] * frequency * (frequency * turn * off[n] + 2.0 * v[j + n])


class Somersault:
    """The scene: a mechanism, a start, and muscles with their schedule."""

    title = "Tucked somersault"
    seconds = 0.96

    def __init__(self, dof: int = 34):
        m = self.mechanism = bk.models.human(dof=dof)
        self.q = self._pose(STRETCHED)
        self.v = np.zeros(m.nv)
        self.v[m.v_slice("root")] = (*SPEED, 0.0, SPIN[dof], 0.0)
        self.params = self._parameters()

    def _pose(self, pose: dict) -> np.ndarray:
        return np.concatenate([_at(link, _turn(link, pose)) for link in self.mechanism.links])

    def _parameters(self) -> np.ndarray:
        m = self.mechanism
        # A joint that moves alone at unit speed: twice the kinetic energy is the inertia the joint feels
        inertia = np.minimum(2.0 * m.energy(np.tile(self._pose(TUCKED), (m.nv, 1)), np.eye(m.nv))[0], STRONGEST)
        poses = [STRETCHED, *(pose for _, pose in SCHEDULE)]
        rows: list[float] = []
        for link in m.links:
            if isinstance(link.joint, (bk.Free, bk.Fixed)):
                continue
            i, j = m.q_slice(link.joint_name).start, m.v_slice(link.joint_name).start
            turns = [_turn(link, pose) for pose in poses]
            if isinstance(link.joint, bk.Spherical):
                felt = inertia[j:j + 3]
                rows += [3, i, j, *np.maximum(felt, SLACK * felt.max()), *np.ravel(turns)]
            else:
                rows += [1, i, j, inertia[j], 0.0, 0.0]
                rows += [x for turn in turns for x in (*_at(link, turn), 0.0, 0.0)]
        return np.array([len(poses), MUSCLE, 0.0, *(time for time, _ in SCHEDULE), *rows])

    def run(self, seconds: float, rtol: float = 1e-7, progress: bool | None = None, solver: str = "rkf"):
        """The trajectory, and a report: what happened and how well the laws of mechanics were kept."""
        sim = bk.Simulation(self.mechanism, q=self.q, v=self.v, solver=solver, rtol=rtol, atol=1e-9,
                            actuation=muscles, params=self.params, progress=progress)
        trajectory = sim.run(until=seconds)
        return trajectory, self._report(trajectory, sim)

    def _report(self, trajectory, sim) -> dict:
        t, q, v = trajectory.t, trajectory.q, trajectory.v
        moving = bk.kinematics(self.mechanism, q, v)
        _, kinetic, potential = trajectory.energy()
        energy, momentum = kinetic + potential, moving.momentum
        power = CubicSpline(t, [self._power(*state) for state in zip(t, q, v, strict=True)])
        work = float(power.integrate(t[0], t[-1]))
        given = float(trapezoid(np.maximum(power(fine := np.linspace(t[0], t[-1], 4001)), 0.0), fine))
        fall = momentum[:, :3] - momentum[0, :3] - moving.mass * np.outer(t - t[0], self.mechanism.gravity)
        angular = np.linalg.norm(momentum[0, 3:])
        root = self.mechanism.links[0].name
        spin = moving.velocities[root][:, 4]
        return {
            "title": self.title, "links": len(self.mechanism.links), "dof": self.mechanism.nv, "mass": moving.mass,
            "seconds": float(t[-1]), "turns": float(CubicSpline(t, spin).integrate(t[0], t[-1]) / (2 * np.pi)),
            "height": float(moving.com[:, 2].max()), "spin_open": float(spin[0]), "spin_tucked": float(spin.max()),
            "solver": sim.solver, "steps": sim.stats.steps, "rejected": sim.stats.rejected,
            "evaluations": sim.stats.evaluations, "wall_time": sim.stats.wall_time,
            "real_time_factor": float(t[-1]) / sim.stats.wall_time,
            "energy_start": float(energy[0]), "energy_end": float(energy[-1]),
            "work": work, "work_given": given, "work_taken": given - work,
            "energy_error": abs(float(energy[-1] - energy[0]) - work) / float(np.abs(energy).max()),
            "angular_momentum": float(angular),
            "angular_momentum_drift": float(np.abs(momentum[:, 3:] - momentum[0, 3:]).max() / angular),
            "linear_momentum_drift": float(np.abs(fall).max() / np.abs(momentum[0, :3]).max()),
        }

    def _power(self, t, q, v) -> float:
        tau = np.zeros(self.mechanism.nv)
        muscles(t, q, v, self.params, tau)
        return float(tau @ v)

    def subtitle(self, report: dict) -> str:
        """One line under the picture's title."""
        return (f"human figure with {report['dof']} degrees of freedom  ·  {report['spin_open']:.1f} rad/s stretched, "
                f"{report['spin_tucked']:.1f} rad/s tucked  ·  angular momentum {report['angular_momentum']:.1f} "
                "kg m²/s throughout")


def _turn(link: Link, pose: dict) -> np.ndarray:
    """Rotation vector of the link's joint in a pose."""
    return np.array(pose.get(link.joint_name.split("_")[-1], (0, 0, 0)), float)


def _at(link: Link, turn: np.ndarray) -> list[float]:
    """Coordinates of the joint turned by a rotation vector."""
    if isinstance(link.joint, bk.Revolute):
        return [float(turn @ link.joint.axis)]
    if isinstance(link.joint, bk.Spherical):
        half = 0.5 * float(np.linalg.norm(turn))
        return [np.cos(half), *(0.5 * np.sinc(half / np.pi) * turn)]
    return link.joint.neutral()
