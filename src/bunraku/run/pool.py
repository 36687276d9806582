"""Threads that share a batch. Kernels release the interpreter lock, so plain Python threads are workers."""

from __future__ import annotations

import functools
import os
from concurrent.futures import ThreadPoolExecutor

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


def spread(work, count: int, grain: int, workers: int | None, smallest: int) -> None:
    """Call work(start, stop) so that 0..count is covered, in pieces of whole grains, one per worker.

    `workers=None` takes every core there is, but no more than one per `smallest` items. An error in any piece is raised
    after all are done.
    """
    if workers is None:
        workers = min(available(), max(1, count // smallest))
    elif isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise ShapeError(f"workers must be a whole number of at least 1, not {workers!r}")
    grains = -(-count // grain)
    workers = min(workers, grains)
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
