"""The contact law as a fixed point: the projection of f - u, and the residual of forces that do not obey it yet.

With t = f - u, in units in which the diagonal of Theta is 1, DISC contacts obey [Alart, Curnier 1991]

    f_n = max(0, t_n),    f_t = projection of t_t to the disc of radius mu max(0, t_n)

and GIVEN ones f_t = -mu f_n slip. `project` is this law; everything else applies it to all contacts. LOADED ones have a
normal force that Theta takes from another contact (`moment_rows.py`), by an entry without its mirror image: rows of
Theta are its columns but for these.
"""

import numpy as np

from bunraku.contact.contact_fields import GIVEN, LOADED, OPEN, SLIDING, STICKING
from bunraku.contact.problem_memory import (
    BASE,
    BIAS,
    CHANGE,
    FORCE,
    FRICTION,
    SCALE,
    SIGMA,
    STEP,
    TOWARDS,
    VELOCITY,
    contact_at,
    vector_at,
)
from bunraku.contact.spans import add, dot
from bunraku.jit import inline, inner
from bunraku.spatial.scalar import load, store
from bunraku.tolerances import CANCELS, ENORMOUS, NEGLIGIBLE


@inline
def loaded_by(k, kind):
    """The contact whose normal force loads contact k; k itself if it has its own."""
    return k - kind[k] // LOADED


@inline
def is_given(kind):
    return kind % LOADED == GIVEN


@inner
def multiply(count, epsilon, x, y, work):
    """y = (Theta + epsilon) x."""
    n = 3 * count
    for i in range(n):
        store(work, y + i, dot(n, i * n, x, work) + epsilon * load(work, x + i))


@inner
def find_velocities(count, epsilon, work):
    """VELOCITY of FORCE; with epsilon contacts are compliant relative to BASE."""
    u, bias, base = vector_at(count, VELOCITY), vector_at(count, BIAS), vector_at(count, BASE)
    multiply(count, epsilon, vector_at(count, FORCE), u, work)
    for i in range(3 * count):
        store(work, u + i, load(work, u + i) + load(work, bias + i))
    if epsilon > 0.0:
        add(3 * count, -epsilon, base, u, work)


@inline
def project(f_n, f_1, f_2, u_n, u_1, u_2, mu, given, slip_1, slip_2):
    """Mode and force of the projection of f - u; for a sliding contact the direction e and sigma (-1: no row)."""
    t_n, t_1, t_2 = f_n - u_n, f_1 - u_1, f_2 - u_2
    if not t_n > 0.0:
        return OPEN, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0
    radius = mu * t_n
    if is_given(given):
        return SLIDING, t_n, -radius * slip_1, -radius * slip_2, -slip_1, -slip_2, -1.0
    length = np.sqrt(t_1 * t_1 + t_2 * t_2)
    if length <= radius and mu > 0.0:
        return STICKING, t_n, t_1, t_2, 0.0, 0.0, -1.0
    if radius <= NEGLIGIBLE * length or length == 0.0:
        return SLIDING, t_n, 0.0, 0.0, 0.0, 0.0, -1.0
    e_1, e_2 = t_1 / length, t_2 / length
    return SLIDING, t_n, radius * e_1, radius * e_2, e_1, e_2, length / radius - 1.0


@inner
def merit(count, step, kind, slip, work):
    """Sum of squares of the residual after a part of a step."""
    f, u = vector_at(count, FORCE), vector_at(count, VELOCITY)
    df, du = vector_at(count, STEP), vector_at(count, CHANGE)
    total = 0.0
    for k in range(count):
        i = 3 * k
        f_n = load(work, f + i) + step * load(work, df + i)
        f_1 = load(work, f + i + 1) + step * load(work, df + i + 1)
        f_2 = load(work, f + i + 2) + step * load(work, df + i + 2)
        _, p_n, p_1, p_2, _, _, _ = project(
            f_n, f_1, f_2, load(work, u + i) + step * load(work, du + i),
            load(work, u + i + 1) + step * load(work, du + i + 1),
            load(work, u + i + 2) + step * load(work, du + i + 2),
            load(work, contact_at(count, k) + FRICTION), kind[k], slip[2 * k], slip[2 * k + 1])
        total += (f_n - p_n) * (f_n - p_n) + (f_1 - p_1) * (f_1 - p_1) + (f_2 - p_2) * (f_2 - p_2)
    return total


