"""Contacts as rows of a problem: directions, velocities, accelerations, and their coupling matrix Theta.

Three rows a contact: the normal and two tangents, directions e in which the contact point of a moves from that of b. A
force f along e is (moment, force) = ((x - o) x e, e) f on the body of a, about the origin o of its group, and the
opposite on that of b. So Theta = W R W^T, W the rows, R the accelerations of the bodies per force on them
(`response.py`).

The surface of a shape may move along itself, as a belt does: its velocity s, constant in the frame of the shape, less
its part along the normal, is added to the slip.

Derivatives: u = v_a(x) - v_b(x), taken at the contact point x, which moves along the surfaces. Its derivative is

    du/dt = a_a - a_b + w_a x (dx/dt - v_a) - w_b x (dx/dt - v_b)

with the accelerations of the material points; and the gap g, dg/dt = n . u, has d2g/dt2 = n . du/dt + dn/dt . u. How x
and n move follows from the motion of the bodies and the features in contact (`features.py`).
"""

import numpy as np

from bunraku.algorithms.body_motion import STATE
from bunraku.algorithms.tree import row3, zero3
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_memory import (
    ACTIVE,
    FULL,
    HANDLES,
    ISLANDS,
    JOINTS,
    MOMENTS,
    PATH,
    ROW,
    ROWS,
    STATUS,
    WORST,
)
from bunraku.contact.features import features_at, rates
from bunraku.contact.islands import find_islands
from bunraku.contact.joint_rows import fill_idle_rows, is_joint, joint_contact_rows
from bunraku.contact.moment_rows import fill_moment_rows, is_moment, moment_contact_rows, moment_drift
from bunraku.contact.nearest import across, magnitude
from bunraku.contact.response import between_ground_and, group_origin
from bunraku.jit import inline, inner
from bunraku.spatial.algebra import (
    accumulate3,
    add,
    cross,
    dot,
    load3,
    load6,
    load9,
    matvec,
    norm,
    scale,
    store3,
    sub,
)
from bunraku.spatial.scalar import clear, constant, load, sqrt, store, where_positive
from bunraku.tolerances import AT_REST, ONE_NORMAL


@inline
def motion_at(body, x, states):
    """Velocity of the point of a body that is at x, and the body's angular velocity."""
    if body < 0:
        return zero3(states), zero3(states)
    o = STATE * body
    w = load3(states, o + 12)
    return add(load3(states, o + 15), cross(w, sub(x, load3(states, o + 9)))), w


@inline
def acceleration_at(body, x, v, states):
    """Acceleration of the point of a body that is at x and has the velocity v, joints not accelerating."""
    if body < 0:
        return zero3(states)
    o = STATE * body
    return add(add(load3(states, o + 21), cross(load3(states, o + 18), sub(x, load3(states, o + 9)))),
               cross(load3(states, o + 12), v))


@inline
def has_belt(shape, shape_f):
    """Whether a shape's surface moves along itself."""
    return (shape_f[shape, c.SHAPE_SURFACE] != 0.0 or shape_f[shape, c.SHAPE_SURFACE + 1] != 0.0
            or shape_f[shape, c.SHAPE_SURFACE + 2] != 0.0)


@inline
def belt(shape, touch):
    """Velocity of a shape's surface beside that of its body, world axes."""
    return matvec(load9(touch.places, c.PLACE * shape + c.PLACE_ROTATION), row3(touch.shape_f, shape, c.SHAPE_SURFACE))


@inner
def surface_motion(touch, k, normal):
    """Velocity of a's surface to b's beside that of their bodies: along the tangent plane."""
    pair = touch.contact_i[k, c.CONTACT_PAIR]
    a, b = np.int64(touch.pair_i[pair, c.PAIR_A]), np.int64(touch.pair_i[pair, c.PAIR_B])
    s = zero3(touch.places)
    if has_belt(a, touch.shape_f):
        s = belt(a, touch)
    if has_belt(b, touch.shape_f):
        s = sub(s, belt(b, touch))
    return sub(s, scale(normal, dot(normal, s)))


