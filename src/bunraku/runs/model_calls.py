"""The methods of the model in compiled functions: `model.gravity(q, tau)` calls an entry of `entries/model_entries.py`.

Each method is an overload for `ModelType`; names of links and joints become places among the model's words, and the
entry is called by its address, so that nothing of it is compiled into the user's function.
"""

from __future__ import annotations

import functools

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, overload, overload_method

from bunraku.compiler.numba_inside import AbstractTemplate, infer_global, signature
from bunraku.contact.ray_entries import ray_of_model
from bunraku.entries.model_entries import (
    ACCELERATION_OF,
    BIAS,
    FINE,
    INVERSE,
    MODEL_ENTRIES,
    POSE_OF,
    VELOCITY_OF,
    com_jacobian_of_model,
    difference_of_model,
    gravity_of_model,
    jacobian_of_model,
    link_of_model,
    matrix_of_model,
    sums_of_model,
    torques_of_model,
)
from bunraku.errors import ModelError
from bunraku.integrate.callbacks import bounds_checked, compile_for
from bunraku.jit import OPTIONS, prepare
from bunraku.runs.model import FIRST_Q, FIRST_V, LINK, SHAPES, SIZES, link_point
from bunraku.runs.model_type import ModelType, as_argument, number_at, plan_of, shapes_at


def _torques(*args):
    return torques_of_model.function(*args)


def _matrix(*args):
    return matrix_of_model.function(*args)


def _link(*args):
    return link_of_model.function(*args)


def _jacobian(*args):
    return jacobian_of_model.function(*args)


def _sums(*args):
    return sums_of_model.function(*args)


def _difference(*args):
    return difference_of_model.function(*args)


def _gravity_torque(*args):
    return gravity_of_model.function(*args)


def _jacobian_of_com(*args):
    return com_jacobian_of_model.function(*args)


def _ray(*args):
    return ray_of_model.function(*args)


def _called_by_address(function, entry) -> None:
    """Let user functions call the kernel of an entry by its address; arrays may be read-only."""
    @infer_global(function)
    class Typing(AbstractTemplate):
        def generic(self, args, kws):
            return signature(entry.signature.return_type, *map(types.unliteral, args))

    @lower_builtin(function, types.VarArg(types.Any))
    def lower(context, builder, sig, given):
        kind = context.call_conv.get_function_type(sig.return_type, entry.signature.args)
        address = builder.inttoptr(ir.IntType(64)(entry.address), kind.as_pointer())
        return context.call_conv.call_function(builder, address, sig.return_type, entry.signature.args, given)[1]


for _function, _entry in zip((_torques, _matrix, _link, _jacobian, _sums, _difference, _gravity_torque,
                              _jacobian_of_com, _ray), (*MODEL_ENTRIES, ray_of_model), strict=True):
    _called_by_address(_function, _entry)


def _refuse_unless_floats(method: str, dimensions: int = 1, **arrays) -> None:
    for name, kind in arrays.items():
        if not (isinstance(kind, types.Array) and kind.dtype == types.float64 and kind.ndim == dimensions
                and kind.layout == "C"):
            raise ModelError(f"model.{method}: {name} must be a C-contiguous array of float64 with {dimensions} "
                             f"dimension{'s' if dimensions > 1 else ''}, not {kind}")
        if name == "out" and not kind.mutable:
            raise ModelError(f"model.{method}: out is read-only; give it an array of your own, or tau")


@overload(link_point)
def _point_compiled(point):
    if isinstance(point, types.NoneType) or getattr(point, "value", 0) is None:
        return lambda point: (0.0, 0.0, 0.0)
    return lambda point: (float(point[0]), float(point[1]), float(point[2]))


method = functools.partial(overload_method, ModelType, prefer_literal=True)


@method("gravity")
def _gravity(model, q, out):
    _refuse_unless_floats("gravity", q=q, out=out)
    text = SIZES["gravity"]

    def gravity(model, q, out):
        if _gravity_torque(plan_of(model), q, out) != FINE:
            raise ValueError(text)
    return gravity


@method("bias")
def _bias(model, q, v, out):
    _refuse_unless_floats("bias", q=q, v=v, out=out)
    text = SIZES["bias"]

    def bias(model, q, v, out):
        if _torques(plan_of(model), BIAS, q, v, v, out) != FINE:
            raise ValueError(text)
    return bias


@method("inverse_dynamics")
def _inverse_dynamics(model, q, v, a, out):
    _refuse_unless_floats("inverse_dynamics", q=q, v=v, a=a, out=out)
    text = SIZES["inverse_dynamics"]

    def inverse_dynamics(model, q, v, a, out):
        if _torques(plan_of(model), INVERSE, q, v, a, out) != FINE:
            raise ValueError(text)
    return inverse_dynamics


@method("mass_matrix")
def _mass_matrix(model, q, out):
    _refuse_unless_floats("mass_matrix", q=q)
    _refuse_unless_floats("mass_matrix", 2, out=out)
    text = SIZES["mass_matrix"]

    def mass_matrix(model, q, out):
        if _matrix(plan_of(model), q, out) != FINE:
            raise ValueError(text)
    return mass_matrix


