"""Jacobians and their rates: columns of joints as seen at a point, and how fast these change.

Idea: the axes of a joint are fixed in its child body, so that a column of S turns with that body's angular velocity w,
and its moment about a point changes with the velocity of the joint relative to the point:

    s = (s_w, t + r x s_w),   s' = (w x s_w, w x t + r' x s_w + r x (w x s_w)),   r from the point to the body's origin

Reference: Featherstone (2008), sec. 2.10. Cost O(depth). On the states that `body_states` leaves.
"""

from bunraku.algorithms.body_motion import STATE
from bunraku.algorithms.tree import joint_column, load_pose, load_velocity, row3, zero3
from bunraku.jit import inline
from bunraku.plan import fields as f
from bunraku.spatial.algebra import add, cross, matvec, sub
from bunraku.spatial.scalar import store


@inline
def moving_column(body_i, body_f, i, d, point, speed, states):
    """Column d of the joint of body i at a point that moves at `speed`, and its rate: (s_w, s_v), (s_w', s_v')."""
    (R, x), (w, v) = load_pose(states, STATE * i), load_velocity(states, STATE * i)
    r, r_rate = sub(x, point), sub(v, speed)
    s_w, s_v = joint_column(body_i[i, f.KIND], body_f[i, f.RATE_ANGULAR], body_f[i, f.RATE_LINEAR], d, R, r)
    along = sub(s_v, cross(r, s_w))
    turned = cross(w, s_w)
    return s_w, s_v, turned, add(add(cross(w, along), cross(r_rate, s_w)), cross(r, turned))


@inline
def point_motion(link_i, link, place, states):
    """Body of a link; position and velocity of a point of the body, which `place` (a row) gives in its frame."""
    body = link_i[link, f.LINK_BODY]
    if body < 0:
        return body, zero3(states), zero3(states)
    (R, x), (w, v) = load_pose(states, STATE * body), load_velocity(states, STATE * body)
    r = matvec(R, row3(place, 0, 0))
    return body, add(x, r), add(v, cross(w, r))


@inline
def jacobian_and_rate(body_i, body_f, link_i, link, place, states, out, rate):
    """J and dJ/dt of a point of a link, 6 x nv by rows (linear, angular), zeroed by the caller."""
    body, point, speed = point_motion(link_i, link, place, states)
    nv = out.shape[0] // 6
    while body >= 0:
        for d in range(body_i[body, f.DOF]):
            s_w, s_v, r_w, r_v = moving_column(body_i, body_f, body, d, point, speed, states)
            j = body_i[body, f.V_INDEX] + d
            for k in range(3):
                store(out, k * nv + j, s_v[k])
                store(out, (k + 3) * nv + j, s_w[k])
                store(rate, k * nv + j, r_v[k])
                store(rate, (k + 3) * nv + j, r_w[k])
        body = body_i[body, f.PARENT]
