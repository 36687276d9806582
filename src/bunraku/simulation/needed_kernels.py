"""Entries of a simulation: those needed at once, and those needed later by connect, cut and events.

They are compiled in parallel before the first step. The later ones may still be compiling when it begins; the
first call of one waits for it.
"""

from bunraku.contact.contact_entries import contacts_one
from bunraku.contact.contact_motion import contact_one, contact_signal, contact_solve
from bunraku.contact.heap import heap_of_step
from bunraku.contact.problem import contact_problem
from bunraku.contact.solid_pairs import solids_of_state
from bunraku.entries.kinematics_entries import observe_batch, observe_one
from bunraku.entries.loop_entries import closed_one
from bunraku.entries.mass_matrix_entries import matrix_one
from bunraku.entries.moves import difference_of_states, integrate_states, normalise_states, rates_of_states
from bunraku.jit import prepare
from bunraku.plan.assemble import assemble, lay_out_records, mark_slots
from bunraku.runs.context import tree_one
from bunraku.runs.time_stepping_run import run_time_stepping
from bunraku.simulation.settings import Settings

ALWAYS = (assemble, normalise_states)
LOOPS = (closed_one, observe_one, mark_slots, lay_out_records, integrate_states)
CONTACT = (contacts_one, solids_of_state, contact_problem)
EVENTFUL = (contact_one, contact_signal, contact_solve)  # from event to event
EVENTS = (rates_of_states, difference_of_states, matrix_one)
ENERGY = (observe_batch, rates_of_states)  # of a trajectory, and its picture


def prepare_simulation(settings: Settings, loops: bool, contact: bool = False) -> None:
    """Load or compile the entries for a simulation with or without loops and contact; the later ones in the
    background."""
    run, _ = settings.entry()
    touching: tuple = ()
    if contact:
        run = run_time_stepping if settings.fixed_step else run
        touching = (*CONTACT, *((heap_of_step,) if settings.fixed_step else EVENTFUL))
    crowded = (run_time_stepping, heap_of_step) if contact and settings.contact_step is not None else ()
    prepare((*ALWAYS, run, *(LOOPS if loops else (tree_one,)), *touching), (*crowded, tree_one, *LOOPS, *EVENTS))


def prepare_scene(solver: str, step: float | None = None) -> None:
    """Load or compile all entries for a scene with loops, from its model to its picture; with a step, also contact."""
    run, _ = Settings.of(solver, 1e-6, 1e-9, step=step).entry()
    contact = () if step is None else (*CONTACT, heap_of_step)
    prepare((*ALWAYS, run if step is None else run_time_stepping, *contact, *LOOPS, *ENERGY))