@method("pose")
def _pose(model, link, q, out, point=None):
    place, text = model.place(LINK, link, "pose"), SIZES["pose"]
    _refuse_unless_floats("pose", q=q)
    if isinstance(out, types.Array) and out.ndim == 2:
        _refuse_unless_floats("pose", 2, out=out)

        def pose(model, link, q, out, point=None):
            x, y, z = link_point(point)
            flat = np.empty(12)
            if out.shape[1] != 4 or out.shape[0] < 3 or out.shape[0] > 4 or _link(
                    plan_of(model), POSE_OF, number_at(model, place), x, y, z, q, q, q, flat) != FINE:
                raise ValueError(text)
            for i in range(3):
                out[i, 3] = flat[9 + i]
                for j in range(3):
                    out[i, j] = flat[3 * i + j]
            if out.shape[0] == 4:
                out[3, 0], out[3, 1], out[3, 2], out[3, 3] = 0.0, 0.0, 0.0, 1.0
        return pose
    _refuse_unless_floats("pose", out=out)

    def pose_flat(model, link, q, out, point=None):
        x, y, z = link_point(point)
        if _link(plan_of(model), POSE_OF, number_at(model, place), x, y, z, q, q, q, out) != FINE:
            raise ValueError(text)
    return pose_flat


@method("velocity")
def _velocity(model, link, q, v, out, point=None):
    place, text = model.place(LINK, link, "velocity"), SIZES["velocity"]
    _refuse_unless_floats("velocity", q=q, v=v, out=out)

    def velocity(model, link, q, v, out, point=None):
        x, y, z = link_point(point)
        if _link(plan_of(model), VELOCITY_OF, number_at(model, place), x, y, z, q, v, v, out) != FINE:
            raise ValueError(text)
    return velocity


@method("acceleration")
def _acceleration(model, link, q, v, a, out, point=None):
    place, text = model.place(LINK, link, "acceleration"), SIZES["acceleration"]
    _refuse_unless_floats("acceleration", q=q, v=v, a=a, out=out)

    def acceleration(model, link, q, v, a, out, point=None):
        x, y, z = link_point(point)
        if _link(plan_of(model), ACCELERATION_OF, number_at(model, place), x, y, z, q, v, a, out) != FINE:
            raise ValueError(text)
    return acceleration


@method("jacobian")
def _jacobian_of(model, link, q, out, point=None):
    place, text = model.place(LINK, link, "jacobian"), SIZES["jacobian"]
    _refuse_unless_floats("jacobian", q=q)
    _refuse_unless_floats("jacobian", 2, out=out)

    def jacobian(model, link, q, out, point=None):
        x, y, z = link_point(point)
        if _jacobian(plan_of(model), number_at(model, place), x, y, z, q, out) != FINE:
            raise ValueError(text)
    return jacobian


@method("com")
def _com(model, q, out):
    _refuse_unless_floats("com", q=q, out=out)
    text = SIZES["com"]

    def com(model, q, out):
        if _sums(plan_of(model), q, q[:0], out) != FINE:
            raise ValueError(text)
    return com


@method("com_velocity")
def _com_velocity(model, q, v, out):
    _refuse_unless_floats("com_velocity", q=q, v=v, out=out)
    text = SIZES["com_velocity"]

    def com_velocity(model, q, v, out):
        sums = np.empty(10)
        if out.shape[0] != 3 or _sums(plan_of(model), q, v, sums) != FINE:
            raise ValueError(text)
        out[:] = sums[3:6]
    return com_velocity


@method("com_jacobian")
def _com_jacobian(model, q, out):
    _refuse_unless_floats("com_jacobian", q=q)
    _refuse_unless_floats("com_jacobian", 2, out=out)
    text = SIZES["com_jacobian"]

    def com_jacobian(model, q, out):
        if _jacobian_of_com(plan_of(model), q, out) != FINE:
            raise ValueError(text)
    return com_jacobian


@method("momentum")
def _momentum(model, q, v, out):
    _refuse_unless_floats("momentum", q=q, v=v, out=out)
    text = SIZES["momentum"]

    def momentum(model, q, v, out):
        sums = np.empty(10)
        if out.shape[0] != 6 or _sums(plan_of(model), q, v, sums) != FINE:
            raise ValueError(text)
        out[:3] = sums[9] * sums[3:6]
        out[3:] = sums[6:9]
    return momentum


@method("difference")
def _difference_of(model, q0, q1, out):
    _refuse_unless_floats("difference", q0=q0, q1=q1, out=out)
    text = SIZES["difference"]

    def difference(model, q0, q1, out):
        if _difference(plan_of(model), q0, q1, out) != FINE:
            raise ValueError(text)
    return difference


@method("range")
def _range(model, link, q, point, direction):
    place, text = model.place(LINK, link, "range"), SIZES["range"]
    shapes = model.place(SHAPES, types.literal(""), "range")
    _refuse_unless_floats("range", q=q)

    def measured(model, link, q, point, direction):
        x, y, z = link_point(point)
        dx, dy, dz = link_point(direction)
        distance = _ray(plan_of(model), shapes_at(model, shapes), number_at(model, place), q, np.array([x, y, z]),
                        np.array([dx, dy, dz]))
        if distance != distance:
            raise ValueError(text)
        return distance
    return measured


@method("q_index")
def _q_index(model, joint):
    place = model.place(FIRST_Q, joint, "q_index")
    return lambda model, joint: number_at(model, place)


@method("v_index")
def _v_index(model, joint):
    place = model.place(FIRST_V, joint, "v_index")
    return lambda model, joint: number_at(model, place)


# -- functions with a model ------------------------------------------------------------------------------------------


class CompiledWithModel:
    """A user function whose last argument is the model, compiled once for all structures.

    call     the compiled function, for compiled code: its last argument is `as_model(address of the words)`
    answer   the type that it returns
    names    that it uses, [(kind, name)]
    """

    def __init__(self, function, *arguments):
        prepare(MODEL_ENTRIES)
        kind = ModelType(function.__name__)
        self.call, self.as_model, self.names = bounds_checked(function, OPTIONS), as_argument(kind), kind.names
        self.answer = compile_for(self.call, *arguments, kind)
