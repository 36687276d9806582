"""Broad phase of time steps: a list of the pairs of shapes near each other, with a reserve, used until it is spent.

A pair whose bounding spheres are farther apart than `reach` cannot come nearer than reach - 2 d while no shape has
moved by more than d. So a list is valid for a margin as long as reach - 2 d >= margin; then only its pairs are used.
Pairs with a plane on a moving link are always listed. Cost: O(shapes + listed pairs) a step, and O(pairs) for a new
list: seldom where bodies rest, every RESERVE / speed where they move. The result does not depend on the list.
"""

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.contact.contact_memory import NEAR
from bunraku.contact.detect import bounds_apart, find_pair, place_shapes
from bunraku.jit import inline, inner
from bunraku.spatial.algebra import load3, norm, store3, sub

RESERVE = 0.5   # of the smallest radius around a shape


@inner
def find_near(touch, margin):
    """Contacts closer than the margin, of one state."""
    place_shapes(touch.shape_i, touch.shape_f, touch.states, touch.places)
    if not touch.origins[touch.origins.shape[0] - 1] - 2.0 * farthest_move(touch) >= margin:
        list_near_pairs(touch, margin)
    for i in range(touch.count[NEAR]):
        find_pair(touch.near[i], touch.shape_i, touch.shape_f, touch.point_f, touch.pair_i, touch.places, margin,
                  touch.found)


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
def list_near_pairs(touch, margin):
    """Make the list anew."""
    smallest = np.inf
    for k in range(touch.shape_i.shape[0]):
        store3(touch.origins, 3 * k, load3(touch.places, c.PLACE * k + c.PLACE_MIDDLE))
        if touch.shape_f[k, c.SHAPE_BOUND] > 0.0:
            smallest = min(smallest, touch.shape_f[k, c.SHAPE_BOUND])
    reach = 3.0 * margin + RESERVE * (smallest if smallest < np.inf else 0.0)
    touch.origins[touch.origins.shape[0] - 1] = reach
    for k in range(touch.contact_i.shape[0]):
        touch.found[c.FOUND * k + c.FOUND_GAP] = np.inf
    listed = 0
    for p in range(touch.pair_i.shape[0]):
        if always_listed(p, touch) or not bounds_apart(touch.pair_i[p, c.PAIR_KIND], touch.places, touch.shape_f,
                                                       touch.pair_i[p, c.PAIR_A], touch.pair_i[p, c.PAIR_B]) > reach:
            touch.near[listed] = p
            listed += 1
    touch.count[NEAR] = listed


@inline
def always_listed(p, touch):
    """Whether a pair has a plane that moves."""
    b = touch.pair_i[p, c.PAIR_B]
    return touch.shape_i[b, c.SHAPE_KIND] == c.PLANE and touch.shape_i[b, c.SHAPE_BODY] >= 0


@inline
def end_of_pair(p, touch):
    """Number behind the last contact of a pair."""
    return touch.pair_i[p + 1, c.PAIR_CONTACT] if p + 1 < touch.pair_i.shape[0] else touch.contact_i.shape[0]
