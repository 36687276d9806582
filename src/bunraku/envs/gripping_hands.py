"""Hands that hold bars and let go, as actions: each grip is a connection of a copy, made and cut between steps.

A hand that closes within `reach` of a bar holds it where it is, and velocities jump; one that opens lets go. What each
hand of a copy holds is in its `params`, where observations find it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.evaluate import kinematics
from bunraku.mechanism import Revolute
from bunraku.simulation import Worlds

NONE = -1.0


@dataclass(frozen=True, eq=False)
class Hands:
    """Hands of a figure. A row of `w.params` has the number of the bar that each hand holds, or -1, then the largest
    number that has been held."""

    links: tuple[str, ...]
    grips: tuple[str, ...]   # names of the connections
    point: tuple[float, ...]  # of each link, where the hand is
    bars: np.ndarray         # (k, 3) points of the bars in the world
    axis: tuple[float, ...]  # of the bars, which are long
    reach: float             # [m]
    holding: tuple[int, ...]  # bars that are held at the start, by connections of the mechanism

    @property
    def memory(self) -> np.ndarray:
        """Params of a copy at its start."""
        return np.array([*self.holding, max(self.holding)], float)

    def places(self, w: Worlds, copies: np.ndarray, hand: int) -> np.ndarray:
        """(copies, 3) [m]"""
        rotation, position = kinematics(w.mechanism, w.q[copies]).poses[self.links[hand]]
        return position + rotation @ np.array(self.point)

    def act(self, w: Worlds, closed: np.ndarray) -> None:
        """Close and open hands (n, hands)."""
        held, running = w.params[:, :len(self.links)], w.running
        for hand, (link, grip) in enumerate(zip(self.links, self.grips, strict=True)):
            letting = np.flatnonzero(running & (held[:, hand] != NONE) & ~closed[:, hand])
            if letting.size:
                w.cut(letting, grip)
                held[letting, hand] = NONE
            trying = np.flatnonzero(running & (held[:, hand] == NONE) & closed[:, hand])
            if not trying.size:
                continue
            across = np.eye(3) - np.outer(self.axis, self.axis)
            away = np.linalg.norm((self.places(w, trying, hand)[:, None] - self.bars) @ across, axis=2)
            caught, nearest = away.min(axis=1) <= self.reach, away.argmin(axis=1)
            copies = trying[caught]
            if copies.size:
                w.connect(copies, "ground", link, Revolute(self.axis), grip, position_b=self.point)
                held[copies, hand] = nearest[caught]
                w.params[copies, -1] = np.maximum(w.params[copies, -1], nearest[caught])
