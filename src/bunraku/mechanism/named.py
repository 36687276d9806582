"""Results by name: a dictionary whose KeyError explains an unknown name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from bunraku.errors import NamingError

Value = TypeVar("Value")


class Named(dict[str, Value]):
    """{name: value}. `explain(name)` is the message for a missing name, such as a joint's name for a link's."""

    def __init__(self, items: dict[str, Value], explain: Callable[[object], str]):
        super().__init__(items)
        self._explain = explain

    def __missing__(self, name):
        raise NamingError(self._explain(name))
