"""Every public name of the package, used as a typed program would: `mypy --strict tools/typed_api.py` must pass.

It also runs: `python tools/typed_api.py`.
"""

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import bunraku as bk

ERRORS: tuple[type[bk.BunrakuError], ...] = (
    bk.ActuationError, bk.ConstraintError, bk.ContactError, bk.InertiaError, bk.LoadError, bk.MissingExtra,
    bk.MissingFileError, bk.ModelError, bk.NamingError, bk.ReadOnlyError, bk.SettingError, bk.ShapeError,
    bk.SimulationError, bk.StateError, bk.ViewerError)
WARNINGS: tuple[type[Warning], ...] = (bk.ForcePlateWarning, bk.LoadWarning, bk.SimulationWarning)


@bk.actuation
def damp(t: float, q: np.ndarray, v: np.ndarray, params: np.ndarray, tau: np.ndarray) -> None:
    for i in range(tau.shape[0]):
        tau[i] = -params[0] * v[i]


def build() -> bk.Mechanism:
    m = bk.Mechanism(gravity=(0, 0, -9.81), name="everything")
    joints = [bk.Revolute((0, 1, 0)), bk.Prismatic((1, 0, 0)), bk.Helical((0, 0, 1), 0.01), bk.Cylindrical((0, 0, 1)),
              bk.Planar((0, 0, 1)), bk.Spherical(), bk.Free(), bk.Fixed(),
              bk.Compound(bk.Revolute((1, 0, 0)), bk.Revolute((0, 1, 0)))]
    shapes = [bk.Sphere(0.1), bk.Capsule(0.1, 0.2), bk.Box(0.1, 0.1, 0.1), bk.Cylinder(0.1, 0.2),
              bk.Hull(np.eye(4, 3)), bk.Points(np.eye(3))]
    for k, joint in enumerate(joints):
        m.add_link(f"link {k}", "ground", joint, position=(k, 0, 2), mass=1.0, inertia=(0.1, 0.1, 0.1))
    for k, shape in enumerate(shapes):
        m.add_shape(f"link {k}", shape)
    m.add_shape("ground", bk.Heightfield(np.zeros((3, 3)), (1.0, 1.0)), position=(0, 20, 0))
    m.add_plane()
    return m


def evaluate(m: bk.Mechanism) -> None:
    q, v, tau = m.neutral(), np.zeros(m.nv), np.zeros(m.nv)
    a = bk.forward_dynamics(m, q, v, tau)
    assert bk.inverse_dynamics(m, q, v, a).shape == a.shape
    print(bk.joint_forces(m, q, v, tau)["link 0"], bk.dynamics(m, q, v, tau).a, bk.mass_matrix(m, q).shape)
    print(bk.poses(m, q)["link 0"], bk.kinematics(m, q, v).com, bk.contacts(m, q), m.energy(q, v))
    chain = bk.models.chain(3)
    print(bk.impact(chain, chain.neutral(), np.zeros(chain.nv)), bk.project(chain, chain.neutral(), np.zeros(chain.nv)))
    slopes: np.ndarray = bk.parameter_derivatives(m, q, v, tau, parameters=["gravity", ("mass", "link 0")]).da
    print(slopes.shape, bk.connection_force_derivatives)
    arm = bk.models.chain(2)
    motion: bk.Motion = bk.exciting_motion(arm, 2.0, tries=2)
    identified = bk.identify(arm, motion, tau=bk.inverse_dynamics(arm, motion.q, motion.v, motion.a), fit="inertia")
    print(identified.mechanism.mass, identified.deviation["link1.mass"], identified.identifiable.rank)
    chained = bk.models.chain(3)
    cost: float = bk.gradient(chained, np.zeros(3), np.zeros(3), np.zeros((4, 3)), step=0.01).cost
    print(cost, bk.constraints, bk.closed_chain, bk.coordinates, bk.operation_count, bk.processor_array, bk.convert)
    schedule: bk.Schedule = bk.schedule(bk.models.chain(32), workers=2)
    print(schedule.depth, schedule.predicted_speedup)


def plan() -> None:
    m = bk.models.chain(2)
    goal = bk.optimal_control.StateGoal([0.1, 0.2], 0.0, q_weight=10.0)
    planned: bk.optimal_control.PlannedMotion = bk.plan_motion(m, goal, steps=5, step=0.01, limits={"link1": 50.0})
    held: bk.optimal_control.Regulator = bk.lqr(m, [0.0, 0.0], R=0.1)
    print(planned.cost, planned.gains.shape, held.gain.shape, held.poles)
    bk.Simulation(m, actuation=planned.controller() + held.controller(10.0), progress=False).run(until=0.01)


def simulate(folder: Path) -> None:
    m = bk.models.chain(4)
    sim = bk.Simulation(m, solver="gear", actuation=damp, params=np.array([0.1]), progress=False)
    trajectory: bk.Trajectory = sim.run(until=0.1)
    moved: np.ndarray = bk.sensitivities(bk.Simulation(m, solver="tsit5"), 0.1, parameters=["gravity"]).by_state[-1]
    print(moved.shape)
    trajectory.save(str(folder / "motion.npz"))
    print(bk.load_trajectory(str(folder / "motion.npz")).t, bk.force_above, bk.points_meet, bk.points_part, bk.Guide)
    many: bk.Rollout = bk.rollout(m, np.tile(m.neutral(), (3, 1)), np.zeros((3, m.nv)), until=0.02, step=0.002,
                                  solver="rk4")
    print(many, bk.RolloutCase, bk.ensemble(abs, [-1, 2]), bk.load_ensemble)
    print(bk.solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0]).y[:, -1])
    print(bk.ForcePlate, bk.JointMoments, bk.Markers, bk.Motion, bk.MotionTable, bk.load, bk.load_motion)


if __name__ == "__main__":
    warnings.simplefilter("ignore", bk.SimulationWarning)
    evaluate(build())
    plan()
    with TemporaryDirectory() as place:
        simulate(Path(place))
