"""Broad phase: the pairs of shapes whose bounding spheres are no farther apart than `reach`, from grids of cells.

A shape lies in the cell of the centre of its bounding sphere, in the grid whose cells are just larger than its diameter
plus the reach; from grid to grid cells are twice as large. So a shape meets those of its own grid, and of the grids of
larger ones, in 27 cells each. Cells are found by hashing [Ericson (2005), Real-Time Collision Detection, sec. 7.2].
Planes have no cell, and are compared with every shape. Which of the pairs may touch follows from masks and excluded
pairs of links: no table of all pairs is needed.

Cost: O(shapes) hash look-ups for each size of shapes, O(planes * shapes), and the pairs that are found. Memory
O(shapes).
"""

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.contact.detect import bounds_apart
from bunraku.jit import inline, inner
from bunraku.spatial.algebra import load3

CELL = 4              # scalars of a shape in `cells`: cell along x, y, z, and
LEVEL = 3             # number of its grid, or
EVERYWHERE = -1       # a plane, and what is too large for all grids
LEVELS = 40
FARTHEST = 1e15       # cells from the origin; farther ones count as these
OWN = 13              # number of the own cell among its neighbours
contacts_of_convex = inline(c.contacts_of_convex)


@inner
def find_pairs(touch, reach):
    """(pairs, contacts): how many there are. Keys of the pairs (`key_of`) go into `keys` as far as there is room."""
    size, levels = put_into_cells(touch, reach)
    pairs, contacts = 0, 0
    for a in range(touch.shape_i.shape[0]):
        if touch.cells[CELL * a + LEVEL] == EVERYWHERE:
            pairs, contacts = compare_with_all(a, touch, reach, pairs, contacts)
        else:
            for level in range(touch.cells[CELL * a + LEVEL], LEVELS):
                if (levels >> level) & 1:
                    pairs, contacts = look_around(a, level, size, touch, reach, pairs, contacts)
    return pairs, contacts


@inner
def put_into_cells(touch, reach):
    """(edge of the smallest cells, bits of the grids in use)."""
    smallest = smallest_radius(touch)
    size, levels = 2.0 * smallest + reach, 0
    if not 0.0 < size < np.inf:
        size = 1.0
    for bucket in range(touch.heads.shape[0]):
        touch.heads[bucket] = -1
    for k in range(touch.shape_i.shape[0]):
        level = level_of(2.0 * touch.shape_f[k, c.SHAPE_BOUND] + reach, size)
        touch.cells[CELL * k + LEVEL] = level
        if level != EVERYWHERE:
            x, y, z = cell_of(k, level, size, touch)
            touch.cells[CELL * k], touch.cells[CELL * k + 1], touch.cells[CELL * k + 2] = x, y, z
            bucket = bucket_of(x, y, z, level, touch)
            touch.chain[k] = touch.heads[bucket]
            touch.heads[bucket] = k
            levels |= 1 << level
    return size, levels


@inner
def smallest_radius(touch):
    """Radius of the smallest bounding sphere, single points aside; 0 if there is none [m]."""
    smallest = np.inf
    for k in range(touch.shape_i.shape[0]):
        if touch.shape_f[k, c.SHAPE_BOUND] > 0.0:
            smallest = min(smallest, touch.shape_f[k, c.SHAPE_BOUND])
    return smallest if smallest < np.inf else 0.0


@inline
def level_of(width, size):
    """The grid whose cells are at least this wide."""
    level = 0
    while level < LEVELS and not size >= width:
        size *= 2.0
        level += 1
    return level if level < LEVELS else EVERYWHERE


@inline
def cell_of(k, level, size, touch):
    """Cell of a shape in a grid."""
    x, y, z = load3(touch.places, c.PLACE * k + c.PLACE_MIDDLE)
    edge = size * 2.0 ** level
    return number_of_cell(x / edge), number_of_cell(y / edge), number_of_cell(z / edge)


@inline
def number_of_cell(x):
    return np.int64(np.floor(min(max(x, -FARTHEST), FARTHEST))) if x - x == 0.0 else np.int64(0)


@inline
def bucket_of(x, y, z, level, touch):
    """Place of a cell in the hash table."""
    return ((x * 73856093) ^ (y * 19349663) ^ (z * 83492791) ^ (level * 50331653)) & (touch.heads.shape[0] - 1)


