"""A motion as a film: GIF or MP4, drawn without a display by the figures of the filmstrip.

The view is fixed if the motion fits; otherwise it follows the figure, over a ground with marks. Time and events are
shown below.
"""

from __future__ import annotations

import contextlib
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bunraku.checks import as_positive
from bunraku.errors import MissingExtra, MissingFileError, ShapeError
from bunraku.simulation.records.data_frame import even_times
from bunraku.simulation.records.trajectory import Trajectory, as_trajectory
from bunraku.terminal import Bar
from bunraku.view.contact_drawing import LEVEL, SLIDES, STICKS, outline, patches, recorded_arrows, vector
from bunraku.view.figure import Camera, Figure, Shape
from bunraku.view.filmstrip import (
    DEEP,
    FAINT,
    INK,
    PAPER,
    PLANE_FROM,
    SENTENCE,
    TONES,
    blend,
    drawing,
    happenings,
    painted,
    shadow,
    short,
)

if TYPE_CHECKING:
    from bunraku.simulation import Simulation

KINDS = (".gif", ".mp4")
RATE = {".gif": 25.0, ".mp4": 30.0}  # frames a second: GIF counts hundredths of a second
DPI = 100
NARROWEST, WIDEST = 64, 8192  # pixels
FAR = 2.5             # the view follows a motion that goes farther than so many times the figure's size
NARROW, WIDE = 0.5, 0.8  # height over width of a picture, at least and at most
CAPTION = 1.2         # for which an event is captioned [s of film]
WIDELY = 1.5          # sizes of a figure: half the width of a plane below it
SPACE = 0.62          # below the picture, for the time line [inches]


def film(trajectory: Trajectory | Simulation, path, *, fps: float | None = None, speed: float = 1.0, width: int = 960,
         title: str | None = None, camera: Camera | None = None, progress: bool | None = None,
         forces: bool | None = None) -> Path:
    """Draw a trajectory as a film (.gif or .mp4 by the extension) and return the path.

    fps     frames per second of film: 25 for GIF, 30 for MP4 by default
    speed   seconds of motion per second of film: 0.1 is ten times slower
    width   of the picture in pixels; its height follows from the motion
    title   above the picture; the name of the mechanism by default, "" for none
    forces  contact forces as arrows, as in `filmstrip`
    """
    trajectory, path = as_trajectory(trajectory), Path(path)
    if path.suffix.lower() not in KINDS:
        raise ShapeError(f"{path}: a film ends in {' or '.join(KINDS)}, not in {path.suffix or 'nothing'!r}")
    if not path.parent.is_dir():
        raise MissingFileError(f"{path}: there is no folder {str(path.parent)!r}")
    fps = as_positive("fps", RATE[path.suffix.lower()] if fps is None else fps, ShapeError)
    speed = as_positive("speed", speed, ShapeError)
    if not NARROWEST <= width <= WIDEST:
        raise ShapeError(f"the width of a film must be {NARROWEST} to {WIDEST} pixels, not {width}")
    drawing()
    write = _Gif if path.suffix.lower() == ".gif" else _Mp4
    write.check()
    times = even_times(trajectory, fps / speed)
    start, end = float(times[0]), float(times[-1])
    with Bar(progress, start, end + (end - start), "drawing") as bar:  # half of it places figures, half draws them
        stage = Stage(trajectory, times, Camera() if camera is None else camera, bar, forces)
        page = _Page(stage, trajectory, width, stage.title if title is None else title, CAPTION * speed)
        partial = path.with_name(f".{path.stem}.partial{path.suffix}")
        try:
            with write(partial, fps) as file:
                for k, t in enumerate(times):
                    file.add(page.picture(k))
                    bar.show(t + (end - start))
            partial.replace(path)
        finally:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
    return path


