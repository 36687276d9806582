"""The compiled part of `build`: from one row per link and per element of a joint to the arrays of `fields.py`.

Structure changes while a mechanism moves, so this runs between two time steps: O(links), a few microseconds for a
human figure. A joint's elements become bodies; a link without elements (Fixed) joins the body that carries its parent.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from bunraku.jit import allocating, entry, inner
from bunraku.plan import fields as f
from bunraku.plan.elements import (
    E_ANGULAR,
    E_KIND,
    E_LINEAR,
    E_NQ,
    E_NV,
    E_POINT,
    E_TURN,
    L_COM,
    L_INERTIA,
    L_MASS,
    L_POSITION,
    L_ROTATION,
)

integers = types.int32[:, ::1]
table = types.float64[:, ::1]
numbers = types.int64[::1]
flags = types.boolean[::1]


@entry("plans", types.void(numbers, numbers, table, table, table, integers, table, integers, table, numbers, numbers,
                           numbers), seconds=3, brief=True)
def assemble(parents, counts, elements, rows, dof_f, body_i, body_f, link_i, link_f, body_link, dof_link,
             coordinate_link):
    """Fill the arrays of a plan from links: parents, number of elements of each, elements (E_...), rows (L_...)."""
    n = body_i.shape[0] - 1
    start, carrier = number_bodies(parents, counts)
    place_links(parents, counts, elements, rows, start, body_i, body_f, link_i, link_f, body_link, dof_link,
                coordinate_link)
    choose_eliminations(body_i, dof_f)
    assign_slots(body_i, np.zeros(n, np.bool_))
    open_groups(body_i, body_f)
    place_records(body_i)
    acts = False
    for j in range(dof_f.shape[1]):
        for k in (f.DAMPING, f.STIFFNESS, f.LIMIT_STIFFNESS, f.LIMIT_DAMPING):
            acts = acts or dof_f[k, j] != 0.0
    body_i[n, f.HEAD_PASSIVE] = 1 if acts else 0
    body_i[n, f.HEAD_NQ] = coordinate_link.shape[0]
    last, ordered = -1, True
    for i in range(n):
        if body_i[i, f.DOF] > 0:
            ordered = ordered and body_i[i, f.V_INDEX] > last
            last = body_i[i, f.V_INDEX]
    body_i[n, f.HEAD_ORDERED] = 1 if ordered else 0


@entry("plans", types.void(integers, flags))
def mark_slots(body_i, keep):
    assign_slots(body_i, keep)


@entry("plans", types.void(integers))
def lay_out_records(body_i):
    place_records(body_i)


@allocating
def number_bodies(parents, counts):
    """First body of each link's joint, numbered depth first so that every body's first child follows it directly; and
    the link whose joint moves each link (itself unless Fixed), -1 for ground."""
    n = parents.shape[0]
    carrier = np.empty(n, np.int64)
    child, last, brother = np.full(n + 1, -1), np.full(n + 1, -1), np.full(n, -1)  # the last entry is the ground's
    for i in range(n):
        above = carrier[parents[i]] if parents[i] >= 0 else -1
        carrier[i] = i if counts[i] > 0 else above
        if counts[i] > 0:
            if child[above] < 0:
                child[above] = i
            else:
                brother[last[above]] = i
            last[above] = i
    start = np.full(n, -1)
    body, i = 0, child[n]
    while i >= 0:
        start[i] = body
        body += counts[i]
        if child[i] >= 0:
            i = child[i]
            continue
        while i >= 0 and brother[i] < 0:
            i = carrier[parents[i]] if parents[i] >= 0 else -1
        if i >= 0:
            i = brother[i]
    return start, carrier


@inner
def place_links(parents, counts, elements, rows, start, body_i, body_f, link_i, link_f, body_link, dof_link,
                coordinate_link):
    """Frames and masses of bodies, and the place of every link in its body."""
    nq, nv, e = 0, 0, 0
    for i in range(parents.shape[0]):
        row, frame = rows[i], link_f[i]
        # the joint frame in the body that carries the parent
        if parents[i] < 0:
            body = -1
            for k in range(9):
                frame[f.LINK_ROTATION + k] = row[L_ROTATION + k]
            for k in range(3):
                frame[f.LINK_OFFSET + k] = row[L_POSITION + k]
        else:
            above = link_f[parents[i]]
            body = link_i[parents[i], f.LINK_BODY]
            for k in range(3):
                R0, R1, R2 = above[3 * k], above[3 * k + 1], above[3 * k + 2]
                frame[f.LINK_OFFSET + k] = (above[f.LINK_OFFSET + k] + R0 * row[L_POSITION]
                                            + R1 * row[L_POSITION + 1] + R2 * row[L_POSITION + 2])
                for j in range(3):
                    frame[3 * k + j] = (R0 * row[L_ROTATION + j] + R1 * row[L_ROTATION + 3 + j]
                                        + R2 * row[L_ROTATION + 6 + j])
        for k in range(counts[i]):
            element = elements[e]
            e += 1
            new = start[i] + k
            add_body(body_i[new], body_f[new], body, element, frame, nq, nv)
            body = new
            body_link[body] = i
            for _ in range(int(element[E_NQ])):
                coordinate_link[nq] = i
                nq += 1
            for _ in range(int(element[E_NV])):
                dof_link[nv] = i
                nv += 1
        link_i[i, f.LINK_BODY] = body
        if body >= 0:
            attach_mass(row, frame, body_i[body], body_f[body])


@inner
def add_body(integer, real, parent, element, frame, nq, nv):
    """A body on the joint frame; `frame` becomes the joint's child frame in it."""
    integer[f.PARENT] = parent
    integer[f.KIND] = int(element[E_KIND])
    integer[f.Q_INDEX], integer[f.V_INDEX], integer[f.DOF] = nq, nv, int(element[E_NV])
    x, y, z = element[E_POINT], element[E_POINT + 1], element[E_POINT + 2]
    for k in range(3):  # R turn
        for j in range(3):
            real[f.ROTATION + 3 * k + j] = (frame[3 * k] * element[E_TURN + j]
                                            + frame[3 * k + 1] * element[E_TURN + 3 + j]
                                            + frame[3 * k + 2] * element[E_TURN + 6 + j])
    p0 = frame[9] + frame[0] * x + frame[1] * y + frame[2] * z
    p1 = frame[10] + frame[3] * x + frame[4] * y + frame[5] * z
    p2 = frame[11] + frame[6] * x + frame[7] * y + frame[8] * z
    for k in range(3):  # in joint axes
        real[f.OFFSET + k] = (real[f.ROTATION + k] * p0 + real[f.ROTATION + 3 + k] * p1
                              + real[f.ROTATION + 6 + k] * p2)
    real[f.RATE_ANGULAR], real[f.RATE_LINEAR] = element[E_ANGULAR], element[E_LINEAR]
    # does it only rename axes in turn, from RENAMED of elements.py: column 0 is axis k, column 1 the next, ...
    integer[f.COLUMN] = -1
    for k in range(3):
        if (real[f.ROTATION + 3 * k] == 1.0 and real[f.ROTATION + 3 * ((k + 1) % 3) + 1] == 1.0
                and real[f.ROTATION + 3 * ((k + 2) % 3) + 2] == 1.0):
            zeros = 0
            for j in range(9):
                zeros += 1 if real[f.ROTATION + j] == 0.0 else 0
            if zeros == 6:
                integer[f.COLUMN] = k
    for k in range(3):  # the child frame: turned back, its origin off the axis point
        for j in range(3):
            frame[3 * k + j] = element[E_TURN + 3 * j + k]
        frame[f.LINK_OFFSET + k] = -(element[E_TURN + k] * x + element[E_TURN + 3 + k] * y
                                     + element[E_TURN + 6 + k] * z)


