"""A schedule on one page: its assembly tree, as figs. 4 to 6 of [YN02] show them, and the predicted evaluation.

Boxes are chunks, coloured by worker; a node is a join, named after the joints it adds, or "+" where subtrees at one
link are added up. Below, the predicted timeline of each worker: passes 1 to 3, and joins.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bunraku.errors import MissingExtra, ModelError
from bunraku.scheduling import Costs, Partition, predict

if TYPE_CHECKING:
    from bunraku.evaluate.chunked import Chunked
    from bunraku.evaluate.schedules import Schedule

PAPER, INK, FAINT = "#fbf9f4", "#2b2f36", "#c9c3b6"
WORKERS = ("#2f7f86", "#d1603d", "#b08a2e", "#8a5a9e", "#5b7f3a", "#4a6fa5", "#a2957d", "#b04a6a")
PASSES = {1: ("#9cc4c6", "pass 1: velocities"), 2: ("#2f7f86", "pass 2: inertias"),
          3: ("#e0a184", "pass 3: accelerations")}
JOINING = "#39424e"
MOST_NAMED, MOST_LEAVES, MOST_ROWS = 20, 400, 64
WIDTH, DPI = 11.0, 150


def plot(schedule: Schedule, chunked: Chunked, part: Partition, file: str | Path) -> Path:
    """Draw to a picture file and return its path."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra('pictures need matplotlib: pip install "bunraku[plot]"') from error
    tree = _Tree(schedule, chunked, part)
    rows = min(schedule.workers, MOST_ROWS)
    high = 1.5 + 0.5 * min(max(tree.height, 1), 12), 0.9 + 0.26 * rows ** 0.85
    height = sum(high) + 1.75
    page = Figure(figsize=(WIDTH, height), dpi=DPI, facecolor=PAPER)
    FigureCanvasAgg(page)
    box = lambda bottom, tall: (0.06, bottom / height, 0.90, tall / height)  # noqa: E731
    tree.draw(page.add_axes(box(height - 0.8 - high[0], high[0])))
    _draw_times(page.add_axes(box(0.55, high[1])), part, chunked.costs, rows)
    page.text(0.06, 1 - 0.34 / height, schedule.name, fontsize=15, color=INK, family="serif", va="center")
    page.text(0.96, 1 - 0.34 / height, _caption(schedule), fontsize=9, color=INK, va="center", ha="right")
    path = Path(file)
    try:
        page.savefig(path, facecolor=PAPER)
    except ValueError as error:  # an ending that is no format of pictures
        raise ModelError(f"cannot draw {path}: {error}") from None
    return path


def _caption(s: Schedule) -> str:
    workers = f"{s.workers} worker{'s' * (s.workers > 1)}"
    asked = f" of {s.asked}" if s.asked not in (None, s.workers) else ""
    return (f"{workers}{asked}, {len(s.chunks)} chunk{'s' * (len(s.chunks) > 1)}, depth {s.depth}   |   predicted: "
            f"{s.predicted_time * 1e6:.3g} us, {s.predicted_speedup:.3g}x one worker")


