"""Read-only values: the error on writing names the call that makes the change."""

from __future__ import annotations

from typing import ClassVar, TypeVar

import numpy as np

from bunraku.errors import ReadOnlyError

T = TypeVar("T")


class ReadOnlyArray(np.ndarray):
    """An array whose numbers are used elsewhere, so that writing here would have no effect.

    Reads like any array; arithmetic and `copy()` give plain ones. `remedy` is the error message on writing.
    """

    remedy = ("these numbers are read-only; m = m.with_link(name, ...) and m = m.with_joint(name, ...) return changed "
              "copies of a mechanism, x.copy() an array to write to")

    def refuse(self) -> None:
        if not self.flags.writeable:
            raise ReadOnlyError(self.remedy)

    def __setitem__(self, key, value):
        self.refuse()
        super().__setitem__(key, value)

    def fill(self, value):
        self.refuse()
        super().fill(value)

    def copy(self, order="C"):
        """A plain array, to write to."""
        return np.array(self, order=order)

    __copy__ = copy

    def __deepcopy__(self, memo):
        return read_only(self, self.remedy)

    def __reduce__(self):
        return read_only, (np.array(self), self.remedy)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return array[()] if return_scalar else np.asarray(array)

    def __repr__(self):
        return repr(np.asarray(self))


class StateArray(ReadOnlyArray):
    """A copy of a simulation's q or v, which writing would not change.

    Its memory itself is writable, because compiled entries accept such arrays directly and read-only ones only by a
    slow path. Writing is therefore rejected here, for views of the copy; results of NumPy operations are writable.
    """

    remedy = ("sim.q and sim.v are read-only copies of the state; use sim.set_state(q, v), where q = sim.q.copy() is "
              "an array to write to, or sim.impulse(link, (0, 0, 1.0)) for a jump of velocities")

    @classmethod
    def of(cls, row: np.ndarray) -> StateArray:
        return row.copy().view(cls)

    @property
    def held(self) -> bool:
        owner: np.ndarray | None = self
        while isinstance(owner, StateArray):
            owner = owner.base
        return owner is not None

    @property
    def flags(self):
        """Flags of a read-only array, which is how it behaves."""
        plain = np.asarray(self)
        plain.flags.writeable = not self.held
        return plain.flags

    def refuse(self) -> None:
        if self.held:
            raise ReadOnlyError(self.remedy)

    def __deepcopy__(self, memo):
        return np.array(self)

    def __reduce__(self):
        return np.array(self).__reduce__()


def _in_place(name):
    plain = getattr(np.ndarray, name)

    def operator(self, other):
        self.refuse()
        return plain(self, other)

    return operator


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    setattr(ReadOnlyArray, f"__i{_name}__", _in_place(f"__i{_name}__"))


def read_only(array: np.ndarray, remedy: str) -> ReadOnlyArray:
    """A read-only copy; writing to it raises an error with the text `remedy`."""
    held = np.array(array).view(ReadOnlyArray)
    held.remedy = remedy
    held.flags.writeable = False
    return held


def sealed(cls: type[T]) -> type[T]:
    """Decorator for frozen dataclasses: setting an attribute raises an error with the text
    `how_to_change(name, value)`."""

    def refuse(self, name, value=None):
        raise ReadOnlyError(self.how_to_change(name, value))

    cls.__setattr__ = cls.__delattr__ = refuse  # type: ignore[method-assign]
    return cls


class ReadOnlyList(list):
    """The links or springs of a mechanism, in order; the mechanism itself changes them with `list.append`."""

    remedy: ClassVar[str] = "a mechanism's list of links is read-only: use m.add_link, m.cut or m.with_link(name, ...)"

    def _refuse(self, *args, **options):
        raise ReadOnlyError(self.remedy)

    append = extend = insert = pop = remove = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __reduce__(self):
        return type(self), (list(self),)


class ReadOnlySprings(ReadOnlyList):
    """The springs of a mechanism."""

    remedy = "a mechanism's list of springs is read-only: use m.add_spring, or build the mechanism without the spring"


class ReadOnlyDict(dict):
    """The connections of a mechanism by name."""

    remedy: ClassVar[str] = ("a mechanism's table of connections is read-only: use m.connect(...), m.cut(name), or "
                             "sim.connect and sim.cut during a simulation")

    def _refuse(self, *args, **options):
        raise ReadOnlyError(self.remedy)

    pop = popitem = clear = update = setdefault = _refuse
    __setitem__ = __delitem__ = __ior__ = _refuse

    def __reduce__(self):
        return type(self), (dict(self),)


class ReadOnlyCouplings(ReadOnlyDict):
    """The couplings of a mechanism by the name of the joint that follows."""

    remedy = ("a mechanism's table of couplings is read-only: use m.couple(...), m.uncouple(joint), or sim.couple and "
              "sim.uncouple during a simulation")
