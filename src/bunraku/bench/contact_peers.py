"""One rigid body above a plane in bunraku, MuJoCo, Pinocchio and Drake: the same scene, the same record of its motion.

    MuJoCo     `mujoco.rollout`, Euler; soft contacts. Recommended against slip: elliptic cones, impratio 10. It has no
               coefficient of restitution; recommended instead: a spring of that damping ratio, as stiff as its manual
               allows for the step (time constant 2 steps).
    Pinocchio  has no simulator: a loop in Python with `pin.ADMMConstraintSolver`, one velocity problem a step, at its
               default tolerance of 1e-6 and to 1e-10, where its spectral rule converges and the default does not. The
               solver's own time is shown beside. Open
               contacts may close (normal velocity >= -gap / step), closed ones with restitution bounce, penetration is
               reduced by a fifth a step. Three sliders and a ball joint instead of a free-flyer, whose velocity in body
               axes would leave the plane by step * speed * spin.
    Drake      MultibodyPlant in discrete time with point contact; boxes touch by their corners.

Points are spheres of 0.1 mm in MuJoCo and Drake.
"""

from __future__ import annotations

import importlib.util
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np
from scipy.spatial.transform import Rotation

import bunraku as bk
from bunraku.bench.peers import quaternion_of, required
from bunraku.errors import BunrakuError, MissingExtra
from bunraku.plan.elements import rotation_from_z

G = 9.81
LINK = "mover"    # the body, in bunraku
DOT = 1e-4        # [m] radius of the spheres that stand for points
CORRECTION = 0.2  # of the penetration, in a step of the loop with Pinocchio
ENOUGH, MOST = 0.5, 5  # [s], runs: a run is repeated for its time until either is reached


def edges(box: bk.Box) -> tuple[float, float, float]:
    return box.x, box.y, box.z


@dataclass(frozen=True)
class Scene:
    """A body with its centre of mass at the origin of its frame, on the solid below a plane through the origin."""

    shape: bk.Sphere | bk.Box | bk.Points
    inertia: tuple[float, float, float]
    friction: float
    mass: float = 1.0
    restitution: float = 0.0
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)  # of the centre, world axes
    spin: tuple[float, float, float] = (0.0, 0.0, 0.0)      # body axes

    @cached_property
    def corners(self) -> np.ndarray:
        """Centres of the spheres (or, with radius 0, points) that touch the plane, in body axes."""
        if isinstance(self.shape, bk.Sphere):
            return np.zeros((1, 3))
        if isinstance(self.shape, bk.Box):
            return np.array(list(product(*((-0.5 * edge, 0.5 * edge) for edge in edges(self.shape)))))
        return self.shape.corners()

    @property
    def radius(self) -> float:
        return self.shape.radius if isinstance(self.shape, bk.Sphere) else 0.0

    def energy(self, motion: Motion) -> np.ndarray:
        """Kinetic and potential."""
        turning = 0.5 * motion.spin ** 2 @ np.array(self.inertia)
        return self.mass * (0.5 * (motion.velocity ** 2).sum(1) + G * motion.position[:, 2]) + turning

    def gaps(self, motion: Motion) -> np.ndarray:
        """(n, corners): of all corners, negative inside the solid."""
        places = motion.position[:, None] + np.einsum("nij,cj->nci", motion.rotation, self.corners)
        return places @ np.array(self.normal) - self.radius


@dataclass
class Motion:
    """States of the body at n times."""

    t: np.ndarray
    position: np.ndarray    # (n, 3)
    quaternion: np.ndarray  # (n, 4), w x y z
    velocity: np.ndarray    # (n, 3), world axes
    spin: np.ndarray        # (n, 3), body axes

    @cached_property
    def rotation(self) -> np.ndarray:
        return Rotation.from_quat(np.roll(self.quaternion, -1, axis=1)).as_matrix()


@dataclass
class Run:
    """A motion and its computing time, or the reason for its absence."""

    motion: Motion | None
    seconds: float = math.nan   # wall time
    steps: int = 0
    note: str = ""
    solving: float | None = None  # of it in the contact solver, where that is known


@dataclass(frozen=True)
class Contestant:
    """A library at some setting: `run(scene, seconds)`."""

    label: str
    run: Callable[[Scene, float], Run]


def _timed(function) -> tuple:
    """Result and shortest time of a run [s], after a warm-up run for compilation."""
    result, best, begin = function(), math.inf, time.perf_counter()
    for _ in range(MOST):
        start = time.perf_counter()
        function()
        end = time.perf_counter()
        best = min(best, end - start)
        if end - begin > ENOUGH:
            break
    return result, best


