"""Ensembles: one function of many cases, on any `concurrent.futures` executor, with results in a file.

Cases are distributed in pieces of about `PIECE` seconds each, so that communication does not dominate small ones; a few
pieces per worker are submitted at a time. This process alone writes the file (`results_file.py`). A
`bk.RolloutCase` gets a piece at once, from cases of one mechanism.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import inspect
import math
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

from bunraku.entries.pool import available
from bunraku.errors import BunrakuError, ModelError, SimulationError, SimulationWarning
from bunraku.mechanism import Mechanism
from bunraku.simulation.batches.results_file import KNOWN, Failure, ResultsFile, Unstorable, digest, pack, read_results
from bunraku.simulation.batches.rollout import Rollout
from bunraku.simulation.batches.rollout_case import FIRST, RolloutCase
from bunraku.terminal import Bar

PIECE = 0.1        # [s] of a piece: at most this much work per worker is lost in a crash, or one case
GROWTH = 4         # a piece has at most so many times the cases of the one before
AHEAD = 2          # pieces per worker under way
UNKNOWN = 64       # workers of an executor that does not say how many it has


def ensemble(function: Callable[[Any], Any], cases: Iterable, executor: Executor | None = None, file=None, *,
             retry: bool = False, progress: bool | None = None) -> list:
    """[function(case) for case in cases], in parallel: results in the order of cases, whatever the executor.

    function   of one case; at the top level of a module, so that other processes find it. Or a `bk.RolloutCase`, whose
               cases are simulated many at a time
    executor   any of concurrent.futures; ProcessPoolExecutor, loky, mpi4py.futures, Dask's client.get_executor().
               None: as many processes as there are cores, for this call
    file       results are appended to it as they come. Called again with the same function and cases, after a crash or
               not, only cases without a result are computed; further cases may be added at the end. A file of another
               function or of other cases is refused
    retry      compute again the cases that have failed according to the file

    The result of a case that raises is its exception, with the traceback as a note; the others go on.
    Cases and results in a file are numbers, text, lists, tuples, dicts, arrays, mechanisms, trajectories and rollouts.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ModelError("ensemble: a worker process has imported this script and reached bk.ensemble again; call it "
                         'under `if __name__ == "__main__":`')
    given = list(cases)
    if not callable(function):
        raise ModelError(f"ensemble: the function is {function!r:.80}, which cannot be called")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ModelError(f"ensemble: the executor is {executor!r:.80}; it needs `submit` as in concurrent.futures"
                         + ("; of a Dask client: client.get_executor()" if hasattr(executor, "scheduler") else ""))
    if file is None:
        run = _Run(function, given, {}, None, progress)
        run.by(executor)
        return _shown(run.done, _mechanisms(function))
    names = [_digest(k, case) for k, case in enumerate(given)]
    known = _identity(function)
    with ResultsFile(file, known) as results:
        done = _fitting(results, known, names)
        if retry:
            done = {k: value for k, value in done.items() if not isinstance(value, Failure)}

        def keep(case: int, value) -> None:
            try:
                results.add(case, names[case], value)
            except Unstorable as kind:
                raise ModelError(f"case {case} returned {kind}, which a file of results cannot hold: return {KNOWN}, "
                                 "or give no file") from None

        run = _Run(function, given, done, keep, progress)
        run.by(executor)
        return _shown(run.done, _mechanisms(function))


def load_ensemble(file) -> dict[int, Any]:
    """Results of the cases in a file of `ensemble`, by the number of the case; also while it is being written."""
    header, results = read_results(file)
    done = {case: value for case, (_, value) in results.items()}
    return dict(zip(sorted(done), _shown(done, header["mechanisms"]), strict=True))


def _shown(done: dict[int, Any], mechanisms: dict[str, Mechanism]) -> list:
    """Results in order, as returned to the user: failures as exceptions, rollouts with their (shared) mechanism."""
    own = {name: m.copy().locked() for name, m in mechanisms.items()}

    def shown(case, value):
        if isinstance(value, Failure):
            return value.exception(case)
        if isinstance(value, Rollout) and isinstance(value.mechanism, str):
            return dataclasses.replace(value, mechanism=own[value.mechanism])
        return value

    return [shown(case, done[case]) for case in sorted(done)]


def _mechanisms(function) -> dict[str, Mechanism]:
    return function.mechanisms if isinstance(function, RolloutCase) else {}


# -- what a file belongs to ------------------------------------------------------------------------------------------


