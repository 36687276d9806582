"""Structures with connections: accelerations, impulses and moves that make every connection hold; one state or a batch.

`solve` and the functions after it take arrays in kernel form; `Solution` gives names to the contents of the work array.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.algorithms.connection_equations import DYNAMICS, IMPULSE, ONCE, POSITION, TWICE
from bunraku.algorithms.passive import ball_energy, spring_energy
from bunraku.checks import aligned, as_array
from bunraku.entries.constraint_entries import demands
from bunraku.entries.explain import explain, refuse, several
from bunraku.entries.loop_entries import closed_batch, closed_one
from bunraku.entries.mass_matrix_entries import matrix_one
from bunraku.entries.pool import spread
from bunraku.entries.redundancy import balanced, clashing, indeterminate, pivots
from bunraku.entries.signatures import (
    CLASHED,
    DOUBTFUL,
    FAILED,
    FINE,
    LOOP_OPEN,
)
from bunraku.errors import ConstraintError, ShapeError
from bunraku.plan import fields as f
from bunraku.plan.build import Plan
from bunraku.spatial.lanes import WIDTH
from bunraku.tolerances import CLEAR, REFINED, RESIDUAL, SINGULAR_VALUE, TOO_OPEN, WELL_CONDITIONED

SMALLEST_SHARE = 128
DENSE = 200
"""Rows of constraints up to which the null space of forces is found by singular values."""
REFINEMENTS = 2




@dataclass(eq=False)
class Solution:
    """Solution of one state of a closed structure: the contents of the work array, by name."""

    plan: Plan
    q: np.ndarray
    a: np.ndarray
    work: np.ndarray
    refined: bool = False  # by singular values: pivots do not say then which constraints are redundant

    @property
    def looked_again(self) -> bool:
        """Whether nearly dependent constraints required refinement; pivots then do not identify the dependent ones."""
        return bool(self.work[self.plan.loops.conn_i[-1, f.HEAD_JUDGED] + f.JUDGED_SOFT] > 0.0)

    @property
    def multipliers(self) -> np.ndarray:
        """Forces along the constrained directions; where they are indeterminate, one particular choice."""
        first = self.plan.loops.conn_i[-1, f.HEAD_FORCES]
        return self.work[first:first + self.plan.loops.rows]

    @property
    def condition(self) -> float:
        """Largest ratio of a constrained direction's norm to its part independent of the others."""
        pivot = self.work[self.plan.loops.conn_i[-1, f.HEAD_JUDGED] + f.JUDGED_PIVOT]
        return 1.0 / float(pivot) if pivot > 0 else np.inf

    @property
    def in_doubt(self) -> bool:
        """Whether constraints are, or may be, dependent: a pivot was dropped, is small, or the solution was refined."""
        judged = self.plan.loops.conn_i[-1, f.HEAD_JUDGED]
        return self.looked_again or self.work[judged + f.JUDGED_DROPPED] > -1.0 or not self.condition < WELL_CONDITIONED

    def record(self, c) -> np.ndarray:
        o = f.connection_record(self.plan.loops.conn_i, c)
        return self.work[o:o + f.CONN_RECORD]

    def rows(self, c) -> slice:
        first, count = self.plan.loops.conn_i[c, [f.FIRST_ROW, f.ROWS]]
        return slice(int(first), int(first + count))

    def demand(self, c) -> np.ndarray:
        """Right-hand side of connection c along its constrained directions (a gap, a velocity or an acceleration)."""
        return self.record(c)[f.CONN_BIAS:f.CONN_BIAS + self.plan.loops.conn_i[c, f.ROWS]]

    def gap(self, c) -> tuple[float, float]:
        """Gap of connection c [m, rad], solved in mode POSITION; of a coupling, in the unit of its joint, and zero."""
        demand, directions = self.demand(c), self.directions(c)
        if self.plan.loops.conn_i[c, f.LAW] == f.LAW_COUPLED:
            return float(abs(demand[0])), 0.0
        length = self.plan.loops.conn_f[c, f.LENGTH]
        return (float(np.linalg.norm(demand @ directions[:, :3])),
                float(np.linalg.norm(demand @ directions[:, 3:])) / length**2)

    def coordinates(self, c) -> tuple[np.ndarray, np.ndarray]:
        record, n = self.record(c), self.plan.loops.conn_i[c, f.FREEDOMS]
        return record[f.CONN_COORDINATES:f.CONN_COORDINATES + n].copy(), record[f.CONN_RATES:f.CONN_RATES + n].copy()

    def directions(self, c) -> np.ndarray:
        """Constrained directions of connection c, (rows, 6): force and moment, in the axes given for its frame on b."""
        record, count = self.record(c), self.plan.loops.conn_i[c, f.ROWS]
        columns = record[f.CONN_COLUMNS:f.CONN_COLUMNS + 6 * count].reshape(count, 2, 3)
        return (columns[:, ::-1] @ self._axes(c)).reshape(count, 6)

    def wrench(self, c, multipliers, drive=True) -> np.ndarray:
        """Force and moment on link b at the joint frame's origin, in the user's axes of that frame."""
        wrench = multipliers[self.rows(c)] @ self.directions(c)
        if drive:
            moment, force = self.record(c)[f.CONN_DRIVE:f.CONN_DRIVE + 6].reshape(2, 3)
            wrench = wrench + np.concatenate([force @ self._axes(c), moment @ self._axes(c)])
        return wrench

    def _axes(self, c) -> np.ndarray:
        """World axes to those of the frame on b: for row vectors."""
        return self.record(c)[f.CONN_TURN:f.CONN_TURN + 9].reshape(3, 3) @ self.plan.loops.frames[c].T


