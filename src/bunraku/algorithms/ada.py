"""Forward dynamics of any structure: assembly and disassembly over any schedule [YN02].

Idea: the interface of a subchain is its *front*: how the force at its near body (the one closest to the root)
and the accelerations at its other open handles depend on the near body's acceleration a and the handle forces F,

    force needed at the near body  =  I a + p - Y F
    accelerations at the handles   =  Y^T a + beta + Theta F                             [docs/structures.md]

(I, p) is what articulated bodies carry anyway; Y, beta, Theta exist only where a handle is open. Everything the
assembly does is one of a few operations on fronts (`fronts.py`, `graft.py`):

    STEP    take the near body through its joint; without handles this is one body of the articulated-body algorithm
    ATTACH  fronts that meet at one body add up
    CLOSE   both sides of a handle are inside: its force is eliminated, one direction after the other
    GRAFT   attach a subchain at a handle deep inside another: six handle rows become joint forces, then CLOSE

and the disassembly runs them backwards. A schedule is only the order of operations (`plan/tip_to_root.py`,
`plan/scheduled.py`): tip to root it is the articulated-body algorithm with loops; a balanced tree is [YN02]'s; each
operation touches its own fronts only. No inverse inertia is needed, so massless links are allowed.

I, Y and Theta depend on the configuration alone, p and beta on the right-hand side. So the factors of an assembly in
the work array serve for further right-hand sides, for which the program is executed by `substitute` instead of
`assemble`: p and beta alone.

Workers of a team execute programs of their own, in which chunks begin, leave and arrive as well (`parcels.py`). `team`
holds their functions; it is None for one processor, and the compiler leaves these operations out.

Redundant constraints: the pivot of an immobile direction vanishes; its force is set to zero (it is indeterminate), and
its right-hand side must vanish too (`clash`). Pivots that are neither clearly zero nor clearly nonzero are treated by
another method, `proximal.py`. A direction whose joints are all massless is held up by loop forces alone:
such joints get a rotor, and a row that takes the rotor's torque away again.

A coupling of two joints, q_b = ratio q_a + offset, is a connection whose one row starts without Y: its force enters
where the two joints are stepped through (`fronts.couple`), and it is closed above both.

Cost: O(bodies) + (columns per body on a loop) x that; CLOSE k^3/3 for k coupled rows. [Checked with 1-6 loops against
dense solutions in tests/algorithms/test_closed_structures.py.]
"""

import numpy as np

from bunraku.algorithms.aba import ascend_force, deliver, inward
from bunraku.algorithms.connection_equations import DYNAMICS, meet_connections
from bunraku.algorithms.fronts import (
    attach,
    attach_demands,
    close,
    close_demands,
    new,
    new_demands,
    open_again,
    start,
    start_demands,
    step,
    step_back,
    step_demands,
)
from bunraku.algorithms.graft import graft, graft_demands, measure, ungraft
from bunraku.algorithms.outward_pass import follow, outward
from bunraku.algorithms.parcels import hand_back, pass_on
from bunraku.algorithms.tree import ground_acceleration, zero6
from bunraku.algorithms.votes import agree
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import store6
from bunraku.spatial.scalar import clear, constant, minimum, store


@inner
def ada(team, mode, soft, body_i, body_f, dof_f, conn_i, conn_f, prog, q, v, tau, drives, wrench, acceleration, work):
    """Joint accelerations of a structure with connections, and `margin`, `residue` as in `aba`.

    mode DYNAMICS: as `aba`; `drives` are torques (accelerations if prescribed) of the connections, or nothing.
    mode IMPULSE, POSITION: the change of velocity, or the small move, that makes every connection hold, by impulses
    at the connections alone (tau must be zeros). Multipliers and quality measures are left in `work`.
    soft: compliance of each constraint; 0 except in the refinement (`proximal.py`).
    team: None, or that of a worker: arrays are its part, `wrench` is as its pass 1 takes it, and margin, residue and
    quality measures are those of all workers. Margin is -1, or residue NaN, if the team has given up.
    """
    margin = constant(q, 1.0)
    if team is None:
        first_pass(body_i, body_f, q, v, tau, wrench, work)
    elif not team.outward(False, team.plan, q, v, tau, wrench, work):
        margin = -1.0
    make_ready(mode, soft, body_i, conn_i, conn_f, q, v, tau, drives, work)
    for k in range(prog[0]):
        o = f.PROGRAM_START + f.PROGRAM_STEP * k
        margin = minimum(margin, assemble(team, prog[o], o, soft, body_i, dof_f, conn_i, conn_f, prog, tau, work))
    return agree(team, margin, go_back(team, body_i, conn_i, prog, tau, acceleration, work), conn_i, work)


