"""Contacts of one state, or of a batch over lanes and threads."""

from __future__ import annotations

import numpy as np
from numba import types

from bunraku.algorithms.body_motion import STATE, body_states
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_arrays import ContactArrays
from bunraku.contact.contact_calls import solve_problem
from bunraku.contact.detect import find_contacts, place_shapes
from bunraku.contact.joint_rows import joint_gaps
from bunraku.contact.problem_memory import problem_size
from bunraku.contact.smallest_forces import smallest_forces
from bunraku.entries.explain import refuse
from bunraku.entries.pool import spread
from bunraku.entries.signatures import PLAN, counts, float64, floats, int64, integers, lane_array, table
from bunraku.jit import Held, entry, inline, inner
from bunraku.spatial.lane_memory import gather, scatter
from bunraku.spatial.lanes import WIDTH

SMALLEST_SHARE = 256
CONTACTS = Held(types.NamedTuple([integers if name.endswith("_i") else table for name in ContactArrays._fields],
                                 ContactArrays))


@inline
def detect(plan, contact, q, still, margin, states, places, found):
    body_states(plan.body_i, plan.body_f, q, still, still, states)
    place_shapes(contact.shape_i, contact.shape_f, states, places)
    find_contacts(contact.shape_i, contact.shape_f, contact.point_f, contact.pair_i, places, margin, found)
    joint_gaps(contact.joint_i, contact.joint_f, plan.body_i, q, found)


@entry("contacts", types.void(PLAN, CONTACTS, floats, float64, floats), seconds=3)
def contacts_one(plan, contact, q, margin, found):
    detect(plan, contact, q, np.zeros(plan.dof_f.shape[1]), margin, np.empty(STATE * (plan.body_i.shape[0] - 1)),
           np.empty(c.PLACE * contact.shape_i.shape[0]), found)


@entry("contacts of batches", types.void(PLAN, CONTACTS, table, float64, table, int64, int64), seconds=4)
def contacts_batch(plan, contact, q, margin, found, start, stop):
    q_lanes, still = lane_array(q.shape[1]), lane_array(plan.dof_f.shape[1])
    still[:, :] = 0.0
    states = lane_array(STATE * (plan.body_i.shape[0] - 1))
    places, found_lanes = lane_array(c.PLACE * contact.shape_i.shape[0]), lane_array(found.shape[1])
    found_lanes[:, :] = 0.0
    for first in range(start, stop, WIDTH):
        gather(q, first, q_lanes)
        detect(plan, contact, q_lanes, still, margin, states, places, found_lanes)
        scatter(found_lanes, found, first)


@entry("contact problems", types.void(floats, floats, floats, counts, floats, int64, int64, floats, floats, counts,
                                      floats), seconds=2)
def problem_one(theta, b, mu, kind, slip, start, smallest, force, velocity, mode, report):
    """As `solve_contacts`, if asked for then as `smallest_forces`; report: residual, iterations, status, whether forces
    are the smallest."""
    count, rows = mu.shape[0], b.shape[0]
    work = np.empty(problem_size(count))
    residual, iterations, status = solve_problem(count, theta, b, mu, kind, slip, start, force, mode, work)
    multiply_and_add(rows, theta, force, b, velocity)
    report[0], report[1], report[2], report[3] = residual, float(iterations), float(status), 0.0
    if smallest != 0 and status == c.SOLVED and smallest_forces(count, theta, mu, force, mode, velocity, work):
        report[3] = 1.0
        multiply_and_add(rows, theta, force, b, velocity)


@inner
def multiply_and_add(rows, theta, force, b, velocity):
    for i in range(rows):
        total = b[i]
        for j in range(rows):
            total += theta[rows * i + j] * force[j]
        velocity[i] = total


def found_contacts(plan, contact: ContactArrays, q, margin: float, workers=None) -> np.ndarray:
    """(contacts, FOUND) of one state, or (B, contacts, FOUND), of shapes (contacts of joints have the gap inf); q is
    checked already for its shape."""
    if not np.isfinite(q).all():
        bad = ~np.isfinite(q).all(axis=-1)
        refuse(plan, q, {}, None if q.ndim == 1 else bad)
    size = contact.contact_i.shape[0]
    found = np.zeros((*q.shape[:-1], size * c.FOUND))
    if q.ndim == 1:
        contacts_one.call(plan.arrays, contact, q, margin, found)
    else:
        contacts_batch.load()
        spread(lambda start, stop: contacts_batch.call(plan.arrays, contact, q, margin, found, start, stop), len(q),
               WIDTH, workers, SMALLEST_SHARE)
    found = found.reshape(*q.shape[:-1], size, c.FOUND)
    found[..., :len(contact.joint_i), c.FOUND_GAP] = np.inf  # of points of shapes alone
    found[..., contact.contact_i[:, c.CONTACT_ROLE] != c.PUSH, c.FOUND_GAP] = np.inf
    wrong = np.isnan(found[..., c.FOUND_GAP]).any(axis=-1)
    if wrong.any():
        refuse(plan, q, {}, None if q.ndim == 1 else wrong)
    return found