@inner
def attach_mass(row, frame, integer, real):
    """Add a link's mass to its body, whose inertia stays about the common centre of mass."""
    m, own = row[L_MASS], real[f.MASS]
    heavy = m > 0.0
    for k in range(9):
        heavy = heavy or row[L_INERTIA + k] != 0.0
    if not heavy:
        return
    integer[f.MASSIVE] = 1
    total = own + m
    share = m / total if total > 0.0 else 0.0
    x, y, z = row[L_COM], row[L_COM + 1], row[L_COM + 2]
    gap0 = frame[9] + frame[0] * x + frame[1] * y + frame[2] * z - real[f.COM]
    gap1 = frame[10] + frame[3] * x + frame[4] * y + frame[5] * z - real[f.COM + 1]
    gap2 = frame[11] + frame[6] * x + frame[7] * y + frame[8] * z - real[f.COM + 2]
    real[f.MASS] = total
    real[f.COM] += share * gap0
    real[f.COM + 1] += share * gap1
    real[f.COM + 2] += share * gap2
    apart = own * share
    real[f.INERTIA] += apart * (gap1 * gap1 + gap2 * gap2)
    real[f.INERTIA + 1] -= apart * gap0 * gap1
    real[f.INERTIA + 2] -= apart * gap0 * gap2
    real[f.INERTIA + 3] += apart * (gap0 * gap0 + gap2 * gap2)
    real[f.INERTIA + 4] -= apart * gap1 * gap2
    real[f.INERTIA + 5] += apart * (gap0 * gap0 + gap1 * gap1)
    place = f.INERTIA
    for k in range(3):  # R I R', upper half
        for j in range(k, 3):
            for a in range(3):
                for b in range(3):
                    real[place] += frame[3 * k + a] * row[L_INERTIA + 3 * a + b] * frame[3 * j + b]
            place += 1


@inner
def choose_eliminations(body_i, dof_f):
    """Choose how forward dynamics eliminates each joint."""
    for i in range(body_i.shape[0] - 1):
        kind, first = body_i[i, f.KIND], body_i[i, f.V_INDEX]
        rotor = False
        for j in range(first, first + body_i[i, f.DOF]):
            rotor = rotor or dof_f[f.ARMATURE, j] > 0.0
        choice = f.COLUMNS
        if kind == f.FIXED:
            choice = f.LOCKED
        elif kind == f.SPHERICAL and not rotor:
            choice = f.BALL
        elif kind == f.FREE and not rotor:
            choice = f.LOOSE
        body_i[i, f.ELIMINATION] = choice


