"""Contacts of one state, with a list of the pairs of shapes that are near each other then.

Up to ALL_PAIRS shapes the list has all pairs; with more shapes it is made for the state (`contact/near_pairs.py`). What
identifies a contact in every list are its two shapes and its place among their contacts.
"""

from __future__ import annotations

import threading
import weakref

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.contact.contact_arrays import ContactArrays
from bunraku.contact.contact_entries import found_contacts
from bunraku.contact.contact_memory import PAIRS, WANTED_CONTACTS, WANTED_PAIRS, Room, make_touch
from bunraku.contact.pair_entries import list_pairs_at
from bunraku.entries.explain import refuse
from bunraku.mechanism import Mechanism

FIRST_LIST = 64, 256
"""Pairs and contacts in the first list of a workspace."""


class PairSearch:
    """Workspace for lists of the pairs of a mechanism."""

    def __init__(self, mechanism: Mechanism):
        self.pairs, self.plan = mechanism.contact_pairs(), mechanism.touching_plan(frozenset())
        self.structure, self.still = self.plan.with_rotors, np.zeros(self.plan.nv)
        self._make_room(FIRST_LIST)

    def _make_room(self, listed: tuple[int, int]) -> None:
        self.touch, table = make_touch(self.pairs.arrays, self.plan.arrays.body_i, self.plan.nv, Room(0, 0, listed),
                                       False)
        self.structure = self.structure._replace(touch=table)

    def at(self, q: np.ndarray, reach: float) -> ContactArrays:
        """The arrays with the pairs that are no farther apart than `reach`."""
        while not list_pairs_at.call(self.structure, q, self.still, reach):
            self._make_room(more(self.touch))
        return listed(self.touch, self.pairs.arrays, copied=True)


_known: weakref.WeakKeyDictionary[Mechanism, threading.local] = weakref.WeakKeyDictionary()


def near_pairs(mechanism: Mechanism, q: np.ndarray, reach: float) -> ContactArrays:
    """Arrays with a list of the pairs no farther apart than `reach` at a state, or of all."""
    pairs = mechanism.contact_pairs()
    if pairs.complete:
        return pairs.arrays
    if not np.isfinite(q).all():
        refuse(mechanism.plan("tree"), q, {})
    own = _known.setdefault(mechanism, threading.local()).__dict__
    if "search" not in own or own["search"].pairs is not pairs:
        own["search"] = PairSearch(mechanism)
    return own["search"].at(np.ascontiguousarray(q), reach)


def contacts_near(mechanism: Mechanism, q: np.ndarray, margin: float) -> tuple[ContactArrays, np.ndarray]:
    """(arrays with a list, what is found of its contacts) at a state: those closer than the margin, others may be."""
    arrays = near_pairs(mechanism, q, margin)
    return arrays, found_contacts(mechanism.plan("tree"), arrays, np.ascontiguousarray(q), margin)


def more(touch) -> tuple[int, int]:
    """Pairs and contacts that there should be room for, after a list for which there was none."""
    wanted = np.array([touch.count[WANTED_PAIRS], touch.count[WANTED_CONTACTS]])
    return tuple((wanted + wanted // 2 + FIRST_LIST).tolist())


def listed(touch, arrays: ContactArrays, copied=False) -> ContactArrays:
    """The arrays with the list of a workspace."""
    pair_i = touch.pair_i[:touch.count[PAIRS]]
    size = len(arrays.joint_i)
    if len(pair_i):
        first, count, moments = pair_i[-1, [c.PAIR_CONTACT, c.PAIR_COUNT, c.PAIR_MOMENTS]].tolist()
        size = first + count * (1 + moments)
    tables = pair_i, touch.contact_i[:size], touch.contact_f[:size]
    if copied:
        tables = tuple(table.copy() for table in tables)
    return arrays._replace(pair_i=tables[0], contact_i=tables[1], contact_f=tables[2])


def identities(arrays: ContactArrays, rows) -> np.ndarray:
    """(n, 3) shape a, shape b, place among the contacts of the pair, of contacts given by number; of a joint's contact
    -1, its number, 0."""
    rows, found = np.asarray(rows, np.int64), np.zeros((len(rows), 3), np.int64)
    of_joints = rows < len(arrays.joint_i)
    found[of_joints, 0], found[of_joints, 1] = -1, rows[of_joints]
    pairs = arrays.pair_i[arrays.contact_i[rows[~of_joints], c.CONTACT_PAIR]]
    found[~of_joints] = np.stack([pairs[:, c.PAIR_A], pairs[:, c.PAIR_B],
                                  rows[~of_joints] - pairs[:, c.PAIR_CONTACT]], axis=1)
    return found


def numbers(arrays: ContactArrays, identity: np.ndarray) -> np.ndarray:
    """(n,) numbers of contacts in a list; -1: not listed."""
    first = {(a, b): contact for a, b, contact in arrays.pair_i[:, [c.PAIR_A, c.PAIR_B, c.PAIR_CONTACT]].tolist()}
    first |= {(-1, k): k for k in range(len(arrays.joint_i))}
    return np.array([first[a, b] + place if (a, b) in first else -1 for a, b, place in identity.tolist()], np.int64)
