"""Two logarithmic plots side by side: how costs grow, as the papers' comparisons are drawn here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def two_plots(drawing, height: float, **options):
    """(page, (left, right)). `drawing`: Matplotlib's figure and canvas; `options` as of its `subplots`."""
    return plots_in_a_row(2, drawing, height, **options)


def plots_in_a_row(count: int, drawing, height: float, **options):
    """(page, plots), each 4.5 inches wide."""
    page_type, canvas = drawing
    page = page_type(figsize=(4.5 * count, height), dpi=160, layout="constrained")
    canvas(page)
    return page, page.subplots(1, count, **options)


def finish(page, plots, ticks: Sequence[int], path: Path) -> Path:
    """Numbers along x, a grid, legends; written to `path`."""
    for axes in plots:
        axes.title.set_fontsize("medium")
        axes.set_xticks(ticks, [str(x) for x in ticks])
        axes.tick_params(axis="x", which="minor", labelbottom=False)
        axes.grid(True, which="both", linewidth=0.3)
        axes.legend(fontsize=8)
    page.savefig(path)
    return path
