"""A robot that stands on 8 points: one call beside limbs held, and many rollouts beside `mujoco.rollout`.

Talos with bent knees, a spring and a damper in every joint, four small spheres below each sole, on a floor with friction.

    one call       bk.dynamics(m, q, v, tau) from Python, states in turn, beside the same with both soles welded to the
                   ground; the torques are random
    1024 rollouts  small random velocities of all joints; bk.rollout with symplectic Euler beside mujoco.rollout with
                   Euler, elliptic cones and explicit damping, everything else off

Both simulators must still stand: the pelvis is as high as MuJoCo's within 5 mm, joints turned as in MuJoCo within
0.05 rad (its contacts are soft).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import bunraku as bk
from bunraku.bench import files
from bunraku.bench.contact_peers import recommend
from bunraku.bench.peers import MuJoCo, required
from bunraku.bench.rollout import Rolled
from bunraku.bench.structure import LIMBS, ROBOT, hold
from bunraku.bench.timing import Contestant, each, race
from bunraku.entries.pool import available
from bunraku.mechanism import Revolute

STEP = 2e-3
COPIES = 1024
IN_TURN = 64
FRICTION = 0.7
SOLES = LIMBS[:2]
FOOT = [(x, y, 0.01) for x in (-0.1, 0.1) for y in (-0.06, 0.06)]  # centres of the spheres in the frame of a sole
RADIUS = 0.01
BENT = {"3": -0.4, "4": 0.8, "5": -0.4}                            # hip, knee, ankle
STIFFEST, FASTEST, DAMPED = 600.0, 150.0, 0.1                      # N m/rad, rad/s, damping ratio
TARGETS = {"call": 3.0, "rollout": 1.0, "goal": 3.0, "forces": 1e-9, "height": 5e-3, "angle": 0.05}
OURS, THEIRS = "bk.rollout", "mujoco.rollout, elliptic"
HELD, STANDS = "bk.dynamics, soles held", "bk.dynamics, 8 points"


@dataclass
class Settings:
    """How long to measure."""

    seconds: float = 6.0  # per race
    rollout: int = 100    # steps


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
            m.add_shape(sole, bk.Sphere(RADIUS), position=centre, friction=FRICTION, name=f"{sole}_{k}", group=2, meets=1)
    m.add_plane(friction=FRICTION)
    return m


class OnSpheres(MuJoCo):
    """Talos in MuJoCo with the same spheres."""

    def add_shapes(self, m, bodies):
        kind, rub = self.mujoco.mjtGeom, {"friction": [FRICTION, 0.0, 0.0]}
        for sole in SOLES:
            for centre in FOOT:
                bodies[m.link_names.index(sole)].add_geom(type=kind.mjGEOM_SPHERE, size=[RADIUS, 0, 0], pos=centre,
                                                          contype=0, conaffinity=1, **rub)
        bodies[-1].add_geom(type=kind.mjGEOM_PLANE, size=[0, 0, 1], contype=1, conaffinity=0, **rub)


class Standing(Rolled):
    """The same under `mujoco.rollout`."""

    def __init__(self, m: bk.Mechanism, q, stiffness, damping, recommended: bool):
        self.peer = peer = OnSpheres(m)
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


def robot(settings: Settings) -> dict:
    """Both races, and whether the robot stands."""
    bare = tree()
    q = posture(bare)
    m, stiffness, damping = sprung(bare, q)
    stands = standing(m)
    found = _one_call(m, stands, q, settings)
    found |= _rollouts(bare, stands, q, stiffness, damping, settings)
    return found | {"robot": ROBOT, "dof": m.nv, "mass": float(m.mass), "copies": COPIES, "steps": settings.rollout}


def _row(c: Contestant, first: Contestant) -> dict:
    return {"label": c.label, "best_us": 1e6 * c.best, "median_us": 1e6 * c.median, "speedup": first.best / c.best}


def _one_call(m, stands, q, settings) -> dict:
    held = m.copy()
    hold(held, SOLES, q)
    states = np.tile(q, (IN_TURN, 1)), np.zeros((IN_TURN, m.nv)), _torques(m)
    contestants = [Contestant("bk.forward_dynamics, soles held", each(_of(bk.forward_dynamics, held), *states), IN_TURN),
                   Contestant(HELD, each(_of(bk.dynamics, held), *states), IN_TURN),
                   Contestant("bk.forward_dynamics, 8 points", each(_of(bk.forward_dynamics, stands), *states), IN_TURN),
                   Contestant(STANDS, each(_of(bk.dynamics, stands), *states), IN_TURN)]
    race(contestants, settings.seconds)
    return {"call": [_row(c, contestants[0]) for c in contestants], "forces": forces(m, stands, q)}


def _torques(m) -> np.ndarray:
    tau = 3.0 * np.random.default_rng(1).normal(size=(IN_TURN, m.nv))
    tau[:, :6] = 0.0
    return tau


def _of(function, m):
    return lambda q, v, tau: function(m, q, v, tau)


def forces(m, stands, q) -> float:
    """Normal forces beside the vertical force that the tree's inverse dynamics asks for, relative to the weight."""
    result = bk.dynamics(stands, q, np.zeros(m.nv), np.zeros(m.nv))
    contacts = getattr(result, "contacts", None)
    if not contacts:
        return float("inf")
    normal = sum(float(np.dot(contact.force, contact.normal)) for contact in contacts)
    needed = bk.inverse_dynamics(m, q, np.zeros(m.nv), result.a)[2]  # the pelvis is upright
    return abs(normal - needed) / (float(m.mass) * float(np.linalg.norm(m.gravity)))


