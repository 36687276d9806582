"""Large parts of contact that are compiled once, for all runs and entries that need them.

Kernels that call these parts do not import them: an edit of one part compiles the others anew only if they use it.
"""

from __future__ import annotations

from numba import types

from bunraku.contact.contact_memory import TOUCH
from bunraku.entries.signatures import counts, float64, floats, int64, integers, table
from bunraku.jit import Held, call_entry, compiled_apart

# kind, shape_i, shape_f, point_f, places, a, b, first contact, their number, found
SOLIDS = types.void(int64, integers, table, table, floats, int64, int64, int64, int64, floats)
SOLIDS_IN_LANES = types.void(int64, integers, table, table, table, int64, int64, int64, int64, table)
# count, theta, b, mu, kind, slip, start, force, mode, work
PROBLEM = types.Tuple((float64, int64, int64))(int64, floats, floats, floats, counts, floats, int64, floats, counts,
                                               floats)
# touch, island, body_i, h, work
HEAP = types.boolean(Held(TOUCH), int64, integers, float64, floats)


def solids(*args):
    """Contacts of a pair of solids, of one state or in lanes."""
    return call_entry(solids, args)


def solve_problem(*args):
    """The contact problem with a full matrix."""
    return call_entry(solve_problem, args)


def heap_impulses(*args):
    """Impulses of a large island in a step; returns whether it removes penetration."""
    return call_entry(heap_impulses, args)


compiled_apart(solids, {SOLIDS: "contact.solid_pairs.solids_of_state",
                        SOLIDS_IN_LANES: "contact.solid_pairs.solids_in_lanes"})
compiled_apart(solve_problem, {PROBLEM: "contact.problem.contact_problem"})
compiled_apart(heap_impulses, {HEAP: "contact.heap.heap_of_step"})
