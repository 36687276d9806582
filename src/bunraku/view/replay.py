"""A motion as one self-contained HTML file that plays it, without a server, network or installation.

The file holds a page (`page/`), three.js, and the motion: surfaces of the links, their poses at every frame and the
connections with the times between which they last. Poses are integers in a small unit, stored as second
differences over time and split into byte planes, which gzip compresses to a few bytes per link and frame.
"""

from __future__ import annotations

import html
import json
import math
import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from bunraku.checks import as_number
from bunraku.errors import ShapeError
from bunraku.evaluate import Kinematics, kinematics
from bunraku.mechanism import Fixed, Free, Mechanism
from bunraku.mechanism.connections import quaternion
from bunraku.mechanism.links import GROUND
from bunraku.replay_file import replay_file
from bunraku.simulation.records.trajectory import Trajectory, as_trajectory
from bunraku.view.contact_drawing import SLIDES, STICKS, floor_height, recorded_arrows, vector
from bunraku.view.figure import Camera, Figure
from bunraku.view.filmstrip import FAINT, INK, KINETIC, PAPER, POTENTIAL, TOTAL, happenings
from bunraku.view.solids import Solid, solids

if TYPE_CHECKING:
    from bunraku.simulation import Simulation

FPS, FASTEST = 60.0, 1000.0     # frames per second: default, most
LONGEST = 200_000               # frames: an hour at 50 a second
UNIT = 2e-5                     # resolution of positions, as a share of the size of the mechanism
TURN = 2.0 ** -15               # resolution of quaternions
FAR = 2.5                       # a motion that is so many times larger than what moves is followed by the camera
AZIMUTH, ELEVATION = 28.0, 10.0  # of the camera at the start [degrees], as in `Camera`
SEEN = 100                      # frames by which the camera is placed
CURVE = 400                     # points of a curve of energy
INLINE = 2_000_000              # numbers in a replay within a notebook, at most; longer ones get fewer frames


def replay_html(trajectory: Trajectory | Simulation, path: str | Path, *, fps: float = FPS, title: str | None = None,
                forces: bool | None = None) -> Path:
    """Write a replay of a trajectory, or of that of a simulation, to one HTML file and return its path.

    It plays in any browser, from the disk and without a network: orbit and zoom, play, pause, scrub, speeds, energy and
    events over time. Connections are dots that appear and disappear with the structure.

    forces   contact forces as arrows, which the page can hide: True (an error if they are unknown), False, or
             None: if `trajectory.contacts` provides them
    """
    path = Path(path)
    page = replay_page(trajectory, fps=fps, title=title, forces=forces)
    path.write_bytes(page.encode("utf-8", "replace"))
    return path


def replay_page(trajectory: Trajectory | Simulation, *, fps: float = FPS, title: str | None = None,
                forces: bool | None = None) -> str:
    """The replay of a trajectory as the text of an HTML page."""
    return replay_file(replay_motion(trajectory, fps=fps, title=title, forces=forces))


def replay_motion(trajectory: Trajectory | Simulation, *, fps: float = FPS, title: str | None = None,
                  forces: bool | None = None) -> bytes:
    """The motion that a page plays: header (its length, JSON) and arrays, as page/replay.js reads them."""
    trajectory, fps = as_trajectory(trajectory), as_number("fps", fps, ShapeError)
    if not 0.0 < fps <= FASTEST:
        raise ShapeError(f"a replay has more than 0 and at most {FASTEST:g} frames per second, not {fps:g}")
    if title is not None and not isinstance(title, str):
        raise ShapeError(f"the title of a replay must be text, not {title!r}")
    title = title or (trajectory.segments[-1].mechanism.name if trajectory.segments else "")
    return _motion(trajectory, fps, title, forces)


def notebook_html(trajectory: Trajectory, height: int = 480) -> str:
    """A replay for the output of a notebook's cell."""
    duration = float(trajectory.t[-1] - trajectory.t[0])
    numbers = 7 * len(trajectory.segments[-1].mechanism.links)
    fps = min(30.0, max(INLINE / (numbers * max(duration, 1e-9)), 2.0 / max(duration, 1e-9)))
    page = html.escape(replay_page(trajectory, fps=fps), quote=True)
    return (f'<iframe srcdoc="{page}" width="100%" height="{height}" style="border: 0; display: block" '
            f'title="{html.escape(repr(trajectory), quote=True)}"></iframe>')


class _Link(NamedTuple):
    """Drawn shape of a link."""

    name: str
    mass: float
    solids: list[Solid]