# -- bunraku -----------------------------------------------------------------------------------------------------------


def mechanism(scene: Scene) -> tuple[bk.Mechanism, np.ndarray, np.ndarray]:
    """The scene with its state."""
    m = bk.Mechanism(gravity=(0.0, 0.0, -G))
    m.add_link(LINK, joint=bk.Free(), mass=scene.mass, inertia=scene.inertia)
    rub: dict = {"friction": scene.friction, "restitution": scene.restitution}
    m.add_shape(LINK, scene.shape, **rub)
    m.add_plane(normal=scene.normal, **rub)
    R = scene.rotation
    return (m, np.concatenate([scene.position, quaternion_of(R)]),
            np.concatenate([R.T @ np.array(scene.velocity), scene.spin]))


def bunraku(scene: Scene, seconds: float, timed: bool = True, **settings) -> Run:
    """`bk.Simulation` with every step kept; its errors are a note."""
    m, q, v = mechanism(scene)

    def simulate():
        return bk.Simulation(m, q, v, progress=False, **settings).run(seconds)
    try:
        trajectory, best = _timed(simulate) if timed else (simulate(), math.nan)
    except BunrakuError as error:
        return Run(None, note=f"{type(error).__name__}: {error}")
    q, v = trajectory.q, trajectory.v
    motion = Motion(trajectory.t, q[:, :3], q[:, 3:7], v[:, :3], v[:, 3:6])
    motion.velocity = np.einsum("nij,nj->ni", motion.rotation, v[:, :3])
    return Run(motion, best, len(trajectory.t) - 1)


# -- MuJoCo ------------------------------------------------------------------------------------------------------------


def recommend(option, mujoco) -> None:
    """Settings against slip recommended by MuJoCo's manual."""
    option.cone, option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 10.0


def mujoco(scene: Scene, seconds: float, step: float, recommended: bool) -> Run:
    """`mujoco.rollout` of one body."""
    mj, rollout = required("mujoco"), required("mujoco.rollout")
    spec = mj.MjSpec()
    spec.option.timestep, spec.option.gravity = step, (0.0, 0.0, -G)
    rub: dict = {"friction": [scene.friction, 0.0, 0.0]}
    if recommended:
        recommend(spec.option, mj)
        if scene.restitution:
            log, stiff = math.log(scene.restitution), 1.0 / (2.0 * step)
            damping = -log / math.hypot(math.pi, log)
            rub["solref"] = [-stiff ** 2, -2.0 * damping * stiff]
    body = spec.worldbody.add_body(pos=scene.position, quat=quaternion_of(scene.rotation), mass=scene.mass,
                                   inertia=scene.inertia, ipos=np.zeros(3), explicitinertial=True)
    body.add_freejoint()
    kind, back = mj.mjtGeom, 0.0
    if isinstance(scene.shape, bk.Box):
        body.add_geom(type=kind.mjGEOM_BOX, size=0.5 * np.array(edges(scene.shape)), **rub)
    elif isinstance(scene.shape, bk.Sphere):
        body.add_geom(type=kind.mjGEOM_SPHERE, size=[scene.radius, 0, 0], **rub)
    else:
        back = DOT
        for corner in scene.corners:
            body.add_geom(type=kind.mjGEOM_SPHERE, size=[DOT, 0, 0], pos=corner, **rub)
    normal = np.array(scene.normal)
    spec.worldbody.add_geom(type=kind.mjGEOM_PLANE, size=[0, 0, 1], pos=-back * normal,
                            quat=quaternion_of(rotation_from_z(normal)), **rub)
    model = spec.compile()
    initial = np.concatenate([[0.0], scene.position, quaternion_of(scene.rotation), scene.velocity, scene.spin])
    steps, data = round(seconds / step), mj.MjData(model)
    states, best = _timed(lambda: rollout.rollout(model, data, initial[None], nstep=steps)[0][0])
    states = np.vstack([initial, states])
    return Run(Motion(states[:, 0], *np.split(states[:, 1:], [3, 7, 10], axis=1)), best, steps)


# -- Pinocchio ---------------------------------------------------------------------------------------------------------


def pinocchio_4():
    """Pinocchio with its contact solver, which version 3 calls by another name."""
    pin = required("pinocchio")
    if not hasattr(pin, "ADMMConstraintSolver"):
        raise MissingExtra(f"this benchmark needs Pinocchio 4 or later, not {pin.__version__}: pip install 'pin>=4'")
    return pin


