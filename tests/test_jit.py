"""Compilation: the same answers without it, nothing stale from the cache, nothing compiled twice, and quickly there."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import answers
import bunraku as bk
from bunraku import jit
from oracle import close
from processes import PACKAGE, run
from structures import KINDS, random_tree


def test_without_compilation_the_answers_are_the_same():
    assert {part.kind for seed in answers.SEEDS for part in random_tree(seed, links=7).parts} == set(KINDS)
    code = "import answers, bunraku.jit\nprint(bunraku.jit.JIT_OFF, *answers.alone_and_in_batches().tolist())"
    shown, _ = run(code, NUMBA_DISABLE_JIT="1")
    off, *numbers = shown.split()
    assert off == "True"
    close(np.array(numbers, float), answers.alone_and_in_batches())


MOVE = """
import numpy as np, bunraku as bk
m = bk.Mechanism()
m.add_link("ball", joint=bk.Spherical(), mass=1.0, inertia=(1, 1, 1))
print(*m.integrate(m.neutral(), np.array([0.0, 0.0, 1.0])))
"""


@pytest.fixture(scope="module")
def edited(tmp_path_factory):
    """What a cheap kernel says and announces: on first use, on second use, after an edit in a helper, and quietly."""
    root = tmp_path_factory.mktemp("package")
    cache = {"NUMBA_CACHE_DIR": str(root / "cache"), "BUNRAKU_QUIET": ""}
    shutil.copytree(PACKAGE, root / "bunraku", ignore=shutil.ignore_patterns("__pycache__"))
    results = {"first": run(MOVE, root, **cache), "second": run(MOVE, root, **cache)}
    helper = root / "bunraku" / "algorithms" / "states.py"
    text = helper.read_text()
    assert "half = 0.5 * angle" in text
    helper.write_text(text.replace("half = 0.5 * angle", "half = 0.25 * angle"))
    results["edited"] = run(MOVE, root, **{**cache, "BUNRAKU_QUIET": "1"})
    return results


def test_an_edit_in_a_helper_file_is_noticed(edited):
    first, second, changed = (np.array(edited[key][0].split(), float) for key in ("first", "second", "edited"))
    assert np.allclose(first, [np.cos(0.5), 0, 0, np.sin(0.5)])
    assert np.array_equal(first, second)
    assert np.isclose(changed[3] / changed[0], np.tan(0.25))


def test_the_first_use_is_announced_and_only_that(edited):
    assert "compiling moves along joints" in edited["first"][1]
    assert edited["second"][1] == ""


def test_the_announcement_can_be_silenced(edited):
    assert edited["edited"][1] == ""


def test_kernels_are_only_in_folders_the_cache_watches():
    names = {"inline", "inner", "allocating", "entry", "njit"}
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            for decorator in getattr(node, "decorator_list", []):
                function = decorator.func if isinstance(decorator, ast.Call) else decorator
                if getattr(function, "id", getattr(function, "attr", "")) in names:
                    found.add(path.relative_to(PACKAGE).parts[0])
    assert found
    assert found <= set(jit.KERNEL_FOLDERS)


def test_kernels_import_nothing_the_cache_does_not_watch():
    """A helper outside those folders could change without the cache noticing."""
    watched = {f"bunraku.{folder}" for folder in jit.KERNEL_FOLDERS} | {"bunraku.jit", "bunraku.tolerances"}
    watched |= {"bunraku.errors", "bunraku.checks", "bunraku.terminal"}  # nothing compiled
    for folder in jit.KERNEL_FOLDERS:
        for path in (PACKAGE / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("bunraku."):
                    assert ".".join(node.module.split(".")[:2]) in watched, f"{path}: {node.module}"


def test_python_calls_entries_only():
    """A kernel called from Python would be compiled anew in every process, without a word."""
    for folder in ("evaluate", "simulation", "mechanism", "models", "io", "convert", "view", "cli"):
        for path in (PACKAGE / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bunraku.algorithms"):
                    assert all(name.name.isupper() for name in node.names), path


def test_kernels_of_another_lane_width_are_kept_apart():
    code = "from bunraku.jit import cache_directory; print(cache_directory())"
    assert run(code, BUNRAKU_LANE_WIDTH="2")[0] != run(code, BUNRAKU_LANE_WIDTH="4")[0]


def test_another_mechanism_compiles_nothing():
    from bunraku.entries import forward, inverse
    from bunraku.entries import mass_matrix as matrix

    entries = (forward.forward_plain, forward.forward_one, forward.forward_batch, inverse.inverse_one,
               matrix.matrix_one)
    for entry in entries:
        entry.load()
    before = [(entry.call, list(entry.call.signatures)) for entry in entries]
    for seed in range(20):
        tree = random_tree(seed, passive=seed % 2 == 0, springs=seed % 3 == 0)
        q, v, tau = tree.states(np.random.default_rng(seed), 2)
        bk.forward_dynamics(tree.m, q, v, tau)
        bk.forward_dynamics(tree.m, q[0], v[0], tau[0])
        bk.forward_dynamics(tree.m, q[0].astype(np.float32), v[0].tolist(), tau[0], external={"link0": np.ones(6)})
        bk.mass_matrix(tree.m, q[0])
    assert [(entry.call, list(entry.call.signatures)) for entry in entries] == before
    assert all(len(signatures) == 1 for _, signatures in before)


def best_of_three(code):
    """Seconds of the processor, not of the clock on the wall: the machine may be busy."""
    return min(float(run(code)[0]) for _ in range(3))


def test_importing_takes_little_more_than_importing_numba():
    clock = "import time\nstart = time.process_time()\n{}\nprint(time.process_time() - start)"
    ours = best_of_three("import numba\n" + clock.format("import bunraku"))
    assert ours < 0.2


def test_the_first_answer_takes_little_longer_than_importing_numba():
    """From disk nothing is compiled. The machine may be slow: both are measured here."""
    bk.forward_dynamics(*answers.example())  # so that it is on disk
    clock = "import time{}\nstart = time.process_time()\n{}\nprint(time.process_time() - start)"
    first = clock.format(", answers, bunraku as bk\nargs = answers.example()", "bk.forward_dynamics(*args)")
    reference = clock.format("", "import numba, numba.np.arraymath, scipy.linalg")
    assert min(best_of_three(first) / best_of_three(reference) for _ in range(2)) < 2.0


@pytest.mark.parametrize("width", ["3", "many"])
def test_a_lane_width_that_cannot_be_is_refused(width):
    done = subprocess.run([sys.executable, "-c", "import bunraku.spatial.lanes"], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE.parent), "BUNRAKU_LANE_WIDTH": width})
    assert "BUNRAKU_LANE_WIDTH" in done.stderr


def test_without_a_writable_cache_folder_kernels_are_compiled_for_the_process(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    code = ("import bunraku as bk; m = bk.models.chain(2); print(m.integrate(m.neutral(), [1.0, 2.0]));"
            "from bunraku.jit import cache_directory; print(cache_directory())")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE.parent), "NUMBA_CACHE_DIR": str(blocked),
                               "BUNRAKU_QUIET": ""})
    answer, folder = done.stdout.splitlines()
    assert answer == "[1. 2.]"
    assert done.stderr.count("cannot be kept on disk") == 1
    assert not Path(folder).exists()  # tidied up at the end


# A small kernel in a process of its own, with a cache of its own
ALONE = """
import contextlib, io, json, sys
import numpy as np
from bunraku import jit
from small_kernel import quaternion_of as kernel

