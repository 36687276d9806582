"""One evaluation of forward dynamics with equal chunks in lanes: the operations of `engine.py`, and four for bundles.

A bundle goes through the same kernels as a chunk, W chunks at once. Its part of the state is copied into lanes when
passes 1 and 2 begin, which follow each other directly, so that pass 2 finds the results of pass 1 in the cache.
A series of chunks goes through pass 2 with far handles; joins of its nodes, in floats, give (I, p) of what hangs from
each far link, and pass 2 is repeated with these, without far handles. This alone is less accurate than the plain sweep
of the whole: the (I, p) that a chunk has received differs in rounding from what the sweep of the chunk below leaves
above. `mend` finds the difference (E, e); once the acceleration a of the far link is known, `push_far` adds the force
E a + e; `meet` corrects the accelerations likewise. Both are exact to first order in rounding errors, so that inverse
dynamics recovers the torques. For a mechanism too large for the caches only the nodes of a bundle are kept, and passes
1 and 2 are repeated before pass 3.
"""

from bunraku.algorithms.chunk_passes import (
    across,
    empty_slots,
    hang_at,
    keep_state,
    push_far,
    receive,
    sweep_down,
    sweep_down_path,
    sweep_inward,
    sweep_inward_again,
    sweep_outward,
)
from bunraku.algorithms.far import far_sweep
from bunraku.algorithms.join import accelerate, carried_on, join, pass_up
from bunraku.algorithms.tree import COMPUTE, RECALL, zero3
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import add, add6, inertia_times, load3, load6, load9, store3, store6, sub6
from bunraku.spatial.lane_memory import floats_to_lanes, lanes_to_floats
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import clear, largest, minimum, take_lane, total
from bunraku.workers.engine import copy, operate


@inner
def go_through_lanes(ops, chunk_i, runs, numbers, shape_i, shape_f, shape_dof, dof_f, q, v, tau, acceleration, work,
                     lanes):
    """All operations of one evaluation: (margin, residue) as of `aba`. `lanes`: lane memory."""
    margin, residue = 1.0, 0.0
    clear(work[:f.SLOT_SIZE])
    for k in range(ops.shape[0]):
        op, c = ops[k, 0], ops[k, 1]
        if op < f.DO_LANES_ACROSS:
            pivot, unfit = operate(k, ops, shape_i, shape_f, dof_f, chunk_i, runs, numbers, q, v, tau, work[:0],
                                   acceleration, work)
            margin, residue = min(margin, pivot), residue + unfit
            continue
        own = lanes[chunk_i[c, f.BUNDLE_ROWS]:chunk_i[c, f.BUNDLE_ROWS_END]]
        if op == f.DO_LANES_ACROSS:
            bundle_across(c, chunk_i, runs, numbers, shape_i, shape_f, q, v, work, lanes, own)
        elif op == f.DO_LANES_IN:
            margin = min(margin, bundle_in(RECALL if ops[k, 2] != 0 else COMPUTE, c, ops[k, 3], chunk_i, runs, numbers,
                                           shape_i, shape_f, shape_dof, q, v, tau, work, lanes, own))
        else:
            if op == f.DO_LANES_AGAIN:
                bundle_again(c, chunk_i, runs, numbers, shape_i, shape_f, shape_dof, q, v, tau, work, lanes, own)
            residue += bundle_down(c, chunk_i, runs, shape_i, acceleration, work, lanes, own)
    return margin, residue


@inline
def state_rows(shape_i):
    """Rows of lane memory where velocities and torques begin."""
    n = shape_i.shape[0] - 1
    return shape_i[n, f.HEAD_NQ], shape_i[n, f.HEAD_NQ] + shape_i[n, f.HEAD_FREEDOMS_IN_LANES]


@inline
def far_row(shape_i):
    """First row of lane memory for results of far sweeps; the next bundle overwrites it."""
    _, tau_row = state_rows(shape_i)
    return tau_row + shape_i[shape_i.shape[0] - 1, f.HEAD_FREEDOMS_IN_LANES]


@inline
def bring(floats, first, end, runs, lanes, row):
    """A bundle's numbers of the state into lanes, from `row` on."""
    for k in range(first, end):
        start, count, to = runs[k, f.RUN_FIRST], runs[k, f.RUN_COUNT], row + runs[k, f.RUN_ROW]
        place = runs[k, f.RUN_PLACE]
        if place < 0:
            floats_to_lanes(floats, start, runs[k, f.RUN_APART], count, lanes, to)
        else:
            for i in range(count):
                lanes[to + i, place] = floats[start + i]