@inner
def surface_drift(touch, k, normal, turning, w_a, w_b):
    """Its derivative along the tangent plane, t: of s - n (n . s), with s turning with its body."""
    pair = touch.contact_i[k, c.CONTACT_PAIR]
    a, b = np.int64(touch.pair_i[pair, c.PAIR_A]), np.int64(touch.pair_i[pair, c.PAIR_B])
    change, along = zero3(touch.places), constant(touch.places, 0.0)
    if has_belt(a, touch.shape_f):
        s = belt(a, touch)
        change, along = cross(w_a, s), dot(normal, s)
    if has_belt(b, touch.shape_f):
        s = belt(b, touch)
        change, along = sub(change, cross(w_b, s)), along - dot(normal, s)
    return sub(change, scale(turning, along))


@inline
def note_handle(body, touch):
    """Make a body a handle, if it is not one yet."""
    if body >= 0 and touch.handle[body] < 0:
        h = touch.count[HANDLES]
        touch.handles[h], touch.handle[body] = body, h
        touch.count[HANDLES] = h + 1


@inner
def forget_problem(touch):
    """No contact in the problem."""
    for h in range(touch.count[HANDLES]):
        touch.handle[touch.handles[h]] = -1
    touch.count[ACTIVE] = touch.count[HANDLES] = touch.count[PATH] = touch.count[STATUS] = 0


@inline
def take_up(k, touch):
    """Put contact k into the problem. Returns whether there is room."""
    place = touch.count[ACTIVE]
    if place >= touch.active.shape[0]:
        touch.count[STATUS], touch.count[WORST] = FULL, k
        return False
    touch.active[place] = k
    touch.count[ACTIVE] = place + 1
    return True


@inline
def take_up_point(k, touch):
    """Put a point of contact and its moments of friction into the problem. Returns whether there is room."""
    pair, room = np.int64(touch.contact_i[k, c.CONTACT_PAIR]), take_up(k, touch)
    for back in range(1, 1 + np.int64(touch.pair_i[pair, c.PAIR_MOMENTS])):
        room = room and take_up(k + back * np.int64(touch.pair_i[pair, c.PAIR_COUNT]), touch)
    return room


@inner
def arrange(touch, body_i, joined):
    """Order the contacts by island (`joined`: all are one), and list the bodies that they act on and those between
    these and the ground in the same order."""
    count = touch.count
    count[ISLANDS] = find_islands(count[ACTIVE], touch.active, joined, touch)
    touch.island_handle[0] = touch.island_path[0] = 0
    for n in range(count[ISLANDS]):
        for place in range(touch.island[n], touch.island[n + 1]):
            k = touch.active[place]
            note_handle(np.int64(touch.contact_i[k, c.CONTACT_A]), touch)
            note_handle(np.int64(touch.contact_i[k, c.CONTACT_B]), touch)
        touch.island_handle[n + 1] = count[HANDLES]
        count[PATH] = between_ground_and(touch.island_handle[n], count[HANDLES], count[PATH], touch.handles, touch.tree,
                                         body_i, touch.on, touch.path)
        touch.island_path[n + 1] = count[PATH]


@inner
def make_rows(touch, body_i):
    """Rows and velocities of the contacts in the problem, from the states of the bodies and what was found."""
    touch.count[MOMENTS] = 0
    for place in range(touch.count[ACTIVE]):
        k = touch.active[place]
        a, b = np.int64(touch.contact_i[k, c.CONTACT_A]), np.int64(touch.contact_i[k, c.CONTACT_B])
        if is_joint(k, touch):
            joint_contact_rows(touch, place, k, group_origin(a, body_i, touch.states),
                               group_origin(b, body_i, touch.states))
            continue
        if is_moment(k, touch):
            moment_contact_rows(touch, place, k)
            touch.count[MOMENTS] += 1
            continue
        normal, x = load3(touch.found, c.FOUND * k + c.FOUND_NORMAL), load3(touch.found, c.FOUND * k + c.FOUND_POINT)
        first = across(normal)
        second = cross(normal, first)
        arm_a, arm_b = sub(x, group_origin(a, body_i, touch.states)), sub(x, group_origin(b, body_i, touch.states))
        v_a, _ = motion_at(a, x, touch.states)
        v_b, _ = motion_at(b, x, touch.states)
        u = add(sub(v_a, v_b), surface_motion(touch, k, normal))
        for r in range(3):
            e = normal if r == 0 else first if r == 1 else second
            o = ROWS * place + ROW * r
            store3(touch.rows, o, cross(arm_a, e))
            store3(touch.rows, o + 3, e)
            store3(touch.rows, o + 6, scale(cross(arm_b, e), -1.0))
            store3(touch.rows, o + 9, scale(e, -1.0))
            store(touch.speed, 3 * place + r, dot(e, u))


