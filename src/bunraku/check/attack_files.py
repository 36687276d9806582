"""Damage model files, trajectories and checkpoints at random: each loads and can be used, or is rejected with its name.

Damage is of bytes (flipped, cut off, moved), of XML (numbers, attributes, elements) and of the arrays and headers in
.npz files, which are otherwise in order. What loads is used: accelerations, energies, states between steps and a few
steps of a simulation must be finite numbers or a bunraku error.

Long because each kind of file has its originals, its damage and its use.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import json
import re
import tempfile
import time
import warnings
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from bunraku.check import Case
from bunraku.errors import BunrakuError, LoadWarning, SimulationWarning
from bunraku.evaluate import forward_dynamics
from bunraku.integrate.solver_memory import MAX_STEP
from bunraku.io import load
from bunraku.mechanism import Revolute, Spherical
from bunraku.models import chain, four_bar
from bunraku.simulation import Simulation, load_trajectory
from bunraku.simulation.simulation import running

TITLE = "damaged model files, trajectories and checkpoints load and can be used, or are refused by name"
UNIT = "files"
SEEDS, SHORT = 500, 10
LIMIT = 180.0
FILES = 200          # in a case
SHARES = {"urdf": 0.45, "trajectory": 0.24, "checkpoint": 0.25, "mjcf": 0.06}
LONGEST_LOAD = 20.0          # [s] for one file
MUJOCO = importlib.util.find_spec("mujoco") is not None

ODD = ["", " ", "nan", "inf", "-inf", "1e999", "1e308", "1e300", "1e100", "1e30", "1e-30", "1e-320", "-1", "0", "-0",
       "0 0 0", "1 2", "1 2 3 4 5 6 7 8 9", "1,5", "0x10", "1_0", "½", "x", "true", "∞", "2147483648",
       "99999999999999999999", "free", "fixed", "floating", "planar", "ball", "world", "ground", "base", "link1",
       "package://../../x", "../../../etc/passwd", "%s%n", "x" * 3000]
NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, np.nan, np.inf, -np.inf, 1e308, -1e308, 1e160, 1e-320, 1e-160, 1e9, -1e9, 2.0**53]


def case(seed: int) -> Case:
    """Many damaged files, one after the other."""
    _compiled()
    skipped, slowest, refused = 0, 0.0, 0
    with tempfile.TemporaryDirectory(prefix="bunraku-check-") as folder:
        for k in range(FILES):
            rng = np.random.default_rng([seed, k])
            kind = str(rng.choice(list(SHARES), p=list(SHARES.values())))
            if kind == "mjcf" and not MUJOCO:
                skipped += 1
                continue
            path = Path(folder) / f"damaged.{SUFFIXES[kind]}"
            path.write_bytes(DAMAGE[kind](rng))
            began = time.thread_time()
            try:
                refused += _refused(kind, path)
            except Exception as error:
                kept = Path(tempfile.gettempdir()) / f"bunraku-check-files-{seed}-{k}.{SUFFIXES[kind]}"
                kept.write_bytes(path.read_bytes())
                error.add_note(f"file {k} of this seed, kept as {kept}")
                raise AssertionError(f"{type(error).__name__}: {error} (file {k}, kept as {kept})") from error
            slowest = max(slowest, time.thread_time() - began)
            if slowest > LONGEST_LOAD:
                raise AssertionError(f"file {k}, {kind}: took {slowest:.0f} s")
    if not 0 < refused < FILES - skipped:
        raise AssertionError(f"{refused} of {FILES} files were rejected: there must be damage of both kinds")
    worst = {"processor time of a file [s]": slowest}
    if skipped:
        worst["MJCF files skipped, as MuJoCo is not installed, in a case"] = skipped
    return Case(FILES - skipped, worst)


@functools.cache
def _compiled() -> None:
    """Compile everything used below in advance, so that its time is not attributed to files."""
    _use_mechanism(chain(1))
    for kind, originals in _originals().items():
        for data, _, _ in originals:
            with tempfile.TemporaryDirectory(prefix="bunraku-check-") as folder:
                path = Path(folder) / "good.npz"
                path.write_bytes(data)
                USE[kind](LOAD[kind](path))


# -- use -----------------------------------------------------------------------------------------------------------


def _refused(kind: str, path: Path) -> bool:
    """Load a file and use it; returns whether it was rejected, by a short error that names it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", LoadWarning)
            loaded = LOAD[kind](path)
    except BunrakuError as error:
        if path.name not in str(error) or len(str(error)) > 3000:
            raise AssertionError(f"the message does not name the file, or is too long: {str(error)[:300]}") from error
        return True
    try:
        USE[kind](loaded)
    except BunrakuError:  # it says what it cannot do with such numbers
        return False
    return False


