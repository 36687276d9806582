"""A controller: a compiled actuation with the model, and its parameters by name.

Parameters are one array of floats, `controller.params`, so that each copy of a batch can have its own;
`controller["goal"]` is a view of one of them by name. The sum of controllers is a controller whose array holds those of
its parts, one behind the other; actuations of users can be added, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numba.extending import register_jitable

from bunraku.checks import as_finite, as_floats, hint
from bunraku.errors import ModelError, NamingError, ShapeError
from bunraku.jit import OPTIONS
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.runs.actuation import Actuation


class Controller(Actuation):
    """A compiled actuation with named parameters; made by the functions of `bk.control`.

    params      all parameters, default of the argument `params` where the controller is the actuation
    names       those that `controller[name]` gives, a view that may be written to
    entries     further names, of entries of a parameter: {name: (parameter, place along its last axis)}
    parts       of a sum: its controllers, whose parameters are views of the sum's
    """

    def __init__(self, function, parameters: Mapping[str, np.ndarray], parts: Sequence[Controller] = (),
                 shared: bool = True, period: float = 0.0, entries: Mapping[str, tuple[str, int]] | None = None):
        super().__init__(function, with_model=True)
        self.name: str = function.__name__
        shapes = {name: np.shape(value) for name, value in parameters.items()}
        self.params = np.concatenate([np.zeros(0), *(np.ravel(value) for value in parameters.values())])
        self.parts, self._places, at = tuple(parts), {}, 0
        for name, shape in shapes.items():
            size = int(np.prod(shape))
            self._places[name] = at, size, shape
            at += size
        self.memory, self.period = not shared, period
        self.entries = {name: place for name, place in (entries or {}).items() if name not in self._places}

    def own_params(self) -> np.ndarray:
        """Those of `params`, which simulations share; a controller with a memory gives each its own."""
        return self.params.copy() if self.memory else self.params

    @property
    def names(self) -> list[str]:
        return list(self._places)

    def __getitem__(self, name: str) -> np.ndarray:
        whole, k = self.entries.get(name, (name, None))
        at, size, shape = self._place(whole)
        value = self.params[at:at + size].reshape(shape)
        return value if k is None else value[..., k]

    def __setitem__(self, name: str, value) -> None:
        self[name][...] = value

    def _place(self, name):
        try:
            return self._places[name]
        except (KeyError, TypeError):
            raise NamingError(f"the controller {self.name!r} has no parameter {name!r}"
                              f"{hint(name, [*self.names, *self.entries])}") from None

    def columns(self, name: str) -> np.ndarray:
        """Where a parameter is in `params`, in its shape: `w.params[:, controller.columns("goal")] = x` in worlds."""
        whole, k = self.entries.get(name, (name, None))
        at, size, shape = self._place(whole)
        places = np.arange(at, at + size).reshape(shape)
        return places if k is None else places[..., k]

    def memories(self) -> list[tuple[str, slice]]:
        """Name and place in the parameters of what sampled controllers remember."""
        return [(name, slice(at, at + size)) for name, (at, size, _) in self._places.items()
                if name.split()[0] == "memory"]

    def batch(self, count: int, **values) -> np.ndarray:
        """Parameters of a batch, (count, k): named ones with a leading axis are those of each copy."""
        out = np.tile(self.params, (count, 1))
        for name, value in values.items():
            places = self.columns(name)
            shape = places.shape
            try:
                given = np.broadcast_to(as_finite(name, value), (count, *shape))
            except ValueError:
                raise ShapeError(f"{name} must be {shape}, or with a leading axis {(count, *shape)}, not "
                                 f"{np.shape(value)}") from None
            out[:, places] = given
        return out

    def __add__(self, other):
        return total(self, other)

    def __radd__(self, other):
        return self if isinstance(other, int) and other == 0 else total(other, self)

    def refuse(self, solver, step: float, alone: bool) -> None:
        if self.memory and not alone:
            raise ModelError(f"the controller {self.name!r} has a memory in its parameters, which copies cannot "
                             "share: give each its own, params=controller.batch(count)")
        if self.period and solver != "symplectic_euler":
            raise ModelError(f"the sampled controller {self.name!r} needs solver='symplectic_euler', which calls it "
                             "once in each step, at its beginning; others try states that they give up again")
        ratio = self.period / step if self.period else 1.0
        if abs(ratio - round(ratio)) > 1e-9 * ratio or round(ratio) < 1:
            raise ModelError(f"the controller {self.name!r} is sampled every {self.period:g} s, which is no whole "
                             f"number of steps of {step:g} s")


def total(*controllers) -> Controller:
    """The sum of controllers and of actuations made by `@bk.actuation`: each writes its own torques, which add up."""
    parts = [as_controller(controller) for controller in controllers]
    if not parts:
        raise ModelError("control.total: nothing to add up")
    function, size = callable_part(parts[0].function), len(parts[0].params)
    for part in parts[1:]:
        function, size = _added(function, size, callable_part(part.function)), size + len(part.params)
    function.__name__ = function.__qualname__ = " + ".join(part.name for part in parts)
    named: dict[str, np.ndarray] = {}
    counts: dict[str, int] = {}
    entries: dict[str, tuple[str, int]] = {}
    for part in parts:
        called = {}
        for name in part.names:
            number = counts.get(name, 0) + 1
            while (key := name if number == 1 else f"{name} {number}") in named:  # a sum's own "kp 2"
                number += 1
            counts[name], named[key], called[name] = number, part[name], key
        for name, (whole, k) in part.entries.items():
            entries.setdefault(name, (called[whole], k))
    periods = {part.period for part in parts if part.period}
    if len(periods) > 1:
        raise ModelError("control.total: the controllers are sampled with different periods")
    result = Controller(function, named, parts, shared=not any(part.memory for part in parts),
                        period=max(periods, default=0.0), entries=entries)
    at = 0
    twins = []
    for part in parts:
        twin = Controller(part.function, {name: part[name] for name in part.names}, part.parts,
                          shared=not part.memory, period=part.period, entries=part.entries)
        twin.params = result.params[at:at + len(part.params)]
        at += len(part.params)
        twins.append(twin)
    result.parts = tuple(twins)
    return result


def _added(first, size, second):
    def added(t, q, v, params, tau, model):
        first(t, q, v, params[:size], tau, model)
        more = np.zeros(tau.shape[0])
        second(t, q, v, params[size:], more, model)
        for j in range(tau.shape[0]):
            tau[j] += more[j]
    return callable_part(added)


def callable_part(function):
    """A plain Python function that compiled functions may call, with bounds checks."""
    return register_jitable(boundscheck=True, **OPTIONS)(function)


def as_controller(actuation) -> Controller:
    if isinstance(actuation, Controller):
        return actuation
    if not isinstance(actuation, Actuation):
        raise ModelError("a sum of controllers is of those of bk.control and of functions decorated with "
                         f"@bk.actuation, not of {actuation!r:.60}")
    if actuation.with_model:
        return Controller(actuation.function, {})
    plain = callable_part(actuation.function)

    def without_model(t, q, v, params, tau, model):
        plain(t, q, v, params, tau)
    without_model.__name__ = actuation.function.__name__
    return Controller(without_model, {})


# -- arguments of the functions that make controllers ----------------------------------------------------------------


def chosen(mechanism: Mechanism, joints, what: str) -> np.ndarray:
    """1.0 for every velocity that belongs to one of the joints, else 0.0; by default those of actuated joints."""
    mechanism = as_mechanism(mechanism)
    on = np.zeros(mechanism.nv)
    if joints is None:
        for link in mechanism.links:
            if link.actuated and link.joint.nv:
                on[mechanism.v_slice(link.joint_name)] = 1.0
        return on
    if isinstance(joints, str) or not isinstance(joints, Sequence):
        raise NamingError(f"{what}: joints must be a list of names, not {joints!r:.60}")
    for name in joints:
        mechanism.find_joint(name, f"{what}: ")
        on[mechanism.v_slice(name)] = 1.0
    return on


def gains(name: str, value, on: np.ndarray) -> np.ndarray:
    """A gain for every velocity, zero for joints that are not chosen."""
    array = as_finite(name, value)
    if array.ndim > 1 or (array.ndim == 1 and array.shape != on.shape):
        raise ShapeError(f"{name} must be a number or ({len(on)},), one for each velocity, not of shape {array.shape}")
    if (array < 0).any():
        raise ShapeError(f"{name} must not be negative")
    return on * array


def coordinates_of(mechanism: Mechanism, name: str, value) -> np.ndarray:
    """nq coordinates; the neutral ones by default."""
    if value is None:
        return mechanism.neutral()
    array = as_floats(name, value, mechanism.nq)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ShapeError(f"{name} must be {mechanism.nq} finite coordinates")
    return array.astype(float)
