"""Threads that share a batch. Kernels release the interpreter lock, so plain Python threads are workers."""

from __future__ import annotations

import functools
import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait

from bunraku.errors import ShapeError


@functools.cache
def available() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=max(64, 4 * available()), thread_name_prefix="bunraku")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)


def how_many(workers: int | None, most: int) -> int:
    """Number of workers for at most `most` pieces; None: as many as there are cores."""
    if workers is None:
        workers = available()
    elif isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise ShapeError(f"workers must be a whole number of at least 1, not {workers!r}")
    return max(1, min(workers, most))


class Turns:
    """Work queue: the numbers 0..count - 1, each given to one thread; empty once stopped."""

    def __init__(self, count: int):
        self.numbers, self.stopped = iter(range(count)), False
        self._lock = threading.Lock()

    def __iter__(self):
        return self

    def __next__(self) -> int:
        with self._lock:
            if self.stopped:
                raise StopIteration
            return next(self.numbers)


def take_turns(work, count: int, workers: int) -> None:
    """Call work(turns) in every worker, to share the queue `turns`: for pieces of different duration.

    An error in any of them, or Ctrl-C, stops the others at their next turn and is raised then.
    """
    turns = Turns(count)

    def go():
        try:
            work(turns)
        except BaseException:
            turns.stopped = True
            raise

    futures = [_pool().submit(go) for _ in range(workers - 1)]
    try:
        go()
        wait(futures)
    except BaseException:
        turns.stopped = True
        wait(futures)
        raise
    for future in futures:
        future.result()


def spread(work, count: int, grain: int, workers: int | None, smallest: int) -> None:
    """Call work(start, stop) so that 0..count is covered, in pieces of whole grains, one per worker.

    `workers=None` takes every core there is, but no more than one per `smallest` items. An error in any piece is raised
    after all are done.
    """
    grains = -(-count // grain)
    workers = how_many(workers, grains if workers is not None else max(1, min(grains, count // smallest)))
    if workers <= 1:
        work(0, count)
        return
    bounds = [min(count, grain * (grains * k // workers)) for k in range(workers + 1)]
    futures = [_pool().submit(work, bounds[k], bounds[k + 1]) for k in range(1, workers)]
    try:
        work(bounds[0], bounds[1])
    finally:
        errors = [future.exception() for future in futures]
    for error in errors:
        if error is not None:
            raise error
