"""Machine code on disk: nothing stale, nothing compiled twice, and damage does no harm."""

import ast
import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import bunraku as bk
from bunraku import jit
from bunraku.compiler import code_files as files
from one_entry import integrate_alone
from processes import PACKAGE, run
from structures import random_tree


def ball():
    """A mechanism whose every rotation is a turn by a vector."""
    m = bk.Mechanism()
    m.add_link("ball", joint=bk.Spherical(), mass=1.0, inertia=(1, 1, 1))
    return m


@pytest.fixture(scope="module")
def edited(tmp_path_factory):
    """What a cheap entry says and announces: on first use, on second use, after an edit in a helper, and quietly."""
    root = tmp_path_factory.mktemp("package")
    cache = {"NUMBA_CACHE_DIR": str(root / "cache"), "BUNRAKU_QUIET": ""}
    shutil.copytree(PACKAGE, root / "bunraku", ignore=shutil.ignore_patterns("__pycache__"))
    code = integrate_alone(ball(), [1, 0, 0, 0], [0, 0, 1])
    results = {"first": run(code, root, **cache), "second": run(code, root, **cache)}
    helper = root / "bunraku" / "algorithms" / "states.py"
    text = helper.read_text()
    assert "half = 0.5 * angle" in text
    helper.write_text(text.replace("half = 0.5 * angle", "half = 0.25 * angle"))
    results["edited"] = run(code, root, **{**cache, "BUNRAKU_QUIET": "1"})
    return results


def test_an_edit_in_a_helper_file_is_noticed(edited):
    first, second, changed = (np.array(edited[key][0].split(), float) for key in ("first", "second", "edited"))
    assert np.allclose(first, [np.cos(0.5), 0, 0, np.sin(0.5)])
    assert np.array_equal(first, second)
    assert np.isclose(changed[3] / changed[0], np.tan(0.25))


def test_the_first_use_is_announced_and_only_that(edited):
    before, after = edited["first"][1].splitlines()
    assert re.fullmatch(r"bunraku: compiling for this machine \(once; kept on disk\), about \d+ s \.\.\.", before)
    assert re.fullmatch(r"bunraku: compiled in [\d.]+ s", after)
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
    assert found <= {*files.KERNEL_FOLDERS, "bench"}  # a loop that measures the processor's peak


def test_kernels_import_nothing_the_cache_does_not_watch():
    """A helper outside those folders could change without the cache noticing."""
    watched = {f"bunraku.{name.removesuffix('.py')}" for name in (*files.KERNEL_FOLDERS, *files.KERNEL_FILES)}
    watched |= {"bunraku.errors", "bunraku.checks", "bunraku.terminal"}  # nothing compiled
    for folder in (*files.KERNEL_FOLDERS, "compiler"):
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
    code = "from bunraku.compiler.code_files import cache_directory; print(cache_directory())"
    assert run(code, BUNRAKU_LANE_WIDTH="2")[0] != run(code, BUNRAKU_LANE_WIDTH="4")[0]


def evaluate(seed):
    """Public functions that use several entries, of a random tree, with arguments of various kinds."""
    tree = random_tree(seed, passive=seed % 2 == 0, springs=seed % 3 == 0)
    q, v, tau = tree.states(np.random.default_rng(seed), 2)
    bk.forward_dynamics(tree.m, q, v, tau)
    bk.forward_dynamics(tree.m, q[0], v[0], tau[0])
    bk.forward_dynamics(tree.m, q[0].astype(np.float32), v[0].tolist(), tau[0], external={"link0": np.ones(6)})
    bk.inverse_dynamics(tree.m, q[0], v[0], tau[0])
    bk.mass_matrix(tree.m, q[0])


def test_another_mechanism_compiles_nothing(monkeypatch):
    evaluate(0)
    monkeypatch.setattr(jit.Entry, "compiled", lambda self: pytest.fail(f"{self.name} is compiled again"))
    for seed in range(1, 20):
        evaluate(seed)


