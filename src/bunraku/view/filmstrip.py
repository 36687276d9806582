"""A motion on one page: the figure at moments along the time axis, as chronophotographs show it, and its energy.

Both panels share the time axis: the figure of a moment stands above that moment's energy.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bunraku.errors import MissingExtra, ShapeError
from bunraku.view.figure import LEFT, MIDDLE, RIGHT, Camera, Figure, observed

if TYPE_CHECKING:
    from bunraku.simulation import Trajectory

PAPER, INK, FAINT = "#fbf9f4", "#2b2f36", "#c9c3b6"
TONES = {LEFT: "#d1603d", MIDDLE: "#39424e", RIGHT: "#2f7f86"}
KINETIC, POTENTIAL, TOTAL = "#d1603d", "#2f7f86", INK
WIDTH, MARGIN, DPI = 11.0, 0.66, 160  # inches, inches, dots per inch


def drawing() -> tuple[type, type]:
    """Matplotlib's figure and its canvas without a screen; a MissingExtra if it is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Page
    except ImportError as error:
        raise MissingExtra('pictures need matplotlib: pip install "bunraku[plot]"') from error
    return Page, FigureCanvasAgg


def filmstrip(trajectory: Trajectory, path: str | Path, *, frames: int = 9, title: str | None = None,
              subtitle: str | None = None, camera: Camera | None = None) -> Path:
    """Draw a trajectory to a picture file (its ending says which kind) and return the path."""
    Page, FigureCanvasAgg = drawing()
    if frames < 2:
        raise ShapeError(f"a filmstrip needs at least 2 frames, not {frames}")
    camera = Camera() if camera is None else camera
    strip = _Strip(trajectory, frames, camera)

    width = WIDTH - 2 * MARGIN
    scene_height = width * strip.height / strip.width
    energy_height = 1.75
    above, between, below = (0.95 if title else 0.35), 0.40, 0.62
    height = above + scene_height + between + energy_height + below
    page = Page(figsize=(WIDTH, height), dpi=DPI, facecolor=PAPER)
    FigureCanvasAgg(page)
    box = lambda bottom, tall: (MARGIN / WIDTH, bottom / height, width / WIDTH, tall / height)  # noqa: E731
    scene = page.add_axes(box(below + energy_height + between, scene_height))
    energy = page.add_axes(box(below, energy_height))
    strip.draw(scene)
    _draw_energy(energy, trajectory, strip)
    if title:
        page.text(MARGIN / WIDTH, 1 - 0.42 / height, title, fontsize=17, color=INK, family="serif", va="center")
    if subtitle:
        page.text(MARGIN / WIDTH, 1 - 0.74 / height, subtitle, fontsize=10, color="#7a756b", va="center")
    path = Path(path)
    page.savefig(path, facecolor=PAPER)
    return path


class _Strip:
    """Where the frames stand: x runs with time, one frame's room per frame; heights are real."""

    def __init__(self, trajectory, frames: int, camera: Camera):
        self.camera, self.trajectory = camera, trajectory
        first, last = float(trajectory.segments[0].t[0]), float(trajectory.segments[-1].t[-1])
        if not last > first:
            raise ShapeError("this trajectory has no duration: there is nothing to draw")
        self.times = np.linspace(first, last, frames)
        self.figures: dict[int, Figure] = {}
        self.frames = []
        for mechanism, q, _ in trajectory.sample(self.times):
            figure = self.figures.setdefault(id(mechanism), Figure(mechanism))
            at = self._reference(figure, q)
            self.frames.append([(shape.outline - [at, 0.0], shape) for shape in figure.shapes(q, camera)])
        points = [np.concatenate([outline for outline, _ in frame]) for frame in self.frames]
        everything = np.concatenate(points)
        self.low, top = float(everything[:, 1].min()), float(everything[:, 1].max())
        reach = [np.abs(p[:, 0]).max() for p in points]
        gaps = [_clearance(a, b, 0.04 * (top - self.low)) for a, b in pairwise(points)]
        self.room = max(max(gaps), 0.12 * (top - self.low))  # from one frame to the next
        self.edge = 1.05 * max(reach[0], reach[-1], 0.5 * self.room)
        self.width = (frames - 1) * self.room + 2 * self.edge
        pad = 0.045 * (top - self.low)
        self.bottom, self.top = self.low - 2.2 * pad, top + pad
        self.height = self.top - self.bottom

    def _reference(self, figure: Figure, q) -> float:
        """What stays in the middle of a frame: the point it hangs from, or the centre of mass."""
        if figure.anchored:
            return float(self.camera.project(np.mean(figure.anchors, axis=0))[0])
        return float(self.camera.project(_com(figure.mechanism, q))[0])

    def x_of(self, t):
        """Place of a time on the strip."""
        span = self.times[-1] - self.times[0]
        return (np.asarray(t) - self.times[0]) / span * (len(self.times) - 1) * self.room

    def t_of(self, x):
        return self.times[0] + x / ((len(self.times) - 1) * self.room) * (self.times[-1] - self.times[0])

    def path(self):
        """The centre of mass, as a curve on the strip."""
        times = np.linspace(self.times[0], self.times[-1], 240)
        curve = []
        for t, (mechanism, q, _) in zip(times, self.trajectory.sample(times), strict=True):
            figure = self.figures.setdefault(id(mechanism), Figure(mechanism))
            x, z = self.camera.project(_com(mechanism, q))
            curve.append((self.x_of(t) + x - self._reference(figure, q), z))
        return np.array(curve)

    def draw(self, axes):
        from matplotlib.patches import Polygon

        axes.set(xlim=(-self.edge, self.width - self.edge), ylim=(self.bottom, self.top), aspect="equal")
        axes.axis("off")
        floor = self.low - 0.012 * self.height
        flying = not any(figure.anchored for figure in self.figures.values())
        if flying:
            axes.plot([-self.edge, self.width - self.edge], [floor, floor], color=FAINT, lw=0.8, zorder=0)
        curve = self.path()
        axes.plot(curve[:, 0], curve[:, 1], color=FAINT, lw=1.0, dashes=(1, 2.2), dash_capstyle="round", zorder=1)
        for k, frame in enumerate(self.frames):
            x = k * self.room
            if flying:
                self._draw_shadow(axes, x, floor, np.concatenate([outline for outline, _ in frame]))
            depths = np.array([shape.depth for _, shape in frame])
            span = max(np.ptp(depths), 0.2 * self.height)
            for order, (outline, shape) in enumerate(frame):
                far = (shape.depth - depths.min()) / span
                colour = blend(TONES[shape.side], PAPER, 0.30 * far)
                axes.add_patch(Polygon(outline + np.array([x, 0.0]), closed=True, joinstyle="round", facecolor=colour,
                                       edgecolor=PAPER, lw=0.7 if shape.edge else 0.0, zorder=2 + k + order / 1e4))
        for figure in self.figures.values():
            for point in figure.anchors:
                z = self.camera.project(point)[1]
                axes.plot(np.arange(len(self.times)) * self.room, np.full(len(self.times), z), "o", ms=3.2,
                          mfc=PAPER, mec=INK, mew=0.9, zorder=50)

    def _draw_shadow(self, axes, x, floor, points):
        """A soft shadow, the fainter the higher the figure."""
        from matplotlib.patches import Ellipse

        left, right, lift = points[:, 0].min(), points[:, 0].max(), (points[:, 1].min() - self.low) / self.height
        spread = (right - left) * (0.75 + 0.25 * lift)
        for grow in (0.55, 0.8, 1.0):
            axes.add_patch(Ellipse((x + (left + right) / 2, floor - 0.012 * self.height), grow * spread,
                                   grow * 0.028 * self.height, color=INK, lw=0, alpha=0.1 * np.exp(-2.2 * lift),
                                   zorder=0.5))


