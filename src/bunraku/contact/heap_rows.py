"""A large island without a full matrix: rows Y with Theta = Y Y^T.

M^-1 = B B^T with the factors of the articulated-body algorithm: the innovations u_j of a unit force at a body, divided
by sqrt(D_j), are its row of B [Rodriguez, Jain, Kreutz-Delgado 1992]. So Theta = Y Y^T, with a row of Y for each
direction of a contact: one inward sweep, non-zero at the joints between the body and the ground only. With x = Y^T f
contact velocities are u = Y x + b, and |x|^2 / 2 is the kinetic energy that forces f add to a mechanism at rest.

A row has a block for each of the one or two trees that its contact acts on, as long as the tree has degrees of freedom,
in whole lanes (zeros at the end), so that products are SIMD instructions. Cost: O(contacts) products of such blocks.

Moments of friction (`moment_rows.py`) have the normal row of their point in place of an idle one: it tells how their
bound changes, and bears no force.
"""

from typing import NamedTuple

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.contact.contact_memory import ROW, ROWS
from bunraku.contact.heap_order import Fronts, make_fronts, padded
from bunraku.contact.moment_rows import is_moment
from bunraku.contact.response import factors_of, six_up
from bunraku.contact.soft_contacts import compliance
from bunraku.jit import allocating, inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import load, put_lane, take_lane, total


class Heap(NamedTuple):
    """A large island of K contacts and T trees; U floats for the unknowns in all, T of them in whole lanes."""

    size: np.ndarray     # (T,) int64, unknowns of each tree: its degrees of freedom
    start: np.ndarray    # (T,) int64, its first unknown
    side: np.ndarray     # (2 K,) int64, trees of the contacts: of a and b; -1: none
    y_at: np.ndarray     # (2 K,) int64, start of their blocks in y
    y: np.ndarray        # blocks of Y, three rows each
    W: np.ndarray        # (9 K,) Theta of each contact by itself
    mobility: np.ndarray  # (K,) mean of the diagonal entries of W
    x: np.ndarray        # (U,) Y^T force
    step: np.ndarray     # (U,) its change in a step of Newton's method
    force: np.ndarray    # (3 K,)
    base: np.ndarray     # (3 K,) forces from which contacts yield
    best: np.ndarray     # (3 K,) forces of the smallest residual
    push: np.ndarray     # (3 K,) change of the forces that x does not decide, then of all
    u: np.ndarray        # (3 K,) contact velocities
    du: np.ndarray       # (3 K,) their change in a step
    A: np.ndarray        # (9 K,) change of the forces by velocities
    point: np.ndarray    # (K,) int64, the contact whose normal force bounds it: itself, or that of a moment
    arm: np.ndarray      # (K,) bound per normal force and coefficient of friction: 1; of moments a length [m]
    mu: np.ndarray       # (K,) their product
    give: np.ndarray     # (K,) compliance of soft contacts
    fronts: Fronts


@allocating
def make_heap(touch, n, body_i, h, work):
    """Island n: its trees, Y, and room for factors."""
    first, count = touch.island[n], touch.island[n + 1] - touch.island[n]
    begin, end = touch.island_handle[n], touch.island_handle[n + 1]
    trees, unknowns = 0, 0
    size, start, low = np.empty(end - begin, np.int64), np.empty(end - begin, np.int64), np.empty(end - begin, np.int64)
    for handle in range(begin, end):
        root = touch.tree[touch.handles[handle]]
        if touch.on[root] < 0:
            touch.on[root] = trees
            low[trees], last = body_i[root, f.V_INDEX], root
            while last + 1 < touch.tree.shape[0] and touch.tree[last + 1] == root:
                last += 1
            size[trees] = body_i[last, f.V_INDEX] + body_i[last, f.DOF] - low[trees]
            start[trees] = unknowns
            unknowns += padded(size[trees])
            trees += 1
    side, y_at, length = np.full(2 * count, -1), np.zeros(2 * count, np.int64), 0
    at_handle, following = np.full(end - begin, -1), np.full(2 * count, -1)  # lists of the sides at each handle
    for i in range(count):
        k = touch.active[first + i]
        for s in range(2):
            body = np.int64(touch.contact_i[k, c.CONTACT_A + s])
            t = touch.on[touch.tree[body]] if body >= 0 else -1
            if s == 1 and t >= 0 and t == side[2 * i]:  # both sides on one tree: one block
                y_at[2 * i + 1] = y_at[2 * i]
            elif t >= 0:
                side[2 * i + s], y_at[2 * i + s] = t, length
                length += 3 * padded(size[t])
            if t >= 0:
                handle = touch.handle[body] - begin
                following[2 * i + s], at_handle[handle] = at_handle[handle], 2 * i + s
    y = np.zeros(length + WIDTH)
    for handle in range(begin, end):
        innovations(touch, touch.handles[handle], first, at_handle[handle - begin], following, body_i, work, size, low,
                    y_at, y)
    for handle in range(begin, end):
        touch.on[touch.tree[touch.handles[handle]]] = -1
    three, fronts = 3 * count, make_fronts(size[:trees], start[:trees], side)
    heap = Heap(size[:trees], start[:trees], side, y_at, y, np.empty(3 * three), np.empty(count), np.zeros(unknowns),
                np.zeros(unknowns), np.zeros(three), np.zeros(three), np.zeros(three), np.zeros(three), np.zeros(three),
                np.zeros(three), np.zeros(3 * three), np.arange(count), np.ones(count), np.zeros(count),
                np.zeros(count), fronts)
    bound_moments(touch, first, count, h, heap)
    contacts_alone(count, heap)
    return heap


