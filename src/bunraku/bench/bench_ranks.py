"""Benchmark of MPI ranks: one mechanism on two processes that exchange messages.

As in `bench_parallel.py` the *ceiling* is the speed of two independent serial runs at the same time, one on each rank,
in the same rounds; `share` is the speed-up of two ranks over that of the two copies, median of all rounds. Whole Gear
steps; and forward dynamics in compiled loops. Memory: what each of 1, 2 and 4 ranks holds of a long chain. Traffic:
bytes that cross MPI in a step, of chains of different lengths and of every kind of record.

`run` starts this module again under mpiexec.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.bench import machine
from bunraku.bench.bench_parallel import STEPS, free_tree, mobile, state_of
from bunraku.bench.report import painter, target_lines
from bunraku.bench.timing import Progress
from bunraku.evaluate.team import divide
from bunraku.integrate.record import empty_record
from bunraku.integrate.solver_memory import RECORDED, UNTIL
from bunraku.plan import fields as f
from bunraku.runs.context import structure_of
from bunraku.simulation.crew.mpi_ranks import Ranks, join, mpiexec
from bunraku.simulation.crew.rank_server import take_part
from bunraku.simulation.crew.worker_share import Order, Piece, Share
from bunraku.simulation.settings import Settings
from bunraku.simulation.simulation import running

MODELS: dict[str, Callable[[], bk.Mechanism]] = {
    "mobile": mobile, "tree of 1000": lambda: free_tree(1000), "tree of 10000": lambda: free_tree(10_000)}
SHARES = {"mobile": 0.7, "tree of 1000": 0.85, "tree of 10000": 0.9}
LENGTHS = (455, 4100, 100_000)                   # links of the chains whose messages are counted
RECORDS = {"None": None, "0.005 s": 0.005, "all": "all"}
STEP, COUNTED, FRAMES = 1e-4, 60, 6              # [s], steps of which they are counted, in so many calls of `advance`
SPREAD = 1.1                                     # bytes of a step, of the longest chain over the shortest


@dataclass(frozen=True)
class Options:
    """How much to measure."""

    rounds: int = 30
    links: int = 1_000_000  # of the chain whose memory is measured
    lengths: tuple[int, ...] = LENGTHS

    @classmethod
    def quick(cls):
        return cls(rounds=10, links=100_000, lengths=LENGTHS[:2])


def run(options: Options | None = None, quiet: bool = False) -> dict:
    """All results as plain data."""
    options = options or Options()
    progress = Progress(len(MODELS) + 3 + len(options.lengths), quiet)
    result: dict = {"bunraku": bk.__version__, "machine": machine.describe(), "steps": [], "memory": [], "traffic": []}
    try:
        for name in MODELS:
            progress(name)
            result["steps"].append({"name": name, **_on_ranks(2, "race", name, str(options.rounds))})
            progress.done()
        for count in (1, 2, 4):
            progress(f"memory of {count} ranks")
            result["memory"].append(_on_ranks(count, "memory", str(options.links)))
            progress.done()
        for links in options.lengths:
            progress(f"messages of {links} links")
            result["traffic"].append(_on_ranks(2, "traffic", str(links)))
            progress.done()
    finally:
        progress.close()
    return {**result, "links": options.links, "targets": _verdicts(result)}


def _on_ranks(count: int, *arguments: str) -> dict:
    """Result of rank 0 in a run on this number of ranks."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command, environment = mpiexec(count, "-m", "bunraku.bench.bench_ranks", str(out), *arguments,
                                       give_way=count > (os.cpu_count() or 1))
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the ranks have failed:\n{done.stderr[-2000:]}")
        return json.loads(out.read_text())


# -- on the ranks ------------------------------------------------------------------------------------------------------


