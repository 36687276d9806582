"""Names of a mechanism: lookup of links, joints and connections, and error messages for unknown names."""

from __future__ import annotations

from typing import Any

from bunraku.checks import hint
from bunraku.errors import NamingError
from bunraku.mechanism.links import GROUND


class Names:
    """Lookup by name; part of `Mechanism`."""

    links: Any
    connections: Any
    link_names: Any
    _link_index: dict[str, int]
    _joint_index: dict[str, int]
    connections_made: int

    def _owner(self, name) -> str | None:
        """The kind of part ("connection", "joint", "link") that already has this name; None if it is free."""
        if name in self.connections:
            return "connection"
        if name in self._joint_index:
            return "joint"
        return "link" if name == GROUND or name in self._link_index else None

    def _free_name(self) -> str:
        number = self.connections_made
        while self._owner(f"connection{number}"):
            number += 1
        return f"connection{number}"

    def find_link(self, name, what) -> int:
        if name == GROUND:
            return -1
        try:
            return self._link_index[name]
        except (KeyError, TypeError):
            raise NamingError(f"{what}: {self.no_link(name)}") from None

    def no_link(self, name) -> str:
        """Error text for an unknown link name."""
        if isinstance(name, str) and name in self._joint_index:
            link = self.links[self._joint_index[name]].name
            return f"{name!r} is a joint where a link is meant; the link that it moves is {link!r}"
        if isinstance(name, str) and name in self.connections:
            names, found = [*self.link_names, GROUND], self.connections[name]
            return (f"{name!r} is a connection where a link is meant; it holds {names[found.link_b]!r} to "
                    f"{names[found.link_a]!r}")
        if name == GROUND:
            return "the ground has no entry: it stays where it is, with its frame at the origin of the world"
        return f"there is no link {name!r}{hint(name, [GROUND, *self._link_index])}"

    def no_joint(self, name) -> str:
        """Error text for an unknown joint or connection name."""
        if isinstance(name, str) and name in self._link_index:
            joint = self.links[self._link_index[name]].joint_name
            return f"{name!r} is a link where a joint is meant; the joint that it hangs by is {joint!r}"
        return f"there is no joint or connection {name!r}{hint(name, [*self._joint_index, *self.connections])}"

    def find_joint(self, name, what="", others=None) -> int:
        """Index of the link whose joint has this name, else of the link of this name; `others` are further valid
        names."""
        index = self._joint_index.get(name) if isinstance(name, str) else None
        if index is None:
            index = self._link_index.get(name) if isinstance(name, str) else None
        if index is None:
            if isinstance(name, str) and name in self.connections:
                raise NamingError(f"{what}{name!r} is a connection: it closes a loop and adds no coordinates")
            kinds = "joint, connection or link" if others is not None else "joint or link"
            others = others or ()
            raise NamingError(f"{what}there is no {kinds} {name!r}{hint(name, [*self._joint_index, *others])}")
        return index
