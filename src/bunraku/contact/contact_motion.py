"""Motion between contact events: closed contacts stay closed, sticking or sliding, until the contact law is violated.

A sticking contact is three constraints, a sliding one is one, with friction against its slip:

    stick    du/dt = 0                          three forces
    slide    d2g/dt2 = 0,  f_t = -mu f_n d      one force; d = u_t / |u_t|

So the matrix of the forces has a row Theta_n and a column Theta (n - mu d) for a sliding contact: its force acts along
another direction than its constraint, and the matrix is not symmetric. Forces of redundant contacts have minimum norm.

`contact_one` is this motion for solvers, instead of the mechanism's own. In mode KEEP_CLOSED it projects the end of
a step: the smallest change of position and velocity removes the gap, normal velocity and slip that integration errors
leave in closed and sticking contacts. So these errors do not accumulate as penetration. `contact_signal` is the event
function, positive where the modes are no longer valid:

    an open contact closes; slip comes to an end; a contact would have to pull, or friction to exceed its disc;
    other features take over in a closed contact (`contact/features.py`), or its gap cannot be kept closed.

Slip ends at the speed in `mark`, below which the solver's errors make its direction random; for contacts that start
sliding from rest this is negative, and they are checked again once they move.

An event without a change of modes was caused by the solver's errors: the next one needs a larger violation (`margin`).

Forces of redundant contacts are indeterminate. If the minimum-norm ones are not admissible others may be; so the modes
are valid if the contact problem gives the same motion.
"""

from __future__ import annotations

import numpy as np

from bunraku.algorithms.connection_equations import DYNAMICS
from bunraku.algorithms.states import advance_coordinates
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_fields import DISC, GIVEN, KEEP_CLOSED, NO_SOLUTION, NONE, OPEN, SLIDING, STICKING
from bunraku.contact.contact_memory import (
    ACTIVE,
    BASE,
    FEATURES,
    JOINTS,
    MARK,
    MARK_GAP,
    MARK_SLIP,
    ROW,
    ROWS,
    STATUS,
    WORST,
    touch_of,
)
from bunraku.contact.detect import bounds_apart, find_pair, place_shapes
from bunraku.contact.features import is_kept, keep_features, put_kept, taken_over
from bunraku.contact.joint_rows import is_dry, is_joint, load_of
from bunraku.contact.least_norm import least_norm
from bunraku.contact.moment_rows import is_moment, kind_of, mode_of_moment
from bunraku.contact.rows import (
    contact_drift,
    forget_problem,
    level_points,
    make_rows,
    motion_at,
    surface_motion,
    take_up,
    take_up_point,
)
from bunraku.contact.touching import (
    add_answer,
    answer_any_forces,
    change_of_contacts,
    find_touching,
    make_any_problem,
    see_bodies,
    solve_noting,
    state_problem_of_all,
    velocities_after,
)
from bunraku.entries.signatures import FAILED, FINE, MOTION, PLAN, SIGNAL, floats, int64, move
from bunraku.jit import entry, inline, inner
from bunraku.spatial.algebra import add, dot, load3, norm, scale, store3, sub
from bunraku.tolerances import (
    ADMISSIBLE,
    CONTACT_FAR,
    CONTACT_NEAR,
    DRIFTED,
    FORCE_RANK,
    GRAZED,
    LARGE_MOVE,
    LIGHT_LOAD,
    NO_DIRECTION,
    SAME_MOTION,
    SMALL_GAP_LEFT,
    SMALL_SPEED_LEFT,
    UNDER_WAY,
)

LOOK, LOOK_LEVEL, IMPACT, HOLD_SPEED, HOLD_GAP, FORCES, DIRECT, RELEASE, KEEP = range(9)  # what `contact_solve` does
APPROACHING, OVERLAPPING = 7, 8  # answers beside those of entries: contacts are closed and approach; shapes overlap