def load():
    # as a new process would: (its answer, the lines on standard error)
    entry = jit.Entry(kernel.function, kernel.label, kernel.signatures)
    out = np.zeros(4)
    with contextlib.redirect_stderr(io.StringIO()) as said:
        entry.call(np.array([0.0, 0.0, 1.0]), out)
    return out.tolist(), said.getvalue()
"""

DAMAGE = """
results = {"first": load(), "again": load()}
folder = jit.cache_directory()
(index,), (code,), (marker,) = (list(folder.rglob(f"*quaternion_of*{end}")) for end in (".nbi", ".nbc", ".done"))

def flipped(data, place):
    return data[:place] + bytes([data[place] ^ 16]) + data[place + 1:]

for name, path, change in (
    ("code truncated", code, lambda data: data[:len(data) // 2]),
    ("code empty", code, lambda data: b""),
    ("code garbage", code, lambda data: bytes(range(256)) * 20),
    ("code with a bit flipped", code, lambda data: flipped(data, len(data) // 2)),
    ("index truncated", index, lambda data: data[:20]),
    ("index garbage", index, lambda data: b"\\x80\\x04garbage"),
    ("marker garbage", marker, lambda data: b"\\x00{"),
    ("marker empty", marker, lambda data: b""),
):
    path.write_bytes(change(path.read_bytes()))
    results[name] = load()
    results[name + ", again"] = load()
code.unlink()
results["code missing"] = load()
index.unlink(), code.unlink(), marker.unlink()
results["nothing"] = load()
print(json.dumps(results))
"""

FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))  # writing more then fails
results = [load(), load()]
left = [str(p) for p in jit.cache_directory().rglob("*") if p.suffix in (".nbc", ".nbi", ".done") or "tmp" in p.name]
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(json.dumps([*results, load(), load(), left]))
"""

LINE = "bunraku: the stored machine code of half a turn was damaged; compiled again\n"


def alone(code, folder):
    return json.loads(run(f"{ALONE}\n{code}", NUMBA_CACHE_DIR=str(folder), BUNRAKU_QUIET="")[0])


def test_damaged_files_of_the_cache_are_compiled_again_and_that_is_said(tmp_path):
    for name, (answer, said) in alone(DAMAGE, tmp_path).items():
        assert np.allclose(answer, [np.cos(0.5), 0, 0, np.sin(0.5)], rtol=1e-14), name
        damaged = name not in ("first", "nothing") and not name.endswith("again")
        assert said.count(LINE) == damaged, name
        assert bool(said) == (damaged or name in ("first", "nothing")), name


def test_a_full_disk_is_said_once_and_does_not_stop_anything(tmp_path):
    *results, left = alone(FULL, tmp_path)
    for answer, _ in results:
        assert np.allclose(answer, [np.cos(0.5), 0, 0, np.sin(0.5)])
    first, second, third, fourth = (said for _, said in results)
    assert "cannot be kept on disk" in first
    assert "File too large" in first
    assert "cannot be kept" not in second
    assert not left
    assert "compiling half a turn" in third  # with room again, it is kept again
    assert "damaged" not in third
    assert fourth == ""