class Stage:
    """Outlines of all frames in the projection of a camera, and the view."""

    def __init__(self, trajectory: Trajectory, times: np.ndarray, camera: Camera, bar: Bar, forces: bool | None = None):
        self.times, self.title = times, trajectory.segments[0].mechanism.name
        fixtures = Figure(trajectory.segments[0].mechanism).fixtures  # and so they are drawn to the end
        figures = {id(s.mechanism): Figure(s.mechanism, fixtures) for s in trajectory.segments}
        self.shapes: list[list[Shape]] = []
        self.points: list[np.ndarray] = []
        self.hinges: list[np.ndarray] = []
        self.planes: list[list[np.ndarray]] = []   # outlines of planes near by
        self.floors: list[float] = []              # height of the floor in the picture, NaN without
        self.arrows: list[list[tuple[np.ndarray, str]]] = []
        found = recorded_arrows(trajectory, times, forces)
        coms = []
        starts = [s.t[0] for s in trajectory.segments]
        for t in times:
            segment = trajectory.segments[int(np.searchsorted(starts, t, side="right")) - 1]
            q, _ = segment.at(min(t, segment.t[-1]))  # in a gap that set_state has left: where it was last
            figure = figures[id(segment.mechanism)]
            shapes = figure.shapes(q, camera)
            self.shapes.append(shapes)
            self.points.append(np.concatenate([shape.outline for shape in shapes]) if shapes else np.zeros((1, 2)))
            coms.append(camera.project(figure.com(q)))
            self.hinges.append(camera.project(np.reshape(figure.hinges, (-1, 3))))
            near = patches(figure, q, PLANE_FROM * figure.size)
            self.planes.append([patch.outline(camera, WIDELY * figure.size, DEEP * figure.size) for patch in near])
            heights = [float(camera.project(patch.middle)[1]) for patch in near if patch.normal[2] > LEVEL]
            self.floors.append(max(heights, default=np.nan))
            self.arrows.append([])
            for arrow in found[len(coms) - 1]:
                along = vector(arrow.force, segment.mechanism, figure.size, fixtures)
                tail, tip = camera.project([arrow.point, arrow.point + along])
                if along.any():
                    self.arrows[-1].append((outline(tail, tip, figure.size), arrow.colour))
            bar.show(t)
        self.coms = np.array(coms)
        self.grounded = not any(figure.anchored for figure in figures.values()) and not any(self.planes)
        low, high = np.array([p.min(axis=0) for p in self.points]), np.array([p.max(axis=0) for p in self.points])
        size = float((high - low).max()) or 1.0
        self.low, whole = float(low[:, 1].min()), high.max(axis=0) - low.min(axis=0)
        self.follows = whole > FAR * size * np.array([1.6, 1.0])
        middle = 0.5 * (high.max(axis=0) + low.min(axis=0))
        self.centres = np.where(self.follows, self.coms, middle)
        reach = np.maximum(high - self.centres, self.centres - low).max(axis=0)
        self.half = np.maximum(1.08 * reach + 0.02 * size, 0.3 * size)
        self.height = 2.0 * float(self.half[1])


