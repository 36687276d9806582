"""Entries that a simulation uses: those that it needs at once, and those that connect, cut and events need later.

They are compiled side by side before the first step. The later ones may still be in the making when it begins; whoever
needs one first waits for it.
"""

from bunraku.entries.constraints import constraints_one
from bunraku.entries.forward import forward_one
from bunraku.entries.kinematics import jacobian_one, observe_batch, observe_one
from bunraku.entries.loops import closed_one
from bunraku.entries.mass_matrix import matrix_one
from bunraku.entries.moves import difference_of_states, integrate_states, normalise_states, rates_of_states
from bunraku.jit import prepare
from bunraku.plan.assemble import assemble, lay_out_records, mark_slots
from bunraku.simulate.context import tree_one

ALWAYS = (assemble, normalise_states)
LOOPS = (closed_one, observe_one, mark_slots, lay_out_records, integrate_states, constraints_one)
LATER = (tree_one, *LOOPS, forward_one, rates_of_states, difference_of_states, matrix_one, observe_batch, jacobian_one)


def prepare_simulation(run, loops: bool) -> None:
    """Have ready what a simulation by the entry `run` needs now, with or without loops; the rest soon after."""
    prepare((*ALWAYS, run, *(LOOPS if loops else (tree_one,))), LATER)
