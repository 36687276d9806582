"""Mobiles of [J, figs. 8 to 10], and their distribution by [J].

The parameters of fig. 8 are in a picture that the text does not give. The two mobiles of fig. 10 are told by their
number of joints and by joints over depth, 455 and "about 30", "about 200": s = 3 and s = 4 stages of chains of l = 5
bodies, o = 9 to a plateau, 455/15 and 4100/20. The family here is that of mobiles whose depth lies near the logarithm
through these two.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import bunraku as bk
from bunraku.scheduling import Tree, distribute

CMPTM, ROITM = 0.4e-3, 1.5e-3   # [s] of a body and of a remote edge [J, sec. III-E]
NEAR_DEPTH = 0.05                     # of the depth
APART = 1.3                     # joints of neighbours in the family, at least
PLENTY = 10**6                  # processors: as many as reduce the time


class Shape(NamedTuple):
    """Stages, bodies of a chain, chains of a plateau."""

    s: int
    l: int
    o: int

    @property
    def joints(self) -> int:
        return self.l * sum(self.o**k for k in range(self.s))

    @property
    def depth(self) -> int:
        return self.s * self.l

    def build(self) -> bk.Mechanism:
        return bk.models.mobile(0.2, 0.1, 0.2, 0.5, self.s, self.l, self.o, 2.0, 2.0)

    def estimates(self, processors: int, cmptm: float = CMPTM, roitm: float = ROITM) -> np.ndarray:
        """[J]'s estimated duration with 1, 2, ... processors, as far as they are used."""
        tree = Tree(np.array([link.parent for link in self.build().links]))
        return distribute(tree, np.full(self.joints, cmptm), roitm, processors).durations


SMALL, LARGE = Shape(3, 5, 9), Shape(4, 5, 9)   # [J, fig. 10]
SLOPE = (LARGE.depth - SMALL.depth) / math.log(LARGE.joints / SMALL.joints)


def line(joints: float) -> float:
    """Depth by the logarithm through the two mobiles of fig. 10."""
    return SMALL.depth + SLOPE * math.log(joints / SMALL.joints)


def family(most: int = LARGE.joints) -> list[Shape]:
    """Mobiles near the logarithm, of growing size; of several at about the same size the nearest to it."""
    near = [shape for s in range(2, 7) for l in range(2, 12) for o in range(2, 16)
            if 30 <= (shape := Shape(s, l, o)).joints <= min(most, LARGE.joints)
            and abs(shape.depth - line(shape.joints)) <= NEAR_DEPTH * shape.depth]
    chosen = [shape for shape in (SMALL, LARGE) if shape.joints <= most]
    for shape in sorted(near, key=lambda x: abs(x.depth - line(x.joints)) / x.depth):
        if all(abs(math.log(shape.joints / other.joints)) > math.log(APART) for other in chosen):
            chosen.append(shape)
    return sorted(chosen, key=lambda shape: shape.joints)