@inline
def bring_back(lanes, row, first, end, runs, floats):
    for k in range(first, end):
        start, count, to = runs[k, f.RUN_FIRST], runs[k, f.RUN_COUNT], row + runs[k, f.RUN_ROW]
        place = runs[k, f.RUN_PLACE]
        if place < 0:
            lanes_to_floats(lanes, to, count, floats, start, runs[k, f.RUN_APART])
        else:
            for i in range(count):
                floats[start + i] = lanes[to + i, place]


@inline
def bring_state(c, chunk_i, runs, q, v, lanes, v_row):
    bring(q, chunk_i[c, f.BUNDLE_Q_RUNS], chunk_i[c, f.BUNDLE_V_RUNS], runs, lanes, 0)
    bring(v, chunk_i[c, f.BUNDLE_V_RUNS], chunk_i[c, f.BUNDLE_RUNS_END], runs, lanes, v_row)


@inline
def posed(slot, place, numbers, w, v, own):
    """The links above, each with the frame on it in which a chunk's first joint is given."""
    o = place
    R = (take_lane(numbers, o), take_lane(numbers, o + WIDTH), take_lane(numbers, o + 2 * WIDTH),
         take_lane(numbers, o + 3 * WIDTH), take_lane(numbers, o + 4 * WIDTH), take_lane(numbers, o + 5 * WIDTH),
         take_lane(numbers, o + 6 * WIDTH), take_lane(numbers, o + 7 * WIDTH), take_lane(numbers, o + 8 * WIDTH))
    x = (take_lane(numbers, o + 9 * WIDTH), take_lane(numbers, o + 10 * WIDTH), take_lane(numbers, o + 11 * WIDTH))
    hang_at(slot, R, x, w, v, own)


@inner
def bundle_across(c, chunk_i, runs, numbers, shape_i, shape_f, q, v, work, lanes, own):
    """Motion across the paths of the chunks, to their nodes."""
    node = chunk_i[c, f.CHUNK_NODE]
    v_row, tau_row = state_rows(shape_i)
    bring_state(c, chunk_i, runs, q, v, lanes, v_row)
    posed(chunk_i[c, f.CHUNK_HANG], chunk_i[c, f.BUNDLE_POSE], numbers, zero3(own), zero3(own), own)
    across(chunk_i[c, f.CHUNK_FIRST], chunk_i[c, f.CHUNK_PATH], chunk_i[c, f.CHUNK_HANG], node + f.NODE_MOVE, shape_i,
           shape_f, lanes[:v_row], lanes[v_row:tau_row], own)
    lanes_to_floats(own, node + f.NODE_MOVE, 18, work, chunk_i[c, f.BUNDLE_NODES] + f.NODE_MOVE, f.NODE_SIZE)


@inline
def bundle_outward(turns, c, chunk_i, runs, numbers, shape_i, shape_f, q, v, tau, work, lanes, own):
    """Pass 1 from the velocities of the links above; room for pass 2."""
    first, path, end = chunk_i[c, f.CHUNK_FIRST], chunk_i[c, f.CHUNK_PATH], chunk_i[c, f.CHUNK_END]
    node, nodes = chunk_i[c, f.CHUNK_NODE], chunk_i[c, f.BUNDLE_NODES]
    v_row, tau_row = state_rows(shape_i)
    bring_state(c, chunk_i, runs, q, v, lanes, v_row)
    bring(tau, chunk_i[c, f.BUNDLE_V_RUNS], chunk_i[c, f.BUNDLE_RUNS_END], runs, lanes, tau_row)
    floats_to_lanes(work, nodes + f.NODE_V, f.NODE_SIZE, 6, own, node + f.NODE_V)
    posed(chunk_i[c, f.CHUNK_HANG], chunk_i[c, f.BUNDLE_POSE], numbers, load3(own, node + f.NODE_V),
          load3(own, node + f.NODE_V + 3), own)
    own_q, own_v, own_tau = lanes[:v_row], lanes[v_row:tau_row], lanes[tau_row:]
    sweep_outward(turns, first, path, shape_i, shape_f, own_q, own_v, own_tau, own[:0], own)
    if path > first:
        keep_state(chunk_i[c, f.CHUNK_FAR], chunk_i[c, f.CHUNK_STATE], own)
    sweep_outward(COMPUTE, path, end, shape_i, shape_f, own_q, own_v, own_tau, own[:0], own)
    clear(own[:f.SLOT_SIZE])
    empty_slots(c, chunk_i, own)


