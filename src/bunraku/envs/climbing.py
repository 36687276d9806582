"""A policy for the task "monkey-bars", written by hand: hand over hand, at half a metre a second.

While both hands hold, the arms carry the shoulders under the front bar. Then the rear hand lets go, passes below,
reaches for the next bar, and closes; the other arm keeps the shoulders under its own hand.
"""

from __future__ import annotations

import numpy as np

from bunraku.envs.legged_tasks import HIGH, LOW, reaching

UNDER = np.array([0.02, -0.42])    # [m] shoulders, from the hand that holds
STRIDE = 0.05                      # [m] of the shoulders, ahead of where they are
NEAR, PATIENCE = 0.03, 40          # [m], steps: until the rear hand lets go
BELOW, AHEAD = np.array([-0.3, -0.15]), np.array([0.15, 0.1])  # [m] way of the free hand: from the other, the shoulders
DOWN, THROUGH = 6, 14              # steps after which the free hand is below, and reaches for the bar
HIP = -0.3                         # [rad]


class HandOverHand:
    """Actions of one figure, step by step, from its observations."""

    def __init__(self) -> None:
        self.step = 0
        self.free: int | None = None  # the hand that moves
        self.since = 0                # step at which it let go, or at which both held

    def __call__(self, seen: np.ndarray) -> np.ndarray:
        """(7,) action for an observation (22,)."""
        pitch, holds, hands, shoulders = seen[0], seen[14:16] > 0.5, seen[16:20].reshape(2, 2), seen[20:22]
        self.step += 1
        closed, arms = np.ones(2), np.zeros((2, 2))
        if holds.all():
            if self.free is not None and self.step > self.since + 1:  # has just closed
                self.free, self.since = None, self.step
            front = int(hands[1, 0] > hands[0, 0])
            goal = hands[front] + UNDER
            onwards = shoulders + np.clip(goal - shoulders, -STRIDE, STRIDE)
            for hand in range(2):
                arms[hand] = reaching(hands[hand] - onwards)
            if self.free is None and (np.abs(goal - shoulders).max() < NEAR or self.step - self.since > PATIENCE):
                self.free, self.since = 1 - front, self.step
                closed[self.free] = 0.0
        elif self.free is not None:
            after, held = self.step - self.since, 1 - self.free
            arms[held] = reaching(-UNDER)
            target = hands[held] + BELOW if after < DOWN else shoulders + AHEAD
            arms[self.free] = reaching((target if after < THROUGH else np.zeros(2)) - shoulders)
            closed[self.free] = after >= THROUGH
        arms[:, 0] -= pitch
        angles = np.concatenate([[HIP], arms.ravel()])
        return np.concatenate([np.clip((angles - 0.5 * (LOW + HIGH)) / (0.5 * (HIGH - LOW)), -1.0, 1.0),
                               2.0 * closed - 1.0])
