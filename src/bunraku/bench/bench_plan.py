"""Benchmark of planned motions: iterations, cost and time of `bk.plan_motion` beside Crocoddyl's box-DDP in one run.

Both solve the same problem: steps of "symplectic_euler", the same costs and limits, the same first guess; Crocoddyl's
models are made from the same masses by Pinocchio. Its last node has the running cost of the last state that ours has.

    cart-pole   swings up from rest, 100 steps of 20 ms, a force of at most 20 N
    UR5         reaches for a pose, by its coordinates, and stops, 100 steps of 10 ms
    figure      of 34 degrees of freedom stands on its soles, held as two loops, and moves a hand to a point; 40 steps
                of 20 ms; without a peer

Times are processor time of one core for an iteration, the best of some runs, with OPENBLAS_NUM_THREADS=1. For closed
chains ours goes through Python for each step and state; trees are compiled.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

import bunraku as bk
from bunraku.bench import machine
from bunraku.bench import model_files as files
from bunraku.bench.peers import Pinocchio
from bunraku.errors import LoadWarning, ModelError
from bunraku.optimal_control import Goal, PointGoal, StateGoal

INSTALL = "pip install crocoddyl 'pin==4.0.0'"


@dataclass
class Options:
    """How often and how long."""

    runs: int = 3
    iterations: int = 60

    @classmethod
    def quick(cls):
        return cls(runs=1, iterations=20)


@dataclass
class Problem:
    """What both solve. Goals of points are at the end; those of states at the end and, `always`, over time."""

    title: str
    m: bk.Mechanism
    q: np.ndarray
    step: float
    steps: int
    effort: float
    limits: np.ndarray
    joints: list[str]
    tau: np.ndarray
    end: tuple[np.ndarray, float, float]                     # q and weights of q, v
    always: tuple[np.ndarray, float, float] | None = None
    point: tuple[str, np.ndarray, float] | None = None       # link, target, weight
    peer: bool = True                                        # whether Crocoddyl solves it, too

    def goals(self) -> list[Goal]:
        found: list[Goal] = [StateGoal(self.end[0], 0.0, q_weight=self.end[1], v_weight=self.end[2])]
        if self.always:
            q, of_q, of_v = self.always
            found.append(StateGoal(q, 0.0, q_weight=of_q, v_weight=of_v, when="always"))
        if self.point:
            found.append(PointGoal(self.point[0], self.point[1], weight=self.point[2]))
        return found


def run(options: Options | None = None, quiet: bool = False) -> dict:
    """All results as plain data."""
    options = options or Options()
    rows = [_row(problem, options) for problem in (cart_pole(), arm(), figure())]
    return {"bunraku": bk.__version__, "machine": machine.describe(), "rows": rows, "crocoddyl": _version()}


def _version():
    if find_spec("crocoddyl") is None:
        return None
    import crocoddyl

    return crocoddyl.__version__


def _row(problem, options) -> dict:
    ours = _best(options.runs, lambda: _ours(problem, options.iterations))
    row: dict[str, Any] = {"title": problem.title, "steps": problem.steps, "dof": problem.m.nv, "ours": ours}
    if problem.peer and _version():
        try:
            theirs = _best(options.runs, lambda: _theirs(problem, options.iterations))
            row |= {"crocoddyl": theirs, "ratio": theirs["ms"] / ours["ms"]}
        except ModelError as error:
            row["note"] = str(error)
    return row


def _best(runs, solve) -> dict:
    return min((solve() for _ in range(runs)), key=lambda found: found["ms"])


def _ours(p: Problem, iterations) -> dict:
    begin = time.process_time()
    plan = bk.plan_motion(p.m, p.goals(), steps=p.steps, step=p.step, q=p.q, effort=p.effort, limits=p.limits,
                          joints=p.joints, tau=p.tau, iterations=iterations, tolerance=1e-6, workers=1)
    spent = time.process_time() - begin
    return {"iterations": plan.iterations, "cost": plan.cost, "ms": 1e3 * spent / max(plan.iterations, 1)}


def _theirs(p: Problem, iterations) -> dict:
    import crocoddyl

    peer = Pinocchio(p.m)
    state = crocoddyl.StateMultibody(peer.model)
    acting = crocoddyl.ActuationModelFull(state)
    nu = acting.nu

    def node(weights):
        costs = crocoddyl.CostModelSum(state, nu)
        for k, (goal, of_q, of_v) in enumerate(weights):
            wanted = np.concatenate([peer.q(goal), np.zeros(p.m.nv)])
            each = crocoddyl.ActivationModelWeightedQuad(np.concatenate([np.full(p.m.nv, of_q), np.full(p.m.nv, of_v)]))
            costs.addCost(f"state {k}", crocoddyl.CostModelResidual(
                state, each, crocoddyl.ResidualModelState(state, wanted, nu)), 1.0)
        costs.addCost("effort", crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, nu)), p.effort)
        return crocoddyl.DifferentialActionModelFreeFwdDynamics(state, acting, costs)
    always = [p.always] if p.always else []
    scaled = [(goal, p.step * a, p.step * b) for goal, a, b in always]
    running = crocoddyl.IntegratedActionModelEuler(node(always), p.step)
    last = crocoddyl.IntegratedActionModelEuler(node([p.end, *scaled]), 0.0)
    order = peer.order_v
    motors = np.zeros(p.m.nv, bool)
    for joint in p.joints:
        motors[p.m.v_slice(joint)] = True
    most = np.where(motors, p.limits, 0.0)[order]
    if np.isfinite(most).all():
        running.u_lb, running.u_ub = -most, most
    x0 = np.concatenate([peer.q(p.q), np.zeros(p.m.nv)])
    _agree(p, peer, running)
    problem = crocoddyl.ShootingProblem(x0, [running] * p.steps, last)
    problem.nthreads = 1
    solver = crocoddyl.SolverBoxDDP(problem) if np.isfinite(most).all() else crocoddyl.SolverDDP(problem)
    solver.th_stop = 1e-9
    us = [np.ascontiguousarray(u[order]) for u in np.broadcast_to(p.tau, (p.steps, p.m.nv))]
    xs = list(problem.rollout(us))
    begin = time.process_time()
    solver.solve(xs, us, iterations, True)
    spent = time.process_time() - begin
    off = 0.0
    for goal, a, _ in always:  # the first state counts there
        off += 0.5 * p.step * a * float(np.sum(p.m.difference(goal, p.q) ** 2))
    return {"iterations": solver.iter, "cost": solver.cost - off, "ms": 1e3 * spent / max(solver.iter, 1)}


def _agree(p, peer, running) -> None:
    """Whether Crocoddyl's accelerations are ours: its wheel is made for one version of Pinocchio."""
    rng, data = np.random.default_rng(0), running.createData()
    q, v, tau = 0.5 * rng.normal(size=p.m.nq), rng.normal(size=p.m.nv), rng.normal(size=p.m.nv)
    running.calc(data, np.concatenate([peer.q(q), peer.v(v)]), peer.v(tau))
    ours = bk.forward_dynamics(p.m, q, v, tau)
    off = float(np.abs(peer.back(data.differential.xout) - ours).max() / np.abs(ours).max())
    if off > 1e-9:
        raise ModelError(f"Crocoddyl's accelerations are off by {off:.1e}: its wheel {_version()} does not fit the "
                         f"installed Pinocchio; {INSTALL}")


