"""Large islands: the contact problem without a full matrix.

M^-1 = B B^T with the factors of the articulated-body algorithm: the innovations u_j of a unit force at a body, divided
by sqrt(D_j), are its row of B [Rodriguez, Jain, Kreutz-Delgado 1992]. So Theta = Y Y^T, with a row of Y for each
direction of a contact: one inward sweep, non-zero at the joints between the body and the ground only. With x = Y^T f
contact velocities are u = Y x + b, and |x|^2 / 2 is the kinetic energy that forces f add to a mechanism at rest.

Coulomb's law is f = P(f - r (u + mu |u_t| n)) with the projection P to the cone |f_t| <= mu f_n and any r > 0
[De Saxce, Feng 1998]. With mu |u_t| and the f on the right-hand side held (*base*), this is the minimum of

    phi(x) = |x|^2 / 2 + sum |P(base - r (Y x + b + shift))|^2 / (2 r),                                             (1)

an augmented Lagrangian: convex and smooth, found by Newton's method with a line search, Hessian 1 + Y^T r P' Y
(`heap_factors.py`). Then base and shift follow. This finds the modes from anywhere, but only slowly where contacts
slide: mu |u_t| lags behind. Near a solution the same without shift and with the disc of radius mu f_n in place of the
cone, P as in `problem.py`, has the law as its fixed point,

    x = Y^T P(base - r (Y x + b)),                                                                                   (2)

which is not the minimum of anything, and whose Newton matrix is not symmetric. It comes first, from the forces of the
last step; where it fails (1) takes over for some iterations. There is no decision about rank: redundant forces stay as
near to those of the last step as the law allows.

Reference: Acary, Bremond, Huber (2018), sec. 5; Alart, Curnier (1991). Cost: per Newton step a sparse factorisation.
"""

from typing import NamedTuple

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.contact.contact_calls import HEAP
from bunraku.contact.contact_fields import FORCES, OPEN, ROUGH, SLIDING, SOLVED, STICKING
from bunraku.contact.contact_memory import ROW, ROWS
from bunraku.contact.heap_factors import Fronts, factor, make_fronts, solve_with_factors
from bunraku.contact.island_impulses import island_impulses
from bunraku.contact.response import factors_of, six_up
from bunraku.contact.touching import note_solution
from bunraku.jit import allocating, entry, hold, inline, inner, outlived
from bunraku.plan import fields as f
from bunraku.tolerances import HEAP_AIM, HEAP_ENOUGH

STIFF, YIELDING = 1e4, 1e2  # r times the mobility of a contact, in (2) and in (1)
GAIN = 0.5             # an iteration of (2) that leaves more of the residual is the last
TRIED = 0.1            # (2) is tried again where (1) has left this part of the residual since
OUTER, EXACT, INNER = 60, 12, 12  # iterations at most
HALVINGS = 20          # of a Newton step of (1)
SHORTENINGS = 6        # of one of (2)
DESCENT = 1e-4         # part of the predicted decrease that a step must achieve
SETTLED = 1e-2         # gradient of (1), as part of x, that may be left, as part of the residual
FINEST = 1e-14         # part of x that a gradient may have by rounding
ROUNDING = 1e-14       # part of (1) that rounding may add


class Heap(NamedTuple):
    """A large island of K contacts and T trees; U unknowns in all."""

    size: np.ndarray     # (T,) int64, unknowns of each tree: its degrees of freedom
    start: np.ndarray    # (T,) int64, its first unknown
    side: np.ndarray     # (2 K,) int64, trees of the contacts: of a and b; -1: none
    y_at: np.ndarray     # (2 K,) int64, start of their blocks in y
    y: np.ndarray        # blocks of Y, three rows each
    x: np.ndarray        # (U,)
    slope: np.ndarray    # (U,) steepest descent of (1)
    step: np.ndarray     # (U,)
    mobility: np.ndarray  # (K,) mean of the diagonal entries of Theta
    r: np.ndarray        # (K,)
    u: np.ndarray        # (3 K,) contact velocities
    du: np.ndarray       # (3 K,) their change in a step
    base: np.ndarray     # (3 K,)
    shift: np.ndarray    # (K,) mu |u_t|
    force: np.ndarray    # (3 K,) P of (1)
    best: np.ndarray     # (3 K,) forces of the smallest residual
    safe: np.ndarray     # (3 K,) forces of (1), while (2) is tried
    A: np.ndarray        # (9 K,) r P'
    fronts: Fronts


