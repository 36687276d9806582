"""Plans of structures with connections: the tree's plan, the connections as flat arrays, and a program.

`close` adds connections to the plan of a tree in time proportional to the lengths of the loops (and a copy of the
integer table); nothing of the tree is built again and nothing is compiled.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bunraku.errors import ModelError
from bunraku.plan import fields as f
from bunraku.plan.build import Plan, lay_out_records, mark_slots
from bunraku.plan.elements import body_rotation
from bunraku.plan.program import Program, Structure
from bunraku.plan.scheduled import scheduled
from bunraku.plan.tip_to_root import tip_to_root
from bunraku.tolerances import NO_MOMENT

LENGTH_SCALE = 1.0  # [m]
TIES_KEPT = 10_000


@dataclass(eq=False)
class Loops:
    """The connections of a mechanism in kernel form. See `fields.py`."""

    names: list[str]
    dof_f: np.ndarray                # as in the plan, with rotors for joints that only loops hold up
    conn_i: np.ndarray
    conn_f: np.ndarray
    prog: np.ndarray
    structure: Structure
    tree: Plan = field(repr=False)   # the plan without them
    frames: list[np.ndarray]         # rotation of the joint frame used here, in the one people gave
    couplings: int = 0               # how many of them, the last, are couplings, which have the names of their joints
    work_size: int = field(init=False)
    rows: int = field(init=False)
    freedoms: int = field(init=False)

    def __post_init__(self):
        self.rows, self.freedoms = int(self.conn_i[-1, f.HEAD_ROWS]), int(self.conn_i[-1, f.HEAD_FREEDOMS])
        self.work_size = int(self.conn_i[-1, f.HEAD_TOTAL]) + self.dof_f.shape[1] + 30 * len(self.structure.parent)

    @property
    def held(self) -> list[str]:
        """Names of the connections, without couplings."""
        return self.names[:len(self.names) - self.couplings]

    def label(self, c: int) -> str:
        """What row c of the tables is, for error messages."""
        return f"connection {self.names[c]!r}" if c < len(self.held) else f"the coupling of joint {self.names[c]!r}"

    def listed(self, names) -> str:
        """Some of them in words."""
        connections, couplings = ([name for name in names if (name in self.held) == held] for held in (True, False))
        return " and ".join(f"{what}{'s' * (len(found) > 1)} {', '.join(map(repr, found))}" for what, found in (
            ("connection", connections), ("the coupling of joint", couplings)) if found).replace(
                "the coupling of joints", "the couplings of joints")

    def closings(self):
        """The operations that eliminate forces, in order: (front, rows, count, slot of the near body, ids, sign)."""
        count = int(self.prog[0])
        ops = self.prog[f.PROGRAM_START:f.PROGRAM_START + f.PROGRAM_STEP * count].reshape(-1, f.PROGRAM_STEP)
        return ops[ops[:, 0] == f.OP_CLOSE, 1:7].tolist()


@dataclass(frozen=True, eq=False)
class JointLaw:
    """Constraint law of a joint as a connection, independent of its pose."""

    law: int
    turn: np.ndarray        # the frame used: its z is the axis of the joint
    screws: np.ndarray      # (elements, SCREW_SIZE)
    directions: np.ndarray  # (rows, 6) constrained directions
    freedoms: int


_laws: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def joint_law(joint, length: float) -> JointLaw:
    same = type(joint) if type(joint).__name__ in ("Fixed", "Spherical", "Free") else joint  # one is like the other
    known = _laws.setdefault(same, {})
    if length not in known:
        known[length] = _joint_law(joint, length)
    return known[length]


def _joint_law(joint, length) -> JointLaw:
    elements = joint.elements()
    kinds = [e.kind for e in elements]
    turn = np.eye(3)
    if not elements:
        law = f.LAW_FIXED
    elif kinds[0] == f.SPHERICAL:
        law, elements = f.LAW_SPHERICAL, []
    elif kinds[0] == f.FREE:
        law, elements = f.LAW_FREE, []
    else:
        law = {"Cylindrical": f.LAW_CYLINDRICAL, "Planar": f.LAW_PLANAR}.get(
            type(joint).__name__, f.LAW_SCREW if len(elements) == 1 else f.LAW_COMPOUND)
        if law == f.LAW_PLANAR:
            turn = np.column_stack([e.axis for e in elements])
        elif law != f.LAW_COMPOUND:
            turn = body_rotation(elements[0].axis)
    screws = np.array([[*(turn.T @ e.axis), *(turn.T @ e.point), e.angular, e.linear] for e in elements])
    screws = screws.reshape(-1, f.SCREW_SIZE)
    if len(screws) > 6:
        raise ModelError(f"a connection by {joint!r} has more than six degrees of freedom: it constrains nothing")
    free = np.zeros((joint.nv, 6))  # free directions (angular times length, linear)
    if law == f.LAW_SPHERICAL:
        free[:, :3] = np.eye(3)
    elif law == f.LAW_FREE:
        free = np.eye(6)
    else:
        for row, (*axis, x, y, z, angular, linear) in zip(free, screws, strict=True):
            w = angular * np.array(axis)
            row[:3], row[3:] = length * w, linear * np.array(axis) + np.cross((x, y, z), w)
    return JointLaw(law, turn, screws, _directions(free, length), joint.nv)


def _directions(free, length) -> np.ndarray:
    """Orthonormal complement of the free directions, along the axes where possible; moments times `length`."""
    taken = [row / np.linalg.norm(row) for row in np.linalg.qr(free.T)[0].T] if len(free) else []
    out = []
    for _ in range(6 - len(free)):
        left = np.eye(6) - sum((np.outer(x, x) for x in taken), np.zeros((6, 6)))
        best = int(np.argmax(np.round(np.diag(left), 6)))
        x = left[best] / np.linalg.norm(left[best])
        x[np.abs(x) < 1e-15] = 0.0
        taken.append(x)
        out.append(x)
    directions = np.array(out).reshape(-1, 6)
    directions[:, :3] *= length
    return directions


def with_connections(plan: Plan, connections: Sequence, length: float = LENGTH_SCALE, given: frozenset = frozenset(),
          passive: bool = True, couplings: Sequence = ()) -> Plan:
    """The plan with connections and couplings; connections named in `given` are driven by acceleration; without springs
    and dampers of their own if not `passive`."""
    conn_i, conn_f, structure, frames = _tables(plan, connections, length, given, couplings)
    if not passive:
        conn_f[:, f.CONN_PASSIVE:f.LENGTH] = 0.0
    body_i, dof_f = plan.body_i.copy(), plan.dof_f
    n = plan.bodies
    keep = np.zeros(n + 1, bool)
    keep[[body for ends in structure.ends for body in ends]] = True
    keep[structure.meet] = True
    dof_f = _give_rotors(plan, structure, conn_f, dof_f)
    keep[[structure.rotor_ends(body) for body in structure.rotors]] = True
    mark_slots(body_i, keep[:n])
    structure.slot = body_i[:n, f.OWN_SLOT].tolist()
    program = tip_to_root(structure)
    names = [*(c.name for c in connections), *(c.joint for c in couplings)]
    return _finished(plan, body_i, dof_f, conn_i, conn_f, structure, program, frames, names, len(couplings))


def reschedule(plan: Plan, order, together: bool) -> Plan:
    """The same structure assembled in another order, every body with a slot of its own."""
    n = plan.bodies
    body_i = plan.body_i.copy()
    if plan.loops is None:
        conn_i, conn_f, structure, frames = _tables(plan, (), LENGTH_SCALE, frozenset(), ())
        names, couplings = [], 0
    else:
        conn_i, conn_f, names = plan.loops.conn_i.copy(), plan.loops.conn_f, plan.loops.names
        structure, frames, couplings = replace(plan.loops.structure), plan.loops.frames, plan.loops.couplings
        body_i[:n, f.ELIMINATION] = plan.loops.tree.body_i[:n, f.ELIMINATION]
    mark_slots(body_i, np.ones(n, bool))
    structure.slot = body_i[:n, f.OWN_SLOT].tolist()
    program = scheduled(structure, clusters(plan), order, together)
    dof_f = plan.dof_f if plan.loops is None else plan.loops.dof_f
    return _finished(plan, body_i, dof_f, conn_i, conn_f, structure, program, frames, names, couplings)


def _tables(plan: Plan, connections, length, given, couplings):
    count = len(connections) + len(couplings)
    parent = plan.body_i[:-1, f.PARENT].tolist()
    conn_i = np.zeros((count + 1, f.CONN_I), np.int32)
    conn_f = np.zeros((count, f.CONN_F))
    ends, meets, first_row, row_counts, frames = [], [], [], [], []
    rows = freedoms = 0
    coupled: dict[int, list[tuple[int, int]]] = {}
    ties = [_tie(plan, connection, length, connection.name in given, parent) for connection in connections]
    for c, tie in enumerate([*ties, *(_coupled(plan, coupling, length, parent) for coupling in couplings)]):
        for side, body in enumerate(tie.ends if c >= len(ties) else ()):
            coupled.setdefault(body, []).append((c, side))
        conn_i[c], conn_f[c] = tie.integers, tie.floats
        conn_i[c, f.FIRST_ROW], conn_i[c, f.FIRST_FREEDOM] = rows, freedoms
        ends.append(tie.ends)
        meets.append(tie.meet)
        first_row.append(rows)
        row_counts.append(tie.rows)
        frames.append(tie.turn)
        rows, freedoms = rows + tie.rows, freedoms + tie.freedoms
    conn_i[-1, f.HEAD_ROWS], conn_i[-1, f.HEAD_FREEDOMS] = rows, freedoms
    dof, first = plan.body_i[:-1, f.DOF], plan.body_i[:-1, f.V_INDEX]
    rotors = np.concatenate([[0], np.cumsum(plan.dof_f[f.ARMATURE] > 0)])
    ball = (plan.body_i[:-1, f.KIND] == f.SPHERICAL) & (rotors[first + dof] == rotors[first])
    structure = Structure(parent, dof.tolist(), [], ball.tolist(), ends, meets, first_row, row_counts, coupled=coupled)
    return conn_i, conn_f, structure, frames


@dataclass(frozen=True, eq=False)
class Tie:
    """A connection on the bodies of a plan."""

    connection: object
    integers: np.ndarray
    floats: np.ndarray
    ends: tuple[int, int]
    meet: int
    rows: int
    freedoms: int
    turn: np.ndarray


def _tie(plan: Plan, connection, length, prescribed, parent) -> Tie:
    """Computed once while the tree stays as it is: a change of one connection costs nothing for the others."""
    key = (id(connection), length, prescribed)
    known = plan.ties.get(key)
    if known is not None and known.connection is connection:
        return known
    law = joint_law(connection.joint, length)
    floats = np.zeros(f.CONN_F)
    a = body_a = _place(plan, connection.link_a, connection.position_a, connection.rotation_a @ law.turn,
                        floats[f.FRAME_A:f.FRAME_A + 12])
    b = body_b = _place(plan, connection.link_b, connection.position_b, connection.rotation_b @ law.turn,
                        floats[f.FRAME_B:f.FRAME_B + 12])
    a = _meet(a, b, parent)
    directions = np.diag([length] * 3 + [1.0] * 3) if prescribed else law.directions
    integers = np.array((body_a, body_b, a, law.law, len(directions), 0, law.freedoms, 0, 0, 0, len(law.screws),
                         prescribed, -1, -1), np.int32)
    floats[f.SCREWS:f.SCREWS + law.screws.size] = law.screws.ravel()
    floats[f.DIRECTIONS:f.DIRECTIONS + directions.size] = directions.ravel()
    passive = connection.joint.passive
    floats[f.CONN_PASSIVE:f.CONN_PASSIVE + passive.size] = passive.ravel()
    floats[f.LENGTH] = length
    tie = Tie(connection, integers, floats, (body_a, body_b), a, len(directions), law.freedoms, law.turn)
    if len(plan.ties) > 2 * TIES_KEPT:
        plan.ties.clear()
    plan.ties[key] = tie
    return tie


def _coupled(plan: Plan, coupling, length, parent) -> Tie:
    """A coupling on the bodies of a plan: a connection with one row, without a place."""
    a, b = (int(plan.link_i[link, f.LINK_BODY]) for link in (coupling.leader, coupling.follower))
    meet = _meet(parent[a], parent[b], parent)
    floats = np.zeros(f.CONN_F)
    floats[f.COUPLED_RATIO], floats[f.COUPLED_OFFSET], floats[f.LENGTH] = coupling.ratio, coupling.offset, length
    integers = np.array((a, b, meet, f.LAW_COUPLED, 1, 0, 0, 0, 0, 0, 0, 0, -1, -1), np.int32)
    return Tie(coupling, integers, floats, (a, b), meet, 1, 0, np.eye(3))


def _meet(a: int, b: int, parent) -> int:
    """The nearest body that is, or is above, both; -1 for the ground."""
    while a != b:  # parents have smaller numbers
        if a > b:
            a = parent[a]
        else:
            b = parent[b]
    return a


def _place(plan, link, position, rotation, out) -> int:
    """Body that carries the link; the frame (position, rotation) of the link, in the body's frame."""
    body = -1
    if link >= 0:
        body = int(plan.link_i[link, f.LINK_BODY])
        R = plan.link_f[link, :9].reshape(3, 3)
        position = plan.link_f[link, 9:12] + R @ position
        rotation = R @ rotation
    out[:9], out[9:] = rotation.ravel(), position
    return body