@inner
def slip_direction(touch, place, k):
    """(d, slip along the direction it began with) of a contact; d has two components, along the tangents."""
    o = ROWS * place + ROW + (0 if is_moment(k, touch) else 3)
    mark = load3(touch.mark, MARK * k + MARK_SLIP)
    x, y = dot(load3(touch.rows, o), mark), dot(load3(touch.rows, o + ROW), mark)
    if is_joint(k, touch):
        x, y = mark[1], mark[2]
    size = np.sqrt(x * x + y * y)
    if size > 0.0:
        x, y = x / size, y / size
    u, w = touch.speed[3 * place + 1], touch.speed[3 * place + 2]
    fast, along = np.sqrt(u * u + w * w), u * x + w * y
    if fast > NO_DIRECTION:
        sign = 1.0 if along >= 0.0 else -1.0
        return sign * u / fast, sign * w / fast, along
    return x, y, along


@inner
def find_closed(touch):
    """The contacts that are closed, by their kept features, if there are any."""
    place_shapes(touch.shape_i, touch.shape_f, touch.states, touch.places)
    for p in range(touch.pair_i.shape[0]):
        first, count = np.int64(touch.pair_i[p, c.PAIR_CONTACT]), np.int64(touch.pair_i[p, c.PAIR_COUNT])
        closed, kept = 0, 0
        for k in range(first, first + count):
            if touch.modes[k] != OPEN:
                closed += 1
                kept += 1 if is_kept(touch, k) else 0
        if closed > kept:
            find_pair(p, touch.shape_i, touch.shape_f, touch.point_f, touch.pair_i, touch.places, CONTACT_NEAR,
                      touch.found)
        for k in range(first, first + (count if kept > 0 else 0)):
            if touch.modes[k] != OPEN and is_kept(touch, k):
                put_kept(touch, k)


@inner
def put_kept_ones(touch):
    """What was found of closed contacts is replaced by that of their kept features."""
    for k in range(touch.modes.shape[0]):
        if touch.modes[k] != OPEN and is_kept(touch, k):
            put_kept(touch, k)


@inner
def release(touch):
    """Contacts whose kept features are not theirs any more are open, without features."""
    for k in range(touch.modes.shape[0]):
        if is_kept(touch, k) and (touch.modes[k] == OPEN or taken_over(touch, k)):
            touch.modes[k], touch.features[FEATURES * k] = OPEN, 0.0


@inner
def keep(touch):
    """Keep the features of closed contacts, and of no others."""
    for k in range(touch.count[JOINTS], touch.modes.shape[0]):
        if touch.modes[k] == OPEN or is_moment(k, touch):
            touch.features[FEATURES * k] = 0.0
        elif not is_kept(touch, k):
            keep_features(touch, k)


@inner
def closed_rows(touch, structure, dof_f, q, work):
    """Put the closed contacts into the problem: rows, Theta, modes. Returns success."""
    forget_problem(touch)
    for k in range(touch.modes.shape[0]):
        if touch.modes[k] != OPEN and touch.found[c.FOUND * k + c.FOUND_GAP] < np.inf and not (
                take_up(k, touch) if is_joint(k, touch) else take_up_point(k, touch)):
            return False
    if touch.count[ACTIVE] == 0:
        return True
    for place in range(touch.count[ACTIVE]):
        k = touch.active[place]
        touch.mu[place], touch.mode[place] = touch.contact_f[k, c.FRICTION], touch.modes[k]
    return state_problem_of_all(touch, structure, dof_f, q, work)


@inner
def closed_contacts(touch, structure, dof_f, q, a, work):
    """The problem of the closed contacts for accelerations: Theta, b, slip. Returns success."""
    fine = closed_rows(touch, structure, dof_f, q, work)
    if touch.count[ACTIVE] == 0 or not fine:
        return fine
    change_of_contacts(touch, structure, a)
    for place in range(touch.count[ACTIVE]):
        k = touch.active[place]
        drift = contact_drift(touch, place)
        for r in range(3):
            touch.b[3 * place + r] = touch.change[3 * place + r] + drift[r]
        if is_dry(k, touch):
            at = 3 * place * (3 * touch.count[ACTIVE] + 1)
            touch.b[3 * place] = 0.0 - touch.theta[at] * load_of(k, touch)
        if touch.modes[k] == SLIDING:
            d, e, _ = slip_direction(touch, place, k)
            touch.slip[2 * place], touch.slip[2 * place + 1] = d, e
    return True