@inner
def bundle_in(turns, c, below, chunk_i, runs, numbers, shape_i, shape_f, shape_dof, q, v, tau, work, lanes, own):
    """Passes 1 and 2, from the velocities of the links above to the articulated inertias there. `below`: the node that
    hangs from the last chunk of a series, or 0. Returns the margin."""
    first, path, end = chunk_i[c, f.CHUNK_FIRST], chunk_i[c, f.CHUNK_PATH], chunk_i[c, f.CHUNK_END]
    nodes, front = chunk_i[c, f.BUNDLE_NODES], chunk_i[c, f.CHUNK_NODE] + f.NODE_FRONT
    scratch = shape_i[shape_i.shape[0] - 1, f.HEAD_SCRATCH]
    _, tau_row = state_rows(shape_i)
    own_tau = lanes[tau_row:]
    bundle_outward(turns, c, chunk_i, runs, numbers, shape_i, shape_f, q, v, tau, work, lanes, own)
    margin = sweep_inward(end - 1, path, shape_i, shape_dof, own_tau, own)
    if path > first:
        margin = minimum(margin, far_sweep(first, path, chunk_i[c, f.CHUNK_STATE], far_row(shape_i), front, shape_i,
                                           shape_dof, own_tau, lanes, own))
        lanes_to_floats(own, front, f.FRONT_SIZE, work, nodes + f.NODE_FRONT, f.NODE_SIZE)
        join_series(nodes, below, work, scratch)
        sweep_paths(c, chunk_i, shape_i, shape_dof, work, lanes, own)
    lanes_to_floats(own, chunk_i[c, f.CHUNK_HANG], f.FRONT_CLOSED, work, nodes + f.NODE_FRONT, f.NODE_SIZE)
    if path > first:
        mend(nodes, work)
    return -largest(-margin)


@inner
def join_series(nodes, below, work, scratch):
    """(I, p) of what hangs from the far link of each chunk of a series, tip to root."""
    for back in range(WIDTH):
        node = nodes + f.NODE_SIZE * (WIDTH - 1 - back)
        if below > 0:
            copy(work, below + f.NODE_FRONT, f.FRONT_CLOSED, node + f.NODE_RECEIVED)
            join(node, node, below, False, work, scratch)
        else:
            clear(work[node + f.NODE_RECEIVED:node + f.NODE_RECEIVED + f.FRONT_CLOSED])
        below = node


@inner
def sweep_paths(c, chunk_i, shape_i, shape_dof, work, lanes, own):
    """Pass 2 of the paths of a series without far handles, with what hangs from the far links."""
    front = chunk_i[c, f.CHUNK_NODE] + f.NODE_FRONT
    _, tau_row = state_rows(shape_i)
    floats_to_lanes(work, chunk_i[c, f.BUNDLE_NODES] + f.NODE_RECEIVED, f.NODE_SIZE, f.FRONT_CLOSED, own, front)
    receive(chunk_i[c, f.CHUNK_STATE], front, chunk_i[c, f.CHUNK_FAR], own)
    sweep_inward_again(chunk_i[c, f.CHUNK_PATH] - 1, chunk_i[c, f.CHUNK_FIRST], shape_i, shape_dof, lanes[tau_row:],
                       own)


@inner
def mend(nodes, work):
    """(E, e): what the chunk below hands over, less what a chunk has received, with the effect of the same difference
    at the far link of the chunk below; tip to root. The bundle hands over what its first chunk does, so mended."""
    for back in range(WIDTH - 1):
        node = nodes + f.NODE_SIZE * (WIDTH - 2 - back)
        below = node + f.NODE_SIZE
        for k in range(f.FRONT_CLOSED):
            work[node + f.NODE_MEND + k] = work[below + f.NODE_FRONT + k] - work[node + f.NODE_RECEIVED + k]
        if back > 0:
            pass_up(below, below + f.NODE_MEND, node + f.NODE_MEND, work)
    pass_up(nodes, nodes + f.NODE_MEND, nodes + f.NODE_FRONT, work)


