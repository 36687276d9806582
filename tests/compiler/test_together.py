"""Entries compiled by child processes: each by one of them, and without children all the same."""

import contextlib
import gc
import io
import json
import os
import subprocess
import sys
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba.core.registry import cpu_target

from bunraku import jit
from bunraku.compiler import code_files as files
from bunraku.compiler import together
from bunraku.entries import moves
from processes import PACKAGE

pytestmark = pytest.mark.skipif(jit.JIT_OFF, reason="nothing is compiled")
ENTRIES = (moves.integrate_states, moves.normalise_states)
SOON = 100.0  # [s] on a busy machine


def child(folder, *entries):
    """Names that a child says it has done."""
    command = [sys.executable, "-m", "bunraku.compiler", "--cache", str(folder), *(entry.name for entry in entries)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)})
    return [json.loads(line)["name"] for line in done.stdout.splitlines()]


def test_a_child_compiles_what_is_not_there_and_nothing_twice(tmp_path):
    assert child(tmp_path, *ENTRIES) == [entry.name for entry in ENTRIES]
    paths = [entry.path(tmp_path) for entry in ENTRIES]
    assert all(files.usable(path, entry.key) for path, entry in zip(paths, ENTRIES, strict=True))
    before = [path.stat().st_mtime_ns for path in paths]
    assert child(tmp_path, *ENTRIES) == [entry.name for entry in ENTRIES]
    assert [path.stat().st_mtime_ns for path in paths] == before


def test_a_child_leaves_alone_what_another_process_is_at(tmp_path):
    first, second = ENTRIES
    with files.alone(first.path(tmp_path)):
        assert child(tmp_path, *ENTRIES) == [second.name]
    assert not first.path(tmp_path).exists()


def fresh(folder, entry, seconds):
    """As the entry is in a new process with an empty cache."""
    made = jit.Entry(entry.function, entry.label, entry.signature, seconds=seconds, brief=entry.brief)
    made.path = lambda _=None: folder / f"{made.name}.code"
    made._places = lambda: [made.path()]
    return made


def answer(entry):
    out = np.empty((1, 2))
    entry.call(np.zeros((0, 20), np.int32), out, out, out)


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """Two new entries and what was said when they were prepared, with as many processors as there are."""
    monkeypatch.delenv("BUNRAKU_QUIET", raising=False)
    monkeypatch.setattr(files, "writable_directory", lambda: tmp_path)

    def prepare(seconds):
        entries = [fresh(tmp_path, entry, seconds) for entry in ENTRIES]
        here = []
        compiled = jit.Entry.compiled
        monkeypatch.setattr(jit.Entry, "compiled", lambda self: here.append(self.name) or compiled(self))
        with contextlib.redirect_stderr(io.StringIO()) as said:
            jit.prepare(entries)
        answer(entries[0])
        assert all(files.usable(entry.path(), entry.key) for entry in entries)
        return here, said.getvalue().splitlines()

    return prepare


def test_long_compilations_are_shared_with_children_and_announced_once(prepared):
    here, said = prepared(seconds=together.WORTH_A_CHILD)
    assert len(here) == len(set(here)) >= 1
    assert len(said) == 2
    assert said[0].startswith("bunraku: compiling for this machine (once; kept on disk), about")
    assert said[1].startswith("bunraku: compiled in")


def test_short_ones_are_compiled_here(prepared):
    here, _ = prepared(seconds=0.2)
    assert here == [entry.name for entry in ENTRIES]


def test_children_that_cannot_be_started_are_not_missed(prepared, monkeypatch):
    def no_more(*args, **kws):
        raise OSError("Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", no_more)
    here, _ = prepared(seconds=together.WORTH_A_CHILD)
    assert here == [entry.name for entry in ENTRIES]