@inner
def gap_move(touch, structure, nv, work):
    """The smallest move that leaves closed contacts no gap, into `delta`; the largest gap or overlap [m]."""
    most = 0.0
    for place in range(touch.count[ACTIVE]):
        k, gap = touch.active[place], 0.0
        if not is_moment(k, touch):
            gap = touch.found[c.FOUND * k + c.FOUND_GAP]
        most = max(most, abs(gap))
        touch.mode[place], touch.mu[place] = SLIDING, 0.0
        touch.b[3 * place], touch.b[3 * place + 1], touch.b[3 * place + 2] = gap, 0.0, 0.0
    mode_forces(touch)
    answer_any_forces(touch, structure, nv, touch.force, work, touch.delta)
    return most


@inner
def speed_change(touch, structure, nv, work):
    """The smallest change of velocity that leaves closed contacts no normal velocity, and sticking ones no slip, into
    `delta`; the largest of these [m/s]."""
    most = 0.0
    for place in range(touch.count[ACTIVE]):
        touch.mode[place], touch.mu[place] = touch.modes[touch.active[place]], 0.0
        for r in range(3):
            touch.b[3 * place + r] = touch.speed[3 * place + r]
            if r == 0 or touch.mode[place] == STICKING:
                most = max(most, abs(touch.b[3 * place + r]))
    mode_forces(touch)
    answer_any_forces(touch, structure, nv, touch.force, work, touch.delta)
    return most


@inner
def keep_closed(touch, structure, dof_f, q, v, work):
    """Project a state to its closed contacts, in place: see KEEP_CLOSED above."""
    nv = v.shape[0]
    see_bodies(touch, structure, q, v)
    find_closed(touch)
    if not closed_rows(touch, structure, dof_f, q, work):
        return FAILED
    if touch.count[ACTIVE] == 0:
        return FINE
    if speed_change(touch, structure, nv, work) > SMALL_SPEED_LEFT:
        for j in range(nv):
            v[j] += touch.delta[j]
    if gap_move(touch, structure, nv, work) > SMALL_GAP_LEFT:
        far = 0.0
        for j in range(nv):
            far = max(far, abs(touch.delta[j]))
        if far < LARGE_MOVE:
            advance_coordinates(structure.body_i, q, touch.delta, q)
    return FINE


@inner
def mode_forces(touch):
    """Forces that keep the contacts of the problem in their modes, into `force`: the smallest ones, in units in which
    every direction yields alike."""
    count, theta, work, n = touch.count[ACTIVE], touch.theta, touch.work, 0
    rows = 3 * count
    for place in range(count):
        n += 3 if touch.mode[place] == STICKING else 1
    side = n * n
    scratch, i = side + n, 0
    for place in range(count):
        for r in range(3 if touch.mode[place] == STICKING else 1):
            at = 3 * place + r
            s = unit(theta[at * rows + at])
            work[side + i] = -s * touch.b[at]
            j = 0
            for other in range(count):
                stick = touch.mode[other] == STICKING
                for e in range(3 if stick else 1):
                    to = 3 * other + e
                    x = theta[at * rows + to]
                    if not stick:
                        x -= touch.mu[other] * (touch.slip[2 * other] * theta[at * rows + to + 1]
                                                + touch.slip[2 * other + 1] * theta[at * rows + to + 2])
                    work[n * j + i] = s * x * unit(theta[to * rows + to])
                    j += 1
            i += 1
    least_norm(n, 0, side, scratch, FORCE_RANK, work)
    j = 0
    for place in range(count):
        stick = touch.mode[place] == STICKING
        for r in range(3 if stick else 1):
            at = 3 * place + r
            touch.force[at] = work[side + j] * unit(theta[at * rows + at])
            j += 1
        if not stick:
            for r in range(2):
                touch.force[3 * place + 1 + r] = -touch.mu[place] * touch.force[3 * place] * touch.slip[2 * place + r]


