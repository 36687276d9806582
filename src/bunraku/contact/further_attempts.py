"""Further attempts at a contact problem that Newton's method has not solved from its first forces.

A fixed number, up to CONTACT_WORK (`tolerances.py`); the best forces of all are kept. If the first forces were given,
Newton's method begins anew from the smallest sticking forces: those of another problem may be far too large, as after a
much longer step. Combinations of open and closed GIVEN contacts follow, if there are any. Then take turns:

    continuation in decreasing compliance of the contacts
    sweeps over single contacts (block Gauss-Seidel, `single.py`) from the best forces
    Newton's method from random forces, in other units, twice
    convex steps (`convex_steps.py`, DISC contacts only), with another stiffness each time, twice: they cost most and
    solve most of what is left

Each of them fails for a part of the problems, nearly independently of the others. Cost: sweeps cost a few rows of a
factorisation. `bunraku check problems` counts what is left.
"""

import numpy as np

from bunraku.contact.contact_fields import DISC, LOADED, MODES, NONE, OPEN, SLIDING, STICKING
from bunraku.contact.contact_newton import fill_matrix, newton, number_rows
from bunraku.contact.convex_steps import convex_steps
from bunraku.contact.coulomb_law import find_velocities, is_given, loaded_by
from bunraku.contact.first_forces import first_forces, other_forces, set_modes
from bunraku.contact.problem_memory import BASE, BEST, FORCE, FRICTION, VELOCITY, contact_at, matrix_at, vector_at
from bunraku.contact.problem_scaling import balance, rescale
from bunraku.contact.single import solve_single
from bunraku.contact.spans import add, clear, copy, dot, largest
from bunraku.jit import inline, inner
from bunraku.spatial.scalar import load, store
from bunraku.tolerances import CONTACT_WORK, LAW_CLOSE, LAW_ENOUGH, NEGLIGIBLE

CHOICE, YIELD, SWEEP, CONVEX, TURNS = -1, 0, 1, 4, 6  # turns 2 and 3: other forces, from CONVEX on convex steps
ITERATIONS = 30      # of Newton's method
FLAT = 1e-9          # curvature that counts as none
ATTEMPTS = 72
FEW = 6              # of them, where a better solution is looked for or there may be none (Painleve)
SWEEPS = 20          # at least
MANY_SWEEPS = 200    # where work is short: they cost as much as a factorisation or two
MOST_CHOICES = 64    # combinations of open and closed GIVEN contacts
PLENTY = 500         # factorisations allowed, from which on the order of attempts is that of small problems
YIELDING = 12        # solutions with contacts that yield
LESS = 0.25          # by how much less each time
# Of convex steps, from no forces; then from random ones
STIFFNESS = (1e4, 1e2, 1.0, 1e6, 1e3, 1.0, 1e5, 1e4)
GROWTH = (1.0, 1.0, 10.0, 1.0, 1.0, 3.0, 1.0, 10.0)
FACTORS = (0.0625, 0.25, 1.0, 4.0, 16.0)  # of forces and velocities, beside that of `balance`


