"""Model files as models of the benchmark: found, read, and stripped of what the peers are built without."""

from __future__ import annotations

import importlib.metadata
import warnings
from pathlib import Path

from bunraku.errors import LoadError, LoadWarning, ModelError
from bunraku.io import load
from bunraku.mechanism import Mechanism
from bunraku.mechanism.joints import DEFAULTS
from bunraku.mechanism.links import GROUND

ROBOTS = "example-robot-data"  # a wheel of robots
ACTING = ("armature", "damping", "stiffness", "limit_stiffness", "limit_damping")


def find(name: str) -> Path:
    """This file, or the one whose path ends so in the wheel example-robot-data if that is installed."""
    path = Path(name)
    if not name:
        raise LoadError("the name of a model file is empty")
    if path.exists() or path.is_absolute():
        return path  # `load` says what is wrong with it
    try:
        files = importlib.metadata.files(ROBOTS) or ()
    except importlib.metadata.PackageNotFoundError:
        raise LoadError(f"{name}: there is no such file; for the robots of the package {ROBOTS}, install it") from None
    found = sorted(Path(f.locate()) for f in files if Path(f).parts[-len(path.parts):] == path.parts)
    if not found:
        raise LoadError(f"{name}: there is no such file, and no such robot in {ROBOTS}")
    if len(found) > 1:
        raise LoadError(f"{name}: there is no such file, and {ROBOTS} has several; give more of the path: "
                        + ", ".join("/".join(p.parts[-4:]) for p in found))
    return found[0].resolve()


def read(path: Path) -> tuple[Mechanism, list[str]]:
    """The mechanism of a file without passive forces, on a Free joint unless it says otherwise; and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        m = load(path)
    if not m.nv:
        raise ModelError(f"{path}: nothing in it moves, so there is nothing to measure")
    return bare(m), [str(w.message) for w in caught if issubclass(w.category, LoadWarning)]


def bare(m: Mechanism) -> Mechanism:
    """A copy without springs, dampers, acting limits, armature and visuals."""
    twin, names = Mechanism(gravity=m.gravity.tolist(), name=m.name), [*m.link_names, GROUND]
    for link in m.links:
        joint = link.joint.changed(**{name: DEFAULTS[name] for name in ACTING}) if link.joint.nv else link.joint
        twin.add_link(link.name, names[link.parent], joint, link.joint_name, link.actuated, link.position,
                      link.rotation, link.mass, link.com, link.inertia, physical=False)
    return twin
