"""Coulomb friction and hard limits of joints, as contacts of the contact problem.

A torque of a joint is a wrench on the body that it moves and the opposite one on that body's parent; any wrench F with
S^T F = 1 will do, since the pair does no work in other joints. So a joint has contacts whose rows are about or along
its axis, with the coordinate's rate v as relative velocity:

    LOWER, UPPER   gap q - lower, or upper - q; normal velocity v, or -v; no friction. The tangents are idle
    DRY            first tangent v. The normal is idle, and carries the given load

An *idle* row acts on no body: its velocity depends on its own force alone, Theta_ii being the mobility m of the joint,
u_i = m f_i + b_i. With b = 0 it has no force. With b = -m F its law (0 <= u, 0 <= f, u f = 0) has the one solution
f = F: a normal force that nothing changes. With a coefficient of 1, Coulomb's law |f_t| <= f_n of this contact is dry
friction, |tau| <= F, tau = -F sign(v) where v != 0, and sticking is the constraint v = 0 of every other contact.
(Mobilities of m keep the problem well scaled.) Impacts have no dry friction: F is finite, its impulse zero.

Limits rebound with their restitution, as shapes do. Rates in rad/s count as m/s in tolerances.
"""

import numpy as np

from bunraku.algorithms.body_motion import STATE
from bunraku.algorithms.tree import zero3
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_memory import JOINTS, ROW, ROWS
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import column_z, cross, load3, load9, scale, store3, sub
from bunraku.spatial.scalar import clear, constant, load, store, where_positive
from bunraku.tolerances import QUICK_JOINT


@inline
def is_joint(k, touch):
    """Whether contact k is one of a joint."""
    return k < touch.count[JOINTS]


@inline
def is_dry(k, touch):
    """Whether contact k is dry friction of a joint."""
    return k < touch.count[JOINTS] and touch.joint_i[k, c.JOINT_KIND] == c.DRY


@inline
def sign_of(k, touch):
    """Relative velocity of contact k per rate of its joint."""
    return -1.0 if touch.joint_i[k, c.JOINT_KIND] == c.UPPER else 1.0


@inline
def live_row(k, touch):
    """Row of contact k that is not idle."""
    return 1 if touch.joint_i[k, c.JOINT_KIND] == c.DRY else 0


@inner
def joint_gaps(joint_i, joint_f, body_i, q, found):
    """Gaps of the joints' contacts: 0 of DRY ones, inf where the motion of the joint is prescribed."""
    for k in range(joint_i.shape[0]):
        kind, x = joint_i[k, c.JOINT_KIND], load(q, joint_i[k, c.JOINT_Q])
        gap = constant(found, 0.0)
        if body_i[joint_i[k, c.JOINT_BODY], f.ELIMINATION] == f.LOCKED:
            gap = constant(found, np.inf)
        elif kind == c.LOWER:
            gap = x - joint_f[k, c.JOINT_BOUND]
        elif kind == c.UPPER:
            gap = joint_f[k, c.JOINT_BOUND] - x
        store(found, c.FOUND * k + c.FOUND_GAP, gap)


@inner
def see_joints(touch, body_i, q, v):
    """Gaps of the joints' contacts, and the velocities of their live rows."""
    joint_gaps(touch.joint_i, touch.joint_f, body_i, q, touch.found)
    for k in range(touch.count[JOINTS]):
        store(touch.joint_speed, k, sign_of(k, touch) * load(v, touch.joint_i[k, c.JOINT_V]))


@inline
def joint_reaches(kind, gap, approach, h):
    """Whether a joint's contact may matter in a step."""
    return gap < np.inf and (kind == c.DRY or gap <= 4.0 * h * max(0.0, 0.0 - approach) + QUICK_JOINT * h * h)


@inner
def joint_contact_rows(touch, place, k, origin_a, origin_b):
    """Rows and velocities of a joint's contact; `origin_a`, `origin_b`: of the groups of both bodies."""
    o, body = ROWS * place, np.int64(touch.joint_i[k, c.JOINT_BODY])
    clear(touch.rows[o:o + ROWS])
    for r in range(3):
        store(touch.speed, 3 * place + r, constant(touch.speed, 0.0))
    e = scale(column_z(load9(touch.states, STATE * body)), sign_of(k, touch))
    r = live_row(k, touch)
    o += ROW * r
    if touch.joint_f[k, c.JOINT_ANGULAR] != 0.0:
        store3(touch.rows, o, e)
        store3(touch.rows, o + 6, scale(e, -1.0))
    else:
        x = load3(touch.states, STATE * body + 9)
        store3(touch.rows, o, cross(sub(x, origin_a), e))
        store3(touch.rows, o + 3, e)
        store3(touch.rows, o + 6, scale(cross(sub(x, origin_b), e), -1.0))
        store3(touch.rows, o + 9, scale(e, -1.0))
    if touch.contact_i[k, c.CONTACT_B] < 0:
        store3(touch.rows, o + 6, zero3(touch.rows))
        store3(touch.rows, o + 9, zero3(touch.rows))
    store(touch.speed, 3 * place + r, load(touch.joint_speed, k))


@inline
def joint_change(touch, place, k, v):
    """Change of the velocities of a joint's contact for a change v of the joint velocities."""
    for r in range(3):
        store(touch.change, 3 * place + r, constant(touch.change, 0.0))
    store(touch.change, 3 * place + live_row(k, touch), sign_of(k, touch) * load(v, touch.joint_i[k, c.JOINT_V]))


@inner
def fill_idle_rows(touch, first, count, theta):
    """Mobilities of the idle rows of `count` contacts from place `first` on: that of the joint; 1 if it has none."""
    for i in range(count):
        k = touch.active[first + i]
        if is_joint(k, touch):
            n, at = 3 * count, 3 * i + live_row(k, touch)
            mobility = load(theta, at * n + at)
            mobility = mobility + where_zero(mobility)
            for r in range(3 * i, 3 * i + 3):
                if r != at:
                    store(theta, r * n + r, mobility)


@inline
def where_zero(x):
    """1 where x is not positive, else 0."""
    return where_positive(x, 0.0 * x, 0.0 * x + 1.0)


@inline
def load_of(k, touch):
    """Largest friction of a DRY contact [N m, N]."""
    return touch.joint_f[k, c.JOINT_BOUND]


@inner
def load_dry(touch, first, count, h, theta, free):
    """Velocity of the normal of DRY contacts without its force, -m F h, into `free` (three a contact)."""
    for i in range(count):
        k = touch.active[first + i]
        touch.dry[i] = is_dry(k, touch)
        if touch.dry[i] != 0:
            at = 3 * i * (3 * count + 1)
            store(free, 3 * i, load(theta, at) * (0.0 - h * load_of(k, touch)))