# -- the problems ------------------------------------------------------------------------------------------------------


def cart_pole() -> Problem:
    m = bk.Mechanism(name="cart-pole")
    m.add_link("cart", joint=bk.Prismatic((1, 0, 0)), mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_link("pole", "cart", bk.Revolute((0, 1, 0)), actuated=False, mass=0.1, com=(0, 0, -0.5),
               inertia=(0.01, 0.01, 0.001))
    up = np.array([0.0, np.pi])
    return Problem("cart-pole", m, np.zeros(2), 0.02, 100, 1e-3, np.full(2, 20.0), ["cart"], np.zeros((100, 2)),
                   (up, 100.0, 10.0), (up, 0.1, 0.1))


def arm() -> Problem:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LoadWarning)
        m = files.bare(bk.load(str(files.find("ur5_robot.urdf")), base="fixed"))
    joints = [link.joint_name for link in m.links if link.joint.nv]
    q = np.array([0.0, -1.5, 1.2, -1.3, -1.57, 0.0])
    hold = bk.inverse_dynamics(m, q, np.zeros(m.nv), np.zeros(m.nv))
    R, p = bk.poses(m, q)["ee_link"]
    goal = bk.inverse_kinematics(m, {"ee_link": (R, p + np.array([-0.2, 0.3, 0.1]))}, q).q
    return Problem("UR5", m, q, 0.01, 100, 1e-4, np.full(m.nv, np.inf), joints, np.tile(hold, (100, 1)),
                   (goal, 1000.0, 10.0), (goal, 0.01, 0.01))


def figure() -> Problem:
    m = files.bare(bk.models.human(dof=34))
    q = m.neutral()
    stands = bk.poses(m, q)
    feet = "left_foot", "right_foot"
    for foot in feet:
        R, x = stands[foot]
        m.connect("ground", foot, bk.Fixed(), f"{foot} held", position_a=x, rotation_a=R)
    joints = [link.joint_name for link in m.links if link.joint.nv and not isinstance(link.joint, bk.Free)]
    hold = np.asarray(bk.inverse_dynamics(m, q, np.zeros(m.nv), np.zeros(m.nv)))[:m.nv].copy()
    hold[m.v_slice("root")] = 0.0
    target = stands["left_hand"][1] + np.array([0.2, 0.05, 0.2])
    return Problem("figure on its soles", m, q, 0.02, 40, 1e-4, np.full(m.nv, np.inf), joints, np.tile(hold, (40, 1)),
                   (q, 0.0, 1.0), (q, 1.0, 0.1), ("left_hand", target, 1e4), False)


# -- for people --------------------------------------------------------------------------------------------------------


def text(result: dict) -> str:
    """The result as a page."""
    peer = f"Crocoddyl {result['crocoddyl']}" if result["crocoddyl"] else ""
    lines = [f"bunraku {result['bunraku']}: planned motions" + (f", beside {peer}" if peer else ""),
             machine.line(result["machine"]), "",
             f"  {'':<22}{'steps':>6}{'nv':>4}{'iterations':>12}{'cost':>12}{'ms an iteration':>17}"]
    for row in result["rows"]:
        for name, key in (("", "ours"), ("Crocoddyl", "crocoddyl")):
            if key in row:
                found = row[key]
                label = row["title"] if key == "ours" else f"  {name}"
                sizes = f"{row['steps']:6}{row['dof']:4}" if key == "ours" else " " * 10
                ratio = f"  ({row['ratio']:.2f}x)" if key == "crocoddyl" else ""
                lines.append(f"  {label:<22}{sizes}{found['iterations']:12}{found['cost']:12.5g}{found['ms']:17.2f}"
                             f"{ratio}")
        if "note" in row:
            lines.append(f"    {row['note']}")
    if not peer:
        lines += ["", f"Crocoddyl is not installed: {INSTALL}"]
    return "\n".join(lines)

