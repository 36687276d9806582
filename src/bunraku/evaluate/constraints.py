"""The constraints of connections as matrices, by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.entries.constraint_entries import demands
from bunraku.errors import ShapeError
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.plan import fields as f


@dataclass(frozen=True, eq=False)
class Constraints:
    """Constraint equations of the connections of a mechanism in one state.

    A connection has a row for each direction it holds. Rows are taken at the origin of b's joint frame and describe the
    motion of b relative to a. They are orthonormal when turning is measured in radians times 1 m, so that a multiplier
    is a force in newtons (along a translation) or a moment in newton metres over 1 m (about an axis): the wrench of a
    connection on b is its rows, transposed, times its multipliers.
    """

    jacobian: np.ndarray          # J (rows, nv): J v = 0 [YN99, eq. 5]
    bias: np.ndarray              # (rows,): loops stay closed while J a + bias = 0
    rates: np.ndarray             # (rows,): J v, zero if the velocities fit
    gap: np.ndarray               # (rows,): how far each loop is open along its rows [m, rad], zero if closed
    rows: dict[str, slice]        # rows of each connection, and the row q - ratio q_to - offset of each coupled joint
    coordinates: dict[str, np.ndarray]  # of each connection's joint, one per freedom; a rotation as vector
    velocities: dict[str, np.ndarray]   # their rates


def constraints(mechanism: Mechanism, q, v=None) -> Constraints:
    """Constraint Jacobian, bias, rates and gaps of all connections in one state (v = 0 if not given)."""
    plan = as_mechanism(mechanism).plan()
    one_state(q, v)
    if plan.loops is None:
        none = np.zeros(0)
        return Constraints(np.zeros((0, plan.nv)), none, none, none, {}, {}, {})
    found = demands(plan, q, v)
    J = np.ascontiguousarray(found.columns.T)
    rows = parts(plan, f.FIRST_ROW, f.ROWS)
    freedoms = parts(plan, f.FIRST_FREEDOM, f.FREEDOMS)
    return Constraints(J, found.bias, J @ (plan.zero_tau if v is None else np.asarray(v, float)), found.gap, rows,
                       {name: found.coordinates[where] for name, where in freedoms.items()},
                       {name: found.speeds[where] for name, where in freedoms.items()})


def parts(plan, first: int, count: int) -> dict[str, slice]:
    """{connection: its part of the rows, or of the freedoms}."""
    return {name: slice(int(row[first]), int(row[first] + row[count]))
            for name, row in zip(plan.loops.names, plan.loops.conn_i[:-1], strict=True)}


def one_state(*arrays):
    """Reject batches: constraint matrices are computed for one state."""
    if any(np.ndim(x) > 1 for x in arrays if x is not None):
        raise ShapeError("this takes one state, not a batch: ask once per state")