@inner
def make_ready(mode, soft, body_i, conn_i, conn_f, q, v, tau, drives, work):
    """Between pass 1 and the assembly: records of the connections, empty slots, nothing judged so far."""
    n, judged = body_i.shape[0] - 1, conn_i[conn_i.shape[0] - 1, f.HEAD_JUDGED]
    store(work, judged + f.JUDGED_GAP, constant(q, 0.0))
    meet_connections(mode, False, body_i, conn_i, conn_f, q, v, tau, drives, work)
    if mode != DYNAMICS:
        for i in range(n):
            store6(work, body_i[i, f.BODY_RECORD] + f.REC_FORCE, zero6(q))
    clear(work[:body_i[n, f.HEAD_SLOTS] * f.SLOT_SIZE])
    store(work, judged + f.JUDGED_PIVOT, constant(q, 1.0))
    store(work, judged + f.JUDGED_CLASH, constant(q, -1.0))
    store(work, judged + f.JUDGED_MOBILITY, constant(q, 0.0))
    store(work, judged + f.JUDGED_DRIVE, constant(q, 0.0))
    store(work, judged + f.JUDGED_WEAKEST, constant(q, 1e300))
    store(work, judged + f.JUDGED_SOFT, constant(q, soft))
    store(work, judged + f.JUDGED_DROPPED, constant(q, -1.0))
    store(work, judged + f.JUDGED_MISSED, constant(q, -1.0))


@inner
def ada_again(team, mode, body_i, body_f, conn_i, conn_f, prog, q, v, tau, acceleration, work):
    """As `ada` in mode IMPULSE or POSITION, with the factors that it has left in `work`. Returns `residue`.

    The right-hand sides of the connections are those of (q, v), the masses and directions those of the configuration of
    the factors: exact there, with a relative error proportional to the distance elsewhere.
    """
    residue = constant(q, 0.0)
    if team is None:
        again_pass(body_i, body_f, q, v, work)
    elif not team.outward(True, team.plan, q, v, tau, tau[:0], work):
        residue = np.nan
    meet_connections(mode, True, body_i, conn_i, conn_f, q, v, tau, tau[:0], work)
    residue = residue + answer_demands(team, body_i, conn_i, prog, tau, acceleration, work)
    return agree(team, constant(q, 1.0), residue, conn_i, work)[1]


@inner
def answer_demands(team, body_i, conn_i, prog, tau, acceleration, work):
    """Accelerations (or changes of velocity, moves) that the demands in the connections' records lead to by the factors
    at hand, while nothing else acts. tau must be zeros. Returns `residue`, that of this worker."""
    residue = constant(tau, 0.0)
    forget_forces(body_i, conn_i, tau, work)
    for k in range(prog[0]):
        o = f.PROGRAM_START + f.PROGRAM_STEP * k
        residue = residue + substitute(team, prog[o], o, body_i, conn_i, prog, work)
    return residue + go_back(team, body_i, conn_i, prog, tau, acceleration, work)


@inner
def forget_forces(body_i, conn_i, tau, work):
    """Before a further right-hand side."""
    judged = conn_i[conn_i.shape[0] - 1, f.HEAD_JUDGED]
    for slot in range(body_i[body_i.shape[0] - 1, f.HEAD_SLOTS]):
        store6(work, slot * f.SLOT_SIZE + f.SLOT_BIAS, zero6(tau))
    store(work, judged + f.JUDGED_CLASH, constant(tau, -1.0))
    store(work, judged + f.JUDGED_DRIVE, constant(tau, 0.0))


@inner
def first_pass(body_i, body_f, q, v, tau, wrench, work):
    """`outward`, compiled once."""
    outward(body_i, body_f, q, v, tau, wrench, ground_acceleration(body_f, q), work)


@inner
def again_pass(body_i, body_f, q, v, work):
    """`follow`, compiled once."""
    follow(body_i, body_f, q, v, work)


@inner
def sweep(first, last, body_i, dof_f, tau, work):
    """`inward`, compiled once."""
    return inward(False, first, last, body_i, dof_f, tau, work)


@inner
def sweep_forces(first, last, body_i, work):
    """`ascend_force` for bodies first, first - 1, .. last."""
    for back in range(first - last + 1):
        ascend_force(first - back, body_i, work)


@inner
def sweep_back(first, last, body_i, tau, acceleration, work):
    """`deliver` for bodies last, last + 1, .. first."""
    residue = constant(tau, 0.0)
    for i in range(last, first + 1):
        residue = residue + deliver(i, body_i, tau, acceleration, work)
    return residue


