"""Benchmark of mass matrices: `auto` compared with pin.crba in one run, on Talos and on chains.

Nothing is timed before both give the same matrices. pin.crba writes the upper triangle only, into memory it keeps;
every line of bunraku is the whole matrix. What each line measures:

    pin.crba                one call from Python, states in turn
    one call from Python    bk.mass_matrix(m, q), states in turn, fresh memory each, and with `out`
    inside compiled code    the same kernel from a compiled loop over states
    batch                   one call with (B, nq) states, divided by B: into fresh memory, into memory at hand (`out`),
                            and a batch small enough that its result stays in the cache
    zeros                   time to write zeros into as many allocated matrices, through the caches and past
                            them, as `auto` does: memory alone
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

import bunraku as bk
from bunraku.bench import machine
from bunraku.bench import model_files as files
from bunraku.bench.bench_dynamics import random_states
from bunraku.bench.peers import Pinocchio, required
from bunraku.bench.timing import Contestant, Progress, race, speedup
from bunraku.entries.one_by_one import matrices_in_turn, zeros_past_the_caches
from bunraku.errors import BunrakuError

ROBOT = "talos_reduced.urdf"
BATCH, FEW = 4096, 64
TARGETS = {"python": 1.3, "compiled": 3.0, "batch": 10.0, "chain": 1.0}
AGREEMENT = 1e-11
SPACE = ((0, 1, 0), (1, 0, 0))


@dataclass
class Options:
    """How long to measure."""

    seconds: float = 8.0
    links: tuple[int, ...] = (6, 12, 24, 32, 64, 128, 256)

    @classmethod
    def quick(cls):
        return cls(seconds=1.0, links=(12, 32, 128))


def run(options: Options | None = None, quiet: bool = False) -> dict:
    """All results as plain data."""
    options = options or Options()
    required("pinocchio")
    progress = Progress(1 + len(options.links), quiet)
    try:
        progress("Talos")
        m, _ = files.read(files.find(ROBOT))
        robot = _robot(m, options)
        progress.done()
        chains = []
        for n in options.links:
            progress(f"chain of {n} links")
            chains.append(_chain(n, options))
            progress.done()
    finally:
        progress.close()
    return {"bunraku": bk.__version__, "machine": machine.describe(), "robot": robot, "chains": chains}


def _robot(m, options) -> dict:
    pinocchio, q = Pinocchio(m), random_states(m, BATCH)[0]
    few, nv = q[:FEW].copy(), m.nv
    large, small, loop = np.zeros((BATCH, nv, nv)), np.zeros((FEW, nv, nv)), matrices_in_turn.load().call
    nothing, zeros = np.zeros((1, nv * nv)), zeros_past_the_caches.load().call
    arguments = m.plan().arrays, few, np.empty(nv * nv)
    agreement = check(m, pinocchio, few)
    against = "pin.crba"
    theirs = _each(functools.partial(pinocchio.pin.crba, pinocchio.model, pinocchio.data), pinocchio.q(few))
    contestants = [
        Contestant("pin.crba", theirs, FEW),
        Contestant("bunraku, one call from Python", _each(functools.partial(bk.mass_matrix, m), few), FEW,
                   against=against, target=TARGETS["python"]),
        Contestant("bunraku, one call, at hand", _each(functools.partial(bk.mass_matrix, m, out=small[0]), few), FEW,
                   against=against),
        Contestant("bunraku, inside compiled code", lambda: loop(*arguments), FEW, against=against,
                   target=TARGETS["compiled"]),
        Contestant(f"bunraku, batch of {FEW}, at hand", lambda: bk.mass_matrix(m, few, workers=1, out=small), FEW,
                   against=against, target=TARGETS["batch"]),
    ]
    flooding = [  # timed apart: these evict the caches, which would slow the next contestant
        Contestant("pin.crba, between large batches", theirs, FEW),
        Contestant(f"bunraku, batch of {BATCH}, at hand", lambda: bk.mass_matrix(m, q, workers=1, out=large), BATCH,
                   against=against, target=TARGETS["batch"]),
        Contestant(f"bunraku, batch of {BATCH}, fresh", lambda: bk.mass_matrix(m, q, workers=1), BATCH,
                   against=against),
        Contestant(f"zeros, batch of {BATCH}, at hand", lambda: large.fill(0.0), BATCH, against=against),
        Contestant("zeros past the caches", lambda: zeros(large.reshape(BATCH, -1), nothing), BATCH, against=against),
    ]
    rows = []
    for field in (contestants, flooding):
        race(field, options.seconds / 2.0)
        for c in field:
            row: dict[str, Any] = {"label": c.label, "best_us": 1e6 * c.best, "median_us": 1e6 * c.median}
            if c.against:
                row["speedup"] = speedup(field[0], c)[0]
            if c.target is not None:
                row |= {"target": c.target, "met": row["speedup"] >= c.target}
            rows.append(row)
    return {"title": m.name, "dof": nv, "agreement": agreement, "rows": rows}


def _chain(n: int, options) -> dict:
    m = bk.models.chain(n, axes=SPACE)
    pinocchio, q = Pinocchio(m), random_states(m, FEW, spread=0.3)[0]
    agreement = check(m, pinocchio, q)
    theirs = Contestant("pin.crba", _each(functools.partial(pinocchio.pin.crba, pinocchio.model, pinocchio.data),
                                          pinocchio.q(q)), FEW)
    out = np.zeros((FEW, n, n))
    ours = Contestant("one call", _each(functools.partial(bk.mass_matrix, m), q), FEW)
    kept = Contestant("one call, at hand", _each(functools.partial(bk.mass_matrix, m, out=out[0]), q), FEW)
    batch = Contestant("batch", lambda: bk.mass_matrix(m, q, workers=1, out=out), FEW)
    race([theirs, ours, kept, batch], options.seconds / 8.0)
    return {"dof": n, "agreement": agreement, "pin_us": 1e6 * theirs.best, "one_us": 1e6 * ours.best,
            "kept_us": 1e6 * kept.best, "batch_us": 1e6 * batch.best, "speedup": speedup(theirs, ours)[0],
            "speedup_kept": speedup(theirs, kept)[0],
            "speedup_batch": speedup(theirs, batch)[0], "target": TARGETS["chain"],
            "met": speedup(theirs, ours)[0] >= TARGETS["chain"]}


def check(m, pinocchio, q) -> float:
    """Largest relative difference from Pinocchio; an error if they are not the same mechanism."""
    order, worst = pinocchio.order_v, 0.0
    batch = bk.mass_matrix(m, q)
    for k, one in enumerate(q):
        theirs = np.triu(pinocchio.pin.crba(pinocchio.model, pinocchio.data, pinocchio.q(one)))
        for ours in (batch[k], bk.mass_matrix(m, one)):
            worst = max(worst, float(np.abs(np.triu(ours[np.ix_(order, order)]) - theirs).max() / theirs.max()))
    if not worst < AGREEMENT:
        raise BunrakuError(f"{m.name}: the libraries disagree by {worst:.1e}, so there is nothing to compare")
    return worst


def _each(function, states):
    states = list(states)

    def call():
        for q in states:
            function(q)

    return call


# -- for people ------------------------------------------------------------------------------------------------------


def text(result: dict) -> str:
    """The result as a page."""
    on, robot = result["machine"], result["robot"]
    lines = [f"bunraku {result['bunraku']} beside Pinocchio {on['versions'].get('pin', '?')}: mass matrices",
             f"{on['processor']}, {on['lanes']} lanes, one core; {on['date'][:16].replace('T', ' ')}", "",
             f"{robot['title']}, {robot['dof']} degrees of freedom; matrices agree to {robot['agreement']:.0e}", "",
             f"  {'':<36}{'best us':>9}{'median':>9}{'x pin.crba':>12}"]
    for row in robot["rows"]:
        ratio = f"{row['speedup']:12.2f}" if "speedup" in row else ""
        lines.append(f"  {row['label']:<36}{row['best_us']:9.3f}{row['median_us']:9.3f}{ratio}" + verdict(row))
    lines += ["", "  pin.crba writes the upper triangle, bunraku the whole matrix; zeros: the cost of memory alone.",
              "", f"  {'chain, degrees of freedom':<28}{'pin.crba us':>12}{'one call':>10}{'x':>7}"
              f"{'at hand':>9}{'x':>7}{'batch of 64':>13}{'x':>7}"]
    lines += [f"  {c['dof']:<28}{c['pin_us']:12.2f}{c['one_us']:10.2f}{c['speedup']:7.2f}{c['kept_us']:9.2f}"
              f"{c['speedup_kept']:7.2f}{c['batch_us']:13.2f}"
              f"{c['speedup_batch']:7.2f}{verdict(c)}" for c in result["chains"]]
    return "\n".join(lines)


def verdict(row) -> str:
    return f"  {'PASS' if row['met'] else 'MISS'} (at least {row['target']:g})" if "target" in row else ""