def solve(plan, mode, q, v, tau=None, drives=None, external=None, judge=True) -> Solution:
    """One state; arrays in kernel form. `judge`: inconsistent constraints are an error."""
    given = plan, q, v, tau, drives, external
    answer, solution = _evaluate(mode, *given)
    if answer == FAILED:
        refuse(plan, q, {"v": v, **_given(tau=tau, external=external)})
    if judge and mode == DYNAMICS and solution.work[plan.loops.conn_i[-1, f.HEAD_JUDGED] + f.JUDGED_GAP] > TOO_OPEN**2:
        raise ConstraintError(_open(plan, q))
    uncertain = judge and plan.nv <= DENSE and (solution.looked_again or (mode == IMPULSE and solution.in_doubt))
    if uncertain and refined(solution, SINGULAR_VALUE if mode == IMPULSE else CLEAR) and mode == IMPULSE:
        return solution
    if answer == CLASHED and judge:
        if mode != DYNAMICS:
            answer, solution = _evaluate(mode + TWICE, *given)
        if answer != FINE:
            raise ConstraintError(_clash(_evaluate(mode + ONCE, *given)[1]))
    return solution


def refined(solution, rank: float) -> bool:
    """Improve a solution of nearly dependent constraints by singular values; whether they are met then.

    Elimination sees Theta = J M^-1 J^T, with the squares of the singular values of J L^-T, M = L L^T, and half of their
    digits. The residual of J a + bias = 0 is removed here along the directions whose singular values are
    above `rank` of the largest: a move that forces at the connections make, so the equations of motion still hold. The
    velocity after an impact always exists, as its demand is J v.
    """
    plan = solution.plan
    loops, a, forces = plan.loops, solution.a, solution.multipliers
    if (plan.body_i[:-1, f.ELIMINATION] == f.LOCKED).any():
        return False
    J = _jacobian(solution)
    bias = np.concatenate([solution.demand(c) for c in range(len(loops.names))])
    allowed = RESIDUAL * (1.0 + np.abs(a).max(initial=0.0) + np.abs(bias).max(initial=0.0))
    left = J @ a + bias
    if np.abs(left).max(initial=0.0) > allowed:
        M = np.empty((plan.nv, plan.nv))
        matrix_one.call(plan.arrays, solution.q, M)
        try:
            root = np.linalg.cholesky(M + SINGULAR_VALUE**2 * np.trace(M) / len(M) * np.eye(len(M)))
            U, s, Wt = np.linalg.svd(np.linalg.solve(root, J.T).T, full_matrices=False)
        except np.linalg.LinAlgError:  # joints that only loops hold up have no inertia
            return False
        kept = s > rank * s.max(initial=0.0)
        U, s, back = U[:, kept], s[kept], np.linalg.solve(root.T, Wt[kept].T)
        for _ in range(REFINEMENTS):
            part = (U.T @ left) / s
            a -= back @ part
            forces -= U @ (part / s)
            left = J @ a + bias
        solution.refined = True
    return bool(np.abs(left).max(initial=0.0) <= REFINED * allowed / RESIDUAL)


