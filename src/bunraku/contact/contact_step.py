"""A fixed step with contact: Moreau's time-stepping, one contact problem a step.

    v+ = v + h a + M^-1 J^T p,    q+ = q moved by h v+

a is the acceleration without contact at (q, v), p the impulses of the contacts. They obey the contact problem at the
velocities of the end of the step [Moreau 1988; Stewart, Trinkle 1996]: a contact with a gap g may close by no more than
that, u_n >= -g / h; one that is closed or overlaps by nothing, u_n >= 0. So penetration is limited to the curvature of
the motion within a step. With restitution e a contact that would close leaves with u_n >= -e u_n(before), unless
it would be closed again within two steps (all of them at once; one after another in `sequential_impacts.py`). Newton's
restitution may gain energy together with friction [Kane, Levinson 1985]; where it does, all rebounds of the step are
made smaller, down to none.

Free joints: the velocity of a free body is that of its origin in its own axes. It is stepped in fixed axes, where only
forces change it.

Penetration is removed by the smallest displacement (in the metric of the mass matrix), which does not enter the
velocity and adds no kinetic energy. It is limited so that it raises potential energy by no more than the contacts
dissipated in the same step. [tests/simulation/test_contact.py]

Order 1; sticking contacts are at rest to rounding for any step.
"""

import numpy as np

from bunraku.algorithms.stepping import fastest_turn, half_turn, turn
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_fields import DISC, FORCES, NONE, OPEN
from bunraku.contact.contact_memory import ACTIVE, IN_TURN
from bunraku.contact.rows import forget_problem, motion_at, take_up
from bunraku.contact.sequential_impacts import rebounds_in_turn
from bunraku.contact.touching import (
    add_answer,
    answer_any_forces,
    change_of_contacts,
    fastest_shape,
    find_touching,
    make_any_problem,
    see_bodies,
    solve_noting,
    velocities_after,
)
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import (
    add,
    cross,
    dot,
    load3,
    matTvec,
    matvec,
    rotation_of_quaternion,
    scale,
    store3,
    sub,
)
from bunraku.spatial.scalar import clear, largest, load, store
from bunraku.tolerances import AT_REST

NEAR = 1.0            # [rad] as in `algorithms/stepping.py`
QUICK = 20.0          # [m/s^2] acceleration within which a contact near by is in the problem
OVERLAP = 1e-10       # [m] smaller ones are left
SMALLEST_REBOUND = 0.1  # part of the restitution, below which there is none


@inline
def fly(body_i, v, a, h, out):
    """out = v + h a, of free joints in fixed axes."""
    for j in range(v.shape[0]):
        store(out, j, load(v, j) + h * load(a, j))
    for i in range(body_i.shape[0] - 1):
        if body_i[i, f.KIND] == f.FREE:
            j = body_i[i, f.V_INDEX]
            store3(out, j, add(load3(out, j), scale(cross(load3(v, j + 3), load3(v, j)), h)))


@inline
def turn_by(near, q, k, phi):
    cosine, sine = half_turn(near, dot(phi, phi))
    turn(q, k, phi, cosine, sine)


@inline
def travel(body_i, q, v, h, shift):
    """q moves by h v + shift, in place; velocities of free joints come back into their own axes."""
    near = max(h * h * fastest_turn(body_i, v), fastest_turn(body_i, shift)) <= 0.25 * NEAR * NEAR
    for i in range(body_i.shape[0] - 1):
        kind, k, j = body_i[i, f.KIND], body_i[i, f.Q_INDEX], body_i[i, f.V_INDEX]
        if kind == f.REVOLUTE or kind == f.SCREW:
            store(q, k, load(q, k) + h * load(v, j) + load(shift, j))
        elif kind == f.SPHERICAL:
            turn_by(near, q, k, add(scale(load3(v, j), h), load3(shift, j)))
        elif kind == f.FREE:
            R = rotation_of_quaternion(load(q, k + 3), load(q, k + 4), load(q, k + 5), load(q, k + 6))
            velocity = matvec(R, load3(v, j))
            store3(q, k, add(load3(q, k), add(scale(velocity, h), matvec(R, load3(shift, j)))))
            turn_by(near, q, k + 3, add(scale(load3(v, j + 3), h), load3(shift, j + 3)))
            R = rotation_of_quaternion(load(q, k + 3), load(q, k + 4), load(q, k + 5), load(q, k + 6))
            store3(v, j, matTvec(R, velocity))