def admm(pin, tolerance: float | None):
    """Settings of Pinocchio's solver: its defaults, or to a tolerance."""
    settings = pin.ADMMSolverSettings()
    settings.measure_timings = True
    if tolerance is not None:
        settings.absolute_feasibility_tol = settings.absolute_complementarity_tol = tolerance
        settings.relative_feasibility_tol = settings.relative_complementarity_tol = tolerance
        settings.max_iterations, settings.mu_prox = 10_000, 1e-4
        settings.admm_update_rule = pin.ADMMUpdateRule.SPECTRAL
    return settings


def cones(pin, model, joints, friction: float) -> tuple:
    """Models and data of friction cones, one on each of these joints."""
    models, datas = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for k, joint in enumerate(joints):
        cone = pin.PointContactConstraintModel(model, joint)
        cone.setFriction(friction)
        models.append(pin.ConstraintModel(cone))
        datas.append(models[k].createData())
    return models, datas


class Loop:
    """Time-stepping with Pinocchio's algorithms and its contact solver."""

    def __init__(self, scene: Scene, step: float, tolerance: float | None):
        self.pin = pin = pinocchio_4()
        self.scene, self.step = scene, step
        self.model = model = pin.Model()
        model.gravity.linear[:] = 0.0, 0.0, -G
        slide = model.addJoint(0, pin.JointModelTranslation(), pin.SE3.Identity(), "slide")
        self.joint = model.addJoint(slide, pin.JointModelSpherical(), pin.SE3.Identity(), "body")
        model.appendBodyToJoint(self.joint, pin.Inertia(scene.mass, np.zeros(3), np.diag(scene.inertia)),
                                pin.SE3.Identity())
        self.data = model.createData()
        self.turn = rotation_from_z(np.array(scene.normal))  # two tangents and the normal
        self.solver, self.settings = pin.ADMMConstraintSolver(), admm(pin, tolerance)
        self.cones: dict[int, tuple] = {}
        self.touching: tuple = ()
        self.impulse = np.zeros(0)
        self.unsolved = 0
        self.solving = 0.0  # [s] in the solver itself

    def advance(self, q, v):
        """State after a step."""
        pin, model, data, h = self.pin, self.model, self.data, self.step
        v_free = v + h * pin.aba(model, data, q, v, np.zeros(model.nv))
        pin.forwardKinematics(model, data, q)
        place = data.oMi[self.joint]
        corners = self.scene.corners
        gaps = (place.translation + corners @ place.rotation.T) @ self.turn[:, 2] - self.scene.radius
        points = corners - self.scene.radius * (place.rotation.T @ self.turn[:, 2])
        turning = -self.turn.T @ place.rotation @ np.array([pin.skew(p) for p in points])
        J = np.concatenate([np.broadcast_to(self.turn.T, turning.shape), turning], axis=2)
        touching = np.flatnonzero(gaps + h * np.minimum(J[:, 2] @ v_free, 0.0) <= 0.0)
        if len(touching):
            J, gaps = J[touching].reshape(-1, 6), gaps[touching]
            toward = pin.computeMinverse(model, data, q) @ J.T
            aim = J @ v_free
            if self.scene.restitution:
                aim[2::3] += self.scene.restitution * np.minimum(J[2::3] @ v, 0.0)
            else:
                aim[2::3] += np.where(gaps > 0.0, 1.0, CORRECTION) * gaps / h
            v_free = v_free + toward @ self._solve(J @ toward, aim, tuple(touching))
        else:
            self.touching = ()
        return pin.integrate(model, q, h * v_free), v_free

    def _solve(self, delassus, aim, touching):
        """Impulses of the contacts, from those of the last step if the same corners touch."""
        pin, count = self.pin, len(touching)
        if count not in self.cones:
            self.cones[count] = cones(pin, self.model, [self.joint] * count, self.scene.friction)
        result = pin.ADMMSolverResult()
        if touching == self.touching:
            result.setConstraintImpulseGuess(self.impulse)
        solved = self.solver.solve(pin.DelassusOperatorDense(delassus), aim, *self.cones[count], self.settings, result)
        self.unsolved += not solved
        self.solving += 1e-6 * self.solver.getElapsedTime()
        self.touching, self.impulse = touching, result.retrieveConstraintImpulses()
        return self.impulse


