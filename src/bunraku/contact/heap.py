"""The contact problem of large islands: sweeps over single contacts, and Newton's method with sparse factors.

With Theta = Y Y^T (`heap_rows.py`) and x = Y^T f, contact velocities are u = Y x + b. Coulomb's law is the fixed point
f = P(f - r u) of the projection of `problem.py`, with r = rho / mobility in each contact. A semismooth Newton step df
obeys, D being the derivative of P,

    (1 - D) df + r D Y dx = -F,    F = f - P(f - r u),    dx = Y^T df                                              (1)

Redundant contacts make (1) singular, and far from the solution its steps are wild. So the contacts yield a little to
changes of their forces from those at hand, the *base*: u is replaced by u + eps m (f - base), m the mobility of the
contact. With D' = (1 - eps) D,

    df = -p - A Y dx,    p = G^-1 F,    A = G^-1 r D,    G = 1 - D'
    (1 + Y^T A Y) dx = -Y^T p                                                                                       (2)

a system in x, with a sparse matrix (`heap_factors.py`) that is regular whatever the contacts are, and redundant forces
stay near to those of the base. The solution, which Newton's method finds in a few steps if eps is large enough, is the
next base (a proximal point method). eps falls with success, so that convergence ends nearly quadratic, and rises with
failure: what is found has no trace of it.

A moment of friction (`moment_rows.py`) has P with the bound arm (f_n - r u_n) of its point, whose normal is the first
column of its A; its first row is zero. A soft contact has c f_n added to u_n for good, and eps m + c in place of eps m.

A step is shortened until the sum of squares of F, in units of velocity, is less than one of the last two; if no part of
it achieves that, the whole step is made, as a restart elsewhere. The modes should be nearly right at the start: sweeps
over the contacts, each solved by itself in turn (`single.py`), find most of them at a small part of the cost of
factors. Where all this fails, more sweeps follow from the best forces so far, and another rho.

Reference: Alart, Curnier (1991); Acary, Bremond, Huber (2018). Cost: a heap of balls that collapses needs 10 sweeps and
3 to 6 factorisations, one at rest none.
"""

import numpy as np

from bunraku.contact.contact_calls import HEAP
from bunraku.contact.contact_fields import FORCES, OPEN, ROUGH, SLIDING, SOLVED, STICKING
from bunraku.contact.heap_factors import factor, solve_with_factors
from bunraku.contact.heap_rows import (
    gather_forces,
    make_heap,
    motion_of_contact,
    push_contact,
    spread_to_contacts,
    velocities_of_heap,
)
from bunraku.contact.island_impulses import impulses_of_heap
from bunraku.contact.single import solve_single
from bunraku.contact.touching import note_solution
from bunraku.jit import allocating, entry, hold, inline, inner, outlived
from bunraku.spatial.scalar import load, store
from bunraku.tolerances import HEAP_AIM, HEAP_ENOUGH, HEAP_PARTED

YIELDING = 1e-3        # eps at first
LEAST, MOST = 1e-9, 1.0  # bounds of eps
LESS, MUCH_LESS, MORE = 0.1, 1e-4, 10.0  # factors of eps after a base that is found, soon, or not
SOON = 3               # steps
ITERATIONS = 6         # of Newton's method for a base
FOUND = 1e-2           # part of the squares that is left where a base is found
RHO = (1.0, 3.0, 0.3, 10.0)  # of the attempts, in turn
FIRST_SWEEPS = 10      # before the first factorisation; then twice as many before each attempt, and two
MOST_SWEEPS = 200
ATTEMPTS = 6
FACTORISATIONS = 30    # in an attempt, about
HALVINGS = 10          # of a step
SHORTEST = 0.75 * 0.5 ** (HALVINGS - 1)
DECREASE = 1e-3        # part of the step by which squares have to decrease
PARTING_SWEEPS = 20    # at most, for the removal of penetration


@entry("contact of large islands", HEAP, seconds=12, for_kernels=True)
def heap_of_step(touch, n, body_i, h, work):
    return heap_impulses(touch, n, body_i, h, work)


