"""Pictures of mechanisms and motions. Needs matplotlib: pip install "bunraku[plot]"."""

from bunraku.view.figure import Camera, Figure
from bunraku.view.filmstrip import filmstrip

__all__ = ["Camera", "Figure", "filmstrip"]