@allocating
def make_heap(touch, n, body_i, work):
    """Island n: its trees, Y, and room for factors."""
    first, count = touch.island[n], touch.island[n + 1] - touch.island[n]
    begin, end = touch.island_handle[n], touch.island_handle[n + 1]
    trees, unknowns = 0, 0
    size, start, low = np.empty(end - begin, np.int64), np.empty(end - begin, np.int64), np.empty(end - begin, np.int64)
    for h in range(begin, end):
        root = touch.tree[touch.handles[h]]
        if touch.on[root] < 0:
            touch.on[root] = trees
            low[trees], last = body_i[root, f.V_INDEX], root
            while last + 1 < touch.tree.shape[0] and touch.tree[last + 1] == root:
                last += 1
            size[trees] = body_i[last, f.V_INDEX] + body_i[last, f.DOF] - low[trees]
            start[trees] = unknowns
            unknowns += size[trees]
            trees += 1
    side, y_at, total = np.full(2 * count, -1), np.zeros(2 * count, np.int64), 0
    for i in range(count):
        k = touch.active[first + i]
        for s in range(2):
            body = np.int64(touch.contact_i[k, c.CONTACT_A + s])
            t = touch.on[touch.tree[body]] if body >= 0 else -1
            if s == 1 and t >= 0 and t == side[2 * i]:  # both sides on one tree: one block
                y_at[2 * i + 1] = y_at[2 * i]
            elif t >= 0:
                side[2 * i + s], y_at[2 * i + s] = t, total
                total += 3 * size[t]
    y = np.zeros(total)
    for h in range(begin, end):
        innovations(touch, touch.handles[h], first, count, body_i, work, size, low, y_at, y)
    for h in range(begin, end):
        touch.on[touch.tree[touch.handles[h]]] = -1
    three, fronts = 3 * count, make_fronts(size[:trees], start[:trees], side)
    heap = Heap(size[:trees], start[:trees], side, y_at, y, np.zeros(unknowns), np.zeros(unknowns), np.zeros(unknowns),
                np.empty(count), np.empty(count), np.zeros(three), np.zeros(three), np.zeros(three), np.zeros(count),
                np.zeros(three), np.zeros(three), np.zeros(three), np.zeros(9 * count), fronts)
    set_mobility(count, heap)
    return heap


@entry("contact of large islands", HEAP, seconds=12, for_kernels=True)
def heap_of_step(touch, n, body_i, h, work):
    return heap_impulses(touch, n, body_i, h, work)


@allocating
def heap_impulses(touch, n, body_i, h, work):
    """As `island_impulses`, of the large island n."""
    heap = make_heap(touch, n, body_i, work)
    count = touch.island[n + 1] - touch.island[n]
    return outlived(heap, island_impulses(solve_heap, velocities_of_heap, hold(heap), touch, count, h))


@inner
def innovations(touch, body, first, count, body_i, work, size, low, y_at, y):
    """Rows of Y of all contacts at a body, from its six unit forces."""
    six, up, tree = touch.six, touch.up, touch.on[touch.tree[body]]
    for e in range(36):
        six[e] = -1.0 if e % 7 == 0 else 0.0
    i = np.int64(body)
    while i >= 0:
        six_up(i, body_i, work, up, six)
        i = np.int64(body_i[i, f.PARENT])
    for place in range(count):
        k = touch.active[first + place]
        for s in range(2):
            if np.int64(touch.contact_i[k, c.CONTACT_A + s]) == body:
                i = np.int64(body)
                while i >= 0:
                    record, dof, j = body_i[i, f.BODY_RECORD], body_i[i, f.DOF], body_i[i, f.V_INDEX]
                    for d in range(dof if body_i[i, f.ELIMINATION] == f.COLUMNS else 0):
                        scale = np.sqrt(max(work[factors_of(record, dof, d) + 6], 0.0))
                        for r in range(3):
                            o, total = ROWS * (first + place) + ROW * r + 6 * s, 0.0
                            for e in range(6):
                                total += touch.rows[o + e] * up[6 * (j + d) + e]
                            y[y_at[2 * place + s] + r * size[tree] + j + d - low[tree]] += scale * total
                    i = np.int64(body_i[i, f.PARENT])


@inner
def set_mobility(count, heap):
    for k in range(count):
        total = 0.0
        for s in range(2):
            t = heap.side[2 * k + s]
            for i in range(3 * heap.size[t] if t >= 0 else 0):
                total += heap.y[heap.y_at[2 * k + s] + i] ** 2
        heap.mobility[k] = total / 3.0 if total > 0.0 else 1.0