@inner
def look_around(a, level, size, touch, reach, pairs, contacts):
    """Compare shape a with those in the cells around it in one grid: in its own one, each pair once."""
    x, y, z = cell_of(a, level, size, touch)
    own = level == touch.cells[CELL * a + LEVEL]
    for n in range(OWN if own else 0, 27):
        i, j, k = x + n // 9 - 1, y + n // 3 % 3 - 1, z + n % 3 - 1
        b = touch.heads[bucket_of(i, j, k, level, touch)]
        while b >= 0:
            at = CELL * b
            if (touch.cells[at] == i and touch.cells[at + 1] == j and touch.cells[at + 2] == k
                    and touch.cells[at + LEVEL] == level and (b > a or n != OWN or not own)):
                pairs, contacts = take_pair(a, b, touch, reach, pairs, contacts)
            b = touch.chain[b]
    return pairs, contacts


@inner
def compare_with_all(a, touch, reach, pairs, contacts):
    """Compare a plane with all shapes, each pair once."""
    for b in range(touch.shape_i.shape[0]):
        if b > a or touch.cells[CELL * b + LEVEL] != EVERYWHERE:
            pairs, contacts = take_pair(a, b, touch, reach, pairs, contacts)
    return pairs, contacts


@inner
def take_pair(a, b, touch, reach, pairs, contacts):
    """Take a pair if it is near and may touch. Pairs with a plane that moves are always near."""
    kind, one, other = ordered(min(a, b), max(a, b), touch)
    if kind < 0 or not may_touch(a, b, touch):
        return pairs, contacts
    moving = touch.shape_i[other, c.SHAPE_KIND] == c.PLANE and touch.shape_i[other, c.SHAPE_BODY] >= 0
    if not moving and bounds_apart(kind, touch.places, touch.shape_f, one, other) > reach:
        return pairs, contacts
    if pairs < touch.keys.shape[0]:
        touch.keys[pairs] = key_of(kind, one, other, touch)
    return pairs + 1, contacts + contacts_of(kind, one, other, touch) * (1 + moments_of(one, other, touch))


@inline
def ordered(a, b, touch):
    """(kind or -1, shape a, shape b) of two shapes, as kernels expect them."""
    one, other = np.int64(touch.shape_i[a, c.SHAPE_KIND]), np.int64(touch.shape_i[b, c.SHAPE_KIND])
    kind = np.int64(touch.kind_i[c.KINDS * one + other, 0])
    if kind >= 0:
        return kind, a, b
    return np.int64(touch.kind_i[c.KINDS * other + one, 0]), b, a


@inner
def may_touch(a, b, touch):
    """Whether masks and excluded pairs of links let two shapes touch."""
    shape_i = touch.shape_i
    if shape_i[a, c.SHAPE_RIGID] == shape_i[b, c.SHAPE_RIGID] or (
            (shape_i[a, c.SHAPE_GROUP] & shape_i[b, c.SHAPE_MEETS]) == 0
            and (shape_i[b, c.SHAPE_GROUP] & shape_i[a, c.SHAPE_MEETS]) == 0):
        return False
    link, other = np.int64(shape_i[a, c.SHAPE_LINK]), np.int64(shape_i[b, c.SHAPE_LINK])
    return not is_excluded(min(link, other), max(link, other), touch.apart_i)


@inner
def is_excluded(link, other, apart_i):
    """Whether a pair of links is in the sorted table."""
    low, high = 0, apart_i.shape[0]
    while low < high:
        middle = (low + high) // 2
        if apart_i[middle, 0] < link or (apart_i[middle, 0] == link and apart_i[middle, 1] < other):
            low = middle + 1
        else:
            high = middle
    return low < apart_i.shape[0] and apart_i[low, 0] == link and apart_i[low, 1] == other


@inline
def contacts_of(kind, a, b, touch):
    """Number of contacts of a pair."""
    if kind == c.CONVEX:
        return contacts_of_convex(np.int64(touch.shape_i[a, c.SHAPE_CORNERS]),
                                  np.int64(touch.shape_i[b, c.SHAPE_CORNERS]))
    row = c.KINDS * np.int64(touch.shape_i[a, c.SHAPE_KIND]) + np.int64(touch.shape_i[b, c.SHAPE_KIND])
    count = np.int64(touch.kind_i[row, 1])
    return count if count > 0 else np.int64(touch.shape_i[a, c.SHAPE_COUNT])


@inline
def arm_of(role, a, b, touch):
    """Largest moment of friction of a pair per normal force [m]."""
    of = c.SHAPE_TORSIONAL if role == c.SPIN else c.SHAPE_ROLLING
    return max(touch.shape_f[a, of], touch.shape_f[b, of])


@inline
def moments_of(a, b, touch):
    """How many moments of friction each point of a pair has."""
    return (1 if arm_of(c.SPIN, a, b, touch) > 0.0 else 0) + (1 if arm_of(c.ROLL, a, b, touch) > 0.0 else 0)


@inline
def key_of(kind, a, b, touch):
    """A number that identifies a pair, and sorts pairs by kind, shape a, shape b."""
    shapes = touch.shape_i.shape[0]
    return (kind * shapes + a) * shapes + b
