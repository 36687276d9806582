"""Structure that closes loops: connections between links of the tree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.mechanism.joints import Joint


@dataclass(frozen=True, eq=False)
class Connection:
    """A joint that closes a loop: link b's joint frame moves in link a's as the joint allows; b is the child side."""

    name: str
    link_a: int             # index of the link, -1 for ground
    link_b: int
    joint: Joint
    actuated: bool
    position_a: np.ndarray  # joint frame in link a's frame [m]
    rotation_a: np.ndarray  # 3x3
    position_b: np.ndarray  # joint frame in link b's frame [m]
    rotation_b: np.ndarray  # 3x3