@inner
def fall_back(count, residual, start, kind, slip, mode, work):
    """Further attempts at a solution, a fixed number, within CONTACT_WORK; leaves the best forces. Returns residual,
    iterations, and whether the problem may be infeasible. Large problems begin with sweeps, which are cheap."""
    n, f, best = 3 * count, vector_at(count, FORCE), vector_at(count, BEST)
    least, iterations, seed, allowed = residual, 0, 1, factorisations_allowed(count)
    large, given, convex = allowed < PLENTY, any_other_than_disc(count, kind), 0
    copy(n, f, best, work)
    if start != NONE:  # the forces of another problem may be far too large
        least, iterations = begin_anew(count, residual, kind, slip, mode, work)
    factored = iterations
    usual, size = load(work, contact_at(count, count)), largest(n, f, work)
    if not least <= 1.0:  # no force at all is better: nothing is violated by more than what acts
        size, least = 1.0, 1.0
        clear(n, best, work)
    choices, doubtful = count_choices(count, kind), negative_curvature(count, kind, slip, mode, work)
    for attempt in range(SWEEP if large else -choices, FEW if doubtful else ATTEMPTS):
        if least <= LAW_CLOSE or (least <= LAW_ENOUGH and attempt >= FEW) or factored >= allowed:
            break
        left, turn = max(1, allowed - factored), attempt % TURNS if attempt >= 0 else CHOICE
        if turn >= CONVEX and not given:
            seed = other_forces(count, size if convex >= len(STIFFNESS) else 0.0, seed, work)
            which = convex % len(STIFFNESS)
            residual, more = convex_steps(count, STIFFNESS[which], GROWTH[which], left, kind, slip, mode, work)
            convex += 1
        else:
            if turn == CHOICE:
                choose(count, -1 - attempt, kind, mode)
                clear(n, f, work)
                first_forces(count, MODES, kind, slip, mode, work)
            elif turn == YIELD:
                seed = other_forces(count, size if attempt > 0 else 0.0, seed, work)
                more = yield_less(count, usual * usual, left, kind, slip, mode, work)
                iterations += more
                factored += more
            elif turn == SWEEP:
                copy(n, best, f, work)
                iterations += sweeps(count, MANY_SWEEPS if large else SWEEPS + attempt, kind, slip, work)
            else:
                seed = other_forces(count, size, seed, work)
                factor = FACTORS[attempt % len(FACTORS)]
                rescale(count, factor * usual / load(work, contact_at(count, count)), work)
            residual, more = newton(count, min(ITERATIONS, max(1, allowed - factored)), 0.0, kind, slip, mode, work)
        iterations += more
        factored += more
        if residual < least:
            least = residual
            copy(n, f, best, work)
        rescale(count, usual / load(work, contact_at(count, count)), work)
    copy(n, best, f, work)
    return least, iterations, doubtful


@inner
def begin_anew(count, residual, kind, slip, mode, work):
    """Newton's method from the smallest sticking forces, in units of their own: the smaller residual, iterations. The
    forces of the smaller residual are BEST, the new ones FORCE."""
    n, f = 3 * count, vector_at(count, FORCE)
    clear(n, f, work)
    first_forces(count, NONE, kind, slip, mode, work)
    rescale(count, balance(count, work), work)
    new, done = newton(count, ITERATIONS, 0.0, kind, slip, mode, work)
    if new < residual or not residual < np.inf:
        copy(n, f, vector_at(count, BEST), work)
    return (new if new < residual or not residual < np.inf else residual), done + 1


@inner
def sweeps(count, number, kind, slip, work):
    """Block Gauss-Seidel; returns the number of sweeps."""
    find_velocities(count, 0.0, work)
    for _ in range(number):
        sweep(count, kind, slip, work)
    return number


@inner
def any_other_than_disc(count, kind):
    other = False
    for k in range(count):
        other = other or kind[k] != DISC
    return other


@inline
def factorisations_allowed(count):
    """Total budget of factorisations for the attempts of `fall_back`."""
    n = 3.0 * count
    return np.int64(min(CONTACT_WORK / (n * n * n), 1e6)) + ITERATIONS


@inner
def count_choices(count, kind):
    """How many combinations of open and closed GIVEN contacts are tried."""
    choices = 1
    for k in range(count):
        if is_given(kind[k]) and choices < MOST_CHOICES:
            choices *= 2
    return choices if choices > 1 else 0


@inner
def choose(count, choice, kind, mode):
    """Modes of a choice, by its bits; the highest has all closed."""
    for k in range(count):
        mode[k] = STICKING
        if is_given(kind[k]):
            mode[k] = SLIDING if choice % 2 == 1 else OPEN
            choice //= 2