@inner
def gather_forces(count, heap, force, x):
    """x = Y^T force."""
    for i in range(x.shape[0]):
        x[i] = 0.0
    for k in range(count):
        f_0, f_1, f_2 = force[3 * k], force[3 * k + 1], force[3 * k + 2]
        for s in range(2):
            t = heap.side[2 * k + s]
            if t >= 0:
                n, o, to = heap.size[t], heap.y_at[2 * k + s], heap.start[t]
                for i in range(n):
                    x[to + i] += heap.y[o + i] * f_0 + heap.y[o + n + i] * f_1 + heap.y[o + 2 * n + i] * f_2


@inner
def spread_to_contacts(count, heap, x, u):
    """u = Y x."""
    for k in range(count):
        u_0 = u_1 = u_2 = 0.0
        for s in range(2):
            t = heap.side[2 * k + s]
            if t >= 0:
                n, o, at = heap.size[t], heap.y_at[2 * k + s], heap.start[t]
                for i in range(n):
                    u_0 += heap.y[o + i] * x[at + i]
                    u_1 += heap.y[o + n + i] * x[at + i]
                    u_2 += heap.y[o + 2 * n + i] * x[at + i]
        u[3 * k], u[3 * k + 1], u[3 * k + 2] = u_0, u_1, u_2


@inner
def velocities_of_heap(heap, touch, count):
    """Theta force + b, into `velocity`."""
    gather_forces(count, heap, touch.force, heap.x)
    spread_to_contacts(count, heap, heap.x, touch.velocity)
    for i in range(3 * count):
        touch.velocity[i] += touch.b[i]


@inline
def to_cone(n, x, y, mu):
    """Projection of (n, x, y) to the cone |(x, y)| <= mu n: (its components; part of n in it, or -1 inside, -2 at the
    tip; length of (x, y))."""
    length = np.sqrt(x * x + y * y)
    if length <= mu * n:
        return n, x, y, -1.0, length
    if mu * length <= -n:
        return 0.0, 0.0, 0.0, -2.0, length
    height = (n + mu * length) / (1.0 + mu * mu)
    if not length > 0.0:
        return height, 0.0, 0.0, height, 1.0
    return height, mu * height * x / length, mu * height * y / length, height, length


@inner
def potential(count, heap, mu, step):
    """The second term of (1) after a part of a step."""
    total = 0.0
    for k in range(count):
        i, r = 3 * k, heap.r[k]
        n, x, y, _, _ = to_cone(heap.base[i] - r * (heap.u[i] + step * heap.du[i] + heap.shift[k]),
                                heap.base[i + 1] - r * (heap.u[i + 1] + step * heap.du[i + 1]),
                                heap.base[i + 2] - r * (heap.u[i + 2] + step * heap.du[i + 2]), mu[k])
        total += (n * n + x * x + y * y) / r
    return 0.5 * total


@inner
def forces_and_stiffness(count, heap, mu):
    """P of (1) into `force`, r P' into A."""
    for k in range(count):
        i, o, r = 3 * k, 9 * k, heap.r[k]
        t_1 = heap.base[i + 1] - r * heap.u[i + 1]
        t_2 = heap.base[i + 2] - r * heap.u[i + 2]
        n, x, y, height, length = to_cone(heap.base[i] - r * (heap.u[i] + heap.shift[k]), t_1, t_2, mu[k])
        heap.force[i], heap.force[i + 1], heap.force[i + 2] = n, x, y
        for e in range(9):
            heap.A[o + e] = 0.0
        if height == -1.0:
            heap.A[o] = heap.A[o + 4] = heap.A[o + 8] = r
        elif height != -2.0:
            part, e_1, e_2 = r / (1.0 + mu[k] * mu[k]), t_1 / length, t_2 / length
            side, turn = mu[k] * part, r * mu[k] * height / length
            along = mu[k] * side - turn
            heap.A[o], heap.A[o + 1], heap.A[o + 2] = part, side * e_1, side * e_2
            heap.A[o + 3], heap.A[o + 4], heap.A[o + 5] = side * e_1, along * e_1 * e_1 + turn, along * e_1 * e_2
            heap.A[o + 6], heap.A[o + 7], heap.A[o + 8] = side * e_2, along * e_1 * e_2, along * e_2 * e_2 + turn


