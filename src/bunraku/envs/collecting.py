"""Experience from many processes: episodes of a task as the function of `bk.ensemble`, on any executor.

Every process makes its worlds once and keeps them; a case is a policy and a seed. A case gives the same bits in any
process, so results do not depend on the executor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bunraku.envs.tasks import Array, Moved, Task, task
from bunraku.simulation import Worlds


@dataclass(frozen=True)
class Collect:
    """A function of (policy, seed): `steps` steps of `copies` copies of a task, which begin anew where episodes end.

    The policy is a function of observations (n, size) that returns actions (n, nu), which are clipped. The result is a
    dict of arrays:

        seen     (steps + 1, n, size) observations; that after an end is of the next episode
        action   (steps, n, nu)
        reward   (steps, n)
        over     (steps, n) whether an episode ended with this step
    """

    name: str
    copies: int = 64
    steps: int = 100
    workers: int | None = 1  # threads in each process

    def __call__(self, case: tuple[Callable[[Array], Array], int]) -> dict[str, Any]:
        policy, seed = case
        own, w = _made(self.name, self.copies, self.workers)
        w.reseed(seed)
        own.begin(w)
        found: dict[str, list[Array]] = {"seen": [own.seen(w)], "action": [], "reward": [], "over": []}
        for _ in range(self.steps):
            action = np.clip(policy(found["seen"][-1]), own.low, own.high)
            before = w.q.copy()
            own.move(w, action)
            lost = ~w.running
            reward = own.reward(Moved(w.q, w.v, before, action, own.step * own.substeps))
            over = own.ends(w.q, w.v) | lost
            if over.any():
                own.begin(w, np.flatnonzero(over))
            new = {"seen": own.seen(w), "action": action, "reward": np.where(lost, 0.0, reward), "over": over}
            for name, row in new.items():
                found[name].append(row)
        return {name: np.array(rows) for name, rows in found.items()}


@functools.lru_cache(maxsize=4)
def _made(name: str, copies: int, workers: int | None) -> tuple[Task, Worlds]:
    own = task(name)
    return own, own.worlds(copies, workers=workers)
