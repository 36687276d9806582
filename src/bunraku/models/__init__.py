"""Ready-made mechanisms: chains, human figures, a humanoid robot, mobiles, linkages with loops, legged figures."""

from bunraku.models.chain import chain
from bunraku.models.human import human
from bunraku.models.humanoid import humanoid
from bunraku.models.legged import climber, hopping_leg, quadruped
from bunraku.models.linkages import bricard, chain_held, four_bar, n_four_bar, slider_crank
from bunraku.models.mobile import mobile

__all__ = ["bricard", "chain", "chain_held", "climber", "four_bar", "hopping_leg", "human", "humanoid", "mobile",
           "n_four_bar", "quadruped", "slider_crank"]