@inner
def law_residual(count, heap, b, mu, force, u):
    """Largest violation of the law by forces and velocities, in units of velocity, divided by the size of the problem:
    as in `problem.py`, with one mobility for a contact."""
    worst, extent = 0.0, 0.0
    for k in range(count):
        i, m = 3 * k, heap.mobility[k]
        f_n, f_1, f_2 = m * force[i], m * force[i + 1], m * force[i + 2]
        t_n, t_1, t_2 = f_n - u[i], f_1 - u[i + 1], f_2 - u[i + 2]
        p_n = max(t_n, 0.0)
        radius, length = mu[k] * p_n, np.sqrt(t_1 * t_1 + t_2 * t_2)
        ratio = radius / length if length > radius else 1.0
        worst = max(worst, max(abs(f_n - p_n), np.sqrt((f_1 - ratio * t_1) ** 2 + (f_2 - ratio * t_2) ** 2)))
        if not (abs(f_n) < np.inf and abs(u[i]) < np.inf and abs(u[i + 1]) < np.inf and abs(u[i + 2]) < np.inf):
            return np.inf
        for r in range(3):
            extent = max(extent, max(abs(b[i + r]), m * abs(force[i + r])))
    return worst / extent if extent > 0.0 else 0.0


@inner
def minimise(count, heap, mu, tolerance):
    """Newton's method for (1) from x and u, until its gradient is below this part of x; factorisations. Leaves P in
    `force`."""
    unknowns, done = heap.x.shape[0], 0
    forces_and_stiffness(count, heap, mu)
    for _ in range(INNER):
        gather_forces(count, heap, heap.force, heap.slope)
        steepest = largest = energy = 0.0
        for i in range(unknowns):
            heap.slope[i] -= heap.x[i]
            heap.step[i] = heap.slope[i]
            steepest, largest = max(steepest, abs(heap.slope[i])), max(largest, abs(heap.x[i]))
            energy += 0.5 * heap.x[i] * heap.x[i]
        if steepest <= tolerance * largest:
            break
        factor(heap.fronts, heap.size, heap.start, heap.side, heap.y, heap.y_at, heap.A)
        solve_with_factors(heap.fronts, heap.size, heap.step)
        done += 1
        decrease = mixed = square = 0.0
        for i in range(unknowns):
            decrease += heap.slope[i] * heap.step[i]
            mixed += heap.x[i] * heap.step[i]
            square += heap.step[i] * heap.step[i]
        spread_to_contacts(count, heap, heap.step, heap.du)
        before, part = potential(count, heap, mu, 0.0), 1.0
        for _ in range(HALVINGS):
            change = potential(count, heap, mu, part) - before + part * (mixed + 0.5 * part * square)
            if change <= ROUNDING * (before + energy) - DESCENT * part * decrease:
                break
            part *= 0.5
        for i in range(unknowns):
            heap.x[i] += part * heap.step[i]
        for i in range(3 * count):
            heap.u[i] += part * heap.du[i]
        forces_and_stiffness(count, heap, mu)
    return done


@inner
def copy(n, source, target):
    for i in range(n):
        target[i] = source[i]


@inner
def consistent(count, heap, b, force):
    """x and u of forces."""
    gather_forces(count, heap, force, heap.x)
    spread_to_contacts(count, heap, heap.x, heap.u)
    for i in range(3 * count):
        heap.u[i] += b[i]


@inner
def discs_and_stiffness(count, heap, mu):
    """P of (2) into `force`, r P' into A."""
    for k in range(count):
        i, o, r = 3 * k, 9 * k, heap.r[k]
        t_n = heap.base[i] - r * heap.u[i]
        t_1, t_2 = heap.base[i + 1] - r * heap.u[i + 1], heap.base[i + 2] - r * heap.u[i + 2]
        for e in range(9):
            heap.A[o + e] = 0.0
        heap.force[i], heap.force[i + 1], heap.force[i + 2] = max(t_n, 0.0), 0.0, 0.0
        if not t_n > 0.0:
            continue
        heap.A[o] = r
        radius, length = mu[k] * t_n, np.sqrt(t_1 * t_1 + t_2 * t_2)
        if length <= radius:
            heap.force[i + 1], heap.force[i + 2] = t_1, t_2
            heap.A[o + 4] = heap.A[o + 8] = r
        elif radius > 0.0:
            e_1, e_2, turn = t_1 / length, t_2 / length, r * radius / length
            heap.force[i + 1], heap.force[i + 2] = radius * e_1, radius * e_2
            heap.A[o + 3], heap.A[o + 6] = r * mu[k] * e_1, r * mu[k] * e_2
            heap.A[o + 4], heap.A[o + 8] = turn * e_2 * e_2, turn * e_1 * e_1
            heap.A[o + 5] = heap.A[o + 7] = -turn * e_1 * e_2


@inner
def imbalance(count, heap):
    """Y^T force - x into `slope`: (sum of its squares, largest entry, largest of x)."""
    gather_forces(count, heap, heap.force, heap.slope)
    square = steepest = largest = 0.0
    for i in range(heap.x.shape[0]):
        heap.slope[i] -= heap.x[i]
        square += heap.slope[i] * heap.slope[i]
        steepest, largest = max(steepest, abs(heap.slope[i])), max(largest, abs(heap.x[i]))
    return square, steepest, largest


