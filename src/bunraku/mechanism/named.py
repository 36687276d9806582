"""Answers by name: a dictionary that explains a name it does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from bunraku.errors import NamingError

Value = TypeVar("Value")


class Named(dict[str, Value]):
    """{name: value}. `explain(name)` says what is wrong with a name that is missing, such as a joint's for a link's."""

    def __init__(self, items: dict[str, Value], explain: Callable[[object], str]):
        super().__init__(items)
        self._explain = explain

    def __missing__(self, name):
        raise NamingError(self._explain(name))
