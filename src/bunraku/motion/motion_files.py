"""Readers of motion files, one for each format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bunraku.errors import LoadError, ModelError
from bunraku.io.bvh import read_figure
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.motion.c3d import read_c3d
from bunraku.motion.markers import Markers
from bunraku.motion.motion import Motion
from bunraku.motion.motion_table import MotionTable
from bunraku.motion.sto import read_sto
from bunraku.motion.trc import read_trc

FRAME = ("unit", "up", "forward")
KINDS = {".bvh": (*FRAME, "base", "mass", "masses", "rigid"), ".trc": FRAME, ".c3d": FRAME, ".mot": (), ".sto": ()}


def load_motion(path: str | os.PathLike, mechanism: Mechanism | None = None, *, strict: bool = False,
                unit: str | float | None = None, up: str | None = None, forward: str | None = None,
                base: str | None = None, mass: float | None = None, masses: Mapping[str, float] | None = None,
                rigid: bool | None = None) -> Motion | Markers | MotionTable:
    """A recorded motion; the result depends on the file format:

    .bvh        a `Motion`: mechanism, t, q
    .trc, .c3d  `Markers`: names, t, positions with gaps as NaN; of C3D also analog channels and force plates
    .mot, .sto  a `MotionTable`: named columns, such as OpenSim's coordinates and ground forces; with a mechanism
                whose joints have those names, a `Motion`

    mechanism    for a .bvh, .mot or .sto: the mechanism to move, see `Motion.on` and `MotionTable.motion`
    strict       raise a LoadError instead of a LoadWarning
    unit         of lengths, where the file's unit is missing or wrong: "m", "cm", "mm", ... or a number of metres
    up, forward  axes of the file, which become z and x. By default those of a .trc are y and x, as in OpenSim, those
                 of a .c3d are its screen axes or z and x; those of a .bvh are guessed
    base, mass, masses, rigid   of a .bvh: see `bunraku.load`
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in KINDS:
        raise LoadError(f"{path}: files of type {suffix or 'no suffix'!r} are no motions for bk.load_motion, which "
                        f"reads {', '.join(KINDS)}; bk.load_trajectory reads recorded simulations")
    options = {"unit": unit, "up": up, "forward": forward, "base": base, "mass": mass, "masses": masses, "rigid": rigid}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in KINDS[suffix]:
            raise ModelError(f"{path.name}: {name} has no meaning for {suffix} files"
                             f"{'; table.plates(up, forward) takes it' if name in ('up', 'forward') else ''}")
    if suffix == ".bvh":
        if mechanism is not None and as_mechanism(mechanism).mass > 0.0:
            given.setdefault("mass", mechanism.mass)  # its masses are used: no need to speak of a guess
        figure = read_figure(path, strict=strict, stacklevel=4, **given)
        if not len(figure.t):
            raise LoadError(f"{path}: has no frames; bk.load reads the figure alone")
        motion = Motion(figure.mechanism, figure.t, figure.q, path.name)
        return motion if mechanism is None else motion.on(mechanism)
    if suffix in (".mot", ".sto"):
        table = read_sto(path, strict)
        return table if mechanism is None else table.motion(mechanism)
    if mechanism is not None:
        raise ModelError(f"{path.name}: markers do not move a mechanism by themselves; load them without one")
    return (read_trc if suffix == ".trc" else read_c3d)(path, strict, **given)