def _digest(k: int, case) -> str:
    try:
        return digest(case)
    except Unstorable as kind:
        raise ModelError(f"case {k} holds {kind}; with a file, cases are made of {KNOWN}") from None


def _identity(function) -> dict:
    """Name of a function and a digest of its source, with the arguments that `functools.partial` has bound."""
    if isinstance(function, RolloutCase):
        return {"function": function.__name__, "source": hashlib.sha256(function.data).hexdigest()[:32], "exact": True,
                "mechanisms": function.mechanisms}
    bound = b""
    while isinstance(function, functools.partial):
        try:
            bound += pack([list(function.args), function.keywords])
        except Unstorable as kind:
            raise ModelError(f"ensemble: the function is a functools.partial that binds {kind}; with a file, its "
                             f"arguments must be {KNOWN}") from None
        function = function.func
    module = getattr(function, "__module__", None) or type(function).__module__
    if module in ("__main__", "__mp_main__"):
        module = Path(getattr(sys.modules["__main__"], "__file__", None) or "__main__").stem
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    try:
        source = inspect.getsource(inspect.unwrap(function) if inspect.isroutine(function) else type(function)).encode()
    except (OSError, TypeError):  # built in, or typed at a prompt
        source = b""
    found = {"function": f"{module}.{name}", "source": hashlib.sha256(source).hexdigest()[:32], "exact": False,
             "mechanisms": {}}
    return {**found, "bound": hashlib.sha256(bound).hexdigest()[:32]} if bound else found


def _fitting(results: ResultsFile, known: dict, names: list[str]) -> dict[int, Any]:
    """Stored results of these cases by this function; a ModelError if the file holds other cases or another
    function."""
    header = results.header
    assert header is not None
    if header["function"] != known["function"]:
        raise ModelError(f"{results.path} has results of the function {header['function']!r}, not of "
                         f"{known['function']!r}; give another file")
    if header.get("bound") != known.get("bound"):
        raise ModelError(f"{results.path} has results of {known['function']!r} with other bound arguments; give "
                         "another file")
    if header["source"] != known["source"]:
        if known["exact"]:
            raise ModelError(f"{results.path} has results of another {known['function']}: mechanism or settings "
                             "differ; give another file")
        warnings.warn(f"{results.path}: the source of {known['function']!r} has changed since the file was begun; "
                      "results in it are kept as they are: delete it to compute all again", SimulationWarning,
                      stacklevel=4)
    last = max(results.results, default=-1)
    if last >= len(names):
        raise ModelError(f"{results.path} has a result of case {last}; only {len(names)} cases are given: give all of "
                         "them, or another file")
    for case, (name, _) in results.results.items():
        if name != names[case]:
            raise ModelError(f"{results.path} has results of other cases: case {case} there is not case {case} here; "
                             "give another file")
    return {case: value for case, (_, value) in results.results.items()}


# -- pieces ----------------------------------------------------------------------------------------------------------


def compute(function, cases: list) -> tuple[list, float]:
    """Compute a piece in a worker: (results or `Failure`s, seconds)."""
    begin = time.perf_counter()
    if isinstance(function, RolloutCase):
        answers = [Failure.of(answer, str(answer)) if isinstance(answer, Exception) else answer
                   for answer in function.batch(cases)]
    else:
        answers = [_attempt(function, case) for case in cases]
    return answers, time.perf_counter() - begin


def _attempt(function, case):
    try:
        return function(case)
    except Exception as error:
        trace = error.__traceback__.tb_next if error.__traceback__ is not None else None  # without this line
        return Failure.of(error, "".join(traceback.format_exception(type(error), error, trace)))