@inline
def assemble(team, op, o, soft, body_i, dof_f, conn_i, conn_f, prog, tau, work):
    """One operation of the program on its fronts. Returns the margin of its pivots."""
    margin = constant(tau, 1.0)
    if op == f.OP_SWEEP:
        if prog[o + 3] != 0:
            measure(prog[o + 1], body_i, work)
        margin = sweep(prog[o + 1], prog[o + 2], body_i, dof_f, tau, work)
    elif op == f.OP_STEP:
        if prog[o + 7] != 0:
            measure(prog[o + 1], body_i, work)
        judged = conn_i[conn_i.shape[0] - 1, f.HEAD_JUDGED]
        margin = step(prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], prog[o + 6], judged, body_i, dof_f, conn_f,
                      tau, prog, work)
    elif op == f.OP_NEW:
        new(prog[o + 1], prog[o + 2], work)
    elif op == f.OP_START:
        start(prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], soft, conn_i, work)
    elif op == f.OP_HANDLE:
        for d in range(6):
            store(work, prog[o + 1] + f.row_start(prog[o + 2] + d) + d, constant(work, 1.0))
    elif op == f.OP_ATTACH:
        attach(prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], prog, work)
    elif op == f.OP_CLOSE:
        margin = close(prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], prog[o + 6], prog[o + 7], conn_i, work)
    elif op == f.OP_RESET:
        clear(work[prog[o + 1]:prog[o + 1] + f.SLOT_SIZE])
    elif op == f.OP_GRAFT:
        graft(prog[o + 1], prog, work)
    elif team is not None:
        margin = 1.0 if pass_on(team, False, op, o, conn_i, prog, work) else -1.0
    return margin


@inline
def substitute(team, op, o, body_i, conn_i, prog, work):
    """The same operation on the right-hand side alone, by the factors that `assemble` has left. Returns zero, or NaN if
    the team has given up."""
    residue = constant(work, 0.0)
    if op == f.OP_SWEEP:
        sweep_forces(prog[o + 1], prog[o + 2], body_i, work)
    elif op == f.OP_STEP:
        step_demands(prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], conn_i[conn_i.shape[0] - 1, f.HEAD_JUDGED],
                     body_i, work)
    elif op == f.OP_NEW:
        new_demands(prog[o + 1], prog[o + 2], work)
    elif op == f.OP_START:
        start_demands(prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], conn_i, work)
    elif op == f.OP_ATTACH:
        attach_demands(prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], prog, work)
    elif op == f.OP_CLOSE:
        close_demands(prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], work)
    elif op == f.OP_RESET:
        store6(work, prog[o + 1] + f.SLOT_BIAS, zero6(work))
    elif op == f.OP_GRAFT:
        graft_demands(prog[o + 1], prog, work)
    elif team is not None:
        residue = 0.0 if pass_on(team, True, op, o, conn_i, prog, work) else np.nan
    return residue


@inner
def go_back(team, body_i, conn_i, prog, tau, acceleration, work):
    """The disassembly. Returns `residue`."""
    residue = constant(tau, 0.0)
    store6(work, 0, zero6(tau))  # the ground does not accelerate
    for back in range(prog[0]):
        o = f.PROGRAM_START + f.PROGRAM_STEP * (prog[0] - 1 - back)
        residue = residue + disassemble(team, prog[o], o, body_i, conn_i, prog, tau, acceleration, work)
    return residue


@inline
def disassemble(team, op, o, body_i, conn_i, prog, tau, acceleration, work):
    """The same operation backwards: accelerations and forces. Returns zero, or NaN if not finite."""
    forces = conn_i[conn_i.shape[0] - 1, f.HEAD_FORCES]
    residue = constant(tau, 0.0)
    if op == f.OP_SWEEP:
        residue = sweep_back(prog[o + 1], prog[o + 2], body_i, tau, acceleration, work)
    elif op == f.OP_STEP:
        residue = step_back(prog[o + 1], prog[o + 3], prog[o + 4], prog[o + 5], forces, body_i, tau, acceleration,
                            prog, work)
    elif op == f.OP_CLOSE:
        open_again(prog[o + 1], prog[o + 2], prog[o + 3], prog[o + 4], prog[o + 5], forces, conn_i, prog, work)
    elif op == f.OP_GRAFT:
        ungraft(prog[o + 1], forces, prog, work)
    elif team is not None and op >= f.OP_BEGIN:
        residue = 0.0 if hand_back(team, op, o, conn_i, prog, work) else np.nan
    return residue
