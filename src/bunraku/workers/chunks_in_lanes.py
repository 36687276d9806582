"""One evaluation of forward dynamics with equal chunks in lanes: the operations of `engine.py`, and four for bundles.

A bundle goes through the same kernels as a chunk, W chunks at once. Its part of the state is copied into lanes when
passes 1 and 2 begin, which follow each other directly, so that pass 2 finds the results of pass 1 in the cache.
Joins between the nodes of its chunks are in floats. Then the subtree inertia at every far link is known, and pass 2
is repeated without far handles: so accelerations are as accurate as by the plain sweep (inverse dynamics recovers the
torques), which far handles alone do not give. For a mechanism too large for the caches only the fronts of a bundle are
kept: then pass 1 is repeated, too.
"""

from bunraku.algorithms.chunk_passes import (
    across,
    empty_slots,
    far_acceleration,
    hang_at,
    keep_state,
    receive,
    sweep_down,
    sweep_inward,
    sweep_outward,
)
from bunraku.algorithms.far import far_sweep
from bunraku.algorithms.join import accelerate, carried_on
from bunraku.algorithms.tree import COMPUTE, RECALL, zero3
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import add6, load3, load6, store6, sub6
from bunraku.spatial.lane_memory import floats_to_lanes, lanes_to_floats
from bunraku.spatial.lanes import WIDTH
from bunraku.spatial.scalar import clear, largest, minimum, take_lane, total
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
            residue += bundle_down(c, chunk_i, runs, shape_i, shape_dof, tau, acceleration, work, lanes, own)
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
    nodes, front = chunk_i[c, f.BUNDLE_NODES], chunk_i[c, f.CHUNK_NODE] + f.NODE_FRONT
    _, tau_row = state_rows(shape_i)
    own_tau = lanes[tau_row:]
    bundle_outward(RECALL if path > first else COMPUTE, c, chunk_i, runs, numbers, shape_i, shape_f, q, v, tau, work,
                   lanes, own)
    margin = sweep_inward(end - 1, path, shape_i, shape_dof, own_tau, own)
    if path > first:
        margin = minimum(margin, far_sweep(first, path, chunk_i[c, f.CHUNK_STATE], far_row(shape_i), front, shape_i,
                                           shape_dof, own_tau, lanes, own))
        lanes_to_floats(own, front, f.FRONT_SIZE, work, nodes + f.NODE_FRONT, f.NODE_SIZE)
    else:
        lanes_to_floats(own, chunk_i[c, f.CHUNK_HANG], f.FRONT_CLOSED, work, nodes + f.NODE_FRONT, f.NODE_SIZE)
    return -largest(-margin)


@inner
def bundle_again(c, chunk_i, runs, numbers, shape_i, shape_f, shape_dof, q, v, tau, acceleration, work, lanes, own):
    """Passes 1, 2 and 3 of a bundle whose results were not kept. Returns the residue."""
    path, end = chunk_i[c, f.CHUNK_PATH], chunk_i[c, f.CHUNK_END]
    _, tau_row = state_rows(shape_i)
    bundle_outward(COMPUTE, c, chunk_i, runs, numbers, shape_i, shape_f, q, v, tau, work, lanes, own)
    sweep_inward(end - 1, path, shape_i, shape_dof, lanes[tau_row:], own)
    return bundle_results(c, chunk_i, runs, shape_i, shape_dof, acceleration, work, lanes, own)


@inner
def bundle_down(c, chunk_i, runs, shape_i, shape_dof, tau, acceleration, work, lanes, own):
    """The rest of pass 2, and pass 3. Returns the residue."""
    _, tau_row = state_rows(shape_i)
    bring(tau, chunk_i[c, f.BUNDLE_V_RUNS], chunk_i[c, f.BUNDLE_RUNS_END], runs, lanes, tau_row)
    return bundle_results(c, chunk_i, runs, shape_i, shape_dof, acceleration, work, lanes, own)


@inline
def bundle_results(c, chunk_i, runs, shape_i, shape_dof, acceleration, work, lanes, own):
    """The plain sweeps of the paths, with what hangs from the far links; accelerations of the joints. Returns the
    residue.

    The chunks of a series begin with accelerations from the joins, which differ in rounding from those that the joints
    of the chunk above then give to its far link. This would reduce accuracy, since all links beyond move with that
    link. So the differences are corrected, and pass 3 is repeated.
    """
    first, path = chunk_i[c, f.CHUNK_FIRST], chunk_i[c, f.CHUNK_PATH]
    node, nodes = chunk_i[c, f.CHUNK_NODE], chunk_i[c, f.BUNDLE_NODES]
    _, tau_row = state_rows(shape_i)
    if path > first:
        floats_to_lanes(work, nodes + f.NODE_RECEIVED, f.NODE_SIZE, f.FRONT_CLOSED, own, node + f.NODE_FRONT)
        receive(chunk_i[c, f.CHUNK_STATE], node + f.NODE_FRONT, chunk_i[c, f.CHUNK_FAR], own)
        sweep_inward(path - 1, first, shape_i, shape_dof, lanes[tau_row:], own)
        for w in range(WIDTH - 1):
            accelerate(nodes + f.NODE_SIZE * w, nodes + f.NODE_SIZE * (w + 1), work)
        bundle_pass_3(c, chunk_i, shape_i, work, lanes, own)
        meet(nodes, work)
    residue = bundle_pass_3(c, chunk_i, shape_i, work, lanes, own)
    bring_back(lanes, tau_row, chunk_i[c, f.BUNDLE_V_RUNS], chunk_i[c, f.BUNDLE_RUNS_END], runs, acceleration)
    return total(residue)


@inner
def bundle_pass_3(c, chunk_i, shape_i, work, lanes, own):
    """Pass 3 from the accelerations of the links above; those of the far links to the nodes. Returns the residue."""
    first, path, end = chunk_i[c, f.CHUNK_FIRST], chunk_i[c, f.CHUNK_PATH], chunk_i[c, f.CHUNK_END]
    node, nodes = chunk_i[c, f.CHUNK_NODE], chunk_i[c, f.BUNDLE_NODES]
    _, tau_row = state_rows(shape_i)
    found = lanes[tau_row:]
    floats_to_lanes(work, nodes + f.NODE_A, f.NODE_SIZE, 6, own, chunk_i[c, f.CHUNK_HANG])
    residue = sweep_down(first, end, shape_i, found, found, own)
    if path > first:
        far_acceleration(chunk_i[c, f.CHUNK_FAR], chunk_i[c, f.CHUNK_STATE], node + f.NODE_REACHED, own)
        lanes_to_floats(own, node + f.NODE_REACHED, 6, work, nodes + f.NODE_REACHED, f.NODE_SIZE)
    return residue


@inline
def meet(nodes, work):
    """Correct the initial accelerations of the chunks of a bundle: by the mismatch with the chunk above, and by the
    effect of that chunk's own correction at its far link."""
    change = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for w in range(WIDTH - 1):
        node = nodes + f.NODE_SIZE * w
        begins = node + f.NODE_SIZE + f.NODE_A
        change = add6(sub6(load6(work, node + f.NODE_REACHED), load6(work, begins)), carried_on(node, change, work))
        store6(work, begins, add6(load6(work, begins), change))
