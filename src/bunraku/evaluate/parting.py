"""Smallest move that parts overlapping shapes.

With x the tangent coordinates of the move, q = integrate(q0, x), and M the mass matrix of the start,

    minimise 1/2 x^T M x   subject to   g(q) >= 0,  c(q) = 0,  lower <= q <= upper

for the gaps g of all contacts, the gaps c of the loops, and the limits of joints that start within them. Sequential
quadratic programming, with a line search on the l1 merit function [Nocedal & Wright, ch. 18]. Each step is a
least-distance problem: connections are eliminated, the rest is solved as non-negative least squares [Lawson & Hanson,
ch. 23], whose residual vanishes exactly if the linear inequalities contradict each other; then its solution has the
contacts that do. Such steps reduce the overlap as far as possible, and an error names the pair if that leads nowhere.

Cost: O(nv^3) and a dense active-set problem per step, for each set of trees that contacts join. The minimum is a local
one: shapes leave on the side to which the shortest translation points.
"""

from __future__ import annotations

from typing import NamedTuple, NoReturn

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular
from scipy.optimize import nnls
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from bunraku.checks import as_floats
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_entries import contacts_one
from bunraku.entries.constraint_entries import demands
from bunraku.entries.explain import refuse_not_finite, several
from bunraku.entries.kinematics_entries import point_jacobian
from bunraku.entries.mass_matrix_entries import mass_matrix
from bunraku.errors import ContactError
from bunraku.evaluate.contact_workspace import pair_names
from bunraku.evaluate.loop_closure import closed_position
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.plan import fields as f

PARTED = 1e-10
"""[m] Overlap that may be left; time steps leave as much."""
CLEARANCES = (0.0,) * 5 + (1e-11, 1e-10, 1e-9, 1e-8, 1e-7)
"""[m] asked for by the last corrections, of overlap that the steps have left: more where gaps have errors."""
STEPS = 200
"""Steps of the sequence, at most; a few suffice unless shapes are deep in each other."""
CONVERGED = 1e-5
"""Length of a step relative to the whole move below which the move is the smallest."""
CONTRADICTION = 1e-9
"""Residual of non-negative least squares, whose right-hand side has the norm 1, that counts as zero."""
IMMOBILE = 1e-9
"""A contact is held by the connections if they leave less than this fraction of its mobility along its normal."""
CANCELLED = 1e-12
"""Sums of this part of their terms are zero."""
ADMISSIBLE = 1e-9
"""Violation of an inequality of unit length, relative to the largest, that counts as none."""
SOLVED = 1e-13
"""Residual of rows of unit length that normal equations may leave, refined twice."""
SOFT = 1e-8
"""Weight of the move beside that of the overlap where overlap cannot vanish to first order."""
TERMS = 30
"""Of the series of tangents."""
SHORTEST = 1e-4
"""Shortest fraction of a step that the line search tries."""


class Rows(NamedTuple):
    """Linear inequalities at a pose, a . dq >= -gap: contacts first, then joint limits."""

    a: np.ndarray       # (n, nv)
    gap: np.ndarray     # (n,) [m, or the unit of the joint]
    number: np.ndarray  # of the contact, -1 for a limit
    joint: np.ndarray   # of the coordinate of v, -1 for a contact


def part(mechanism: Mechanism, q) -> np.ndarray:
    """The state nearest to q, in the metric of the mass matrix, in which no shapes overlap; for a batch each of them.

    Loops stay closed, and joints within their limits keep to them. A ContactError names the shapes that no motion of
    the joints parts. Overlap of up to 1e-10 m is left; a state without overlap is returned as it is.
    """
    m = as_mechanism(mechanism)
    q = as_floats("q", q, m.nq)
    refuse_not_finite(m.plan("tree"), q, {})
    if not m.may_touch():
        return q.copy()
    if q.ndim == 1:
        return Parting(m, q).moved()
    moved, failed = q.copy(), {}
    for k, state in enumerate(q):
        try:
            moved[k] = Parting(m, state).moved()
        except ContactError as error:
            failed[k] = error
    if failed:
        raise ContactError(several([k in failed for k in range(len(q))], lambda k: str(failed[k]), "cannot be parted"),
                           states=list(failed), result=moved)
    return moved


