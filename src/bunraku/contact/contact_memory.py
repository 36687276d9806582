"""Contact workspace: the constant arrays of the geometry, the contact state of a run, and scratch.

`BUFFERS` declares each buffer in one row. The named tuple `Touch`, the words that represent it in a plan
(`Arrays.touch`: solvers pass contact on without depending on it) and the workspace for lanes follow from these rows.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
from numba import types

from bunraku.algorithms.body_motion import STATE
from bunraku.compiler.handles import by_address, laid_out
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_arrays import ContactArrays
from bunraku.contact.problem_memory import problem_size
from bunraku.entries.signatures import lane_array
from bunraku.jit import allocating
from bunraku.plan import fields as f

# Places in `count`
BASE = 0         # address of the motion of the mechanism without contact (`tree_one` or `closed_one`)
LOOPS = 1        # 1: it has connections
ACTIVE = 2       # contacts in the problems of this step or state
HANDLES = 3      # bodies that they act on
PATH = 4         # bodies between these and the ground
STATUS = 5       # of the last problem: SOLVED, ROUGH, NO_SOLUTION; or FULL
WORST = 6        # number of the contact with the largest residual, or for which there is no room
SOLVED_COUNT = 7  # problems solved so far
ITERATIONS = 8   # of all of them
ROUGHLY = 9      # how many were left with a residual above 1e-10
ROUGH_CONTACTS = 10  # contacts of the largest of these
IN_TURN = 11     # 1: rebounds one after another (`contact/sequential_impacts.py`); 0: all at once
ISLANDS = 12     # problems of this step
DENSE = 13       # contacts of an island from which on it has no full matrix (`contact/heap.py`)
PAIRS = 14       # pairs in the list
WANTED_PAIRS = 15     # 0, or pairs for which the list has no room, and
WANTED_CONTACTS = 16  # their contacts
JOINTS = 17      # contacts of joints, the first of every list
MOMENTS = 18     # moments of friction in the problems of this step or state
SOFT = 19        # 1: some contacts are soft
COUNTS = 20
FULL = 10        # a status: more contacts than there is room for

ROW = 12         # scalars of a row: force on the handle of a (moment, force), on that of b
ROWS = 3 * ROW   # of a contact

MARK_SLIP = 0    # 3, direction of slip that friction is against, where slip is too slow to have one
MARK_GAP = 3     # gap at which an open contact counts as closed [m]; speed at which slip of a sliding one ends [m/s]
MARK = 4

FEATURE = 8      # of a kept feature: its kind, radius [m], point (3) and axis (3) in the axes of its body
FEATURES = 2 * FEATURE  # of a contact: those of a and b


class Extent(NamedTuple):
    """Numbers that the lengths of buffers depend on."""

    contacts: int   # contacts of joints and listed pairs
    joints: int     # those of joints
    pairs: int      # pairs of a list that changes; 0: it does not
    shapes: int
    searched: int   # shapes, if the list changes; 0: it does not
    buckets: int    # of the hash table of cells, a power of 2; 0: the list does not change
    kept: int       # contacts in the problems of a step that a new list takes along; 0: the list does not change
    bodies: int
    nv: int
    room: int       # contacts in the problems of a step or state
    dense: int      # contacts in one problem with a full matrix
    handles: int    # bodies in contact
    reached: int    # bodies in contact in one such problem
    closed: int     # 6 handles nv with connections, else 0
    solver: int     # scratch of `solve_contacts` for `dense` contacts


class Buffer(NamedTuple):
    """One buffer of the workspace."""

    name: str
    scalar: str     # COUNT: int64; FLOAT: float64; LANE: a float, or a lane where several states are computed together
    length: str     # in terms of `Extent`
    meaning: str    # with its unit
    stage: str      # the function that writes it


COUNT, FLOAT, LANE = "count", "float", "lane"
UNITS = {"COUNTS": COUNTS, "PAIR_KINDS": c.PAIR_KINDS, "STATE": STATE, "PLACE": c.PLACE, "FOUND": c.FOUND, "ROWS": ROWS,
         "MARK": MARK, "FEATURES": FEATURES}
GIVEN = tuple(ContactArrays._fields)
BUFFERS = tuple(Buffer(*row) for row in (
    # -- a step or state: contacts ordered by island, bodies in contact ------------------------------------------------
    ("count", COUNT, "COUNTS", "the places above", "all"),
    ("tree", COUNT, "bodies", "first body of its tree", "make_touch"),
    ("active", COUNT, "room", "numbers of the contacts", "take_up"),
    ("before", COUNT, "room", "those of the last step", "contact_step"),
    ("number", COUNT, "room", "island of each contact", "find_islands"),
    ("moved", COUNT, "room", "scratch: contacts in another order", "find_islands"),
    ("island", COUNT, "room + 1", "first contact of each island", "find_islands"),
    ("island_handle", COUNT, "room + 1", "first handle of each island", "arrange"),
    ("island_path", COUNT, "room + 1", "first body of each island in `path`", "arrange"),
    ("leader", COUNT, "bodies", "union-find over trees; -1: none", "find_islands"),
    ("handles", COUNT, "handles", "bodies in contact", "arrange"),
    ("handle", COUNT, "bodies", "number of a body among the handles; -1: none", "arrange"),
    ("on", COUNT, "bodies", "marks on bodies; -1 between uses", "response.py"),
    ("path", COUNT, "bodies", "bodies between ground and handles, parents first", "arrange"),
    ("states", LANE, "STATE * bodies", "STATE per body: pose, velocity, acceleration", "see_bodies"),
    ("places", LANE, "PLACE * shapes", "PLACE per shape: pose", "place_shapes"),
    ("found", LANE, "FOUND * contacts", "FOUND per contact: gap, normal, point", "find_contacts"),
    ("joint_speed", LANE, "joints", "[rad/s or m/s] velocity of the live rows of joints", "see_joints"),
    ("origins", FLOAT, "3 * shapes + 1", "[m] centres of shapes when pairs were listed; last: reach", "list_pairs"),
    ("cells", COUNT, "4 * searched", "per shape: cell (3), grid", "put_into_cells"),
    ("heads", COUNT, "buckets", "first shape of each bucket of cells; -1: none", "put_into_cells"),
    ("chain", COUNT, "searched", "next shape in the same bucket; -1: none", "put_into_cells"),
    ("keys", COUNT, "pairs", "keys of pairs, in order", "find_pairs, sort_keys"),
    ("sorted", COUNT, "pairs", "scratch", "sort_keys"),
    ("tally", COUNT, "searched + PAIR_KINDS + 1", "scratch", "sort_keys"),
    ("aside", COUNT, "3 * kept", "per contact of the last step: key of its pair, place in it, mode", "put_aside"),
    ("aside_force", FLOAT, "3 * kept", "[N s] its impulse", "put_aside"),
    ("rows", LANE, "ROWS * room", "ROWS per contact: wrenches on both bodies of unit forces", "make_rows"),
    ("speed", LANE, "3 * room", "[m/s] velocity of b's surface to a's at the state: normal, two tangents", "make_rows"),
    ("change", LANE, "3 * room", "its change, or acceleration, without contact forces", "change_of_contacts"),
    ("up", LANE, "6 * nv", "u of each joint for six forces", "response.py"),
    ("six", LANE, "36 * (bodies + 1)", "six accelerations of each body", "response.py"),
    ("bodies", LANE, "6 * bodies", "accelerations of bodies (angular, linear)", "respond"),
    ("forces", LANE, "6 * bodies", "contact wrenches on bodies (moment, force), sign changed", "put_forces"),
    ("partings", LANE, "6 * bodies", "the same, that remove penetration", "put_forces"),
    ("reach", LANE, "36 * reached * reached", "accelerations of handles per wrench on them", "handle_responses"),
    ("column", LANE, "6 * reached", "scratch", "make_theta"),
    ("delta", LANE, "nv", "change of v, or acceleration, by contact forces", "respond"),
    ("shift", LANE, "nv", "move of q that removes penetration", "respond"),
    ("still", LANE, "nv", "zeros", "make_touch"),
    # -- one problem: an island of a step, or all closed contacts of a state -------------------------------------------
    ("own", COUNT, "room", "in lanes: places of the contacts of one state", "solve_in_lane"),
    ("place", COUNT, "contacts", "in lanes: place of a contact in `active`", "solve_in_lane"),
    ("kind", COUNT, "room", "DISC or GIVEN", "state_problem"),
    ("mode", COUNT, "room", "OPEN, STICKING or SLIDING", "solve_contacts"),
    ("theta", FLOAT, "9 * dense * dense", "[1/kg] velocity per impulse, by rows", "make_theta"),
    ("gap", FLOAT, "room", "[m]", "load_island"),
    ("friction", FLOAT, "room", "coefficient of the pair", "load_island"),
    ("dry", COUNT, "room", "1: dry friction of a joint, whose normal force is given", "load_island"),
    ("bounce", FLOAT, "room", "restitution of the pair", "load_island"),
    ("ratio", FLOAT, "room", "[1/s] of soft contacts: k / (h k + d); 0: rigid", "load_island"),
    ("law", COUNT, "room", "kind: DISC, and what loads a moment", "load_island"),
    ("arriving", FLOAT, "3 * room", "[m/s] velocity at the beginning of the step", "load_island"),
    ("gaining", FLOAT, "3 * room", "[m/s] its change in the step without contact", "load_island"),
    ("b", FLOAT, "3 * room", "right-hand side", "state_problem"),
    ("mu", FLOAT, "room", "coefficient of friction in the problem", "state_problem"),
    ("slip", FLOAT, "2 * room", "unit direction of slip of GIVEN contacts", "closed_contacts"),
    ("force", FLOAT, "3 * room", "[N s or N] normal, two tangents", "solve_contacts"),
    ("parting", FLOAT, "3 * room", "impulses [N s s] that remove penetration", "part_shapes"),
    ("velocity", FLOAT, "3 * room", "Theta force + b", "velocities_after"),
    ("struck", FLOAT, "3 * room", "[N s] of rebounds one after another", "rebounds_in_turn"),
    ("work", FLOAT, "solver", "scratch", "solve_contacts"),
    ("pushes", FLOAT, "closed", "with loops: generalised forces of unit wrenches on handles", "make_problem_closed"),
    ("answers", FLOAT, "closed", "velocities that they cause", "make_problem_closed"),
    # -- contact state of a run, by number of the contact --------------------------------------------------------------
    ("modes", COUNT, "contacts", "OPEN, STICKING or SLIDING", "contact_step, settle"),
    ("held", FLOAT, "3 * contacts", "[N s] impulses of the last step", "contact_step"),
    ("mark", FLOAT, "MARK * contacts", "MARK per contact", "settle"),
    ("features", FLOAT, "FEATURES * contacts", "kept features of closed contacts; kind 0: none", "keep_features"),
    ("margin", FLOAT, "1", "violation of the law needed for an event, beyond SAME_MOTION", "settle"),
    ("residual", FLOAT, "1", "largest of the problems so far", "solve_noting"),
))

_named: Any = namedtuple  # whose fields types cannot know
Touch = _named("Touch", (*GIVEN, *(buffer.name for buffer in BUFFERS)))

_KINDS = {COUNT: types.int64[::1], FLOAT: types.float64[::1], LANE: types.float64[::1]}
TOUCH = types.NamedTuple([types.int32[:, ::1] if name.endswith("_i") else types.float64[:, ::1] for name in GIVEN]
                         + [_KINDS[buffer.scalar] for buffer in BUFFERS], Touch)
touch_of = by_address(TOUCH)
"""The workspace of `Arrays.touch`."""

MADE = {COUNT: "np.zeros({}, np.int64)", FLOAT: "np.zeros({})", LANE: "lane_array({})"}
_made: dict[str, Any] = {"Touch": Touch, "np": np, "lane_array": lane_array, **UNITS}
_fields = [f"given.{name}" for name in GIVEN] + [MADE[buffer.scalar].format(buffer.length) for buffer in BUFFERS]
exec(f"def _lane_touch(given, {', '.join(Extent._fields)}):\n    return Touch({', '.join(_fields)})", _made)
_lane_touch = allocating(_made["_lane_touch"])  # Numba needs each of the values written out


@allocating
def lane_touch(given, body_i, nv, room, handles):
    """A workspace with lanes where the scalar is LANE, for `room` contacts of all states at once."""
    touch = _lane_touch(given, given.contact_i.shape[0], given.joint_i.shape[0], 0, given.shape_i.shape[0], 0, 0, 0,
                        body_i.shape[0] - 1, nv, room, room, handles, handles, 0, problem_size(room))
    touch.still[:, :] = 0.0
    touch.count[PAIRS], touch.count[JOINTS] = given.pair_i.shape[0], given.joint_i.shape[0]
    touch.count[SOFT] = any_soft(given.shape_f)
    _begin_compiled(touch, body_i)
    return touch


def _any_soft(shape_f):
    """1 if a shape is soft."""
    soft = 0
    for k in range(shape_f.shape[0]):
        soft = 1 if shape_f[k, c.SHAPE_STIFFNESS] > 0.0 else soft
    return soft


any_soft = allocating(_any_soft)


def _begin(touch, body_i):
    """Initial values other than zero."""
    for i in range(touch.tree.shape[0]):
        parent = body_i[i, f.PARENT]
        touch.tree[i] = i if parent < 0 else touch.tree[parent]
        touch.handle[i] = touch.on[i] = touch.leader[i] = -1


_begin_compiled = allocating(_begin)


def handles_of(arrays: ContactArrays, room: int) -> int:
    """Maximum number of bodies in contact at once."""
    bodies = arrays.shape_i[:, c.SHAPE_BODY]
    if len(arrays.joint_i):
        joints = arrays.contact_i[:len(arrays.joint_i), c.CONTACT_A:c.CONTACT_B + 1]
        bodies = np.concatenate([bodies, joints.ravel()])
    bodies = np.unique(bodies)
    return min(int((bodies >= 0).sum()), 2 * room)


class Room(NamedTuple):
    """Numbers of a run for which there is memory."""

    contacts: int                       # in the problems of a step or state
    dense: int                          # in one problem with a full matrix
    listed: tuple[int, int] | None = None  # pairs and their contacts, of a list that changes


def extent_of(arrays: ContactArrays, bodies: int, nv: int, room: Room, loops: bool) -> Extent:
    """Lengths of a workspace."""
    handles, shapes = handles_of(arrays, room.contacts), len(arrays.shape_i)
    pairs, searched = (room.listed[0], shapes) if room.listed else (0, 0)
    return Extent(len(arrays.contact_i), len(arrays.joint_i), pairs, shapes, searched,
                  1 << (2 * searched).bit_length() if searched else 0,
                  room.contacts if searched else 0, bodies, nv, room.contacts, room.dense, handles,
                  min(handles, 2 * room.dense), 6 * handles * nv if loops else 0, int(problem_size(room.dense)))


def make_touch(arrays: ContactArrays, body_i, nv: int, room: Room, loops: bool) -> tuple[Any, np.ndarray]:
    """(workspace, the same as compiled code has it) of one run; without `room.listed` the list is that of `arrays`."""
    if room.listed:
        pairs, contacts = room.listed
        joints = len(arrays.joint_i)
        tables = np.zeros((joints + contacts, c.CONTACT_I), np.int32), np.zeros((joints + contacts, c.CONTACT_F))
        tables[0][:joints], tables[1][:joints] = arrays.contact_i[:joints], arrays.contact_f[:joints]
        arrays = arrays._replace(pair_i=np.zeros((pairs, c.PAIR_I), np.int32), contact_i=tables[0],
                                 contact_f=tables[1])
    extent = extent_of(arrays, len(body_i) - 1, nv, room, loops)._asdict()
    touch = Touch(*arrays, *(np.zeros(eval(buffer.length, UNITS, extent), np.int64 if buffer.scalar == COUNT else float)
                             for buffer in BUFFERS))
    _begin(touch, body_i)
    touch.found.reshape(-1, c.FOUND)[arrays.contact_i[:, c.CONTACT_ROLE] != c.PUSH, c.FOUND_GAP] = np.inf
    touch.count[LOOPS], touch.count[DENSE], touch.count[JOINTS] = loops, room.dense, len(arrays.joint_i)
    touch.count[SOFT] = _any_soft(arrays.shape_f)
    touch.count[PAIRS], touch.origins[-1] = (0, -np.inf) if room.listed else (len(arrays.pair_i), np.inf)
    return touch, laid_out(touch)
