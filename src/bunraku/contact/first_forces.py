"""Forces from which the solution of a contact problem begins, by modes or by chance."""

import numpy as np

from bunraku.contact.contact_fields import NONE, SLIDING, STICKING
from bunraku.contact.contact_newton import find_step
from bunraku.contact.coulomb_law import find_velocities, is_given
from bunraku.contact.problem_memory import BIAS, FORCE, FRICTION, SIGMA, STEP, TOWARDS, VELOCITY, contact_at, vector_at
from bunraku.contact.spans import add, clear, copy
from bunraku.jit import inner
from bunraku.spatial.scalar import load, store
from bunraku.tolerances import LAW_RANK


@inner
def set_modes(count, start, kind, slip, mode, work):
    """Modes of a first solution, directions of friction in sliding contacts."""
    f = vector_at(count, FORCE)
    for k in range(count):
        i, o = 3 * k, contact_at(count, k)
        e_1, e_2 = 0.0, 0.0
        if start == NONE:
            mode[k] = STICKING
        if mode[k] == STICKING and (is_given(kind[k]) or load(work, o + FRICTION) == 0.0):
            mode[k] = SLIDING
        if is_given(kind[k]):
            e_1, e_2 = -slip[2 * k], -slip[2 * k + 1]
        elif mode[k] == SLIDING:
            f_1, f_2 = load(work, f + i + 1), load(work, f + i + 2)
            length = np.sqrt(f_1 * f_1 + f_2 * f_2)
            if length > 0.0:
                e_1, e_2 = f_1 / length, f_2 / length
        store(work, o + TOWARDS, e_1)
        store(work, o + TOWARDS + 1, e_2)
        store(work, o + SIGMA, -1.0)


@inner
def first_forces(count, start, kind, slip, mode, work):
    """FORCE that holds all contacts, the smallest (NONE), or that `mode` needs, changed as little as possible (MODES).
    None if all contacts open by themselves."""
    n, f, bias = 3 * count, vector_at(count, FORCE), vector_at(count, BIAS)
    set_modes(count, start, kind, slip, mode, work)
    opening = start == NONE
    for k in range(count):
        opening = opening and load(work, bias + 3 * k) >= 0.0
    if start == NONE:
        clear(n, f, work)
        copy(n, bias, vector_at(count, VELOCITY), work)
    else:
        find_velocities(count, 0.0, work)
    if not opening:
        find_step(count, 0.0, LAW_RANK, kind, mode, work)
        add(n, 1.0, vector_at(count, STEP), f, work)


@inner
def other_forces(count, size, seed, work):
    """FORCE from pseudo-random numbers between 0 and `size`, tangential ones of both signs; the next seed."""
    f = vector_at(count, FORCE)
    for i in range(3 * count):
        seed = (1103515245 * seed + 12345) % 2147483648
        part = seed / 2147483648.0
        store(work, f + i, size * (part if i % 3 == 0 else part - 0.5))
    return seed