@inner
def innovations(touch, body, first, at, following, body_i, work, size, low, y_at, y):
    """Rows of Y of all contacts at a body, from its six unit forces; `at`: the first of the list of sides there."""
    six, up, tree = touch.six, touch.up, touch.on[touch.tree[body]]
    for e in range(36):
        six[e] = -1.0 if e % 7 == 0 else 0.0
    i = np.int64(body)
    while i >= 0:
        six_up(i, body_i, work, up, six)
        i = np.int64(body_i[i, f.PARENT])
    apart = padded(size[tree])
    while at >= 0:
        i, o = np.int64(body), ROWS * (first + at // 2) + 6 * (at % 2)
        while i >= 0:
            record, dof, j = body_i[i, f.BODY_RECORD], body_i[i, f.DOF], body_i[i, f.V_INDEX]
            for d in range(dof if body_i[i, f.ELIMINATION] == f.COLUMNS else 0):
                scale = np.sqrt(max(work[factors_of(record, dof, d) + 6], 0.0))
                for r in range(3):
                    product = 0.0
                    for e in range(6):
                        product += load(touch.rows, o + ROW * r + e) * load(up, 6 * (j + d) + e)
                    y[y_at[at] + r * apart + j + d - low[tree]] += scale * product
            i = np.int64(body_i[i, f.PARENT])
        at = following[at]


@inner
def bound_moments(touch, first, count, h, heap):
    """Points and arms of moments, with the normal rows of their points, and compliances."""
    for i in range(count):
        k = touch.active[first + i]
        heap.give[i] = compliance(k, touch, h)
        if is_moment(k, touch):
            point = i - np.int64(touch.contact_i[k, c.CONTACT_BACK])
            heap.point[i], heap.arm[i] = point, touch.contact_f[k, c.ARM]
            for s in range(2):
                t = heap.side[2 * i + s]
                if t >= 0:
                    for j in range(padded(heap.size[t])):
                        heap.y[heap.y_at[2 * i + s] + j] = heap.y[heap.y_at[2 * point + s] + j]


@inner
def contacts_alone(count, heap):
    """W and mobility."""
    for k in range(count):
        for e in range(9):
            heap.W[9 * k + e] = 0.0
        for s in range(2):
            t = heap.side[2 * k + s]
            if t >= 0:
                n, o = padded(heap.size[t]), heap.y_at[2 * k + s]
                for r in range(3):
                    for q in range(r + 1):
                        product = take_lane(heap.y, o + r * n) * take_lane(heap.y, o + q * n)
                        for i in range(WIDTH, n, WIDTH):
                            product = product + take_lane(heap.y, o + r * n + i) * take_lane(heap.y, o + q * n + i)
                        heap.W[9 * k + 3 * r + q] += total(product)
        for r in range(3):
            for q in range(r):
                heap.W[9 * k + 3 * q + r] = heap.W[9 * k + 3 * r + q]
        if heap.point[k] != k:
            moment_alone(k, heap)
        trace = heap.W[9 * k] + heap.W[9 * k + 4] + heap.W[9 * k + 8]
        heap.mobility[k] = trace / 3.0 if trace > 0.0 else 1.0


@inner
def moment_alone(k, heap):
    """W of a moment: idle rows have the mobility of the others."""
    o = 9 * k
    first, second = heap.W[o + 4], heap.W[o + 8]
    mobility = 0.5 * (first + second) if second > 0.0 else first
    heap.W[o] = mobility
    heap.W[o + 1] = heap.W[o + 2] = heap.W[o + 3] = heap.W[o + 6] = 0.0
    if not second > 0.0:
        heap.W[o + 8] = mobility


@inline
def push_contact(k, heap, f_n, f_1, f_2, x):
    """x += Y_k^T (f_n, f_1, f_2)."""
    for s in range(2):
        t = heap.side[2 * k + s]
        if t >= 0:
            n, o, to = padded(heap.size[t]), heap.y_at[2 * k + s], heap.start[t]
            for i in range(0, n, WIDTH):
                put_lane(x, to + i, take_lane(x, to + i) + f_n * take_lane(heap.y, o + i)
                         + f_1 * take_lane(heap.y, o + n + i) + f_2 * take_lane(heap.y, o + 2 * n + i))


@inline
def motion_of_contact(k, heap, x):
    """Y_k x: three velocities."""
    u_n = u_1 = u_2 = 0.0
    for s in range(2):
        t = heap.side[2 * k + s]
        if t >= 0:
            n, o, at = padded(heap.size[t]), heap.y_at[2 * k + s], heap.start[t]
            for i in range(0, n, WIDTH):
                part = take_lane(x, at + i)
                u_n += total(part * take_lane(heap.y, o + i))
                u_1 += total(part * take_lane(heap.y, o + n + i))
                u_2 += total(part * take_lane(heap.y, o + 2 * n + i))
    return u_n, u_1, u_2


@inner
def gather_forces(count, heap, force, x):
    """x = Y^T force."""
    for i in range(x.shape[0]):
        x[i] = 0.0
    for k in range(count):
        push_contact(k, heap, force[3 * k] if heap.point[k] == k else 0.0, force[3 * k + 1], force[3 * k + 2], x)


@inner
def spread_to_contacts(count, heap, x, u):
    """u = Y x."""
    for k in range(count):
        u[3 * k], u[3 * k + 1], u[3 * k + 2] = motion_of_contact(k, heap, x)


@inner
def velocities_of_heap(heap, touch, count):
    """Theta force + b, into `velocity`."""
    gather_forces(count, heap, touch.force, heap.x)
    spread_to_contacts(count, heap, heap.x, touch.velocity)
    for i in range(3 * count):
        touch.velocity[i] += touch.b[i]
