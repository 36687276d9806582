"""Readers of model files: URDF (also as xacro), MJCF, SDF and BVH."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from bunraku.errors import LoadError, ModelError
from bunraku.io.xml import clip, root_tag
from bunraku.mechanism import Mechanism

__all__ = ["load"]

BASES = ("free", "fixed")


def load(path: str | os.PathLike, base: str = "free", strict: bool = False,
         search: str | os.PathLike | Sequence[str | os.PathLike] = (), *, unit: str | float | None = None,
         up: str | None = None, forward: str | None = None, mass: float | None = None,
         masses: Mapping[str, float] | None = None, rigid: bool | None = None, shapes: bool = False,
         friction: bool = False, arguments: Mapping[str, str] | None = None) -> Mechanism:
    """The mechanism of a model file: URDF (.urdf, .xacro), MJCF (.xml), SDF (.sdf) or BVH (.bvh).

    base    if the file specifies no root joint: "free" puts the root link on a Free joint, "fixed" on the ground
    strict  raise a LoadError instead of a LoadWarning: for non-physical inertias, ignored elements, ...
    search  folders to search for packages of `package://` mesh names, after those around the file and before
            those of the environment variable ROS_PACKAGE_PATH
    shapes  True reads collision shapes of URDF, SDF and MJCF, for `bk.contacts`: meshes as their convex hulls
    friction  True reads dry friction of joints of URDF, SDF (`friction`) and MJCF (`frictionloss`): they stick and
            slide, which costs as much as contact
    arguments  of a xacro file (.xacro), which `pip install "bunraku[xacro]"` expands: {"name": "value"}

    For BVH files only, which do not specify these (guesses are LoadWarnings):
    unit         of lengths: "m", "cm", "mm", "in", "ft", "cmu" (1/0.45 in) or a number of metres
    up, forward  axes of the file: "y", "z", "-x", ...; they become z and x here
    mass         of the whole figure [kg], shared among its segments by their lengths (`io/anatomy.py`); 70 by default
    masses       {segment: kg} of segments whose mass is known
    rigid        True treats segments of varying length as rigid, with their median length

    Unsupported elements are a LoadError that names file, element and line.
    """
    path = Path(path)
    if base not in BASES:
        raise ModelError(f"base must be 'free' or 'fixed', not {base!r}")
    suffix = path.suffix.lower()
    options = {"unit": unit, "up": up, "forward": forward, "mass": mass, "masses": masses, "rigid": rigid}
    given = {name: value for name, value in options.items() if value is not None}
    if friction and suffix == ".bvh":
        raise ModelError(f"{path.name}: BVH files have no friction; use m.with_joint(name, friction=...)")
    if shapes and suffix == ".bvh":
        raise ModelError(f"{path.name}: BVH files have no collision shapes; use m.add_shape(link, bk.Capsule(...))")
    if suffix == ".bvh":
        from bunraku.io.bvh import load_bvh

        return load_bvh(path, base, strict, **given)
    if given:
        raise ModelError(f"{path.name}: {', '.join(given)} is for .bvh files; files of this kind specify it themselves")
    if arguments is not None and suffix != ".xacro":
        raise ModelError(f"{path.name}: arguments are for .xacro files")
    if suffix == ".xacro":
        from bunraku.io.urdf import load_urdf
        from bunraku.io.xacro_files import expanded

        return load_urdf(path, base, strict, search, shapes, friction, data=expanded(path, search, arguments))
    if suffix == ".urdf":
        kind = "robot"
    elif suffix == ".sdf":
        kind = "sdf"
    elif suffix == ".xml":
        kind = root_tag(path)
    else:
        raise LoadError(f"{path}: files of type {suffix or 'no suffix'!r} are not read, "
                        "only .urdf, .xacro, .xml (MJCF), .sdf and .bvh")
    if kind == "robot":
        from bunraku.io.urdf import load_urdf

        return load_urdf(path, base, strict, search, shapes, friction)
    if kind == "sdf":
        from bunraku.io.sdf import load_sdf

        return load_sdf(path, base, strict, search, shapes, friction)
    if kind in ("mujoco", "mujocoinclude"):
        from bunraku.io.mjcf import load_mjcf

        return load_mjcf(path, base, strict, shapes, friction)
    raise LoadError(f"{path}: the root element is <{clip(kind)}>; a model is <robot> (URDF), <mujoco> (MJCF) or <sdf>")