def _use_mechanism(mechanism) -> None:
    if mechanism.nv:
        finite("accelerations", forward_dynamics(mechanism, mechanism.neutral(), np.zeros(mechanism.nv)))


def _use_trajectory(trajectory) -> None:
    if not trajectory.segments:
        return
    t, kinetic, potential = trajectory.energy()
    finite("energies", kinetic + potential, np.concatenate([s.q.ravel() for s in trajectory.segments]))
    for _, q, v in trajectory.sample([t[0], 0.5 * t[0] + 0.5 * t[-1], t[-1]]):
        finite("samples", q, v)


def _use_checkpoint(simulation) -> None:
    _use_trajectory(simulation.trajectory)
    longest = running(simulation).memory.clock[MAX_STEP]
    if simulation.stats.steps < 2**31:
        with warnings.catch_warnings():
            warnings.simplefilter("error", SimulationWarning)
            try:
                simulation.run(simulation.t + min(1e-3, 5.0 * longest))
            except SimulationWarning:  # so stiff that it would take minutes, which it says
                return
        finite("the state", simulation.q, simulation.v)


def finite(what: str, *arrays) -> None:
    for array in arrays:
        if not np.isfinite(array).all():
            raise AssertionError(f"{what}: not finite, and nothing was said")


def _load_checkpoint(path):
    simulation = Simulation.load(path)
    for state in list(running(simulation).awaited):
        simulation.when(lambda t, q, v: t - 1e9, lambda simulation: True, name=state["name"])
    return simulation


LOAD: dict[str, Any] = {"urdf": load, "mjcf": load, "trajectory": load_trajectory, "checkpoint": _load_checkpoint}
USE: dict[str, Any] = {"urdf": _use_mechanism, "mjcf": _use_mechanism, "trajectory": _use_trajectory,
                       "checkpoint": _use_checkpoint}
SUFFIXES = {"urdf": "urdf", "mjcf": "xml", "trajectory": "npz", "checkpoint": "npz"}


# -- damage to bytes and XML ---------------------------------------------------------------------------------------


def damaged_bytes(rng, data: bytes) -> bytes:
    """Bits flipped, bytes changed, pieces cut off, removed, repeated or exchanged."""
    out = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        if not out:
            break
        place, other = sorted(rng.integers(len(out), size=2))
        length = int(rng.integers(1, 64))
        match rng.integers(7):
            case 0:
                out[place] ^= 1 << rng.integers(8)
            case 1:
                for k in rng.integers(len(out), size=length):
                    out[k] = rng.integers(256)
            case 2:
                del out[other:]
            case 3:
                del out[place:place + length]
            case 4:
                out[other:other] = out[place:place + length]
            case 5:
                a, b = bytes(out[place:place + length]), bytes(out[other:other + length])
                if place + length <= other:
                    out[other:other + length], out[place:place + length] = a, b
            case 6:
                out[place:place] = rng.bytes(length)
    return bytes(out)


NUMBER = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")


def damaged_numbers(rng, text: str) -> str:
    """Some of the numbers, wherever they are, become others or something else."""
    places = list(NUMBER.finditer(text))
    for k in sorted(rng.integers(len(places), size=rng.integers(1, 4)), reverse=True):
        start, stop = places[k].span()
        if rng.random() < 0.5:
            other = rng.normal() * 10.0 ** rng.integers(-12, 12)
            new = repr(float(rng.choice(NUMBERS) if rng.random() < 0.5 else other))
        else:
            new = str(rng.choice(ODD))
        text = text[:start] + new.replace("<", "") + text[stop:]
    return text


