"""Torsional and rolling friction: moments at contact points, as contacts of the contact problem.

With the lengths c_t and c_r of a pair, moments at a point with the normal force f_n are bounded: |m_n| <= c_t f_n about
the normal (SPIN), against the relative angular velocity about it, and |m_t| <= c_r f_n across it (ROLL), against that
of rolling; where a moment is less, the bodies do not turn against each other. So each is a disc of Coulomb's law, with
the relative angular velocity in place of slip: its rows are about the axes of its point,

    SPIN   first tangent: the normal; the second tangent is idle
    ROLL   the two tangents

and its *normal is idle*: it acts on no body, and is the load c f_n in N m. That is what its law (0 <= u, 0 <= f,
u f = 0) says of u = m (f - c f_n), with any m > 0; the mobility of the live rows keeps the problem well scaled. So
Theta has one entry without its mirror image, in the row of the load and the column of the point's normal. The
coefficient of friction is 1.

A moment is in a problem where its point is, CONTACT_BACK places behind it (`take_up_point` in `rows.py`). Angular
velocities in rad/s count as m/s in tolerances.
"""

import numpy as np

from bunraku.algorithms.body_motion import STATE
from bunraku.algorithms.tree import zero3
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_memory import MARK, MARK_SLIP, ROW, ROWS
from bunraku.contact.joint_rows import where_zero
from bunraku.contact.nearest import across
from bunraku.jit import inline, inner
from bunraku.spatial.algebra import cross, dot, load3, norm, scale, store3, sub
from bunraku.spatial.scalar import clear, constant, load, store


@inline
def is_moment(k, touch):
    """Whether contact k is a moment of friction."""
    return touch.contact_i[k, c.CONTACT_ROLE] != c.PUSH


@inline
def kind_of(k, touch):
    """Kind of contact k in the problem of a time step."""
    return c.DISC + c.LOADED * np.int64(touch.contact_i[k, c.CONTACT_BACK])


@inline
def turning_of(body, states):
    """Angular velocity of a body."""
    return load3(states, STATE * body + 12) if body >= 0 else zero3(states)


@inline
def axis_of(k, row, touch):
    """Axis of a live row of a moment, in the world."""
    normal = load3(touch.found, c.FOUND * np.int64(touch.contact_i[k, c.CONTACT_POINT]) + c.FOUND_NORMAL)
    if touch.contact_i[k, c.CONTACT_ROLE] == c.SPIN:
        return normal
    first = across(normal)
    return first if row == 1 else cross(normal, first)


@inline
def live_rows(k, touch):
    """The end of the live rows of a moment, which begin with row 1."""
    return 2 if touch.contact_i[k, c.CONTACT_ROLE] == c.SPIN else 3


@inner
def moment_contact_rows(touch, place, k):
    """Rows and velocities of a moment."""
    a, b = np.int64(touch.contact_i[k, c.CONTACT_A]), np.int64(touch.contact_i[k, c.CONTACT_B])
    w = sub(turning_of(a, touch.states), turning_of(b, touch.states))
    clear(touch.rows[ROWS * place:ROWS * (place + 1)])
    for r in range(3):
        store(touch.speed, 3 * place + r, constant(touch.speed, 0.0))
    for r in range(1, live_rows(k, touch)):
        e, o = axis_of(k, r, touch), ROWS * place + ROW * r
        store3(touch.rows, o, e)
        store3(touch.rows, o + 6, scale(e, -1.0))
        store(touch.speed, 3 * place + r, dot(e, w))


@inner
def moment_drift(touch, place, k, turning):
    """Derivative of the relative angular velocity along the rows of a moment while no joint accelerates; `turning`:
    dn/dt of its point."""
    a, b = np.int64(touch.contact_i[k, c.CONTACT_A]), np.int64(touch.contact_i[k, c.CONTACT_B])
    w = sub(turning_of(a, touch.states), turning_of(b, touch.states))
    change = zero3(touch.states)
    if a >= 0:
        change = load3(touch.states, STATE * a + 18)
    if b >= 0:
        change = sub(change, load3(touch.states, STATE * b + 18))
    o = ROWS * place + ROW
    first, second = dot(load3(touch.rows, o), change), dot(load3(touch.rows, o + ROW), change)
    if touch.contact_i[k, c.CONTACT_ROLE] == c.SPIN:
        first = first + dot(turning, w)
    else:  # the tangents follow the normal by the shortest turn
        spin = dot(load3(touch.found, c.FOUND * np.int64(touch.contact_i[k, c.CONTACT_POINT]) + c.FOUND_NORMAL), w)
        first = first - spin * dot(load3(touch.rows, o), turning)
        second = second - spin * dot(load3(touch.rows, o + ROW), turning)
    return 0.0, first, second


@inner
def mode_of_moment(touch, k, slow):
    """Mode of a moment from the state, that of its point being known: sliding if the bodies turn against each other."""
    point = np.int64(touch.contact_i[k, c.CONTACT_POINT])
    touch.modes[k] = c.OPEN
    if touch.modes[point] == c.OPEN:
        return
    normal = load3(touch.found, c.FOUND * point + c.FOUND_NORMAL)
    w = sub(turning_of(np.int64(touch.contact_i[k, c.CONTACT_A]), touch.states),
            turning_of(np.int64(touch.contact_i[k, c.CONTACT_B]), touch.states))
    along = scale(normal, dot(normal, w))
    w = along if touch.contact_i[k, c.CONTACT_ROLE] == c.SPIN else sub(w, along)
    fast = norm(w)
    touch.modes[k] = c.SLIDING if fast > slow else c.STICKING
    if fast > slow:
        store3(touch.mark, MARK * k + MARK_SLIP, scale(w, 1.0 / fast))


@inner
def moment_change(touch, place, k):
    """Change of the velocities of a moment with that of the bodies in `bodies`."""
    w = zero3(touch.bodies)
    for side in range(2):
        body = np.int64(touch.contact_i[k, c.CONTACT_A + side])
        if body >= 0:
            turning = load3(touch.bodies, 6 * body)
            w = turning if side == 0 else sub(w, turning)
    for r in range(3):
        store(touch.change, 3 * place + r, dot(load3(touch.rows, ROWS * place + ROW * r), w))


@inner
def fill_moment_rows(touch, first, count, theta):
    """Mobilities of the idle rows of moments among `count` contacts from place `first` on, and their loads."""
    n = 3 * count
    for i in range(count):
        k = touch.active[first + i]
        if is_moment(k, touch):
            mobility, end = load(theta, (3 * i + 1) * (n + 1)), live_rows(k, touch)
            if end == 3:
                mobility = 0.5 * (mobility + load(theta, (3 * i + 2) * (n + 1)))
            mobility = mobility + where_zero(mobility)
            store(theta, 3 * i * (n + 1), mobility)
            if end == 2:
                store(theta, (3 * i + 2) * (n + 1), mobility)
            point = 3 * (i - np.int64(touch.contact_i[k, c.CONTACT_BACK]))
            store(theta, 3 * i * n + point, mobility * (0.0 - touch.contact_f[k, c.ARM]))