def _finished(plan, body_i, dof_f, conn_i, conn_f, structure, program: Program, frames, names, couplings) -> Plan:
    """Lay out the work array: slots, records of bodies, connections, fronts, forces."""
    n = plan.bodies
    stepped = np.fromiter(program.stepped, int, len(program.stepped))
    by_column = {*program.stepped, *_above(program.pressed, structure.parent)}
    rows = body_i[:n]
    columns = np.fromiter(by_column, int, len(by_column))
    elimination = rows[columns, f.ELIMINATION]
    turning = columns[(elimination == f.BALL) | (elimination == f.LOOSE)]
    rows[turning, f.ELIMINATION] = f.COLUMNS
    lay_out_records(body_i)
    after = stepped[stepped + 1 < n] + 1
    rows[after, f.RUNS_ON] = 0  # a run of hinges in registers ends before a body with columns
    connections = conn_i.shape[0] - 1
    base = int(body_i[n, f.HEAD_WORK]) + f.CONN_RECORD * connections
    prog = program.array(base)
    for c, ends in enumerate(structure.ends):
        conn_i[c, f.STATE_A], conn_i[c, f.STATE_B] = (structure.slot[body] if body >= 0 else 0 for body in ends)
    conn_i[-1, f.HEAD_LOOPS] = connections
    conn_i[-1, f.HEAD_CONN] = body_i[n, f.HEAD_WORK]
    conn_i[-1, f.HEAD_FORCES] = base + program.size
    conn_i[-1, f.HEAD_JUDGED] = base + program.size + program.ids_used
    conn_i[-1, f.HEAD_TOTAL] = base + program.size + program.ids_used + f.JUDGED
    tree = plan if plan.loops is None else plan.loops.tree
    return replace(plan, body_i=body_i, loops=Loops(names, dof_f, conn_i, conn_f, prog, structure, tree, frames,
                                                    couplings))


