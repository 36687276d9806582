"""Constraints of connections and generalised coordinates, one state at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.algorithms.body_motion import STATE
from bunraku.algorithms.constraint_jacobian import constraints
from bunraku.algorithms.generalised import dependence, factor
from bunraku.checks import aligned
from bunraku.entries.explain import refuse
from bunraku.entries.signatures import PLAN, float64, floats, int64, table
from bunraku.jit import entry
from bunraku.plan import fields as f


@entry("constraints of loops", float64(PLAN, floats, floats, floats, table, table, floats, floats, floats, floats,
                                       floats), seconds=6)
def constraints_one(plan, q, v, drives, columns, ways, own, bias, gap, coordinates, speeds):
    body_i, conn_i = plan.body_i, plan.conn_i
    return constraints(body_i, plan.body_f, conn_i, plan.conn_f, q, v, drives, columns, ways, own, bias, gap,
                       coordinates, speeds, np.empty(STATE * (body_i.shape[0] - 1)),
                       np.empty(conn_i[-1, f.HEAD_TOTAL]))


@entry("generalised coordinates", int64(table, floats, table), seconds=5)
def choose_one(columns, order, H):
    """Which joint velocities depend (the first m of `order`) and how; H (nv, m at most) by rows in that order."""
    rows = columns.shape[1]
    chosen, factors = np.empty(order.shape[0], np.int64), columns.copy()
    rank = factor(factors, chosen, np.zeros((rows, rows)))
    H[rank:, :rank] = dependence(factors, rank)
    order[:] = chosen
    return rank


@dataclass(frozen=True, eq=False)
class Demands:
    """Result of `constraints` as arrays."""

    columns: np.ndarray      # (nv, rows)
    ways: np.ndarray         # (nv, freedoms)
    own: np.ndarray          # (nv,)
    bias: np.ndarray         # (rows,)
    gap: np.ndarray          # (rows,)
    coordinates: np.ndarray  # (freedoms,)
    speeds: np.ndarray       # (freedoms,)
    size: float              # of the accelerations behind `bias`


def demands(plan, q, v) -> Demands:
    """Constraints of one state of a plan with loops."""
    _, (q, v) = aligned(("q", q, plan.nq), ("v", plan.zero_tau if v is None else v, plan.nv))
    loops = plan.loops
    rows, freedoms = loops.rows, loops.freedoms
    out = Demands(np.zeros((plan.nv, rows)), np.zeros((plan.nv, freedoms)), np.zeros(plan.nv), np.zeros(rows),
                  np.zeros(rows), np.zeros(freedoms), np.zeros(freedoms), 0.0)
    size = constraints_one.call(plan.arrays, q, v, plan.nothing, out.columns, out.ways, out.own, out.bias, out.gap,
                                out.coordinates, out.speeds)
    if not all(np.isfinite(x).all() for x in (out.columns, out.own, out.bias, out.gap)):
        refuse(plan, q, {"v": v})
    return Demands(out.columns, out.ways, out.own, out.bias, out.gap, out.coordinates, out.speeds, size)


def choose(columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(dependent, generalised, H): indices of joint velocities, v[dependent] = H v[generalised]."""
    nv, rows = columns.shape
    order, H = np.empty(nv), np.zeros((nv, rows))
    rank = choose_one.call(columns, order, H)
    chosen = order.astype(int)
    generalised = np.argsort(chosen[rank:])  # in the order of v
    return chosen[:rank], chosen[rank:][generalised], H[rank:, :rank][generalised].T
