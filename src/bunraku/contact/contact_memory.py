"""Contact workspace: the constant arrays of the geometry, the contact state of a run, and scratch.

One table of addresses (`Arrays.touch`) represents all of it in a plan, so that solvers pass it on without depending on
contact. `touch_of(table)` returns the arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from bunraku.algorithms.body_motion import STATE
from bunraku.compiler.handles import array_by_address, table_of
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_arrays import ContactArrays
from bunraku.contact.problem import problem_size
from bunraku.jit import allocating

# Places in `count`
BASE = 0         # address of the motion of the mechanism without contact (`tree_one` or `closed_one`)
LOOPS = 1        # 1: it has connections
ACTIVE = 2       # contacts in the present problem
HANDLES = 3      # bodies that they act on
PATH = 4         # bodies between these and the ground
STATUS = 5       # of the last problem: SOLVED, ROUGH, NO_SOLUTION; or FULL
WORST = 6        # number of the contact with the largest residual, or that found no room
SOLVED_COUNT = 7  # problems solved so far
ITERATIONS = 8   # of all of them
ROUGHLY = 9      # how many were left with a residual above 1e-10
ROUGH_CONTACTS = 10  # contacts of the largest of these
IN_TURN = 11     # 1: rebounds one after another (`contact/sequential_impacts.py`); 0: all at once
COUNTS = 12
FULL = 10        # a status: more contacts than there is room for

ROW = 12         # scalars of a row: force on the handle of a (moment, force), on that of b
ROWS = 3 * ROW   # of a contact

MARK_SLIP = 0    # 3, direction of slip that friction is against, where slip is too slow to have one
MARK_GAP = 3     # gap at which an open contact counts as closed [m]; speed at which slip of a sliding one ends [m/s]
MARK = 4


class Touch(NamedTuple):
    """Scalars in use are floats for one state, lanes for several (`contact/contact_fields.py` has the columns)."""

    shape_i: np.ndarray
    shape_f: np.ndarray
    point_f: np.ndarray
    pair_i: np.ndarray
    contact_i: np.ndarray
    contact_f: np.ndarray
    count: np.ndarray        # type: ignore[assignment]  # (COUNTS,) int64
    active: np.ndarray       # (room,) int64: numbers of the contacts in the problem
    handles: np.ndarray      # (handles,) int64: bodies
    handle: np.ndarray       # (bodies,) int64: its number among the handles, or -1
    on: np.ndarray           # (bodies,) int64: scratch
    path: np.ndarray         # (bodies,) int64
    kind: np.ndarray         # (room,) int64: of the problem
    mode: np.ndarray         # (room,) int64
    modes: np.ndarray        # (contacts,) int64: mode of every contact, between events
    states: np.ndarray       # scalars in use, STATE per body
    places: np.ndarray       #   PLACE per shape
    found: np.ndarray        #   FOUND per contact
    up: np.ndarray           #   6 per degree of freedom
    six: np.ndarray          #   36 per body, and 36: six accelerations of each
    bodies: np.ndarray       #   6 per body
    forces: np.ndarray       #   6 per body
    reach: np.ndarray        #   (6 handles)^2: acceleration of handles per force on them
    rows: np.ndarray         #   ROWS per contact of the problem
    speed: np.ndarray        #   3 per contact of the problem: velocity before contact forces
    change: np.ndarray       #   3: its change without contact forces
    column: np.ndarray       #   6 handles
    delta: np.ndarray        #   (nv) what contact forces do to the joints
    shift: np.ndarray        #   (nv) move that takes shapes out of each other
    still: np.ndarray        #   (nv) zeros
    theta: np.ndarray        # the problem, floats
    b: np.ndarray
    mu: np.ndarray
    slip: np.ndarray
    force: np.ndarray        # 3 per contact of the problem
    velocity: np.ndarray     # 3: what it leaves
    work: np.ndarray         # scratch of the solver
    held: np.ndarray         # 3 per contact: forces of the last solution (normal, tangents)
    mark: np.ndarray         # MARK per contact
    pushes: np.ndarray       # with loops: generalised forces of unit forces on handles, 6 handles times nv
    answers: np.ndarray      # the velocities that they cause
    residual: np.ndarray     # (1,) largest of the problems so far
    struck: np.ndarray       # 3 per contact of the problem: impulses of rebounds one after another
    margin: np.ndarray       # (1,) by how much accelerations must break the law for an event, beyond SAME_MOTION


FLOATS, TABLE, COUNT, INTEGERS = (types.float64[::1], types.float64[:, ::1], types.int64[::1], types.int32[:, ::1])
KINDS = (INTEGERS, TABLE, TABLE, INTEGERS, INTEGERS, TABLE, *9 * (COUNT,), *29 * (FLOATS,))

_floats, _table = array_by_address(FLOATS), array_by_address(TABLE)
_counts, _integers = array_by_address(COUNT), array_by_address(INTEGERS)


@allocating
def touch_of(table):
    """The arrays of a table."""
    return Touch(_integers(table, 0), _table(table, 1), _table(table, 2), _integers(table, 3), _integers(table, 4),
                 _table(table, 5), _counts(table, 6), _counts(table, 7), _counts(table, 8), _counts(table, 9),
                 _counts(table, 10), _counts(table, 11), _counts(table, 12), _counts(table, 13), _counts(table, 14),
                 _floats(table, 15), _floats(table, 16), _floats(table, 17), _floats(table, 18), _floats(table, 19),
                 _floats(table, 20), _floats(table, 21), _floats(table, 22), _floats(table, 23), _floats(table, 24),
                 _floats(table, 25), _floats(table, 26), _floats(table, 27), _floats(table, 28), _floats(table, 29),
                 _floats(table, 30), _floats(table, 31), _floats(table, 32), _floats(table, 33), _floats(table, 34),
                 _floats(table, 35), _floats(table, 36), _floats(table, 37), _floats(table, 38), _floats(table, 39),
                 _floats(table, 40), _floats(table, 41), _floats(table, 42), _floats(table, 43))


def handles_of(arrays: ContactArrays, room: int) -> int:
    """Maximum number of bodies in contact at once."""
    bodies = np.unique(arrays.contact_i[:, [c.CONTACT_A, c.CONTACT_B]])
    return min(int((bodies >= 0).sum()), 2 * room)


def room_for(arrays: ContactArrays, bodies: int, nv: int, room: int, loops: bool) -> dict[str, int]:
    """Lengths of the arrays of a workspace for this number of simultaneous contacts."""
    contacts, shapes, handles = arrays.contact_i.shape[0], arrays.shape_i.shape[0], handles_of(arrays, room)
    dense = 6 * handles * nv if loops else 0
    return {"count": COUNTS, "active": room, "handles": handles, "handle": bodies, "on": bodies, "path": bodies,
            "kind": room, "mode": room, "modes": contacts,
            "states": STATE * bodies, "places": c.PLACE * shapes, "found": c.FOUND * contacts, "up": 6 * nv,
            "six": 36 * (bodies + 1),
            "bodies": 6 * bodies, "forces": 6 * bodies, "reach": 36 * handles * handles, "rows": ROWS * room,
            "speed": 3 * room, "change": 3 * room, "column": 6 * handles, "delta": nv,
            "shift": nv, "still": nv,
            "theta": 9 * room * room, "b": 3 * room, "mu": room, "slip": 2 * room, "force": 3 * room,
            "velocity": 3 * room, "work": int(problem_size(room)), "held": 3 * contacts, "mark": MARK * contacts,
            "pushes": dense, "answers": dense, "residual": 1, "struck": 3 * room, "margin": 1}


def make_touch(arrays: ContactArrays, bodies: int, nv: int, room: int, loops: bool) -> tuple[Touch, np.ndarray]:
    """(memory, its table of addresses) of one run."""
    sizes = room_for(arrays, bodies, nv, room, loops)
    made = [np.zeros(n, np.int64 if kind is COUNT else float)
            for n, kind in zip(sizes.values(), KINDS[6:], strict=True)]
    touch = Touch(*arrays, *made)
    touch.handle[:] = touch.on[:] = -1
    touch.count[LOOPS] = loops
    return touch, table_of(touch)
