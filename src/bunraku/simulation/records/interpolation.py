"""States between the steps of a trajectory.

With the polynomials of the solver (`Simulation(..., dense=True)`, the default of adaptive Runge-Kutta methods, whose
steps are few and long): each step is the interpolating polynomial of its method, plus a linear correction so that it
passes through the recorded states at both ends: those have unit quaternions and closed loops.

Without them: from the recorded states around. Coordinates by Hermite's polynomial through q and q' = N(q) v, velocities
by Newton's polynomial through v, up to NODES nodes in the order of their distance, none beyond an abrupt shortening of
the steps; the series is truncated where its terms stop decreasing. So the order is up to 2 NODES in q and NODES in v
where the motion is smooth, less next to a kink. With FEW nodes or less, velocities are those of Hermite's polynomial,
of order 2 n - 1 with n nodes: from two steps on a motion is sampled as accurately as a method of order 4 computes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bunraku.entries.closed_solution import gaps
from bunraku.entries.moves import rates, velocities
from bunraku.errors import ShapeError, StateError
from bunraku.evaluate import project
from bunraku.integrate.history import HIGHEST
from bunraku.integrate.record import COEFFICIENTS
from bunraku.mechanism import Mechanism
from bunraku.tolerances import STILL_OPEN

NODES = 10
FEW = 5              # nodes for which Newton's polynomial of v has too low an order
SHORTER = 0.2        # of the step: where one is shorter, nodes end
GROWING = 3.0        # times the smallest pair of terms so far: one that is larger, and all after it, are left out
SAME = 2.0**-50      # of a time: as near as the ends of two steps can be one


class Steps(NamedTuple):
    """Steps as polynomials of (t - origin) / scale, one after the other."""

    table: np.ndarray    # (steps, 4): origin, scale, degree, end
    rows: np.ndarray     # (sum of degree + 1, nq + nv): coefficients, ascending, of each step in turn

    def find(self, start: float, end: float) -> tuple[float, float, np.ndarray] | None:
        """Origin, scale and coefficients of the step between two recorded times, if it is here."""
        ends, slack = self.table[:, 3], SAME * abs(end)
        k = int(np.searchsorted(ends, end - slack))
        if k == len(ends) or ends[k] > end + slack or (k > 0 and ends[k - 1] > start + slack):
            return None
        origin, scale, degree, _ = self.table[k]
        first = int(self.table[:k, 2].sum()) + k
        return float(origin), float(scale), self.rows[first:first + int(degree) + 1]


def used(table: np.ndarray) -> np.ndarray:
    """(steps, COEFFICIENTS): which rows of the polynomials that compiled code has written down (`integrate/record.py`)
    have coefficients."""
    return np.arange(COEFFICIENTS)[None, :] <= table[:, 2:3]


def as_steps(table: np.ndarray, rows: np.ndarray) -> Steps:
    """Steps from a file, checked: arrays of the right shapes and finite."""
    degree, ends = table[:, 2], table[:, 3]
    whole = (degree >= 0) & (degree <= HIGHEST) & (degree == np.floor(degree))
    if not whole.all() or degree.sum() + len(degree) != len(rows):
        raise ShapeError(f"the degrees of {len(table)} steps do not fit {len(rows)} rows of coefficients")
    if not (table[:, 1] != 0).all() or (np.diff(ends) < 0).any():
        raise ShapeError("steps have the length zero, or their end times decrease")
    return Steps(table, rows)


def join(parts: list[Steps]) -> Steps | None:
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Steps(np.concatenate([p.table for p in parts]),
                                                  np.concatenate([p.rows for p in parts]))


def between(mechanism: Mechanism, t: np.ndarray, q: np.ndarray, v: np.ndarray, steps: Steps | None, k: int,
            when: float) -> tuple[np.ndarray, np.ndarray]:
    """State at a time between t[k] and t[k + 1]."""
    step = None if steps is None else steps.find(float(t[k]), float(t[k + 1]))
    if step is None:
        place, speed = _from_neighbours(mechanism, t, q, v, k, when)
    else:
        y = _on_polynomial(step, t[k:k + 2], np.hstack([q[k:k + 2], v[k:k + 2]]), when)
        place, speed = y[:mechanism.nq], y[mechanism.nq:]
    place = mechanism.integrate(place, np.zeros(mechanism.nv))  # unit quaternions
    plan = mechanism.plan()
    if plan.loops is not None and max(gaps(plan, q[i])[0].max(initial=0.0) for i in (k, k + 1)) < STILL_OPEN:
        try:
            return project(mechanism, place, speed)
        except StateError:  # at a singular pose; it is closed as well as the solver's steps are before they are closed
            pass
    return place, speed


def _on_polynomial(step, t, y, when):
    origin, scale, rows = step

    def value(time):
        total = np.zeros(rows.shape[1])
        for row in rows[::-1]:
            total = total * ((time - origin) / scale) + row
        return total
    share = (when - t[0]) / (t[1] - t[0])
    return value(when) + (1.0 - share) * (y[0] - value(t[0])) + share * (y[1] - value(t[1]))


def _from_neighbours(mechanism, t, q, v, k, when):
    ends = [k, k + 1] if abs(t[k] - when) <= abs(t[k + 1] - when) else [k + 1, k]
    around = np.array([*_outwards(t, k, -1), *_outwards(t, k + 1, 1)], np.int64)
    around = around[np.argsort(np.abs(t[around] - when), kind="stable")][:NODES - 2]
    order = np.concatenate([ends, around])
    near_q, near_v, plan = q[order], v[order], mechanism.plan()
    place, slope = _series(t[order], near_q, rates(plan, near_q, near_v), when)
    if len(order) <= FEW:
        return place, velocities(plan, place[None], slope[None])[0]
    return place, _series(t[order], near_v, None, when)[0]


def _outwards(t, first, way):
    """Nodes on one side of a step, outwards from its end, up to an abrupt shortening of the steps: there the motion has
    a kink, or the solver was restarted."""
    found, last = [], first
    shortest = SHORTER * (t[first + 1] - t[first] if way < 0 else t[first] - t[first - 1])
    for i in range(first + way, first + way * (NODES - 1), way):
        if not 0 <= i < len(t) or abs(t[i] - t[last]) < shortest:
            break
        found.append(i)
        last = i
    return found


def _series(t, y, slopes, when):
    """(value, derivative) of Newton's polynomial through the nodes, by divided differences; with slopes, Hermite's.
    Truncated where the two omitted terms are smallest, but not before it passes through the first two nodes. A single
    small term is no criterion: where a derivative passes through zero the next term is large again."""
    if slopes is not None:
        t, y = np.repeat(t, 2), np.repeat(y, 2, axis=0)
    column, factor, slope, terms, rises = y.copy(), 1.0, 0.0, np.empty_like(y), np.zeros_like(y)
    terms[0] = y[0]
    for j in range(1, len(t)):
        width = t[j:] - t[:-j]
        column = column[1:] - column[:-1]
        if slopes is not None and j == 1:
            column[1::2] /= width[1::2, None]
            column[0::2] = slopes
        else:
            column /= width[:, None]
        slope = slope * (when - t[j - 1]) + factor
        factor *= when - t[j - 1]
        terms[j], rises[j] = factor * column[0], slope * column[0]
    certain = 2 if slopes is None else 4
    size = np.abs(terms[certain:]).max(axis=1, initial=0.0)
    if not size.size:
        return terms.sum(axis=0), rises.sum(axis=0)
    left_out = np.maximum(size, np.append(size[1:], size[-1]))
    growing = np.flatnonzero(left_out[1:] > GROWING * np.minimum.accumulate(left_out)[:-1])
    left_out = left_out[:1 + growing[0]] if growing.size else np.append(left_out, size[-1])
    used = certain + int(left_out.argmin())
    return terms[:used].sum(axis=0), rises[:used].sum(axis=0)