class _Tree:
    """The assembly tree: positions of its nodes. Below MOST_LEAVES leaves, clusters are drawn as one box."""

    def __init__(self, schedule: Schedule, chunked: Chunked, part: Partition):
        self.schedule = schedule
        self.joins, self.workers = part.joins, part.chunks.worker
        self.m = len(part.chunks)
        self.tops = chunked.top_links(part)
        root = max(2 * self.m - 2, 0)
        self.shown = self._shown(root)
        self.place: dict[int, tuple[float, int]] = {}
        self.leaves = self._lay_out(root)
        self.height = max((y for _, y in self.place.values()), default=0)

    def _operands(self, node) -> list[int]:
        if node < self.m or node not in self.shown:
            return []
        return [int(self.joins.left[node - self.m]), int(self.joins.right[node - self.m])]

    def _shown(self, root) -> set[int]:
        """Joins that are drawn, the last ones first."""
        shown: set[int] = set()
        nodes = [root]
        while nodes and len(shown) < MOST_LEAVES - 1:
            node = nodes.pop(0)
            if node >= self.m:
                shown.add(node)
                nodes += [int(self.joins.left[node - self.m]), int(self.joins.right[node - self.m])]
        return shown

    def _lay_out(self, root) -> list[int]:
        leaves: list[int] = []
        stack = [(root, False)]
        while stack:
            node, done = stack.pop()
            below = self._operands(node)
            if not below:
                self.place[node] = float(len(leaves)), 0
                leaves.append(node)
            elif done:
                (x0, y0), (x1, y1) = (self.place[x] for x in below)
                self.place[node] = 0.5 * (x0 + x1), 1 + max(y0, y1)
            else:
                stack += [(node, True), (below[1], False), (below[0], False)]
        return leaves

    def draw(self, axes):
        from matplotlib.patches import FancyBboxPatch

        named = len(self.leaves) <= MOST_NAMED
        wide = 0.9 if named else 0.8
        for node, (x, y) in self.place.items():
            for below in self._operands(node):
                u, v = self.place[below]
                axes.plot([x, u, u], [y, y - 0.45, v], color=INK, lw=0.9 if named else 0.5, zorder=1,
                          solid_joinstyle="round")
        for node in self.leaves:
            x, _ = self.place[node]
            colour = WORKERS[self._worker(node) % len(WORKERS)]
            axes.add_patch(FancyBboxPatch((x - wide / 2, -0.84), wide, 0.84, boxstyle="round,pad=0,rounding_size=0.08",
                                          mutation_aspect=1.0, facecolor=colour, edgecolor=PAPER, lw=0.6, zorder=2))
            if named:
                axes.text(x, -0.42, self._chunk_text(node), ha="center", va="center", fontsize=self._size(7.5),
                          color="white", zorder=3, linespacing=1.15)
                axes.text(x, -1.02, f"worker {self._worker(node)}", ha="center", va="center", fontsize=self._size(7),
                          color=INK)
        if named:
            frame = {"boxstyle": "round,pad=0.3", "facecolor": PAPER, "edgecolor": INK, "lw": 0.8}
            for node, (x, y) in self.place.items():
                if node in self.shown:
                    axes.text(x, y, self._join_text(node), ha="center", va="center", fontsize=self._size(7.5),
                              color=INK, zorder=3, bbox=frame)
        axes.set_xlim(-0.6, len(self.leaves) - 0.4)
        axes.set_ylim(-1.2, self.height + 0.5)
        axes.axis("off")

    def _size(self, points) -> float:
        return points if len(self.leaves) <= 10 else points * 10 / len(self.leaves) + 1.5

    def _worker(self, node) -> int:
        while node >= self.m:
            node = int(self.joins.left[node - self.m])
        return int(self.workers[node])

    def _chunk_text(self, node) -> str:
        if node >= self.m:
            return "..."
        links = self.schedule.chunks[node]
        room = max(6, int(105 / max(len(self.leaves), 4)))
        first, last = (_short(links[k], room) for k in (0, -1))
        if len(links) == 1:
            return first
        return f"{first}\n... {last}\n{len(links)} links" if len(links) > 2 else f"{first}\n{last}"

    def _join_text(self, node) -> str:
        j = node - self.m
        if not self.joins.series[j]:
            return "+"
        lower = int(self.joins.right[j])
        tops: list[int] = []
        stack = [lower]
        while stack:
            node = stack.pop()
            if node < self.m:
                tops += self.tops[node]
            elif self.joins.series[node - self.m]:
                stack.append(int(self.joins.left[node - self.m]))
            else:
                stack += [int(self.joins.left[node - self.m]), int(self.joins.right[node - self.m])]
        name = _short(self.schedule.joint_names[min(tops)], 14)
        return name if len(tops) == 1 else f"{name} +{len(tops) - 1}"


def _short(name: str, room: int) -> str:
    return name if len(name) <= room else name[:room - 2] + ".."


def _draw_times(axes, part: Partition, costs: Costs, rows: int):
    played = predict(part.chunks, part.joins, part.waits, part.owner, costs, 3, record=True)
    m = len(part.chunks)
    scale = 1e6
    for worker, begin, end, which, node in played.tasks:
        if worker < rows and end > begin:
            colour = JOINING if node >= m and which != 1 else PASSES[which][0]
            axes.barh(worker, (end - begin) * scale, left=begin * scale, height=0.72, color=colour, lw=0)
    for colour, label in PASSES.values():
        axes.barh(0, 0, color=colour, label=label)
    if m > 1:
        axes.barh(0, 0, color=JOINING, label="joins")
    axes.set_ylim(rows - 0.4, -0.6)
    axes.set_xlim(0, played.time * scale)
    axes.set_yticks(np.arange(rows) if rows <= 16 else np.arange(0, rows, 8))
    axes.set_ylabel("worker", color=INK, fontsize=9)
    shown = f"; the first {rows} workers" if part.workers > rows else ""
    axes.set_xlabel(f"predicted time of one evaluation [us]{shown}", color=INK, fontsize=9)
    axes.tick_params(colors=INK, labelsize=8, length=0)
    axes.set_facecolor(PAPER)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.grid(axis="x", color=FAINT, lw=0.5, zorder=0)
    axes.set_axisbelow(True)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, fontsize=8, frameon=False, handlelength=1.0,
                labelcolor=INK, borderaxespad=0.1)