class Parting:
    """The sequence of quadratic programs from one start."""

    def __init__(self, mechanism: Mechanism, start: np.ndarray):
        self.m, self.start = mechanism, np.ascontiguousarray(start)
        self.plan, self.loops = mechanism.plan("tree"), mechanism.plan() if mechanism.constrained else None
        self.shapes, self.arrays, _ = mechanism.all_contact_pairs()
        self.found = np.zeros((len(self.arrays.contact_i), c.FOUND))
        self.margin = np.inf
        M = mass_matrix(self.plan, self.start)
        M[np.diag_indices(len(M))] += 1e-12 * np.trace(M) / max(len(M), 1)
        self.root = np.linalg.cholesky(M)  # M = L L^T; y = L^T x
        self.whiten = solve_triangular(self.root, np.eye(len(M)), lower=True).T
        dof_f = self.plan.arrays.dof_f
        lower, upper = dof_f[f.LOWER], dof_f[f.UPPER]
        at = coordinates_of(self.plan, self.start)
        self.bounded = [(j, sign, limit) for sign, limits in ((1.0, lower), (-1.0, upper))
                        for j in np.flatnonzero(np.isfinite(limits) & np.isfinite(at))
                        for limit in (limits[j],) if sign * (at[j] - limit) >= 0.0]
        self.weight = 0.0  # of overlap in the merit function

    # -- poses ---------------------------------------------------------------------------------------------------------

    def moved(self) -> np.ndarray:
        """The start, moved."""
        deepest = self._overlap(self.start)[1]
        if deepest <= PARTED:
            return self.start.copy()
        self.margin = 2.0 * deepest + 1e-3
        x = np.zeros(self.plan.nv)
        for _ in range(STEPS):
            step, short = self._step(x)
            share = self._share(x, step)
            if share == 0.0:
                break
            x = x + share * step
            if short <= CONVERGED * float(np.linalg.norm(self.root.T @ x)):
                break
        return self._without_rest(self.m.integrate(self.start, x))

    def _without_rest(self, q) -> np.ndarray:
        """The pose without the overlap that rounding and curvature have left; an error if that is too much."""
        for clearance in CLEARANCES:
            if self.loops is not None:
                q = closed_position(self.m, self.loops, q)
            if self._overlap(q)[1] <= PARTED:
                return q
            rows = self._rows(q)
            solved = self._solve(rows.a, clearance - rows.gap, *self._loop_rows(q))
            if solved.contradicting.size:
                self._refuse(rows, solved.contradicting)
            q = self.m.integrate(q, solved.x)
        rows = self._rows(q)
        self._refuse(rows, np.array([rows.gap.argmin()]))

    def _overlap(self, q) -> tuple[float, float]:
        """(sum, largest) overlap of the pairs; their contacts are left in `found`."""
        self.found[:, c.FOUND_GAP] = np.inf
        contacts_one.call(self.plan.arrays, self.arrays, np.ascontiguousarray(q), min(self.margin, 1e3),
                          self.found.reshape(-1))
        self.found[:len(self.arrays.joint_i), c.FOUND_GAP] = np.inf  # of shapes alone
        first = self.arrays.pair_i[:, c.PAIR_CONTACT]
        deep = np.maximum(0.0, -np.minimum.reduceat(self.found[:, c.FOUND_GAP], first))
        return float(deep.sum()), float(deep.max(initial=0.0))

    def _rows(self, q) -> Rows:
        """Inequalities of the contacts in `found`, and of joint limits."""
        near = np.flatnonzero(self.found[:, c.FOUND_GAP] <= self.margin)
        bodies = self.arrays.contact_i[near][:, [c.CONTACT_A, c.CONTACT_B]]
        origin, nv = np.zeros(3), self.plan.nv
        moving = {int(body): point_jacobian(self.plan, q, origin, int(body)) for body in np.unique(bodies) if body >= 0}
        a, size = np.zeros((2, len(near) + len(self.bounded), nv))
        n = self.found[near, c.FOUND_NORMAL:c.FOUND_NORMAL + 3]
        wrench = np.hstack([n, np.cross(self.found[near, c.FOUND_POINT:c.FOUND_POINT + 3], n)])
        for body, J in moving.items():
            for side, sign in enumerate((1.0, -1.0)):
                mine = np.flatnonzero(bodies[:, side] == body)
                a[mine] += sign * (wrench[mine] @ J)
                size[mine] += np.abs(wrench[mine]) @ np.abs(J)
        a[np.abs(a) <= CANCELLED * size] = 0.0
        at = coordinates_of(self.plan, q)
        for i, (j, sign, _) in enumerate(self.bounded, len(near)):
            a[i, j] = sign
        limits = np.array([sign * (at[j] - limit) for j, sign, limit in self.bounded])
        none = np.full(len(self.bounded), -1)
        return Rows(a, np.concatenate([self.found[near, c.FOUND_GAP], limits]), np.concatenate([near, none]),
                    np.concatenate([np.full(len(near), -1), np.array([j for j, _, _ in self.bounded], int)]))

    def _loop_rows(self, q) -> tuple[np.ndarray, np.ndarray]:
        """(C, -gap) of the loops, C dq = -gap."""
        if self.loops is None:
            return np.zeros((0, self.plan.nv)), np.zeros(0)
        found = demands(self.loops, q, None)
        return found.columns.T, -found.gap

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _step(self, x) -> tuple[np.ndarray, float]:
        """The step to the nearest move that obeys the inequalities to first order, and its length in the metric."""
        q = self.m.integrate(self.start, x)
        self._overlap(q)
        rows, (C, rest) = self._rows(q), self._loop_rows(q)
        turn = tangent_of_move(self.plan, x)
        a, C = apply(rows.a, turn), apply(C, turn)
        solved = self._solve(a, a @ x - rows.gap, C, C @ x + rest)
        if solved.contradicting.size and not solved.nearer:
            self._refuse(rows, solved.contradicting)
        pair = self.arrays.contact_i[rows.number, c.CONTACT_PAIR]
        pushes = [np.bincount(pair, solved.force * (rows.number >= 0)).max(initial=0.0)]
        if len(C):
            held = self.root @ (self.root.T @ solved.x) - a.T @ solved.force  # = C^T multipliers
            pushes.append(np.abs(np.linalg.lstsq(C.T, held, rcond=1e-9)[0]).max())
        self.weight = max(self.weight, 2.0 * max(pushes))
        step = solved.x - x
        return step, float(np.linalg.norm(self.root.T @ step))

    def _share(self, x, step) -> float:
        """Fraction of the step that lowers the merit function; 0 if none does."""
        share, before = 1.0, self._merit(x)
        while share >= SHORTEST:
            if self._merit(x + share * step) < before:
                return share
            share *= 0.5
        return 0.0

    def _merit(self, x) -> float:
        q = self.m.integrate(self.start, x)
        open_loops = np.abs(demands(self.loops, q, None).gap).sum() if self.loops is not None else 0.0
        y = self.root.T @ x
        return 0.5 * float(y @ y) + self.weight * (self._overlap(q)[0] + float(open_loops))

    def _solve(self, a, h, C, rest) -> Nearest:
        """The smallest x with a x >= h and C x = rest, by sets of trees that the rows join."""
        y = np.zeros(self.plan.nv)
        force, contradicting, nearer = np.zeros(len(h)), [np.zeros(0, int)], True
        G, C = a @ self.whiten, C @ self.whiten
        for columns, rows, ties in joined(self.plan, G, C):
            found = nearest(G[np.ix_(rows, columns)], h[rows], C[np.ix_(ties, columns)], rest[ties])
            y[columns], force[rows] = found.x, found.force
            contradicting.append(rows[found.contradicting])
            nearer = nearer and found.nearer
        return Nearest(self.whiten @ y, force, np.concatenate(contradicting), nearer)

    def _refuse(self, rows: Rows, which) -> NoReturn:
        """The ContactError of contacts that contradict each other, or of one that cannot move."""
        which = which[np.argsort(rows.gap[which], kind="stable")]
        contacts = rows.number[which][rows.number[which] >= 0]
        pairs = list(dict.fromkeys(pair_names(self.shapes, self.arrays, int(k)) for k in contacts))
        joints = list(dict.fromkeys(repr(self.plan.names[self.plan.dof_link[j]][1])
                                    for j in rows.joint[which][rows.joint[which] >= 0]))
        self._overlap(self.start)
        deep = -float(self.found[contacts, c.FOUND_GAP].min()) if contacts.size else 0.0
        first = f"shapes {pairs[0]} overlap by {deep:.3g} m, and " if deep > 0.0 else ""
        way = [f"shapes {pair}" for pair in pairs[1:3]] + ([f"the limits of {', '.join(joints[:3])}"] if joints else [])
        others = f": {' and '.join(way)} are in the way" if way else ""
        raise ContactError(f"part: {first}no small motion of the joints parts them{others}; move their links by hand, "
                           "or let them not touch: m.exclude, or masks (group, meets)", result=self.start.copy())