def pinocchio(scene: Scene, seconds: float, step: float, tolerance: float | None = None) -> Run:
    """The loop, with the wall time of its Python too."""
    loop = Loop(scene, step, tolerance)
    steps = round(seconds / step)
    q = np.concatenate([scene.position, np.roll(quaternion_of(scene.rotation), -1)])
    v = np.concatenate([scene.velocity, scene.spin])
    states = [(q, v)]
    start = time.perf_counter()
    for _ in range(steps):
        q, v = loop.advance(q, v)
        states.append((q, v))
    taken = time.perf_counter() - start
    qs, vs = map(np.array, zip(*states, strict=True))
    motion = Motion(step * np.arange(steps + 1), qs[:, :3], np.roll(qs[:, 3:], 1, axis=1), vs[:, :3], vs[:, 3:])
    note = f"{loop.unsolved} of {steps} problems not solved" if loop.unsolved else ""
    return Run(motion, taken, steps, note, loop.solving)


# -- Drake -------------------------------------------------------------------------------------------------------------


def has_drake() -> bool:
    return importlib.util.find_spec("pydrake") is not None


def drake(scene: Scene, seconds: float, step: float, approximation: str | None = None) -> Run:
    """A discrete MultibodyPlant; `approximation` is one of its contact approximations."""
    from pydrake.geometry import HalfSpace, Sphere
    from pydrake.math import RigidTransform, RotationMatrix
    from pydrake.multibody.plant import AddMultibodyPlant, CoulombFriction, MultibodyPlantConfig
    from pydrake.multibody.tree import SpatialInertia, UnitInertia
    from pydrake.systems.analysis import Simulator
    from pydrake.systems.framework import DiagramBuilder

    logging.getLogger("drake").setLevel(logging.ERROR)  # half spaces do not touch deformables: there are none
    builder = DiagramBuilder()
    config = MultibodyPlantConfig(time_step=step)
    if approximation:
        config.discrete_contact_approximation = approximation
    plant, _ = AddMultibodyPlant(config, builder)
    plant.mutable_gravity_field().set_gravity_vector([0.0, 0.0, -G])
    unit = UnitInertia(*(np.array(scene.inertia) / scene.mass))
    body = plant.AddRigidBody("body", SpatialInertia(scene.mass, np.zeros(3), unit))
    rub, back = CoulombFriction(scene.friction, scene.friction), 0.0 if scene.radius else DOT
    normal = np.array(scene.normal)
    plant.RegisterCollisionGeometry(plant.world_body(), RigidTransform(RotationMatrix(rotation_from_z(normal)),
                                                                      -back * normal), HalfSpace(), "plane", rub)
    for k, corner in enumerate(scene.corners):
        plant.RegisterCollisionGeometry(body, RigidTransform(corner), Sphere(scene.radius or DOT), f"corner {k}", rub)
    plant.Finalize()
    simulator = Simulator(builder.Build())
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    R = scene.rotation
    initial = np.concatenate([quaternion_of(R), scene.position, R @ np.array(scene.spin), scene.velocity])
    plant.SetPositionsAndVelocities(context, initial)
    states = [initial]

    def keep(root):
        states.append(plant.GetPositionsAndVelocities(plant.GetMyContextFromRoot(root)))

    simulator.set_monitor(keep)
    simulator.Initialize()
    start = time.perf_counter()
    simulator.AdvanceTo(seconds)
    taken = time.perf_counter() - start
    steps = round(seconds / step)
    rows = np.array(states)[-steps - 1:]
    motion = Motion(step * np.arange(len(rows)), rows[:, 4:7], rows[:, :4], rows[:, 10:13], rows[:, 7:10])
    motion.spin = np.einsum("nji,nj->ni", motion.rotation, rows[:, 7:10])
    return Run(motion, taken, steps)


# -- all of them -------------------------------------------------------------------------------------------------------


def contestants(step: float) -> list[Contestant]:
    """Other libraries at a step."""
    found = [
        Contestant("MuJoCo, defaults", lambda s, t: mujoco(s, t, step, False)),
        Contestant("MuJoCo, elliptic, impratio 10", lambda s, t: mujoco(s, t, step, True)),
        Contestant("Pinocchio, ADMM defaults", lambda s, t: pinocchio(s, t, step)),
        Contestant("Pinocchio, ADMM spectral, 1e-10", lambda s, t: pinocchio(s, t, step, 1e-10)),
    ]
    if has_drake():
        found += [Contestant("Drake, defaults", lambda s, t: drake(s, t, step)),
                  Contestant("Drake, SAP", lambda s, t: drake(s, t, step, "sap"))]
    return found
