"""Parallel compilation of several entries in child processes, with one progress line."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bunraku.compiler import code_files as files

START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from bunraku.compiler.__main__ import main; main()"
WORTH_A_CHILD = 4.0  # [s] of compilation: starting a process takes one


def processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


class Progress:
    """Progress line on standard error: the target of compilation, and the estimated remaining time."""

    def __init__(self, seconds: float, workers: int = 1, kept: bool = True, for_whom: str = "this machine"):
        self.left, self.workers, self.kept, self.for_whom = seconds, workers, kept, for_whom
        self.start, self.done = time.perf_counter(), 0.0
        self.live = sys.stderr.isatty() and not files.quiet()

    def __enter__(self):
        if self.live:
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._tick, daemon=True)
            self._thread.start()
        else:
            files.say(f"{self._what()}, about {max(1.0, self.left / self.workers):.0f} s ...")
        return self

    def _what(self) -> str:
        return f"compiling for {self.for_whom}" + (" (once; kept on disk)" if self.kept else "")

    def advance(self, seconds: float) -> None:
        """Add finished seconds of the estimate."""
        self.done += seconds
        self.left -= seconds

    def _remaining(self) -> float:
        """Remaining seconds, from the estimate and the speed so far."""
        gone = time.perf_counter() - self.start
        pace = max(1.0, gone * self.workers / self.done) if self.done > 0.0 else 1.0
        return max(0.0, pace * (self.done + self.left) / self.workers - gone)

    def _tick(self):
        while not self._stop.wait(0.2):
            left = self._remaining()
            text = f"about {left:.0f} s left" if left >= 1.0 else f"{time.perf_counter() - self.start:.0f} s so far"
            line = f"bunraku: {self._what()}: {text}"[:shutil.get_terminal_size().columns - 1]
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    def __exit__(self, kind, *_):
        took = time.perf_counter() - self.start
        if self.live:
            self._stop.set()
            self._thread.join()
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        if kind is None:
            files.say(f"compiled in {took:.1f} s")


def worth_children(entries) -> bool:
    """Whether compiling these in child processes pays."""
    return len(entries) > 1 and sum(entry.seconds for entry in entries) > WORTH_A_CHILD


def compile_together(now, later, folder: Path) -> None:
    """Compile these entries into `folder`, by this process and a suitable number of children; wait for
    those needed now, while children go on with the later ones.

    Each takes the longest remaining job. If a child cannot be started or fails, its entry is compiled on first use in
    this process, so that a genuine error appears there with its traceback.
    """
    now, later = (sorted(entries, key=lambda entry: -entry.seconds) for entries in (now, later))
    total = sum(entry.seconds for entry in (*now, *later))
    count = min(processors(), len(now) + len(later), max(1, round(total / WORTH_A_CHILD)))
    waiting = {entry.name: entry.seconds for entry in now}
    with contextlib.ExitStack() as stack:
        if waiting:
            progress = stack.enter_context(Progress(sum(waiting.values()), count, kept=files.kept()))
        children = stack.enter_context(Children(count - 1, [entry.name for entry in (*now, *later)], folder))
        for entry in now:
            try:
                seconds = make(entry, entry.path(folder))
            except OSError as error:  # a full disk, a folder that is gone: this process has it all the same
                files.not_kept(error)
                seconds = 0.0
            if seconds is not None:
                progress.advance(waiting.pop(entry.name))
        for made in children if waiting else ():
            progress.advance(waiting.pop(made.name, 0.0))
            if not waiting:
                break


def make(entry, path: Path, wait: bool = False) -> float | None:
    """Compile an entry into a file unless it is there; seconds that it took, or None if another process is compiling
    it."""
    with files.alone(path, wait=wait) as mine:
        if files.usable(path, entry.key):
            return 0.0
        if not mine:
            return None
        start = time.perf_counter()
        files.write(path, entry.compiled(), entry.key)
        return time.perf_counter() - start


class Made(NamedTuple):
    """Machine code of an entry on disk."""

    name: str
    seconds: float  # of compilation; 0: it was there already
    file: Path


class Children:
    """Processes that compile, each an entry that no other is compiling; iterate over finished entries until all have
    ended.

    Left by an exception, they are stopped; else those that still run go on until this process exits. A thread listens
    to each of them and waits for its end. If this process is killed, each ends after the entry that it is at.
    """

    def __init__(self, count: int, names: Sequence[str], folder: Path | None = None, *, wait: bool = False,
                 wheel: bool = False, environment: Mapping[str, str] | None = None):
        options = ["--wheel" if wheel else "--cache", str(folder)] if folder else []
        options += ["--wait"] if wait else []
        isolation = "-I" if sys.flags.isolated else "-P"  # files in the current folder must not shadow modules
        command = [sys.executable, isolation, "-c", START, str(files.PACKAGE.parent), *options, *names]
        self.complaint = ""  # the last line of a traceback
        self._reports: queue.SimpleQueue = queue.SimpleQueue()
        self._running: dict[subprocess.Popen, threading.Thread] = {}
        self._started, self._owner = 0, os.getpid()
        _at_work.add(self)
        try:
            with contextlib.suppress(OSError, RuntimeError):  # no more processes, or no more threads
                for _ in range(count):
                    self._start(command, {**os.environ, "BUNRAKU_QUIET": "1", **(environment or {})})
        except BaseException:  # Ctrl-C
            self.stop()
            raise

    def _start(self, command, environment) -> None:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, env=environment)
        listener = threading.Thread(target=self._listen, args=(process,), daemon=True)
        try:
            self._running[process] = listener
            listener.start()
        except BaseException:
            self._running.pop(process, None)
            process.kill()
            if not listener.is_alive():
                with process:  # closes the pipe and waits
                    pass
            raise
        self._started += 1

    def _listen(self, process) -> None:
        with process:  # closes the pipe and waits at the end
            for line in process.stdout:
                try:
                    told = json.loads(line)
                    self._reports.put(Made(told["name"], told["seconds"], Path(told["file"])))
                except (ValueError, LookupError, TypeError):
                    self.complaint = line.strip() or self.complaint
        self._running.pop(process, None)
        if not self._running:
            _at_work.discard(self)
        self._reports.put(None)

    def __iter__(self) -> Iterator[Made]:
        running = self._started
        while running:
            made = self._reports.get()
            if made is None:
                running -= 1
            else:
                yield made

    def stop(self) -> None:
        """End those that still run, and wait until they have ended."""
        if self._owner != os.getpid():  # a copy in a forked process: they are not ours
            return
        running = list(self._running.items())
        for process, _ in running:
            process.kill()
        for _, listener in running:
            listener.join()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self.stop()


_at_work: set[Children] = set()  # each is kept until the last of its processes has ended


@atexit.register
def stop_all() -> None:
    """Stop all children, so that none outlives this process."""
    for children in list(_at_work):
        children.stop()