class _Page:
    """The page of a film; only moving parts are redrawn in every frame."""

    def __init__(self, stage: Stage, trajectory: Trajectory, width: int, title: str, caption: float):
        from matplotlib.collections import LineCollection, PolyCollection

        Page, Canvas = drawing()
        self.stage, self.caption = stage, caption
        half = stage.half.copy()
        half[0] = max(half[0], half[1] / WIDE)
        half[1] = max(half[1], half[0] * NARROW)
        above = 0.55 if title else 0.0
        wide = width / DPI
        tall = wide * half[1] / half[0]
        high = tall + above + SPACE
        even = lambda inches: 2 * round(inches * DPI / 2) / DPI  # noqa: E731  (films have even sizes)
        page = Page(figsize=(even(wide), even(high)), dpi=DPI, facecolor=PAPER)
        self.canvas = Canvas(page)
        axes = page.add_axes((0, SPACE / high, 1, tall / high))
        axes.set(xlim=(-half[0], half[0]), ylim=(-half[1], half[1]))
        axes.axis("off")
        line = page.add_axes((0.04, 0, 0.92, SPACE / high))
        line.set(xlim=(stage.times[0], stage.times[-1]), ylim=(0, 1))
        line.axis("off")
        if title:
            page.text(0.04, 1 - 0.33 / high, short(title, SENTENCE), fontsize=15, color=INK, family="serif",
                      va="center")
        line.axhline(0.62, color=FAINT, lw=1.2, zorder=0)
        self.events = happenings(trajectory)
        for at, _ in self.events:
            line.plot([at], [0.62], "|", ms=7, mec=INK, mew=1.0)
        self.half = half
        self.step = _round(half.max() / 3.0)
        self.floor = stage.low - 0.012 * stage.height
        self.marks = axes.add_collection(LineCollection([], colors=FAINT, linewidths=0.9))
        self.trail = axes.plot([], [], color=FAINT, lw=1.2, dashes=(1, 2.2), dash_capstyle="round")[0]
        self.shade = axes.add_collection(PolyCollection([], facecolors=INK, linewidths=0))
        self.ground = axes.add_collection(PolyCollection([], facecolors=[blend(FAINT, PAPER, 0.6)], edgecolors=FAINT,
                                                         linewidths=0.8))
        self.body = axes.add_collection(PolyCollection([], joinstyle="round"))
        self.push = axes.add_collection(PolyCollection([], edgecolors=PAPER, linewidths=0.6))
        self.hinge = axes.plot([], [], "o", ms=4.5, mfc=PAPER, mec=INK, mew=1.0)[0]
        self.now = line.plot([], [], "o", ms=5.5, color=INK, clip_on=False)[0]
        self.done = line.plot([], [], color=INK, lw=1.6, solid_capstyle="round")[0]
        self.clock = line.text(0, 0.26, "", transform=line.transAxes, fontsize=9.5, color=INK, va="center")
        self.words = line.text(1, 0.26, "", transform=line.transAxes, fontsize=9.5, color=INK, va="center", ha="right")
        self.moving = [(axes, artist) for artist in (self.ground, self.marks, self.trail, self.shade, self.body,
                                                    self.hinge, self.push)]
        self.moving += [(line, artist) for artist in (self.done, self.now, self.clock, self.words)]
        for _, artist in self.moving:
            artist.set_animated(True)
        self.digits = max(2, int(np.ceil(-np.log10((stage.times[-1] - stage.times[0]) / len(stage.times)))))
        self.canvas.draw()
        self.background = self.canvas.copy_from_bbox(page.bbox)

    def picture(self, k: int) -> np.ndarray:
        """Frame k: (height, width, 3) bytes."""
        stage, centre, t = self.stage, self.stage.centres[k], self.stage.times[k]
        self.marks.set_segments(self._marks(centre))
        self.trail.set_data(*(stage.coms[:k + 1] - centre).T)
        self.ground.set_verts([plane - centre for plane in stage.planes[k]])
        self.push.set_verts([arrow - centre for arrow, _ in stage.arrows[k]])
        self.push.set_facecolors([colour for _, colour in stage.arrows[k]])
        real = np.isfinite(stage.floors[k])
        if real or stage.grounded:
            low, floor = (stage.floors[k], stage.floors[k]) if real else (stage.low, self.floor)
            ellipses, alpha = shadow(stage.points[k] - centre, low - centre[1], floor - centre[1], stage.height)
            self.shade.set_verts(ellipses)
            self.shade.set_alpha(alpha)
        paints = painted(stage.shapes[k], stage.height) if stage.shapes[k] else []
        self.body.set_verts([shape.outline - centre for shape in stage.shapes[k]])
        self.body.set_facecolors([colour for colour, _, _ in paints])
        self.body.set_edgecolors([edge for _, edge, _ in paints])
        self.body.set_linewidths([width for _, _, width in paints])
        self.hinge.set_data(*(stage.hinges[k] - centre).T)
        self.now.set_data([t], [0.62])
        self.done.set_data([stage.times[0], t], [0.62, 0.62])
        self.clock.set_text(f"{t:.{self.digits}f} s")
        past = [(at, words) for at, words in self.events if 0.0 <= t - at < self.caption]
        self.words.set_text(past[-1][1] if past else "")
        self.words.set_alpha(min(1.0, 3.0 * (1.0 - (t - past[-1][0]) / self.caption)) if past else 1.0)
        self.canvas.restore_region(self.background)
        for axes, artist in self.moving:
            axes.draw_artist(artist)
        return np.asarray(self.canvas.buffer_rgba())[..., :3]

    def _marks(self, centre) -> list:
        """The ground, if no link is connected to it, and marks at even distances if the view moves."""
        stage, half, lines = self.stage, self.half, []
        if stage.grounded:
            lines.append([(-half[0], self.floor - centre[1]), (half[0], self.floor - centre[1])])
        for axis in np.flatnonzero(stage.follows):
            first = np.ceil((centre[axis] - half[axis]) / self.step)
            for k in np.arange(first, (centre[axis] + half[axis]) / self.step):
                at = k * self.step - centre[axis]
                if axis == 0:
                    foot = self.floor - centre[1] if stage.grounded else -half[1]
                    lines.append([(at, foot), (at, foot - 0.03 * half[1])])
                else:
                    lines.append([(-half[0], at), (-0.96 * half[0], at)])
        return lines