def _com(mechanism, q) -> np.ndarray:
    return observed(mechanism, q).com[0]


def _clearance(left: np.ndarray, right: np.ndarray, margin: float) -> float:
    """How far apart two outlines must stand so that they do not touch, heads over feet if need be."""
    low, high = max(left[:, 1].min(), right[:, 1].min()), min(left[:, 1].max(), right[:, 1].max())
    needed = 0.5 * (np.ptp(left[:, 0]) + np.ptp(right[:, 0])) * 0.6
    for at in np.linspace(low, high, 24) if high > low else ():
        a = left[np.abs(left[:, 1] - at) < margin, 0]
        b = right[np.abs(right[:, 1] - at) < margin, 0]
        if len(a) and len(b):
            needed = max(needed, a.max() - b.min() + margin)
    return needed


def _draw_energy(axes, trajectory, strip: _Strip):
    t, kinetic, potential = trajectory.energy()
    total = kinetic + potential
    axes.set_facecolor(PAPER)
    for at in strip.times:
        axes.axvline(at, color=FAINT, lw=0.6, dashes=(1, 2.2), zorder=0)
    lines = (("potential", potential, POTENTIAL, 1.5), ("kinetic", kinetic, KINETIC, 1.5), ("total", total, TOTAL, 1.9))
    for _, values, colour, weight in lines:
        axes.plot(t, values, color=colour, lw=weight, solid_capstyle="round")
        moments = np.interp(strip.times, t, values)
        axes.plot(strip.times, moments, "o", ms=3.4, mfc=PAPER, mec=colour, mew=1.0)
    low, high = min(v.min() for _, v, _, _ in lines), max(v.max() for _, v, _, _ in lines)
    room = max(high - low, 1e-9)
    axes.set(xlim=(strip.t_of(-strip.edge), strip.t_of(strip.width - strip.edge)),
             ylim=(low - 0.08 * room, high + 0.12 * room))
    ends = sorted(((float(values[-1]), name, colour) for name, values, colour, _ in lines))
    heights = _apart([value for value, _, _ in ends], 0.135 * room)
    for (_, name, colour), y in zip(ends, heights, strict=True):
        axes.annotate(name, (t[-1], y), xytext=(7, 0), textcoords="offset points", color=colour, fontsize=9,
                      va="center", annotation_clip=False)
    axes.set_xlabel("time [s]", fontsize=9, color=INK)
    axes.annotate("energy [J]", (0, 1), xytext=(-MARGIN * 72 * 0.72, 6), xycoords="axes fraction",
                  textcoords="offset points", fontsize=9, color=INK)
    axes.locator_params(axis="y", nbins=4)
    axes.set_xticks(strip.times, [f"{at:.2f}" for at in strip.times])
    axes.tick_params(labelsize=8.5, colors=INK, length=0, pad=5)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set(color=FAINT, linewidth=0.8)
    for event, _ in getattr(trajectory, "events", ()):
        axes.plot([event], [low - 0.08 * room], marker="|", ms=7, color=INK, clip_on=False)


def _apart(values: list[float], gap: float) -> list[float]:
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
