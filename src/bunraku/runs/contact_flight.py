"""Free motion within a time step between events: the mean accelerations of a step, of order 4.

Time-stepping moves by the acceleration at the start of a step (order 1), which adds energy to spinning bodies: the
explicit Euler method raises the kinetic energy of a free body by h^2/2 dw.I dw in every step. Where steps replace
events for a time (`simulation/crowding.py`), the acceleration without contact is therefore the mean over the step, by
the classical Runge-Kutta method [Kutta 1901]:

    k_1 = a(t, q, v),  k_{2,3} = a(t + h/2, q_{2,3}, v + h/2 k_{1,2}),  k_4 = a(t + h, q_4, v + h k_3),
    mean = (k_1 + 2 k_2 + 2 k_3 + k_4) / 6,    q_{i+1} = q moved by c_i h (v + c_{i-1} h k_{i-1}).

All of it is in the axes of the start of the step: velocities of free joints are those of their origins in the axes that
they have then. Cost: four evaluations, and one more that leaves the factors of the start for the contacts.

A step over which the accelerations change by more than FLIGHT_CHANGES of their size is halved (stiff springs and
dampers, for which the method would be unstable), down to FLIGHT_SHORTEST of its length.
"""

from bunraku.contact.contact_step import travel
from bunraku.integrate.solver_memory import copy
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.runs.context import coordinates, driven_accelerations
from bunraku.spatial.algebra import add, cross, load3, matTvec, matvec, rotation_of_quaternion, store3, sub
from bunraku.tolerances import FLIGHT_CHANGES, FLIGHT_SHORTEST, FLIGHT_SLOW

EVALUATIONS = 4  # besides the one at the start


@inline
def axes_of(q, k):
    return rotation_of_quaternion(q[k + 3], q[k + 4], q[k + 5], q[k + 6])


@inner
def into_axes_at(body_i, start, q, v):
    """Velocities of free joints, from the axes at `start` into those at q, in place."""
    for i in range(body_i.shape[0] - 1):
        if body_i[i, f.KIND] == f.FREE:
            k, j = body_i[i, f.Q_INDEX], body_i[i, f.V_INDEX]
            store3(v, j, matTvec(axes_of(q, k), matvec(axes_of(start, k), load3(v, j))))


@inner
def into_axes_of_start(body_i, start, q, v, a):
    """Accelerations of free joints at (q, v), of their components in axes that turn, into the fixed axes at `start`."""
    for i in range(body_i.shape[0] - 1):
        if body_i[i, f.KIND] == f.FREE:
            k, j = body_i[i, f.Q_INDEX], body_i[i, f.V_INDEX]
            fixed = add(load3(a, j), cross(load3(v, j + 3), load3(v, j)))
            store3(a, j, matTvec(axes_of(start, k), matvec(axes_of(q, k), fixed)))


@inner
def into_turning_axes(body_i, v, a):
    """Accelerations of free joints in fixed axes at the start, as changes of components in their own axes."""
    for i in range(body_i.shape[0] - 1):
        if body_i[i, f.KIND] == f.FREE:
            j = body_i[i, f.V_INDEX]
            store3(a, j, sub(load3(a, j), cross(load3(v, j + 3), load3(v, j))))


@inner
def mean_of_step(context, t, q, v, first, h, mean):
    """(status, whether the accelerations change little): the mean acceleration over a step of h from (t, q, v), where
    it is `first` in fixed axes, into `mean`."""
    body_i, nq, nv = context.structure.body_i, coordinates(context), v.shape[0]
    stage_q, stage_v = context.closed[:nq], context.closed[nq:]
    before, a = context.start[nq:], context.unclosed[nq:]  # velocity and acceleration of the last stage, fixed axes
    copy(v, before)
    copy(first, a)
    copy(first, mean)
    largest, change = 0.0, 0.0
    for stage in range(3):
        part = 0.5 * h if stage < 2 else h
        copy(q, stage_q)
        copy(before, stage_v)
        travel(body_i, stage_q, stage_v, part, context.zeros)
        for j in range(nv):
            before[j] = v[j] + part * a[j]
            stage_v[j] = before[j]
        into_axes_at(body_i, q, stage_q, stage_v)
        status = driven_accelerations(context, t + part, stage_q, stage_v, a)
        if status != 0:
            return status, False
        into_axes_of_start(body_i, q, stage_q, stage_v, a)
        for j in range(nv):
            mean[j] += (2.0 if stage < 2 else 1.0) * a[j]
            largest, change = max(largest, abs(first[j])), max(change, abs(a[j] - first[j]))
    for j in range(nv):
        mean[j] /= 6.0
    return 0, change <= FLIGHT_CHANGES * largest or h * change <= FLIGHT_SLOW


@inner
def mean_accelerations(context, t, q, v, a, h):
    """(status, step): `a`, given at (t, q, v), becomes its mean over a step of h or shorter. The factors in the work
    memory are those of the start."""
    body_i, nq = context.structure.body_i, coordinates(context)
    first, mean = context.rates[0, :v.shape[0]], context.rates[1, :v.shape[0]]
    copy(a, first)
    into_axes_of_start(body_i, q, q, v, first)
    shortest = FLIGHT_SHORTEST * h
    while True:
        status, fine = mean_of_step(context, t, q, v, first, h, mean)
        if status != 0:
            return status, h
        if fine or 0.5 * h < shortest:
            break
        h *= 0.5
    into_turning_axes(body_i, v, mean)
    status = driven_accelerations(context, t, q, v, context.unclosed[nq:])
    copy(mean, a)
    return status, h
