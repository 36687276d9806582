"""A robot standing on 8 points: one call compared with welded feet, and many rollouts with `mujoco.rollout`.

Talos with bent knees, a spring and a damper in every joint, four small spheres below each sole, on a floor.

    one call       states in turn from Python: the torques that make it stand, and a few random N m, which leave all
                   contacts sticking. So accelerations must be those with both soles welded to the ground, and normal
                   forces must sum to the weight where it stands still.
    1024 rollouts  small random velocities of all joints; bk.rollout with symplectic Euler beside mujoco.rollout with
                   Euler, elliptic cones and explicit damping, everything else off. After 0.2 s pelvis and joints must
                   be where MuJoCo's are with its stiffest contacts (time constant 2 steps).

Pinocchio: aba, computeMinverse, Jacobians and `pin.ADMMConstraintSolver`, called from Python. Only identical
computations are timed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import bunraku as bk
from bunraku.bench import model_files as files
from bunraku.bench.bench_rollout import Rolled
from bunraku.bench.bench_structure import LIMBS, ROBOT, hold
from bunraku.bench.contact_peers import admm, cones, recommend
from bunraku.bench.peers import MuJoCo, Pinocchio, required
from bunraku.bench.timing import Contestant, each, race
from bunraku.entries.pool import available
from bunraku.mechanism import Revolute

STEP = 2e-3
IN_TURN = 64
FRICTION = 0.7
SOLES = LIMBS[:2]
FOOT = [(x, y, 0.01) for x in (-0.1, 0.1) for y in (-0.06, 0.06)]  # centres of the spheres in the frame of a sole
RADIUS = 0.01
BENT = {"3": -0.4, "4": 0.8, "5": -0.4}                            # hip, knee, ankle
STIFFEST, FASTEST, DAMPED = 2000.0, 300.0, 0.1                     # N m/rad, rad/s, damping ratio
CHECKED, FEW = 100, 16                                             # steps and copies compared with MuJoCo
TARGETS = {"call": 3.0, "rollout": 1.0, "goal": 5.0, "forces": 1e-9, "held": 1e-9, "height": 1e-3, "angle": 0.01}
OURS, THEIRS = "bk.rollout", "mujoco.rollout, elliptic"
HELD, ADMM = "bk.forward_dynamics, soles held", "Pinocchio, ADMM spectral, 1e-9"


@dataclass
class Settings:
    """How long to measure."""

    seconds: float = 6.0  # per race
    rollout: int = 100    # steps
    copies: int = 1024    # robots of a rollout


def tree() -> bk.Mechanism:
    return files.read(files.find(ROBOT))[0]


def posture(m: bk.Mechanism) -> np.ndarray:
    """Knees bent, soles on the floor z = 0."""
    q = m.neutral()
    for side in ("left", "right"):
        for number, angle in BENT.items():
            q[m.q_slice(f"leg_{side}_{number}_joint")] = angle
    q[2] -= bk.poses(m, q)[SOLES[0]][1][2]
    return q


def sprung(m: bk.Mechanism, q) -> tuple[bk.Mechanism, np.ndarray, np.ndarray]:
    """With springs at rest at q; stiffness and damping by velocity (0 at the free joint)."""
    inertia = np.diag(bk.mass_matrix(m, q))
    stiffness = np.minimum(STIFFEST, FASTEST ** 2 * inertia)
    damping = 2.0 * DAMPED * np.sqrt(stiffness * inertia)
    stiffness[:6] = damping[:6] = 0.0
    for link in m.links:
        if isinstance(link.joint, Revolute):
            j = m.v_slice(link.joint_name).start
            m = m.with_joint(link.joint_name, stiffness=stiffness[j], damping=damping[j],
                             rest=float(q[m.q_slice(link.joint_name)][0]))
    return m, stiffness, damping


def standing(m: bk.Mechanism) -> bk.Mechanism:
    """On spheres; feet do not touch each other."""
    m = m.copy()
    for sole in SOLES:
        for k, centre in enumerate(FOOT):
            m.add_shape(sole, bk.Sphere(RADIUS), position=centre, friction=FRICTION, name=f"{sole}_{k}", group=2,
                        meets=1)
    m.add_plane(friction=FRICTION)
    return m


class Feet(Pinocchio):
    """Accelerations of the robot on its 8 points by Pinocchio's algorithms and contact solver, without springs."""

    def __init__(self, m: bk.Mechanism):
        super().__init__(m)
        self.points = []  # joint, point in its frame
        for sole in SOLES:
            joint, frame = self.carrier[m.link_names.index(sole)]
            self.points += [(joint, frame.act(np.array([x, y, z - RADIUS]))) for x, y, z in FOOT]
        self.cones = cones(self.pin, self.model, [joint for joint, _ in self.points], FRICTION)
        self.solver, self.settings = self.pin.ADMMConstraintSolver(), admm(self.pin, 1e-9)

    def forward(self, q, v, tau):
        """Accelerations at v = 0, where contact accelerations obey the same law as velocities."""
        pin, model, data, q = self.pin, self.model, self.data, self.q(q)
        a = pin.aba(model, data, q, self.v(v), self.v(tau))
        inverse = pin.computeMinverse(model, data, q)
        pin.computeJointJacobians(model, data, q)
        J = np.concatenate([
            pin.getFrameJacobian(model, data, joint, pin.SE3(data.oMi[joint].rotation.T, at), pin.LOCAL)[:3]
            for joint, at in self.points])
        toward, result = inverse @ J.T, pin.ADMMSolverResult()
        self.solver.solve(pin.DelassusOperatorDense(J @ toward), J @ a, *self.cones, self.settings, result)
        return self.back(a + toward @ result.retrieveConstraintImpulses())


