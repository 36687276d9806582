"""Visualisation of mechanisms and motions: pictures, replays, and `bk.view(sim)`, the viewer.

Pictures need matplotlib (pip install "bunraku[plot]"), the viewer viser (pip install "bunraku[view]").
"""

import sys
from types import ModuleType

from bunraku.view.figure import Camera, Figure
from bunraku.view.filmstrip import filmstrip
from bunraku.view.replay import replay_html
from bunraku.view.solids import Solid, shape_solids, solids
from bunraku.view.stage import Stage, view

__all__ = ["Camera", "Figure", "Solid", "Stage", "filmstrip", "replay_html", "shape_solids", "solids", "view"]


class _Callable(ModuleType):
    """`bk.view` is this package and the function that opens the viewer."""

    def __call__(self, *args, **settings) -> Stage:
        return view(*args, **settings)


_Callable.__call__.__doc__ = view.__doc__
sys.modules[__name__].__class__ = _Callable
