"""Time-stepping of many states at once: `time_stepping_run.py` with W states in lanes, but for the contact problems.

Motion, geometry, rows, responses and Theta are computed in lanes for all contacts that any of the W states has; then
each state solves the problem of its own contacts, and the forces go back into lanes. The result of a state does not
depend on those beside it.
"""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.forward_passes import accelerate, scratch_sizes
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_entries import CONTACTS
from bunraku.contact.contact_memory import ACTIVE, lane_touch
from bunraku.contact.contact_step import QUICK, fly, reaches, travel
from bunraku.contact.island_impulses import island_impulses, solve_island, velocities_of_island
from bunraku.contact.islands import find_islands
from bunraku.contact.rows import arrange, forget_problem, make_rows, motion_at, take_up
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
from bunraku.runs.lane_run import NEXT, TIME, counts, drive_lanes, judge, keep, leave
from bunraku.spatial.algebra import dot, load3, sub
from bunraku.spatial.lane_memory import gather
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import clear, largest, load, maximum, pick, store, where_positive
from bunraku.tolerances import AT_REST


@inner
def choose_in_lanes(touch, h, first, status, near):
    """Put the contacts that may close in a step in any of the states into the problem; near[k, w] tells in which
    states. Returns whether there is room."""
    forget_problem(touch)
    count = min(WIDTH, status.shape[0] - first)
    for k in range(touch.contact_i.shape[0]):
        gap = load(touch.found, c.FOUND * k + c.FOUND_GAP)
        if largest(0.0 - gap) > -np.inf:
            x = load3(touch.found, c.FOUND * k + c.FOUND_POINT)
            v_a, _ = motion_at(np.int64(touch.contact_i[k, c.CONTACT_A]), x, touch.states)
            v_b, _ = motion_at(np.int64(touch.contact_i[k, c.CONTACT_B]), x, touch.states)
            store(near, k, dot(load3(touch.found, c.FOUND * k + c.FOUND_NORMAL), sub(v_a, v_b)))
            some = False
            for w in range(WIDTH):
                on = w < count and status[first + w] == 0 and reaches(pick(touch.found, c.FOUND * k, w), near[k, w], h)
                near[k, w] = 1.0 if on else 0.0
                some = some or on
            if some and not take_up(k, touch):
                return False
    return True


@inner
def load_in_lane(w, touch, theta, first, own, held):
    """As `load_island`, of `own` contacts of one state, whose places are in `touch.own` from `first` on."""
    size = 3 * touch.count[ACTIVE]
    for i in range(own):
        place = touch.own[first + i]
        k = touch.active[place]
        touch.gap[i] = pick(touch.found, c.FOUND * k + c.FOUND_GAP, w)
        touch.friction[i], touch.bounce[i] = touch.contact_f[k, c.FRICTION], touch.contact_f[k, c.RESTITUTION]
        for r in range(3):
            touch.arriving[3 * i + r] = pick(touch.speed, 3 * place + r, w)
            touch.gaining[3 * i + r] = pick(touch.change, 3 * place + r, w)
            touch.force[3 * i + r] = held[3 * k + r]
            o, to = (3 * place + r) * size, 3 * own * (3 * i + r)
            for j in range(own):
                for s in range(3):
                    touch.theta[to + 3 * j + s] = pick(theta, o + 3 * touch.own[first + j] + s, w)


@inner
def solve_in_lane(w, touch, theta, h, near, held, force, shifts):
    """The contact problems of one state, island by island: impulses into place w of `force`, those that remove
    penetration into that of `shifts`. Returns whether there are any."""
    count, chosen, overlap = touch.count[ACTIVE], 0, False
    for place in range(count):
        k = touch.active[place]
        if near[k, w] > 0.0:
            touch.own[chosen], touch.place[k] = k, place
            chosen += 1
        for r in range(3):
            force[3 * place + r, w] = 0.0
            shifts[3 * place + r, w] = 0.0
    islands = find_islands(chosen, touch.own, False, touch)
    for i in range(chosen):
        touch.own[i] = touch.place[touch.own[i]]
    for n in range(islands):
        first = touch.island[n]
        own = touch.island[n + 1] - first
        load_in_lane(w, touch, theta, first, own, held)
        parts = island_impulses(solve_island, velocities_of_island, 0, touch, own, h)
        overlap = overlap or parts
        for i in range(own):
            place = touch.own[first + i]
            for r in range(3):
                force[3 * place + r, w] = touch.force[3 * i + r]
                shifts[3 * place + r, w] = touch.parting[3 * i + r]
    for i in range(held.shape[0]):
        held[i] = 0.0
    for i in range(chosen):
        place = touch.own[i]
        for r in range(3):
            held[3 * touch.active[place] + r] = force[3 * place + r, w]
    return overlap


@inline
def add_in_lanes(a, delta):
    """As `add_answer`."""
    for j in range(a.shape[0]):
        d = load(delta, j)
        total = load(a, j) + d
        store(a, j, where_positive(maximum(total, 0.0 - total) - AT_REST * maximum(d, 0.0 - d), total, 0.0 * total))


