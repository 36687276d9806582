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
from bunraku.contact.contact_calls import heap_impulses
from bunraku.contact.contact_fields import OPEN
from bunraku.contact.contact_memory import ACTIVE, DENSE, ISLANDS, JOINTS, LOOPS, PAIRS, SOFT
from bunraku.contact.island_impulses import island_impulses
from bunraku.contact.joint_rows import joint_reaches, load_dry
from bunraku.contact.moment_rows import is_moment, kind_of
from bunraku.contact.near_pairs import find_near
from bunraku.contact.response import respond
from bunraku.contact.rows import (
    arrange,
    forget_problem,
    level_points,
    make_rows,
    motion_at,
    put_forces,
    take_up,
    take_up_point,
)
from bunraku.contact.soft_contacts import part_of_overlap, soften
from bunraku.contact.touching import (
    add_answer,
    answer_forces_closed,
    change_of_contacts,
    fastest_shape,
    make_any_problem,
    see_bodies,
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
from bunraku.tolerances import QUICK

SHORT_TURN = 1.0      # [rad] as in `algorithms/stepping.py`
CHOSEN = -1           # a mode: in the problem, not solved yet


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
    near = max(h * h * fastest_turn(body_i, v), fastest_turn(body_i, shift)) <= 0.25 * SHORT_TURN * SHORT_TURN
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
def take_up_joints(touch, h):
    """Put the joints' contacts that may matter in a step into the problem. Returns whether there is room."""
    for k in range(touch.count[JOINTS]):
        near = joint_reaches(touch.joint_i[k, c.JOINT_KIND], touch.found[c.FOUND * k + c.FOUND_GAP],
                             touch.joint_speed[k], h)
        if near and not take_up(k, touch):
            return False
    return True


@inner
def choose_contacts(touch, h):
    """Put the contacts that may close in a step into the problem. Returns whether there is room."""
    forget_problem(touch)
    if not take_up_joints(touch, h):
        return False
    for p in range(touch.count[PAIRS]):
        first = touch.pair_i[p, c.PAIR_CONTACT]
        for k in range(first, first + touch.pair_i[p, c.PAIR_COUNT]):
            gap = touch.found[c.FOUND * k + c.FOUND_GAP]
            if gap < np.inf:
                x = load3(touch.found, c.FOUND * k + c.FOUND_POINT)
                v_a, _ = motion_at(np.int64(touch.contact_i[k, c.CONTACT_A]), x, touch.states)
                v_b, _ = motion_at(np.int64(touch.contact_i[k, c.CONTACT_B]), x, touch.states)
                approach = dot(load3(touch.found, c.FOUND * k + c.FOUND_NORMAL), sub(v_a, v_b))
                if reaches(gap, approach, h) and not take_up_point(k, touch):
                    return False
    return True


@inner
def forget_open(touch, before):
    """Impulses of contacts of the last step that are not in this one are forgotten."""
    for i in range(touch.count[ACTIVE]):
        touch.modes[touch.active[i]] = CHOSEN
    for i in range(before):
        k = touch.before[i]
        if touch.modes[k] != CHOSEN:
            touch.modes[k] = OPEN
            for r in range(3):
                touch.held[3 * k + r] = 0.0


@inline
def load_island(touch, first, count, h):
    """The contacts of an island as a problem: gaps, surfaces, velocities, and the impulses of the last step."""
    for i in range(count):
        place = first + i
        k = touch.active[place]
        touch.gap[i] = 0.0 if is_moment(k, touch) else touch.found[c.FOUND * k + c.FOUND_GAP]
        touch.law[i], touch.ratio[i] = kind_of(k, touch), part_of_overlap(k, touch, h)
        touch.friction[i], touch.bounce[i] = touch.contact_f[k, c.FRICTION], touch.contact_f[k, c.RESTITUTION]
        for r in range(3):
            touch.arriving[3 * i + r] = touch.speed[3 * place + r]
            touch.gaining[3 * i + r] = touch.change[3 * place + r]
            touch.force[3 * i + r] = touch.held[3 * k + r]


@inner
def keep_solution(touch, first, count):
    """Modes and impulses of an island, as the contact state of the run."""
    for i in range(count):
        k = touch.active[first + i]
        touch.modes[k] = touch.mode[i]
        for r in range(3):
            touch.held[3 * k + r] = touch.force[3 * i + r]


@inner
def resolve_contacts(touch, structure, dof_f, q, flown, h, work):
    """Impulses of all islands, and the resulting change of joint velocities, into `delta`, and displacement without
    penetration, into `shift`; `flown` is the velocity change without contact."""
    nv, loops, overlap = dof_f.shape[1], touch.count[LOOPS] != 0, False
    arrange(touch, structure.body_i, loops)
    make_rows(touch, structure.body_i)
    change_of_contacts(touch, structure, flown)
    clear(touch.forces)
    clear(touch.partings)
    for n in range(touch.count[ISLANDS]):
        first = touch.island[n]
        count = touch.island[n + 1] - first
        load_island(touch, first, count, h)
        if count > touch.count[DENSE]:
            parts = heap_impulses(touch, n, structure.body_i, h, work)
        else:
            make_any_problem(touch, n, structure, dof_f, q, work)
            if touch.count[JOINTS] > 0:
                load_dry(touch, first, count, h, touch.theta, touch.gaining)
            if touch.count[SOFT] > 0:
                soften(touch, first, count, h, touch.theta)
            parts = island_impulses(touch, count, h)
        keep_solution(touch, first, count)
        if loops:
            answer_forces_closed(touch, nv, touch.force, touch.delta)
            if parts:
                answer_forces_closed(touch, nv, touch.parting, touch.shift)
        else:
            put_forces(touch, n, touch.force, touch.forces)
            if parts:
                put_forces(touch, n, touch.parting, touch.partings)
        overlap = overlap or parts
    if not loops:
        respond(structure.body_i, work, touch.up, touch.forces, touch.bodies, touch.delta)
        if overlap:
            respond(structure.body_i, work, touch.up, touch.partings, touch.bodies, touch.shift)


@inner
def contact_step(touch, structure, dof_f, q, v, a, h, work):
    """From (q, v) and the accelerations a without contact to the end of a step, in place. Returns whether there was
    room."""
    nv = v.shape[0]
    see_bodies(touch, structure, q, v)
    if not find_near(touch, 4.0 * h * largest(fastest_shape(touch)) + QUICK * h * h):
        return False
    clear(touch.shift)
    before = touch.count[ACTIVE]
    for i in range(before):
        touch.before[i] = touch.active[i]
    if not choose_contacts(touch, h):
        return False
    level_points(touch)
    fly(structure.body_i, v, a, h, a)  # a becomes the velocity at the end
    forget_open(touch, before)
    if touch.count[ACTIVE] > 0:
        for j in range(nv):
            touch.delta[j] = a[j] - v[j]
        resolve_contacts(touch, structure, dof_f, q, touch.delta, h, work)
        add_answer(a, touch.delta)
    for j in range(nv):
        v[j] = a[j]
    travel(structure.body_i, q, v, h, touch.shift)
    return True
