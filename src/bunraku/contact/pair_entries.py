"""Pairs of shapes near each other at one state: the list of a workspace."""

from __future__ import annotations

from bunraku.contact.contact_memory import touch_of
from bunraku.contact.detect import place_shapes
from bunraku.contact.near_pairs import list_pairs
from bunraku.contact.touching import see_bodies
from bunraku.entries.signatures import PLAN, float64, floats, int64
from bunraku.jit import entry, inner


@entry("pairs of shapes", int64(PLAN, floats, floats, float64), seconds=4)
def list_pairs_at(plan, q, v, reach):
    """The list for a state, of pairs no farther apart than `reach`. Returns whether there was room."""
    return list_at(touch_of(plan.touch), plan, q, v, reach)


@inner
def list_at(touch, plan, q, v, reach):
    see_bodies(touch, plan, q, v)
    place_shapes(touch.shape_i, touch.shape_f, touch.states, touch.places)
    return 1 if list_pairs(touch, reach) else 0