@inline
def reaches(gap, approach, h):
    """Whether a contact with this normal velocity may matter in a step."""
    return gap <= 2.0 * h * max(0.0, 0.0 - approach) + QUICK * h * h


@inner
def choose_contacts(touch, h):
    """Put the contacts that may close in a step into the problem. Returns whether there is room."""
    forget_problem(touch)
    for k in range(touch.contact_i.shape[0]):
        gap = touch.found[c.FOUND * k + c.FOUND_GAP]
        if gap < np.inf:
            x = load3(touch.found, c.FOUND * k + c.FOUND_POINT)
            v_a, _ = motion_at(np.int64(touch.contact_i[k, c.CONTACT_A]), x, touch.states)
            v_b, _ = motion_at(np.int64(touch.contact_i[k, c.CONTACT_B]), x, touch.states)
            approach = dot(load3(touch.found, c.FOUND * k + c.FOUND_NORMAL), sub(v_a, v_b))
            if reaches(gap, approach, h) and not take_up(k, touch):
                return False
    return True


@inline
def normal_side(gap, before, free, restitution, h):
    """Term added to u_n in the contact law: the gap that may close, or the rebound."""
    gained = abs(free - before)
    if restitution > 0.0 and before < 0.0 and gap + h * free <= 0.0 and restitution * (0.0 - before) > 2.0 * gained:
        return restitution * before
    return max(gap, 0.0) / h


@inline
def less_rebound(part):
    """Next fraction of the restitution to try, after one that gained energy."""
    return 0.5 * part if part > SMALLEST_REBOUND else 0.0


@inner
def state_problem(touch, part, h):
    """b, friction and kind of the contacts of the problem, with a part of their restitution."""
    for place in range(touch.count[ACTIVE]):
        k = touch.active[place]
        touch.mu[place], touch.kind[place] = touch.contact_f[k, c.FRICTION], DISC
        for r in range(3):
            touch.b[3 * place + r] = touch.speed[3 * place + r] + touch.change[3 * place + r]
        touch.b[3 * place] += normal_side(touch.found[c.FOUND * k + c.FOUND_GAP], touch.speed[3 * place],
                                          touch.b[3 * place], part * touch.contact_f[k, c.RESTITUTION], h)


@inner
def energy_taken(touch):
    """Energy dissipated by the impulses, zero below the rounding-error floor; leaves the velocities before them in b,
    those after in `velocity`."""
    count, taken, given = touch.count[ACTIVE], 0.0, 0.0
    for i in range(3 * count):  # as they are, without gaps and rebounds
        touch.b[i] = touch.speed[i] + touch.change[i]
    velocities_after(touch, touch.force)
    for i in range(3 * count):
        taken -= 0.5 * touch.force[i] * (touch.b[i] + touch.velocity[i])
        given += abs(touch.force[i] * touch.b[i])
    return taken if abs(taken) > AT_REST * given else 0.0


@inner
def impulses_at_once(touch, start, h):
    """Impulses of one contact problem for all; with less rebound if that gains energy. Returns the dissipated
    energy."""
    count, part = touch.count[ACTIVE], 1.0
    state_problem(touch, part, h)
    solve_noting(touch, count, start)
    taken = energy_taken(touch)
    while taken < 0.0 and part > 0.0:
        part = less_rebound(part)
        state_problem(touch, part, h)
        solve_noting(touch, count, FORCES)
        taken = energy_taken(touch)
    return taken