class OnSpheres(MuJoCo):
    """Talos in MuJoCo with the same spheres."""

    points, radius = dict.fromkeys(SOLES, FOOT), RADIUS

    def add_shapes(self, m, bodies):
        kind, rub = self.mujoco.mjtGeom, {"friction": [FRICTION, 0.0, 0.0]}
        for link, centres in self.points.items():
            for centre in centres:
                bodies[m.link_names.index(link)].add_geom(type=kind.mjGEOM_SPHERE, size=[self.radius, 0, 0],
                                                          pos=centre, contype=0, conaffinity=1, **rub)
        bodies[-1].add_geom(type=kind.mjGEOM_PLANE, size=[0, 0, 1], contype=1, conaffinity=0, **rub)


class Standing(Rolled):
    """The same under `mujoco.rollout`."""

    robot = OnSpheres

    def __init__(self, m: bk.Mechanism, q, stiffness, damping, recommended: bool):
        self.peer = peer = self.robot(m)
        self.mujoco, self.rollout = peer.mujoco, required("mujoco.rollout")
        mj, model = self.mujoco, peer.model
        off, option = mj.mjtDisableBit, model.opt
        option.disableflags = int(off.mjDSBL_EQUALITY | off.mjDSBL_FRICTIONLOSS | off.mjDSBL_LIMIT
                                  | off.mjDSBL_ACTUATION | off.mjDSBL_SENSOR | off.mjDSBL_EULERDAMP)
        option.timestep, option.integrator = STEP, mj.mjtIntegrator.mjINT_EULER
        option.cone = mj.mjtCone.mjCONE_ELLIPTIC
        if recommended:
            recommend(option, mj)
        model.dof_damping[:] = damping[peer.order_v]
        model.jnt_stiffness[:] = stiffness[peer.order_v][model.jnt_dofadr]
        model.qpos_spring[:] = peer.q(q)


def starts(m: bk.Mechanism, q, count: int, seed: int = 0):
    """The posture with small velocities of the joints."""
    v = 0.1 * np.random.default_rng(seed).normal(size=(count, m.nv))
    v[:, :6] = 0.0
    return np.tile(q, (count, 1)), v


