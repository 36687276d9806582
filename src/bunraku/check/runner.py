"""Runs the cases of an attack in child processes, and reports them.

Each child works on one seed at a time. One that dies (a crash in compiled code) or is silent for longer than the
attack's limit (a hang) is replaced, and its seed is a failure like any other.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import shlex
import signal
import statistics
import sys
import time
import traceback
from multiprocessing.connection import wait

from bunraku.check import Case
from bunraku.entries.pool import available

SPAWN = multiprocessing.get_context("spawn")
START_LIMIT = 600.0  # [s] for a child's first case, which may have to compile


def module_of(name: str):
    """The module of an attack: one of ours by its name, any other by its path with dots."""
    return importlib.import_module(name if "." in name else f"bunraku.check.attack_{name}")


class Child:
    """A process that works on one seed at a time."""

    def __init__(self, name: str, limit: float):
        self.name, self.limit = name, limit
        self.seed: int | None = None
        self.first = True
        self.pipe, other = SPAWN.Pipe()
        self.process = SPAWN.Process(target=_serve, args=(name, other), daemon=False)
        self.process.start()
        other.close()

    def give(self, seed: int) -> None:
        self.seed, self.began = seed, time.monotonic()
        self.pipe.send(seed)

    def overdue(self) -> bool:
        return time.monotonic() - self.began > (max(START_LIMIT, self.limit) if self.first else self.limit)

    def take(self) -> Case | str:
        """The result of its seed, or the error. A child that died raises EOFError."""
        answer = self.pipe.recv()
        self.first = False
        return answer

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self.pipe.close()
        if self.process.is_alive():
            self.process.kill()
        self.process.join()


def _serve(name, pipe):
    """Main loop of a child: seeds in, results out, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    case = module_of(name).case
    with contextlib.suppress(EOFError, OSError):
        while True:
            seed = pipe.recv()
            try:
                answer = case(seed)
            except BaseException as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                answer = f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"
            pipe.send(answer)


def attack(name: str, seeds: int, *, first: int = 0, minutes: float | None = None, workers: int | None = None,
           progress=None) -> dict:
    """Run `seeds` cases from the seed `first` on, or as many as fit into `minutes`.

    Returns {"attack", "title", "unit", "cases", "count", "worst", "medians", "counts", "failures": [(seed, what)],
    "seconds"}. `progress` is called with (cases done, failures) after each.
    """
    module = module_of(name)
    result = {"attack": name, "title": module.TITLE, "unit": module.UNIT, "cases": 0, "count": 0, "worst": {},
              "medians": {}, "counts": {}, "failures": [], "seconds": 0.0, "first": first}
    measured: dict[str, list[float]] = {}
    began = time.monotonic()
    end = None if minutes is None else began + 60.0 * minutes
    waiting = iter(range(first, first + seeds) if end is None else range(first, sys.maxsize))
    count = workers or available()
    children = [Child(name, module.LIMIT) for _ in range(count if end else min(count, seeds))]
    try:
        busy = [child for child in children if _next(child, waiting, end)]
        while busy:
            ready = wait([child.pipe for child in busy], timeout=1.0)
            for child in list(busy):
                if child.pipe not in ready and not child.overdue():
                    continue
                busy.remove(child)
                replacement = child
                try:
                    if child.pipe not in ready:
                        raise TimeoutError
                    answer = child.take()
                except (EOFError, OSError) as error:
                    answer = _fate(child, error)
                    children.remove(child)
                    replacement = Child(name, module.LIMIT)
                    children.append(replacement)
                _count(result, measured, child.seed, answer)
                if progress is not None:
                    progress(result["cases"], len(result["failures"]))
                if _next(replacement, waiting, end):
                    busy.append(replacement)
    except KeyboardInterrupt:
        result["interrupted"] = True  # what was computed is reported all the same
    finally:
        for child in children:
            child.stop()
    result["seconds"] = time.monotonic() - began
    result["medians"] = {what: statistics.median(values) for what, values in measured.items()}
    return result


def _next(child, waiting, end) -> bool:
    """Give the child another seed, if there is one and there is time."""
    seed = next(waiting, None) if end is None or time.monotonic() < end else None
    if seed is None:
        return False
    child.give(seed)
    return True


def _fate(child: Child, error) -> str:
    if isinstance(error, TimeoutError):
        child.process.kill()
        child.process.join()
        return f"hung: no result after {time.monotonic() - child.began:.0f} s"
    child.process.join(5.0)
    code = child.process.exitcode
    name = signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"
    return f"crashed: {name}"


def _count(result, measured, seed, answer) -> None:
    result["cases"] += 1
    if isinstance(answer, str):
        result["failures"].append((seed, answer))
        return
    result["count"] += answer.tried
    for what, value in answer.worst.items():
        worst = result["worst"].get(what, 0.0)
        if worst == worst and not value <= worst:  # NaN stays
            worst = float(value)
        result["worst"][what] = worst
    for what, values in answer.measured.items():
        measured.setdefault(what, []).extend(values)
    for what, count in answer.counts.items():
        result["counts"][what] = result["counts"].get(what, 0) + count


def text(result: dict) -> str:
    """One attack as text: counts, the largest errors, every failure with the command that repeats it."""
    failures = result["failures"]
    lines = [f"{result['attack']}: {result['title']}",
             f"  {result['cases']} cases, {result['count']} {result['unit']} in {result['seconds']:.0f} s: "
             f"{len(failures) or 'no'} failure{'s' * (len(failures) != 1)}"
             + (" (interrupted)" if result.get("interrupted") else "")]
    if result["worst"]:
        lines.append("  largest: " + ", ".join(f"{what} {value:.2g}" for what, value in result["worst"].items()))
    if result["medians"]:
        lines += ["  medians:", *(f"    {what} {value:.4g}" for what, value in sorted(result["medians"].items()))]
    if result["counts"]:
        lines += ["  counts:", *(f"    {what} {count}" for what, count in sorted(result["counts"].items()))]
    for seed, what in failures[:20]:
        again = shlex.join(["bunraku", "check", result["attack"], "--first", str(seed), "--seeds", "1"])
        lines += [f"  FAILED seed {seed}: {what}", f"    repeat: {again}"]
    if len(failures) > 20:
        lines.append(f"  ... and {len(failures) - 20} more (--json lists all)")
    return "\n".join(lines)


def row(result: dict) -> str:
    """One attack as a row of the table in docs/trust.md."""
    worst = ", ".join(f"{what} {value:.1e}" for what, value in result["worst"].items()) or "-"
    again = f"`bunraku check {result['attack']} --seeds {result['cases']}`"
    return (f"| {result['attack']}: {result['title']} | {result['count']} {result['unit']} | "
            f"{len(result['failures'])} | {worst} | {again} |")
