"""Results by name: a dictionary whose KeyError explains an unknown name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from bunraku.errors import NamingError

Value = TypeVar("Value")


class Named(dict[str, Value]):
    """{name: value}. `explain(name)` is the message for a missing name, such as a joint's name for a link's."""

    def __init__(self, items: dict[str, Value], explain: Callable[[object], str]):
        super().__init__(items)
        self._explain = explain

    def __missing__(self, name):
        raise NamingError(self._explain(name))


class NamedRows(Named):
    """{name: (..., n) array}, parts of one array (..., n for each name) that become entries when they are asked for."""

    def __init__(self, rows: np.ndarray, numbers: dict[str, int], explain: Callable[[object], str]):
        self._rows: np.ndarray | None = rows
        self._numbers, self._explain = numbers, explain

    def __missing__(self, name):
        number = self._numbers.get(name) if isinstance(name, str) else None
        rows = self._rows
        if number is None or rows is None:
            raise NamingError(self._explain(name))
        row = rows.reshape(*rows.shape[:-1], len(self._numbers), -1)[..., number, :]
        dict.__setitem__(self, name, row)
        return row

    def _filled(self) -> NamedRows:
        """This dictionary with all its entries, in order."""
        if self._rows is not None:
            made = {name: self[name] for name in self._numbers}
            dict.clear(self)
            self._rows = None
            dict.update(self, made)
        return self

    def __reduce__(self):
        return dict, (dict(self.items()),)


def _of_all(name):
    def method(self, *args, **options):
        return getattr(dict, name)(self._filled(), *args, **options)
    return functools.wraps(getattr(dict, name))(method)


for _name in ("__contains__", "__delitem__", "__eq__", "__ior__", "__iter__", "__len__", "__ne__", "__or__", "__repr__",
              "__reversed__", "__ror__", "__setitem__", "clear", "copy", "get", "items", "keys", "pop", "popitem",
              "setdefault", "update", "values"):
    setattr(NamedRows, _name, _of_all(_name))
