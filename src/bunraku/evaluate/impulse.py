"""Velocities after an impulse on a link, loops included."""

from __future__ import annotations

import numpy as np

from bunraku.algorithms.connection_equations import IMPULSE
from bunraku.checks import as_array
from bunraku.entries import closed_solution as closed
from bunraku.errors import ModelError, NamingError, ShapeError
from bunraku.evaluate.kinematics import kinematics
from bunraku.mechanism import Mechanism
from bunraku.plan.loop_plan import with_connections


def impulse(mechanism: Mechanism, q, v, link: str, impulse, moment=None, *, point=(0.0, 0.0, 0.0), locked=frozenset()):
    """(v just after the impulse, {connection: (impulse, moment of impulse)}, the reactions of the loops).

    Arguments as in `Simulation.impulse`. M (v1 - v) = J' p + A' lambda with A v1 = 0, in O(N): J is the Jacobian of the
    point, p the impulse, A the constraints of the connections. Joints of the links `locked`, by index, keep their
    velocity.
    """
    wrench = wrench_of(impulse, moment)
    if mechanism.find_link(link, "impulse") < 0:
        raise NamingError("impulse: an impulse on the ground has no effect; name a link")
    J = kinematics(mechanism, q).jacobian(link, point)
    if not J.any():
        raise ModelError(f"impulse: link {link!r} is fixed to the ground, so an impulse has no effect; name a link "
                         "that moves")
    plan = mechanism.driven_plan(locked) if locked else mechanism.plan()
    push = J.T @ wrench
    push[np.isin(plan.dof_link, list(locked))] = 0.0
    solution = closed.solve(with_connections(plan, ()) if plan.loops is None else plan, IMPULSE, q, v, push)
    if plan.loops is None:
        return v + solution.a, {}
    multipliers, _ = closed.forces(solution)
    return v + solution.a, {name: solution.wrench(c, multipliers, drive=False)
                            for c, name in enumerate(plan.loops.held)}


def wrench_of(impulse, moment) -> np.ndarray:
    """Six numbers: impulse and moment of impulse."""
    given = as_array("impulse", impulse)
    if moment is not None:
        turn = as_array("impulse: moment", moment)
        if given.shape != (3,) or turn.shape != (3,):
            raise ShapeError(f"impulse: with a moment both must be three numbers, not of shapes {given.shape} and "
                             f"{turn.shape}")
        given = np.concatenate([given, turn])
    if given.shape not in ((3,), (6,)) or not np.isfinite(given).all():
        raise ShapeError(f"impulse must be three finite numbers (px, py, pz) [N s], or six with a moment of impulse, "
                         f"not {impulse!r}")
    return given if len(given) == 6 else np.concatenate([given, np.zeros(3)])
