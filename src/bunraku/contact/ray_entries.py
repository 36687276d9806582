"""Rays of one state or a batch; threads share the batch. Rays may move with a body."""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.body_motion import STATE, body_states
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_entries import CONTACTS
from bunraku.contact.detect import place_shapes
from bunraku.contact.rays import HIT, HIT_DISTANCE, HIT_NORMAL, HIT_SHAPE, RAY, cast, ray_of_body
from bunraku.entries.signatures import PLAN, counts, float64, int64, table
from bunraku.jit import entry
from bunraku.spatial.algebra import store3


@entry("rays", types.void(PLAN, CONTACTS, table, table, counts, int64, float64, table, int64, int64), seconds=5)
def cast_rays(plan, contact, q, rays, ignored, body, most, hits, start, stop):
    """hits (B, HIT times rays) of states start .. stop - 1; rays (B or 1, RAY times rays) in a body, -1 for the world.
    `most`: the largest multiple of a direction that counts."""
    still, states = np.zeros(plan.dof_f.shape[1]), np.empty(STATE * (plan.body_i.shape[0] - 1))
    places = np.empty(c.PLACE * contact.shape_i.shape[0])
    for b in range(start, stop):
        body_states(plan.body_i, plan.body_f, q[b], still, still, states)
        place_shapes(contact.shape_i, contact.shape_f, states, places)
        given = rays[min(b, rays.shape[0] - 1)]
        for k in range(hits.shape[1] // HIT):
            o, d = ray_of_body(states, STATE, body, given, RAY * k)
            at, met, normal = cast(contact.shape_i, contact.shape_f, contact.point_f, places, ignored, o, d, most)
            hits[b, HIT * k + HIT_DISTANCE], hits[b, HIT * k + HIT_SHAPE] = at, float(met)
            store3(hits[b], HIT * k + HIT_NORMAL, normal)