class Nearest(NamedTuple):
    """Solution of a least-distance problem."""

    x: np.ndarray
    force: np.ndarray          # multipliers of the inequalities
    contradicting: np.ndarray  # inequalities that contradict each other; x then leaves the least of them
    nearer: bool               # whether x is any better than none


def nearest(G, h, C, rest) -> Nearest:
    """The smallest y with G y >= h and C y = rest; if there is none, with the least squares of what is missing."""
    y0, free = np.zeros(G.shape[1]), None
    if len(C):  # y = y0 + N z, N the null space of C
        left, values, right = np.linalg.svd(C, full_matrices=True)
        rank = int((values > 1e-10 * values.max(initial=0.0)).sum())
        y0 = right[:rank].T @ ((left[:, :rank].T @ rest) / values[:rank])
        free = right[rank:].T
    missing, loose = h - G @ y0, np.linalg.norm(G, axis=1)
    G = G if free is None else G @ free
    size, force = np.linalg.norm(G, axis=1), np.zeros(len(h))
    fixed = size <= IMMOBILE * loose
    if (missing[fixed] > PARTED).any():
        return Nearest(y0, force, np.flatnonzero(fixed & (missing > PARTED)), False)
    rows = np.flatnonzero(~fixed)
    G, missing, size = G[rows] / size[rows, None], missing[rows] / size[rows], size[rows]
    scale = max(missing.max(initial=0.0), 1e-300)
    u, z, contradicting, nearer = least_distance(G, missing / scale)
    force[rows] = scale * u / size
    y = y0 + scale * (z if free is None else free @ z)
    return Nearest(y, force, rows[contradicting], nearer)


