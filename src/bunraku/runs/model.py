"""The running mechanism inside user functions: `model.gravity(q, tau)`, by the entries of `entries/model_entries.py`.

Its methods in plain Python are those of `PlanModel`, which also has the words that the model is in compiled functions
(`model_type.py` has their type, `model_calls.py` their methods): where the plan of the present structure is, its sizes,
then what the names in the function stand for.

Quantities are those of the tree: connections, contacts, dry friction, pulls and external forces are not in them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bunraku.compiler.handles import laid_out
from bunraku.contact.contact_arrays import ContactArrays
from bunraku.contact.ray_entries import ray_of_model
from bunraku.entries.model_entries import (
    ACCELERATION_OF,
    BIAS,
    FINE,
    INVERSE,
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
from bunraku.errors import ShapeError
from bunraku.jit import ArrayMismatch
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
        self._call("jacobian", jacobian_of_model, self.find(LINK, link), *link_point(point), q, out)

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
        self._call(name, link_of_model, mode, self.find(LINK, link), *link_point(point), q, v, a, out)

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


def link_point(point):
    """The coordinates of a point of a link; None: the origin of its frame."""
    return (0.0, 0.0, 0.0) if point is None else (float(point[0]), float(point[1]), float(point[2]))