@allocating
def heap_impulses(touch, n, body_i, h, work):
    """As `island_impulses`, of the large island n."""
    heap = make_heap(touch, n, body_i, h, work)
    count = touch.island[n + 1] - touch.island[n]
    return outlived(heap, impulses_of_heap(solve_heap, velocities_of_heap, part_heap, hold(heap), touch, count, h))


# -- the law -----------------------------------------------------------------------------------------------------------

@inline
def projected(t_n, t_1, t_2, mu):
    """P: (its three components; mu f_n / |t_t| where friction is limited, else 1)."""
    n = max(t_n, 0.0)
    radius, length = mu * n, np.sqrt(t_1 * t_1 + t_2 * t_2)
    ratio = radius / length if length > radius else 1.0
    return n, ratio * t_1, ratio * t_2, ratio


@inner
def law_residual(count, heap, b, mu):
    """Largest violation of the law by `force` and u, in units of velocity, divided by the size of the problem: as in
    `problem.py`, with one mobility for a contact."""
    worst, extent = 0.0, 0.0
    for k in range(count):
        i, m = 3 * k, heap.mobility[k]
        f_n, f_1, f_2 = m * heap.force[i], m * heap.force[i + 1], m * heap.force[i + 2]
        u_n, u_1, u_2 = heap.u[i] + heap.give[k] * heap.force[i], heap.u[i + 1], heap.u[i + 2]
        p_n, p_1, p_2, _ = projected(f_n - u_n, f_1 - u_1, f_2 - u_2, mu[k])
        if heap.point[k] != k:  # the bound by the load, in the same units
            point = heap.point[k]
            f_p, u_p = heap.force[3 * point], heap.u[3 * point]
            bound = m * mu[k] * max(f_p - (u_p + heap.give[point] * f_p) / heap.mobility[point], 0.0)
            p_n, p_1, p_2, _ = projected(bound, f_1 - u_1, f_2 - u_2, 1.0)
            f_n, u_n = p_n, 0.0
        worst = max(worst, max(abs(f_n - p_n), np.sqrt((f_1 - p_1) ** 2 + (f_2 - p_2) ** 2)))
        if not (abs(f_n) < np.inf and abs(u_n) < np.inf and abs(u_1) < np.inf and abs(u_2) < np.inf):
            return np.inf
        extent = max(extent, max(max(abs(f_n), abs(b[i])), max(max(abs(f_1), abs(b[i + 1])),
                                                               max(abs(f_2), abs(b[i + 2])))))
    return worst / extent if extent > 0.0 else 0.0


@inline
def normal_state(k, heap, eps, step):
    """f_n of a contact after a part of a step, and its velocity w_n with all compliances."""
    i = 3 * k
    f_n = heap.force[i] + step * heap.push[i]
    return f_n, (heap.u[i] + step * heap.du[i] + eps * heap.mobility[k] * (f_n - heap.base[i]) + heap.give[k] * f_n)


@inner
def squares(count, heap, mu, rho, eps, step):
    """Sum of squares of F after a part of a step, in units of velocity."""
    result = 0.0
    for k in range(count):
        i, m = 3 * k, heap.mobility[k]
        r, soft = rho / m, eps * m
        f_n, f_1, f_2 = (heap.force[i] + step * heap.push[i], heap.force[i + 1] + step * heap.push[i + 1],
                         heap.force[i + 2] + step * heap.push[i + 2])
        point = heap.point[k]
        loaded, w_n = normal_state(point, heap, eps, step)
        t_n = loaded - rho / heap.mobility[point] * w_n
        if point != k:
            f_n = max(t_n, 0.0)
        p_n, p_1, p_2, _ = projected(
            t_n,
            f_1 - r * (heap.u[i + 1] + step * heap.du[i + 1] + soft * (f_1 - heap.base[i + 1])),
            f_2 - r * (heap.u[i + 2] + step * heap.du[i + 2] + soft * (f_2 - heap.base[i + 2])), mu[k])
        result += m * m * ((f_n - p_n) ** 2 + (f_1 - p_1) ** 2 + (f_2 - p_2) ** 2)
    return result


