"""Pictures of mechanisms and motions. Needs matplotlib: pip install "bunraku[plot]"."""

from bunraku.view.figure import Camera, Figure
from bunraku.view.filmstrip import filmstrip
from bunraku.view.solids import Solid, solids

__all__ = ["Camera", "Figure", "Solid", "filmstrip", "solids"]
