"""The list of pairs of shapes near each other, with a reserve, used until it is spent.

A pair whose bounding spheres are farther apart than `reach` cannot come nearer than reach - 2 d while no shape has
moved by more than d. So a list is valid for a margin as long as reach - 2 d >= margin; a list of all pairs has the
reach inf. The pairs come from `cell_grids.py`, in the order of kind, shape a, shape b; each has its contacts in the
tables of the list. Contacts keep their identity when the list is made anew: modes and impulses of the last step go with
the shapes of a pair and the place of the contact in it. So the motion does not depend on the list.

Cost: O(shapes + listed pairs) a step, and for a new list that of the grids: seldom where bodies rest, every
PAIR_RESERVE / speed where they move. Memory: O(shapes + listed pairs).
"""

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.contact.cell_grids import arm_of, contacts_of, find_pairs, key_of, moments_of, smallest_radius
from bunraku.contact.contact_fields import OPEN
from bunraku.contact.contact_memory import ACTIVE, JOINTS, PAIRS, WANTED_CONTACTS, WANTED_PAIRS
from bunraku.contact.detect import find_pair, place_shapes
from bunraku.contact.soft_contacts import in_series
from bunraku.jit import inline, inner
from bunraku.spatial.algebra import load3, norm, store3, sub
from bunraku.tolerances import PAIR_RESERVE

series = inline(in_series)


@inner
def find_near(touch, margin):
    """Contacts closer than the margin, of one state. Returns whether there was room for the list."""
    place_shapes(touch.shape_i, touch.shape_f, touch.states, touch.places)
    spent = not touch.origins[touch.origins.shape[0] - 1] - 2.0 * farthest_move(touch) >= margin
    if spent and not list_pairs(touch, 3.0 * margin + PAIR_RESERVE * smallest_radius(touch)):
        return False
    for p in range(touch.count[PAIRS]):
        find_pair(p, touch.shape_i, touch.shape_f, touch.point_f, touch.pair_i, touch.places, margin, touch.found)
    return True


@inner
def farthest_move(touch):
    """Distance that a shape has moved since the list was made; planes aside."""
    most = 0.0
    for k in range(touch.shape_i.shape[0]):
        if touch.shape_i[k, c.SHAPE_KIND] != c.PLANE:
            d = norm(sub(load3(touch.places, c.PLACE * k + c.PLACE_MIDDLE), load3(touch.origins, 3 * k)))
            if not d <= most:
                most = d
    return most


@inner
def list_pairs(touch, reach):
    """Make the list anew, and take modes and impulses of the last step along. Without room for it all stays as it is,
    but for the numbers WANTED_PAIRS and WANTED_CONTACTS, and the answer is False."""
    pairs, contacts = find_pairs(touch, reach)
    if pairs > touch.keys.shape[0] or contacts > touch.contact_i.shape[0] - touch.count[JOINTS]:
        touch.count[WANTED_PAIRS], touch.count[WANTED_CONTACTS] = pairs, contacts
        return False
    put_aside(touch)
    sort_keys(pairs, touch)
    write_list(pairs, touch)
    take_back(touch)
    for k in range(touch.shape_i.shape[0]):
        store3(touch.origins, 3 * k, load3(touch.places, c.PLACE * k + c.PLACE_MIDDLE))
    touch.origins[touch.origins.shape[0] - 1] = reach
    return True


@inner
def sort_keys(count, touch):
    """Sort `keys`, by counting: by shape b, then a, then kind."""
    shapes = touch.shape_i.shape[0]
    sort_by_digit(count, touch.keys, 1, shapes, touch.tally, touch.sorted)
    sort_by_digit(count, touch.sorted, shapes, shapes, touch.tally, touch.keys)
    sort_by_digit(count, touch.keys, shapes * shapes, c.PAIR_KINDS, touch.tally, touch.sorted)
    for i in range(count):
        touch.keys[i] = touch.sorted[i]