def damaged_elements(rng, text: str) -> str:
    """Elements removed, repeated, moved and renamed; attributes removed, exchanged and changed."""
    root = ElementTree.fromstring(text)
    for _ in range(rng.integers(1, 4)):
        everything = list(root.iter())
        parents = [element for element in everything if len(element)]
        if not parents:
            break
        parent = parents[rng.integers(len(parents))]
        child = parent[int(rng.integers(len(parent)))]
        element = everything[rng.integers(len(everything))]
        match rng.integers(7):
            case 0:
                parent.remove(child)
            case 1:
                parent.insert(int(rng.integers(len(parent) + 1)), child)
            case 2:
                if element not in list(child.iter()):
                    element.append(child)
                    parent.remove(child)
            case 3:
                element.tag = everything[rng.integers(len(everything))].tag
            case 4 | 5:
                if element.attrib:
                    element.set(str(rng.choice(list(element.attrib))), str(rng.choice(ODD)))
            case 6:
                donor = everything[rng.integers(len(everything))]
                element.attrib.update(donor.attrib)
    return ElementTree.tostring(root, encoding="unicode")


def damaged_xml(rng, text: str) -> bytes:
    how = rng.random()
    if how < 0.3:
        return damaged_bytes(rng, text.encode())
    return (damaged_numbers if how < 0.65 else damaged_elements)(rng, text).encode()


def urdf(rng) -> str:
    """A random tree of up to 8 links."""
    def numbers(count):
        return " ".join(f"{x:.4g}" for x in rng.normal(size=count))

    parts = []
    count = int(rng.integers(2, 9))
    for k in range(count):
        a, b, c = rng.uniform(0.5, 1.0, size=3)
        parts.append(f'<link name="link{k}"><inertial><origin xyz="{numbers(3)}" rpy="{numbers(3)}"/>'
                     f'<mass value="{rng.uniform(0.1, 9):.4g}"/><inertia ixx="{a:.4g}" iyy="{b:.4g}" izz="{c:.4g}" '
                     f'ixy="0" ixz="0.01" iyz="0"/></inertial><visual><origin xyz="{numbers(3)}"/><geometry>'
                     f'<box size="0.1 0.2 {a:.3g}"/></geometry></visual></link>')
        if k:
            kind = rng.choice(["revolute", "continuous", "prismatic", "fixed", "floating", "planar"],
                              p=[0.4, 0.2, 0.2, 0.1, 0.05, 0.05])
            parts.append(f'<joint name="joint{k}" type="{kind}"><parent link="link{rng.integers(k)}"/>'
                         f'<child link="link{k}"/><origin xyz="{numbers(3)}" rpy="{numbers(3)}"/>'
                         f'<axis xyz="{numbers(3)}"/><limit lower="-1" upper="2" effort="10" velocity="3"/>'
                         f'<dynamics damping="{rng.uniform():.3g}" friction="0"/></joint>')
    return f'<robot name="damaged"><material name="m"><color rgba="1 0 0 1"/></material>{"".join(parts)}</robot>'


def mjcf(rng) -> str:
    """A random tree of up to 5 bodies."""
    def numbers(count):
        return " ".join(f"{x:.4g}" for x in rng.normal(size=count))

    text, closing = "", ""
    for k in range(int(rng.integers(1, 6))):
        kind = rng.choice(["hinge", "slide", "ball"])
        text += (f'<body name="link{k}" pos="{numbers(3)}" euler="{numbers(3)}"><joint name="joint{k}" type="{kind}" '
                 f'axis="{numbers(3)}" damping="0.1" stiffness="2" range="0 90" armature="0.01"/><inertial pos="0 0 1" '
                 f'mass="2" diaginertia="0.3 0.4 0.5"/><geom type="capsule" fromto="0 0 0 0 0 1" size=".1"/>')
        closing += "</body>"
    return ('<mujoco model="damaged"><compiler angle="degree"/><option gravity="0 0 -9.81"/><default><joint '
            f'frictionloss="0"/></default><worldbody><geom type="plane" size="1 1 1"/>{text}{closing}</worldbody>'
            '<actuator><motor joint="joint0" gear="3"/></actuator></mujoco>')


# -- damage to arrays ----------------------------------------------------------------------------------------------


def _contents(path: Path) -> tuple[bytes, dict[str, np.ndarray], dict]:
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    return path.read_bytes(), arrays, json.loads(str(arrays.pop("header")))