def _rollouts(bare, stands, q, stiffness, damping, settings) -> dict:
    threads, n = available(), settings.rollout
    qs, vs = starts(bare, q, COPIES)
    contestants, ends = [], None
    for words, recommended in ((THEIRS, False), ("... impratio 10", True)):
        rolled = Standing(bare, q, stiffness, damping, recommended)
        contestants.append(Contestant(words, rolled.run(rolled.states(qs, vs), n, threads), n * COPIES))
        if recommended:
            ends = rolled.run(rolled.states(qs, vs), n, threads)()[:, -1]
    ours = {"solver": "symplectic_euler", "step": STEP, "workers": threads}
    contestants.append(Contestant(OURS, lambda: bk.rollout(stands, qs, vs, n * STEP, **ours), n * COPIES))
    end = bk.rollout(stands, qs, vs, n * STEP, **ours).q[:, -1]
    theirs = ends[:, 1:1 + bare.nq]
    mine = np.array([rolled.peer.q(x) for x in end])
    race(contestants, settings.seconds)
    return {"rollouts": [_row(c, contestants[0]) for c in contestants], "threads": threads,
            "height": float(np.abs(mine[:, 2] - theirs[:, 2]).max()),
            "angle": float(np.abs(mine[:, 7:] - theirs[:, 7:]).max()), "fell": float(q[2] - theirs[:, 2].min())}


def robot_verdicts(found: dict) -> list[dict]:
    """Targets of the robot."""
    call = {row["label"]: row["best_us"] for row in found["call"]}
    rolled = {row["label"]: row["best_us"] for row in found["rollouts"]}
    faster = rolled[THEIRS] / rolled[OURS]
    most = [("Talos: sum of normal forces", found["forces"], "forces", "of weight"),
            ("Talos: one call on 8 points", call[STANDS] / call[HELD], "call", "of held"),
            ("Talos: height beside MuJoCo's", found["height"], "height", "m"),
            ("Talos: joints beside MuJoCo's", found["angle"], "angle", "rad")]
    return [*({"what": what, "measured": value, "target": TARGETS[name], "unit": unit, "met": value <= TARGETS[name]}
              for what, value, name, unit in most),
            *({"what": f"Talos: {COPIES} rollouts{words}", "measured": faster, "target": TARGETS[name],
               "unit": "x MuJoCo", "met": faster >= TARGETS[name]}
              for words, name in (("", "rollout"), (", goal", "goal")))]


def robot_lines(found: dict, paint) -> list[str]:
    """Both races in words."""
    lines = [paint("1", "Talos on 8 points") + f"  {found['dof']} degrees of freedom, {found['mass']:.1f} kg, friction "
             f"{FRICTION:g}"]
    titles = (("call", "one call"), ("rollouts", f"{found['copies']} rollouts of {found['steps']} steps, "
                                                 f"{found['threads']} thread{'s' * (found['threads'] > 1)}"))
    for name, title in titles:
        rows = found[name]
        lines += ["", paint("4", f"  {title:<40}{'best us':>9}{'median':>9}{'x ' + rows[0]['label']:>36}")]
        lines += [f"  {row['label']:<40}{row['best_us']:9.2f}{row['median_us']:9.2f}{row['speedup']:36.2f}"
                  for row in rows]
    return [*lines, "", f"  us: for a call; for a step of one copy. After the rollouts pelvis and joints are within "
            f"{1e3 * found['height']:.1f} mm, {found['angle']:.3f} rad of MuJoCo's."]