@inner
def level_points(touch):
    """Put contact points of the problem at one level along their normal: on the plane, or, of a pair of solids, at that
    of the point with the smallest gap, if they have its normal.

    Contacts of the same two bodies restrict the motion along the line between them twice. Both conditions agree if the
    line is perpendicular to the normals, as it is when the contacts are closed at the end of the step. Points halfway
    between surfaces of different gaps tilt it, and only large forces that cancel would meet the contact law."""
    pair = -1
    normal, level = zero3(touch.found), zero3(touch.found)
    for place in range(touch.count[ACTIVE]):
        k = touch.active[place]
        o, p = c.FOUND * k, touch.contact_i[k, c.CONTACT_PAIR]
        if p < 0 or is_moment(k, touch):  # of a joint; at the place of its point
            continue
        gap, n = load(touch.found, o + c.FOUND_GAP), load3(touch.found, o + c.FOUND_NORMAL)
        x = load3(touch.found, o + c.FOUND_POINT)
        if touch.pair_i[p, c.PAIR_KIND] <= c.LAST_PLANE:
            up = -0.5 * gap
        else:
            if p != pair:
                pair = p
                normal, level = nearest_point(p, touch)
            up = where_positive(dot(n, normal) - ONE_NORMAL, dot(n, sub(level, x)), 0.0 * normal[0])
        up = where_positive(np.inf - gap, up, 0.0 * normal[0])
        store3(touch.found, o + c.FOUND_POINT, add(x, scale(n, up)))


@inner
def nearest_point(p, touch):
    """Normal and point of the contact of pair p with the smallest gap."""
    first = touch.pair_i[p, c.PAIR_CONTACT]
    normal, point = zero3(touch.found), zero3(touch.found)
    least = constant(touch.found, np.inf)
    for k in range(first, first + touch.pair_i[p, c.PAIR_COUNT]):
        o = c.FOUND * k
        gap = load(touch.found, o + c.FOUND_GAP)
        nearer = where_positive(least - gap, 1.0 + 0.0 * normal[0], 0.0 * normal[0])
        n, x = load3(touch.found, o + c.FOUND_NORMAL), load3(touch.found, o + c.FOUND_POINT)
        normal = (where_positive(nearer, n[0], normal[0]), where_positive(nearer, n[1], normal[1]),
                  where_positive(nearer, n[2], normal[2]))
        point = (where_positive(nearer, x[0], point[0]), where_positive(nearer, x[1], point[1]),
                 where_positive(nearer, x[2], point[2]))
        least = where_positive(nearer, gap, least)
    return normal, point


@inner
def make_theta(touch, n, theta):
    """Theta of island n from R, by rows; scalars in use."""
    first, handle = touch.island[n], touch.island_handle[n]
    count, size = touch.island[n + 1] - first, 6 * (touch.island_handle[n + 1] - handle)
    rows, column, reach = touch.rows, touch.column, touch.reach
    for place in range(count):
        k = touch.active[first + place]
        for r in range(3):
            clear(column[:size])
            for side in range(2):
                body = np.int64(touch.contact_i[k, c.CONTACT_A + side])
                if body >= 0:
                    x = load6(rows, ROWS * (first + place) + ROW * r + 6 * side)
                    o = 6 * (touch.handle[body] - handle) * size
                    for e in range(size):
                        store(column, e, load(column, e) + (
                            x[0] * load(reach, o + e) + x[1] * load(reach, o + size + e)
                            + x[2] * load(reach, o + 2 * size + e) + x[3] * load(reach, o + 3 * size + e)
                            + x[4] * load(reach, o + 4 * size + e) + x[5] * load(reach, o + 5 * size + e)))
            row = (3 * place + r) * 3 * count
            for other in range(place + 1):
                i = touch.active[first + other]
                for s in range(3):
                    store(theta, row + 3 * other + s, constant(theta, 0.0))
                for side in range(2):
                    body = np.int64(touch.contact_i[i, c.CONTACT_A + side])
                    if body >= 0:
                        x, o = load6(column, 6 * (touch.handle[body] - handle)), ROWS * (first + other) + 6 * side
                        for s in range(3):
                            y, at = load6(rows, o + ROW * s), row + 3 * other + s
                            store(theta, at, load(theta, at) + (x[0] * y[0] + x[1] * y[1] + x[2] * y[2] + x[3] * y[3]
                                                                + x[4] * y[4] + x[5] * y[5]))
                for s in range(3):
                    store(theta, (3 * other + s) * 3 * count + 3 * place + r, load(theta, row + 3 * other + s))
    if touch.count[JOINTS] > 0:
        fill_idle_rows(touch, first, count, theta)
    if touch.count[MOMENTS] > 0:
        fill_moment_rows(touch, first, count, theta)


