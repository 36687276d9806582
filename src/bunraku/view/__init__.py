"""Pictures and replays of mechanisms and motions. Pictures need matplotlib: pip install "bunraku[plot]"."""

from bunraku.view.figure import Camera, Figure
from bunraku.view.filmstrip import filmstrip
from bunraku.view.replay import replay_html
from bunraku.view.solids import Solid, solids

__all__ = ["Camera", "Figure", "Solid", "filmstrip", "replay_html", "solids"]