def _motion(trajectory: Trajectory, fps: float, title: str, forces: bool | None) -> bytes:
    if not trajectory.segments:
        raise ShapeError("this trajectory is empty: there is nothing to replay")
    start, end = float(trajectory.segments[0].t[0]), float(trajectory.segments[-1].t[-1])
    count = int(np.ceil((end - start) * fps - 1e-9)) + 1
    if count > LONGEST:
        raise ShapeError(f"{count} frames are too many for a replay: at most {LONGEST}; ask for fewer than {fps:g} "
                         "frames per second")
    times = np.minimum(start + np.arange(count) / fps, end)
    links = _links(trajectory)
    figure = Figure(trajectory.segments[0].mechanism)
    poses, energy = np.zeros((len(links), 7, count)), np.zeros((2, count))
    poses[:, 3] = 1.0
    for chosen, moving in _frames(trajectory, times):
        for k, link in enumerate(links):
            if link.name in moving.poses:
                rotation, position = moving.poses[link.name]
                poses[k, :3, chosen], poses[k, 3:, chosen] = position, quaternion(rotation)
        energy[:, chosen] = moving.kinetic_energy, moving.potential_energy
    _make_continuous(poses[:, 3:])
    unit = max(UNIT * figure.size, float(np.abs(poses[:, :3]).max(initial=0.0)) / 2**30)
    header: dict[str, Any] = {
        "title": title, "frames": count, "fps": fps, "start": start, "end": end, "unit": unit, "turn": TURN,
        "size": figure.size, "paper": PAPER, "ink": INK, "faint": FAINT, "accent": KINETIC,
        "azimuth": np.radians(AZIMUTH), "elevation": np.radians(ELEVATION),
        **_extent(links, poses, figure.fixtures),
        "links": [], "connections": _connections(trajectory, [link.name for link in links]),
        "events": [{"t": at, "text": text} for at, text in happenings(trajectory) if math.isfinite(at)],
        "energy": _curves(*energy), "sticks": STICKS, "slides": SLIDES,
    }
    level = floor_height(trajectory.segments[0].mechanism)
    if level is not None:
        header["floor"] = level
    header["pairs"], pushes = _arrows(trajectory, times, forces, figure, unit)
    arrays = []
    for link in links:
        vertices, faces = _joined(link.solids)
        arrays += [np.rint(vertices / unit), np.diff(faces.ravel(), prepend=0)]
        header["links"].append({
            "name": link.name, "points": len(vertices), "triangles": len(faces),
            "weight": 0.0 if link.name in figure.fixtures else link.mass,
            "tones": [[len(solid.faces), *(round(float(c), 4) for c in solid.colour)] for solid in link.solids]})
    if not any(link["weight"] for link in header["links"]):
        for link in header["links"]:
            link["weight"] = 1.0
    arrays += [_differences(poses[:, :3] / unit, poses[:, 3:] / TURN), pushes]
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    return b"".join([struct.pack("<I", len(text)), text, *map(_planes, arrays)])


def _arrows(trajectory: Trajectory, times, wanted, figure: Figure, unit: float) -> tuple[list[str], np.ndarray]:
    """Names of pairs of shapes, and (pairs, 7, frames): point and arrow in units, 0 for none, 1 sticks, 2 slides."""
    found = recorded_arrows(trajectory, times, wanted)
    pairs = list(dict.fromkeys(arrow.pair for frame in found for arrow in frame))
    rows = np.zeros((len(pairs), 7, len(times)))
    for k, frame in enumerate(found):
        for arrow in frame:
            along = vector(arrow.force, figure.mechanism, figure.size, figure.fixtures)
            if along.any():
                rows[pairs.index(arrow.pair), :, k] = *arrow.point / unit, *along / unit, 1 + arrow.sliding
    seen = np.flatnonzero(rows.any(axis=(1, 2)))
    return [" - ".join(pairs[k]) for k in seen], np.rint(rows[seen])


def _frames(trajectory: Trajectory, times: np.ndarray) -> Iterator[tuple[np.ndarray, Kinematics]]:
    """(indices of times, kinematics there) of every segment; times in a gap belong to the segment before."""
    starts = [segment.t[0] for segment in trajectory.segments]
    owner = np.searchsorted(starts, times, side="right") - 1
    for k, segment in enumerate(trajectory.segments):
        chosen = np.flatnonzero(owner == k)
        if len(chosen):
            states = [segment.at(min(t, segment.t[-1])) for t in times[chosen]]
            q, v = (np.array(part) for part in zip(*states, strict=True))
            yield chosen, kinematics(segment.mechanism, q, v, np.zeros_like(v))


def _links(trajectory: Trajectory) -> list[_Link]:
    """All links of a motion, each as drawn in the structure in which it first appears."""
    found: dict[str, _Link] = {}
    fixed: list[Solid] = []
    for segment in trajectory.segments:
        if all(link.name in found for link in segment.mechanism.links):
            continue
        shapes = solids(segment.mechanism)
        for link in segment.mechanism.links:
            found.setdefault(link.name, _Link(link.name, link.mass, [s for s in shapes if s.link == link.name]))
        fixed = fixed or [s for s in shapes if s.link == GROUND]
    return [*found.values(), *([_Link(GROUND, 0.0, fixed)] if fixed else [])]


