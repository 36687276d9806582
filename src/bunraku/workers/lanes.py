"""One evaluation of forward dynamics with like chunks in lanes: the operations of `engine.py`, and four for bundles.

A bundle goes through the same kernels as a chunk, W chunks at once. Its part of the state is brought into lanes when
passes 1 and 2 begin, and these follow each other directly, so that pass 2 finds in the cache what pass 1 has left.
Joins between the nodes of its chunks are in floats. A mechanism too large for the caches keeps nothing of a bundle but
its fronts: once the forces on the far links are known, the bundle is swept a second time.
"""

from bunraku.algorithms.chunk import (
    across,
    empty_slots,
    hang_at,
    keep_state,
    pull,
    sweep_down,
    sweep_inward,
    sweep_outward,
)
from bunraku.algorithms.far import far_force, far_sweep, far_sweep_back, keep_pivots
from bunraku.algorithms.tree import COMPUTE, RECALL, zero3
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import load3
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import (
    clear,
    floats_to_lanes,
    lanes_to_floats,
    largest,
    load,
    minimum,
    store,
    take_lane,
    total,
)
from bunraku.workers.engine import operate


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
            margin = min(margin, bundle_in(c, chunk_i, runs, numbers, shape_i, shape_f, shape_dof, q, v, tau, work,
                                           lanes, own))
        elif op == f.DO_LANES_AGAIN:
            residue += bundle_again(c, chunk_i, runs, numbers, shape_i, shape_f, shape_dof, q, v, tau, acceleration,
                                    work, lanes, own)
        else:
            residue += bundle_down(c, chunk_i, runs, shape_i, acceleration, work, lanes, own)
    return margin, residue


@inline
def state_rows(shape_i):
    """Rows of lane memory where velocities and torques begin."""
    n = shape_i.shape[0] - 1
    return shape_i[n, f.HEAD_NQ], shape_i[n, f.HEAD_NQ] + shape_i[n, f.HEAD_FREEDOMS_IN_LANES]


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
    if turns == COMPUTE:
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
def bundle_in(c, chunk_i, runs, numbers, shape_i, shape_f, shape_dof, q, v, tau, work, lanes, own):
    """Passes 1 and 2, from the velocities of the links above to the fronts. Returns the margin."""
    first, path, end = chunk_i[c, f.CHUNK_FIRST], chunk_i[c, f.CHUNK_PATH], chunk_i[c, f.CHUNK_END]
    nodes, front, kept = chunk_i[c, f.BUNDLE_NODES], chunk_i[c, f.CHUNK_NODE] + f.NODE_FRONT, chunk_i[c, f.CHUNK_KEPT]
    _, tau_row = state_rows(shape_i)
    own_tau = lanes[tau_row:]
    bundle_outward(RECALL if path > first else COMPUTE, c, chunk_i, runs, numbers, shape_i, shape_f, q, v, tau, work,
                   lanes, own)
    margin = sweep_inward(end - 1, path, shape_i, shape_dof, own_tau, own)
    if path > first:
        shared = chunk_i[c, f.BUNDLE_SHARED]
        margin = minimum(margin, far_sweep(first, path, chunk_i[c, f.CHUNK_STATE], shared if shared != 0 else kept,
                                           front, shape_i, shape_dof, own_tau, lanes if shared != 0 else own, own))
        if shared != 0:
            keep_pivots(first, path, shared, kept, shape_i, lanes, own)
        lanes_to_floats(own, front, f.FRONT_SIZE, work, nodes + f.NODE_FRONT, f.NODE_SIZE)
    else:
        lanes_to_floats(own, chunk_i[c, f.CHUNK_HANG], f.FRONT_CLOSED, work, nodes + f.NODE_FRONT, f.NODE_SIZE)
    return -largest(-margin)


@inline
def bring_boundary(c, chunk_i, work, own):
    """Accelerations of the links above, and forces on the far links, from the nodes."""
    floats_to_lanes(work, chunk_i[c, f.BUNDLE_NODES] + f.NODE_A, f.NODE_SIZE, 12, own,
                    chunk_i[c, f.CHUNK_NODE] + f.NODE_A)


@inline
def set_accelerations(c, chunk_i, own):
    hang, node = chunk_i[c, f.CHUNK_HANG], chunk_i[c, f.CHUNK_NODE]
    for i in range(6):
        store(own, hang + i, load(own, node + f.NODE_A + i))


@inner
def bundle_down(c, chunk_i, runs, shape_i, acceleration, work, lanes, own):
    """Pass 3, from the accelerations of the links above and the forces on the far links. Returns the residue."""
    first, path, end = chunk_i[c, f.CHUNK_FIRST], chunk_i[c, f.CHUNK_PATH], chunk_i[c, f.CHUNK_END]
    force, kept = chunk_i[c, f.CHUNK_NODE] + f.NODE_F, chunk_i[c, f.CHUNK_KEPT]
    _, tau_row = state_rows(shape_i)
    found = lanes[tau_row:]
    bring_boundary(c, chunk_i, work, own)
    set_accelerations(c, chunk_i, own)
    if chunk_i[c, f.BUNDLE_SHARED] != 0:
        far_force(first, path, chunk_i[c, f.CHUNK_STATE], force, kept, shape_i, own)
        path = first
    residue = far_sweep_back(first, path, chunk_i[c, f.CHUNK_STATE], kept, force, shape_i, found, found, own)
    residue = residue + sweep_down(path, end, shape_i, found, found, own)
    bring_back(lanes, tau_row, chunk_i[c, f.BUNDLE_V_RUNS], chunk_i[c, f.BUNDLE_RUNS_END], runs, acceleration)
    return total(residue)


@inner
def bundle_again(c, chunk_i, runs, numbers, shape_i, shape_f, shape_dof, q, v, tau, acceleration, work, lanes, own):
    """The whole plain sweep, now that the forces on the far links are known. Returns the residue."""
    first, path, end = chunk_i[c, f.CHUNK_FIRST], chunk_i[c, f.CHUNK_PATH], chunk_i[c, f.CHUNK_END]
    _, tau_row = state_rows(shape_i)
    found = lanes[tau_row:]
    bundle_outward(COMPUTE, c, chunk_i, runs, numbers, shape_i, shape_f, q, v, tau, work, lanes, own)
    bring_boundary(c, chunk_i, work, own)
    if path > first:
        pull(chunk_i[c, f.CHUNK_STATE], chunk_i[c, f.CHUNK_NODE] + f.NODE_F, chunk_i[c, f.CHUNK_FAR], own)
    sweep_inward(end - 1, first, shape_i, shape_dof, found, own)
    set_accelerations(c, chunk_i, own)
    residue = sweep_down(first, end, shape_i, found, found, own)
    bring_back(lanes, tau_row, chunk_i[c, f.BUNDLE_V_RUNS], chunk_i[c, f.BUNDLE_RUNS_END], runs, acceleration)
    return total(residue)
