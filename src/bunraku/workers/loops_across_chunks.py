"""Pass 1 of a mechanism with connections by one worker of a team: its list of operations (`plan/chunk_loops.py`).

As in `engine.py` the operations are passes over chunks and messages. Passes 2 and 3 are a program of
`algorithms/ada.py`, whose `team` argument (`algorithms/parcels.py`) holds the functions here and those that send.
"""

from bunraku.algorithms.chunk_passes import sweep_outward
from bunraku.algorithms.connection_equations import group_origin, push
from bunraku.algorithms.outward_pass import follow_over
from bunraku.algorithms.parcels import Team
from bunraku.algorithms.passive import pull_force, pull_moment, spring_force
from bunraku.algorithms.tree import (
    COMPUTE,
    ground_acceleration,
    load_pose,
    load_velocity,
    row3,
    row9,
    store_state,
    unit9,
    zero3,
)
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import add, cross, load3, matmul, matvec, store3
from bunraku.spatial.scalar import copy
from bunraku.workers.mail import post, take


@inline
def team_of(plan):
    """The `team` argument of `ada` for the worker with these arrays."""
    return Team(outward_part, post, take, plan)


@inner
def outward_part(again, plan, q, v, tau, external, work):
    """Positions, velocities and forces of the worker's bodies, states of far bodies and of ends of connections;
    `again`: positions and velocities alone. `external` is empty or 6 per link of this worker, then its pulls. False if
    the team has given up."""
    body_i, body_f, ops, boxes, mail = plan.body_i, plan.body_f, plan.ops, plan.boxes, plan.mail
    z = zero3(work)
    store_state(work, f.SLOT_STATE, unit9(work), z, z, z, z, z if again else ground_acceleration(body_f, work))
    store3(work, f.ORIGIN_STATE, z)
    for k in range(ops.shape[0]):
        op, a, b, c = ops[k, 0], ops[k, 1], ops[k, 2], ops[k, 3]
        if op == f.DO_OUTWARD:
            if again:
                sweep_motion(b, c, body_i, body_f, q, v, work)
            else:
                outward_pushed(a, b, c, plan, q, v, tau, external, work)
        elif op == f.DO_COPY:
            copy(work, a, b, c)
        elif op == f.DO_END:
            origin = add(load3(work, b + f.ORIGIN_STATE), group_origin(a, -1, body_i, work))
            copy(work, body_i[a, f.OWN_SLOT], f.ORIGIN_STATE, c)
            store3(work, c + f.ORIGIN_STATE, origin)
        elif op == f.DO_POST:
            post(work, a, b, c, boxes, mail)
        elif not take(work, a, b, c, boxes, mail):
            return False
    if not again:
        pull_springs(plan, work)
    return True


@inner
def outward_pushed(state, first, end, plan, q, v, tau, external, work):
    """Pass 1 of bodies first .. end - 1 of a chunk that hangs at a `state`, with external forces and pulls on their
    links."""
    body_i, body_f, link_i, link_f = plan.body_i, plan.body_f, plan.link_i, plan.link_f
    if external.shape[0] == 0:
        sweep_outward(COMPUTE, first, end, body_i, body_f, q, v, tau, external, work)
        return
    link = 0
    while link < link_i.shape[0] and link_i[link, f.LINK_BODY] < first:
        link += 1
    for i in range(first, end):
        sweep_outward(COMPUTE, i, i + 1, body_i, body_f, q, v, tau, external[:0], work)
        slot = body_i[i, f.OWN_SLOT]
        while link < link_i.shape[0] and link_i[link, f.LINK_BODY] == i:
            R, position = load_pose(work, slot)
            arm = add(position, matvec(R, row3(link_f, link, f.LINK_OFFSET)))
            push(i, 1.0, arm, load3(external, 6 * link + 3), load3(external, 6 * link), body_i, work)
            for o in range(6 * link_i.shape[0], external.shape[0], f.PULL):
                if external[o + f.PULL_LINK] == link:
                    pull(i, link, o, state, plan, external, work)
            link += 1


@inner
def pull(i, link, o, state, plan, external, work):
    """The pull at `o` of `external`, on a link of body i."""
    slot, point = plan.body_i[i, f.OWN_SLOT], load3(external, o + f.PULL_POINT)
    point = add(row3(plan.link_f, link, f.LINK_OFFSET), matvec(row9(plan.link_f, link, f.LINK_ROTATION), point))
    R, arm, omega, velocity = point_of_body(slot, point, work)
    origin = add(load3(work, state + f.ORIGIN_STATE), group_origin(i, -1, plan.body_i, work))
    moment = pull_moment(external, o, matmul(R, row9(plan.link_f, link, f.LINK_ROTATION)), omega)
    push(i, 1.0, arm, moment, pull_force(external, o, add(origin, arm), velocity), plan.body_i, work)


@inner
def pull_springs(plan, work):
    """Forces of point springs on the worker's bodies, from the states of both ends."""
    spring_i, spring_f = plan.spring_i, plan.spring_f
    for k in range(spring_i.shape[0]):
        arm_a, x_a, v_a = spring_end(spring_i[k, f.SPRING_STATE_A], row3(spring_f, k, f.POINT_A), work)
        arm_b, x_b, v_b = spring_end(spring_i[k, f.SPRING_STATE_B], row3(spring_f, k, f.POINT_B), work)
        force, _ = spring_force(spring_f, k, x_a, v_a, x_b, v_b)
        push(spring_i[k, f.SPRING_A], 1.0, arm_a, zero3(work), force, plan.body_i, work)
        push(spring_i[k, f.SPRING_B], -1.0, arm_b, zero3(work), force, plan.body_i, work)


@inline
def spring_end(state, point, work):
    """A point of a body: its position in the body's group and in the world, and its velocity."""
    _, arm, _, velocity = point_of_body(state, point, work)
    return arm, add(load3(work, state + f.ORIGIN_STATE), arm), velocity


@inline
def point_of_body(state, point, work):
    """Rotation of the body, position of a point of it in its group, angular velocity, and velocity of the point."""
    (R, x), (w, v) = load_pose(work, state), load_velocity(work, state)
    arm = add(x, matvec(R, point))
    return R, arm, w, add(v, cross(w, arm))


@inner
def sweep_motion(first, end, body_i, body_f, q, v, work):
    """`follow_over`, compiled once."""
    follow_over(first, end, body_i, body_f, q, v, work)
