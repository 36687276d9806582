"""The contact problem: forces of contacts with Coulomb friction, without softness or pyramids.

K contacts, three rows each (normal, two tangents). Contact velocities depend on contact forces by u = Theta f + b,
Theta symmetric and positive semidefinite, singular if contacts are redundant. Law of each contact:

    0 <= u_n,  0 <= f_n,  u_n f_n = 0                                                  (Signorini)
    DISC:   |f_t| <= mu f_n,  and  f_t = -mu f_n u_t / |u_t|  where u_t != 0           (Coulomb)
    GIVEN:  f_t = -mu f_n slip, the direction of slip being known; u_t is free

The same for accelerations of contacts that are closed and at rest (DISC) or slide (GIVEN).

Method: the law is the fixed point of a projection (`coulomb_law.py`), found by a semismooth Newton method
(`contact_newton.py`): which contacts are open, sticking or sliding follows from the forces of each iteration. Steps are
shortened until the residual decreases. It is a sum of forces and velocities: a common factor makes these equally large
(`balance` in `problem_scaling.py`). Where this fails, `further_attempts.py` tries others, a fixed number of them; the
best forces of all are kept, and their residual is reported.

Coulomb friction may have several solutions; GIVEN directions may have none (Painleve). Forces of redundant contacts
are not unique: `smallest_forces.py`.

Reference: Acary, Bremond, Huber, "On solving contact problems with Coulomb friction: formulations and numerical
comparisons" (2018); Alart, Curnier (1991). Cost: an iteration is a factorisation of at most 3K rows.
"""

import numpy as np

from bunraku.contact.contact_calls import PROBLEM
from bunraku.contact.contact_fields import (
    FORCES,
    NO_SOLUTION,
    OPEN,
    ROUGH,
    SLIDING,
    SOLVED,
    STICKING,
)
from bunraku.contact.contact_newton import newton
from bunraku.contact.coulomb_law import cancellation, classify, extent, find_velocities, is_given, violation
from bunraku.contact.first_forces import first_forces
from bunraku.contact.further_attempts import ITERATIONS, fall_back
from bunraku.contact.problem_memory import FORCE, FRICTION, SCALE, TOWARDS, VELOCITY, contact_at, vector_at
from bunraku.contact.problem_scaling import balance, rescale, scale_problem
from bunraku.jit import entry, inner
from bunraku.spatial.scalar import load, store
from bunraku.tolerances import LAW_AIM, LAW_CLOSE, LAW_ENOUGH


@entry("contact problems", PROBLEM, seconds=6, for_kernels=True)
def contact_problem(count, theta, b, mu, kind, slip, start, force, mode, work):
    return solve_contacts(count, theta, b, mu, kind, slip, start, force, mode, work)


@inner
def solve_contacts(count, theta, b, mu, kind, slip, start, force, mode, work):
    """Solve the contact problem: (residual, iterations, status).

    theta: (3K)^2 by rows; b, force: 3K; mu, kind, mode: K; slip: 2K, unit directions of GIVEN; work: `problem_size(K)`.
    start: NONE, from the smallest sticking forces; FORCES, from `force`; MODES, from the linear solution of `mode` that
    is closest to `force`, along which is the friction of sliding contacts (GIVEN: against `slip`).
    residual: largest violation of the law in units of u, divided by the largest of |b| and |theta_ii f_i|, which is at
    most CANCELS |b|.
    iterations: factorisations, and sweeps. status: SOLVED, residual at most 1e-10; ROUGH, more; NO_SOLUTION, more, and
    GIVEN contacts with negative curvature, of which all combinations of open and closed ones were tried, up to 64.
    """
    scale_problem(count, theta, b, mu, force, work)
    iterations = 0
    if start != FORCES:
        first_forces(count, start, kind, slip, mode, work)
        iterations += 1
    rescale(count, balance(count, work), work)
    residual, more = newton(count, ITERATIONS, 0.0, kind, slip, mode, work)
    iterations += more
    doubtful = False
    if residual <= LAW_CLOSE:
        residual = finish(count, kind, slip, force, mode, work)
    if not residual <= LAW_CLOSE:
        residual, more, doubtful = fall_back(count, residual, start, kind, slip, mode, work)
        iterations += more
        residual = finish(count, kind, slip, force, mode, work)
    residual *= cancellation(count, work)
    return residual, iterations, SOLVED if residual <= LAW_ENOUGH else NO_SOLUTION if doubtful else ROUGH


@inner
def finish(count, kind, slip, force, mode, work):
    """Modes, and forces in the units of the caller that obey the law of forces exactly; the residual."""
    f, scale = vector_at(count, FORCE), vector_at(count, SCALE)
    rescale(count, 1.0 / load(work, contact_at(count, count)), work)
    find_velocities(count, 0.0, work)
    classify(count, kind, slip, mode, work)
    for k in range(count):
        i, o = 3 * k, contact_at(count, k)
        f_n, f_1, f_2 = max(load(work, f + i), 0.0), load(work, f + i + 1), load(work, f + i + 2)
        radius = load(work, o + FRICTION) * f_n
        if mode[k] == OPEN:
            f_n, f_1, f_2 = 0.0, 0.0, 0.0
        elif mode[k] == SLIDING:
            f_1, f_2 = radius * load(work, o + TOWARDS), radius * load(work, o + TOWARDS + 1)
        else:
            length = np.sqrt(f_1 * f_1 + f_2 * f_2)
            if length > radius:
                f_1, f_2 = f_1 * radius / length, f_2 * radius / length
        store(work, f + i, f_n)
        store(work, f + i + 1, f_1)
        store(work, f + i + 2, f_2)
    find_velocities(count, 0.0, work)
    still = LAW_AIM * extent(count, work)
    for k in range(count):
        i = vector_at(count, VELOCITY) + 3 * k
        u_1, u_2 = load(work, i + 1), load(work, i + 2)
        if (mode[k] == SLIDING and not is_given(kind[k]) and load(work, contact_at(count, k) + FRICTION) > 0.0
                and np.sqrt(u_1 * u_1 + u_2 * u_2) <= still * load(work, scale + 3 * k + 1)):
            mode[k] = STICKING  # at the border of the cone
    for i in range(3 * count):
        store(force, i, load(work, f + i) * load(work, scale + i))
    return violation(count, kind, slip, work)