@inner
def linearise(count, heap, mu, rho, eps):
    """p into `push` and A, equation (2)."""
    softness = rho * eps
    for k in range(count):
        i, o, r, soft = 3 * k, 9 * k, rho / heap.mobility[k], eps * heap.mobility[k]
        f_n, f_1, f_2 = heap.force[i], heap.force[i + 1], heap.force[i + 2]
        w_1, w_2 = heap.u[i + 1] + soft * (f_1 - heap.base[i + 1]), heap.u[i + 2] + soft * (f_2 - heap.base[i + 2])
        t_1, t_2 = f_1 - r * w_1, f_2 - r * w_2
        point = heap.point[k]
        rigid = r if point == k else rho / heap.mobility[point]
        loaded, w_n = normal_state(point, heap, eps, 0.0)
        t_n, yields = loaded - rigid * w_n, softness + rigid * heap.give[point]
        p_n, p_1, p_2, ratio = projected(t_n, t_1, t_2, mu[k])
        for e in range(9):
            heap.A[o + e] = 0.0
        heap.push[i], heap.push[i + 1], heap.push[i + 2] = f_n - p_n, f_1 - p_1, f_2 - p_2
        if point != k:
            heap.push[i] = 0.0
        if not t_n > 0.0:  # D = 0
            continue
        firm, firm_n = r / softness, rigid / yields
        if point == k:
            heap.A[o] = firm_n
            heap.push[i] = firm_n * w_n
        leads = heap.push[3 * point]
        if ratio == 1.0 and mu[k] > 0.0:  # D = 1
            heap.A[o + 4] = heap.A[o + 8] = firm
            heap.push[i + 1], heap.push[i + 2] = firm * w_1, firm * w_2
        elif mu[k] > 0.0:  # friction follows f_n along e, and turns
            length = np.sqrt(t_1 * t_1 + t_2 * t_2)
            e_1, e_2 = t_1 / length, t_2 / length
            turn, follow = 1.0 / (1.0 - (1.0 - softness) * ratio), (1.0 - yields) * mu[k]
            q_1, q_2 = heap.push[i + 1] + follow * e_1 * leads, heap.push[i + 2] + follow * e_2 * leads
            along, across = e_1 * q_1 + e_2 * q_2, turn * (e_1 * q_2 - e_2 * q_1)
            heap.push[i + 1], heap.push[i + 2] = along * e_1 - across * e_2, along * e_2 + across * e_1
            heap.A[o + 3] = e_1 * (mu[k] * rigid + follow * firm_n)
            heap.A[o + 6] = e_2 * (mu[k] * rigid + follow * firm_n)
            stiff = r * ratio * turn
            heap.A[o + 4], heap.A[o + 8] = stiff * e_2 * e_2, stiff * e_1 * e_1
            heap.A[o + 5] = heap.A[o + 7] = -stiff * e_1 * e_2


# -- Newton's method ---------------------------------------------------------------------------------------------------

@inner
def find_velocities(count, heap, b):
    """x and u of `force`."""
    gather_forces(count, heap, heap.force, heap.x)
    spread_to_contacts(count, heap, heap.x, heap.u)
    for i in range(3 * count):
        heap.u[i] += b[i]


@inner
def find_step(count, heap, mu, rho, eps):
    """df into `push`, its velocities into `du`."""
    linearise(count, heap, mu, rho, eps)
    gather_forces(count, heap, heap.push, heap.step)
    for i in range(heap.step.shape[0]):
        heap.step[i] = -heap.step[i]
    factor(heap.fronts, heap.size, heap.side, heap.y, heap.y_at, heap.A)
    solve_with_factors(heap.fronts, heap.step)
    for k in range(count):
        i, o = 3 * k, 9 * k
        u_n, u_1, u_2 = motion_of_contact(k, heap, heap.step)
        for r in range(3):
            heap.push[i + r] = -(heap.push[i + r] + heap.A[o + 3 * r] * u_n + heap.A[o + 3 * r + 1] * u_1
                                 + heap.A[o + 3 * r + 2] * u_2)
    gather_forces(count, heap, heap.push, heap.step)
    spread_to_contacts(count, heap, heap.step, heap.du)