@inline
def unit(diagonal):
    """Unit of a force for which the diagonal entry of Theta is 1."""
    return 1.0 / np.sqrt(diagonal) if diagonal > 0.0 else 1.0


@entry("motion with contact", MOTION, seconds=14, brief=True, by_address=True)
def contact_one(mode, plan, dof_f, q, v, tau, drives, external, a, work):
    """As `closed_one` and `tree_one`, with the contacts that are closed; in mode KEEP_CLOSED q and v are projected to
    these in place, by the factors that the last evaluation has left in `work`."""
    return move_touching(touch_of(plan.touch), mode, plan, dof_f, q, v, tau, drives, external, a, work)


@inner
def move_touching(touch, mode, plan, dof_f, q, v, tau, drives, external, a, work):
    answer = FINE
    if mode != KEEP_CLOSED:
        answer = move(touch.count[BASE], mode, plan, dof_f, q, v, tau, drives, external, a, work)
    closed = False
    for k in range(touch.modes.shape[0]):
        closed = closed or touch.modes[k] != OPEN
    if not closed or answer != FINE:
        return answer
    if mode == KEEP_CLOSED:
        return keep_closed(touch, plan, dof_f, q, v, work)
    if mode != DYNAMICS:
        return answer
    see_bodies(touch, plan, q, v)
    find_closed(touch)
    if not closed_contacts(touch, plan, dof_f, q, a, work):
        return FAILED
    if touch.count[ACTIVE] > 0:
        mode_forces(touch)
        answer_any_forces(touch, plan, dof_f.shape[1], touch.force, work, touch.delta)
        add_answer(a, touch.delta)
    return answer


@inner
def breach(touch):
    """Violation of the contact law by the modes of the closed contacts: negative if they are valid."""
    count = touch.count[ACTIVE]
    mode_forces(touch)
    most, least = 0.0, np.inf
    for i in range(3 * count):
        most = max(most, abs(touch.force[i]))
    for place in range(count):
        least = min(least, touch.force[3 * place])
        if touch.mode[place] == STICKING:
            friction = np.sqrt(touch.force[3 * place + 1] ** 2 + touch.force[3 * place + 2] ** 2)
            least = min(least, touch.mu[place] * touch.force[3 * place] - friction)
    if least >= -ADMISSIBLE * most:
        return -(least / most if most > 0.0 else 1.0) - 2.0 * ADMISSIBLE
    velocities_after(touch, count, touch.force)
    for i in range(3 * count):  # in the place of the forces, the motion by modes
        touch.speed[i] = touch.velocity[i]
    for place in range(count):
        touch.kind[place] = kind_of(touch.active[place], touch) + (DISC if touch.mode[place] == STICKING else GIVEN)
    solve_noting(touch, count, NONE)
    if touch.count[STATUS] == NO_SOLUTION:
        return 1.0
    velocities_after(touch, count, touch.force)
    size, apart = LIGHT_LOAD, 0.0
    for place in range(count):
        for r in range(3):
            i = 3 * place + r
            size = max(size, abs(touch.b[i]))
            apart = max(apart, abs(touch.velocity[i] - touch.speed[i]))
    return apart / size - SAME_MOTION - touch.margin[0]


@entry("contact between events", SIGNAL, seconds=14, by_address=True)
def contact_signal(plan, q, v, tau, drives, external, a, work):
    """Positive where the contact modes are no longer valid: see above. NaN if there is no motion."""
    return signal_at(touch_of(plan.touch), plan, q, v, tau, drives, external, a, work)


@inner
def nearest_of_far_pairs(touch):
    """[m] A lower bound, continuous in time, on the gaps of pairs that `find_touching` has dropped."""
    least = CONTACT_FAR
    for p in range(touch.pair_i.shape[0]):
        apart = bounds_apart(touch.pair_i[p, c.PAIR_KIND], touch.places, touch.shape_f, touch.pair_i[p, c.PAIR_A],
                             touch.pair_i[p, c.PAIR_B])
        if apart > CONTACT_NEAR:
            least = min(least, apart)
    return least


