"""From links and joints to the flat arrays of `fields.py`.

`build` reads what a mechanism holds (links with `parent`, `joint`, `position`, `rotation`, `mass`, `com`, `inertia`;
springs) and never changes it. Cost O(links).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bunraku.plan import fields as f
from bunraku.plan.elements import FIXED_ELEMENT, RENAMED, body_rotation


@dataclass(eq=False)
class Plan:
    """A mechanism as the machine sees it: constant arrays, shared by every call and thread. See `fields.py`."""

    nq: int
    nv: int
    body_i: np.ndarray
    body_f: np.ndarray
    dof_f: np.ndarray
    link_i: np.ndarray
    link_f: np.ndarray
    spring_i: np.ndarray
    spring_f: np.ndarray
    neutral: np.ndarray
    body_link: np.ndarray          # (bodies,) link whose joint moves the body
    dof_link: np.ndarray           # (nv,) link whose joint has the velocity
    coordinate_link: np.ndarray    # (nq,) link whose joint has the coordinate
    loops: Any = None              # the connections that close loops (`closed.py`); None for a tree
    zero_tau: np.ndarray = field(init=False)
    nothing: np.ndarray = field(init=False)

    def __post_init__(self):
        self.zero_tau = np.zeros(self.nv)
        self.nothing = np.zeros(0)

    @property
    def bodies(self) -> int:
        return self.body_i.shape[0] - 1

    @property
    def links(self) -> int:
        return self.link_i.shape[0]

    @property
    def work_size(self) -> int:
        """Scalars of work memory that forward dynamics needs."""
        return int(self.body_i[-1, f.HEAD_WORK])

    def without_passive(self) -> Plan:
        """The same mechanism without armature, springs, dampers and limits."""
        body_i, dof_f = self.body_i.copy(), np.zeros_like(self.dof_f)
        body_i[-1, f.HEAD_PASSIVE] = body_i[-1, f.HEAD_SPRINGS] = 0
        dof_f[f.LOWER], dof_f[f.UPPER] = -np.inf, np.inf
        return self._replaced(body_i, dof_f, self.spring_i[:0], self.spring_f[:0])

    def with_locked(self, links) -> Plan:
        """The same mechanism with the joints of these links driven by acceleration instead of torque."""
        body_i = self.body_i.copy()
        body_i[:-1, f.ELIMINATION][np.isin(self.body_link, list(links))] = f.LOCKED
        lay_out_records(body_i)
        return self._replaced(body_i, self.dof_f, self.spring_i, self.spring_f)

    def _replaced(self, body_i, dof_f, spring_i, spring_f):
        return replace(self, body_i=body_i, dof_f=dof_f, spring_i=spring_i, spring_f=spring_f)


def build(links, springs, gravity, keep_fixed=False) -> Plan:
    """The plan of a mechanism. `keep_fixed` gives every link a body of its own (for the forces in Fixed joints)."""
    bodies = _Bodies()
    carrier: list[tuple[int, np.ndarray, np.ndarray]] = []  # body, link frame in the body frame
    nq = nv = 0
    neutral: list[float] = []
    passive: list[np.ndarray] = []
    dof_link: list[int] = []
    coordinate_link: list[int] = []
    for index, link in enumerate(links):
        if link.parent < 0:
            body, R, p = -1, link.rotation, link.position
        else:
            body, R, p = carrier[link.parent]
            p = p + R @ link.position
            R = R @ link.rotation
        elements = link.joint.elements()
        if not elements and keep_fixed:
            elements = [FIXED_ELEMENT]
        for element in elements:
            body, R, p = bodies.add(body, R, p, element, nq, nv, index)
            nq, nv = nq + element.nq, nv + element.nv
        carrier.append((body, R, p))
        bodies.attach(body, R, p, link)
        neutral += link.joint.neutral()
        passive.append(link.joint.passive)
        dof_link += [index] * link.joint.nv
        coordinate_link += [index] * link.joint.nq
    order = _depth_first(bodies.parent)
    rank = np.empty(len(order) + 1, int)
    rank[order] = np.arange(len(order))
    rank[-1] = -1
    body_i, body_f = bodies.arrays(order, rank)
    dof_f = np.ascontiguousarray(np.concatenate([*passive, np.zeros((0, f.DOF_F))]).T)
    _mark_eliminations(body_i, dof_f)
    _mark_groups(body_i, body_f)
    lay_out_records(body_i)
    body_f[-1, f.GRAVITY:f.GRAVITY + 3] = gravity
    acting = dof_f[[f.DAMPING, f.STIFFNESS, f.LIMIT_STIFFNESS, f.LIMIT_DAMPING]]
    body_i[-1, f.HEAD_PASSIVE] = acting.any()
    body_i[-1, f.HEAD_SPRINGS] = len(springs)
    body_i[-1, f.HEAD_NQ] = nq
    link_i = np.array([[rank[body]] for body, R, p in carrier], np.int32).reshape(-1, f.LINK_I)
    link_f = np.array([[*R.ravel(), *p] for body, R, p in carrier]).reshape(-1, f.LINK_F)
    spring_i = np.array([[s.link_a, s.link_b] for s in springs], np.int32).reshape(-1, 2)
    spring_f = np.array([[*s.position_a, *s.position_b, s.stiffness, s.rest_length, s.damping] for s in springs])
    return Plan(nq, nv, body_i, body_f, dof_f, link_i, link_f, spring_i, spring_f.reshape(-1, f.SPRING_F),
                np.array(neutral, float), np.array(bodies.link, int)[order], np.array(dof_link, int),
                np.array(coordinate_link, int))


class _Bodies:
    """Bodies in the order their links were added, before they are renumbered."""

    def __init__(self):
        self.parent: list[int] = []
        self.link: list[int] = []
        self.integers: list[tuple] = []
        self.floats: list[tuple] = []
        self.mass: list[float] = []
        self.com: list[np.ndarray] = []      # body frame
        self.inertia: list[np.ndarray] = []  # about the centre of mass, body axes

    def add(self, parent, R, p, element, nq, nv, link):
        """A body on joint frame (R, p) of the parent body; returns it with the joint's child frame in its frame."""
        turn = body_rotation(element.axis)
        rotation = R @ turn
        column = next((k for k, renamed in enumerate(RENAMED) if np.array_equal(rotation, renamed)), -1)
        self.parent.append(parent)
        self.link.append(link)
        self.integers.append((element.kind, nq, nv, element.nv, column))
        self.floats.append((*rotation.ravel(), *((p + R @ element.point) @ rotation), element.angular, element.linear))
        self.mass.append(0.0)
        self.com.append(np.zeros(3))
        self.inertia.append(np.zeros((3, 3)))
        return len(self.parent) - 1, turn.T, -(turn.T @ element.point)

    def attach(self, body, R, p, link):
        """Add a link's mass to its body; on the ground it has no effect."""
        if body < 0 or (link.mass == 0.0 and not link.inertia.any()):
            return
        m, own = link.mass, self.mass[body]
        gap = p + R @ link.com - self.com[body]
        total = own + m
        share = m / total if total > 0 else 0.0
        self.mass[body] = total
        self.com[body] = self.com[body] + share * gap
        self.inertia[body] = (self.inertia[body] + R @ link.inertia @ R.T
                              + own * share * (gap @ gap * np.eye(3) - np.outer(gap, gap)))

    def arrays(self, order, rank):
        n = len(self.parent)
        body_i = np.zeros((n + 1, f.BODY_I), np.int32)
        body_f = np.zeros((n + 1, f.BODY_F))
        if n == 0:
            return body_i, body_f
        body_i[:n, f.PARENT] = rank[np.array(self.parent, int)][order]
        body_i[:n, [f.KIND, f.Q_INDEX, f.V_INDEX, f.DOF, f.COLUMN]] = np.array(self.integers, np.int32)[order]
        floats = np.array(self.floats)[order]
        body_f[:n, f.ROTATION:f.ROTATION + 12] = floats[:, :12]
        body_f[:n, f.RATE_ANGULAR] = floats[:, 12]
        body_f[:n, f.RATE_LINEAR] = floats[:, 13]
        mass = np.array(self.mass)[order]
        about_com = np.array(self.inertia)[order].reshape(n, 9)
        body_f[:n, f.MASS] = mass
        body_f[:n, f.COM:f.COM + 3] = np.array(self.com)[order]
        body_f[:n, f.INERTIA:f.INERTIA + 6] = about_com[:, [0, 1, 2, 4, 5, 8]]
        body_i[:n, f.MASSIVE] = (mass > 0) | (about_com != 0).any(axis=1)
        return body_i, body_f