@inner
def impulses_in_turn(touch, start, h):
    """Rebounds one after another, then one contact problem without rebound for all. Returns the dissipated energy."""
    count = touch.count[ACTIVE]
    rebounds_in_turn(touch, h)
    state_problem(touch, 0.0, h)
    for i in range(3 * count):
        touch.b[i] += touch.velocity[i] - touch.speed[i]
    solve_noting(touch, count, start)
    for i in range(3 * count):
        touch.force[i] += touch.struck[i]
    return energy_taken(touch)


@inner
def contact_impulses(touch, structure, dof_f, q, flown, h, work):
    """Impulses of the contacts in the problem, and the resulting change of joint velocities, into `delta`; `flown` is
    the velocity change without them. Returns the dissipated energy."""
    count, nv = touch.count[ACTIVE], dof_f.shape[1]
    make_any_problem(touch, structure, dof_f, q, work)
    change_of_contacts(touch, structure, flown)
    pressed = False
    for place in range(count):
        for r in range(3):
            touch.force[3 * place + r] = touch.held[3 * touch.active[place] + r]
        pressed = pressed or touch.force[3 * place] > 0.0
    start = FORCES if pressed else NONE
    taken = impulses_in_turn(touch, start, h) if touch.count[IN_TURN] != 0 else impulses_at_once(touch, start, h)
    for i in range(touch.held.shape[0]):
        touch.held[i] = 0.0
    for k in range(touch.modes.shape[0]):
        touch.modes[k] = OPEN
    for place in range(count):
        k = touch.active[place]
        touch.modes[k] = touch.mode[place]
        for r in range(3):
            touch.held[3 * k + r] = touch.force[3 * place + r]
    answer_any_forces(touch, structure, nv, touch.force, work, touch.delta)
    return taken


@inner
def part_shapes(touch, structure, nv, taken, h, work):
    """The smallest displacement that removes penetration, into `shift`; less if it would raise more energy than
    `taken`."""
    count = touch.count[ACTIVE]
    deepest = 0.0
    for place in range(count):
        deepest = min(deepest, touch.found[c.FOUND * touch.active[place] + c.FOUND_GAP])
    clear(touch.shift)
    if deepest > -OVERLAP:
        return
    for place in range(count):
        touch.mu[place] = 0.0
        touch.b[3 * place] = touch.found[c.FOUND * touch.active[place] + c.FOUND_GAP]
        for r in range(3):
            touch.force[3 * place + r] = 0.0
            if r > 0:
                touch.b[3 * place + r] = 0.0
    solve_noting(touch, count, NONE)
    lifting = 0.0
    for place in range(count):
        lifting -= touch.force[3 * place] * touch.change[3 * place] / h
    part = 1.0 if lifting <= taken else max(taken, 0.0) / lifting
    for i in range(3 * count):
        touch.force[i] *= part
    answer_any_forces(touch, structure, nv, touch.force, work, touch.shift)


@inner
def contact_step(touch, structure, dof_f, q, v, a, h, work):
    """From (q, v) and the accelerations a without contact to the end of a step, in place. Returns whether there was
    room."""
    nv = v.shape[0]
    see_bodies(touch, structure, q, v)
    find_touching(touch, 4.0 * h * largest(fastest_shape(touch)) + QUICK * h * h)
    clear(touch.shift)
    if not choose_contacts(touch, h):
        return False
    fly(structure.body_i, v, a, h, a)  # a becomes the velocity at the end
    if touch.count[ACTIVE] > 0:
        for j in range(nv):
            touch.delta[j] = a[j] - v[j]
        taken = contact_impulses(touch, structure, dof_f, q, touch.delta, h, work)
        add_answer(a, touch.delta)
        part_shapes(touch, structure, nv, taken, h, work)
    for j in range(nv):
        v[j] = a[j]
    travel(structure.body_i, q, v, h, touch.shift)
    return True
