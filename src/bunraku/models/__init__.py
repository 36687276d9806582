"""Ready-made mechanisms: chains, human figures, a humanoid robot."""

from bunraku.models.chain import chain
from bunraku.models.human import human
from bunraku.models.humanoid import humanoid

__all__ = ["chain", "human", "humanoid"]