@inner
def yield_less(count, epsilon, most, kind, slip, mode, work):
    """Continuation with contacts of decreasing compliance epsilon, up to an iteration budget; returns the
    iterations."""
    copy(3 * count, vector_at(count, FORCE), vector_at(count, BASE), work)
    iterations = 0
    for _ in range(YIELDING):
        if iterations >= most:
            break
        _, more = newton(count, YIELDING, epsilon, kind, slip, mode, work)
        iterations += more
        epsilon *= LESS
    return iterations


@inner
def sweep(count, kind, slip, work):
    """One contact after the other, the others being held: FORCE and VELOCITY."""
    n = 3 * count
    f, u = vector_at(count, FORCE), vector_at(count, VELOCITY)
    for k in range(count):
        i, W, mu = 3 * k, 3 * k * n + 3 * k, load(work, contact_at(count, k) + FRICTION)
        old_n, old_1, old_2 = load(work, f + i), load(work, f + i + 1), load(work, f + i + 2)
        if not load(work, W) > NEGLIGIBLE:
            continue
        b_n = load(work, u + i) - dot(3, W, f + i, work)
        if is_given(kind[k]):
            curvature = load(work, W) - mu * (load(work, W + 1) * slip[2 * k] + load(work, W + 2) * slip[2 * k + 1])
            new_n = -b_n / curvature if b_n < 0.0 and curvature > NEGLIGIBLE else 0.0
            new_1, new_2 = -mu * new_n * slip[2 * k], -mu * new_n * slip[2 * k + 1]
        else:
            b_1 = load(work, u + i + 1) - dot(3, W + n, f + i, work)
            b_2 = load(work, u + i + 2) - dot(3, W + 2 * n, f + i, work)
            new_n, new_1, new_2 = solve_single(W, n, b_n, b_1, b_2, mu, work)
        store(work, f + i, new_n)
        store(work, f + i + 1, new_1)
        store(work, f + i + 2, new_2)
        add(n, new_n - old_n, i * n, u, work)
        add(n, new_1 - old_1, (i + 1) * n, u, work)
        add(n, new_2 - old_2, (i + 2) * n, u, work)
        push_moments(count, k, new_n - old_n, kind, work)


@inline
def push_moments(count, k, change, kind, work):
    """Normal forces load moments, and loads do not act back: what `sweep` takes from the rows of Theta, corrected for a
    change of the normal force of contact k."""
    n, u, point = 3 * count, vector_at(count, VELOCITY), loaded_by(k, kind)
    if point != k:
        store(work, u + 3 * point, load(work, u + 3 * point) - load(work, 3 * k * n + 3 * point) * change)
    for back in range(1, 3):
        other = k + back
        if other < count and kind[other] // LOADED == back:
            store(work, u + 3 * other, load(work, u + 3 * other) + load(work, 3 * other * n + 3 * k) * change)


@inner
def negative_curvature(count, kind, slip, mode, work):
    """Whether pushing may increase an approach: the form f . u of all contacts, friction of GIVEN ones following, DISC
    ones sticking, is not positive semidefinite. Then there may be no solution (Painleve)."""
    given = False
    for k in range(count):
        given = given or (is_given(kind[k]) and load(work, contact_at(count, k) + FRICTION) > 0.0)
    if not given:
        return False
    set_modes(count, NONE, kind, slip, mode, work)
    size, matrix = number_rows(count, mode, work), matrix_at(count)
    fill_matrix(count, size, 0.0, kind, mode, work)
    for j in range(size):
        column = matrix + size * j
        for i in range(j + 1):
            store(work, column + i, 0.5 * (load(work, column + i) + load(work, matrix + size * i + j)))
    floor = FLAT * load(work, contact_at(count, count))**2
    for j in range(size):
        column = matrix + size * j
        for i in range(j):
            x = load(work, column + i) - dot(i, matrix + size * i, column, work)
            store(work, column + i, x / load(work, matrix + size * i + i))
        pivot = load(work, column + j) + floor - dot(j, column, column, work)
        if not pivot > 0.0:
            return True
        store(work, column + j, np.sqrt(pivot))
    return False
