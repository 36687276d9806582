"""Impulses of W states in a time step: their contact problems together in lanes, or one by one.

A state goes through `lane_problem.py` if its contacts are one island, of at most FEW, without a rebound: first its
problem, then that of its penetration, as in `island_impulses.py`. States may have different contacts: number i of each
is in the same slot. Where all states have all contacts, Theta is used where it is. Other states, and those without a
solution in lanes, are solved one by one, island by island. So are those in which one of several contacts of the same
bodies slides, until none does: neither friction nor motion need be unique there, and they go on as a single state
would. The result of a state depends on its own numbers alone: rows that a slot does not have in a state are zero
there, and each state ends by its own residual.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.contact.contact_memory import ACTIVE
from bunraku.contact.island_impulses import island_impulses
from bunraku.contact.islands import find_islands
from bunraku.contact.joint_rows import is_dry, is_joint
from bunraku.contact.lane_problem import (
    find_velocities,
    magnitude,
    slip_of,
    solve_in_lanes,
)
from bunraku.contact.moment_rows import is_moment, kind_of
from bunraku.contact.soft_contacts import is_soft, part_of_overlap
from bunraku.entries.signatures import lane_array
from bunraku.jit import allocating, inline, inner
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import clear, constant, largest, load, maximum, minimum, pick, store, where_positive
from bunraku.tolerances import AT_REST, BORDER_SLIP, CLOSED_GAP, LAW_CLOSE, OVERLAP_LEFT

FEW = 12       # contacts of a state that is solved in lanes


class LaneImpulses(NamedTuple):
    """Buffers for the impulses of W states; by place of a contact in `touch.active`, or by slot."""

    near: Any      # by contact: approach of its surfaces; then in which states it is in the problem (1 or 0)
    theta: Any     # 9 places^2, by rows
    force: Any     # 3 places, impulses
    shifts: Any    # 3 places, impulses that remove penetration
    counts: Any    # W, contacts of each state
    slots: Any     # FEW x W, their places
    wanted: Any    # 1, positive in states that lanes solve
    compact: Any   # 9 FEW^2, Theta by slot
    gap: Any       # FEW
    friction: Any  # FEW
    bounce: Any    # FEW
    dry: Any       # FEW, 1: dry friction of a joint, whose normal force is given, or a soft contact
    ratio: Any     # FEW, of soft contacts, as in `soft_contacts.py`; 0: rigid
    twin: Any      # FEW, 1: the state has another contact of the same bodies
    before: Any    # 3 FEW, velocity at the beginning of the step
    free: Any      # 3 FEW, at its end without impulses


@allocating
def lane_impulses(contacts, places):
    return LaneImpulses(
        lane_array(contacts), lane_array(9 * places * places), lane_array(3 * places), lane_array(3 * places),
        np.zeros(WIDTH, np.int64), np.zeros(FEW * WIDTH, np.int64), lane_array(1), lane_array(9 * FEW * FEW),
        lane_array(FEW), lane_array(FEW), lane_array(FEW), lane_array(FEW), lane_array(FEW), lane_array(FEW),
        lane_array(3 * FEW), lane_array(3 * FEW))


@inner
def impulses_in_lanes(touch, own, p, h, held, first, status, residual):
    """Impulses of the states from `first` on into `own.force`, and those that remove penetration into `own.shifts`.
    Returns whether there are any of these."""
    clear(own.force[:3 * touch.count[ACTIVE]])
    clear(own.shifts[:3 * touch.count[ACTIVE]])
    overlap = False
    count, all_alike = find_slots(touch, own, held, first, status)
    if count > 0:
        load_slots(touch, own, p, count, all_alike, h, held, first)
        overlap = solve_slots(own, own.theta if all_alike else own.compact, p, count, h)
        keep_slots(touch, own, p, count, all_alike, overlap)
    for w in range(min(WIDTH, status.shape[0] - first)):
        if status[first + w] == 0:
            if own.wanted[0, w] > 0.0:
                keep_forces(w, touch, own, held[first + w])
                residual[first + w] = max(residual[first + w], p.residual[0, w])
            else:
                touch.residual[0] = 0.0
                overlap = solve_one_by_one(w, touch, own, h, held[first + w]) or overlap
                residual[first + w] = max(residual[first + w], touch.residual[0])
    return overlap


# -- in lanes ----------------------------------------------------------------------------------------------------------


@inner
def find_slots(touch, own, held, first, status):
    """States that go through lanes (`wanted`), and their contacts by slot. Returns the largest number of these, and
    whether each such state has all contacts."""
    active, most, all_alike, islands = touch.count[ACTIVE], 0, True, 0
    for w in range(WIDTH):
        count = 0
        own.wanted[0, w] = 0.0
        if w < status.shape[0] - first and status[first + w] == 0:
            for place in range(active):
                if own.near[touch.active[place], w] > 0.0:
                    if count < FEW:
                        own.slots[count * WIDTH + w] = place
                    touch.own[count] = touch.active[place]
                    count += 1
            if 0 < count <= FEW and held[first + w, held.shape[1] - 1] == 0.0:
                if count < active or islands == 0:
                    found = find_islands(count, touch.own, False, touch)
                    if count == active:
                        islands = found  # the same in all states that have all
                if (islands if count == active else found) == 1:
                    own.wanted[0, w] = 1.0
                    most, all_alike = max(most, count), all_alike and count == active
        own.counts[w] = count
    return most, all_alike


@inline
def same_bodies(touch, k, other):
    return (not is_joint(k, touch) and not is_moment(k, touch) and not is_moment(other, touch)
            and touch.contact_i[k, c.CONTACT_A] == touch.contact_i[other, c.CONTACT_A]
            and touch.contact_i[k, c.CONTACT_B] == touch.contact_i[other, c.CONTACT_B])


@inner
def load_slots(touch, own, p, count, all_alike, h, held, first):
    """The problems of the states by slot; zero in slots that a state does not have."""
    if all_alike:
        load_all(touch, own, p, count, h, held, first)
    else:
        load_some(touch, own, p, count, h, held, first)


@inner
def load_all(touch, own, p, count, h, held, first):
    """The same, of states with the same contacts."""
    zero, wanted = constant(own.gap, 0.0), load(own.wanted, 0)
    for i in range(count):
        k = touch.active[i]
        gap = zero if is_moment(k, touch) else load(touch.found, c.FOUND * k + c.FOUND_GAP)
        store(own.gap, i, where_positive(wanted, gap, zero))
        store(own.friction, i, zero + touch.contact_f[k, c.FRICTION])
        store(own.bounce, i, zero + touch.contact_f[k, c.RESTITUTION])
        store(own.dry, i, zero + (1.0 if is_dry(k, touch) or is_soft(k, touch) else 0.0))
        store(own.ratio, i, zero + part_of_overlap(k, touch, h))
        store(own.twin, i, zero)
        for j in range(count):
            if j != i and same_bodies(touch, k, touch.active[j]):
                store(own.twin, i, zero + 1.0)
        for r in range(3 * i, 3 * i + 3):
            before = load(touch.speed, r)
            store(own.before, r, where_positive(wanted, before, zero))
            store(own.free, r, where_positive(wanted, before + load(touch.change, r), zero))
            for w in range(WIDTH):
                p.force[r, w] = held[min(first + w, held.shape[0] - 1), 3 * k + r - 3 * i]


@inner
def load_some(touch, own, p, count, h, held, first):
    """The same, of states with contacts of their own."""
    size = 3 * touch.count[ACTIVE]
    for i in range(count):
        for w in range(WIDTH):
            there = own.wanted[0, w] > 0.0 and i < own.counts[w]
            place = own.slots[i * WIDTH + w] if there else 0
            k = touch.active[place]
            own.gap[i, w] = 0.0 if not there or is_moment(k, touch) else pick(touch.found, c.FOUND * k + c.FOUND_GAP, w)
            own.friction[i, w] = touch.contact_f[k, c.FRICTION] if there else 0.0
            own.bounce[i, w] = touch.contact_f[k, c.RESTITUTION] if there else 0.0
            own.dry[i, w] = 1.0 if there and (is_dry(k, touch) or is_soft(k, touch)) else 0.0
            own.ratio[i, w] = part_of_overlap(k, touch, h) if there else 0.0
            own.twin[i, w] = 0.0
            for j in range(own.counts[w] if there else 0):
                if j != i and same_bodies(touch, k, touch.active[own.slots[j * WIDTH + w]]):
                    own.twin[i, w] = 1.0
            for r in range(3):
                before = pick(touch.speed, 3 * place + r, w) if there else 0.0
                own.before[3 * i + r, w] = before
                own.free[3 * i + r, w] = before + pick(touch.change, 3 * place + r, w) if there else 0.0
                p.force[3 * i + r, w] = held[first + w, 3 * k + r] if there else 0.0
    for w in range(WIDTH):
        for i in range(count):
            for j in range(count):
                there = own.wanted[0, w] > 0.0 and i < own.counts[w] and j < own.counts[w]
                a, b = (own.slots[i * WIDTH + w], own.slots[j * WIDTH + w]) if there else (0, 0)
                for r in range(3):
                    for s in range(3):
                        own.compact[3 * count * (3 * i + r) + 3 * j + s, w] = (
                            pick(own.theta, (3 * a + r) * size + 3 * b + s, w) if there else 0.0)


@inline
def normal_sides(gap, ratio, before, free, restitution, h):
    """As `normal_side` without a rebound; and 1 where there is one."""
    zero = 0.0 * gap
    closes = where_positive(gap + h * free, zero, zero + 1.0)
    rebounds = where_positive(0.0 - restitution * before - 2.0 * magnitude(free - before), closes, zero)
    return where_positive(gap - CLOSED_GAP, gap / h, ratio * gap), where_positive(restitution, rebounds, zero)


@inner
def solve_slots(own, theta, p, count, h):
    """Impulses of the wanted states, into `p.force`, and without penetration, into `own.before`; leaves those wanted
    that are solved. Returns whether there is penetration."""
    zero = constant(own.gap, 0.0)
    wanted, deepest = load(own.wanted, 0), zero
    for i in range(count):
        side, rebounds = normal_sides(load(own.gap, i), load(own.ratio, i), load(own.before, 3 * i),
                                      load(own.free, 3 * i), load(own.bounce, i), h)
        wanted = where_positive(rebounds, zero, wanted)
        deepest = minimum(deepest, where_positive(load(own.ratio, i), zero, load(own.gap, i)))
        store(p.mu, i, load(own.friction, i))
        store(p.b, 3 * i, load(own.free, 3 * i) + side)
        for r in range(1, 3):
            store(p.b, 3 * i + r, load(own.free, 3 * i + r))
    store(p.wanted, 0, wanted)
    solve_in_lanes(p, theta, count)
    residual = load(p.residual, 0)
    wanted = where_positive(LAW_CLOSE - residual, wanted, zero)
    for i in range(count):
        slides = where_positive(slip_of(p, i) - BORDER_SLIP * load(p.size, 0), load(own.twin, i), zero)
        wanted = where_positive(slides, zero, wanted)
    overlaps = where_positive(0.0 - OVERLAP_LEFT - deepest, wanted, zero)
    parts = largest(overlaps) > 0.0
    if parts:
        wanted = part_slots(own, theta, p, count, wanted, overlaps, h)
    store(own.wanted, 0, wanted)
    store(p.residual, 0, residual)
    return parts


@inner
def part_slots(own, theta, p, count, wanted, overlaps, h):
    """As `part_shapes`: impulses that remove penetration, into `own.before`. Returns the states that are solved."""
    zero = constant(own.gap, 0.0)
    find_velocities(p, theta, count)
    taken, given = zero, zero
    for i in range(count):
        left = load(p.velocity, 3 * i) - load(p.b, 3 * i) + load(own.free, 3 * i)
        store(own.gap, i, load(own.gap, i) + h * left)
        for r in range(3):
            f, b, free = load(p.force, 3 * i + r), load(p.b, 3 * i + r), load(own.free, 3 * i + r)
            if r == 0:
                f = where_positive(load(own.dry, i), zero, f)  # no work of a given normal force counts, nor a spring's
            taken = taken - 0.5 * f * (free + (load(p.velocity, 3 * i + r) - b + free))
            given = given + magnitude(f * free)
    taken = where_positive(magnitude(taken) - AT_REST * given, taken, zero)
    for i in range(3 * count):
        gains = load(own.free, i) - load(own.before, i)
        store(own.free, i, gains)
        store(own.before, i, load(p.force, i))
        store(p.force, i, zero)
        store(p.b, i, zero)
    for i in range(count):
        store(p.mu, i, zero)
        gap = load(own.gap, i)
        store(p.b, 3 * i, where_positive(load(own.ratio, i), maximum(gap, zero), gap))
    store(p.wanted, 0, overlaps)
    solve_in_lanes(p, theta, count)
    lifting = zero
    for i in range(count):
        lifting = lifting - load(p.force, 3 * i) * load(own.free, 3 * i) / h
    whole = where_positive(lifting - taken, maximum(taken, zero) / where_positive(lifting, lifting, 1.0), zero + 1.0)
    part = where_positive(overlaps, whole, zero)
    for i in range(3 * count):
        f = load(own.before, i)
        store(own.before, i, where_positive(overlaps, part * load(p.force, i), zero))
        store(p.force, i, f)
    solved = where_positive(LAW_CLOSE - load(p.residual, 0), wanted, zero)
    return where_positive(overlaps, solved, wanted)


@inner
def keep_slots(touch, own, p, count, all_alike, parts):
    """The impulses of the wanted states at the places of their contacts."""
    zero, wanted = constant(own.gap, 0.0), load(own.wanted, 0)
    for i in range(3 * count):
        force = where_positive(wanted, load(p.force, i), zero)
        shift = where_positive(wanted, load(own.before, i), zero) if parts else zero
        if all_alike:
            store(own.force, i, force)
            store(own.shifts, i, shift)
        else:
            store(p.force, i, force)
            store(own.before, i, shift)
    if not all_alike:
        for w in range(WIDTH):
            for i in range(own.counts[w] if own.wanted[0, w] > 0.0 else 0):
                to = 3 * own.slots[i * WIDTH + w]
                for r in range(3):
                    own.force[to + r, w] = pick(p.force, 3 * i + r, w)
                    own.shifts[to + r, w] = pick(own.before, 3 * i + r, w)


@inner
def keep_forces(w, touch, own, held):
    """The impulses of a state, as the contact state of the run."""
    for i in range(held.shape[0]):
        held[i] = 0.0
    for place in range(touch.count[ACTIVE]):
        k = touch.active[place]
        if own.near[k, w] > 0.0:
            for r in range(3):
                held[3 * k + r] = own.force[3 * place + r, w]


# -- one by one --------------------------------------------------------------------------------------------------------


@inner
def load_in_lane(w, touch, theta, first, count, h, held):
    """As `load_island`, of the contacts of one state, whose places are in `touch.own` from `first` on."""
    size = 3 * touch.count[ACTIVE]
    for i in range(count):
        place = touch.own[first + i]
        k = touch.active[place]
        touch.gap[i] = 0.0 if is_moment(k, touch) else pick(touch.found, c.FOUND * k + c.FOUND_GAP, w)
        touch.law[i], touch.ratio[i] = kind_of(k, touch), part_of_overlap(k, touch, h)
        touch.friction[i], touch.bounce[i] = touch.contact_f[k, c.FRICTION], touch.contact_f[k, c.RESTITUTION]
        touch.dry[i] = is_dry(k, touch)
        for r in range(3):
            touch.arriving[3 * i + r] = pick(touch.speed, 3 * place + r, w)
            touch.gaining[3 * i + r] = pick(touch.change, 3 * place + r, w)
            touch.force[3 * i + r] = held[3 * k + r]
            o, to = (3 * place + r) * size, 3 * count * (3 * i + r)
            for j in range(count):
                for s in range(3):
                    touch.theta[to + 3 * j + s] = pick(theta, o + 3 * touch.own[first + j] + s, w)


@inner
def solve_one_by_one(w, touch, own, h, held):
    """The contact problems of one state, island by island. Returns whether there is penetration."""
    chosen, overlap = 0, False
    for place in range(touch.count[ACTIVE]):
        k = touch.active[place]
        if own.near[k, w] > 0.0:
            touch.own[chosen], touch.place[k] = k, place
            chosen += 1
    islands = find_islands(chosen, touch.own, False, touch)
    for i in range(chosen):
        touch.own[i] = touch.place[touch.own[i]]
    slides = False
    for n in range(islands):
        first = touch.island[n]
        count = touch.island[n + 1] - first
        load_in_lane(w, touch, own.theta, first, count, h, held)
        parts = island_impulses(touch, count, h)
        overlap = overlap or parts
        slides = slides or twins_slide(touch, first, count)
        for i in range(count):
            to = 3 * touch.own[first + i]
            for r in range(3):
                own.force[to + r, w] = touch.force[3 * i + r]
                own.shifts[to + r, w] = touch.parting[3 * i + r]
    keep_forces(w, touch, own, held)
    held[held.shape[0] - 1] = 1.0 if slides else 0.0
    return overlap


@inner
def twins_slide(touch, first, count):
    """Whether one of several contacts of the same bodies slides, with friction."""
    for i in range(count):
        k = touch.active[touch.own[first + i]]
        if touch.mode[i] == c.SLIDING and touch.friction[i] > 0.0:
            for j in range(count):
                if j != i and same_bodies(touch, k, touch.active[touch.own[first + j]]):
                    return True
    return False