@inner
def newton(count, heap, b, mu, rho, eps):
    """Newton's method for contacts that yield by eps, from `force`, the base, on: (factorisations, whether the squares
    have fallen to FOUND)."""
    for i in range(3 * count):
        heap.base[i], heap.push[i], heap.du[i] = heap.force[i], 0.0, 0.0
    done = 0
    before = square = squares(count, heap, mu, rho, eps, 0.0)
    enough = FOUND * square
    while done < ITERATIONS and enough < square < np.inf:
        find_step(count, heap, mu, rho, eps)
        done += 1
        part, allowed = 1.0, max(square, before)
        for _ in range(HALVINGS):
            if squares(count, heap, mu, rho, eps, part) < (1.0 - DECREASE * part) * allowed:
                break
            part *= 0.5
        if part < SHORTEST:
            part = 1.0
        for i in range(3 * count):
            heap.force[i] += part * heap.push[i]
            heap.push[i] = heap.du[i] = 0.0
        find_velocities(count, heap, b)
        before, square = square, squares(count, heap, mu, rho, eps, 0.0)
    return done, square <= enough


@inner
def approach(count, heap, b, mu, rho, aim):
    """Bases, one after another, from `force` until the residual is below `aim`: (smallest residual, its forces
    being `best`; factorisations)."""
    find_velocities(count, heap, b)
    residual, eps, done = law_residual(count, heap, b, mu), YIELDING, 0
    least = residual
    keep_best(count, heap)
    while done < FACTORISATIONS and aim < residual < np.inf:
        before = residual
        more, found = newton(count, heap, b, mu, rho, eps)
        done += more
        if residual <= HEAP_ENOUGH and not found:  # rounding errors are left
            break
        residual = law_residual(count, heap, b, mu)
        if residual < least:
            least = residual
            keep_best(count, heap)
        if not (found or residual < before):
            residual = before
            for i in range(3 * count):
                heap.force[i] = heap.base[i]
            find_velocities(count, heap, b)
        eps = max(LEAST, eps * (LESS if more > SOON else MUCH_LESS)) if found else min(MOST, eps * MORE)
    return least, done


@inner
def keep_best(count, heap):
    for i in range(3 * count):
        heap.best[i] = heap.force[i]


# -- sweeps ------------------------------------------------------------------------------------------------------------

@inner
def sweep(count, heap, b, mu):
    """One contact after the other, the others being held: `force` and x."""
    force, W, x = heap.force, heap.W, heap.x
    for k in range(count):
        i, o = 3 * k, 9 * k
        u_n, u_1, u_2 = motion_of_contact(k, heap, x)
        f_n, f_1, f_2 = load(force, i), load(force, i + 1), load(force, i + 2)
        b_n = load(b, i) + u_n - (load(W, o) * f_n + load(W, o + 1) * f_1 + load(W, o + 2) * f_2)
        if heap.point[k] != k:
            bear_moment(k, heap, b, mu, u_1, u_2)
            continue
        if (b_n >= 0.0 and f_n == 0.0) or not load(W, o) > 0.0:
            continue
        b_1 = load(b, i + 1) + u_1 - (load(W, o + 3) * f_n + load(W, o + 4) * f_1 + load(W, o + 5) * f_2)
        b_2 = load(b, i + 2) + u_2 - (load(W, o + 6) * f_n + load(W, o + 7) * f_1 + load(W, o + 8) * f_2)
        W[o] += heap.give[k]
        n, t_1, t_2 = solve_single(o, 3, b_n, b_1, b_2, mu[k], W)
        W[o] -= heap.give[k]
        store(force, i, n)
        store(force, i + 1, t_1)
        store(force, i + 2, t_2)
        push_contact(k, heap, n - f_n, t_1 - f_1, t_2 - f_2, x)


@inner
def bear_moment(k, heap, b, mu, u_1, u_2):
    """The same of a moment, for the present normal force of its point."""
    i, o, force, W = 3 * k, 9 * k, heap.force, heap.W
    f_1, f_2, t_1, t_2 = load(force, i + 1), load(force, i + 2), 0.0, 0.0
    pressed = load(force, 3 * heap.point[k])
    if pressed > 0.0 and load(W, o) > 0.0:
        b_1 = load(b, i + 1) + u_1 - (load(W, o + 4) * f_1 + load(W, o + 5) * f_2)
        b_2 = load(b, i + 2) + u_2 - (load(W, o + 7) * f_1 + load(W, o + 8) * f_2)
        _, t_1, t_2 = solve_single(o, 3, 0.0 - load(W, o) * pressed, b_1, b_2, mu[k], W)
    if t_1 != f_1 or t_2 != f_2:
        store(force, i + 1, t_1)
        store(force, i + 2, t_2)
        push_contact(k, heap, 0.0, t_1 - f_1, t_2 - f_2, heap.x)


