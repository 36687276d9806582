"""A motion on one page: the figure at times along the axis, as in a chronophotograph, and its energy.

All panels share the time axis: the figure at a time stands above the energy at that time. Vertical lines are changes
of structure.
"""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bunraku.errors import MissingExtra, ShapeError
from bunraku.simulation.records.trajectory import Trajectory, as_trajectory
from bunraku.view.contact_drawing import LEVEL, SLIDES, STICKS, outline, patches, recorded_arrows, vector
from bunraku.view.figure import CIRCLE, FIXTURE, LEFT, MIDDLE, RIGHT, Camera, Figure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bunraku.simulation import Simulation

    Panels = Mapping[str, Mapping[str, tuple[np.ndarray, np.ndarray]]]

PAPER, INK, FAINT = "#fbf9f4", "#2b2f36", "#c9c3b6"
TONES = {LEFT: "#d1603d", MIDDLE: "#39424e", RIGHT: "#2f7f86", FIXTURE: "#a2957d"}
KINETIC, POTENTIAL, TOTAL = "#d1603d", "#2f7f86", INK
OTHERS = ("#8a5a9e", "#b08a2e", "#5b7f3a")  # of curves that belong to neither side
PLANE_FROM, DEEP = 3.0, 0.4  # sizes of a figure: from which a plane is drawn, and to which depth
ARROW = 0.12  # height of the figures for which arrows are thick enough, as a share of the width of a strip
FEW = 8  # events of contacts that are told
COINCIDE = 0.01  # share of a panel's height within which two curves cover each other
OVER: dict[str, Any] = {"dashes": (2.6, 3.4), "dash_capstyle": "butt"}  # of a curve that would cover another
WIDTH, MARGIN, DPI = 11.0, 0.66, 160  # inches, inches, dots per inch
LONGEST, SENTENCE = 40, 80  # characters of a name, of a title or an event that are shown