def supported(m: bk.Mechanism, q) -> np.ndarray:
    """Torques that hold q while the floor supports the weight vertically below the centre of mass."""
    state = bk.kinematics(m, q)
    (left, right), com = (state.poses[sole][1] for sole in SOLES), state.com
    share = (com[1] - right[1]) / (left[1] - right[1])
    weight = float(m.mass) * float(np.linalg.norm(m.gravity))
    external = {}
    for sole, at, part in ((SOLES[0], left, share), (SOLES[1], right, 1.0 - share)):
        force = np.array([0.0, 0.0, part * weight])
        external[sole] = np.concatenate([force, np.cross([com[0] - at[0], 0.0, 0.0], force)])
    return bk.inverse_dynamics(m, q, np.zeros(m.nv), np.zeros(m.nv), external=external)


def robot(settings: Settings) -> dict:
    """Both comparisons, each if the computations are equivalent."""
    bare = tree()
    q = posture(bare)
    m, stiffness, damping = sprung(bare, q)
    stands = standing(m)
    return {"robot": ROBOT, "dof": m.nv, "mass": float(m.mass), "copies": settings.copies, "steps": settings.rollout,
            "threads": available(), **_one_call(bare, m, stands, q, settings),
            **_rollouts(bare, stands, q, stiffness, damping, settings)}


def row(c: Contestant, first: Contestant) -> dict:
    return {"label": c.label, "best_us": 1e6 * c.best, "median_us": 1e6 * c.median, "speedup": first.best / c.best}


def _one_call(bare, m, stands, q, settings) -> dict:
    held = m.copy()
    hold(held, SOLES, q)
    tau = supported(m, q) + np.random.default_rng(1).normal(size=(IN_TURN, m.nv))
    tau[:, :6] = 0.0
    states = np.tile(q, (IN_TURN, 1)), np.zeros((IN_TURN, m.nv)), tau
    calls = {HELD: _of(bk.forward_dynamics, held), "bk.forward_dynamics, 8 points": _of(bk.forward_dynamics, stands),
             "bk.dynamics, 8 points": _of(bk.dynamics, stands), ADMM: Feet(bare).forward}
    exact = np.array([calls[HELD](*state) for state in zip(*states, strict=True)])
    differ = {}
    for label, call in calls.items():
        found = [call(*state) for state in zip(*states, strict=True)]
        differ[label] = float(np.abs(np.array([getattr(x, "a", x) for x in found]) - exact).max() / np.abs(exact).max())
    same = [label for label in calls if differ[label] < TARGETS["held"]]
    contestants = [Contestant(label, each(calls[label], *states), IN_TURN) for label in same]
    race(contestants, settings.seconds)
    return {"call": [row(c, contestants[0]) for c in contestants], "held": differ, "forces": forces(m, stands, q)}


def _of(function, m):
    return lambda q, v, tau: function(m, q, v, tau)


def forces(m, stands, q) -> float:
    """Relative error of the normal forces of the robot at rest from its weight."""
    tau = supported(m, q)
    tau[:6] = 0.0
    contacts = getattr(bk.dynamics(stands, q, np.zeros(m.nv), tau), "contacts", None)
    if not contacts:
        return float("inf")
    weight = float(m.mass) * float(np.linalg.norm(m.gravity))
    return abs(sum(float(np.dot(contact.force, contact.normal)) for contact in contacts) / weight - 1.0)


def _rollouts(bare, stands, q, stiffness, damping, settings) -> dict:
    def peer(recommended):
        return Standing(bare, q, stiffness, damping, recommended)

    return beside_mujoco(stands, bare, q, peer, settings, TARGETS, slice(2, 3), slice(7, None))


