"""Time-stepping of many states at once: `time_stepping_run.py` with W states in lanes.

Motion, geometry, rows, responses and Theta are computed in lanes for all contacts that any of the W states has, the
problems of their own contacts in lanes or one by one (`contact/lane_impulses.py`). The result of a state does not
depend on those beside it.
"""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.forward_passes import accelerate, scratch_sizes
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_entries import CONTACTS
from bunraku.contact.contact_memory import ACTIVE, SOFT, lane_touch
from bunraku.contact.contact_step import fly, reaches, travel
from bunraku.contact.joint_rows import is_joint, joint_reaches, load_dry
from bunraku.contact.lane_impulses import FEW, impulses_in_lanes, lane_impulses
from bunraku.contact.lane_problem import lane_problem
from bunraku.contact.moment_rows import is_moment
from bunraku.contact.rows import arrange, forget_problem, level_points, make_rows, motion_at, take_up, take_up_point
from bunraku.contact.soft_contacts import soften
from bunraku.contact.touching import (
    answer_forces,
    change_of_contacts,
    fastest_shape,
    find_touching,
    make_problem,
    see_bodies,
)
from bunraku.entries.signatures import PLAN, float64, floats, int64, lane_array, table
from bunraku.integrate.control import fixed_step
from bunraku.integrate.solver_memory import CONTACTS_FULL
from bunraku.jit import allocating, entry, hold, inline, inner, outlived
from bunraku.plan import fields as f
from bunraku.runs.lane_run import NEXT, TAKEN, TIME, counts, drive_lanes, given_lanes, judge, keep, leave, running
from bunraku.spatial.algebra import dot, load3, sub
from bunraku.spatial.lane_memory import gather
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import clear, largest, load, maximum, pick, store, where_positive
from bunraku.tolerances import AT_REST, QUICK


@inner
def choose_joint(k, touch, h, first, status, near):
    """Whether a joint's contact is in the problem of any of the states; near[k, w] tells in which."""
    some = False
    for w in range(WIDTH):
        on = w < status.shape[0] - first and status[first + w] == 0 and joint_reaches(
            touch.joint_i[k, c.JOINT_KIND], pick(touch.found, c.FOUND * k, w), pick(touch.joint_speed, k, w), h)
        near[k, w] = 1.0 if on else 0.0
        some = some or on
    return some


@inner
def choose_in_lanes(touch, h, first, status, near):
    """Put the contacts that may close in a step in any of the states into the problem; near[k, w] tells in which
    states. Returns whether there is room."""
    forget_problem(touch)
    count = min(WIDTH, status.shape[0] - first)
    for k in range(touch.contact_i.shape[0]):
        if is_moment(k, touch):  # goes with its point
            continue
        gap = load(touch.found, c.FOUND * k + c.FOUND_GAP)
        if largest(0.0 - gap) > -np.inf:
            if is_joint(k, touch):
                if choose_joint(k, touch, h, first, status, near) and not take_up(k, touch):
                    return False
                continue
            x = load3(touch.found, c.FOUND * k + c.FOUND_POINT)
            v_a, _ = motion_at(np.int64(touch.contact_i[k, c.CONTACT_A]), x, touch.states)
            v_b, _ = motion_at(np.int64(touch.contact_i[k, c.CONTACT_B]), x, touch.states)
            store(near, k, dot(load3(touch.found, c.FOUND * k + c.FOUND_NORMAL), sub(v_a, v_b)))
            some = False
            for w in range(WIDTH):
                on = w < count and status[first + w] == 0 and reaches(pick(touch.found, c.FOUND * k, w), near[k, w], h)
                near[k, w] = 1.0 if on else 0.0
                some = some or on
            if some and not take_up_in_lanes(k, touch, near):
                return False
    return True


@inline
def take_up_in_lanes(k, touch, near):
    """As `take_up_point`; its moments are in the problem of the same states."""
    pair = np.int64(touch.contact_i[k, c.CONTACT_PAIR])
    for back in range(1, 1 + np.int64(touch.pair_i[pair, c.PAIR_MOMENTS])):
        store(near, k + back * np.int64(touch.pair_i[pair, c.PAIR_COUNT]), load(near, k))
    return take_up_point(k, touch)


@inline
def add_in_lanes(a, delta):
    """As `add_answer`."""
    for j in range(a.shape[0]):
        d = load(delta, j)
        total = load(a, j) + d
        store(a, j, where_positive(maximum(total, 0.0 - total) - AT_REST * maximum(d, 0.0 - d), total, 0.0 * total))