@inner
def signal_at(touch, plan, q, v, tau, drives, external, a, work):
    see_bodies(touch, plan, q, v)
    find_touching(touch, CONTACT_NEAR)
    signal, closed = -nearest_of_far_pairs(touch), False
    for k in range(touch.modes.shape[0]):
        gap = touch.found[c.FOUND * k + c.FOUND_GAP]
        if touch.modes[k] == OPEN:
            near = touch.mark[MARK * k + MARK_GAP] - min(gap, CONTACT_FAR)
            if near > signal:  # it closes where it approaches: the first steps of a solver are not exact in between
                parting = 0.0
                if is_joint(k, touch):
                    parting = touch.joint_speed[k]
                else:
                    x = load3(touch.found, c.FOUND * k + c.FOUND_POINT)
                    v_a, _ = motion_at(np.int64(touch.contact_i[k, c.CONTACT_A]), x, touch.states)
                    v_b, _ = motion_at(np.int64(touch.contact_i[k, c.CONTACT_B]), x, touch.states)
                    parting = dot(load3(touch.found, c.FOUND * k + c.FOUND_NORMAL), sub(v_a, v_b))
                signal = max(signal, min(near, -parting), near - GRAZED)
        else:
            closed = True
            if is_moment(k, touch):
                continue
            if not abs(gap) <= DRIFTED or (is_kept(touch, k) and taken_over(touch, k)):
                return 1.0
    if not closed:
        return signal
    put_kept_ones(touch)
    if move(touch.count[BASE], DYNAMICS, plan, plan.dof_f, q, v, tau, drives, external, a, work) != FINE:
        return np.nan
    if not closed_contacts(touch, plan, plan.dof_f, q, a, work):
        return np.nan
    for place in range(touch.count[ACTIVE]):
        if touch.mode[place] == SLIDING and touch.mu[place] > 0.0:
            _, _, along = slip_direction(touch, place, touch.active[place])
            slow = touch.mark[MARK * touch.active[place] + MARK_GAP]
            if slow > 0.0:
                signal = max(signal, slow - along)
            else:  # it has started from rest, or nearly so: look again when it is under way
                signal = max(signal, max(-along + 2.0 * slow, along + UNDER_WAY * slow))
    return max(signal, breach(touch))


@entry("contact at an event", int64(int64, PLAN, floats, floats, floats, floats, floats, floats, floats, floats),
       seconds=14)
def contact_solve(what, plan, q, v, tau, drives, external, restitution, a, work):
    """The problem of the contacts whose `modes` are not OPEN, at one state.

    LOOK: velocities in `speed`, accelerations without contact forces in `b`.
    LOOK_LEVEL: velocities in `speed` and Theta, as in a time step.
    IMPACT: impulses, velocities after them, `delta`; restitution of every contact is given.
    HOLD_SPEED, HOLD_GAP: the change of velocity, or the move, `delta` that leaves closed contacts no normal velocity,
    and sticking ones no slip, or no gap: a correction of the solver's errors.
    FORCES: forces, accelerations in `velocity`, a with contact; contacts of mode SLIDING have their slip in `mark`.
    DIRECT: the same with modes found from the state; then `restitution` holds the gap below which contacts are closed,
    the speed below which they do not slide or part, and the speed of approach that is an impact.
    RELEASE, KEEP: no problem, but the kept features: contacts where others have taken over are opened; those of the
    closed contacts are kept.
    """
    return solve_at(what, touch_of(plan.touch), plan, q, v, tau, drives, external, restitution, a, work)


