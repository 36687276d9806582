"""Several entries compiled side by side, in child processes, with one line of progress."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path

from bunraku.compiler import files

WORTH_A_CHILD = 4.0  # [s] of compilation: starting a process takes one


def processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


class Progress:
    """One line on standard error: what is compiled, and about how long it will still take."""

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
        """So much of the estimate is done."""
        self.done += seconds
        self.left -= seconds

    def _remaining(self) -> float:
        """By the estimate, and by how fast it has gone so far."""
        gone = time.perf_counter() - self.start
        pace = max(1.0, gone * self.workers / self.done) if self.done > 0.0 else 1.0
        return max(0.0, pace * (self.done + self.left) / self.workers - gone)

    def _tick(self):
        while not self._stop.wait(0.2):
            left = self._remaining()
            text = f"about {left:.0f} s left" if left >= 1.0 else "nearly done"
            print(f"\r\x1b[Kbunraku: {self._what()}: {text}", end="", file=sys.stderr, flush=True)

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


def compile_together(now, later, folder: Path | None = None, workers: int | None = None) -> None:
    """Have the machine code of these entries made, into `folder`, by as many processes as pay, and wait for the first.

    The longest comes first, wherever it is needed, if the others fit in beside it; then what is needed now, then the
    rest. What a child does not make, because it cannot be started or fails, is left to whoever needs it: a real error
    then has its place and its traceback.
    """
    seconds = {entry.name: entry.seconds for entry in (*now, *later)}
    count = min(workers or processors(), len(seconds), max(1, round(sum(seconds.values()) / WORTH_A_CHILD)))
    names = [entry.name for group in (now, later) for entry in sorted(group, key=lambda entry: -entry.seconds)]
    if count > 1:
        longest = max(names, key=seconds.__getitem__)
        names = [longest, *(name for name in names if name != longest)]
    waiting = {entry.name for entry in now}
    with Progress(sum(entry.seconds for entry in now), count, files.kept()) as progress:
        done: queue.SimpleQueue = queue.SimpleQueue()
        children = [_Child(names, folder, done) for _ in range(count)]
        try:
            running = count
            while waiting and running:
                name = done.get()
                if name is None:
                    running -= 1
                elif name in waiting:
                    waiting.remove(name)
                    progress.advance(seconds[name])
        except BaseException:
            for child in children:
                child.stop()
            raise


class _Child:
    """A process that compiles whatever no other is at. What it has done it puts into a queue, and None at its end."""

    def __init__(self, names: list[str], folder: Path | None, done: queue.SimpleQueue):
        command = [sys.executable, "-m", "bunraku.compiler", *(("--out", str(folder)) if folder else ()), *names]
        path = os.pathsep.join([str(files.PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process: subprocess.Popen | None = None
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                             stderr=subprocess.DEVNULL, text=True,
                                             env={**os.environ, "PYTHONPATH": path, "BUNRAKU_QUIET": "1"})
        except OSError:
            done.put(None)
            return
        threading.Thread(target=self._listen, args=(self._process, done), daemon=True).start()

    @staticmethod
    def _listen(process, done) -> None:
        with process:  # closes the pipe and waits at the end
            for line in process.stdout:
                done.put(line.strip())
        done.put(None)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
