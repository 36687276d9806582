"""Contact in a moving mechanism: active contacts, response to contact forces, and the contact problem.

To compute contact forces at a state, after the contact-free motion (whose factors are in `work`):

    see_bodies         poses of the bodies
    find_touching      poses of the shapes, and nearby contacts
    take_up            contacts of the problem (`contact/rows.py`)
    make_problem       rows, Theta
    solve_contacts     forces (`contact/problem.py`)
    answer_forces      resulting joint accelerations

Without connections the responses follow from the factors of the articulated-body algorithm; with connections each
column is one evaluation in mode IMPULSE, so that loops stay closed.
"""

import numpy as np

from bunraku.algorithms.body_motion import STATE, body_states
from bunraku.algorithms.connection_equations import IMPULSE
from bunraku.algorithms.tree import joint_column, joint_motion, zero3
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_calls import solve_problem
from bunraku.contact.contact_fields import SOLVED
from bunraku.contact.contact_memory import (
    ACTIVE,
    BASE,
    HANDLES,
    ITERATIONS,
    LOOPS,
    PATH,
    ROUGH_CONTACTS,
    ROUGHLY,
    ROW,
    ROWS,
    SOLVED_COUNT,
    STATUS,
)
from bunraku.contact.detect import find_contacts, place_shapes
from bunraku.contact.joint_rows import is_joint, joint_change, see_joints
from bunraku.contact.moment_rows import is_moment, moment_change
from bunraku.contact.response import group_origin, handle_responses, respond
from bunraku.contact.rows import arrange, make_rows, make_theta, put_forces
from bunraku.entries.signatures import FINE, move
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import add, cross, dot, load3, load9, norm, store3, sub
from bunraku.spatial.scalar import clear, constant, load, maximum, store
from bunraku.tolerances import AT_REST


@inner
def see_bodies(touch, structure, q, v):
    """States of the bodies, joints not accelerating; gaps and velocities of the joints' contacts."""
    body_states(structure.body_i, structure.body_f, q, v, touch.still, touch.states)
    see_joints(touch, structure.body_i, q, v)


@inner
def find_touching(touch, margin):
    """Contacts closer than the margin."""
    place_shapes(touch.shape_i, touch.shape_f, touch.states, touch.places)
    find_contacts(touch.shape_i, touch.shape_f, touch.point_f, touch.pair_i, touch.places, margin, touch.found)


@inner
def fastest_shape(touch):
    """A bound on the speed of all points of shapes but planes."""
    fastest = constant(touch.states, 0.0)
    for k in range(touch.shape_i.shape[0]):
        body = np.int64(touch.shape_i[k, c.SHAPE_BODY])
        if body >= 0 and touch.shape_i[k, c.SHAPE_KIND] != c.PLANE:
            o = STATE * body
            x = np.sqrt(touch.shape_f[k, c.SHAPE_MIDDLE] ** 2 + touch.shape_f[k, c.SHAPE_MIDDLE + 1] ** 2
                        + touch.shape_f[k, c.SHAPE_MIDDLE + 2] ** 2) + touch.shape_f[k, c.SHAPE_BOUND]
            fastest = maximum(fastest, norm(load3(touch.states, o + 15)) + x * norm(load3(touch.states, o + 12)))
    return fastest


@inner
def spread_motion(touch, structure, v):
    """Velocities of the bodies between ground and handles for joint velocities v: (angular, linear at the body's own
    origin), into `bodies`."""
    body_i, body_f, states, bodies = structure.body_i, structure.body_f, touch.states, touch.bodies
    for p in range(touch.count[PATH]):
        i = touch.path[p]
        o, parent = STATE * i, np.int64(body_i[i, f.PARENT])
        w, lin = zero3(bodies), zero3(bodies)
        if parent >= 0:
            w = load3(bodies, 6 * parent)
            r = sub(load3(states, o + 9), load3(states, STATE * parent + 9))
            lin = add(load3(bodies, 6 * parent + 3), cross(w, r))
        w_joint, v_joint = joint_motion(body_i[i, f.KIND], body_i, body_f, i, v, load9(states, o), zero3(bodies))
        store3(bodies, 6 * i, add(w, w_joint))
        store3(bodies, 6 * i + 3, add(lin, v_joint))


@inline
def point_motion(body, x, touch):
    """Motion of a point at x, from the results of `spread_motion`."""
    if body < 0:
        return zero3(touch.bodies)
    return add(load3(touch.bodies, 6 * body + 3),
               cross(load3(touch.bodies, 6 * body), sub(x, load3(touch.states, STATE * body + 9))))


@inner
def change_of_contacts(touch, structure, v):
    """Relative motion at the contacts of the problem for joint velocities (or accelerations) v, into `change`."""
    spread_motion(touch, structure, v)
    for place in range(touch.count[ACTIVE]):
        k = touch.active[place]
        if is_joint(k, touch):
            joint_change(touch, place, k, v)
            continue
        if is_moment(k, touch):
            moment_change(touch, place, k)
            continue
        x = load3(touch.found, c.FOUND * k + c.FOUND_POINT)
        u = sub(point_motion(np.int64(touch.contact_i[k, c.CONTACT_A]), x, touch),
                point_motion(np.int64(touch.contact_i[k, c.CONTACT_B]), x, touch))
        for r in range(3):
            store(touch.change, 3 * place + r, dot(load3(touch.rows, ROWS * place + ROW * r + 3), u))