def _depth_first(parent):
    """Order in which every body's first child follows it directly."""
    children: list[list[int]] = [[] for _ in range(len(parent) + 1)]
    for i, p in enumerate(parent):
        children[p].append(i)
    order, stack = [], children[-1][::-1]
    while stack:
        i = stack.pop()
        order.append(i)
        stack += children[i][::-1]
    return np.array(order, int)


def _mark_eliminations(body_i, dof_f, keep=None):
    """Choose how forward dynamics eliminates each joint, and the slots that hand results from body to body."""
    n = body_i.shape[0] - 1
    rows = body_i[:n]
    rows[:, f.ELIMINATION] = f.COLUMNS
    rows[rows[:, f.KIND] == f.FIXED, f.ELIMINATION] = f.LOCKED
    rotors = np.concatenate([[0], np.cumsum(dof_f[f.ARMATURE] > 0)])
    without_rotor = rotors[rows[:, f.V_INDEX] + rows[:, f.DOF]] == rotors[rows[:, f.V_INDEX]]
    rows[(rows[:, f.KIND] == f.SPHERICAL) & without_rotor, f.ELIMINATION] = f.BALL
    rows[(rows[:, f.KIND] == f.FREE) & without_rotor, f.ELIMINATION] = f.LOOSE
    mark_slots(body_i, keep)