def drawing() -> tuple[type, type]:
    """Matplotlib's figure and its canvas without a screen; a MissingExtra if it is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Page
    except ImportError as error:
        raise MissingExtra('pictures need matplotlib: pip install "bunraku[plot]"') from error
    return Page, FigureCanvasAgg


def filmstrip(trajectory: Trajectory | Simulation, path: str | Path, *, frames: int = 9, title: str | None = None,
              subtitle: str | None = None, camera: Camera | None = None, panels: Panels | None = None,
              forces: bool | None = None, until: float | None = None) -> Path:
    """Draw a trajectory, or that of a simulation, to a picture file (format by the extension) and return the path.

    panels   further curves over time, below the energy: {axis label: {curve: (times, values)}}. Curves whose names
             begin with "left" or "right" have the colours of that side; NaN leaves a gap.
    forces   contact forces as arrows, one for each pair of shapes, the weight almost as long as a leg: True (an error
             if they are unknown), False, or None: if `trajectory.contacts` provides them
    until    time at which the picture ends [s]
    """
    trajectory, (Page, FigureCanvasAgg) = as_trajectory(trajectory), drawing()
    if frames < 2:
        raise ShapeError(f"a filmstrip needs at least 2 frames, not {frames}")
    camera = Camera() if camera is None else camera
    strip = _Strip(trajectory, frames, camera, forces, math.inf if until is None else until)
    t, kinetic, potential = trajectory.energy()
    shown = {"energy [J]": {"potential": (t, potential), "kinetic": (t, kinetic), "total": (t, kinetic + potential)},
             **(panels or {})}
    shown = {name: {key: _up_to(strip.times[-1], *curve) for key, curve in curves.items()}
             for name, curves in shown.items()}
    labels = _labels(trajectory, strip)

    width = WIDTH - 2 * MARGIN
    scene_height = width * strip.height / strip.width
    above, below, between, tall = (0.95 if title else 0.35), 0.62, 0.40, (1.75 if len(shown) == 1 else 1.45)
    under = below + len(shown) * (tall + between)
    named = 0.14 * max((level for *_, level in labels), default=0)  # room for what happened
    height = above + scene_height + named + under
    page = Page(figsize=(WIDTH, height), dpi=DPI, facecolor=PAPER)
    FigureCanvasAgg(page)
    box = lambda bottom, high: (MARGIN / WIDTH, bottom / height, width / WIDTH, high / height)  # noqa: E731
    strip.draw(page.add_axes(box(under + named, scene_height)))
    for k, (name, curves) in enumerate(shown.items()):
        axes = page.add_axes(box(under - (k + 1) * (tall + between), tall))
        _draw_panel(axes, name, curves, strip, last=k == len(shown) - 1)
        for at, text, level in labels:
            axes.axvline(at, color=INK, lw=0.8, zorder=1)
            if k == 0:
                place = (strip.x_of(at) + strip.edge) / strip.width  # words begin or end at the line near the edges
                axes.annotate(text, (at, 1), xycoords=axes.get_xaxis_transform(), xytext=(0, 3 + 10 * level),
                              textcoords="offset points", fontsize=8, color=INK, annotation_clip=False,
                              ha="left" if place < 0.15 else "right" if place > 0.9 else "center")
    if title:
        page.text(MARGIN / WIDTH, 1 - 0.42 / height, short(title, SENTENCE), fontsize=17, color=INK, family="serif",
                  va="center")
    if subtitle:
        page.text(MARGIN / WIDTH, 1 - 0.74 / height, subtitle, fontsize=10, color="#7a756b", va="center")
    if any(strip.arrows):
        for text, colour, at in (("contact force: sticks", STICKS, 0.55), ("slides", SLIDES, 0.0)):
            page.text(1 - (MARGIN + at) / WIDTH, 1 - 0.24 / height, text, fontsize=8.5, color=colour, ha="right",
                      va="center")
    path = Path(path)
    page.savefig(path, facecolor=PAPER)
    return path


class _Strip:
    """Layout of the frames: x is proportional to time, with equal spacing per frame; heights are to scale."""

    def __init__(self, trajectory, frames: int, camera: Camera, forces: bool | None, until: float):
        self.camera, self.trajectory = camera, trajectory
        first, last = float(trajectory.segments[0].t[0]), min(until, float(trajectory.segments[-1].t[-1]))
        if not last > first:
            raise ShapeError("this trajectory has no duration: there is nothing to draw")
        self.times = np.linspace(first, last, frames)
        fixtures = Figure(trajectory.segments[0].mechanism).fixtures  # and so they are drawn to the end
        self.figures = {id(s.mechanism): Figure(s.mechanism, fixtures) for s in trajectory.segments}
        self.size = max(figure.size for figure in self.figures.values())
        anchors = [figure.anchors for figure in self.figures.values() if figure.anchored]
        self.anchor = camera.project(np.mean(anchors[0], axis=0)) * [1.0, 0.0] if anchors else None
        self.frames, self.hinges, self.planes, self.arrows = [], [], [], []
        found = recorded_arrows(trajectory, self.times, forces)
        for k, (mechanism, q, _) in enumerate(trajectory.sample(self.times)):
            figure = self.figures[id(mechanism)]
            at = self._reference(figure, q)
            self.planes.append([(patch, at) for patch in patches(figure, q, PLANE_FROM * figure.size)])
            self.arrows.append([(camera.project([a.point, a.point + vector(a.force, mechanism, figure.size, fixtures)])
                                 - at, a.colour) for a in found[k]])
            self.hinges += [(k, *(camera.project(point) - at)) for point in figure.hinges]
            self.frames.append([(shape.outline - at, shape) for shape in figure.shapes(q, camera)])
        points = [np.concatenate([outline for outline, _ in frame]) for frame in self.frames]
        floors = [patch.outline(camera, 0.0, DEEP * self.size) - at for frame in self.planes for patch, at in frame
                  if patch.normal[2] > LEVEL]
        everything = np.concatenate([*points, *floors])
        self.low, top = float(everything[:, 1].min()), float(everything[:, 1].max())
        reach = [np.abs(p[:, 0]).max() for p in points]
        gaps = [_clearance(a, b, 0.04 * (top - self.low)) for a, b in pairwise(points)]
        self.room = max(max(gaps), 0.12 * (top - self.low))  # from one frame to the next
        self.edge = 1.05 * max(reach[0], reach[-1], 0.5 * self.room)
        self.width = (frames - 1) * self.room + 2 * self.edge
        pad = 0.045 * (top - self.low)
        self.bottom, self.top = self.low - 2.2 * pad, top + pad
        self.height = self.top - self.bottom

    def _reference(self, figure: Figure, q) -> np.ndarray:
        """Centre of a frame: the initial attachment points, or the point below the centre of mass, so that heights are
        unchanged by horizontal travel."""
        if self.anchor is not None:
            return self.anchor
        return self.camera.project(figure.com(q) * [1.0, 1.0, 0.0])

    def x_of(self, t):
        """Position of a time on the strip."""
        span = self.times[-1] - self.times[0]
        return (np.asarray(t) - self.times[0]) / span * (len(self.times) - 1) * self.room

    def t_of(self, x):
        return self.times[0] + x / ((len(self.times) - 1) * self.room) * (self.times[-1] - self.times[0])

    def path(self):
        """The centre of mass, as a curve on the strip."""
        times = np.linspace(self.times[0], self.times[-1], 240)
        curve = []
        for t, (mechanism, q, _) in zip(times, self.trajectory.sample(times), strict=True):
            figure = self.figures[id(mechanism)]
            curve.append(self.camera.project(figure.com(q)) - self._reference(figure, q) + [self.x_of(t), 0.0])
        return np.array(curve)

    def draw(self, axes):
        from matplotlib.patches import Polygon

        axes.set(xlim=(-self.edge, self.width - self.edge), ylim=(self.bottom, self.top), aspect="equal")
        axes.axis("off")
        floor = self.low - 0.012 * self.height
        falling = any(segment.mechanism.gravity.any() for segment in self.trajectory.segments)
        flying = falling and not any(figure.anchored for figure in self.figures.values())
        grounded = any(self.planes)
        for k, near in enumerate(self.planes):
            for patch, at in near:
                shape = patch.outline(self.camera, 0.5 * self.room, DEEP * self.size) - at + [k * self.room, 0.0]
                level = patch.normal[2] > LEVEL
                axes.add_patch(Polygon(shape, closed=True, facecolor=blend(FAINT, PAPER, 0.6), edgecolor=FAINT,
                                       lw=0.0 if level else 0.8, zorder=0))
        if flying and not grounded:
            axes.plot([-self.edge, self.width - self.edge], [floor, floor], color=FAINT, lw=0.8, zorder=0)
        curve = self.path()
        axes.plot(curve[:, 0], curve[:, 1], color=FAINT, lw=1.0, dashes=(1, 2.2), dash_capstyle="round", zorder=1)
        for k, frame in enumerate(self.frames):
            x = k * self.room
            below = [float((self.camera.project(patch.middle) - at)[1]) for patch, at in self.planes[k]
                     if patch.normal[2] > LEVEL]
            if below or (flying and not grounded):
                self._draw_shadow(axes, x, max(below, default=floor), np.concatenate([drawn for drawn, _ in frame]))
            paints = painted([shape for _, shape in frame], self.height)
            for order, ((drawn, _), (colour, edge, width)) in enumerate(zip(frame, paints, strict=True)):
                axes.add_patch(Polygon(drawn + np.array([x, 0.0]), closed=True, joinstyle="round", facecolor=colour,
                                       edgecolor=edge, lw=width, zorder=2 + k + order / 1e4))
            for (tail, tip), tone in self.arrows[k]:
                if (tail != tip).any():
                    shape = outline(tail, tip, ARROW * self.width) + np.array([x, 0.0])
                    axes.add_patch(Polygon(shape, closed=True, facecolor=tone, edgecolor=PAPER, lw=0.6, zorder=48))
        for k, x, z in self.hinges:
            axes.plot(k * self.room + x, z, "o", ms=3.2, mfc=PAPER, mec=INK, mew=0.9, zorder=50)

    def _draw_shadow(self, axes, x, floor, points):
        from matplotlib.patches import Polygon

        ellipses, alpha = shadow(points, self.low, floor, self.height)
        for ellipse in ellipses:
            axes.add_patch(Polygon(ellipse + np.array([x, 0.0]), color=INK, lw=0, alpha=alpha, zorder=0.5))


def painted(shapes, height: float) -> list[tuple[tuple[float, ...], tuple[float, ...] | str, float]]:
    """Colour, colour of the edge and its width for the outlines of a figure: distant parts are paler."""
    depths = np.array([shape.depth for shape in shapes])
    span = max(np.ptp(depths), 0.2 * height)
    paints: list[tuple[tuple[float, ...], tuple[float, ...] | str, float]] = []
    for shape in shapes:
        colour = blend(TONES[shape.side], PAPER, 0.30 * (shape.depth - depths.min()) / span)
        fixture = shape.side == FIXTURE  # thin things keep their own colour to the edge
        paints.append((colour, colour if fixture else PAPER, 0.7 if shape.edge else 0.0))
    return paints


def shadow(points: np.ndarray, low: float, floor: float, height: float) -> tuple[list[np.ndarray], float]:
    """A soft shadow as ellipses on the floor, and their opacity: the fainter the higher the figure."""
    left, right, lift = points[:, 0].min(), points[:, 0].max(), (points[:, 1].min() - low) / height
    spread = (right - left) * (0.75 + 0.25 * lift)
    middle = np.array([(left + right) / 2, floor - 0.012 * height])
    ellipses = [middle + 0.5 * grow * CIRCLE * [spread, 0.028 * height] for grow in (0.55, 0.8, 1.0)]
    return ellipses, float(0.1 * np.exp(-2.2 * lift))


def _clearance(left: np.ndarray, right: np.ndarray, margin: float) -> float:
    """Smallest distance at which two outlines do not overlap, also if one is above the other."""
    low, high = max(left[:, 1].min(), right[:, 1].min()), min(left[:, 1].max(), right[:, 1].max())
    needed = 0.5 * (np.ptp(left[:, 0]) + np.ptp(right[:, 0])) * 0.6
    for at in np.linspace(low, high, 24) if high > low else ():
        a = left[np.abs(left[:, 1] - at) < margin, 0]
        b = right[np.abs(right[:, 1] - at) < margin, 0]
        if len(a) and len(b):
            needed = max(needed, a.max() - b.min() + margin)
    return needed


def short(text: str, most: int = LONGEST) -> str:
    """The text, with an ellipsis in the place of its middle if it is longer than `most`."""
    return text if len(text) <= most else f"{text[:most // 2]}…{text[-(most - most // 2 - 1):]}"


def happenings(trajectory) -> list[tuple[float, str]]:
    """Short labels of events; the change of structure is omitted if the event has a name. Impacts and other contact
    events are shown if they are few."""
    named = {at for at, text in trajectory.events if not text.startswith(("cut ", "connect "))}
    told = [(at, short(text.split(":")[0].replace("'", "").replace("_", " "), SENTENCE))
            for at, text in trajectory.events if not (at in named and text.startswith(("cut ", "connect ")))]
    told = list(dict.fromkeys(told))
    contacts = [event for event in told if event[1].startswith(("impact of ", "contact of "))]
    return told if len(contacts) <= FEW else [event for event in told if event not in set(contacts)]


def _labels(trajectory, strip: _Strip) -> list[tuple[float, str, int]]:
    """Labels of events: (time, text, level), with levels such that labels do not overlap."""
    placed: list[tuple[float, str, int]] = []
    for at, words in happenings(trajectory):
        if at > strip.times[-1]:
            continue
        reach = (strip.t_of(strip.width) - strip.t_of(0.0)) * 0.0032 * len(words)  # half the words, in time
        taken = {level for other, name, level in placed
                 if abs(at - other) < reach * (1.1 + len(name) / len(words)) + 1e-9}
        placed.append((at, words, next(level for level in range(len(taken) + 1) if level not in taken)))
    return placed


def _draw_panel(axes, name: str, curves, strip: _Strip, last: bool):
    """Curves over the time axis of the strip, each named at its end."""
    for at in strip.times:
        axes.axvline(at, color=FAINT, lw=0.6, dashes=(1, 2.2), zorder=0)
    tones = _tones(curves)
    hidden = covered(curves)
    for key, (t, values) in curves.items():
        axes.plot(t, values, color=tones[key], lw=1.9 if key == "total" else 1.5, solid_capstyle="round",
                  **(OVER if key in hidden else {}))
        axes.plot(strip.times, np.interp(strip.times, t, values), "o", ms=3.4, mfc=PAPER, mec=tones[key], mew=1.0)
    everything = np.concatenate([np.asarray(values, float) for _, values in curves.values()])
    low, high = float(np.nanmin(everything)), float(np.nanmax(everything))
    room = max(high - low, 1e-9)
    axes.set(xlim=(strip.t_of(-strip.edge), strip.t_of(strip.width - strip.edge)),
             ylim=(low - 0.08 * room, high + 0.12 * room))
    ends = []
    for key, (t, values) in curves.items():
        known = np.flatnonzero(np.isfinite(values))
        if len(known):
            ends.append((float(values[known[-1]]), float(t[known[-1]]), key))
    ends.sort()
    heights = apart([value for value, _, _ in ends], 0.135 * room)
    for (_, at, key), y in zip(ends, heights, strict=True):
        early = any(later > at for _, later, _ in ends)  # what ends while others go on is named before its end
        axes.annotate(short(key), (at, y), xytext=(-6, 9) if early else (7, 0), textcoords="offset points",
                      color=tones[key], fontsize=9, va="center", ha="right" if early else "left", annotation_clip=False,
                      bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.0} if early else None)
    axes.annotate(name, (0, 1), xytext=(-MARGIN * 72 * 0.72, 6), xycoords="axes fraction",
                  textcoords="offset points", fontsize=9, color=INK)
    axes.locator_params(axis="y", nbins=4)
    ticks = round_times(strip.times[0], strip.times[-1])
    axes.set_xticks(ticks, [f"{at:g}" if last else "" for at in ticks])
    if last:
        axes.set_xlabel("time [s]", fontsize=9, color=INK)
    dress(axes)


def _up_to(end: float, t, values) -> tuple[np.ndarray, np.ndarray]:
    """The part of a curve up to a time."""
    t, values = np.asarray(t, float), np.asarray(values, float)
    if not len(t) or t[-1] <= end or t[0] >= end:
        return t, values
    before = t < end
    return np.append(t[before], end), np.append(values[before], np.interp(end, t, values))


def round_times(first: float, last: float) -> np.ndarray:
    """Times for the marks of an axis: multiples of 1, 2 or 5 times a power of ten, at least four and about eight."""
    least = (last - first) / 10.0
    unit = 10.0 ** np.floor(np.log10(least))
    step = next(unit * k for k in (1.0, 2.0, 5.0, 10.0) if unit * k >= least * (1.0 - 1e-9))
    count = np.arange(np.ceil(first / step - 1e-9), np.floor(last / step + 1e-9) + 1.0)
    return np.round(count * step, 12) + 0.0  # no negative zero


def covered(curves) -> set[str]:
    """Curves that coincide with an earlier one over half of their length: they are dashed, so that both are seen."""
    known = {key: (np.asarray(t, float), np.asarray(y, float)) for key, (t, y) in curves.items()}
    values = np.concatenate([y[np.isfinite(y)] for _, y in known.values()])
    alike = COINCIDE * (np.ptp(values) if values.size else 0.0)
    found: set[str] = set()
    for k, (key, (t, y)) in enumerate(known.items()):
        for other, (s, z) in list(known.items())[:k]:
            inside = np.isfinite(y) & (t >= s[0]) & (t <= s[-1])
            if other not in found and inside.any():
                near = np.abs(y[inside] - np.interp(t[inside], s, z)) <= alike
                if np.count_nonzero(near) >= 0.5 * np.count_nonzero(np.isfinite(y)):
                    found.add(key)
    return found


def dress(axes) -> None:
    """Common style of all axes: numbers, and a line below."""
    axes.set_facecolor(PAPER)
    axes.tick_params(labelsize=8.5, colors=INK, length=0, pad=5)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set(color=FAINT, linewidth=0.8)


def _tones(names) -> dict[str, str]:
    tones = {"potential": POTENTIAL, "kinetic": KINETIC, "total": TOTAL}
    others = [name for name in names if name not in tones and not name.startswith(("left", "right"))]
    tones |= {name: OTHERS[k % len(OTHERS)] for k, name in enumerate(others)}
    return tones | {name: TONES[LEFT if name.startswith("left") else RIGHT] for name in names if name not in tones}


def apart(values: list[float], gap: float) -> list[float]:
    """Heights near the given ones (ascending) that are at least `gap` apart."""
    heights = list(values)
    for _ in range(20):
        for k in range(1, len(heights)):
            close = gap - (heights[k] - heights[k - 1])
            if close > 1e-12:
                heights[k - 1] -= close / 2
                heights[k] += close / 2
    return heights


def blend(colour: str, other: str, share: float) -> tuple[float, ...]:
    """A colour with a share of another mixed in."""
    a, b = (np.array([int(c[i:i + 2], 16) for i in (1, 3, 5)]) / 255 for c in (colour, other))
    return tuple((1 - share) * a + share * b)