@inner
def solve_heap(heap, touch, count, start):
    """Solve the contact problem of a large island from `force` (FORCES) or from none; forces into `force`, modes into
    `mode`."""
    b, mu, done, sweeps = touch.b, heap.mu, 0, FIRST_SWEEPS
    find_bounds(heap, touch, count)
    for i in range(3 * count):
        heap.force[i] = touch.force[i] if start == FORCES else 0.0
    without_loads(heap, count)
    find_velocities(count, heap, b)
    least = law_residual(count, heap, b, mu)
    for i in range(3 * count):
        touch.force[i] = heap.force[i]
    for attempt in range(ATTEMPTS if least > HEAP_AIM else 0):
        for _ in range(sweeps):
            sweep(count, heap, b, mu)
        sweeps = min(2 * sweeps + 2, MOST_SWEEPS)
        residual, more = approach(count, heap, b, mu, RHO[attempt % 4], HEAP_AIM)
        done += more
        if not residual >= least:
            least = residual
            for i in range(3 * count):
                touch.force[i] = heap.best[i]
        if least <= HEAP_ENOUGH:
            break
        for i in range(3 * count):
            heap.force[i] = heap.best[i] if residual < np.inf else 0.0
        gather_forces(count, heap, heap.force, heap.x)
    put_loads(heap, touch, count)
    note_modes(count, touch)
    note_solution(touch, count, least, done, SOLVED if least <= HEAP_ENOUGH else ROUGH)


@inner
def find_bounds(heap, touch, count):
    """Friction per normal force."""
    for k in range(count):
        heap.mu[k] = touch.mu[k] * heap.arm[k]


@inner
def without_loads(heap, count):
    """Moments have no normal force of their own here."""
    for k in range(count):
        if heap.point[k] != k:
            heap.force[3 * k] = 0.0


@inner
def put_loads(heap, touch, count):
    """The loads of moments as the contact problem has them."""
    for k in range(count):
        if heap.point[k] != k:
            touch.force[3 * k] = heap.arm[k] * touch.force[3 * heap.point[k]]


@inner
def note_modes(count, touch):
    for k in range(count):
        n, friction = touch.force[3 * k], np.sqrt(touch.force[3 * k + 1] ** 2 + touch.force[3 * k + 2] ** 2)
        touch.mode[k] = OPEN if n <= 0.0 else STICKING if friction < (1.0 - 1e-9) * touch.mu[k] * n else SLIDING


# -- removal of penetration --------------------------------------------------------------------------------------------

@inner
def part_heap(heap, touch, count):
    """Impulses of the smallest displacement that removes penetration, up to a small part that the next steps remove:
    the problem of the gaps b, without friction, into `force`."""
    x, force, deepest, worst = heap.x, heap.force, 0.0, 0.0
    for i in range(x.shape[0]):
        x[i] = 0.0
    for i in range(3 * count):
        force[i] = 0.0
        deepest = max(deepest, -touch.b[i])
    for _ in range(PARTING_SWEEPS):
        worst = 0.0
        for k in range(count):
            W = heap.W[9 * k] + heap.give[k] if heap.point[k] == k else 0.0
            if W > 0.0:
                u_n, _, _ = motion_of_contact(k, heap, x)
                change = max(-(u_n + heap.give[k] * force[3 * k] + touch.b[3 * k]) / W, -force[3 * k])
                if change != 0.0:
                    force[3 * k] += change
                    worst = max(worst, W * abs(change))
                    push_contact(k, heap, change, 0.0, 0.0, x)
        if worst <= HEAP_PARTED * deepest:
            break
    keep_best(count, heap)
    if worst > HEAP_PARTED * deepest:
        approach(count, heap, touch.b, touch.mu, 1.0, HEAP_PARTED)  # no friction
    for i in range(3 * count):
        touch.force[i] = heap.best[i]
