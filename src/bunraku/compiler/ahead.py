"""Machine code before its first use: for the cache or for a wheel, also for other kinds of processors than this one.

Child processes compile, with BUNRAKU_LEVEL set: the width of lanes, and with it every kernel, is that of the level.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from bunraku.compiler import files
from bunraku.compiler.targets import level
from bunraku.compiler.together import Progress, processors
from bunraku.errors import BunrakuError


class Made(NamedTuple):
    """Machine code of an entry on disk."""

    name: str
    seconds: float  # of compilation; 0: it was there already
    file: Path


def compile_ahead(entries, target: str | None = None, out: Path | None = None) -> list[Made]:
    """Have the machine code of these entries made for a level (default: that of this machine), into a folder (default:
    the cache), side by side; an error if one cannot be compiled or written."""
    seconds = {entry.name: entry.seconds for entry in sorted(entries, key=lambda entry: -entry.seconds)}
    (out or files.cache_root()).mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ)
    if target is not None and target != level().name:
        environment.pop("BUNRAKU_LANE_WIDTH", None)
        environment["BUNRAKU_LEVEL"] = target
    made: dict[str, Made] = {}
    count = max(1, min(processors(), len(seconds)))
    with Progress(sum(seconds.values()), count, kept=out is None, for_whom=target or "this machine") as progress:
        def done(one: Made) -> None:
            if one.name not in made:
                progress.advance(seconds[one.name])
            if one.name not in made or one.seconds:  # whoever comes later finds it there
                made[one.name] = one

        _run([_Child([*_folder(out), *seconds], environment) for _ in range(count)], done)
        if left := [name for name in seconds if name not in made]:  # others compile them, or it is not possible
            last = _Child(["--wait", *_folder(out), *left], environment)
            _run([last], done)
        if failed := [name for name in seconds if name not in made]:
            raise BunrakuError(f"{failed[0]} could not be compiled: {last.complaint}")
    return [made[name] for name in sorted(made)]


def _run(children: list[_Child], done: Callable[[Made], None]) -> None:
    with ThreadPoolExecutor(len(children)) as threads:
        try:
            list(threads.map(lambda child: child.listen(done), children))
        except BaseException:
            for child in children:
                child.stop()
            raise


def _folder(out: Path | None) -> Sequence[str]:
    return () if out is None else ("--out", str(out))


class _Child:
    """A process that compiles whatever no other is at, and reports it."""

    def __init__(self, arguments: Sequence[str], environment: dict[str, str]):
        path = os.pathsep.join([str(files.PACKAGE.parent), *filter(None, [environment.get("PYTHONPATH")])])
        self.complaint = ""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bunraku.compiler", "--report", *arguments], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**environment, "PYTHONPATH": path, "BUNRAKU_QUIET": "1"})

    def listen(self, done: Callable[[Made], None]) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                try:
                    told = json.loads(line)
                    done(Made(told["name"], told["seconds"], Path(told["file"])))
                except ValueError:
                    self.complaint = line.strip() or self.complaint  # the last line of a traceback says what is wrong
        self._process.wait()

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
