"""States in and out: shapes made right, moves along the group, and what to say when a state has no answer."""

from __future__ import annotations

import math

import numpy as np
from numba import types

from bunraku.algorithms.states import advance_coordinates, coordinate_difference
from bunraku.algorithms.stepping import unit_length
from bunraku.errors import ShapeError, StateError
from bunraku.jit import entry
from bunraku.plan import fields as f
from bunraku.run.signatures import integers, table


def as_array(what: str, value) -> np.ndarray:
    """`value` as a C-contiguous float array of any shape."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise TypeError
        return np.asarray(array, float, order="C")
    except (TypeError, ValueError):
        kind = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
        raise ShapeError(f"{what} must be an array of numbers, not {kind}") from None


def as_floats(what: str, value, width: int, batch: int | None = None) -> np.ndarray:
    """`value` as a C-contiguous float array of shape (width,) or (B, width)."""
    if type(value) is np.ndarray and value.dtype == float and value.flags.carray and (
            value.ndim in (1, 2) and value.shape[-1] == width and batch is None):
        return value   # as kernels take it: no need to look closer
    array = as_array(what, value)
    if array.ndim not in (1, 2) or array.shape[-1] != width:
        raise ShapeError(f"{what} has shape {array.shape}; it must be ({width},), or (B, {width}) for a batch")
    if array.ndim == 2 and batch is not None and array.shape[0] != batch:
        raise ShapeError(f"{what} holds {array.shape[0]} states where the others hold {batch}")
    return array if array.flags.writeable else array.copy()


def aligned(*pieces: tuple[str, object, int]) -> tuple[int | None, list[np.ndarray]]:
    """Arrays of one state (batch None), or all as batches of the same size, single ones repeated."""
    arrays = [as_floats(what, value, width) for what, value, width in pieces]
    sizes = {array.shape[0]: what for array, (what, _, _) in zip(arrays, pieces, strict=True) if array.ndim == 2}
    if not sizes:
        return None, arrays
    if len(sizes) > 1:
        described = ", ".join(f"{what} {size}" for size, what in sizes.items())
        raise ShapeError(f"batches of different size: {described}; give all the same number of states, or a single one "
                         "for all")
    batch = next(iter(sizes))
    return batch, [array if array.ndim == 2 else np.repeat(array[None], batch, axis=0) for array in arrays]


# -- what to say --------------------------------------------------------------------------------------------------


def explain(mechanism, q, inputs: dict[str, np.ndarray]) -> str:
    """Why this state has no finite answer: which joint, and what to do. `inputs` are other (nv,) arrays."""
    plan, links = mechanism.plan(), mechanism.links
    bad = np.flatnonzero(~np.isfinite(q))
    if bad.size:
        return (f"q[{bad[0]}] of joint {links[plan.coordinate_link[bad[0]]].joint_name!r} is {q[bad[0]]}; "
                "it must be finite")
    for name, values in inputs.items():
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size and name == "external":
            return f"the external force on link {links[bad[0] // 6].name!r} holds {values[bad[0]]}; it must be finite"
        if bad.size:
            return (f"{name}[{bad[0]}] of joint {links[plan.dof_link[bad[0]]].joint_name!r} is {values[bad[0]]}; "
                    "it must be finite")
    for row, link in zip(plan.body_i[:-1], plan.body_link, strict=True):
        if row[f.KIND] in (f.SPHERICAL, f.FREE):
            k = row[f.Q_INDEX] + (3 if row[f.KIND] == f.FREE else 0)
            if not np.sum(q[k:k + 4] ** 2) > 0.0:
                return (f"the quaternion of joint {links[link].joint_name!r} (q[{k}:{k + 4}]) is zero; "
                        "use (1, 0, 0, 0) for no turn")
    if plan.nv <= 2000:
        from bunraku.run.matrix import matrix_one

        matrix = np.empty((plan.nv, plan.nv))
        matrix_one.call(plan.body_i, plan.body_f, plan.dof_f, q, matrix)
        if not np.isfinite(matrix).all():
            return "the numbers overflow; check for huge values"
        felt = np.abs(np.diag(matrix))  # where nothing is felt, rounding leaves a trace of the links' own inertia
        links_own = np.abs(plan.body_f[:-1, f.INERTIA:f.INERTIA + 6]).max(initial=0.0)
        scale = np.sqrt(np.maximum(felt, 1e-5 * max(felt.max(), links_own) + 1e-300))
        values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
        if values[0] < 1e-10:
            joint = links[plan.dof_link[np.argmax(np.abs(vectors[:, 0]) / scale)]]
            return (f"joint {joint.joint_name!r} can move without moving any mass here (link {joint.name!r}); "
                    "give the link inertia about that axis, or the joint an armature")
    return "the numbers overflow or lose all digits; check for huge values or extreme ratios of mass"


def refuse(mechanism, q, inputs, bad=None, result=None):
    """Raise the StateError of a failing state, or of all failing states of a batch."""
    if bad is None:
        raise StateError(explain(mechanism, q, inputs), result=result)
    states = np.flatnonzero(bad)
    reasons = [f"state {k}: {explain(mechanism, q[k], {n: x[k] for n, x in inputs.items()})}" for k in states[:5]]
    more = f" (and {len(states) - 5} more)" if len(states) > 5 else ""
    raise StateError(f"{len(states)} of {len(bad)} states have no finite answer; the others are in `.result`\n  "
                     + "\n  ".join(reasons) + more, states=states.tolist(), result=result)


def _sound(plan, q):
    """Every number finite, every quaternion of some length."""
    turns = [(row[f.Q_INDEX] + (3 if row[f.KIND] == f.FREE else 0)) for row in plan.body_i[:-1]
             if row[f.KIND] in (f.SPHERICAL, f.FREE)]
    return np.isfinite(q).all() and all(np.sum(q[k:k + 4] ** 2) > 0.0 for k in turns)


# -- moves --------------------------------------------------------------------------------------------------------


@entry("moves along joints", [types.void(integers, table, table, table)])
def _integrate(body_i, q, dq, out):
    for k in range(q.shape[0]):
        advance_coordinates(body_i, q[k], dq[k], out[k])


@entry("unit quaternions", [types.void(integers, table)])
def _normalise(body_i, q):
    for k in range(q.shape[0]):
        unit_length(body_i, q[k])


def unit_quaternions(plan, q) -> np.ndarray:
    """A batch of coordinates, with quaternions of unit length; not numbers where one is zero."""
    out = q.copy()
    _normalise.call(plan.body_i, out)
    return out


@entry("differences of joints", [types.void(integers, table, table, table)])
def _difference(body_i, q0, q1, out):
    for k in range(q0.shape[0]):
        coordinate_difference(body_i, q0[k], q1[k], out[k])


def _pairwise(mechanism, kernel, first, second, width_out):
    plan = mechanism.plan()
    batch, (a, b) = aligned(first, second)
    a, b = (a, b) if batch is not None else (a[None], b[None])
    out = np.empty((a.shape[0], width_out))
    kernel.call(plan.body_i, a, b, out)
    if not math.isfinite(out.sum()) and not np.isfinite(out).all():
        inputs = {second[0]: b} if second[2] == plan.nv else {}
        for q in (a,) if inputs else (b, a):  # a difference has two states that can be at fault
            if batch is None and (inputs or not _sound(plan, q[0])):
                refuse(mechanism, q[0], {name: x[0] for name, x in inputs.items()})
        refuse(mechanism, a, inputs, ~np.isfinite(out).all(axis=1), out)
    return out if batch is not None else out[0]


def integrate(mechanism, q, dq) -> np.ndarray:
    return _pairwise(mechanism, _integrate, ("q", q, mechanism.nq), ("dq", dq, mechanism.nv), mechanism.nq)


def difference(mechanism, q0, q1) -> np.ndarray:
    return _pairwise(mechanism, _difference, ("q0", q0, mechanism.nq), ("q1", q1, mechanism.nq), mechanism.nv)
