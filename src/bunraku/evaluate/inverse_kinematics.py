"""Inverse kinematics by name: coordinates at which links have given poses."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bunraku.algorithms.reaching import (
    GOAL,
    TASK_BODY,
    TASK_F,
    TASK_I,
    TASK_ORIENTATION,
    TASK_POINT,
    TASK_POSITION,
    TASK_TURN,
    TASK_WEIGHTS,
)
from bunraku.checks import as_array, as_count, as_floats, as_positive, as_vector
from bunraku.entries.constraint_entries import demands
from bunraku.entries.explain import refuse, refuse_not_finite
from bunraku.entries.inverse_kinematics_entries import GAP, INFO, STARTS, STEPS, WORST, Problem, reach
from bunraku.entries.pool import spread
from bunraku.errors import ModelError, NamingError, ShapeError
from bunraku.evaluate.kinematics import kinematics
from bunraku.mechanism import Mechanism
from bunraku.mechanism.links import GROUND
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.plan import fields as f

SMALLEST_SHARE = 8  # goals worth a thread
SETUPS = 64         # kept per mechanism
FIRST = -1          # level of loops and held links
FORMS = ("a target is a pose (rotation 3x3, position), a position (x, y, z), or an orientation (rotation 3x3, None); "
         "in the world, with a leading axis for a batch")


@dataclass(frozen=True, eq=False)
class InverseKinematics:
    """Coordinates found; with a leading axis for a batch."""

    q: np.ndarray            # (nq,): that of the nearest pose found if `success` is false
    success: Any             # bool: every target, held link and loop is met to `tolerance`
    error: np.ndarray        # (2,): largest distance [m] and angle [rad] from a target or the pose of a held link
    errors: dict[Any, np.ndarray]  # {target or held link: (distance, angle)}; 0 where nothing is asked for
    gap: Any                 # largest gap of a connection [m, rad], 0 without connections
    starts: Any              # starts tried
    steps: Any               # steps of all of them


def inverse_kinematics(mechanism: Mechanism, targets: Mapping, q0=None, limits: bool = True, *,
                       hold: Sequence[str] = (), weights: Mapping | None = None, priorities: Mapping | None = None,
                       posture=None, joints: Sequence[str] | None = None, tolerance: float = 1e-9, starts: int = 100,
                       workers: int | None = None) -> InverseKinematics:
    """Coordinates at which links have given poses in the world; loops stay closed, and joints within their limits.

    targets     {link: target}, or {(link, point): target} for a point in the link's frame. A target is a pose
                (rotation, position), a position (x, y, z), or an orientation (rotation, None); one, or a batch of each
                (leading axis)
    q0          where to start, one or a batch: the solution found is usually near. By default the neutral pose, or the
                middle of the range of joints whose limits exclude it
    limits      keep `lower` and `upper` of the joints
    hold        links that keep the pose they have at q0, before any target
    weights     {target: weight}, or (weight of position, weight of orientation): which errors count more if a target is
                out of reach; 1 by default, an angle of 1 rad as much as the length of the mechanism from the ground,
                or a loose base, to the farthest target
    priorities  {target: level}: targets of a higher number move only what leaves the lower ones as they are; default 0
    posture     coordinates to be near to, as far as the targets leave freedom
    joints      names of the joints that may move; all by default
    tolerance   [m, rad] error of a target that counts as met. Errors end far below where rounding allows
    starts      starts to try: q0, then coordinates spread over the range of the joints, the same in every call

    Failure is no error: `success` is false, and `q` has the least errors found.
    """
    hold = _link_names(hold)
    setup = setup_of(mechanism, targets, limits, hold, weights, priorities, posture is None, joints, tolerance, starts)
    plan = setup.plan
    if q0 is not None:
        q0 = setup.coordinates("q0", q0)
    gap = 0.0
    if setup.tree is not None and (q0 is None or q0.ndim == 1):
        gap = setup.gap if q0 is None else _gap(plan, q0)
        if gap <= tolerance:  # loops elsewhere stay as they are
            setup = setup.tree
            plan = setup.plan
        else:
            gap = 0.0  # they are closed, too
    q0 = setup.q0 if q0 is None else q0
    near = setup.q0[None]
    if posture is not None:
        posture = setup.coordinates("posture", posture)
        near = np.atleast_2d(posture)
    values = list(targets.values())
    if hold:
        poses = kinematics(mechanism, q0).poses
        values += [poses[name] for name in hold]
    arrays = [_parts(key, value) for key, value in zip(setup.keys, values, strict=True)]
    sizes = {_named(key): len(x) for key, (R, x) in zip(setup.keys, arrays, strict=True)
             for x, single in ((R, 2), (x, 1)) if x is not None and x.ndim > single}
    sizes |= {what: len(x) for what, x in (("q0", q0), ("posture", posture)) if x is not None and x.ndim == 2}
    if len(set(sizes.values())) > 1:
        raise ShapeError("batches of different size: " + ", ".join(f"{what} {size}" for what, size in sizes.items())
                         + "; give all the same number, or a single one for all")
    batch = next(iter(sizes.values()), None)
    count = 1 if batch is None else batch
    goals = _in_rows(arrays, count)
    begin = q0[None] if count == 1 and q0.ndim == 1 else np.ascontiguousarray(np.broadcast_to(q0, (count, plan.nq)))
    q, miss, info = np.empty((count, plan.nq)), np.zeros((count, 2 * len(arrays))), np.empty((count, INFO))
    if count == 1:
        reach.call(plan.arrays, setup.problem, goals, begin, near, q, miss, info, 0, 1)
    else:
        reach.load()

        def work(start, stop):
            reach.call(plan.arrays, setup.problem, goals, begin, near, q, miss, info, start, stop)

        spread(work, count, 1, workers, SMALLEST_SHARE)
    worst = info[:, WORST]
    if not (worst >= 0.0).all():
        setup.refuse(goals, worst, batch)
    left = miss.reshape(count, len(arrays), 2)
    if batch is None:
        return InverseKinematics(q[0], bool(worst[0] <= tolerance), left[0].max(axis=0),
                                 dict(zip(setup.keys, left[0], strict=True)), max(gap, float(info[0, GAP])),
                                 int(info[0, STARTS]), int(info[0, STEPS]))
    return InverseKinematics(q, worst <= tolerance, left.max(axis=1, initial=0.0),
                             {key: left[:, t] for t, key in enumerate(setup.keys)}, np.maximum(gap, info[:, GAP]),
                             info[:, STARTS].astype(int), info[:, STEPS].astype(int))


def setup_of(mechanism: Mechanism, targets: Mapping, limits: bool = True, hold: tuple[str, ...] = (),
             weights: Mapping | None = None, priorities: Mapping | None = None, direct: bool = True,
             joints: Sequence[str] | None = None, tolerance: float = 1e-9, starts: int = 1) -> Setup:
    """What calls with these targets share, kept by the mechanism. direct: all joints that move no target stay."""
    plan = as_mechanism(mechanism).plan()
    forms = tuple(_form(value) for value in _as_targets(targets).values())
    if isinstance(joints, str):
        raise NamingError(f"joints takes a list of joints: joints=[{joints!r}]")
    names = None if joints is None else tuple(joints)
    setups: dict = mechanism.kept("inverse kinematics", dict)
    key = (tuple(targets), forms, hold, bool(limits), repr(weights), repr(priorities), direct, names, tolerance, starts)
    setup = setups.get(key)
    if setup is None:
        if len(setups) >= SETUPS:
            setups.clear()
        setup = setups[key] = Setup(mechanism, plan, tuple(targets), forms, hold, limits, weights, priorities, direct,
                                    names, tolerance, starts)
    return setup


def goals_of(setup: Setup, targets: Mapping) -> np.ndarray:
    """One goal (GOAL times targets,), checked."""
    if tuple(targets) != setup.keys:
        raise NamingError(f"the targets are {', '.join(map(repr, setup.keys))}, not {', '.join(map(repr, targets))}")
    arrays = [_parts(key, value) for key, value in targets.items()]
    goals = _in_rows(arrays, 1)
    wrong = [t for t, (R, _) in enumerate(arrays) if R is not None and not _are_rotations(R.reshape(-1, 3, 3))]
    if wrong or not np.isfinite(goals).all():
        setup.refuse(goals, np.array([np.nan]), None)
    return goals[0]


def _in_rows(arrays, count: int) -> np.ndarray:
    """(count, GOAL times targets) of rotations and positions."""
    goals = np.zeros((count, GOAL * len(arrays)))
    for t, (R, x) in enumerate(arrays):
        if R is not None:
            goals[:, GOAL * t:GOAL * t + 9] = R.reshape(*R.shape[:-2], 9)
        if x is not None:
            goals[:, GOAL * t + 9:GOAL * t + 12] = x
    return goals


@cache
def _spread(starts: int, columns: int) -> np.ndarray:
    """The same numbers from 0 to 1 in every call."""
    return np.random.default_rng(0).random((starts, columns))


class Setup:
    """What calls with the same targets share: their numbers apart, everything that compiled code needs."""

    def __init__(self, mechanism, plan, targets, forms, hold, limits, weights, priorities, direct, joints, tolerance,
                 starts):
        tolerance, starts = as_positive("tolerance", tolerance), as_count("starts", starts)
        for name in hold:
            if name in targets:
                raise NamingError(f"link {name!r} has a target and is held; give one of the two")
        self.keys, self.forms = (*targets, *hold), (*forms, *((True, True) for _ in hold))
        places = [_place(mechanism, plan, key) for key in self.keys]
        length = max(_length(plan, body, point) for body, _, point in places)
        scale = _weights(targets, weights, len(places), length if length > 0.0 else mechanism.length_scale)
        levels = [*_levels(targets, priorities, hold), *(FIRST for _ in hold)]
        bodies = [body for body, _, _ in places]
        chain, column_i, column_f, column_of = _columns(mechanism, plan, bodies, limits, joints, direct)
        rows, before = 0 if plan.loops is None else plan.loops.rows, FIRST
        ends = [rows] if rows else []
        task_i, task_f = np.empty((len(places), TASK_I), np.int64), np.empty((len(places), TASK_F))
        for t in sorted(range(len(places)), key=levels.__getitem__):
            task_i[t, TASK_BODY], task_f[t, TASK_TURN:TASK_POINT], task_f[t, TASK_POINT:TASK_WEIGHTS] = places[t]
            task_f[t, TASK_WEIGHTS:] = scale[t]
            turned, placed = self.forms[t]
            task_i[t, TASK_POSITION], rows = (rows, rows + 3) if placed else (-1, rows)
            task_i[t, TASK_ORIENTATION], rows = (rows, rows + 3) if turned else (-1, rows)
            if ends and levels[t] == before:
                ends[-1] = rows
            else:
                ends.append(rows)
            before = levels[t]
        self.plan, self.q0 = plan, _start(plan, limits)
        rows = plan.body_i[:-1]
        self.quaternions = [int(row[f.Q_INDEX]) + (3 if row[f.KIND] == f.FREE else 0) for row in rows
                            if row[f.KIND] in (f.FREE, f.SPHERICAL)]
        self.tree: Setup | None = None  # the same without loops, if these move nothing that moves the targets
        self.gap = 0.0
        if plan.loops is not None and direct and not _above(plan, bodies) & _in_loops(plan):
            self.tree = Setup(mechanism, mechanism.plan("tree"), targets, forms, hold, limits, weights, priorities,
                               direct, joints, tolerance, starts)
            self.gap = _gap(plan, self.q0)
        self.problem = Problem(chain, task_i, task_f, *_balls(plan, limits), column_i, column_f, column_of,
                               np.array(ends), np.array(ends[:1]), np.array(ends[-1:]), _spread(starts, len(column_i)),
                               np.array([tolerance, 0.0 if direct else 1.0]))

    def coordinates(self, what, q):
        """Given coordinates, one state or a batch; complains of NaN, and of quaternions without a direction."""
        q = as_floats(what, q, self.plan.nq, least=self.plan.nv)
        refuse_not_finite(self.plan, q, {})
        for k in self.quaternions:
            none = ~(np.sum(q[..., k:k + 4] ** 2, axis=-1) > 0.0)
            if none.any():
                refuse(self.plan, q, {}, *(() if q.ndim == 1 else (none, q)))
        return q

    def refuse(self, goals, worst, batch):
        """The error for goals that are no poses."""
        bad = int(np.flatnonzero(~(worst >= 0.0))[0])
        state = "" if batch is None else f" of state {bad}"
        for t, (key, (turned, placed)) in enumerate(zip(self.keys, self.forms, strict=True)):
            R, x = np.split(goals[bad, GOAL * t:GOAL * t + GOAL], [9])
            if placed and not np.isfinite(x).all():
                raise ShapeError(f"{_named(key)}{state}: position must be finite numbers, not {x.tolist()}")
            if turned and not _are_rotations(R.reshape(1, 3, 3)):
                raise ModelError(f"{_named(key)}{state}: the rotation is not a rotation matrix; its columns must be "
                                 "orthonormal and right-handed (scipy.spatial.transform.Rotation makes one)")
        raise ModelError("inverse_kinematics: the numbers overflow; check for huge values")


def _named(key) -> str:
    """The target of this key, for messages."""
    if isinstance(key, tuple) and len(key) == 2:
        with contextlib.suppress(TypeError, ValueError):  # no numbers, which other messages are about
            return f"target ({key[0]!r}, ({', '.join(f'{x:g}' for x in key[1])}))"
    return f"target {key!r}"


def _form(value) -> tuple[bool, bool]:
    """Whether a target has a rotation, and whether it has a position."""
    if isinstance(value, tuple) and len(value) == 2:
        return value[0] is not None, value[1] is not None
    return False, True


def _parts(key, value):
    """Rotation (3, 3) or (B, 3, 3) and position (3,) or (B, 3), or None; finiteness is tested by compiled code."""
    R, x = value if isinstance(value, tuple) and len(value) == 2 else (None, value)
    if x is not None:
        x = as_array(f"{_named(key)}: position", x)
        if x.ndim not in (1, 2) or x.shape[-1] != 3:
            raise ShapeError(f"{_named(key)}: the position has shape {x.shape}; {FORMS}")
        if x.shape == (3, 3) and value is x and _are_rotations(x[None]):
            raise ShapeError(f"{_named(key)} may be an orientation or three positions: give the orientation as "
                             "(rotation, None), positions as (None, positions)")
    if R is not None:
        R = as_array(f"{_named(key)}: rotation", R)
        if R.ndim not in (2, 3) or R.shape[-2:] != (3, 3):
            raise ShapeError(f"{_named(key)}: the rotation has shape {R.shape}; {FORMS}")
    if R is None and x is None:
        raise ShapeError(f"{_named(key)}: neither a rotation nor a position is given; {FORMS}")
    return R, x


def _place(mechanism, plan, key):
    """Body of a target; rotation of its link in the body, and the point in the body."""
    name, point = key if isinstance(key, tuple) and len(key) == 2 else (key, (0.0, 0.0, 0.0))
    link = mechanism.find_link(name, "inverse_kinematics: targets")
    body = -1 if link < 0 else int(plan.link_i[link, f.LINK_BODY])
    if body < 0:
        raise ModelError(f"{_named(key)}: {name!r} {'is' if name == GROUND else 'is fixed to'} the ground, which does "
                         "not move; name a link that does")
    turn, offset = np.split(plan.link_f[link], [f.LINK_OFFSET])
    return body, turn, offset + turn.reshape(3, 3) @ as_vector(f"{_named(key)}: point", point)


def _are_rotations(matrices) -> bool:
    products = np.einsum("kij,klj->kil", matrices, matrices)
    return bool(np.all(np.abs(products - np.eye(3)) <= 1e-6) and np.all(np.linalg.det(matrices) > 0.0))


def _as_targets(targets) -> Mapping:
    if not isinstance(targets, Mapping):
        raise ShapeError(f"targets must be a dictionary {{link: target}}, not {type(targets).__name__}; {FORMS}")
    if not targets:
        raise ModelError(f"inverse_kinematics: there is no target; {FORMS}")
    return targets


def _start(plan, limits):
    """The neutral pose, within the limits."""
    q0 = plan.neutral.copy()
    if limits:
        dof, at = _limited(plan)
        lower, upper = plan.dof_f[f.LOWER, dof], plan.dof_f[f.UPPER, dof]
        both = ((q0[at] < lower) | (q0[at] > upper)) & np.isfinite(lower) & np.isfinite(upper)
        q0[at] = np.clip(q0[at], lower, upper)
        q0[at[both]] = 0.5 * (lower[both] + upper[both])
    return q0


def _limited(plan):
    """Velocities of joints with one degree of freedom, and their coordinates."""
    rows = plan.body_i[:-1]
    rows = rows[(rows[:, f.KIND] == f.REVOLUTE) | (rows[:, f.KIND] == f.SCREW)]
    return rows[:, f.V_INDEX], rows[:, f.Q_INDEX]


def _balls(plan, limits) -> tuple[np.ndarray, np.ndarray]:
    """Spherical joints with a limit: where their quaternions are, and the largest turns."""
    rows = plan.body_i[:-1]
    rows = rows[rows[:, f.KIND] == f.SPHERICAL]
    most = plan.dof_f[f.UPPER, rows[:, f.V_INDEX]]
    limited = np.isfinite(most) & (most < np.pi) & limits
    return rows[limited, f.Q_INDEX].astype(np.int64), most[limited]


def _link_names(hold) -> tuple[str, ...]:
    if isinstance(hold, str):
        raise NamingError(f"hold takes a list of links: hold=[{hold!r}]")
    return tuple(dict.fromkeys(hold))


def _weights(targets, weights, count, length):
    """Weights of position and orientation of each target, of the rows that compiled code sees."""
    scale = np.ones((count, 2))
    for key, value in (weights or {}).items():
        row = scale[_known(targets, key, "weights")]
        try:
            row[:] = value
        except (TypeError, ValueError):
            raise ShapeError(f"weights: {key!r} must have one number, or two for position and orientation, not "
                             f"{value!r}") from None
        for x in row:
            as_positive(f"weight of {key!r}", x)
    scale[:, 0] /= length
    return scale


def _levels(targets, priorities, hold):
    levels = [0] * len(targets)
    for key, value in (priorities or {}).items():
        if key in hold:
            raise ModelError(f"priorities: {key!r} is held, which comes before any target")
        levels[_known(targets, key, "priorities")] = as_count(f"priority of {key!r}", value, 0)
    return levels


def _known(targets, key, what) -> int:
    if key not in targets:
        raise NamingError(f"{what}: there is no {_named(key)}; there are {', '.join(map(repr, targets))}")
    return targets.index(key)


def _length(plan, body, point) -> float:
    """Length of the way from a point of a body to the first joint of its tree, from joint to joint."""
    length = float(np.linalg.norm(point))
    while plan.body_i[body, f.PARENT] >= 0:
        length += float(np.linalg.norm(plan.body_f[body, f.OFFSET:f.OFFSET + 3]))
        body = plan.body_i[body, f.PARENT]
    return length


def _gap(plan, q) -> float:
    return float(np.abs(demands(plan, q, None).gap).max(initial=0.0))


def _above(plan, bodies) -> set[int]:
    """These bodies and all between them and the ground."""
    above: set[int] = set()
    for body in bodies:
        while body >= 0 and body not in above:
            above.add(body)
            body = int(plan.body_i[body, f.PARENT])
    return above


def _in_loops(plan) -> set[int]:
    """Bodies whose joints connections or couplings depend on."""
    found: set[int] = set()
    for row in plan.loops.conn_i[:-1]:
        ends = [int(row[f.BODY_A]), int(row[f.BODY_B])]
        if row[f.LAW] == f.LAW_COUPLED:
            found |= set(ends)
        else:
            found |= _above(plan, ends) - _above(plan, [int(row[f.MEET])])
    return found


def _columns(mechanism, plan, bodies, limits, joints, direct):
    """Bodies that matter; velocities that move them, with limits and the range of starts."""
    rows = plan.body_i[:-1]
    everything = plan.loops is not None or not direct
    chain = np.array(sorted(range(plan.bodies) if everything else _above(plan, bodies)), np.int64)
    may_move = np.ones(plan.nv, bool)
    if joints is not None:
        may_move[:] = False
        for name in joints:
            may_move[mechanism.v_slice(name)] = True
    numbers, ranges = [], []
    size = max(np.linalg.norm(plan.body_f[chain, f.OFFSET:f.OFFSET + 3], axis=1).sum(), 1e-3)
    for i in chain:
        kind, dof = rows[i, f.KIND], rows[i, f.V_INDEX]
        if kind == f.FIXED:
            continue
        for d in range(rows[i, f.DOF]):
            if not may_move[dof + d]:
                continue
            place, row = -1, np.array([-np.inf, np.inf, -np.pi, 2.0 * np.pi])  # of a spherical joint
            if kind in (f.REVOLUTE, f.SCREW):
                lower, upper = plan.dof_f[[f.LOWER, f.UPPER], dof] if limits else (-np.inf, np.inf)
                half = np.pi if kind == f.REVOLUTE or plan.body_f[i, f.RATE_ANGULAR] else size
                row = np.array([lower, upper, -half, 2.0 * half])
                if np.isfinite(lower) or np.isfinite(upper):
                    place = rows[i, f.Q_INDEX]
                    if np.isfinite(lower) and np.isfinite(upper):
                        first = max(lower, 0.5 * (lower + upper) - half)
                    else:
                        first = lower if np.isfinite(lower) else upper - 2.0 * half
                    row[2:] = first, min(upper, first + 2.0 * half) - first
            elif kind == f.FREE:
                row[2:] = (-0.1 * size, 0.2 * size) if d < 3 else (-0.3, 0.6)
            numbers.append((dof + d, place))
            ranges.append(row)
    if not numbers:
        raise ModelError("inverse_kinematics: no joint that may move moves any of the targets")
    column_i, column_f = np.array(numbers, np.int64), np.array(ranges)
    column_of = np.full(plan.nv, -1)
    column_of[column_i[:, 0]] = np.arange(len(column_i))
    return chain, column_i, column_f, column_of
