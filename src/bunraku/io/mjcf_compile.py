"""From an MJCF file to MuJoCo's compiled model, without the elements that a mechanism has no place for."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bunraku.errors import LoadError
from bunraku.io.findings import Findings

LEFT_OUT = {
    "actuators": "actuator", "sensors": "sensor", "tendons": "tendon",
    "keys": "keyframe", "pairs": "contact pair", "plugins": "plugin",
}
"""Lists of the specification that a mechanism has no place for, and what one of them is called."""
READ_ELSEWHERE = ("actuators",)  # mjcf_actuators.py
UNUSED = ("skins", "tuples", "numerics", "texts", "excludes")
"""Lists that say nothing about how a model moves."""


def compile_model(mujoco, findings: Findings, files: dict[str, str], keep: tuple[str, ...] = ()):
    """The compiled model and the additional mesh data; without MuJoCo's output. `keep`: lists of the specification that
    are not to be left out."""
    said: list[str] = []
    before = mujoco.get_mju_user_warning()
    try:
        mujoco.set_mju_user_warning(said.append)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            spec = mujoco.MjSpec.from_file(os.path.abspath(findings.path))
            meshes = _strip(spec, findings, keep)
            model = spec.compile()
        said += [str(warning.message) for warning in caught]
    except LoadError:
        raise
    except Exception as error:  # MuJoCo's own: ValueError, FatalError, and what its bindings raise on odd text
        element, text = _located(str(error))
        if element == "model":  # it may still be about a file
            element = next((where for name, where in files.items() if Path(name).name in text), element)
        raise findings.refuse(element, text) from None
    finally:
        mujoco.set_mju_user_warning(before)
    for text in dict.fromkeys(said):
        if not text.startswith("Inertia matrix is too close to singular"):  # of the pose the file starts from
            findings.note(*_located(text))
    return model, meshes


def _located(text: str) -> tuple[str, str]:
    """MuJoCo's message as (element, what is wrong)."""
    text = text.strip()
    found = re.search(r"\n?(?:Element (?:name )?'(?P<name>[^'\n]*)'(?:, id \d+)?)?(?:, )?line (?P<line>\d+)", text)
    reason = re.sub(r"^((XML )?Error|WARNING|Error=)\s*:\s*", "", text.split("\nElement")[0]).strip()
    reason = " ".join(reason.split())[:500]
    if not found:
        number = re.search(r"Line number=(\d+)", text)
        return (f"line {number[1]}" if number else "model"), f"MuJoCo says: {reason}"
    element = f"element {found['name']!r}, " if found["name"] else ""
    return f"{element}line {found['line']}", f"MuJoCo says: {reason}"


class MeshData(NamedTuple):
    """Mesh data that the compiled model does not contain."""

    folder: str
    references: dict[str, tuple[np.ndarray, np.ndarray]]  # refpos, refquat by name
    driven: dict[str, float]         # joints that actuators drive directly: the largest torque (force) of these, or inf
    excluded: list[tuple[str, str]]  # bodies that do not touch


def _strip(spec, findings: Findings, keep: tuple[str, ...]) -> MeshData:
    """Remove unsupported elements from a specification, with one warning for each kind."""
    couple = {name for item in spec.equalities for name in (item.name1, item.name2)}  # tendons among them
    for kind, called in LEFT_OUT.items():
        items = [x for x in getattr(spec, kind, ()) if kind != "tendons" or x.name not in couple]
        if items and kind not in (*keep, *READ_ELSEWHERE):
            findings.note(*_several(called, [item.name for item in items]))
    for flex in spec.flexes:
        raise findings.refuse(f"flex {flex.name!r}", "deformable bodies cannot be represented")
    _note_option(spec.option, findings)
    excluded = [(item.bodyname1, item.bodyname2) for item in spec.excludes]
    joints = {joint.name for joint in spec.joints}
    driven: dict[str, float] = {}
    for item in spec.actuators:
        if item.target in joints:
            driven[item.target] = driven.get(item.target, 0.0) + _effort(item)
    # In this order nothing is left that refers to what has gone
    for kind in ("sensors", "keys", "actuators", "tendons", "pairs", *UNUSED):
        for item in list(getattr(spec, kind, ())):
            if kind not in keep and (kind != "tendons" or item.name not in couple):
                _delete(spec, item)
    for material in spec.materials:
        material.textures = [""] * len(material.textures)
    for texture in list(spec.textures):
        _delete(spec, texture)
    for name in ("memory", "nstack", "njmax", "nconmax"):
        try:
            setattr(spec, name, -1)
        except TypeError:  # some are unsigned in older versions
            setattr(spec, name, 2**64 - 1)
    spec.nkey = spec.nuserdata = 0
    return MeshData(getattr(spec, "meshdir", "") or "",
                   {mesh.name: (np.array(mesh.refpos), np.array(mesh.refquat)) for mesh in spec.meshes},
                   driven, excluded)


def _effort(actuator) -> float:
    """Largest torque (force) of an actuator at its joint: by its forcerange, and of a motor by its ctrlrange."""
    def largest(limited, bounds) -> float:
        most = max(map(abs, map(float, bounds)))
        return most if int(limited) == 1 or (int(limited) == 2 and most > 0.0) else np.inf

    force = largest(actuator.forcelimited, actuator.forcerange)
    if int(actuator.gaintype) == int(actuator.biastype) == int(actuator.dyntype) == 0:  # fixed gain, no bias, no state
        force = min(force, abs(float(actuator.gainprm[0])) * largest(actuator.ctrllimited, actuator.ctrlrange))
    return abs(float(actuator.gear[0])) * force


def _delete(spec, item) -> None:
    if hasattr(spec, "delete"):
        spec.delete(item)
    else:  # before MuJoCo 3.4
        item.delete()


def _several(called: str, names: list[str]) -> tuple[str, str]:
    """Warning text for ignored elements: the first one, and their number."""
    first = f"{called} {names[0]!r}" if names[0] else called
    plural = called[:-1] + "ies" if called.endswith("y") else called + "s"
    return first, "is left out" if len(names) == 1 else f"is left out, like all {len(names)} {plural}"


def _note_option(option, findings: Findings) -> None:
    if option.density or option.viscosity:
        findings.note("option", f"the fluid (density {option.density:g}, viscosity {option.viscosity:g}) is left out")