@inner
def make_problem(touch, n, structure, theta, work):
    """Responses of the handles and Theta of island n, of a tree."""
    first, begin = touch.island_handle[n], touch.island_path[n]
    handles, path = touch.handles[first:touch.island_handle[n + 1]], touch.path[begin:touch.island_path[n + 1]]
    handle_responses(handles.shape[0], handles, path.shape[0], path, structure.body_i, work, touch.on, touch.up,
                     touch.six, touch.reach)
    make_theta(touch, n, theta)


@inner
def make_problem_closed(touch, structure, dof_f, q, work):
    """The same with connections, of the only island: one evaluation for each column. Returns success."""
    body_i, body_f, states = structure.body_i, structure.body_f, touch.states
    nv, handles, nothing, fine = dof_f.shape[1], touch.count[HANDLES], work[:0], True
    for h in range(handles):
        origin = group_origin(touch.handles[h], body_i, states)
        for d in range(6):
            first = (6 * h + d) * nv
            push, answer = touch.pushes[first:first + nv], touch.answers[first:first + nv]
            for j in range(nv):
                push[j] = 0.0
            i = int(touch.handles[h])
            while i >= 0:
                o, at = STATE * i, body_i[i, f.V_INDEX]
                R, r = load9(states, o), sub(load3(states, o + 9), origin)
                for n in range(body_i[i, f.DOF] if body_i[i, f.ELIMINATION] != f.LOCKED else 0):
                    s_w, s_v = joint_column(body_i[i, f.KIND], body_f[i, f.RATE_ANGULAR], body_f[i, f.RATE_LINEAR], n,
                                            R, r)
                    push[at + n] = s_w[d] if d < 3 else s_v[d - 3]
                i = int(body_i[i, f.PARENT])
            fine = fine and move(touch.count[BASE], IMPULSE, structure, dof_f, q, touch.still, push, nothing, nothing,
                                 answer, work) == FINE
    size = 6 * handles
    for row in range(size):
        for column in range(size):
            total = 0.0
            for j in range(nv):
                total += touch.answers[row * nv + j] * touch.pushes[column * nv + j]
            touch.reach[row * size + column] = total
    make_theta(touch, 0, touch.theta)
    return fine


@inline
def make_any_problem(touch, n, structure, dof_f, q, work):
    """Theta of island n, with connections or without, of one state. Returns success."""
    if touch.count[LOOPS] != 0:
        return make_problem_closed(touch, structure, dof_f, q, work)
    make_problem(touch, n, structure, touch.theta, work)
    return True


@inner
def state_problem_of_all(touch, structure, dof_f, q, work):
    """Rows and Theta of all contacts as one problem. Returns success."""
    arrange(touch, structure.body_i, True)
    make_rows(touch, structure.body_i)
    return make_any_problem(touch, 0, structure, dof_f, q, work)


@inner
def answer_forces(touch, structure, force, work, out):
    """Joint accelerations of a tree due to the contact forces of the only island, into `out`."""
    clear(touch.forces)
    put_forces(touch, 0, force, touch.forces)
    respond(structure.body_i, work, touch.up, touch.forces, touch.bodies, out)


@inner
def answer_forces_closed(touch, nv, force, out):
    """The same with connections, by the columns of `make_problem_closed`."""
    for j in range(nv):
        out[j] = 0.0
    for place in range(touch.count[ACTIVE]):
        k = touch.active[place]
        for r in range(3):
            for side in range(2):
                body = np.int64(touch.contact_i[k, c.CONTACT_A + side])
                for d in range(6 if body >= 0 else 0):
                    size = force[3 * place + r] * touch.rows[ROWS * place + ROW * r + 6 * side + d]
                    first = (6 * touch.handle[body] + d) * nv
                    if size != 0.0:
                        for j in range(nv):
                            out[j] += size * touch.answers[first + j]


@inline
def answer_any_forces(touch, structure, nv, force, work, out):
    if touch.count[LOOPS] != 0:
        answer_forces_closed(touch, nv, force, out)
    else:
        answer_forces(touch, structure, force, work, out)


@inner
def velocities_after(touch, count, force):
    """Theta f + b of `count` contacts, into `velocity`."""
    n = 3 * count
    for i in range(n):
        total = touch.b[i]
        for j in range(n):
            total += load(touch.theta, i * n + j) * force[j]
        touch.velocity[i] = total


@inner
def solve_noting(touch, count, start):
    """Solve the problem and update the statistics. Returns the residual."""
    residual, iterations, status = solve_problem(count, touch.theta, touch.b, touch.mu, touch.kind, touch.slip, start,
                                                 touch.force, touch.mode, touch.work)
    note_solution(touch, count, residual, iterations, status)
    return residual


@inline
def note_solution(touch, count, residual, iterations, status):
    """Update the statistics by a solved problem."""
    notes = touch.count
    notes[SOLVED_COUNT] += 1
    notes[ITERATIONS] += iterations
    touch.residual[0] = max(touch.residual[0], residual)
    if status != SOLVED:
        notes[ROUGHLY] += 1
        notes[ROUGH_CONTACTS] = max(notes[ROUGH_CONTACTS], count)
    notes[STATUS] = status


@inline
def add_answer(a, delta):
    """Add the response to contact forces. Rounding remainders are set to zero, so that bodies at rest stay at rest."""
    for j in range(a.shape[0]):
        total = a[j] + delta[j]
        a[j] = total if abs(total) > AT_REST * abs(delta[j]) else 0.0