def beside_mujoco(m, bare, q, peer, settings, targets, places, angles, **options) -> dict:
    """Rollouts of m and of `peer(recommended)` in MuJoCo, if the motion is the same: after CHECKED steps from FEW
    states `places` and `angles` of MuJoCo's coordinates differ by no more than the targets."""
    threads, n, copies = available(), settings.rollout, settings.copies
    ours: dict = {"solver": "symplectic_euler", "step": STEP, "workers": threads, **options}
    qs, vs = starts(bare, q, copies)
    rigid = peer(True)
    rigid.peer.model.geom_solref[:] = 2.0 * STEP, 1.0
    theirs = rigid.run(rigid.states(qs[:FEW], vs[:FEW]), CHECKED, 1)()[:, -1, 1:1 + bare.nq]
    end = bk.rollout(m, qs[:FEW], vs[:FEW], CHECKED * STEP, **ours).q[:, -1]
    gap = np.abs(np.array([rigid.peer.q(x) for x in end]) - theirs)
    height, angle = float(gap[:, places].max()), float(gap[:, angles].max())
    contestants = []
    for words, recommended in ((THEIRS, False), ("... impratio 10", True)):
        rolled = peer(recommended)
        contestants.append(Contestant(words, rolled.run(rolled.states(qs, vs), n, threads), n * copies))
    if height <= targets["height"] and angle <= targets["angle"]:
        contestants.append(Contestant(OURS, lambda: bk.rollout(m, qs, vs, n * STEP, **ours), n * copies))
    race(contestants, settings.seconds)
    return {"height": height, "angle": angle, "rollouts": [row(c, contestants[0]) for c in contestants]}


def robot_verdicts(found: dict) -> list[dict]:
    """Targets of the robot; a comparison that could not run counts as failed."""
    call = {row["label"]: row["best_us"] for row in found["call"]}
    ours = {label for label in found["held"] if label not in (HELD, ADMM)}
    rolled = {row["label"]: row["best_us"] for row in found["rollouts"]}
    slower = min((call[label] for label in ours & call.keys()), default=float("inf")) / call[HELD]
    faster = rolled[THEIRS] / rolled[OURS] if OURS in rolled else 0.0
    most = [("Talos: sum of normal forces", found["forces"], "forces", "of weight"),
            ("Talos: accelerations, from those with soles held",
             min(found["held"][label] for label in ours), "held", "relative"),
            ("Talos: one call on 8 points", slower, "call", "of held"),
            ("Talos: height, from MuJoCo's", found["height"], "height", "m"),
            ("Talos: joints, from MuJoCo's", found["angle"], "angle", "rad")]
    return [*({"what": what, "measured": value, "target": TARGETS[name], "unit": unit, "met": value <= TARGETS[name]}
              for what, value, name, unit in most),
            *({"what": f"Talos: {found['copies']} rollouts{words}", "measured": faster, "target": TARGETS[name],
               "unit": "x MuJoCo", "met": faster >= TARGETS[name]}
              for words, name in (("", "rollout"), (", goal", "goal")))]


def robot_lines(found: dict, paint) -> list[str]:
    """Both comparisons as text."""
    lines = [paint("1", "Talos on 8 points") + f"  {found['dof']} degrees of freedom, {found['mass']:.1f} kg, friction "
             f"{FRICTION:g}",
             "accelerations differ from those with soles held by " + ", ".join(
                 f"{error:.0e} ({label})" for label, error in found["held"].items() if label != HELD),
             f"after {CHECKED} steps pelvis and joints are {1e3 * found['height']:.2f} mm and {found['angle']:.4f} rad "
             "from MuJoCo's"]
    threads = f"{found['threads']} thread{'s' * (found['threads'] > 1)}"
    for name, title, all_of_them in (
            ("call", "one call", list(found["held"])),
            ("rollouts", f"{found['copies']} rollouts of {found['steps']} steps, {threads}", [OURS])):
        rows = found[name]
        lines += ["", paint("4", f"  {title:<40}{'best us':>9}{'median':>9}{'x ' + rows[0]['label']:>36}")]
        lines += [f"  {row['label']:<40}{row['best_us']:9.2f}{row['median_us']:9.2f}{row['speedup']:36.2f}"
                  for row in rows]
        lines += [f"  {label:<40} not timed: results differ"
                  for label in all_of_them if label not in {row["label"] for row in rows}]
    return [*lines, "", "  us: for a call; for a step of one copy"]