@inner
def balance_discs(count, heap, mu, tolerance):
    """Newton's method for (2) from x and u, until its residual is below this part of x: factorisations, and whether
    it is. Leaves P in `force`."""
    unknowns, done = heap.x.shape[0], 0
    discs_and_stiffness(count, heap, mu)
    square, steepest, largest = imbalance(count, heap)
    for _ in range(INNER):
        if steepest <= tolerance * largest:
            return done, True
        for i in range(unknowns):
            heap.step[i] = heap.slope[i]
        factor(heap.fronts, heap.size, heap.start, heap.side, heap.y, heap.y_at, heap.A)
        solve_with_factors(heap.fronts, heap.size, heap.step)
        spread_to_contacts(count, heap, heap.step, heap.du)
        done += 1
        part, taken, before = 1.0, 0.0, square
        for _ in range(SHORTENINGS):
            for i in range(unknowns):
                heap.x[i] += (part - taken) * heap.step[i]
            for i in range(3 * count):
                heap.u[i] += (part - taken) * heap.du[i]
            taken = part
            discs_and_stiffness(count, heap, mu)
            square, steepest, largest = imbalance(count, heap)
            if square < (1.0 - DESCENT * part) * before:
                break
            part *= 0.5
        if not square < before:
            return done, False
    return done, steepest <= tolerance * largest


@inner
def begin_outer(count, heap, mu, stiffness):
    """base, r and shift from the forces and velocities at hand."""
    for k in range(count):
        i = 3 * k
        heap.r[k] = stiffness / heap.mobility[k]
        heap.shift[k] = mu[k] * np.sqrt(heap.u[i + 1] ** 2 + heap.u[i + 2] ** 2)
        for r in range(3):
            heap.base[i + r] = heap.force[i + r]


@inner
def judge(count, heap, b, mu, least):
    """Velocities and residual of the forces at hand, which are kept if they are the best so far: (residual, least)."""
    consistent(count, heap, b, heap.force)
    residual = law_residual(count, heap, b, mu, heap.force, heap.u)
    if residual < least:
        for i in range(3 * count):
            heap.best[i] = heap.force[i]
    return residual, min(residual, least)


@inner
def solve_heap(heap, touch, count, start):
    """Solve the contact problem of a large island from `force` (FORCES) or from none; forces into `force`, modes into
    `mode`."""
    b, mu, done = touch.b, touch.mu, 0
    for k in range(count):
        n, x, y, _, _ = to_cone(touch.force[3 * k], touch.force[3 * k + 1], touch.force[3 * k + 2], mu[k])
        if start != FORCES:
            n, x, y = 0.0, 0.0, 0.0
        heap.force[3 * k], heap.force[3 * k + 1], heap.force[3 * k + 2] = n, x, y
    residual, least = judge(count, heap, b, mu, np.inf)
    tried = np.inf
    for _ in range(OUTER):
        if least > HEAP_AIM and residual < TRIED * tried:  # (2), as long as it converges
            tried = min(residual, 0.1)
            copy(3 * count, heap.force, heap.safe)
            last = residual
            for _ in range(EXACT):
                begin_outer(count, heap, mu, STIFF)
                more, fine = balance_discs(count, heap, mu, max(SETTLED * last, FINEST))
                done += more
                before = last
                last, least = judge(count, heap, b, mu, least)
                if not fine or last <= HEAP_AIM or last > GAIN * before:
                    break
            if least > HEAP_AIM:
                copy(3 * count, heap.safe, heap.force)
                consistent(count, heap, b, heap.force)
        if least <= HEAP_AIM:
            break
        begin_outer(count, heap, mu, YIELDING)  # (1)
        done += minimise(count, heap, mu, max(SETTLED * residual, FINEST))
        residual, least = judge(count, heap, b, mu, least)
    for i in range(3 * count):
        touch.force[i] = heap.best[i]
    note_modes(count, touch)
    note_solution(touch, count, least, done, SOLVED if least <= HEAP_ENOUGH else ROUGH)


@inner
def note_modes(count, touch):
    for k in range(count):
        n, friction = touch.force[3 * k], np.sqrt(touch.force[3 * k + 1] ** 2 + touch.force[3 * k + 2] ** 2)
        touch.mode[k] = OPEN if n <= 0.0 else STICKING if friction < (1.0 - 1e-9) * touch.mu[k] * n else SLIDING