def least_distance(G, h):
    """(multipliers, z, contradicting rows, whether z is of use): the smallest z with G z >= h. Rows join the problem
    when the solution of the others violates them."""
    u, z, chosen = np.zeros(len(h)), np.zeros(G.shape[1]), h > 0.0
    while (G @ z - h).min(initial=0.0) < -ADMISSIBLE:
        chosen |= G @ z - h < 0.0
        rows = np.flatnonzero(chosen)
        multipliers, residual = nonnegative(np.vstack([G[rows].T, h[rows]]), one_at_the_end(G.shape[1] + 1))
        if residual <= CONTRADICTION:
            return least_violation(G, h, rows[multipliers > 0.0])
        u[:] = 0.0
        u[rows] = multipliers / residual**2  # = -r of the last row, since r . E u = 0 [Lawson & Hanson, alg. 23.27]
        held = u > 0.0
        exact = smallest_solution(G[held], h[held])  # without the loss of digits of the division
        accurate = (G[rows] @ exact - h[rows]).min() >= -ADMISSIBLE
        z, before = exact if accurate else G.T @ u, z
        if np.array_equal(z, before):
            break
    return u, z, np.zeros(0, int), True


def smallest_solution(G, h) -> np.ndarray:
    """The smallest z with G z = h: by normal equations, where these are accurate."""
    z = np.zeros(G.shape[1])
    try:
        factors = cho_factor(G @ G.T)
        for _ in range(3):
            z += G.T @ cho_solve(factors, h - G @ z)
    except (LinAlgError, ValueError):  # dependent rows; none
        z[:] = np.nan
    if np.abs(h - G @ z).max(initial=0.0) <= SOLVED * max(1.0, np.abs(z).max()):
        return z
    return np.linalg.lstsq(G, h, rcond=None)[0]