@inner
def put_forces(touch, n, force, wrenches):
    """The contact forces of island n as wrenches on bodies, with the sign changed (`respond`). Rounding remainders of
    cancelling forces are set to zero, so that a body at rest stays at rest."""
    handles, sizes = touch.handles[touch.island_handle[n]:touch.island_handle[n + 1]], touch.bodies
    for h in range(handles.shape[0]):
        clear(sizes[6 * handles[h]:6 * handles[h] + 6])
        clear(wrenches[6 * handles[h]:6 * handles[h] + 6])
    first = touch.island[n]
    for place in range(touch.island[n + 1] - first):
        k = touch.active[first + place]
        whole = norm(load3(force, 3 * place))
        for side in range(2):
            body = np.int64(touch.contact_i[k, c.CONTACT_A + side])
            if body >= 0:
                turn, push, arm = zero3(force), zero3(force), constant(force, 0.0)
                for r in range(3):
                    size, o = load(force, 3 * place + r), ROWS * (first + place) + ROW * r + 6 * side
                    moment = load3(touch.rows, o)
                    turn, push = add(turn, scale(moment, size)), add(push, scale(load3(touch.rows, o + 3), size))
                    arm = arm + dot(moment, moment)
                accumulate3(wrenches, 6 * body, scale(turn, -1.0))
                accumulate3(wrenches, 6 * body + 3, scale(push, -1.0))
                arm = sqrt(arm) * whole
                accumulate3(sizes, 6 * body, (arm, arm, arm))
                accumulate3(sizes, 6 * body + 3, (whole, whole, whole))
    for h in range(handles.shape[0]):
        for o in range(6 * handles[h], 6 * handles[h] + 6):
            x = load(wrenches, o)
            store(wrenches, o, where_positive(magnitude(x) - AT_REST * load(sizes, o), x, 0.0 * x))


# -- accelerations: one state only -------------------------------------------------------------------------------------


@inner
def contact_drift(touch, place):
    """(d2g/dt2, and du/dt along the tangents) of a contact while no joint accelerates."""
    k = touch.active[place]
    if is_joint(k, touch):
        return 0.0, 0.0, 0.0
    a, b = np.int64(touch.contact_i[k, c.CONTACT_A]), np.int64(touch.contact_i[k, c.CONTACT_B])
    states, found, moment = touch.states, touch.found, k
    k = np.int64(touch.contact_i[k, c.CONTACT_POINT])
    normal, x = load3(found, c.FOUND * k + c.FOUND_NORMAL), load3(found, c.FOUND * k + c.FOUND_POINT)
    v_a, w_a = motion_at(a, x, states)
    v_b, w_b = motion_at(b, x, states)
    of_a, of_b = features_at(touch, k)
    turning, going = rates(of_a, of_b, normal, found[c.FOUND * k + c.FOUND_GAP], x, v_a, w_a, v_b, w_b)
    if moment != k:
        return moment_drift(touch, place, moment, turning)
    u = sub(v_a, v_b)
    du = sub(add(acceleration_at(a, x, v_a, states), cross(w_a, sub(going, v_a))),
             add(acceleration_at(b, x, v_b, states), cross(w_b, sub(going, v_b))))
    across_it = add(du, surface_drift(touch, k, normal, turning, w_a, w_b))
    o = ROWS * place
    return (dot(normal, du) + dot(turning, u), dot(load3(touch.rows, o + ROW + 3), across_it),
            dot(load3(touch.rows, o + 2 * ROW + 3), across_it))