@inner
def solve_at(what, touch, plan, q, v, tau, drives, external, restitution, a, work):
    dof_f, nv = plan.dof_f, v.shape[0]
    if what >= RELEASE:
        see_bodies(touch, plan, q, v)
        find_touching(touch, CONTACT_NEAR)
        touch.count[ACTIVE] = touch.count[STATUS] = 0
        if what == RELEASE:
            release(touch)
        else:
            keep(touch)
        return FINE
    if move(touch.count[BASE], DYNAMICS, plan, dof_f, q, v, tau, drives, external, a, work) != FINE:
        return FAILED
    see_bodies(touch, plan, q, v)
    find_touching(touch, CONTACT_NEAR)
    put_kept_ones(touch)
    if what == DIRECT:
        impact = modes_of_state(touch, restitution[0], restitution[1], restitution[2])
        if impact >= 0:
            touch.count[WORST] = impact
            return OVERLAPPING if touch.found[c.FOUND * impact + c.FOUND_GAP] < -restitution[0] else APPROACHING
    if not closed_contacts(touch, plan, dof_f, q, a, work):
        return FAILED
    count = touch.count[ACTIVE]
    if what == LOOK_LEVEL:
        level_points(touch)
        make_rows(touch, plan.body_i)
        return FINE if make_any_problem(touch, 0, plan, dof_f, q, work) else FAILED
    if what == LOOK or count == 0:
        return FINE
    if what == HOLD_SPEED:
        speed_change(touch, plan, nv, work)
        return FINE
    if what == HOLD_GAP:
        gap_move(touch, plan, nv, work)
        return FINE
    if what == IMPACT:
        for place in range(count):
            k = touch.active[place]
            touch.kind[place] = kind_of(k, touch)
            for r in range(3):
                touch.b[3 * place + r] = touch.speed[3 * place + r]
            touch.b[3 * place] += restitution[k] * min(touch.speed[3 * place], 0.0)
        solve_noting(touch, count, NONE)
        for place in range(count):
            touch.b[3 * place] = touch.speed[3 * place]
    else:
        for place in range(count):
            touch.kind[place] = kind_of(touch.active[place], touch) + (GIVEN if touch.mode[place] == SLIDING else DISC)
        solve_noting(touch, count, NONE)
    velocities_after(touch, count, touch.force)
    answer_any_forces(touch, plan, nv, touch.force, work, touch.delta)
    if what >= FORCES:
        add_answer(a, touch.delta)
    return FINE


@inner
def mode_of_joint(touch, k, near, slow, impact):
    """The same of a joint's contact; returns whether it is such a one."""
    gap, speed = touch.found[c.FOUND * k + c.FOUND_GAP], touch.joint_speed[k]
    if not gap <= near:
        return False
    if is_dry(k, touch):
        touch.modes[k] = SLIDING if abs(speed) > slow else STICKING
        store3(touch.mark, MARK * k + MARK_SLIP, (0.0, 1.0 if speed > 0.0 else -1.0, 0.0))
        return False
    if speed < -impact or gap < -near:
        return True
    touch.modes[k] = STICKING if speed <= slow else OPEN
    return False


@inner
def modes_of_state(touch, near, slow, impact):
    """Modes of contacts from the state: closed below the gap `near` if they do not part, sliding if there is slip.
    Returns one that approaches faster than `impact` or overlaps by more than `near`; or -1."""
    for k in range(touch.modes.shape[0]):
        touch.modes[k] = OPEN
        if is_joint(k, touch):
            if mode_of_joint(touch, k, near, slow, impact):
                return k
        elif is_moment(k, touch):
            mode_of_moment(touch, k, slow)
        elif touch.found[c.FOUND * k + c.FOUND_GAP] <= near:
            normal = load3(touch.found, c.FOUND * k + c.FOUND_NORMAL)
            x = load3(touch.found, c.FOUND * k + c.FOUND_POINT)
            v_a, _ = motion_at(np.int64(touch.contact_i[k, c.CONTACT_A]), x, touch.states)
            v_b, _ = motion_at(np.int64(touch.contact_i[k, c.CONTACT_B]), x, touch.states)
            u = sub(v_a, v_b)
            along = dot(normal, u)
            if along < -impact or touch.found[c.FOUND * k + c.FOUND_GAP] < -near:
                return k
            if along <= slow:
                slip = add(sub(u, scale(normal, along)), surface_motion(touch, k, normal))
                fast = norm(slip)
                touch.modes[k] = SLIDING if fast > slow else STICKING
                if fast > slow:
                    store3(touch.mark, MARK * k + MARK_SLIP, scale(slip, 1.0 / fast))
    return -1