@inner
def sort_by_digit(count, keys, unit, base, tally, out):
    """`keys` in the order of one digit, otherwise as they were, into `out`."""
    for digit in range(base + 1):
        tally[digit] = 0
    for i in range(count):
        tally[keys[i] // unit % base + 1] += 1
    for digit in range(base):
        tally[digit + 1] += tally[digit]
    for i in range(count):
        digit = keys[i] // unit % base
        out[tally[digit]] = keys[i]
        tally[digit] += 1


@inner
def write_list(pairs, touch):
    """The tables of pairs and contacts of sorted keys."""
    shapes, first = touch.shape_i.shape[0], touch.count[JOINTS]
    for p in range(pairs):
        key = touch.keys[p]
        kind, a, b = key // (shapes * shapes), key // shapes % shapes, key % shapes
        count = contacts_of(kind, a, b, touch)
        touch.pair_i[p, c.PAIR_KIND], touch.pair_i[p, c.PAIR_A], touch.pair_i[p, c.PAIR_B] = kind, a, b
        touch.pair_i[p, c.PAIR_CONTACT], touch.pair_i[p, c.PAIR_COUNT] = first, count
        friction = np.sqrt(touch.shape_f[a, c.SHAPE_FRICTION] * touch.shape_f[b, c.SHAPE_FRICTION])
        restitution = max(touch.shape_f[a, c.SHAPE_RESTITUTION], touch.shape_f[b, c.SHAPE_RESTITUTION])
        touch.pair_i[p, c.PAIR_MOMENTS] = moments_of(a, b, touch)
        write_contacts(p, a, b, c.PUSH, 0, first, touch)
        stiffness, damping = spring_of(a, b, touch)
        for k in range(first, first + count):
            touch.contact_f[k, c.FRICTION] = friction
            touch.contact_f[k, c.RESTITUTION] = restitution if stiffness == 0.0 else 0.0
            touch.contact_f[k, c.STIFFNESS], touch.contact_f[k, c.DAMPING] = stiffness, damping
        back = 0
        for role in range(c.SPIN, c.ROLL + 1):
            arm = arm_of(role, a, b, touch)
            if arm > 0.0:
                back += 1
                write_contacts(p, a, b, role, back, first, touch)
                for k in range(first + back * count, first + (back + 1) * count):
                    touch.contact_f[k, c.FRICTION], touch.contact_f[k, c.ARM] = 1.0, arm
        first += (1 + back) * count
    touch.count[PAIRS] = pairs


@inline
def spring_of(a, b, touch):
    """Stiffness and damping of a pair."""
    return series(touch.shape_f[a, c.SHAPE_STIFFNESS], touch.shape_f[a, c.SHAPE_DAMPING],
                  touch.shape_f[b, c.SHAPE_STIFFNESS], touch.shape_f[b, c.SHAPE_DAMPING])


@inner
def write_contacts(p, a, b, role, back, first, touch):
    """The contacts of pair p in one role, `back` places behind their points in a problem."""
    count = np.int64(touch.pair_i[p, c.PAIR_COUNT])
    for point in range(first, first + count):
        k = point + back * count
        touch.contact_i[k, c.CONTACT_PAIR] = p
        touch.contact_i[k, c.CONTACT_A] = touch.shape_i[a, c.SHAPE_BODY]
        touch.contact_i[k, c.CONTACT_B] = touch.shape_i[b, c.SHAPE_BODY]
        touch.contact_i[k, c.CONTACT_ROLE], touch.contact_i[k, c.CONTACT_BACK] = role, back
        touch.contact_i[k, c.CONTACT_POINT] = point
        for i in range(c.CONTACT_F):
            touch.contact_f[k, i] = 0.0
        touch.found[c.FOUND * k + c.FOUND_GAP] = np.inf


@inner
def put_aside(touch):
    """Identity, mode and impulse of the contacts of the last step, out of the contact state of the run."""
    for i in range(touch.count[ACTIVE]):
        k = touch.active[i]
        p = np.int64(touch.contact_i[k, c.CONTACT_PAIR])
        if p < 0:  # a joint's, which keeps its number
            touch.aside[3 * i], touch.aside[3 * i + 1] = -1, k
        else:
            touch.aside[3 * i] = key_of(np.int64(touch.pair_i[p, c.PAIR_KIND]), np.int64(touch.pair_i[p, c.PAIR_A]),
                                        np.int64(touch.pair_i[p, c.PAIR_B]), touch)
            touch.aside[3 * i + 1] = k - touch.pair_i[p, c.PAIR_CONTACT]
        touch.aside[3 * i + 2] = touch.modes[k]
        store3(touch.aside_force, 3 * i, load3(touch.held, 3 * k))
        touch.modes[k] = OPEN
        store3(touch.held, 3 * k, (0.0, 0.0, 0.0))


@inner
def take_back(touch):
    """Back into the contact state, those whose pair is still listed."""
    listed = 0
    for i in range(touch.count[ACTIVE]):
        joint = touch.aside[3 * i] < 0
        p = -1 if joint else pair_of(touch.aside[3 * i], touch)
        if joint or p >= 0:
            k = touch.aside[3 * i + 1] + (0 if joint else np.int64(touch.pair_i[p, c.PAIR_CONTACT]))
            touch.modes[k] = touch.aside[3 * i + 2]
            store3(touch.held, 3 * k, load3(touch.aside_force, 3 * i))
            touch.active[listed] = k
            listed += 1
    touch.count[ACTIVE] = listed


@inline
def pair_of(key, touch):
    """Number of a pair in the list, -1 if it is not there."""
    low, high = 0, touch.count[PAIRS]
    while low < high:
        middle = (low + high) // 2
        if touch.keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < touch.count[PAIRS] and touch.keys[low] == key else -1
