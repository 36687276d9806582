"""One pose as an array of pixels, drawn without a display by the figures of the filmstrip.

The view has the size of the figure at its first pose and follows its centre of mass.
"""

from __future__ import annotations

import numpy as np

from bunraku.mechanism import Mechanism
from bunraku.view.contact_drawing import patches
from bunraku.view.figure import Camera, Figure
from bunraku.view.filmstrip import DEEP, FAINT, INK, PAPER, PLANE_FROM, blend, drawing, painted

DPI = 100
REACH = 0.9   # half the width of the view, in sizes of the figure
TALL = 0.75   # height over width


class Picture:
    """A canvas for poses of one mechanism."""

    def __init__(self, mechanism: Mechanism, q, width: int, camera: Camera | None = None):
        from matplotlib.collections import PolyCollection

        Page, Canvas = drawing()
        self.figure, self.camera = Figure(mechanism), Camera() if camera is None else camera
        outlines = [shape.outline for shape in self.figure.shapes(q, self.camera)]
        points = np.concatenate(outlines) if outlines else np.zeros((1, 2))
        self.size = float(np.ptp(points, axis=0).max()) or 1.0
        page = Page(figsize=(width / DPI, TALL * width / DPI), dpi=DPI, facecolor=PAPER)
        self.canvas, half = Canvas(page), REACH * self.size
        axes = page.add_axes((0, 0, 1, 1))
        axes.set(xlim=(-half, half), ylim=(-TALL * half, TALL * half))
        axes.axis("off")
        self.ground = axes.add_collection(PolyCollection([], facecolors=[blend(FAINT, PAPER, 0.6)], edgecolors=FAINT,
                                                         linewidths=0.8))
        self.body = axes.add_collection(PolyCollection([], joinstyle="round"))
        self.hinge = axes.plot([], [], "o", ms=3.5, mfc=PAPER, mec=INK, mew=0.9)[0]

    def draw(self, q) -> np.ndarray:
        """(height, width, 3) bytes."""
        figure, camera, size = self.figure, self.camera, self.size
        shapes = figure.shapes(q, camera)
        centre = camera.project(figure.com(q))
        paints = painted(shapes, size) if shapes else []
        self.ground.set_verts([patch.outline(camera, 2.0 * size, DEEP * size) - centre
                               for patch in patches(figure, q, PLANE_FROM * figure.size)])
        self.body.set_verts([shape.outline - centre for shape in shapes])
        self.body.set_facecolors([colour for colour, _, _ in paints])
        self.body.set_edgecolors([edge for _, edge, _ in paints])
        self.body.set_linewidths([width for _, _, width in paints])
        self.hinge.set_data(*(camera.project(np.reshape(figure.hinges, (-1, 3))) - centre).T)
        self.canvas.draw()
        return np.asarray(self.canvas.buffer_rgba())[..., :3].copy()
