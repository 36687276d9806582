"""Xacro: macros of URDF files, expanded by xacro and xacrodoc (`pip install "bunraku[xacro]"`), without ROS."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from bunraku.errors import LoadError, MissingExtra
from bunraku.io.mesh_files import places_of
from bunraku.io.xml import read_bytes


def expanded(path: Path, search, arguments: Mapping[str, str] | None) -> bytes:
    """The URDF of a xacro file. Packages that it names are looked for around the file, then in `search` and
    ROS_PACKAGE_PATH."""
    try:
        import xacro
        from xacrodoc import packages  # with it, xacro finds packages without ROS
    except ImportError:
        raise MissingExtra(f'{path.name}: xacro files need pip install "bunraku[xacro]"; or expand it first '
                           "(xacro robot.urdf.xacro > robot.urdf)") from None
    read_bytes(path)  # refuses what is no regular file of bounded size
    try:
        packages.reset()
        packages.walk_up_from(os.path.abspath(path))
        packages.look_in([place for place in places_of(search) if os.path.isdir(place)])
        given = {name: str(value) for name, value in (arguments or {}).items()}
        return xacro.process_file(os.path.abspath(path), mappings=given).toprettyxml(indent="  ").encode()
    except Exception as error:  # its own, those of expressions in the file, and of packages that are not found
        reason = " ".join(str(error).split()) or type(error).__name__
        raise LoadError(f"{path}: xacro says: {reason[:500]}") from None