def _evaluate(mode, plan, q, v, tau, drives, external) -> tuple[int, Solution]:
    """Status of `closed_one` for one state."""
    loops = plan.loops
    a, work = np.empty(plan.nv), np.empty(loops.work_size)
    answer = closed_one.call(mode, plan.with_rotors, loops.dof_f, q, v, plan.zero_tau if tau is None else tau,
                             plan.nothing if drives is None else drives,
                             plan.nothing if external is None else external, a, work)
    return answer, Solution(plan, q, a, work)


def split(plan, tau):
    """(torques of the tree, torques of the connections or None) from a tau that may have both."""
    nv, nc = plan.nv, plan.loops.freedoms
    if tau is None:
        return plan.zero_tau, None
    array = as_array("tau", tau)
    if array.ndim in (1, 2) and array.shape[-1] == nv + nc and nc > 0:
        return np.ascontiguousarray(array[..., :nv]), np.ascontiguousarray(array[..., nv:])
    if array.ndim not in (1, 2) or array.shape[-1] != nv:
        tail = f", or {nv + nc} with torques of the connections" if nc else ""
        raise ShapeError(f"tau has shape {array.shape}; its last axis must hold {nv} entries{tail}")
    return array, None


def forward_dynamics(plan, q, v, tau, external, workers):
    """Accelerations of one state or of a batch of a structure with connections."""
    tau, drives = split(plan, tau)
    batch, (q, v, tau, drives, external) = aligned_states(plan, q, v, tau, drives, external)
    if batch is None:
        return solve(plan, DYNAMICS, q, v, tau, drives, external).a
    return _batch(plan, DYNAMICS, q, v, tau, drives, external, workers)


def velocity_change(plan, q, v, workers=None):
    """The change of velocity that makes every connection hold, of one state or a batch."""
    batch, (q, v, *_) = aligned_states(plan, q, v, plan.zero_tau, None, None)
    if batch is None:
        return solve(plan, IMPULSE, q, v).a
    return _batch(plan, IMPULSE, q, v, plan.zero_tau[None][:0], None, None, workers)


def aligned_states(plan, q, v, tau, drives, external):
    """(batch size or None, the arrays), all of one state or all of the same batch; what is None stays None."""
    pieces = [("q", q, plan.nq), ("v", v, plan.nv), ("tau", tau, plan.nv)]
    if drives is not None:
        pieces.append(("the connections' part of tau", drives, plan.loops.freedoms))
    if external is not None:
        pieces.append(("external", external, 6 * plan.links))
    batch, arrays = aligned(*pieces)
    rest = iter(arrays[3:])
    return batch, (*arrays[:3], None if drives is None else next(rest), None if external is None else next(rest))


def _batch(plan, mode, q, v, tau, drives, external, workers):
    batch = q.shape[0]
    a, bad = np.empty((batch, plan.nv)), np.zeros(batch, np.uint8)
    nothing = np.zeros((0, 0))
    constants = (mode, plan.with_rotors, q, v, tau, nothing if drives is None else drives,
                 nothing if external is None else external)
    closed_batch.load()
    spread(lambda start, stop: closed_batch.call(*constants, a, bad, start, stop), batch, WIDTH, workers,
           SMALLEST_SHARE)
    for k in np.flatnonzero(bad == DOUBTFUL):
        bad[k], solution = _evaluate(mode + TWICE, plan, *_state(k, q, v, tau, drives, external))
        a[k] = solution.a
    if bad.any():
        refuse_states(plan, mode, q, v, tau, drives, external, a, bad)
    return a


def refuse_states(plan, mode, q, v, tau, drives, external, a, bad):
    """One error for all failing states of a batch."""
    def reason(k) -> str:
        if bad[k] == CLASHED:
            return _clash(_evaluate(mode + ONCE, plan, *_state(k, q, v, tau, drives, external))[1])
        if bad[k] == LOOP_OPEN:
            return _open(plan, q[k])
        _, speed, torque, _, pushed = _state(k, q, v, tau, drives, external)
        return explain(plan, q[k], {"v": speed, **_given(tau=torque, external=pushed)})

    raise ConstraintError(several(bad, reason), states=np.flatnonzero(bad).tolist(), result=a)


def _given(**inputs) -> dict[str, np.ndarray]:
    return {name: values for name, values in inputs.items() if values is not None}


def _state(k, q, v, tau, drives, external):
    """State k of a batch, as `_evaluate` takes it."""
    return (q[k], v[k], tau[k] if tau.shape[0] else None, None if drives is None else drives[k],
            None if external is None else external[k])


def refuse_open(plan, q):
    """A ConstraintError if a loop gap is too large for meaningful accelerations."""
    if gaps(plan, q)[0].max(initial=0.0) > TOO_OPEN:
        raise ConstraintError(_open(plan, q))