@inner
def classify(count, kind, slip, mode, work):
    """Modes, directions and sigma of the forces at hand; sum of squares of the residual."""
    f, u = vector_at(count, FORCE), vector_at(count, VELOCITY)
    total = 0.0
    for k in range(count):
        i, o = 3 * k, contact_at(count, k)
        f_n, f_1, f_2 = load(work, f + i), load(work, f + i + 1), load(work, f + i + 2)
        state, p_n, p_1, p_2, e_1, e_2, sigma = project(
            f_n, f_1, f_2, load(work, u + i), load(work, u + i + 1), load(work, u + i + 2),
            load(work, o + FRICTION), kind[k], slip[2 * k], slip[2 * k + 1])
        mode[k] = state
        store(work, o + TOWARDS, e_1)
        store(work, o + TOWARDS + 1, e_2)
        store(work, o + SIGMA, sigma)
        total += (f_n - p_n) * (f_n - p_n) + (f_1 - p_1) * (f_1 - p_1) + (f_2 - p_2) * (f_2 - p_2)
    return total


@inner
def violation(count, kind, slip, work):
    """Residual as `solve_contacts` defines it: of the projection in the units in which the diagonal of Theta is 1."""
    f, u, scale = vector_at(count, FORCE), vector_at(count, VELOCITY), vector_at(count, SCALE)
    factor = load(work, contact_at(count, count))
    to_force, worst = factor * factor, 0.0
    for k in range(count):
        i, o = 3 * k, contact_at(count, k)
        f_n, f_1, f_2 = (to_force * load(work, f + i), to_force * load(work, f + i + 1),
                         to_force * load(work, f + i + 2))
        u_n, u_1, u_2 = load(work, u + i), load(work, u + i + 1), load(work, u + i + 2)
        _, p_n, p_1, p_2, _, _, _ = project(f_n, f_1, f_2, u_n, u_1, u_2, load(work, o + FRICTION), kind[k],
                                            slip[2 * k], slip[2 * k + 1])
        wrong = max(abs(f_n - p_n) / load(work, scale + i),
                    np.sqrt((f_1 - p_1) * (f_1 - p_1) + (f_2 - p_2) * (f_2 - p_2)) / load(work, scale + i + 1))
        if not (wrong < np.inf and abs(u_n) < np.inf and abs(u_1) < np.inf and abs(u_2) < np.inf):
            return np.inf
        worst = max(worst, wrong)
    size = extent(count, work)
    return worst / size if size > 0.0 else 0.0


@inner
def extent(count, work):
    """Size of the problem: the largest of |b| and |theta_ii f_i|, at most ENORMOUS |b|: enormous forces that cancel are
    no solution."""
    n, f, bias, scale = 3 * count, vector_at(count, FORCE), vector_at(count, BIAS), vector_at(count, SCALE)
    given, answer = 0.0, 0.0
    for i in range(n):
        unit = load(work, scale + i)
        given = max(given, abs(load(work, bias + i)) / unit)
        answer = max(answer, load(work, i * n + i) * abs(load(work, f + i)) / unit)
    return max(given, min(answer, ENORMOUS * given) if given > 0.0 else answer)


@inner
def cancellation(count, work):
    """Factor of a residual by which it counts for more: where forces are larger than CANCELS |b|, their effects cancel,
    and what is left of them is accurate to that much fewer digits."""
    n, bias, scale, given = 3 * count, vector_at(count, BIAS), vector_at(count, SCALE), 0.0
    for i in range(n):
        given = max(given, abs(load(work, bias + i)) / load(work, scale + i))
    return max(1.0, extent(count, work) / (CANCELS * given)) if given > 0.0 else 1.0


@inline
def to_cone(z_n, z_1, z_2, mu):
    """Projection to the friction cone; whether inside (1), on its surface (0) or at its tip (-1)."""
    length = np.sqrt(z_1 * z_1 + z_2 * z_2)
    if length <= mu * z_n:
        return z_n, z_1, z_2, 1
    along = (z_n + mu * length) / (1.0 + mu * mu)
    if not along > 0.0:
        return 0.0, 0.0, 0.0, -1
    return along, mu * along * z_1 / length, mu * along * z_2 / length, 0