def _connections(trajectory: Trajectory, names: list[str]) -> list[dict]:
    """Connections, hinges on the ground and joints that are cut, each with the spans of time in which it holds."""
    found: dict[tuple, dict] = {}
    times = [float(segment.t[0]) for segment in trajectory.segments] + [float(trajectory.segments[-1].t[-1]) + 1.0]
    for segment, (begin, end) in zip(trajectory.segments, pairwise(times), strict=True):
        for name, link, point, seen in _holds(segment.mechanism):
            spans = found.setdefault((name, link, *point), {
                "name": name, "link": names.index(link) if link else -1, "point": list(map(float, point)),
                "seen": seen, "spans": []})["spans"]
            if spans and spans[-1][1] == begin:
                spans[-1][1] = end
            else:
                spans.append([begin, end])
    throughout = [[times[0], times[-1]]]
    return [entry for entry in found.values() if entry["seen"] or entry["spans"] != throughout]


def _holds(m: Mechanism) -> Iterator[tuple[str, str | None, np.ndarray, bool]]:
    """(name, link or None for the ground, point in its frame, whether it is marked while it lasts)."""
    for name, connection in m.connections.items():
        if connection.link_b >= 0:
            yield name, m.links[connection.link_b].name, connection.position_b, True
        else:
            yield name, m.links[connection.link_a].name, connection.position_a, True
    for link in m.links:
        if link.parent >= 0:
            yield link.joint_name, link.name, np.zeros(3), False
        elif not isinstance(link.joint, (Free, Fixed)):
            yield link.joint_name, None, link.position, True


def _extent(links: list[_Link], poses: np.ndarray, fixtures: set[str]) -> dict:
    """Initial target of the camera, visible extent, and height of the floor."""
    seen = poses[..., :: max(1, poses.shape[2] // SEEN)]
    clouds = []
    for link, pose in zip(links, seen, strict=True):
        vertices, _ = _joined(link.solids)
        if len(vertices) and link.name != GROUND and (link.name not in fixtures or len(fixtures) == len(links)):
            low, high = vertices.min(axis=0), vertices.max(axis=0)
            corners = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(3, 8)
            turn = Rotation.from_quat(np.roll(pose[3:].T, -1, axis=1)).as_matrix()
            clouds.append(pose[:3].T[:, None] + np.swapaxes(turn @ corners, 1, 2))
    cloud = np.concatenate(clouds, axis=1) if clouds else np.zeros((1, 1, 3))  # (frames, points, 3)
    lowest = float(cloud[..., 2].min())
    camera = Camera(AZIMUTH, ELEVATION)
    axes = np.array([camera.right, camera.up, camera.away])
    cloud = cloud @ axes.T  # as the camera sees it
    centres, middle = (cloud.min(axis=1) + cloud.max(axis=1)) / 2, (cloud.min(axis=(0, 1)) + cloud.max(axis=(0, 1))) / 2
    still = np.abs(cloud - centres[:, None]).max(axis=(0, 1))
    whole = np.abs(cloud - middle).max(axis=(0, 1))
    follow = bool(whole.max() > FAR * still.max())
    view = still if follow else whole
    radius = max(float(np.linalg.norm(view)), 1e-6)
    return {"middle": (middle @ axes).tolist(), "view": view.tolist(), "radius": radius, "follow": follow,
            "floor": lowest - 0.02 * radius}


def _curves(kinetic: np.ndarray, potential: np.ndarray) -> list[dict]:
    """Energies over time, at the resolution of the plot."""
    at = np.linspace(0, len(kinetic) - 1, min(CURVE, len(kinetic)))
    known = np.arange(len(kinetic))
    return [{"name": name, "colour": colour, "values": [float(f"{x:.5g}") for x in np.interp(at, known, values)]}
            for name, colour, values in (("potential", POTENTIAL, potential), ("kinetic", KINETIC, kinetic),
                                         ("total energy", TOTAL, kinetic + potential))]


def _joined(parts: list[Solid]) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and faces of several solids as one."""
    first = np.cumsum([0, *(len(solid.vertices) for solid in parts)])
    return (np.concatenate([np.empty((0, 3)), *(solid.vertices for solid in parts)]),
            np.concatenate([np.empty((0, 3), int), *(s.faces + n for s, n in zip(parts, first[:-1], strict=True))]))


def _make_continuous(quaternions: np.ndarray) -> None:
    """Of q and -q, which are one rotation, take the one nearer to the frame before. (links, 4, frames), in place."""
    turned = (quaternions[..., 1:] * quaternions[..., :-1]).sum(axis=1) < 0
    quaternions[..., 1:] *= np.where(np.cumsum(turned, axis=1) % 2, -1.0, 1.0)[:, None]


def _differences(positions: np.ndarray, quaternions: np.ndarray) -> np.ndarray:
    whole = np.rint(np.concatenate([positions, quaternions], axis=1))
    return np.diff(np.diff(whole, prepend=0.0), prepend=0.0)


def _planes(numbers: np.ndarray) -> bytes:
    """Whole numbers as 4 bytes each, modulo 2^32: all lowest bytes first."""
    words = np.ascontiguousarray(numbers).ravel().astype(np.int64).astype(np.uint32).astype("<u4")
    return words.view(np.uint8).reshape(-1, 4).T.tobytes()