def race(ranks: Ranks, name: str, rounds: int) -> dict:
    """Stretches of STEPS steps, always the same ones: by rank 0 alone, by both together, by each for itself."""
    m = MODELS[name]()
    state, s = state_of(m), bk.schedule(m, 2, exactly=True, passes=4)
    sim = bk.Simulation(m, state[0], 0.1 * state[1], workers=1, progress=False)
    sim.advance(0.01)
    plan, settings, memory = m.plan(), running(sim).settings, running(sim).memory
    memory.clock[UNTIL], memory.tally[RECORDED] = 1e9, 0
    entry, method = settings.entry()
    steps = max(5, STEPS * 500 // plan.bodies) if plan.bodies > 500 else STEPS
    record, nothing, saved = empty_record(steps, memory.rows.shape[1]), np.zeros(0), [x.copy() for x in memory]
    structure = structure_of(plan)

    def serial():
        for now, then in zip(memory, saved, strict=True):
            now[...] = then
        entry.call(*method, *structure, 0, nothing, nothing, memory, record)

    assembly = s.assembly(plan)
    assert assembly is not None
    division = divide(plan, assembly)
    part, arrays = division.parts[ranks.rank], division.arrays_apart(ranks.rank)
    ranks.connect(arrays)
    share = Share(arrays, False, settings, part.spans)
    own = np.concatenate([part.q_index, plan.nq + part.v_index])
    piece = Piece(*saved[:2], *(x.take(own, axis=1) for x in saved[2:4]))

    def together():
        share.take_over(Piece(*(x.copy() for x in piece)))
        share.stretch(Order(0, steps, False, 0))

    def timed(work: Callable[[], None] | None) -> float:
        """Until both are done."""
        ranks.control.Barrier()
        begin = time.perf_counter()
        if work is not None:
            work()
        ranks.control.Barrier()
        return time.perf_counter() - begin

    times = np.array([[timed(serial if ranks.rank == 0 else None), timed(together), timed(serial)]
                      for _ in range(rounds + 1)])[1:]
    together()
    whole = divide(plan, assembly._replace(worker=np.zeros_like(assembly.worker)))
    same = Share(whole.arrays()[0], False, settings, whole.parts[0].spans)
    order = np.concatenate([whole.parts[0].q_index, plan.nq + whole.parts[0].v_index])
    same.take_over(Piece(saved[0].copy(), saved[1].copy(), *(x.take(order, axis=1) for x in saved[2:4])))
    same.stretch(Order(0, steps, False, 0))
    if not np.array_equal(same.state()[0, np.argsort(order)][own], share.state()[0]):
        raise AssertionError(f"{m.name}: two ranks have other bits than one worker with the same chunks")
    alone, two, both = times.T
    return {"bodies": plan.bodies, "serial_us": float(alone.min() / steps * 1e6),
            "two_us": float(two.min() / steps * 1e6), "speedup": float(np.median(alone / two)),
            "ceiling": float(np.median(2 * alone / both)), "share": float(np.median(both / two / 2)),
            "predicted": s.predicted_speedup}


def memory(ranks: Ranks, links: int) -> dict:
    """Bytes held by every rank: plan, state, history, work. (Rank 0 also has the `Mechanism`.)"""
    if ranks.rank == 0:
        m = bk.models.chain(links)
        plan = m.plan()
        assembly = bk.schedule(m, ranks.size, exactly=True).assembly(plan) if ranks.size > 1 else None
        settings = Settings.of("gear", 1e-6, 1e-8)
        if assembly is None:
            parts = [(plan.arrays, np.zeros((2, 2), np.int64), plan.nq + plan.nv)]
        else:
            division = divide(plan, assembly)
            parts = [(division.arrays_apart(k), part.spans, len(part.q_index) + len(part.v_index))
                     for k, part in enumerate(division.parts)]
        for k, part in enumerate(parts[1:], 1):
            ranks.tell(k, (part, settings))
        mine = parts[0]
    else:
        mine, settings = ranks.hear(0)
    arrays, _, columns = mine
    history = settings.memory(np.zeros(columns))
    held = sum(x.nbytes for x in arrays) + sum(x.nbytes for x in history) + 8 * int(arrays.body_i[-1, f.HEAD_WORK])
    everyone = ranks.control.gather(held)
    return {"ranks": ranks.size, "bytes": everyone}


def traffic(ranks: Ranks, links: int) -> dict:
    """Bytes that cross MPI, sent by any rank: in a step, for each kind of record; when the state is read, and when the
    record of the COUNTED steps is."""
    m = bk.models.chain(links)
    s, found = bk.schedule(m, ranks.size, exactly=True), {}
    for words, record in RECORDS.items():
        sim = bk.Simulation(m, np.full(m.nq, 0.1), solver="rk4", step=STEP, schedule=s, record=record, progress=False)
        sim.advance(2 * STEP)
        begin = sim.stats.steps
        moving, state, joined = _sent(ranks, sim, [_move, lambda sim: sim.q, lambda sim: sim.trajectory])
        found[words] = {"step": moving / (sim.stats.steps - begin), "state": state, "record": joined}
    return {"links": links, "ranks": ranks.size, "records": found}


def _move(sim: bk.Simulation) -> None:
    for _ in range(FRAMES):
        sim.advance(sim.t + COUNTED // FRAMES * STEP)


def _sent(ranks: Ranks, sim: bk.Simulation, work: list[Callable[[bk.Simulation], object]]) -> list[int]:
    """Bytes over edges of the mechanism and of commands and answers, all of which rank 0 sees, for each work."""
    shared, marks = running(sim).sharing.shared, []
    assert shared is not None
    for do in (lambda sim: None, lambda sim: None, *work):
        do(sim)
        marks.append(sum(8 * int(floats[0, 0]) for floats in shared.crew.ask("posted")) + ranks.bytes)
    asking, *found = np.diff(marks).tolist()
    return [count - asking for count in found]


# -- words -------------------------------------------------------------------------------------------------------------


def _verdicts(result) -> list[dict]:
    found = [{"what": f"Gear steps, {row['name']}: two ranks", "measured": row["share"],
              "target": SHARES[row["name"]], "unit": "x two copies", "met": row["share"] >= SHARES[row["name"]]}
             for row in result["steps"]]
    one = max(result["memory"][0]["bytes"])
    for row in result["memory"][1:]:
        part = max(row["bytes"]) * row["ranks"] / one
        found.append({"what": f"memory of a rank, {row['ranks']} ranks", "measured": part, "target": 1.2,
                      "unit": "of an equal part", "met": part <= 1.2})
    for words in RECORDS:
        few, *_, many = (row["records"][words]["step"] for row in result["traffic"])
        found.append({"what": f"bytes of a step, record {words}: longest chain", "measured": many / few,
                      "target": SPREAD, "unit": "of the shortest", "met": many <= SPREAD * few})
    return found


def text(result: dict, colour: bool = False) -> str:
    """A table of times and ratios, then the targets."""
    paint = painter(colour)
    on = result["machine"]
    lines = [paint("1", f"bunraku {result['bunraku']}: one mechanism on two ranks of MPI"),
             machine.line(on), "",
             "share: speed-up of two ranks, divided by that of two independent serial runs at once (ceiling).",
             "Two ranks have the bits of one worker with the same chunks: compared first.", "",
             paint("4", f"  {'Gear steps':<16}{'bodies':>7}{'serial us':>11}{'two ranks':>11}{'speed-up':>10}"
                        f"{'predicted':>11}{'ceiling':>9}{'share':>7}")]
    lines += [f"  {row['name']:<16}{row['bodies']:>7}{row['serial_us']:>11.2f}{row['two_us']:>11.2f}"
              f"{row['speedup']:>9.2f}x{row['predicted']:>10.2f}x{row['ceiling']:>9.2f}{row['share']:>7.2f}"
              for row in result["steps"]]
    lines += ["", paint("4", f"  memory of a chain of {result['links']} links [MB]")]
    lines += [f"  {row['ranks']} rank{'s' * (row['ranks'] > 1):<2} " + "  ".join(f"{b / 1e6:.0f}" for b in row["bytes"])
              for row in result["memory"]]
    lines += ["", paint("4", f"  {'bytes across MPI':<18}{'record':>8}{'a step':>10}{'state read':>14}"
                             f"{'record read':>14}")]
    lines += [f"  chain of {row['links']:<9}{words:>8}{found['step']:>10.0f}{found['state']:>14,}{found['record']:>14,}"
              for row in result["traffic"] for words, found in row["records"].items()]
    lines += ["", *target_lines(result["targets"], paint)]
    return "\n".join(line.rstrip() for line in lines)


def main() -> None:
    """On every rank: result file, what to do, arguments."""
    out, what, *given = sys.argv[1:]
    if what == "traffic":
        found = traffic(take_part(), int(given[0]))
        Path(out).write_text(json.dumps(found))
        return
    ranks = join()
    ranks.abort_on_errors()
    found = race(ranks, given[0], int(given[1])) if what == "race" else memory(ranks, int(given[0]))
    if ranks.rank == 0:
        Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