@inner
def contact_step_in_lanes(touch, structure, q, v, a, h, work, first, status, near, held, residual, theta, force,
                          shifts):
    """As `contact_step`. Returns whether there was room."""
    see_bodies(touch, structure, q, v)
    find_touching(touch, 4.0 * h * largest(fastest_shape(touch)) + QUICK * h * h)
    clear(touch.shift)
    if not choose_in_lanes(touch, h, first, status, near):
        return False
    fly(structure.body_i, v, a, h, a)
    if touch.count[ACTIVE] > 0:
        arrange(touch, structure.body_i, True)
        make_rows(touch, structure.body_i)
        make_problem(touch, 0, structure, theta, work)
        for j in range(v.shape[0]):
            store(touch.delta, j, load(a, j) - load(v, j))
        change_of_contacts(touch, structure, touch.delta)
        overlap = False
        for w in range(WIDTH):
            if w < status.shape[0] - first and status[first + w] == 0:
                touch.residual[0] = 0.0
                overlap = solve_in_lane(w, touch, theta, h, near, held[first + w], force, shifts) or overlap
                residual[first + w] = max(residual[first + w], touch.residual[0])
            else:
                for i in range(3 * touch.count[ACTIVE]):
                    force[i, w] = 0.0
                    shifts[i, w] = 0.0
        touch.island[1] = touch.count[ACTIVE]  # those of all states together
        answer_forces(touch, structure, force, work, touch.delta)
        add_in_lanes(a, touch.delta)
        if overlap:
            answer_forces(touch, structure, shifts, work, touch.shift)
    else:
        for w in range(min(WIDTH, status.shape[0] - first)):
            for i in range(held.shape[1]):
                held[first + w, i] = 0.0
    for j in range(v.shape[0]):
        store(v, j, load(a, j))
    travel(structure.body_i, q, v, h, touch.shift)
    return True


@entry("rollouts of batches with contact", types.void(
    PLAN, CONTACTS, int64, int64, int64, table, float64, float64, table, table, floats, table, table, counts, floats,
    counts, floats, floats, int64, int64, int64), seconds=25)
def contact_steps_lanes(plan, contact, places, handles, address, params, step, slack, y, held, times, q_at, v_at,
                        status, reached, steps, residual, clock, room, start, stop):
    """As `fixed_steps_lanes` by symplectic Euler, with contact; `held` (B, 3 contacts) are the last contact forces,
    `places` contacts that may be in a problem, `handles` bodies; `residual` the largest of each state's problems."""
    touch = lane_touch(contact, plan.body_i, plan.dof_f.shape[1], places, handles)
    outlived(touch, steps_in_lanes(plan, hold(touch), address, params, step, slack, y, held, times, q_at, v_at, status,
                                   reached, steps, residual, clock, room, start, stop))


@allocating
def steps_in_lanes(plan, touch, address, params, step, slack, y, held, times, q_at, v_at, status, reached, steps,
                   residual, clock, room, start, stop):
    body_i, dof_f = plan.body_i, plan.dof_f
    nq, nv = np.int64(body_i[-1, f.HEAD_NQ]), dof_f.shape[1]
    size_work, size_total, size_wrench, size_states = scratch_sizes(body_i, dof_f, False)
    lanes, tau, a, work = lane_array(nq + nv), lane_array(nv), lane_array(nv), lane_array(size_work)
    total, wrench, states = lane_array(size_total), lane_array(size_wrench), lane_array(size_states)
    judged, nothing = lane_array(2), lane_array(0)
    driven = WIDTH if address != 0 else 0
    q_rows, v_rows, tau_rows = np.empty((driven, nq)), np.empty((driven, nv)), np.zeros((driven, nv))
    most, contacts = touch.active.shape[0], touch.contact_i.shape[0]
    near, theta = lane_array(contacts), lane_array(9 * most * most)
    force, shifts = lane_array(3 * most), lane_array(3 * most)
    q, v = lanes[:nq], lanes[nq:]
    t, place = clock[TIME], np.int64(clock[NEXT])
    for first in range(start, stop, WIDTH):
        gather(y, first, lanes)
        t, place, done, going = clock[TIME], np.int64(clock[NEXT]), 0, 1
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
                if address != 0:
                    drive_lanes(address, t, q, v, params, q_rows, v_rows, tau_rows, tau, first, lanes, y, t, done,
                                status, reached, steps)
                else:
                    clear(tau)
                margin, residue = accelerate(body_i, plan.body_f, dof_f, plan.link_i, plan.link_f, plan.spring_i,
                                             plan.spring_f, q, v, tau, nothing, a, work, total, wrench, states)
                going = judge(margin, residue, judged, first, lanes, y, t, done, status, reached, steps)
            if going > 0 and not contact_step_in_lanes(touch, plan, q, v, a, h, work, first, status, near, held,
                                                       residual, theta, force, shifts):
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
    clock[TIME], clock[NEXT] = t, place