def _open(plan, q) -> str:
    """Which connection is open, and by how much."""
    worst, solution = gaps(plan, q)
    c = int(worst.argmax())
    length, angle = solution.gap(c)
    if c >= len(plan.loops.held):
        return (f"{plan.loops.label(c)} is off by {length:.3g} (rad, m) from ratio and offset, so accelerations are "
                "not defined; correct it first: q, v = bk.project(mechanism, q, v)")
    return (f"connection {plan.loops.names[c]!r} is open by {length:.3g} m and {angle:.3g} rad, so "
            "accelerations are not defined; close it first: q, v = bk.project(mechanism, q, v)")


def _clash(solution) -> str:
    """Names of the inconsistent connections."""
    names, excess = clashing(solution.plan.loops, solution.work)
    return (f"the constraints of {solution.plan.loops.listed(names)} are inconsistent: {excess:.3g} (m/s^2, rad/s^2; "
            "m/s in an impact) remain in a direction without mobility. Are the loops closed and the velocities "
            "consistent (bk.project), and do prescribed joints agree with them?")


# -- forces where they are not unique ------------------------------------------------------------------------------


def forces(solution: Solution):
    """(multipliers of minimum norm, null space (rows, n) or None): see `redundancy.py`.

    Up to DENSE rows by singular values of the constraint Jacobian, which is faster there, and exact: the null space
    that pivots give is that of Theta, J squared, and has half of the digits.
    """
    loops = solution.plan.loops
    dropped = pivots(loops, solution.work) == 0.0
    unclear = solution.looked_again or solution.refined
    if unclear or (dropped.any() and loops.rows <= DENSE):
        free = balanced(_jacobian(solution))
        if unclear or free.shape[1] == dropped.sum():
            if not free.shape[1]:
                return solution.multipliers, None
            return solution.multipliers - free @ (free.T @ solution.multipliers), [(np.arange(loops.rows), free)]
    if not dropped.any():
        return solution.multipliers, None
    return indeterminate(loops, solution.work, solution.multipliers, dropped)


def _jacobian(solution) -> np.ndarray:
    """J (rows, nv) of a solution."""
    return demands(solution.plan, solution.q, None).columns.T


# -- closing gaps --------------------------------------------------------------------------------------------------


def gaps(plan, q) -> tuple[np.ndarray, Solution]:
    """Gap of each connection along its constrained directions (largest entry), and the closing move."""
    solution = solve(plan, POSITION, q, plan.zero_tau, judge=False)
    worst = [np.abs(solution.demand(c)).max(initial=0.0) for c in range(len(plan.loops.names))]
    return np.array(worst), solution


def velocity_gaps(plan, q, v) -> np.ndarray:
    """Gap velocity of each connection (largest entry)."""
    solution = solve(plan, IMPULSE, q, v, judge=False)
    return np.array([np.abs(solution.demand(c)).max(initial=0.0) for c in range(len(plan.loops.names))])


def stored_energy(plan, q):
    """Energy in the springs and limits of connections, of one state or a batch; zero if there are none."""
    loops = plan.loops
    tables = [loops.conn_f[c, f.CONN_PASSIVE:f.CONN_PASSIVE + n * f.DOF_F].reshape(n, f.DOF_F)
              for c, n in enumerate(loops.conn_i[:-1, f.FREEDOMS])]
    sprung = [(c, passive) for c, passive in enumerate(tables) if passive[:, [f.STIFFNESS, f.LIMIT_STIFFNESS]].any()]
    if not sprung:
        return 0.0
    states = np.atleast_2d(as_array("q", q))
    total = np.zeros(len(states))
    for k, state in enumerate(states):
        solution = solve(plan, IMPULSE, np.ascontiguousarray(state), plan.zero_tau, judge=False)
        for c, passive in sprung:
            x, _ = solution.coordinates(c)
            stiffness, rest, lower, upper, limit = passive[:, [f.STIFFNESS, f.REST, f.LOWER, f.UPPER,
                                                               f.LIMIT_STIFFNESS]].T
            if loops.conn_i[c, f.LAW] == f.LAW_SPHERICAL:
                total[k] += ball_energy(stiffness[0], upper[0], limit[0], np.linalg.norm(x))
            else:
                total[k] += sum(map(spring_energy, stiffness, rest, lower, upper, limit, x))
    return total if np.ndim(q) == 2 else float(total[0])
