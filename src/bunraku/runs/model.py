"""The running mechanism inside user functions that are compiled: `model.gravity(q, tau)`.

In compiled code the model is the address of a few words: where the plan of the present structure is, then what the
names in the function stand for there. Each function has a Numba type of its own for its model; the type collects the
names, which are constants, while the function is compiled. A method is a call of an entry of
`entries/model_entries.py` by its address. In plain Python the same methods are those of `PlanModel`.

Quantities are those of the tree: connections, contacts, dry friction, pulls and external forces are not in them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_builtin,
    models,
    overload,
    overload_method,
    register_model,
)

from bunraku.checks import hint
from bunraku.compiler.handles import POINTER, laid_out
from bunraku.compiler.numba_inside import (
    AbstractTemplate,
    AttributeTemplate,
    infer_global,
    lower_getattr_generic,
    signature,
)
from bunraku.contact.contact_arrays import ContactArrays
from bunraku.contact.contact_entries import CONTACTS
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
from bunraku.entries.signatures import PLAN
from bunraku.errors import ModelError, ShapeError
from bunraku.integrate.callbacks import bounds_checked, compile_for
from bunraku.jit import OPTIONS, ArrayMismatch, prepare
from bunraku.plan.build import Plan

NOTHING = np.zeros(0)
LINK, FIRST_Q, FIRST_V = "link", "q", "v"  # what a name can stand for: a link, a joint's first coordinate or velocity
SHAPES = "shapes"  # without a name: the address of the arrays of shapes
PLAN_AT, NQ_AT, NV_AT, NAMES_AT = range(4)  # words of a model


class PlanModel:
    """The model of one structure: its methods in Python, and its words for compiled functions.

    World axes. Results are written to `out`.

        gravity(q, out)                    torques that hold it at rest against gravity
        bias(q, v, out)                    the same while it moves: gravity and velocity products
        inverse_dynamics(q, v, a, out)     as `bk.inverse_dynamics`, with springs, dampers, limits and rotors
        mass_matrix(q, out)                (nv, nv)
        pose(link, q, out)                 (3, 4) or (4, 4): [R p]; or (12,): R by rows, p
        velocity(link, q, v, out)          (6,): linear, angular
        acceleration(link, q, v, a, out)   (6,): linear, angular
        jacobian(link, q, out)             (6, nv): linear, angular
        com(q, out)                        (3,), centre of mass; com_velocity(q, v, out) likewise
        com_jacobian(q, out)               (3, nv)
        momentum(q, v, out)                (6,): linear, angular about the centre of mass
        difference(q0, q1, out)            the velocity that leads from q0 to q1 in one second
        range(link, q, point, direction)   distance along a ray from a point of a link, both in its frame, to the
                                           nearest shape of other bodies [m]; inf: there is none
        nq, nv                             numbers of coordinates and velocities
        q_index(joint), v_index(joint)     a joint's first coordinate and velocity

    Dry friction and hard limits of joints are in none of the torques. Methods of a link take the point of the link that
    is meant, in its frame, as last argument: `point=(0, 0, 0.1)`.
    """

    def __init__(self, plan: Plan, find: Callable[..., int], shapes: Callable[[], ContactArrays]):
        """find(kind, name, function) is the number of a link (-1: the ground), or a joint's first place in q or v;
        shapes(): the arrays of shapes."""
        self.plan, self.find, self.shapes = plan, find, shapes
        self.nq, self.nv = plan.nq, plan.nv
        self._plan_words = laid_out(plan.arrays)

    def words(self, names, function: str) -> np.ndarray:
        """The words of the model for a function with these names, [(kind, name)]. The caller keeps the model."""
        if any(kind == SHAPES for kind, _ in names):
            self._shapes = self.shapes()
            self._shape_words = laid_out(self._shapes)
        numbers = [self._shape_words.ctypes.data if kind == SHAPES else self.find(kind, name, function)
                   for kind, name in names]
        return np.array([self._plan_words.ctypes.data, self.nq, self.nv, *numbers], np.int64)

    def gravity(self, q, out) -> None:
        self._call("gravity", gravity_of_model, q, out)

    def bias(self, q, v, out) -> None:
        self._torques("bias", BIAS, q, v, NOTHING, out)

    def inverse_dynamics(self, q, v, a, out) -> None:
        self._torques("inverse_dynamics", INVERSE, q, v, a, out)

    def mass_matrix(self, q, out) -> None:
        self._call("mass_matrix", matrix_of_model, q, out)

    def pose(self, link, q, out, point=None) -> None:
        flat = np.empty(12)
        self._link("pose", POSE_OF, link, q, NOTHING, NOTHING, flat, point)
        if np.shape(out) == (12,):
            out[:] = flat
        elif np.shape(out) in ((3, 4), (4, 4)):
            out[:3, :3], out[:3, 3], out[3:] = flat[:9].reshape(3, 3), flat[9:], (0.0, 0.0, 0.0, 1.0)
        else:
            raise ShapeError(SIZES["pose"])

    def velocity(self, link, q, v, out, point=None) -> None:
        self._link("velocity", VELOCITY_OF, link, q, v, NOTHING, out, point)

    def acceleration(self, link, q, v, a, out, point=None) -> None:
        self._link("acceleration", ACCELERATION_OF, link, q, v, a, out, point)

    def jacobian(self, link, q, out, point=None) -> None:
        self._call("jacobian", jacobian_of_model, self.find(LINK, link), *_point(point), q, out)

    def com(self, q, out) -> None:
        self._call("com", sums_of_model, q, NOTHING, out)

    def com_velocity(self, q, v, out) -> None:
        out[:] = self._sums("com_velocity", q, v)[3:6]

    def com_jacobian(self, q, out) -> None:
        self._call("com_jacobian", com_jacobian_of_model, q, out)

    def momentum(self, q, v, out) -> None:
        sums = self._sums("momentum", q, v)
        out[:3], out[3:] = sums[9] * sums[3:6], sums[6:9]

    def difference(self, q0, q1, out) -> None:
        self._call("difference", difference_of_model, q0, q1, out)

    def range(self, link, q, point, direction) -> float:
        distance = ray_of_model.call(self.plan.arrays, self.shapes(), self.find(LINK, link), q,
                                     np.array(point, float), np.array(direction, float))
        if distance != distance:
            raise ShapeError(SIZES["range"])
        return float(distance)

    def q_index(self, joint) -> int:
        return self.find(FIRST_Q, joint)

    def v_index(self, joint) -> int:
        return self.find(FIRST_V, joint)

    def _torques(self, name, mode, q, v, a, out) -> None:
        self._call(name, torques_of_model, mode, q, v, a, out)

    def _link(self, name, mode, link, q, v, a, out, point) -> None:
        self._call(name, link_of_model, mode, self.find(LINK, link), *_point(point), q, v, a, out)

    def _sums(self, name, q, v) -> np.ndarray:
        sums = np.empty(10)
        self._call(name, sums_of_model, q, v, sums)
        return sums

    def _call(self, name, entry, *args) -> None:
        try:
            answer = entry.call(self.plan.arrays, *args)
        except ArrayMismatch as error:
            raise ShapeError(f"model.{name}: q, v and out are C-contiguous arrays of float64: {error}") from None
        if answer != FINE:
            raise ShapeError(SIZES[name])


SIZES = {name: f"model.{name}: arrays of the wrong size: {sizes}" for name, sizes in {
    "gravity": "q has nq entries, out at least nv",
    "bias": "q has nq entries, v nv, out at least nv",
    "inverse_dynamics": "q has nq entries, v and a have nv, out at least nv",
    "mass_matrix": "q has nq entries, out is (nv, nv)",
    "pose": "q has nq entries; out has 12 (rotation by rows, position), or is (3, 4) or (4, 4)",
    "velocity": "q has nq entries, v nv, out 6 (linear, angular)",
    "acceleration": "q has nq entries, v and a have nv, out 6 (linear, angular)",
    "jacobian": "q has nq entries, out is (6, nv)",
    "com": "q has nq entries, out 3",
    "com_velocity": "q has nq entries, v nv, out 3",
    "com_jacobian": "q has nq entries, out is (3, nv)",
    "momentum": "q has nq entries, v nv, out 6 (linear, angular)",
    "range": "q has nq entries, point and direction 3; the direction is not zero",
    "difference": "q0 and q1 have nq entries, out at least nv",
}.items()}


def _point(point):
    """The coordinates of a point of a link; None: the origin of its frame."""
    return (0.0, 0.0, 0.0) if point is None else (float(point[0]), float(point[1]), float(point[2]))


# -- in compiled functions: the type ------------------------------------------------------------------------------


class ModelType(types.Type):
    """Numba type of the model of one function, with the names in it, [(kind, name)], in the order of their numbers."""

    def __init__(self, function: str):
        self.function = function
        self.names: list[tuple[str, str]] = []
        super().__init__(name=f"model of {function} {next(_count)}")

    def place(self, kind: str, name, method: str) -> int:
        """Where the number of a name is among the words of the model."""
        if not isinstance(name, types.StringLiteral):
            raise ModelError(f"model.{method} in {self.function!r}: the name must be a constant, such as 'hand', or a "
                             f"variable of the function around this one, not {name}")
        key = kind, name.literal_value
        if key not in self.names:
            self.names.append(key)
        return NAMES_AT + self.names.index(key)


_count = itertools.count()


@register_model(ModelType)
class _ModelOfModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, ir.IntType(64))


def as_argument(kind: ModelType):
    """A function for compiled code: the address of the words, an integer, as the model."""
    @intrinsic
    def as_model(typingctx, word):
        return kind(types.int64), lambda context, builder, sig, args: args[0]
    return as_model


def _word(context, builder, model, place):
    words = builder.inttoptr(model, ir.IntType(64).as_pointer())
    return builder.load(builder.gep(words, [place]))


@intrinsic
def _number(typingctx, model, place):
    """The word at a place."""
    return types.int64(model, types.int64), lambda context, builder, sig, args: _word(context, builder, *args)


@intrinsic
def _plan(typingctx, model):
    def generate(context, builder, sig, args):
        return builder.inttoptr(_word(context, builder, args[0], ir.IntType(64)(PLAN_AT)), POINTER)
    return PLAN(model), generate


@intrinsic
def _shapes(typingctx, model, place):
    def generate(context, builder, sig, args):
        return builder.inttoptr(_word(context, builder, *args), POINTER)
    return CONTACTS(model, types.int64), generate


@infer_getattr
class _Sizes(AttributeTemplate):
    key = ModelType

    def generic_resolve(self, model, name):
        if name in ("nq", "nv"):
            return types.int64
        if not hasattr(PlanModel, name):
            raise ModelError(f"model.{name} in {model.function!r}: the model has no such method"
                             f"{hint(name, ['nq', 'nv', *(n for n in vars(PlanModel) if n[0] != '_')])}")
        return None


@lower_getattr_generic(ModelType)
def _read_size(context, builder, kind, model, name):
    return _word(context, builder, model, ir.IntType(64)(NQ_AT if name == "nq" else NV_AT))


# -- in compiled functions: the methods ----------------------------------------------------------------------------


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


@overload(_point)
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
        if _gravity_torque(_plan(model), q, out) != FINE:
            raise ValueError(text)
    return gravity


@method("bias")
def _bias(model, q, v, out):
    _refuse_unless_floats("bias", q=q, v=v, out=out)
    text = SIZES["bias"]

    def bias(model, q, v, out):
        if _torques(_plan(model), BIAS, q, v, v, out) != FINE:
            raise ValueError(text)
    return bias


@method("inverse_dynamics")
def _inverse_dynamics(model, q, v, a, out):
    _refuse_unless_floats("inverse_dynamics", q=q, v=v, a=a, out=out)
    text = SIZES["inverse_dynamics"]

    def inverse_dynamics(model, q, v, a, out):
        if _torques(_plan(model), INVERSE, q, v, a, out) != FINE:
            raise ValueError(text)
    return inverse_dynamics


@method("mass_matrix")
def _mass_matrix(model, q, out):
    _refuse_unless_floats("mass_matrix", q=q)
    _refuse_unless_floats("mass_matrix", 2, out=out)
    text = SIZES["mass_matrix"]

    def mass_matrix(model, q, out):
        if _matrix(_plan(model), q, out) != FINE:
            raise ValueError(text)
    return mass_matrix


@method("pose")
def _pose(model, link, q, out, point=None):
    place, text = model.place(LINK, link, "pose"), SIZES["pose"]
    _refuse_unless_floats("pose", q=q)
    if isinstance(out, types.Array) and out.ndim == 2:
        _refuse_unless_floats("pose", 2, out=out)

        def pose(model, link, q, out, point=None):
            x, y, z = _point(point)
            flat = np.empty(12)
            if out.shape[1] != 4 or out.shape[0] < 3 or out.shape[0] > 4 or _link(
                    _plan(model), POSE_OF, _number(model, place), x, y, z, q, q, q, flat) != FINE:
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
        x, y, z = _point(point)
        if _link(_plan(model), POSE_OF, _number(model, place), x, y, z, q, q, q, out) != FINE:
            raise ValueError(text)
    return pose_flat


@method("velocity")
def _velocity(model, link, q, v, out, point=None):
    place, text = model.place(LINK, link, "velocity"), SIZES["velocity"]
    _refuse_unless_floats("velocity", q=q, v=v, out=out)

    def velocity(model, link, q, v, out, point=None):
        x, y, z = _point(point)
        if _link(_plan(model), VELOCITY_OF, _number(model, place), x, y, z, q, v, v, out) != FINE:
            raise ValueError(text)
    return velocity


@method("acceleration")
def _acceleration(model, link, q, v, a, out, point=None):
    place, text = model.place(LINK, link, "acceleration"), SIZES["acceleration"]
    _refuse_unless_floats("acceleration", q=q, v=v, a=a, out=out)

    def acceleration(model, link, q, v, a, out, point=None):
        x, y, z = _point(point)
        if _link(_plan(model), ACCELERATION_OF, _number(model, place), x, y, z, q, v, a, out) != FINE:
            raise ValueError(text)
    return acceleration


@method("jacobian")
def _jacobian_of(model, link, q, out, point=None):
    place, text = model.place(LINK, link, "jacobian"), SIZES["jacobian"]
    _refuse_unless_floats("jacobian", q=q)
    _refuse_unless_floats("jacobian", 2, out=out)

    def jacobian(model, link, q, out, point=None):
        x, y, z = _point(point)
        if _jacobian(_plan(model), _number(model, place), x, y, z, q, out) != FINE:
            raise ValueError(text)
    return jacobian


@method("com")
def _com(model, q, out):
    _refuse_unless_floats("com", q=q, out=out)
    text = SIZES["com"]

    def com(model, q, out):
        if _sums(_plan(model), q, q[:0], out) != FINE:
            raise ValueError(text)
    return com


@method("com_velocity")
def _com_velocity(model, q, v, out):
    _refuse_unless_floats("com_velocity", q=q, v=v, out=out)
    text = SIZES["com_velocity"]

    def com_velocity(model, q, v, out):
        sums = np.empty(10)
        if out.shape[0] != 3 or _sums(_plan(model), q, v, sums) != FINE:
            raise ValueError(text)
        out[:] = sums[3:6]
    return com_velocity


@method("com_jacobian")
def _com_jacobian(model, q, out):
    _refuse_unless_floats("com_jacobian", q=q)
    _refuse_unless_floats("com_jacobian", 2, out=out)
    text = SIZES["com_jacobian"]

    def com_jacobian(model, q, out):
        if _jacobian_of_com(_plan(model), q, out) != FINE:
            raise ValueError(text)
    return com_jacobian


@method("momentum")
def _momentum(model, q, v, out):
    _refuse_unless_floats("momentum", q=q, v=v, out=out)
    text = SIZES["momentum"]

    def momentum(model, q, v, out):
        sums = np.empty(10)
        if out.shape[0] != 6 or _sums(_plan(model), q, v, sums) != FINE:
            raise ValueError(text)
        out[:3] = sums[9] * sums[3:6]
        out[3:] = sums[6:9]
    return momentum


@method("difference")
def _difference_of(model, q0, q1, out):
    _refuse_unless_floats("difference", q0=q0, q1=q1, out=out)
    text = SIZES["difference"]

    def difference(model, q0, q1, out):
        if _difference(_plan(model), q0, q1, out) != FINE:
            raise ValueError(text)
    return difference


@method("range")
def _range(model, link, q, point, direction):
    place, text = model.place(LINK, link, "range"), SIZES["range"]
    shapes = model.place(SHAPES, types.literal(""), "range")
    _refuse_unless_floats("range", q=q)

    def measured(model, link, q, point, direction):
        x, y, z = _point(point)
        dx, dy, dz = _point(direction)
        distance = _ray(_plan(model), _shapes(model, shapes), _number(model, place), q, np.array([x, y, z]),
                        np.array([dx, dy, dz]))
        if distance != distance:
            raise ValueError(text)
        return distance
    return measured


@method("q_index")
def _q_index(model, joint):
    place = model.place(FIRST_Q, joint, "q_index")
    return lambda model, joint: _number(model, place)


@method("v_index")
def _v_index(model, joint):
    place = model.place(FIRST_V, joint, "v_index")
    return lambda model, joint: _number(model, place)


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
