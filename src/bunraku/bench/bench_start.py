"""Seconds to the first result, cold and warm: the compilation time seen by a new user.

Every row is a typical first use, in its own processes: *cold* with an empty cache, *warm* with the cache of the cold
one. Wall time is from the start of the process to its end; processor time includes its children, also
those that go on compiling when it has ended. Versions beside each other (this one, another revision, a wheel) only need
the public names that the rows use; their answers are compared.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bunraku
from bunraku.bench import machine
from bunraku.bench.report import painter, target_lines
from bunraku.bench.timing import Progress
from bunraku.errors import LoadError, ModelError

PACKAGE = Path(bunraku.__file__).parent
TIMER = Path(__file__).with_name("processor_time.py")

FIGURE = """
import json, numpy as np, bunraku as bk
m = bk.models.human(dof=34)
q, v = m.neutral(), np.linspace(-1.0, 1.0, m.nv)
"""
TELL = "\nprint(json.dumps(np.ravel(answer).tolist()))"
SIMULATE = FIGURE + """
sim = bk.Simulation(m, q, 0.1 * v, solver="tsit5", progress=False)
sim.run(until=0.05)
"""
CONNECT = """
sim.connect("ground", "left_hand", bk.Spherical(), name="grip")
sim.run(until=0.06)
"""
ENTRIES = """
import importlib, pkgutil, bunraku
from bunraku.compiler.code_files import KERNEL_FOLDERS
from bunraku.jit import Entry
entries = {}
for folder in KERNEL_FOLDERS:
    package = importlib.import_module(f"bunraku.{folder}")
    for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        for thing in vars(importlib.import_module(found.name)).values():
            if isinstance(thing, Entry):
                entries[thing.name] = thing
"""
LOAD_ALL = ENTRIES + """
for entry in entries.values():
    entry.load()