@inner
def assign_slots(body_i, keep):
    """Slots that hand results from body to body: one of its own to each body that branches or is to keep one; the
    others share the carry."""
    n = body_i.shape[0] - 1
    for i in range(n):
        body_i[i, f.CHILD_SLOT] = 0  # counts children for now
    for i in range(n):
        if body_i[i, f.PARENT] >= 0:
            body_i[body_i[i, f.PARENT], f.CHILD_SLOT] += 1
    slots = 2
    for i in range(n):
        own = body_i[i, f.CHILD_SLOT] > 1 or keep[i]
        body_i[i, f.OWN_SLOT] = f.SLOT_SIZE * slots if own else f.SLOT_CARRY
        slots += 1 if own else 0
        body_i[i, f.CHILD_SLOT] = body_i[i, f.OWN_SLOT] if own or body_i[i, f.CHILD_SLOT] > 0 else 0
    for i in range(n):
        parent = body_i[i, f.PARENT]
        body_i[i, f.PARENT_SLOT] = body_i[parent, f.OWN_SLOT] if parent >= 0 else 0
        body_i[i, f.ADDS] = 1 if body_i[i, f.PARENT_SLOT] > f.SLOT_CARRY else 0
    body_i[n, f.HEAD_SLOTS] = slots


@allocating
def open_groups(body_i, body_f):
    """Open a new group at every root and free joint, every GROUP_DEPTH joints, and where a small body would be far from
    the origin; also at spherical joints, whose elimination is simplest about their own origin. The mass matrix has
    nothing to eliminate, so its groups go on beyond them."""
    n = body_i.shape[0] - 1
    depth, reach = np.empty(n, np.int64), np.empty(n)
    body_i[:n, f.ANCHOR] = 0
    for flag in (f.OPENS, f.OPENS_IN_MATRIX):
        for i in range(n):
            row, parent, kind = body_f[i], body_i[i, f.PARENT], body_i[i, f.KIND]
            offset = math.sqrt(row[f.OFFSET] ** 2 + row[f.OFFSET + 1] ** 2 + row[f.OFFSET + 2] ** 2)
            distance = offset + (reach[parent] if parent >= 0 else 0.0)
            own = parent < 0 or kind == f.FREE or (kind == f.SPHERICAL and flag == f.OPENS)
            if own or depth[parent] + 1 >= f.GROUP_DEPTH or not within_reach(row, kind, distance):
                body_i[i, f.ANCHOR] += flag
                depth[i], reach[i] = 0, 0.0
            else:
                depth[i], reach[i] = depth[parent] + 1, distance


@inner
def within_reach(row, kind, distance):
    """Is a body at this distance from the origin large enough for its inertia to keep its digits?"""
    mass, x, y, z = row[f.MASS], row[f.COM] ** 2, row[f.COM + 1] ** 2, row[f.COM + 2] ** 2
    # how far from its joint's axis (z; any for a ball) the body's mass is: what the joint has to move
    moment = row[f.INERTIA + 5] + mass * (x + y)
    if kind == f.SPHERICAL:
        moment = min(moment, row[f.INERTIA] + mass * (y + z), row[f.INERTIA + 3] + mass * (x + z))
    size = math.sqrt(max(moment, 0.0) / mass) if mass > 0.0 else 0.0
    return size == 0.0 or distance <= f.GROUP_REACH * size - math.sqrt(x + y + z)


@inner
def place_records(body_i):
    """Places of the records in the work array of forward dynamics, and its size."""
    n = body_i.shape[0] - 1
    place = body_i[n, f.HEAD_SLOTS] * f.SLOT_SIZE
    before = 0
    for i in range(n):
        dof, elimination, anchor = body_i[i, f.DOF], body_i[i, f.ELIMINATION], body_i[i, f.ANCHOR] & f.OPENS != 0
        hinge = body_i[i, f.KIND] == f.REVOLUTE and elimination == f.COLUMNS and not anchor
        ball = elimination == f.BALL and body_i[i, f.MASSIVE] == 1
        body_i[i, f.PLAIN] = f.PLAIN_HINGE if hinge else f.PLAIN_BALL if ball else 0
        chained = body_i[i, f.PARENT] == i - 1 and i > 0 and body_i[i, f.ADDS] == 0
        body_i[i, f.RUNS_ON] = 1 if chained and before != 0 and before == body_i[i, f.PLAIN] else 0
        before = body_i[i, f.PLAIN]
        body_i[i, f.BODY_RECORD] = place
        place += f.REC_JOINT
        if elimination == f.COLUMNS:
            place += 6 * dof + f.REC_U_SIZE * max(dof - 1, 0)
        elif elimination != f.LOCKED:
            place += 9
        if anchor or dof > 1:  # after the joint part: an anchor's origin, then the results of further dofs
            place += 3
        if elimination == f.BALL:
            place += 2
    body_i[n, f.HEAD_WORK] = place