def least_violation(G, h, contradicting):
    """The same where no z obeys all rows: the one with the least squares of what is missing."""
    u, _ = nonnegative(np.vstack([G.T / np.sqrt(SOFT), np.eye(len(h))]), np.concatenate([np.zeros(G.shape[1]), h]))
    z = G.T @ u / SOFT
    before, after = np.maximum(h, 0.0), np.maximum(h - G @ z, 0.0)
    return u, z, contradicting, bool(after @ after < 0.999 * (before @ before))


def nonnegative(E, right):
    """(u, |E u - right|) of the non-negative least squares."""
    u, residual = nnls(E, right, maxiter=30 * max(E.shape))
    return u, float(residual)


def one_at_the_end(size) -> np.ndarray:
    found = np.zeros(size)
    found[-1] = 1.0
    return found


def joined(plan, G, C):
    """(columns, rows of G, rows of C) of each set of trees that rows join."""
    body_i = plan.arrays.body_i[:-1]
    tree, of_column = np.arange(len(body_i)), np.zeros(plan.nv, int)
    for i, row in enumerate(body_i):
        if row[f.PARENT] >= 0:
            tree[i] = tree[row[f.PARENT]]
        of_column[row[f.V_INDEX]:row[f.V_INDEX] + row[f.DOF]] = tree[i]
    every = np.vstack([G, C])
    row, column = np.nonzero(every)
    size = len(body_i) + len(every)
    graph = coo_matrix((np.ones(len(row)), (of_column[column], len(body_i) + row)), shape=(size, size))
    _, label = connected_components(graph, directed=False)
    mine = label[len(body_i):]
    for k in dict.fromkeys(mine.tolist()):
        yield (np.flatnonzero(label[of_column] == k), np.flatnonzero(mine[:len(G)] == k),
               np.flatnonzero(mine[len(G):] == k))


def coordinates_of(plan, q) -> np.ndarray:
    """(nv,) coordinates of joints that have limits of their own; NaN for those of balls and free joints."""
    at = np.full(plan.nv, np.nan)
    for row in plan.arrays.body_i[:-1]:
        if row[f.KIND] in (f.REVOLUTE, f.SCREW):
            at[row[f.V_INDEX]] = q[row[f.Q_INDEX]]
    return at


def tangent_of_move(plan, x) -> list[tuple[np.ndarray, np.ndarray]]:
    """Derivative of the pose by the move, where it is not the identity: dq = D dx with D the right Jacobian of SO(3)
    or SE(3), sum (-ad x)^k / (k + 1)!. (Places in x (n, m), D (n, m, m)) of each kind of joint."""
    kinds, first = plan.arrays.body_i[:-1, f.KIND], plan.arrays.body_i[:-1, f.V_INDEX]
    found = []
    for kind, size in ((f.FREE, 6), (f.SPHERICAL, 3)):
        places = first[kinds == kind][:, None] + np.arange(size)
        places = places[x[places].any(axis=1)]
        ad = np.zeros((len(places), size, size))
        turn = cross_matrices(x[places[:, size - 3:]])
        for k in range(0, size, 3):
            ad[:, k:k + 3, k:k + 3] = turn
        if kind == f.FREE:
            ad[:, :3, 3:] = cross_matrices(x[places[:, :3]])
        D = term = np.broadcast_to(np.eye(size), ad.shape)
        for k in range(2, TERMS):
            term = term @ ad / -k
            D = D + term
        found.append((places, D))
    return found


def apply(a, turn) -> np.ndarray:
    """a D."""
    a = a.copy()
    for places, D in turn:
        a[:, places] = np.einsum("rni,nij->rnj", a[:, places], D)
    return a


def cross_matrices(w) -> np.ndarray:
    """(n, 3, 3) matrices of the vector products with w (n, 3)."""
    x, y, z = w.T
    o = np.zeros(len(w))
    return np.array([[o, -z, y], [z, o, -x], [-y, x, o]]).transpose(2, 0, 1)
