"""C3D (c3d.org): markers, analog channels and force plates, read by ezc3d."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from bunraku.errors import LoadError, MissingExtra
from bunraku.io.axes import AXES, UNITS, metres, turned
from bunraku.io.findings import Findings
from bunraku.io.lines import MAX_BYTES
from bunraku.io.xml import read_bytes
from bunraku.motion.markers import Markers
from bunraku.motion.plates import LOADED, ForcePlate

SCREEN = {"+X": "x", "+Y": "y", "+Z": "z", "-X": "-x", "-Y": "-y", "-Z": "-z", "X": "x", "Y": "y", "Z": "z"}
BLOCK, INTEL, MIPS = 512, b"\x54", b"\x56"
NEWTONS, NEWTON_METRES = {"n": 1.0, "kn": 1e3}, {"nm": 1.0, "nmm": 1e-3, "ncm": 1e-2}


def read_c3d(path: Path, strict: bool = False, unit=None, up: str | None = None, forward: str | None = None) -> Markers:
    """The markers, analog channels and force plates of a C3D file; see `load_motion`."""
    try:
        import ezc3d
    except ImportError as error:
        raise MissingExtra('C3D files need ezc3d: pip install "bunraku[mocap]"') from error
    findings = Findings(path, strict)
    _refuse_cut_off(path)
    try:
        file = ezc3d.c3d(os.fspath(path), extract_forceplat_data=True)
    except Exception as error:  # ezc3d raises what its C++ throws
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise LoadError(f"{path}: ezc3d cannot read it: {said[0]}") from None
    point = file["parameters"]["POINT"]
    units = _text(point, "UNITS") or "mm"
    if unit is None and units.lower() not in UNITS:
        raise LoadError(f"{path}: the unit {units!r} is none of {', '.join(UNITS)}; set it with unit=")
    scale = metres("unit", units if unit is None else unit)
    axes = _axes(point, up, forward, findings)
    rate, first = float(file["header"]["points"]["frame_rate"]), int(file["header"]["points"]["first_frame"]) + 1
    data = file["data"]["points"]
    positions = np.transpose(data[:3], (2, 1, 0)) * scale @ axes.T
    positions[np.isnan(positions).any(axis=2)] = np.nan
    names = _names(point, positions.shape[1])
    start = (first - 1) / rate if rate else 0.0
    t = start + np.arange(len(positions)) / rate if rate else np.zeros(0)
    analog, analog_t, analog_units = _analog(file, start)
    if not len(t):
        t = analog_t
        positions = np.zeros((len(t), 0, 3))
    plates = [_plate(k, raw, analog_t, axes, findings) for k, raw in enumerate(file["data"].get("platform", ()), 1)]
    if not len(t):
        raise LoadError(f"{path}: has neither markers nor analog channels")
    findings.report(stacklevel=4)
    return Markers(path.name, t, names, positions, first, analog_t, analog, analog_units, plates)


def _refuse_cut_off(path: Path) -> None:
    """Reject truncated files by their header: ezc3d would search them in an endless loop."""
    data = read_bytes(path, MAX_BYTES)
    if data[1:2] != b"\x50":
        raise LoadError(f"{path}: is no C3D file: its second byte must be 0x50")
    parameters = BLOCK * (data[0] - 1)
    processor = data[parameters + 3:parameters + 4]
    order = ">" if processor == MIPS else "<"
    points, analog, first, last, _, *scale, start = np.frombuffer(data[2:18].ljust(16, b"\0"), order + "u2")
    word = 4 if scale[processor == INTEL] >> 15 else 2  # a negative scale: data are floats
    frames = int(last) - int(first) + 1 if last < 65535 else 0  # more than fit: said elsewhere
    needed = max(BLOCK * (int(start) - 1) + word * frames * (4 * int(points) + int(analog)), parameters + BLOCK)
    if len(data) < needed:
        raise LoadError(f"{path}: the file is cut off: it has {len(data)} bytes where its header promises {needed}")


def _axes(point, up, forward, findings: Findings) -> np.ndarray:
    """World axes, as given or from the file's screen parameters: its upward axis, and its rightward axis as forward."""
    screen = {key: SCREEN.get(_text(point, key).upper()) for key in ("X_SCREEN", "Y_SCREEN")}
    if up is None:
        up = screen["Y_SCREEN"]
        if up is None:
            findings.note("axes", "no POINT:Y_SCREEN gives the vertical axis; z is assumed; confirm with up='z'")
            up = "z"
    if forward is None:
        right = screen["X_SCREEN"]
        forward = right if right and not AXES[right] @ AXES.get(up, AXES["z"]) else "y" if up[-1:] == "x" else "x"
    return turned(up, forward)


def _names(point, count: int) -> list[str]:
    names: list[str] = []
    for k in range(count):
        known = point.get("LABELS", {"value": []})["value"]
        name = known[k].strip() if k < len(known) and known[k].strip() else f"marker{k + 1}"
        while name in names:
            name += "'"
        names.append(name)
    return names


def _analog(file, start: float) -> tuple[dict[str, np.ndarray], np.ndarray, dict[str, str]]:
    values = file["data"]["analogs"][0]
    rate = float(file["header"]["analogs"]["frame_rate"])
    parameters = file["parameters"]["ANALOG"]
    names = _names(parameters, values.shape[0])
    units = parameters.get("UNITS", {"value": []})["value"]
    t = start + np.arange(values.shape[1]) / rate if rate else np.zeros(0)
    return (dict(zip(names, values, strict=True)), t,
            {name: units[k].strip() if k < len(units) else "" for k, name in enumerate(names)})


def _plate(k: int, raw, t: np.ndarray, axes: np.ndarray, findings: Findings) -> ForcePlate:
    """A force plate from ezc3d's force and moment about the plate's centre, in the file's axes."""
    name = f"plate {k}"
    newtons = _unit(raw["unit_force"], NEWTONS, name, findings)
    newton_metres = _unit(raw["unit_moment"], NEWTON_METRES, name, findings)
    length = metres("unit of a plate's position", (raw["unit_position"] or "mm").strip())
    force, moment = raw["force"].T * newtons @ axes.T, raw["moment"].T * newton_metres @ axes.T
    centre = axes @ (np.mean(raw["corners"], axis=1) * length)
    if np.isnan(force).any() or np.isnan(moment).any():
        findings.note(name, "samples that are no numbers are taken as no force")
        force, moment = np.nan_to_num(force), np.nan_to_num(moment)
    plate = ForcePlate(name, t, force, moment + np.cross(centre, force), float(centre[2]))
    if plate.loaded.any() and np.median(force[plate.loaded, 2]) < -LOADED:
        findings.note(name, "pulls downwards: it reports the force on itself; use plate.reversed()")
    return plate


def _unit(text: str, known: dict[str, float], name: str, findings: Findings) -> float:
    plain = (text or "").strip().lower().replace(".", "").replace("*", "").replace(" ", "")
    if plain not in known:
        raise findings.refuse(name, f"the unit {text!r} is none of {', '.join(known)}")
    return known[plain]


def _text(group, key: str) -> str:
    values = group.get(key, {"value": []})["value"]
    return str(values[0]).strip() if len(values) else ""