def mark_slots(body_i, keep=None):
    """Assign the slots that hand results from body to body: one to each body that branches or is in `keep` (boolean per
    body); the others share the carry."""
    n = body_i.shape[0] - 1
    rows = body_i[:n]
    parent = rows[:, f.PARENT]
    children = np.bincount(parent[parent >= 0], minlength=n)
    alone = children > 1 if keep is None else (children > 1) | keep
    own = np.flatnonzero(alone)
    slot = np.ones(n + 1, int)  # of each body; the last entry is the ground's
    slot[own] = 2 + np.arange(len(own))
    slot[-1] = 0
    rows[:, f.FROM] = f.SLOT_SIZE * slot[parent]
    rows[:, f.TO] = f.SLOT_SIZE * slot[:n]
    rows[:, f.ABOVE] = f.SLOT_SIZE * np.where((children > 0) | alone, slot[:n], 0)
    rows[:, f.SHARES] = slot[parent] > 1
    body_i[n, f.HEAD_SLOTS] = 2 + len(own)


def _mark_groups(body_i, body_f):
    """Open a new group at every root, spherical and free joint, every GROUP_DEPTH joints, and where a small body would
    be far from the origin."""
    n = body_i.shape[0] - 1
    offset = np.linalg.norm(body_f[:n, f.OFFSET:f.OFFSET + 3], axis=1)
    com, mass = body_f[:n, f.COM:f.COM + 3], body_f[:n, f.MASS]
    centre = np.linalg.norm(com, axis=1)
    # how far from its joint's axis (z) the body's mass is: what the joint has to move
    moment = body_f[:n, f.INERTIA + 5] + mass * (com[:, 0] ** 2 + com[:, 1] ** 2)
    size = np.sqrt(np.maximum(moment, 0.0) / np.maximum(mass, 1e-300))
    limit = (np.where((size > 0) & (mass > 0), f.GROUP_REACH * size, np.inf) - centre).tolist()
    turns = np.isin(body_i[:n, f.KIND], (f.SPHERICAL, f.FREE)).tolist()
    depth, reach, anchor = [0] * n, offset.tolist(), [1] * n
    for i, parent in enumerate(body_i[:n, f.PARENT].tolist()):
        if parent >= 0 and not turns[i] and depth[parent] + 1 < f.GROUP_DEPTH:
            distance = (0.0 if anchor[parent] else reach[parent]) + reach[i]
            if distance <= limit[i]:
                depth[i], reach[i], anchor[i] = depth[parent] + 1, distance, 0
    body_i[:n, f.ANCHOR] = anchor


def lay_out_records(body_i):
    """Places of the records in the work array of forward dynamics, and its size."""
    n = body_i.shape[0] - 1
    rows = body_i[:n]
    dof, elimination = rows[:, f.DOF], rows[:, f.ELIMINATION]
    columns = f.REC_JOINT + 6 * dof
    further = f.REC_U_SIZE * np.maximum(dof - 1, 0)
    size = np.where(elimination == f.COLUMNS, columns + further, f.REC_JOINT + np.where(elimination == f.LOCKED, 0, 9))
    # after the joint part: an anchor's origin, then the results of further dofs
    size = size + 3 * ((rows[:, f.ANCHOR] == 1) | (further > 0))
    massive = rows[:, f.MASSIVE] == 1
    hinge = (rows[:, f.KIND] == f.REVOLUTE) & (elimination == f.COLUMNS) & (rows[:, f.ANCHOR] == 0)
    rows[:, f.PLAIN] = np.where(hinge, f.PLAIN_HINGE, np.where((elimination == f.BALL) & massive, f.PLAIN_BALL, 0))
    chained = (rows[:, f.PARENT] == np.arange(n) - 1) & (rows[:, f.PARENT] >= 0) & (rows[:, f.SHARES] == 0)
    rows[:, f.RUNS] = chained & hinge & np.roll(hinge, 1)
    slots = body_i[n, f.HEAD_SLOTS] * f.SLOT_SIZE
    rows[:, f.RECORD] = slots + np.cumsum(size) - size
    body_i[n, f.HEAD_WORK] = slots + size.sum()
