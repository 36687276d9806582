"""Planning by sampling: many futures of one state in `Worlds`, and the first action of the best.

A plan is a row of actions at knots, with straight lines between them. Every call of `plan` tries the last plan, moved
on by a step, and random changes of it, each in a copy, and makes a new plan of them:

    "predictive"  the best one [Howell et al. 2022, predictive sampling]
    "cem"         the mean of the best tenth, whose spread is that of the next changes [Rubinstein 1999, cross-entropy]
    "mppi"        the mean of all, weighted by exp(-cost / temperature) [Williams et al. 2017]
"""

from __future__ import annotations

import numpy as np

from bunraku.checks import as_count, as_positive, hint
from bunraku.envs.tasks import Moved, Task, task
from bunraku.errors import ModelError, ShapeError
from bunraku.simulation import Snapshot

METHODS = ("predictive", "cem", "mppi")
ELITE = 0.1     # part of the samples
LEAST = 0.3     # spread of "cem", part of the first one, below which it never falls
WARMTH = 0.1    # temperature of "mppi", part of the spread of costs


class Planner:
    """Actions for one copy of a task, chosen by trying `samples` futures of `horizon` steps.

    spread  standard deviation of the changes, as a fraction of the range of actions
    knots   number of knots of a plan, at least 2
    `costs` has the cost of each future of the last call; the first is that of the last plan
    """

    def __init__(self, name: str | Task, samples: int = 128, horizon: int = 40, *, method: str = "mppi", knots: int = 8,
                 spread: float = 0.3, seed: int = 0, workers: int | None = None):
        if method not in METHODS:
            raise ModelError(f"there is no method {method!r}{hint(method, METHODS)}")
        self.task = own = name if isinstance(name, Task) else task(name)
        self.samples, self.horizon = as_count("samples", samples, least=2), as_count("horizon", horizon, least=2)
        self.method, self.knots = method, as_count("knots", knots, least=2)
        self.spread = as_positive("spread", spread, ShapeError) * (own.high - own.low)
        self.worlds = own.worlds(samples, workers=workers)
        self._rng = np.random.default_rng(seed)
        places, ends = np.linspace(0.0, 1.0, self.knots), np.linspace(0.0, 1.0, self.horizon)
        self._lines = np.array([np.interp(ends, places, row) for row in np.eye(self.knots)]).T  # (horizon, knots)
        self._onwards = np.array([np.interp(places + 1.0 / (self.horizon - 1), places, row) for row in
                                  np.eye(self.knots)]).T
        self.forget()

    def forget(self) -> None:
        """Begin with no plan: the middle of the range of actions."""
        own = self.task
        self.knot_actions = np.tile(0.5 * (own.low + own.high), (self.knots, 1))
        self.widths = np.tile(self.spread, (self.knots, 1))
        self.costs = np.full(self.samples, np.nan)

    @property
    def actions(self) -> np.ndarray:
        """(horizon, nu) of the present plan."""
        return self._lines @ self.knot_actions

    def plan(self, state: Snapshot, copy: int = 0) -> np.ndarray:
        """(nu,) action for a copy of a snapshot of any worlds of the task's mechanism."""
        own, rng = self.task, self._rng
        self.knot_actions = self._onwards @ self.knot_actions
        changes = rng.normal(size=(self.samples, *self.knot_actions.shape)) * self.widths
        changes[0] = 0.0
        tried = np.clip(self.knot_actions + changes, own.low, own.high)
        self.costs = costs = self._costs(state, copy, np.einsum("tk,nku->tnu", self._lines, tried))
        if not np.isfinite(costs).any():  # all diverge: no reason to go on with this plan
            self.forget()
            self.costs = costs
        elif self.method == "predictive":
            self.knot_actions = tried[costs.argmin()]
        elif self.method == "cem":
            finite = int(np.isfinite(costs).sum())
            best = tried[np.argsort(costs)[:min(max(2, round(ELITE * self.samples)), finite)]]
            self.knot_actions = best.mean(axis=0)
            self.widths = np.maximum(best.std(axis=0), LEAST * self.spread)
        else:
            finite = costs[np.isfinite(costs)]
            warmth = WARMTH * max(float(finite.max() - finite.min()), 1e-300)
            weights = np.exp(-(costs - finite.min()) / warmth)
            self.knot_actions = np.einsum("n,nku->ku", weights / weights.sum(), tried)
        return self.actions[0].copy()

    def _costs(self, state: Snapshot, copy: int, actions: np.ndarray) -> np.ndarray:
        """(n,) sums of negative rewards along futures with actions (horizon, n, nu). A future that has ended pays as
        much in every further step as in its worst one, and at least nothing; one that diverges costs infinity."""
        own, w = self.task, self.worlds
        w.restore(state, copies=copy)
        total, worst, over = np.zeros(w.n), np.zeros(w.n), np.zeros(w.n, bool)
        for action in actions:
            before = w.q.copy()
            own.move(w, action)
            with np.errstate(all="ignore"):  # of futures that diverge
                cost = -own.reward(Moved(w.q, w.v, before, action, own.step * own.substeps))
                worst = np.where(over, worst, np.maximum(worst, cost))
                total += np.where(over, worst, cost)
                over |= own.ends(w.q, w.v)
        total[~w.running] = np.inf
        return np.where(np.isfinite(total), total, np.inf)