print(len(entries))
"""
SIDE_BY_SIDE = ENTRIES + """
import os, subprocess, sys
names = sorted(entries, key=lambda name: -entries[name].seconds)
command = [sys.executable, "-m", "bunraku.compiler", *names]
children = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(len(os.sched_getaffinity(0)))]
assert not any([child.wait() for child in children])
print(len(entries))
"""


@dataclass(frozen=True)
class Row:
    """Something to do in a new process: Python code that prints its answer, or arguments of the program `bunraku`."""

    name: str
    code: str = ""
    program: tuple[str, ...] = ()
    accuracy: float = 1e-9    # to which answers of different versions agree, relative
    compiler: bool = False    # needs the package bunraku.compiler
    ships: bool = True        # makes sense where machine code is shipped


IMPORT, FORWARD = "import", "first forward_dynamics"
SIMULATION, CONNECTION = "first Simulation.run", "first connect in it"
DEMO, ALL, ABREAST = "bunraku demo", "all entries, one process", "all entries, side by side"
ROWS = (
    Row(IMPORT, "import bunraku\nprint([])"),
    Row(FORWARD, FIGURE + "answer = bk.forward_dynamics(m, q, v)" + TELL),
    Row(SIMULATION, SIMULATE + "answer = sim.q" + TELL, accuracy=1e-3),
    Row(CONNECTION, SIMULATE + CONNECT + "answer = sim.q" + TELL, accuracy=1e-3),
    Row("first mass_matrix", FIGURE + "answer = bk.mass_matrix(m, q)" + TELL),
    Row("first inverse_dynamics", FIGURE + "answer = bk.inverse_dynamics(m, q, v, v)" + TELL),
    Row(DEMO, program=("demo", "--json", "--out", "demo"), accuracy=1e-3),
    Row(ALL, LOAD_ALL, accuracy=np.inf, compiler=True),
    Row(ABREAST, SIDE_BY_SIDE, accuracy=np.inf, compiler=True, ships=False),
)
CALLS = tuple(row.name for row in ROWS if row.name.startswith("first"))
DEMO_NUMBERS = ("links", "mass", "seconds", "energy_start", "energy_end", "work")


@dataclass(frozen=True)
class Version:
    """A bunraku to measure: the folder in which its package lies."""

    title: str
    folder: Path
    shipped: bool = False

    def can(self, row: Row) -> bool:
        return (row.ships or not self.shipped) and (
            not row.compiler or (self.folder / "bunraku" / "compiler" / "__main__.py").exists())


def run(before: str | None = None, wheel: str | None = None, only: Sequence[str] = (),
        quiet: bool = False) -> dict:
    """Measure rows of this version, of another revision or folder, and of a wheel; targets with what was measured."""
    rows = [row for row in ROWS if not only or any(word in row.name for word in only)]
    if not rows:
        raise ModelError(f"no row has {' or '.join(map(repr, only))} in its name: {', '.join(r.name for r in ROWS)}")
    load = os.getloadavg()[0]
    with contextlib.ExitStack() as stack:
        here = Version("this version", PACKAGE.parent, (PACKAGE / "machine_code").exists())
        versions = [here]
        if before:
            versions.append(stack.enter_context(_earlier(before)))
        if wheel:
            versions.append(stack.enter_context(_installed(wheel)))
        progress = Progress(len(versions) * len(rows), quiet)
        measured = [_measure(version, rows, progress) for version in versions]
        progress.close()
    return {"bunraku": bunraku.__version__, "machine": machine.describe(), "versions": measured,
            "agreement": _agreement(measured, rows), "targets": [t for v in measured for t in _judged(v)], "load": load}


# -- versions --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _earlier(name: str):
    """Sources in a folder, or of a revision, checked out into a temporary one."""
    if Path(name).is_dir():
        root = Path(name).resolve()
        yield Version(name, root / "src" if (root / "src").is_dir() else root)
        return
    git = ["git", "-C", str(PACKAGE.parents[1]), "worktree"]
    with tempfile.TemporaryDirectory(prefix="bunraku-before-") as folder:
        path = Path(folder) / "before"
        done = subprocess.run([*git, "add", "--detach", str(path), name], capture_output=True, text=True)
        if done.returncode:
            raise LoadError(f"{name} is neither a folder nor a revision that git can check out here: "
                            f"{done.stderr.strip()}")
        try:
            _bytecode(path / "src")
            yield Version(name, path / "src")
        finally:
            subprocess.run([*git, "remove", "--force", str(path)], capture_output=True)


@contextlib.contextmanager
def _installed(wheel: str):
    """A wheel in a temporary folder, without its dependencies."""
    if not Path(wheel).is_file():
        raise LoadError(f"{wheel}: there is no such file")
    with tempfile.TemporaryDirectory(prefix="bunraku-wheel-") as folder:
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, wheel]
        done = subprocess.run(install, capture_output=True, text=True)
        if done.returncode:
            raise LoadError(f"{wheel} cannot be installed: {done.stderr.strip()}")
        _bytecode(Path(folder))
        yield Version(Path(wheel).name, Path(folder), shipped=True)


def _bytecode(folder: Path) -> None:
    """Precompile Python bytecode, as after an earlier import of the package."""
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(folder)], capture_output=True)


# -- measurements ----------------------------------------------------------------------------------------------------


def _measure(version: Version, rows, progress) -> dict:
    out = []
    with tempfile.TemporaryDirectory(prefix="bunraku-start-") as folder:
        place = Path(folder)
        where = Row("where it lies", "import json, bunraku\nprint(json.dumps(bunraku.__file__))")
        found = _timed(version, where, place, place / "none")["answer"]
        if Path(found).resolve().parents[1] != version.folder.resolve():
            raise ModelError(f"{version.title}: Python imports bunraku from {found} instead of {version.folder}")
        for k, row in enumerate(rows):
            if version.can(row):
                progress(f"{version.title[:20]}: {row.name}")
                cold, warm = (_timed(version, row, place, place / f"cache{k}") for _ in range(2))
                answer, again = cold.pop("answer"), warm.pop("answer")
                if _difference(answer, again) > 1e-9:
                    raise ModelError(f"{version.title}: {row.name} gives another answer from the cache")
                out.append({"row": row.name, "cold": cold, "warm": warm, "answer": answer})
            progress.done()
    return {"title": version.title, "shipped": version.shipped, "rows": out}


def _timed(version: Version, row: Row, place: Path, cache: Path) -> dict:
    """{"wall", "processor", "answer"} of one process."""
    environment = {**os.environ, "PYTHONPATH": str(version.folder), "NUMBA_CACHE_DIR": str(cache), "BUNRAKU_QUIET": "1",
                   "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    command = ["-c", row.code] if row.code else ["-m", "bunraku", *row.program]
    if row.program and importlib.util.find_spec("matplotlib") is None:
        command.append("--no-picture")
    done = subprocess.run([sys.executable, str(TIMER), sys.executable, *command], cwd=place, env=environment,
                          capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    if told["status"]:
        raise ModelError(f"{version.title}: {row.name} failed: {told['stderr'].strip()}")
    answer = json.loads(told["stdout"])
    if row.program:
        answer = [*(answer[name] for name in DEMO_NUMBERS), *answer["forces_max"].values()]
    return {"wall": told["wall"], "processor": told["processor"], "answer": answer}


def _difference(a, b) -> float:
    """Largest difference of two answers, relative to their largest number."""
    a, b = np.ravel(a).astype(float), np.ravel(b).astype(float)
    if a.shape != b.shape:
        return np.inf
    return float(np.max(np.abs(a - b) / np.maximum(np.abs(a).max(), 1e-300))) if a.size else 0.0


def _agreement(measured, rows) -> dict:
    """The largest difference of each row between this version and the others; an error if it is too large."""
    known = {row.name: row for row in rows}
    found: dict[str, float] = {}
    first = {row["row"]: row["answer"] for row in measured[0]["rows"]}
    for version in measured[1:]:
        for row in version["rows"]:
            if row["row"] in first and np.isfinite(known[row["row"]].accuracy):
                difference = _difference(first[row["row"]], row["answer"])
                found[row["row"]] = max(difference, found.get(row["row"], 0.0))
                if not difference <= known[row["row"]].accuracy:
                    raise ModelError(f"{row['row']}: the answer of {version['title']} differs by {difference:.1e} "
                                     "(relative): these versions cannot be compared")
    return found


# -- targets ---------------------------------------------------------------------------------------------------------


def _judged(version: dict) -> list[dict]:
    """Targets of a version as installed: from source, or as a wheel. Other revisions have none."""
    rows = {row["row"]: row for row in version["rows"]}
    wanted: list[tuple[str, Callable[[], float], float, tuple[str, ...]]]  # what, measured, target, rows needed

    def spent(name, kind):
        return rows[name]["cold"][kind]

    def compiling(name, kind):
        return spent(name, kind) - rows[name]["warm"][kind]

    def after_import(name):
        return lambda: spent(name, "wall") - spent(IMPORT, "wall")

    if version["shipped"]:
        wanted = [(f"wheel: {name} after the import, wall", after_import(name), 2.0, (IMPORT, name)) for name in CALLS]
        wanted += [("wheel: bunraku demo, wall", lambda: spent(DEMO, "wall"), 10.0, (DEMO,))]
    elif version["title"] == "this version":
        wanted = [
            (f"{FORWARD}, wall", lambda: spent(FORWARD, "wall"), 6.0, (FORWARD,)),
            (f"{SIMULATION}, wall", lambda: spent(SIMULATION, "wall"), 10.0, (SIMULATION,)),
            (f"{CONNECTION}, wall", lambda: spent(CONNECTION, "wall"), 15.0, (CONNECTION,)),
            ("compilation of the demo, processor", lambda: compiling(DEMO, "processor"), 45.0, (DEMO,)),
            ("compilation of the demo, wall", lambda: compiling(DEMO, "wall"), 30.0, (DEMO,)),
            ("all entries, processor", lambda: spent(ALL, "processor"), 200.0, (ALL,)),
        ]
    else:
        return []
    return [{"what": what, "measured": value(), "target": target, "unit": "s", "met": value() <= target}
            for what, value, target, needs in wanted if all(name in rows for name in needs)]


# -- words -----------------------------------------------------------------------------------------------------------


def text(result: dict, colour: bool = False) -> str:
    """A table per version, then every target."""
    paint = painter(colour)
    on = result["machine"]
    lines = [paint("1", f"bunraku {result['bunraku']}: seconds to the first result, in new processes"),
             f"{machine.line(on)}; other processes at the start: {result['load']:.1f} (load average)",
             "cold: nothing compiled before; warm: again, from the cache. Processor time includes child processes."]
    for version in result["versions"]:
        heading = f"{'cold:':>10}{'processor':>12}{'wall':>8}{'warm:':>10}{'processor':>12}{'wall':>8}"
        lines += ["", paint("4", f"  {version['title']:<28}{heading}")]
        lines += [f"  {row['row']:<28}" + "".join(f"{'':10}{row[when]['processor']:12.2f}{row[when]['wall']:8.2f}"
                                                  for when in ("cold", "warm")) for row in version["rows"]]
    if result["agreement"]:
        worst = max(result["agreement"], key=result["agreement"].__getitem__)
        lines += ["", f"answers of the versions agree to {result['agreement'][worst]:.0e} (relative; {worst})"]
    if result["targets"]:
        lines += ["", *target_lines(result["targets"], paint)]
    return "\n".join(line.rstrip() for line in lines)
