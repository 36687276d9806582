"""Loop constraints as matrices: the constraint Jacobian and the rates of connections, per unit of each velocity.

Idea: the relative motion at a connection is the sum over the joints between its two links, those on the way to b
counted positive, those on the way to a negative. Along the constrained directions that is a row of J (J v = 0 for a
closed loop), along the free ones the rates of the connection's coordinates, and the work of a wrench is its
generalised force. References: [YN99] sec. 2, eqs. 5-10. Cost O(joints on loops) per connection, no matrix product.

Dense by design: for studies, references and closed-chain inverse dynamics; forward dynamics by `ada` never forms J.
"""

from bunraku.algorithms.body_motion import STATE, body_states
from bunraku.algorithms.connection_equations import DYNAMICS, POSITION, meet_connections
from bunraku.algorithms.connection_laws import rates
from bunraku.algorithms.outward_pass import outward
from bunraku.algorithms.tree import ground_acceleration, joint_column, load_acceleration, load_pose, row3
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import add, dot, load3, load9, matTvec, matvec, norm, scale, sub


@inner
def constraints(body_i, body_f, conn_i, conn_f, q, v, drives, columns, ways, own, bias, gap, coordinates, speeds,
                states, work):
    """Constraint quantities of all connections in one state. Returns the magnitude of the accelerations in `bias`.

    Zeroed by the caller:

    columns (nv, rows)      J transposed: constrained relative velocity per unit of each joint velocity
    ways (nv, freedoms)     rates of the connections' coordinates per unit of each joint velocity
    own (nv)                generalised force of the connections' springs, dampers and drives
    Filled:
    bias, gap (rows)        J a + bias = 0 keeps the loops closed; how far they are open
    coordinates, speeds (freedoms)
    states                  as `body_states` leaves them; `work` is that of `ada`
    """
    gaps(body_i, body_f, conn_i, conn_f, q, v, own, gap, work)
    meet_connections(DYNAMICS, False, body_i, conn_i, conn_f, q, v, own, drives, work)
    read(f.CONN_BIAS, f.ROWS, f.FIRST_ROW, conn_i, work, bias)
    read(f.CONN_COORDINATES, f.FREEDOMS, f.FIRST_FREEDOM, conn_i, work, coordinates)
    read(f.CONN_RATES, f.FREEDOMS, f.FIRST_FREEDOM, conn_i, work, speeds)
    body_states(body_i, body_f, q, v, v, states)
    motion_of_gaps(body_i, body_f, conn_i, conn_f, states, columns, ways, own, work)
    size = 0.0
    for c in range(conn_i.shape[0] - 1):
        for state in (conn_i[c, f.STATE_A], conn_i[c, f.STATE_B]):
            alpha, a = load_acceleration(work, state)
            size = max(size, conn_f[c, f.LENGTH] * norm(alpha) + norm(a))
    return size


@inline
def gaps(body_i, body_f, conn_i, conn_f, q, v, own, gap, work):
    """How far each loop is open along its rows; `motion_of_gaps` uses the records that this leaves in `work`."""
    nothing = work[:0]
    outward(body_i, body_f, q, v, own, nothing, ground_acceleration(body_f, q), work)  # own: no joint is locked
    meet_connections(POSITION, False, body_i, conn_i, conn_f, q, v, own, nothing, work)
    read(f.CONN_BIAS, f.ROWS, f.FIRST_ROW, conn_i, work, gap)


@inline
def motion_of_gaps(body_i, body_f, conn_i, conn_f, states, columns, ways, own, work):
    """The entries of all connections in `columns`, `ways` and `own`, from poses in `states`."""
    for c in range(conn_i.shape[0] - 1):
        if conn_i[c, f.LAW] == f.LAW_COUPLED:
            row, a, b = conn_i[c, f.FIRST_ROW], conn_i[c, f.BODY_A], conn_i[c, f.BODY_B]
            columns[body_i[a, f.V_INDEX], row] = -conn_f[c, f.COUPLED_RATIO]
            columns[body_i[b, f.V_INDEX], row] = 1.0
            continue
        relative_motion(c, body_i, body_f, conn_i, conn_f, states, columns, ways, own, work)


@inline
def read(what, count, first, conn_i, work, out):
    """One field of the records of all connections, in the order of rows or of freedoms."""
    last = conn_i.shape[0] - 1
    for c in range(last):
        o = f.connection_record(conn_i, c) + what
        for k in range(conn_i[c, count]):
            out[conn_i[c, first] + k] = work[o + k]


@inline
def relative_motion(c, body_i, body_f, conn_i, conn_f, states, columns, ways, own, work):
    """Entries of the joints between the two links of connection c."""
    rec = f.connection_record(conn_i, c)
    b, turn = conn_i[c, f.BODY_B], load9(work, rec + f.CONN_TURN)
    x = row3(conn_f, c, f.FRAME_B + f.FRAME_ORIGIN)  # where the relative motion is taken: the origin of b's joint frame
    if b >= 0:
        R, x_b = load_pose(states, STATE * b)
        x = add(x_b, matvec(R, x))
    moment, force = load3(work, rec + f.CONN_DRIVE), load3(work, rec + f.CONN_DRIVE + 3)
    for side in range(2):
        sign = 1.0 if side == 1 else -1.0
        i = b if side == 1 else conn_i[c, f.BODY_A]
        while i != conn_i[c, f.MEET]:
            (R, x_i), j = load_pose(states, STATE * i), body_i[i, f.V_INDEX]
            r = sub(x_i, x)
            for d in range(body_i[i, f.DOF]):
                s_w, s_v = joint_column(body_i[i, f.KIND], body_f[i, f.RATE_ANGULAR], body_f[i, f.RATE_LINEAR], d, R, r)
                s_w, s_v = scale(s_w, sign), scale(s_v, sign)
                for k in range(conn_i[c, f.ROWS]):
                    o = rec + f.CONN_COLUMNS + 6 * k
                    # J_Cm [YN99, eq. 5]
                    columns[j + d, conn_i[c, f.FIRST_ROW] + k] = dot(load3(work, o), s_w) + dot(load3(work, o + 3), s_v)
                rates(conn_i[c, f.LAW], c, conn_i, conn_f, matTvec(turn, s_w), matTvec(turn, s_v), work, rec)
                for k in range(conn_i[c, f.FREEDOMS]):
                    ways[j + d, conn_i[c, f.FIRST_FREEDOM] + k] = work[rec + f.CONN_RATES + k]
                own[j + d] += dot(moment, s_w) + dot(force, s_v)
            i = body_i[i, f.PARENT]