def test_children_that_fail_are_not_missed(prepared, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    here, _ = prepared(seconds=together.WORTH_A_CHILD)
    assert here == [entry.name for entry in ENTRIES]


@pytest.fixture
def sleeping(monkeypatch):
    """Children that only sleep: those that have been started."""
    started, start = [], subprocess.Popen

    def asleep(command, **options):
        started.append(start([command[0], "-c", "import time; time.sleep(100)"], **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", asleep)
    return started


def test_ctrl_c_ends_the_children(prepared, sleeping, monkeypatch):
    def interrupted(entry, path):
        raise KeyboardInterrupt

    monkeypatch.setattr(together, "make", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prepared(seconds=together.WORTH_A_CHILD)
    assert sleeping
    assert all(process.returncode is not None and process.stdout.closed for process in sleeping)


SLOW = "runs.multistep_run.run_multistep"
LEFT = f"""
import gc, sys, bunraku.compiler.together as together
from pathlib import Path
children = together.Children(2, ["{SLOW}"], Path(sys.argv[1]))
print(*(process.pid for process in children._running))
del children
gc.collect()
print("and on")
"""


def test_children_do_not_outlive_the_process_and_are_never_left_to_the_garbage_collector(tmp_path):
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-X", "dev", "-W", "error", "-c", LEFT, str(tmp_path)], capture_output=True,
                          text=True, timeout=900, env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)})
    assert (done.returncode, done.stderr) == (0, "")
    pids, rest = done.stdout.splitlines()
    assert rest == "and on"
    assert len(pids.split()) == 2
    for pid in map(int, pids.split()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert time.monotonic() - begin < SOON
    assert not list(tmp_path.glob("*.code"))


def test_garbage_is_collected_while_children_run(tmp_path, sleeping):
    children = together.Children(2, ["any"], tmp_path)
    processes = list(children._running)
    left = weakref.ref(children)
    del children
    gc.collect()  # a warning is an error
    assert all(process.poll() is None for process in processes)
    left().stop()
    assert all(process.returncode is not None and process.stdout.closed for process in processes)
    gc.collect()
    assert left() is None


def test_ctrl_c_while_children_are_started_ends_those_that_run(tmp_path, sleeping, monkeypatch):
    start = together.subprocess.Popen

    def interrupted(command, **options):
        if sleeping:
            raise KeyboardInterrupt
        return start(command, **options)

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        together.Children(2, ["any"], tmp_path)
    assert len(sleeping) == 1
    assert sleeping[0].returncode is not None


def test_children_without_a_thread_to_listen_are_not_missed(tmp_path, sleeping, monkeypatch):
    def no_more(self):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(together.threading.Thread, "start", no_more)
        children = together.Children(2, ["any"], tmp_path)
    assert list(children) == []
    assert len(sleeping) == 1
    assert sleeping[0].returncode is not None


def test_a_disk_that_cannot_be_written_stops_nothing(tmp_path, monkeypatch):
    def full(path, code, key):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(files, "writable_directory", lambda: tmp_path)
    monkeypatch.setattr(files, "write", full)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    entries = [fresh(tmp_path, entry, together.WORTH_A_CHILD) for entry in ENTRIES]
    jit.prepare(entries)
    answer(entries[0])
    assert not list(tmp_path.glob("*.code"))


def test_files_in_the_current_folder_do_not_shadow_modules_in_children(prepared, tmp_path, monkeypatch):
    for name in ("json", "queue", "numba"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'marker')!r}, 'w').write('executed')")
    monkeypatch.chdir(tmp_path)
    prepared(seconds=together.WORTH_A_CHILD)
    assert not (tmp_path / "marker").exists()


def test_threads_may_compile_at_the_same_time():
    entries = [jit.Entry(entry.function, entry.label, entry.signature) for entry in ENTRIES]
    resolve = cpu_target.typing_context.resolve_function_type
    with ThreadPoolExecutor(4) as threads:
        codes = list(threads.map(lambda k: entries[k % 2].compiled(), range(4)))
    assert all(code.object for code in codes)
    assert cpu_target.typing_context.resolve_function_type == resolve
