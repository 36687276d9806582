"""Model files in: URDF and MJCF."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from bunraku.errors import LoadError, ModelError
from bunraku.io.xml import clip, root_tag
from bunraku.mechanism import Mechanism

__all__ = ["load"]

BASES = ("free", "fixed")


def load(path: str | os.PathLike, base: str = "free", strict: bool = False,
         search: str | os.PathLike | Sequence[str | os.PathLike] = ()) -> Mechanism:
    """The mechanism of a model file: URDF (.urdf) or MJCF (.xml).

    base    "free" puts the root link if the file specifies no root joint on a Free joint, "fixed" on the ground
    strict  raise a LoadError for what is otherwise a LoadWarning: inertias no body has, parts left out, ...
    search  folders in which packages of `package://` mesh names are looked for, after those around the file and before
            those of the environment variable ROS_PACKAGE_PATH

    What cannot be represented is a LoadError that names file, element and line.
    """
    path = Path(path)
    if base not in BASES:
        raise ModelError(f"base must be 'free' or 'fixed', not {base!r}")
    suffix = path.suffix.lower()
    if suffix == ".urdf":
        kind = "robot"
    elif suffix == ".xml":
        kind = root_tag(path)
    else:
        hint = "; expand it first (xacro robot.urdf.xacro > robot.urdf)" if suffix == ".xacro" else ""
        raise LoadError(f"{path}: files of type {suffix or 'no suffix'!r} are not read, "
                        f"only .urdf and .xml (MJCF){hint}")
    if kind == "robot":
        from bunraku.io.urdf import load_urdf

        return load_urdf(path, base, strict, search)
    if kind in ("mujoco", "mujocoinclude"):
        from bunraku.io.mjcf import load_mjcf

        return load_mjcf(path, base, strict)
    raise LoadError(f"{path}: the root element is <{clip(kind)}>; a model is <robot> (URDF) or <mujoco> (MJCF)")