def _above(bodies, parent) -> set[int]:
    """These bodies and those they hang on, through whose joints the forces of closed loops go."""
    found: set[int] = set()
    for body in bodies:
        while body >= 0 and body not in found:
            found.add(body)
            body = parent[body]
    return found


# -- bodies that cannot stand alone --------------------------------------------------------------------------------


def _weak(plan: Plan) -> np.ndarray:
    """Bodies whose own inertia does not resist every motion of their joint."""
    if "weak" not in plan.ties:
        plan.ties["weak"] = _find_weak(plan)
    return plan.ties["weak"]


def _find_weak(plan: Plan) -> np.ndarray:
    n = plan.bodies
    rows, data = plan.body_i[:n], plan.body_f[:n]
    weak = rows[:, f.MASSIVE] == 0
    kind = rows[:, f.KIND]
    weak &= kind != f.FIXED
    mass, com = data[:, f.MASS], data[:, f.COM:f.COM + 3]
    inertia = data[:, f.INERTIA:f.INERTIA + 6]
    size = inertia[:, [0, 3, 5]].sum(axis=1) + mass * (com**2).sum(axis=1)
    about_axis = inertia[:, 5] + mass * (com[:, 0]**2 + com[:, 1]**2)
    weak |= (kind == f.REVOLUTE) & (about_axis <= NO_MOMENT * size)
    turns = np.flatnonzero((kind == f.SPHERICAL) | (kind == f.FREE))
    about = inertia[turns][:, [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(-1, 3, 3)
    c, ball = com[turns], (kind[turns] == f.SPHERICAL)[:, None, None]
    off = (c**2).sum(axis=1)[:, None, None] * np.eye(3) - c[:, :, None] * c[:, None, :]
    about = about + np.where(ball, mass[turns][:, None, None] * off, 0.0)
    weak[turns] |= (np.linalg.eigvalsh(about)[:, 0] <= NO_MOMENT * size[turns]) | (mass[turns] == 0.0)
    return weak


def clusters(plan: Plan) -> list[int]:
    """For each body the top of the smallest subchain it can be in: weak bodies stay with what they carry.

    A rotor is enough for the joint that has it, but hands no inertia on to a weak body that waits for some.
    """
    weak = _weak(plan).tolist()
    rotors = plan.dof_f[f.ARMATURE] > 0
    top = list(range(plan.bodies))
    waits = [False] * plan.bodies
    for i, (p, j, dof) in enumerate(plan.body_i[:-1, [f.PARENT, f.V_INDEX, f.DOF]].tolist()):
        if p >= 0 and waits[p]:
            top[i] = top[p]
        waits[i] = weak[i] and (top[i] != i or dof == 0 or not rotors[j:j + dof].all())
    return top


def _give_rotors(plan: Plan, structure: Structure, conn_f, dof_f):
    """Bodies whose joints move no inertia of their own, but are held up by connections beyond: a rotor for each joint.

    Its torque is taken away again in the same solution, so that the result is exact.
    """
    if plan.body_i[:-1, f.MASSIVE].all() and not _weak_tips(plan, structure):
        return dof_f
    n = plan.bodies
    weak = _weak(plan)
    parent = plan.body_i[:n, f.PARENT].tolist()
    bearing = [*(~weak).tolist(), True]  # has inertia against its joint somewhere beyond
    turns = np.isin(plan.body_i[:n, f.KIND], (f.SPHERICAL, f.FREE)) & (plan.body_i[:n, f.ELIMINATION] != f.LOCKED)
    free = turns & (plan.body_i[:n, f.KIND] == f.FREE)  # what is beyond such a joint resists nothing, but for rotors
    for loose in np.flatnonzero(free):
        j = plan.body_i[loose, f.V_INDEX]
        free[loose] = not (plan.dof_f[f.ARMATURE, j:j + 6] > 0).all()
    one_ball: set[int] = set()  # bodies held by one ball joint alone are free to turn about the line to its centre
    for i in range(n - 1, -1, -1):
        if not free[i] and (bearing[i] or (plan.body_i[i, f.MASSIVE] and not weak[i])):
            above = parent[i]
            if turns[i] and above >= 0 and turns[above] and above not in one_ball:
                one_ball.add(above)
            else:
                bearing[above] = True
    next_held = [-1] * n  # the first body towards the root, itself included, that needs to be held
    for i, (j, dof, elimination) in enumerate(plan.body_i[:n, [f.V_INDEX, f.DOF, f.ELIMINATION]].tolist()):
        needs = not bearing[i] and elimination != f.LOCKED and not (dof_f[f.ARMATURE, j:j + dof] > 0).all()
        next_held[i] = i if needs else next_held[parent[i]] if parent[i] >= 0 else -1
    held: dict[int, list[int]] = {}
    for c, ends in enumerate(structure.ends):  # all loops beyond a body may be what holds it, through it or not
        for end in ends:
            body = next_held[end] if end >= 0 else -1
            while body >= 0:
                held.setdefault(body, []).append(c)
                body = next_held[parent[body]] if parent[body] >= 0 else -1
    if not held:
        return dof_f
    structure.rotors = {body: sorted(set(c)) for body, c in held.items()}
    dof_f = dof_f.copy()
    mass = plan.body_f[:n, f.MASS]
    reach = np.abs(plan.body_f[:n, f.OFFSET:f.OFFSET + 3]).max(initial=0.0)
    size = max(float(mass.mean()) * max(float(reach), 1e-3) ** 2, 1e-9)
    for body in held:
        j = plan.body_i[body, f.V_INDEX]
        dof_f[f.ARMATURE, j:j + plan.body_i[body, f.DOF]] += size
    conn_f[0, f.ROTOR] = size
    return dof_f


def _weak_tips(plan: Plan, structure: Structure) -> bool:
    """Whether some body at the end of a loop is thin as a rod."""
    n = plan.bodies
    tips = {body for ends in structure.ends for body in ends if body >= 0}
    data = plan.body_f[:n]
    for i in tips:
        spread = data[i, f.INERTIA:f.INERTIA + 6][[0, 3, 5]]
        if spread.min() <= NO_MOMENT * spread.max():
            return True
    return False