@inner
def bundle_again(c, chunk_i, runs, numbers, shape_i, shape_f, shape_dof, q, v, tau, work, lanes, own):
    """Passes 1 and 2 of a bundle whose results were not kept."""
    path, end = chunk_i[c, f.CHUNK_PATH], chunk_i[c, f.CHUNK_END]
    _, tau_row = state_rows(shape_i)
    bundle_outward(COMPUTE, c, chunk_i, runs, numbers, shape_i, shape_f, q, v, tau, work, lanes, own)
    sweep_inward(end - 1, path, shape_i, shape_dof, lanes[tau_row:], own)
    if path > chunk_i[c, f.CHUNK_FIRST]:
        sweep_paths(c, chunk_i, shape_i, shape_dof, work, lanes, own)


@inner
def bundle_down(c, chunk_i, runs, shape_i, acceleration, work, lanes, own):
    """Pass 3. Returns the residue."""
    first, end, hang = chunk_i[c, f.CHUNK_FIRST], chunk_i[c, f.CHUNK_END], chunk_i[c, f.CHUNK_HANG]
    nodes, reached = chunk_i[c, f.BUNDLE_NODES], chunk_i[c, f.CHUNK_NODE] + f.NODE_REACHED
    state = chunk_i[c, f.CHUNK_STATE]
    _, tau_row = state_rows(shape_i)
    found = lanes[tau_row:]
    if chunk_i[c, f.CHUNK_PATH] > first:
        missing_forces(nodes, work)
        floats_to_lanes(work, nodes + f.NODE_F, f.NODE_SIZE, 6, own, reached)
        push_far(first, end, state, reached, shape_i, own)
        floats_to_lanes(work, nodes + f.NODE_A, f.NODE_SIZE, 6, own, hang)
        residue = sweep_down_path(False, first, end, hang, state, reached, shape_i, found, own)
        lanes_to_floats(own, reached, 6, work, nodes + f.NODE_REACHED, f.NODE_SIZE)
        meet(nodes, work)
        floats_to_lanes(work, nodes + f.NODE_A, f.NODE_SIZE, 6, own, hang)
        residue = residue + sweep_down_path(True, first, end, hang, state, reached, shape_i, found, own)
        lanes_to_floats(own, reached, 6, work, nodes + f.NODE_REACHED, f.NODE_SIZE)
    else:
        floats_to_lanes(work, nodes + f.NODE_A, f.NODE_SIZE, 6, own, hang)
        residue = sweep_down(first, end, shape_i, found, found, own)
    bring_back(lanes, tau_row, chunk_i[c, f.BUNDLE_V_RUNS], chunk_i[c, f.BUNDLE_RUNS_END], runs, acceleration)
    return total(residue)


@inline
def missing_forces(nodes, work):
    """Accelerations by the joins along a series, and the forces E a + e that are missing at the far links."""
    for w in range(WIDTH - 1):
        node = nodes + f.NODE_SIZE * w
        accelerate(node, node + f.NODE_SIZE, work)
        o, a = node + f.NODE_MEND, node + f.NODE_SIZE + f.NODE_A
        n, force = inertia_times(load6(work, o), load9(work, o + 6), load6(work, o + 15), load3(work, a),
                                 load3(work, a + 3))
        store3(work, node + f.NODE_F, add(n, load3(work, o + f.FRONT_P)))
        store3(work, node + f.NODE_F + 3, add(force, load3(work, o + f.FRONT_P + 3)))
    store6(work, nodes + f.NODE_SIZE * (WIDTH - 1) + f.NODE_F, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))


@inline
def meet(nodes, work):
    """Corrections of the accelerations that the chunks of a series begin with: the mismatch with what the chunk above
    reaches, and the effect of that chunk's own correction at its far link."""
    change = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    store6(work, nodes + f.NODE_A, change)
    for w in range(WIDTH - 1):
        node = nodes + f.NODE_SIZE * w
        begins = node + f.NODE_SIZE + f.NODE_A
        change = add6(sub6(load6(work, node + f.NODE_REACHED), load6(work, begins)), carried_on(node, change, work))
        store6(work, begins, change)
