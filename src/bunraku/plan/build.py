"""From links and joints to the flat arrays of `fields.py`.

`build` reads a mechanism (links with `parent`, `joint` and `row`; springs) and never changes it. It runs
whenever the tree changes, so links and joints store their rows and compiled code does the rest. Cost O(links).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from bunraku.plan import fields as f
from bunraku.plan.elements import ELEMENT, FIXED_ROWS, LINK
from bunraku.plan.plan_arrays import NO_CHUNKS, NO_CONTACT, NO_LOOPS, Arrays

LARGE = 64  # bodies from which on a plan is looked at for like chunks


@dataclass(eq=False)
class Plan:
    """A mechanism in kernel form: constant arrays, shared by every call and thread. See `fields.py`."""

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
    names: tuple                   # (links,) name of each link and of its joint, for people
    loops: Any = None              # the connections that close loops (`loop_plan.py`); None for a tree
    ties: dict = field(default_factory=dict, repr=False)  # connections as rows of numbers, kept while the tree is
    zero_tau: np.ndarray = field(init=False)
    nothing: np.ndarray = field(init=False)
    large: bool = field(init=False)  # large enough to be looked at for like chunks

    def __post_init__(self):
        self.zero_tau = np.zeros(self.nv)
        self.nothing = np.zeros(0)
        self.large = self.bodies >= LARGE

    @cached_property
    def arrays(self) -> Arrays:
        """All of them, for entries."""
        loops = self.loops
        closing = NO_LOOPS if loops is None else (loops.conn_i, loops.conn_f, loops.prog)
        return Arrays._make((self.body_i, self.body_f, self.dof_f, self.link_i, self.link_f, self.spring_i,
                             self.spring_f, *closing, *NO_CHUNKS, NO_CONTACT))

    @cached_property
    def lanes(self) -> Any:
        """The plan with equal chunks in lanes (`like.py`), if that is faster for one worker; else None."""
        from bunraku.plan.lane_plan import in_lanes

        found = in_lanes(self) if self.large else None
        return found if found is not None and found.worthwhile else None

    @cached_property
    def with_rotors(self) -> Arrays:
        """The same, with rotors for joints that only loops hold up."""
        return self.arrays if self.loops is None else self.arrays._replace(dof_f=self.loops.dof_f)

    @cached_property
    def matrix_shape(self) -> tuple[int, int]:
        return self.nv, self.nv

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

    def with_columns(self, links) -> Plan:
        """The same mechanism with the joints of these links eliminated column by column, so that each of their degrees
        of freedom can have a rotor, or what acts like one."""
        body_i = self.body_i.copy()
        rows = body_i[:-1]
        several = (rows[:, f.ELIMINATION] == f.BALL) | (rows[:, f.ELIMINATION] == f.LOOSE)
        rows[several & np.isin(self.body_link, list(links)), f.ELIMINATION] = f.COLUMNS
        lay_out_records(body_i)
        return self._replaced(body_i, self.dof_f, self.spring_i, self.spring_f)

    def _replaced(self, body_i, dof_f, spring_i, spring_f):
        return replace(self, body_i=body_i, dof_f=dof_f, spring_i=spring_i, spring_f=spring_f)


def build(links, springs, gravity, keep_fixed=False) -> Plan:
    """The plan of a mechanism. `keep_fixed` gives every link a body of its own (for the forces in Fixed joints)."""
    from bunraku.plan.assemble import assemble

    joints = [link.joint for link in links]
    tables = [joint.rows for joint in joints]
    if keep_fixed:
        tables = [table if len(table) else FIXED_ROWS for table in tables]
    counts = np.array([len(table) for table in tables], np.int64)
    elements = np.concatenate([*tables, np.empty((0, ELEMENT))])
    rows = np.concatenate([_NO_ROW, *[link.row for link in links]]).reshape(-1, LINK)
    dof_f = np.concatenate([*[joint.passive for joint in joints], np.empty((0, f.DOF_F))]).T.copy()
    neutral = np.array([x for joint in joints for x in joint.neutral()], float)
    spring_i = np.array([(s.link_a, s.link_b) for s in springs], np.int32).reshape(-1, 2)
    spring_f = np.array([(*s.position_a, *s.position_b, s.stiffness, s.rest_length, s.damping) for s in springs], float)
    n, nq, nv = len(elements), len(neutral), dof_f.shape[1]
    plan = Plan(nq, nv, np.zeros((n + 1, f.BODY_I), np.int32), np.zeros((n + 1, f.BODY_F)), dof_f,
                np.empty((len(links), f.LINK_I), np.int32), np.empty((len(links), f.LINK_F)), spring_i,
                spring_f.reshape(-1, f.SPRING_F), neutral, np.empty(n, np.int64), np.empty(nv, np.int64),
                np.empty(nq, np.int64), tuple((link.name, link.joint_name) for link in links))
    assemble.call(np.array([link.parent for link in links], np.int64), counts, elements, rows, dof_f, plan.body_i,
                  plan.body_f, plan.link_i, plan.link_f, plan.body_link, plan.dof_link, plan.coordinate_link)
    plan.body_f[-1, f.GRAVITY:f.GRAVITY + 3] = gravity
    plan.body_i[-1, f.HEAD_SPRINGS] = len(springs)
    return plan


_NO_ROW = np.empty(0)


def mark_slots(body_i, keep=None):
    """Assign again the slots that hand results from body to body: one to each body that branches or is in `keep`
    (boolean per body). The records have to be laid out again after it."""
    from bunraku.plan import assemble

    n = body_i.shape[0] - 1
    assemble.mark_slots.call(body_i, np.zeros(n, bool) if keep is None else np.ascontiguousarray(keep, bool))


def lay_out_records(body_i):
    """Give every body's record its place again, after a change of eliminations or slots."""
    from bunraku.plan import assemble

    assemble.lay_out_records.call(body_i)