class _Run:
    """State of an ensemble: waiting cases, submitted cases, and results."""

    def __init__(self, function, cases: list, done: dict[int, Any], keep, progress):
        self.function, self.cases, self.keep, self.progress = function, cases, keep, progress
        self.done = dict(done)
        self.waiting = [k for k in range(len(cases)) if k not in done]
        self.size = 1  # cases of a piece
        if isinstance(function, RolloutCase):
            self.size = FIRST
            self.waiting.sort(key=lambda k: repr(self._group(k)))  # stable
        self.waiting.reverse()  # taken from its end

    def _group(self, k: int):
        try:
            return self.function.group(self.cases[k])
        except BunrakuError:
            return ()  # fails by itself, with its reason

    def by(self, executor: Executor | None) -> None:
        """Compute all remaining cases."""
        if not self.waiting:
            return
        with Bar(self.progress, 0, len(self.cases), "computing", "cases", 0) as bar, (
                _processes(self.function, self.cases[self.waiting[-1]], len(self.waiting)) if executor is None
                else contextlib.nullcontext(executor)) as chosen:
            bar.show(len(self.done))
            self._go(chosen, bar)

    def _go(self, executor: Executor, bar: Bar) -> None:
        under_way: dict[Future, list[int]] = {}
        workers = _workers(executor)
        try:
            while self.waiting or under_way:
                while self.waiting and len(under_way) < AHEAD * workers:
                    piece = self._piece(workers)
                    under_way[executor.submit(compute, self.function, [self.cases[k] for k in piece])] = piece
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    self._take(future, under_way[future])
                    del under_way[future]
                    bar.show(len(self.done))
        except BrokenExecutor as error:
            raise SimulationError(self._broken(under_way)) from error
        finally:
            for future in under_way:
                future.cancel()

    def _piece(self, workers: int) -> list[int]:
        share = math.ceil(len(self.waiting) / (AHEAD * workers))  # the last ones are for all
        return [self.waiting.pop() for _ in range(max(1, min(self.size, share)))]

    def _take(self, future: Future, piece: list[int]) -> None:
        try:
            answers, seconds = future.result()
        except (BrokenExecutor, BunrakuError):
            raise
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            if "pickle" not in str(error).lower():
                raise
            raise _unpicklable(self.function, self.cases[piece[0]], error) from error
        for case, answer in zip(piece, answers, strict=True):
            if self.keep is not None:
                self.keep(case, answer)
            self.done[case] = answer
        wanted = PIECE * len(piece) / max(seconds, 1e-6)
        self.size = max(1, int(min(wanted, GROWTH * max(len(piece), self.size if wanted > self.size else 1))))

    def _broken(self, under_way: dict[Future, list[int]]) -> str:
        lost = sorted(k for piece in under_way.values() for k in piece)
        names = ", ".join(map(str, lost[:8])) + (" ..." if len(lost) > 8 else "")
        kept = "; call again with the same file to go on" if self.keep is not None else ""
        return (f"a worker process has died, by a signal or for want of memory, or it could not start; cases {names} "
                f"were under way, {len(self.done)} of {len(self.cases)} are done{kept}. A script must call bk.ensemble "
                "under `if __name__ == \"__main__\":`")


def _workers(executor) -> int:
    """Number of pieces that the executor computes at a time."""
    for name in ("num_workers", "_max_workers"):  # mpi4py; concurrent.futures, loky
        count = getattr(executor, name, None)
        if isinstance(count, int) and count > 0:
            return count
    client = getattr(executor, "_client", None)  # Dask
    if client is not None:
        with contextlib.suppress(Exception):
            return max(1, sum(client.nthreads().values()))
    return UNKNOWN


# -- processes of our own --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _processes(function, case, count: int):
    """Processes for the cores of this machine. They end with this one, also if it is killed."""
    try:
        pickle.dumps((function, case))
    except Exception as error:
        if isinstance(error, BunrakuError):
            raise
        raise _unpicklable(function, case, error) from error
    main = sys.modules.get("__main__")
    if getattr(function, "__module__", "") == "__main__" and not hasattr(main, "__file__"):
        raise ModelError(f"ensemble: other processes cannot find the function {_name(function)!r}, which was typed at "
                         "a prompt or in a notebook: put it into a module and import it, or use loky, which sends it: "
                         "executor=loky.get_reusable_executor()")
    pool = ProcessPoolExecutor(min(available(), count), multiprocessing.get_context("spawn"), _begin)
    try:
        yield pool
    except BaseException:
        processes = list((getattr(pool, "_processes", None) or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
        raise
    pool.shutdown()


def _begin() -> None:
    """Initialise a worker: Ctrl-C is left to the parent process; the worker ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent) -> None:
    parent.join()
    os._exit(1)


def _unpicklable(function, case, error: Exception) -> ModelError:
    what = f"the function {_name(function)!r}"
    with contextlib.suppress(Exception):
        pickle.dumps(function)
        what = f"a case or a result of {_name(function)!r}"
    return ModelError(f"ensemble: {what} cannot be sent to other processes ({error}): define functions at the top "
                      "level of a module; loky sends any (executor=loky.get_reusable_executor()), threads need not "
                      "(executor=concurrent.futures.ThreadPoolExecutor())")


def _name(function) -> str:
    return getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__name__
