"""Impulses of one island in a time step: the contact problem, with rebounds, and the removal of penetration.

Works on floats, in `touch`: theta, gap, friction, bounce, arriving, gaining, and the impulses of the last step in
`force`. Leaves the impulses in `force`, modes in `mode`, and in `parting` those that remove penetration. The same for
one state and for a state in lanes.
"""

import numpy as np

from bunraku.contact.contact_fields import FORCES, LOADED, NONE, OPEN, SLIDING, SOLVED, STICKING
from bunraku.contact.contact_memory import IN_TURN, JOINTS, STATUS
from bunraku.contact.sequential_impacts import rebounds_in_turn
from bunraku.contact.single import solve_single
from bunraku.contact.touching import note_solution, solve_noting, velocities_after
from bunraku.jit import inline, inner
from bunraku.tolerances import AT_REST, CLOSED_GAP, LEAST_REBOUND, OVERLAP_LEFT


@inner
def island_impulses(touch, count, h):
    """Impulses of `count` contacts, with theta. Returns whether there is penetration to remove, by `parting`."""
    start = first_forces(touch, count)
    if touch.count[IN_TURN] != 0:
        taken = impulses_in_turn(touch, count, start, h)
    else:
        taken = impulses_at_once(solve_island, velocities_of_island, 0, touch, count, start, h)
    return part_shapes(part_island, 0, touch, count, taken, h)


@inner
def impulses_of_heap(solve, velocities, part, heap, touch, count, h):
    """The same of a large island (`heap.py`), which rebounds at once.

    solve(heap, touch, count, start), velocities(heap, touch, count), part(heap, touch, count): the problem of `touch`,
    Theta force + b into `velocity`, and impulses that remove penetration, into `force`."""
    taken = impulses_at_once(solve, velocities, heap, touch, count, first_forces(touch, count), h)
    return part_shapes(part, heap, touch, count, taken, h)


@inline
def first_forces(touch, count):
    """Where iterations start: FORCES, if there are any."""
    for i in range(count):
        if touch.force[3 * i] > 0.0:
            return FORCES
    return NONE


@inline
def normal_side(gap, ratio, before, free, restitution, h):
    """Term added to u_n in the contact law: the gap that may close, the rebound, or the overlap of a soft contact."""
    gained = abs(free - before)
    if restitution > 0.0 and before < 0.0 and gap + h * free <= 0.0 and restitution * (0.0 - before) > 2.0 * gained:
        return restitution * before
    return gap / h if gap > CLOSED_GAP else ratio * gap


@inline
def less_rebound(part):
    """Next fraction of the restitution to try, after one that gained energy."""
    return 0.5 * part if part > LEAST_REBOUND else 0.0


@inner
def state_problem(touch, count, part, h):
    """b, friction and kind of the contacts, with a part of their restitution."""
    for i in range(count):
        touch.mu[i], touch.kind[i] = touch.friction[i], touch.law[i]
        for r in range(3):
            touch.b[3 * i + r] = touch.arriving[3 * i + r] + touch.gaining[3 * i + r]
        touch.b[3 * i] += normal_side(touch.gap[i], touch.ratio[i], touch.arriving[3 * i], touch.b[3 * i],
                                      part * touch.bounce[i], h)


@inner
def solve_island(matrix, touch, count, start):
    """Solve the problem of theta: one contact by itself in closed form, several by Newton's method."""
    if count == 1 and touch.theta[0] > 0.0:
        b, force = touch.b, touch.force
        force[0], force[1], force[2] = solve_single(0, 3, b[0], b[1], b[2], touch.mu[0], touch.theta)
        friction = np.sqrt(force[1] * force[1] + force[2] * force[2])
        touch.mode[0] = (OPEN if force[0] <= 0.0 else
                         STICKING if friction < (1.0 - AT_REST) * touch.mu[0] * force[0] else SLIDING)
        note_solution(touch, 1, 0.0, 0, SOLVED)
    else:
        solve_noting(touch, count, start)


