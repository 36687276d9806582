"""Rays of one state or a batch; threads share the batch. Rays may move with a body."""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.body_motion import STATE, body_states
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_entries import CONTACTS
from bunraku.contact.detect import place_shapes
from bunraku.contact.rays import HIT, HIT_DISTANCE, HIT_NORMAL, HIT_SHAPE, RAY, cast, ray_of_body
from bunraku.entries.model_entries import coordinates
from bunraku.entries.signatures import PLAN, counts, float64, floats, int64, table
from bunraku.jit import entry
from bunraku.plan import fields as f
from bunraku.spatial.algebra import add, load3, load9, matvec, norm, scale, store3


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


@entry("rays for controllers", float64(PLAN, CONTACTS, int64, floats, floats, floats), seconds=5, by_address=True,
       brief=True)
def ray_of_model(plan, contact, link, q, origin, direction):
    """Distance from a point of a link along a direction, both in its frame (-1: the world), to the nearest shape of
    other bodies [m]; inf: there is none; not a number: arrays of the wrong size, or no direction."""
    if q.shape[0] != coordinates(plan) or origin.shape[0] != 3 or direction.shape[0] != 3:
        return np.nan
    o, d, body = load3(origin, 0), load3(direction, 0), -1
    length = norm(d)
    if not length > 0.0:
        return np.nan
    d = scale(d, 1.0 / length)
    if link >= 0:
        body, turn = plan.link_i[link, f.LINK_BODY], load9(plan.link_f[link], f.LINK_ROTATION)
        o, d = add(load3(plan.link_f[link], f.LINK_OFFSET), matvec(turn, o)), matvec(turn, d)
    still, states = np.zeros(plan.dof_f.shape[1]), np.empty(STATE * (plan.body_i.shape[0] - 1))
    places, ignored = np.empty(c.PLACE * contact.shape_i.shape[0]), np.zeros(contact.shape_i.shape[0], np.int64)
    for k in range(ignored.shape[0]):
        same = contact.shape_i[k, c.SHAPE_BODY] == body if body >= 0 else contact.shape_i[k, c.SHAPE_LINK] == link
        ignored[k] = 1 if link >= 0 and same else 0
    body_states(plan.body_i, plan.body_f, q, still, still, states)
    place_shapes(contact.shape_i, contact.shape_f, states, places)
    ray = np.empty(RAY)
    store3(ray, 0, o)
    store3(ray, 3, d)
    o, d = ray_of_body(states, STATE, body, ray, 0)
    distance, _, _ = cast(contact.shape_i, contact.shape_f, contact.point_f, places, ignored, o, d, np.inf)
    return distance
