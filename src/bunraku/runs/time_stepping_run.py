"""Simulation with contact in fixed steps (`contact/contact_step.py`): symplectic Euler with a contact problem in it."""

from __future__ import annotations

from bunraku.contact.contact_memory import touch_of
from bunraku.contact.contact_step import contact_step
from bunraku.entries.signatures import int64
from bunraku.jit import entry, hold, inner, outlived
from bunraku.runs.context import RUN, make_context
from bunraku.runs.symplectic_euler_run import steps


@inner
def step_touching(touch, context, q, v, a, h):
    """A step with contact. Returns whether there was room for all contacts."""
    return contact_step(touch, context.structure, context.structure.dof_f, q, v, a, h, context.work)


@entry("simulation with contact, fixed steps", int64(*RUN), seconds=12)
def run_time_stepping(motion, structure, address, params, external, memory, record):
    owned = make_context(motion, structure, address, params, external, memory)
    return outlived(owned, steps(step_touching, touch_of(structure.touch), hold(owned), memory, record))
