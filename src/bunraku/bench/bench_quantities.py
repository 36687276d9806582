"""Benchmark of Jacobians, momentum matrices and other quantities of Talos beside Pinocchio in one run.

Nothing is timed before both agree to 1e-10. What each line measures:

    Pinocchio   its functions for this quantity, one call from Python each, states in turn
    one call    bunraku's function, one call from Python, states in turn
    batch       one call with (B, n) states and one worker, divided by B
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import bunraku as bk
from bunraku.bench import machine
from bunraku.bench import model_files as files
from bunraku.bench.bench_dynamics import random_states
from bunraku.bench.peers import Pinocchio, required
from bunraku.bench.timing import Contestant, Progress, each, race, speedup
from bunraku.errors import BunrakuError

ROBOT, LINK = "talos_reduced.urdf", "arm_left_7_link"
AGREEMENT, FORCES = 1e-10, 1.5
FEW, BATCH = 32, 1024


@dataclass
class Options:
    """How long to measure."""

    seconds: float = 2.0  # per quantity

    @classmethod
    def quick(cls):
        return cls(seconds=0.3)


def run(options: Options | None = None, quiet: bool = False) -> dict:
    """All results as plain data."""
    options = options or Options()
    required("pinocchio")
    m, _ = files.read(files.find(ROBOT))
    states = [x[:BATCH] for x in random_states(m, BATCH)]
    quantities = _quantities(m, Pinocchio(m))
    progress = Progress(len(quantities) + 1, quiet)
    rows = []
    try:
        for name, (theirs, ours) in quantities.items():
            progress(name)
            rows.append(_row(m, name, theirs, ours, states, options))
            progress.done()
        progress("joint forces")
        forces = [_forces(model, options) for model in (m, bk.models.human(dof=34), bk.models.humanoid())]
        progress.done()
    finally:
        progress.close()
    return {"bunraku": bk.__version__, "machine": machine.describe(), "title": m.name, "dof": m.nv, "rows": rows,
            "forces": forces}


def _quantities(m, peer) -> dict:
    """{name: (theirs(q, v, a), in Pinocchio's order, ours(q, v, a))}; theirs returns a matrix by columns of v."""
    pin, model, order = peer.pin, peer.model, peer.order_v
    joint, frame = peer.carrier[m.link_names.index(LINK)]
    number = model.addFrame(pin.Frame("tip", joint, 0, frame, pin.FrameType.OP_FRAME))
    data, world = model.createData(), pin.LOCAL_WORLD_ALIGNED

    def jacobian(q, v, a):
        return pin.computeFrameJacobian(model, data, q, number, world)

    def jacobian_rate(q, v, a):
        pin.computeJointJacobiansTimeVariation(model, data, q, v)
        pin.updateFramePlacement(model, data, number)
        return pin.getFrameJacobianTimeVariation(model, data, number, world)

    def momentum_rate(q, v, a):
        pin.dccrba(model, data, q, v)
        return data.dAg

    def acceleration(q, v, a):
        pin.forwardKinematics(model, data, q, v, a)
        return pin.getFrameClassicalAcceleration(model, data, number, world).vector

    def inertia(q, v, a):
        J = pin.computeFrameJacobian(model, data, q, number, world)
        return np.linalg.inv(J @ pin.computeMinverse(model, data, q) @ J.T)

    back = np.argsort(order)  # Pinocchio's velocities in bunraku's order

    def by_column(X):
        return X[..., back]

    def square(X):
        return X[np.ix_(back, back)]

    def whole(X):
        return X

    found = {
        "Jacobian of a link": (jacobian, by_column, lambda q, v, a: bk.kinematics(m, q).jacobian(LINK)),
        "its rate": (jacobian_rate, by_column, lambda q, v, a: bk.kinematics(m, q, v).jacobian_rate(LINK)),
        "acceleration of a link": (acceleration, whole, lambda q, v, a: bk.kinematics(m, q, v, a).accelerations[LINK]),
        "Jacobian of the centre of mass": (lambda q, v, a: pin.jacobianCenterOfMass(model, data, q), by_column,
                                           lambda q, v, a: bk.kinematics(m, q).com_jacobian),
        "centroidal momentum matrix": (lambda q, v, a: pin.computeCentroidalMap(model, data, q), by_column,
                                       lambda q, v, a: bk.kinematics(m, q).momentum_matrix),
        "its rate, too": (momentum_rate, by_column, lambda q, v, a: bk.kinematics(m, q, v).momentum_matrix_rate),
        "Coriolis matrix": (lambda q, v, a: pin.computeCoriolisMatrix(model, data, q, v), square,
                            lambda q, v, a: bk.coriolis_matrix(m, q, v)),
        "operational-space inertia": (inertia, whole, lambda q, v, a: bk.operational_inertia(m, q, LINK)),
        "inertial regressor": (lambda q, v, a: pin.computeJointTorqueRegressor(model, data, q, v, a), None,
                               lambda q, v, a: bk.inertial_regressor(m, q, v, a)),
    }
    return {name: ((theirs, shape, peer), ours) for name, (theirs, shape, ours) in found.items()}


def _row(m, name, theirs, ours, states, options) -> dict:
    function, shape, peer = theirs
    few = [x[:FEW].copy() for x in states]
    their_states = [peer.q(few[0]), peer.v(few[1]), peer.v(few[2])]
    difference = max(_difference(m, function, shape, ours, [x[k] for x in few], [x[k] for x in their_states])
                     for k in range(FEW))
    if not difference < AGREEMENT:
        raise BunrakuError(f"{name}: the libraries disagree by {difference:.1e}, so there is nothing to compare")
    contestants = [Contestant("Pinocchio", each(function, *their_states), FEW),
                   Contestant("one call", each(ours, *few), FEW),
                   Contestant("batch", lambda: ours(*states), BATCH)]
    race(contestants, options.seconds)
    pinocchio, one, batch = contestants
    return {"name": name, "difference": difference, "pinocchio_us": 1e6 * pinocchio.best, "one_us": 1e6 * one.best,
            "batch_us": 1e6 * batch.best, "speedup": speedup(pinocchio, one)[0],
            "speedup_batch": speedup(pinocchio, batch)[0]}


def _difference(m, function, shape, ours, mine, given) -> float:
    """Relative to the largest entry. The regressors have other columns (of joints, not of links), so their torques are
    compared."""
    if shape is None:
        found, expected = ours(*mine) @ bk.inertial_parameters(m), bk.inverse_dynamics(m, *mine)
    else:
        found, expected = ours(*mine), shape(np.array(function(*given)))
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def _forces(m, options) -> dict:
    """Joint forces beside forward dynamics."""
    q, v, tau = (x[:FEW] for x in random_states(m, FEW))
    one = Contestant("forward dynamics", each(lambda *state: bk.forward_dynamics(m, *state), q, v, tau), FEW)
    all_forces = Contestant("joint forces", each(lambda *state: bk.joint_forces(m, *state), q, v, tau), FEW)
    race([one, all_forces], options.seconds)
    ratio = all_forces.best / one.best
    return {"title": m.name, "dof": m.nv, "links": len(m.links), "forward_us": 1e6 * one.best,
            "forces_us": 1e6 * all_forces.best, "ratio": ratio, "target": FORCES, "met": ratio <= FORCES}


def text(result: dict) -> str:
    """The result as a page."""
    on = result["machine"]
    lines = [f"bunraku {result['bunraku']} beside Pinocchio {on['versions'].get('pin', '?')}: quantities of "
             f"{result['title']}, {result['dof']} degrees of freedom", machine.line(on), "",
             f"  {'microseconds':<34}{'agree to':>9}{'Pinocchio':>11}{'one call':>10}{'x':>7}{'batch':>9}{'x':>7}"]
    lines += [f"  {row['name']:<34}{row['difference']:9.0e}{row['pinocchio_us']:11.2f}{row['one_us']:10.2f}"
              f"{row['speedup']:7.2f}{row['batch_us']:9.2f}{row['speedup_batch']:7.2f}" for row in result["rows"]]
    lines += ["", "joint forces beside forward dynamics, one call from Python"]
    lines += [f"  {row['title']}, {row['dof']} degrees of freedom, {row['links']} links: {row['forward_us']:.2f} us, "
              f"with all forces {row['forces_us']:.2f} us, {row['ratio']:.2f} times: "
              f"{'PASS' if row['met'] else 'MISS'} (at most {row['target']:g})" for row in result["forces"]]
    return "\n".join(lines)
