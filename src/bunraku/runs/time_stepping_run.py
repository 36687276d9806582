"""Simulation with contact in fixed steps (`contact/contact_step.py`): symplectic Euler with a contact problem in it.

Steps that replace events for a time (`simulation/crowding.py`) take the mean acceleration of their course
(`runs/contact_flight.py`).
"""

from __future__ import annotations

from bunraku.contact.contact_memory import touch_of
from bunraku.contact.contact_step import contact_step
from bunraku.entries.signatures import int64
from bunraku.integrate import solver_memory as m
from bunraku.jit import entry, hold, inner, outlived
from bunraku.runs.contact_flight import EVALUATIONS, mean_accelerations
from bunraku.runs.context import RUN, make_context
from bunraku.runs.symplectic_euler_run import at_start, steps


@inner
def of_course(context, memory, q, v, a, h):
    """(status, step): accelerations at the start of a step of h, or their mean, if memory asks for it."""
    status, h = at_start(context, memory, q, v, a, h)
    if status != 0 or memory.tally[m.FLIGHT] == 0:
        return status, h
    memory.tally[m.EVALUATIONS] += EVALUATIONS
    return mean_accelerations(context, memory.clock[m.TIME], q, v, a, h)


@inner
def step_touching(touch, context, q, v, a, h):
    """A step with contact. Returns whether there was room for all contacts."""
    return contact_step(touch, context.structure, context.structure.dof_f, q, v, a, h, context.work)


@entry("simulation with contact, fixed steps", int64(*RUN), seconds=12)
def run_time_stepping(motion, structure, address, params, external, memory, record):
    owned = make_context(motion, structure, address, params, external, memory)
    return outlived(owned, steps(of_course, step_touching, touch_of(structure.touch), hold(owned), memory, record))