def test_without_a_writable_cache_folder_kernels_are_compiled_for_the_process(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    code = integrate_alone(bk.models.chain(2), [0, 0], [1, 2])
    code += "from bunraku.compiler.code_files import writable_directory; print(writable_directory())"
    shown, said = run(code, NUMBA_CACHE_DIR=str(blocked), BUNRAKU_QUIET="")
    answer, folder = shown.splitlines()
    assert answer == "1.0 2.0"
    assert said.count("cannot be kept on disk") == 1
    assert not Path(folder).exists()  # tidied up at the end


# -- damage ----------------------------------------------------------------------------------------------------------

# A small kernel in a process of its own, with a cache of its own
ALONE = """
import contextlib, io, json
import numpy as np
from bunraku import jit
from bunraku.compiler import code_files as files
from small_kernel import quaternion_of as kernel

def load():
    # as a new process would, which has said nothing yet: (its answer, the lines on standard error)
    files._said.clear()
    entry = jit.Entry(kernel.function, kernel.label, kernel.signature)
    out = np.zeros(4)
    with contextlib.redirect_stderr(io.StringIO()) as said:
        entry.call(np.array([0.0, 0.0, 1.0]), out)
    return out.tolist(), said.getvalue()
"""

DAMAGE = """
results = {"first": load(), "again": load()}
path = kernel.path()
whole = path.read_bytes()
magic, checksum, header, code = whole.split(b"\\n", 3)

def flipped(data, place):
    return data[:place] + bytes([data[place] ^ 16]) + data[place + 1:]

for name, content in {
    "truncated": whole[:len(whole) // 2],
    "one byte short": whole[:-1],
    "only a header": b"\\n".join([magic, checksum, header]),
    "only a line": magic + b"\\n",
    "empty": b"",
    "longer": whole + b"\\0",
    "garbage": bytes(range(256)) * 20,
    "zeros": bytes(len(whole)),
    "another format": flipped(magic, 3) + whole[len(magic):],
    "a garbled checksum": whole.replace(checksum, b"\\xff" * len(checksum)),
    "a garbled header": whole.replace(header, b"\\x80\\x04garbage"),
    "another header": whole.replace(header, b"{}"),
    "a bit flipped in the header": flipped(whole, whole.index(header) + 12),
    "a bit flipped in the code": flipped(whole, len(whole) - len(code) // 2),
    "the last bit flipped": flipped(whole, len(whole) - 1),
}.items():
    path.write_bytes(content)
    results[name] = load()
    results[name + ", again"] = load()
path.unlink()
results["missing"] = load()
print(json.dumps(results))
"""

FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))  # writing more then fails
results = [load(), load()]
left = [str(path) for path in files.cache_directory().rglob("*") if path.suffix in (".code", ".partial")]
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(json.dumps([*results, load(), load(), left]))
"""

DAMAGED = "bunraku: the stored machine code of half a turn is damaged; it is compiled again\n"
COMPILED = "bunraku: compiled in"


def alone(code, folder):
    return json.loads(run(f"{ALONE}\n{code}", NUMBA_CACHE_DIR=str(folder), BUNRAKU_QUIET="")[0])


def test_damaged_files_of_the_cache_are_compiled_again_and_that_is_said(tmp_path):
    results = alone(DAMAGE, tmp_path)
    assert len(results) > 30
    for name, (answer, said) in results.items():
        assert np.allclose(answer, [np.cos(0.5), 0, 0, np.sin(0.5)], rtol=1e-14), name
        assert said.count(DAMAGED) == (name not in ("first", "missing") and not name.endswith("again")), name
        assert said.count(COMPILED) == (not name.endswith("again")), name


def test_a_full_disk_is_said_once_and_does_not_stop_anything(tmp_path):
    *results, left = alone(FULL, tmp_path)
    for answer, _ in results:
        assert np.allclose(answer, [np.cos(0.5), 0, 0, np.sin(0.5)])
    first, second, third, fourth = (said for _, said in results)
    assert "cannot be kept on disk" in first
    assert "File too large" in first
    assert "cannot be kept" not in second
    assert not left
    assert COMPILED in third  # with room again, it is kept again
    assert "damaged" not in third
    assert fourth == ""


# -- several processes -----------------------------------------------------------------------------------------------

SLOW = """
import time
compiled, count = jit.Entry.compiled, []

def slowly(self):
    count.append(self)
    time.sleep(1.0)
    return compiled(self)

jit.Entry.compiled = slowly
answer, _ = load()
print(json.dumps([answer, len(count)]))
"""


def test_of_several_processes_at_once_one_compiles(tmp_path):
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda _: alone(SLOW, tmp_path), range(3)))
    assert sum(count for _, count in results) == 1
    for answer, _ in results:
        assert np.allclose(answer, [np.cos(0.5), 0, 0, np.sin(0.5)])
