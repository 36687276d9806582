"""Inverse kinematics by name: coordinates at which links have given poses."""

from __future__ import annotations

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
    Problem,
)
from bunraku.checks import as_count, as_finite, as_floats, as_positive, as_size, as_vector
from bunraku.entries.explain import refuse_not_finite
from bunraku.entries.inverse_kinematics_entries import GAP, INFO, STARTS, STEPS, WORST, reach
from bunraku.entries.pool import spread
from bunraku.errors import ModelError, NamingError, ShapeError
from bunraku.evaluate.kinematics import kinematics
from bunraku.mechanism import Mechanism
from bunraku.mechanism.links import GROUND
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.plan import fields as f

SMALLEST_SHARE = 8  # goals worth a thread
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
                       posture=None, joints: Sequence[str] | None = None, tolerance: float = 1e-9, starts: int = 50,
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
                out of reach; 1 by default, an angle of 1 rad as much as `mechanism.length_scale`
    priorities  {target: level}: targets of a higher number move only what leaves the lower ones as they are; default 0
    posture     coordinates to be near to, as far as the targets leave freedom
    joints      names of the joints that may move; all by default
    tolerance   [m, rad] error of a target that counts as met. Errors end far below where rounding allows
    starts      starts to try: q0, then coordinates spread over the range of the joints, the same in every call

    Failure is no error: `success` is false, and `q` has the least errors found.
    """
    plan = as_mechanism(mechanism).plan()
    tolerance, starts = as_positive("tolerance", tolerance), as_count("starts", starts)
    wanted = [_Target(mechanism, plan, key, value) for key, value in _as_targets(targets).items()]
    q0 = _start(plan, q0, limits)
    wanted += _held(mechanism, plan, hold, q0, [target.key for target in wanted])
    if posture is not None:
        posture = as_floats("posture", posture, plan.nq, least=plan.nv)
        refuse_not_finite(plan, posture, {})
    batch = _batch_size(wanted, q0, posture)
    _weigh(wanted, weights, mechanism.length_scale)
    _rank(wanted, priorities)
    names = None if joints is None else tuple(joints)
    chain, column_i, column_f, column_of = mechanism.kept(
        ("inverse kinematics", plan.loops is None, tuple(target.body for target in wanted), bool(limits), names,
         posture is None),
        lambda: _columns(mechanism, plan, [target.body for target in wanted], limits, names, posture is None))
    rows, before = 0 if plan.loops is None else plan.loops.rows, FIRST
    ends = [rows] if rows else []
    task_i, task_f = np.empty((len(wanted), TASK_I), np.int64), np.empty((len(wanted), TASK_F))
    for t in sorted(range(len(wanted)), key=lambda t: wanted[t].level):
        target = wanted[t]
        task_i[t, TASK_BODY] = target.body
        task_i[t, TASK_POSITION], rows = (rows, rows + 3) if target.position is not None else (-1, rows)
        task_i[t, TASK_ORIENTATION], rows = (rows, rows + 3) if target.rotation is not None else (-1, rows)
        task_f[t, TASK_TURN:TASK_POINT] = plan.link_f[target.link, f.LINK_ROTATION:f.LINK_OFFSET]
        task_f[t, TASK_POINT:TASK_WEIGHTS] = target.point
        task_f[t, TASK_WEIGHTS:] = target.weights
        if ends and target.level == before:
            ends[-1] = rows
        else:
            ends.append(rows)
        before = target.level
    count = 1 if batch is None else batch
    goals = np.empty((count, GOAL * len(wanted)))
    for t, target in enumerate(wanted):
        o = GOAL * t
        goals[:, o:o + 9] = 0.0 if target.rotation is None else target.rotation.reshape(-1, 9)
        goals[:, o + 9:o + 12] = 0.0 if target.position is None else target.position
    begin = np.ascontiguousarray(np.broadcast_to(q0, (count, plan.nq)))
    near = plan.neutral[None] if posture is None else np.atleast_2d(posture)
    problem = Problem(chain, task_i, task_f, *_balls(plan, limits), column_i, column_f, column_of,
                      np.array(ends), np.array(ends[:1]), np.array(ends[-1:]), _spread(starts, len(column_i)),
                      np.array([tolerance, 0.0 if posture is None else 1.0]))
    q, miss, info = np.empty((count, plan.nq)), np.zeros((count, 2 * len(wanted))), np.empty((count, INFO))
    reach.load()

    def work(start, stop):
        reach.call(plan.arrays, problem, goals, begin, near, q, miss, info, start, stop)

    spread(work, count, 1, workers, SMALLEST_SHARE)
    tables = miss.reshape(count, len(wanted), 2)
    good = info[:, WORST] <= tolerance
    if batch is None:
        return InverseKinematics(q[0], bool(good[0]), tables[0].max(axis=0),
                                 {target.key: tables[0, t] for t, target in enumerate(wanted)}, float(info[0, GAP]),
                                 int(info[0, STARTS]), int(info[0, STEPS]))
    return InverseKinematics(q, good, tables.max(axis=1, initial=0.0),
                             {target.key: tables[:, t] for t, target in enumerate(wanted)}, info[:, GAP],
                             info[:, STARTS].astype(int), info[:, STEPS].astype(int))


@cache
def _spread(starts: int, columns: int) -> np.ndarray:
    """The same numbers from 0 to 1 in every call."""
    return np.random.default_rng(0).random((starts, columns))


class _Target:
    """One target: where it is attached, and its rotation (B or 1, 3, 3) and position (B or 1, 3), or None."""

    def __init__(self, mechanism, plan, key, value, level: int = 0):
        name, point = key if isinstance(key, tuple) and len(key) == 2 else (key, (0.0, 0.0, 0.0))
        self.key, self.what, self.level = key, f"target {key!r}", level
        self.link = mechanism.find_link(name, "inverse_kinematics: targets")
        self.body = -1 if self.link < 0 else int(plan.link_i[self.link, f.LINK_BODY])
        if self.body < 0:
            raise ModelError(f"{self.what}: {name!r} {'is' if name == GROUND else 'is fixed to'} the ground, which "
                             "does not move; name a link that does")
        point = as_vector(f"{self.what}: point", point)
        place = plan.link_f[self.link]
        self.point = (place[f.LINK_ROTATION:f.LINK_OFFSET].reshape(3, 3) @ point
                      + place[f.LINK_OFFSET:f.LINK_OFFSET + 3])
        self.weights = np.ones(2)
        self.rotation, self.position = self._parts(value)
        self.sizes = [len(x) for x, single in ((self.rotation, self._one_rotation), (self.position, self._one_position))
                      if x is not None and not single]

    def _parts(self, value):
        rotation, position = None, value
        if isinstance(value, tuple) and len(value) == 2:
            rotation, position = value
        self._one_rotation = self._one_position = True
        if rotation is None and position is None:
            raise ShapeError(f"{self.what}: neither a rotation nor a position is given; {FORMS}")
        if position is not None:
            position = as_finite(f"{self.what}: position", position)
            if position.ndim not in (1, 2) or position.shape[-1] != 3:
                raise ShapeError(f"{self.what}: the position has shape {position.shape}; {FORMS}")
            if rotation is None and position.shape == (3, 3) and _are_rotations(position[None]):
                raise ShapeError(f"{self.what} may be an orientation or three positions: give the orientation as "
                                 "(rotation, None), positions as (None, positions)")
            self._one_position = position.ndim == 1
            position = np.atleast_2d(position)
        if rotation is not None:
            rotation = as_finite(f"{self.what}: rotation", rotation)
            if rotation.ndim not in (2, 3) or rotation.shape[-2:] != (3, 3):
                raise ShapeError(f"{self.what}: the rotation has shape {rotation.shape}; {FORMS}")
            self._one_rotation = rotation.ndim == 2
            rotation = rotation.reshape(-1, 3, 3)
            if not _are_rotations(rotation):
                raise ModelError(f"{self.what}: the rotation is not a rotation matrix; its columns must be orthonormal "
                                 "and right-handed (scipy.spatial.transform.Rotation makes one)")
        return rotation, position


def _are_rotations(matrices) -> bool:
    products = np.einsum("kij,klj->kil", matrices, matrices)
    return bool(np.all(np.abs(products - np.eye(3)) <= 1e-6) and np.all(np.linalg.det(matrices) > 0.0))


def _as_targets(targets) -> Mapping:
    if not isinstance(targets, Mapping):
        raise ShapeError(f"targets must be a dictionary {{link: target}}, not {type(targets).__name__}; {FORMS}")
    if not targets:
        raise ModelError(f"inverse_kinematics: there is no target; {FORMS}")
    return targets


def _start(plan, q0, limits):
    """q0, or the neutral pose within the limits."""
    if q0 is not None:
        q0 = as_floats("q0", q0, plan.nq, least=plan.nv)
        refuse_not_finite(plan, q0, {})
        return q0
    q0 = plan.neutral.copy()
    if limits:
        dof, at = _limited(plan)
        lower, upper = plan.dof_f[f.LOWER, dof], plan.dof_f[f.UPPER, dof]
        outside = (q0[at] < lower) | (q0[at] > upper)
        both = outside & np.isfinite(lower) & np.isfinite(upper)
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


def _held(mechanism, plan, hold, q0, taken):
    """The links that keep their pose, as targets."""
    if isinstance(hold, str):
        raise NamingError(f"hold takes a list of links: hold=[{hold!r}]")
    hold = list(hold)
    if not hold:
        return []
    poses = kinematics(mechanism, q0).poses
    for name in hold:
        if name in taken:
            raise NamingError(f"link {name!r} has a target and is held; give one of the two")
        mechanism.find_link(name, "inverse_kinematics: hold")
    return [_Target(mechanism, plan, name, poses[name], level=FIRST) for name in dict.fromkeys(hold)]


def _batch_size(wanted, q0, posture) -> int | None:
    sizes = {target.what: size for target in wanted for size in target.sizes}
    sizes |= {what: len(x) for what, x in (("q0", q0), ("posture", posture)) if x is not None and x.ndim == 2}
    if len(set(sizes.values())) > 1:
        raise ShapeError("batches of different size: " + ", ".join(f"{what} {size}" for what, size in sizes.items())
                         + "; give all the same number, or a single one for all")
    return next(iter(sizes.values()), None)


def _weigh(wanted, weights, length):
    known = {target.key: target for target in wanted}
    for key, value in (weights or {}).items():
        target = _known(known, key, "weights")
        try:
            target.weights[:] = value
        except (TypeError, ValueError):
            raise ShapeError(f"weights: {key!r} must have one number, or two for position and orientation, not "
                             f"{value!r}") from None
        for x in target.weights:
            as_size(f"weight of {key!r}", x)
    for target in wanted:
        target.weights[0] /= length


def _rank(wanted, priorities):
    known = {target.key: target for target in wanted}
    for key, value in (priorities or {}).items():
        target = _known(known, key, "priorities")
        if target.level == FIRST:
            raise ModelError(f"priorities: {key!r} is held, which comes before any target")
        target.level = as_count(f"priority of {key!r}", value, 0)


def _known(known, key, what):
    if key not in known:
        raise NamingError(f"{what}: there is no target {key!r}; there are {', '.join(map(repr, known))}")
    return known[key]


def _columns(mechanism, plan, bodies, limits, joints, direct):
    """Bodies that matter; velocities that move them, with limits and the range of starts."""
    rows = plan.body_i[:-1]
    above = set()
    for body in bodies:
        while body >= 0 and body not in above:
            above.add(body)
            body = int(rows[body, f.PARENT])
    everything = plan.loops is not None or not direct
    chain = np.array(sorted(range(plan.bodies) if everything else above), np.int64)
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