@functools.cache
def _originals() -> dict[str, list]:
    """Small files of trees and loops, of several solvers, with changes of structure and conditions."""
    found: dict[str, list] = {"trajectory": [], "checkpoint": []}
    with tempfile.TemporaryDirectory(prefix="bunraku-check-") as folder:
        for solver, step in (("gear", None), ("bdf", None), ("tsit5", None), ("symplectic_euler", 0.002)):
            for mechanism in (chain(3), four_bar()):
                simulation = Simulation(mechanism, solver=solver, step=step, progress=False)
                simulation.when(lambda t, q, v: t - 9.0, lambda simulation: True, name="late")
                simulation.run(0.02)
                if mechanism.connections:
                    simulation.cut(next(iter(mechanism.connections)))
                else:
                    simulation.connect("ground", mechanism.link_names[-1], Spherical() if solver == "gear"
                                       else Revolute((0, 1, 0)), name="grip")
                simulation.run(0.04)
                found["checkpoint"].append(_contents(simulation.save(Path(folder) / "checkpoint")))
                found["trajectory"].append(_contents(simulation.trajectory.save(Path(folder) / "trajectory")))
    return found


def _paths(data, path=()):
    """Every place in nested data."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from _paths(value, (*path, key))


def damaged_header(rng, header: dict) -> dict:
    """Values changed, removed, or exchanged with others."""
    header = json.loads(json.dumps(header))
    places = list(_paths(header))
    *way, last = places[rng.integers(len(places))]
    part = header
    for key in way:
        part = part[key]
    match rng.integers(5):
        case 0:
            del part[last]
        case 1:
            part[last] = float(rng.choice(NUMBERS))
        case 2:
            part[last] = [None, True, [], {}, [[]], "x", -1, 10**18, str(rng.choice(ODD))][rng.integers(9)]
        case 3:
            *other, key = places[rng.integers(len(places))]
            donor = header
            for name in other:
                if not isinstance(donor, (dict, list)) or (name not in donor if isinstance(donor, dict)
                                                           else name >= len(donor)):
                    return header
                donor = donor[name]
            part[last] = json.loads(json.dumps(donor[key]))
        case 4:
            if isinstance(part[last], (int, float)):
                part[last] = float(part[last]) * 10.0 ** rng.integers(-20, 20)
            elif isinstance(part, list):
                part.insert(int(rng.integers(len(part) + 1)), part[last])
    return header


def damaged_arrays(rng, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Numbers, shapes and types changed; arrays removed and exchanged."""
    arrays = dict(arrays)
    name, other = rng.choice(list(arrays), size=2)
    array = arrays[name].copy()
    match rng.integers(9):
        case 0 | 1 | 2 | 3:
            if array.size:
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    array.flat[rng.integers(array.size)] = np.asarray(rng.choice(NUMBERS)).astype(array.dtype)
                arrays[name] = array
        case 4:
            if array.size:
                array.flat[rng.integers(array.size)] += rng.integers(-3, 4)
                arrays[name] = array
        case 5:
            arrays[name] = array[:-1] if rng.random() < 0.5 else array.T if rng.random() < 0.5 else array.ravel()
        case 6:
            arrays[name] = array.astype([np.float32, np.int64, complex, ">f8", "U9", bool][rng.integers(6)])
        case 7:
            arrays[name], arrays[other] = arrays[other], arrays[name]
        case 8:
            del arrays[name]
    return arrays


def damaged_npz(kind: str, rng) -> bytes:
    originals = _originals()[kind]
    data, arrays, header = originals[rng.integers(len(originals))]
    how = rng.random()
    if how < 0.4:
        return damaged_bytes(rng, data)
    if how < 0.65:
        header = damaged_header(rng, header)
    elif how < 0.9:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arrays = damaged_arrays(rng, arrays)
    else:  # parts of one file in another
        name = str(rng.choice(list(arrays)))
        arrays = {**arrays, name: originals[rng.integers(len(originals))][1].get(name, np.zeros(3))}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in {"header": np.array(json.dumps(header)), **arrays}.items():
            part = io.BytesIO()
            np.lib.format.write_array(part, np.asanyarray(array), allow_pickle=False)
            archive.writestr(f"{name}.npy", part.getvalue())
    return stream.getvalue()


DAMAGE: dict[str, Any] = {"urdf": lambda rng: damaged_xml(rng, urdf(rng)),
                          "mjcf": lambda rng: damaged_xml(rng, mjcf(rng)),
                          "trajectory": functools.partial(damaged_npz, "trajectory"),
                          "checkpoint": functools.partial(damaged_npz, "checkpoint")}