@inner
def contact_step_in_lanes(touch, own, problem, structure, q, v, a, h, work, first, status, held, residual):
    """As `contact_step`. Returns whether there was room."""
    see_bodies(touch, structure, q, v)
    find_touching(touch, 4.0 * h * largest(fastest_shape(touch)) + QUICK * h * h)
    clear(touch.shift)
    if not choose_in_lanes(touch, h, first, status, own.near):
        return False
    level_points(touch)
    fly(structure.body_i, v, a, h, a)
    if touch.count[ACTIVE] > 0:
        arrange(touch, structure.body_i, True)
        make_rows(touch, structure.body_i)
        make_problem(touch, 0, structure, own.theta, work)
        for j in range(v.shape[0]):
            store(touch.delta, j, load(a, j) - load(v, j))
        change_of_contacts(touch, structure, touch.delta)
        load_dry(touch, 0, touch.count[ACTIVE], h, own.theta, touch.change)
        if touch.count[SOFT] > 0:
            soften(touch, 0, touch.count[ACTIVE], h, own.theta)
        overlap = impulses_in_lanes(touch, own, problem, h, held, first, status, residual)
        touch.island[1] = touch.count[ACTIVE]  # those of all states together
        answer_forces(touch, structure, own.force, work, touch.delta)
        add_in_lanes(a, touch.delta)
        if overlap:
            answer_forces(touch, structure, own.shifts, work, touch.shift)
    else:
        for w in range(min(WIDTH, status.shape[0] - first)):
            for i in range(held.shape[1]):
                held[first + w, i] = 0.0
    for j in range(v.shape[0]):
        store(v, j, load(a, j))
    travel(structure.body_i, q, v, h, touch.shift)
    return True


@entry("rollouts of batches with contact", types.void(
    PLAN, CONTACTS, int64, int64, int64, table, table, int64, floats, float64, float64, table, table, floats, table,
    table, counts, floats, counts, floats, floats, int64, int64, int64), seconds=25)
def contact_steps_lanes(plan, contact, places, handles, address, params, controls, substeps, origin, step, slack, y,
                        held, times, q_at, v_at, status, reached, steps, residual, clock, room, start, stop):
    """As `fixed_steps_lanes` by symplectic Euler, with contact; `held` (B, 3 contacts + 1) are the last contact forces,
    and 1 in states that are solved one by one, `places` contacts that may be in a problem, `handles` bodies; `residual`
    the largest of each state's problems."""
    touch = lane_touch(contact, plan.body_i, plan.dof_f.shape[1], places, handles)
    own, problem = lane_impulses(touch.contact_i.shape[0], places), lane_problem(FEW)
    outlived(touch, outlived(own, outlived(problem, steps_in_lanes(
        plan, hold(touch), hold(own), hold(problem), address, params, controls, substeps, origin, step, slack, y, held,
        times, q_at, v_at, status, reached, steps, residual, clock, room, start, stop))))


@allocating
def steps_in_lanes(plan, touch, own, problem, address, params, controls, substeps, origin, step, slack, y, held, times,
                   q_at, v_at, status, reached, steps, residual, clock, room, start, stop):
    body_i, dof_f = plan.body_i, plan.dof_f
    nq, nv = np.int64(body_i[-1, f.HEAD_NQ]), dof_f.shape[1]
    size_work, size_total, size_wrench, size_states = scratch_sizes(body_i, dof_f, False)
    lanes, tau, a, work = lane_array(nq + nv), lane_array(nv), lane_array(nv), lane_array(size_work)
    total, wrench, states = lane_array(size_total), lane_array(size_wrench), lane_array(size_states)
    judged, nothing = lane_array(2), lane_array(0)
    driven = WIDTH if address != 0 else 0
    q_rows, v_rows, tau_rows = np.empty((driven, nq)), np.empty((driven, nv)), np.zeros((driven, nv))
    q, v = lanes[:nq], lanes[nq:]
    t, place, taken, most = clock[TIME], np.int64(clock[NEXT]), np.int64(clock[TAKEN]), 0
    for first in range(start, stop, WIDTH):
        gather(y, first, lanes)
        t, place, done, going = clock[TIME], np.int64(clock[NEXT]), 0, running(first, status)
        while place < times.shape[0]:
            if t >= times[place]:
                keep(q, q_at, first, place * nq, status)
                keep(v, v_at, first, place * nv, status)
                place += 1
                continue
            if done == room:
                break
            h, last = fixed_step(t, times[place], step, slack)
            if going > 0:
                given_lanes(controls, (taken + done) // substeps, first, tau)
                if address != 0:
                    drive_lanes(address, t, origin, q, v, params, q_rows, v_rows, tau_rows, tau, first, lanes, y, t,
                                done, status, reached, steps)
                margin, residue = accelerate(body_i, plan.body_f, dof_f, plan.link_i, plan.link_f, plan.spring_i,
                                             plan.spring_f, q, v, tau, nothing, a, work, total, wrench, states)
                going = judge(margin, residue, judged, first, lanes, y, t, done, status, reached, steps)
            if going > 0 and not contact_step_in_lanes(touch, own, problem, plan, q, v, a, h, work, first, status, held,
                                                       residual):
                for w in range(min(WIDTH, status.shape[0] - first)):
                    if status[first + w] == 0:
                        leave(CONTACTS_FULL, w, first, lanes, y, t, done, status, reached, steps)
                going = 0
            t = times[place] if last else t + h
            done += 1
        keep(lanes, y, first, 0, status)
        for k in range(first, min(first + WIDTH, stop)):
            if status[k] == 0:
                reached[k] = t
                steps[k] += done
        most = max(most, done)
    clock[TIME], clock[NEXT], clock[TAKEN] = t, place, taken + most