def _round(length: float) -> float:
    """1, 2 or 5 times a power of ten, not above a length."""
    power = 10.0 ** np.floor(np.log10(length))
    return max(factor * power for factor in (1.0, 2.0, 5.0) if factor * power <= length)


# -- files ---------------------------------------------------------------------------------------------------------


class _Gif:
    """GIF writer, by Pillow, which Matplotlib needs anyway."""

    def __init__(self, path: Path, fps: float):
        from PIL import Image

        self.image, self.path, self.fps = Image, path, fps
        self.frames: list = []
        self.palette = Image.new("P", (1, 1))
        self.palette.putpalette(_palette())

    @staticmethod
    def check() -> None:
        pass

    def add(self, picture: np.ndarray) -> None:
        frame = self.image.fromarray(picture)
        self.frames.append(frame.quantize(palette=self.palette, dither=self.image.Dither.NONE))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            ends = np.rint(100 * np.arange(1, len(self.frames) + 1) / self.fps)  # hundredths of a second
            self.frames[0].save(self.path, save_all=True, append_images=self.frames[1:], loop=0, optimize=False,
                                duration=(10 * np.diff(ends, prepend=0)).astype(int).tolist())


def _palette() -> list[int]:
    """The colours of the drawing, with their paler shades for distance and their blends with the paper at edges."""
    colours = [blend(PAPER, PAPER, 0.0)]
    for tone in (*TONES.values(), STICKS, SLIDES):
        colours += [blend(tone, PAPER, 1.0 - (1.0 - far) * share) for far in (0.0, 0.075, 0.15, 0.225, 0.3)
                    for share in (1.0, 0.75, 0.5, 0.25)]
    colours += [blend(tone, PAPER, mixed) for tone in (INK, FAINT) for mixed in np.linspace(0.0, 0.95, 20)]
    return [round(255 * x) for colour in colours for x in colour]


class _Mp4:
    """MP4 writer: H.264 by PyAV."""

    def __init__(self, path: Path, fps: float):
        import av

        self.av = av
        self.stream: Any = None
        self.container = av.open(str(path), "w", options={"movflags": "faststart"})
        self.rate = Fraction(fps).limit_denominator(1000)

    @staticmethod
    def check() -> None:
        try:
            import av  # noqa: F401
        except ImportError as error:
            raise MissingExtra('MP4 needs PyAV: pip install "bunraku[video]"; a .gif needs matplotlib only') from error

    def add(self, picture: np.ndarray) -> None:
        if self.stream is None:
            self.stream = self.container.add_stream("libx264", rate=self.rate)
            self.stream.height, self.stream.width = picture.shape[:2]
            self.stream.pix_fmt = "yuv420p"  # which every player shows
            self.stream.options = {"crf": "18", "preset": "medium"}
        frame = self.av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
        self.container.mux(self.stream.encode(frame))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None and self.stream is not None:
            self.container.mux(self.stream.encode())
        self.container.close()