@inner
def part_island(matrix, touch, count):
    """Solve the problem of gaps without friction: the smallest displacement that removes penetration."""
    solve_island(matrix, touch, count, NONE)


@inner
def velocities_of_island(matrix, touch, count):
    """Theta force + b, into `velocity`."""
    velocities_after(touch, count, touch.force)


@inner
def energy_taken(velocities, matrix, touch, count):
    """Energy dissipated by the impulses, zero below the rounding-error floor; leaves the velocities before them in b,
    those after in `velocity`."""
    taken, given = 0.0, 0.0
    for i in range(3 * count):  # as they are, without gaps and rebounds
        touch.b[i] = touch.arriving[i] + touch.gaining[i]
    velocities(matrix, touch, count)
    for i in range(count):
        if touch.ratio[i] > 0.0 or touch.law[i] >= LOADED or (touch.count[JOINTS] > 0 and touch.dry[i] != 0):
            touch.b[3 * i] = 0.0 - touch.velocity[3 * i]  # no work: of a spring, a load, a given normal force
    for i in range(3 * count):
        taken -= 0.5 * touch.force[i] * (touch.b[i] + touch.velocity[i])
        given += abs(touch.force[i] * touch.b[i])
    return taken if abs(taken) > AT_REST * given else 0.0


@inner
def impulses_at_once(solve, velocities, matrix, touch, count, start, h):
    """Impulses of one contact problem for all; with less rebound if that gains energy. Returns the dissipated
    energy."""
    part = 1.0
    state_problem(touch, count, part, h)
    solve(matrix, touch, count, start)
    taken = energy_taken(velocities, matrix, touch, count)
    while taken < 0.0 and part > 0.0:
        part = less_rebound(part)
        state_problem(touch, count, part, h)
        solve(matrix, touch, count, FORCES)
        taken = energy_taken(velocities, matrix, touch, count)
    return taken


@inner
def impulses_in_turn(touch, count, start, h):
    """Rebounds one after another, then one contact problem without rebound for all. Returns the dissipated energy."""
    rebounds_in_turn(touch, count, h)
    state_problem(touch, count, 0.0, h)
    for i in range(3 * count):
        touch.b[i] += touch.velocity[i] - touch.arriving[i]
    solve_island(0, touch, count, start)
    for i in range(3 * count):
        touch.force[i] += touch.struck[i]
    return energy_taken(velocities_of_island, 0, touch, count)


@inner
def part_shapes(part, matrix, touch, count, taken, h):
    """Impulses of the smallest displacement that removes penetration, into `parting`; less if it would raise more
    energy than `taken`. Returns whether there are any. Uses up the problem, not its solution.

    The gaps are those that the velocities after the impulses leave at the end of the step: a gap that closes anyway is
    no room for the displacement of others."""
    deepest, status = 0.0, touch.count[STATUS]
    for i in range(count):
        deepest = min(deepest, touch.gap[i] if touch.ratio[i] == 0.0 else 0.0)
    for i in range(3 * count):
        touch.parting[i] = 0.0
    if deepest > -OVERLAP_LEFT:
        return False
    for i in range(count):
        touch.mu[i], touch.kind[i] = 0.0, touch.law[i]
        touch.number[i] = touch.mode[i]
        for r in range(3):
            left = touch.gap[i] + h * touch.velocity[3 * i] if r == 0 else 0.0
            touch.b[3 * i + r] = max(left, 0.0) if touch.ratio[i] > 0.0 else left
            touch.velocity[3 * i + r], touch.force[3 * i + r] = touch.force[3 * i + r], 0.0
    part(matrix, touch, count)
    lifting = 0.0
    for i in range(count):
        lifting -= touch.force[3 * i] * touch.gaining[3 * i] / h
        touch.mode[i] = touch.number[i]
    allowed = 1.0 if lifting <= max(taken, 0.0) else max(taken, 0.0) / lifting
    for i in range(3 * count):
        touch.parting[i], touch.force[i] = allowed * touch.force[i], touch.velocity[i]
    touch.count[STATUS] = status
    return True
