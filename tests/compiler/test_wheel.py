"""A wheel with machine code: nothing is compiled where it is installed, and if its code does not fit, everything works.

The wheel of these tests is built and installed as people do it, with the code of the few entries that USE needs, for
the best and the lowest level that this processor has.
"""

import fcntl
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from bunraku.compiler import code_files as files
from bunraku.compiler import loading, targets
from damage import DAMAGE
from powers import ordinary, skip_if_impossible

pytest.importorskip("hatchling")
TOP = Path(__file__).parents[2]
LEVELS = list(dict.fromkeys(level.name for level in (targets.levels_here()[0], targets.levels_here()[-1])))
pytestmark = pytest.mark.skipif(LEVELS == ["native"], reason="wheels have no machine code for this kind of machine")

USE = """
import numpy as np, bunraku as bk
m = bk.Mechanism()
m.add_link("arm", joint=bk.Revolute((0, 1, 0)), mass=1.0, com=(0.1, 0, -0.2), inertia=(0.1, 0.2, 0.3))
m.add_link("ball", "arm", bk.Spherical(), position=(0, 0, -0.5), mass=2.0, com=(0, 0, -0.2), inertia=(0.1, 0.1, 0.2))
v = np.linspace(-1, 1, m.nv)
q = m.integrate(m.neutral(), v)
print(*q, *m.difference(m.neutral(), q), *bk.inverse_dynamics(m, q, v, v))
"""
USED = """
import sys
from bunraku.jit import all_entries
print(*(entry.name for entry in all_entries() if entry.call != entry._first_call), file=sys.stderr)
"""


def run(code, package, cache, **environment):
    """Numbers on standard output, lines on standard error, of a process with the package from this folder."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=900, cwd="/",
                          preexec_fn=ordinary, env={**os.environ, "PYTHONPATH": str(package), "BUNRAKU_QUIET": "",
                                                    "BUNRAKU_LEVEL": "", "NUMBA_CACHE_DIR": str(cache), **environment})
    skip_if_impossible(done)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr.splitlines()


def built(folder, *command, **environment):
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, cwd=TOP,
                          env={**os.environ, "BUNRAKU_WHEEL_LEVELS": "", **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    wheel, = folder.glob("bunraku-*.whl")
    return wheel


def shared(factory, name, make):
    """A folder that only one of the workers of pytest makes."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            make(partial)
            partial.rename(folder)
    return folder


@pytest.fixture(scope="session")
def here(tmp_path_factory):
    """Compiled on the spot, from the sources: a folder with `cache`, `numbers` and the `names` of entries."""
    def make(folder):
        numbers, said = run(USE + USED, TOP / "src", folder / "cache")
        assert "compiling for this machine" in said[0]
        (folder / "numbers").write_text(" ".join(numbers))
        (folder / "names").write_text(said[-1])

    return shared(tmp_path_factory, "compiled-here", make)


@pytest.fixture(scope="session")
def installed(tmp_path_factory, here):
    """The wheel, built and installed: a folder with `dist` and `packages`."""
    def make(folder):
        names = (here / "names").read_text().split()
        wheel = built(folder / "dist", "tools/build_wheel.py", "--here", "--levels", *LEVELS, "--entries", *names,
                      "--out", folder / "dist")
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target",
                        folder / "packages", wheel], check=True, capture_output=True)

    return shared(tmp_path_factory, "wheel", make)


@pytest.fixture
def copy(installed, tmp_path):
    """An installation of one's own, to be damaged."""
    shutil.copytree(installed / "packages", tmp_path / "packages")
    return tmp_path / "packages"


def test_results_are_bitwise_those_of_code_compiled_here_and_nothing_is_compiled(here, installed, tmp_path):
    numbers, said = run(USE, installed / "packages", tmp_path / "cache")
    assert numbers == (here / "numbers").read_text().split()
    assert said == []
    assert not (tmp_path / "cache").exists()


def test_where_nothing_can_be_written_it_is_the_same(here, installed, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o555)
    numbers, said = run(USE, installed / "packages", cache, PYTHONDONTWRITEBYTECODE="1")
    assert (numbers, said) == ((here / "numbers").read_text().split(), [])


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_has_the_same_results(here, installed, tmp_path, level):
    numbers, said = run(USE, installed / "packages", tmp_path / "cache", BUNRAKU_LEVEL=level)
    assert said == []
    ours, theirs = (np.array(text, float) for text in (numbers, (here / "numbers").read_text().split()))
    assert np.abs(ours - theirs).max() < 1e-13 * np.abs(theirs).max()


@pytest.mark.parametrize("kind", ["truncated", "a header of garbage", "other sources", "unknown functions",
                                  "another function"])
def test_code_that_cannot_be_used_is_compiled_with_one_notice_in_all(here, copy, tmp_path, kind):
    """Of two files, the second is always damaged in the same way. `test_files.py` has all kinds of damage."""
    code = copy / "bunraku" / "machine_code" / LEVELS[0]
    first, second = next(code.glob("*integrate*.code")), next(code.glob("*difference*.code"))
    first.write_bytes(DAMAGE[kind](first.read_bytes()))
    second.write_bytes(DAMAGE["empty"](second.read_bytes()))
    numbers, said = run(USE, copy, tmp_path / "cache")
    assert numbers == (here / "numbers").read_text().split()
    assert sum("the machine code of this installation" in line for line in said) == 1
    assert len(said) == 5  # and each of the two is announced when it is compiled
    compiled = [path.name.rsplit("-", 1)[0] for path in (tmp_path / "cache").rglob("*.code")]
    assert sorted(compiled) == sorted([first.stem, second.stem])


def test_once_compiled_instead_it_is_not_mentioned_again(here, copy, tmp_path):
    path = next((copy / "bunraku" / "machine_code" / LEVELS[0]).glob("*integrate*.code"))
    path.write_bytes(b"")
    said = [run(USE, copy, tmp_path / "cache")[1] for _ in range(2)]
    assert [len(lines) for lines in said] == [3, 0]


def test_an_entry_that_the_wheel_lacks_is_compiled(here, copy, tmp_path):
    next((copy / "bunraku" / "machine_code" / LEVELS[0]).glob("*integrate*.code")).unlink()
    numbers, said = run(USE, copy, tmp_path / "cache")
    assert numbers == (here / "numbers").read_text().split()
    assert not any("installation" in line for line in said)


# -- what is in it -----------------------------------------------------------------------------------------------------


def test_the_wheel_is_for_every_machine_and_has_each_level(here, installed):
    wheel, = (installed / "dist").glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if "machine_code" in name}
    names = (here / "names").read_text().split()
    assert inside == {f"bunraku/machine_code/{level}/{name}.code" for level in LEVELS for name in names}


def test_code_refers_only_to_functions_that_it_lists_or_that_the_c_library_has(installed):
    """LLVM ends the process over any other. The C library is the system's: memcpy, sin and the like."""
    loading._prepare_process()
    for path in (installed / "packages").rglob("*.code"):
        told, code = path.read_bytes().split(b"\n", 3)[2:]
        assert undefined(code), path
        for name in undefined(code) - set(json.loads(told)["needs"]):
            assert not name.startswith(("Py", "NRT", "numba")), (path, name)
            assert loading.llvm.address_of_symbol(name), (path, name)


def undefined(code):
    """Names of an ELF file's symbols that others must define."""
    def unpack(kind, place):
        return struct.unpack_from(f"<{kind}", code, place)

    start, size, count = *unpack("Q", 0x28), *unpack("HH", 0x3a)
    sections = [unpack("IIQQQQIIQQ", start + size * k) for k in range(count)]
    table, = (section for section in sections if section[1] == 2)
    texts = sections[table[6]][4]
    symbols = [unpack("IBBH", place) for place in range(table[4] + 24, table[4] + table[5], 24)]
    return {code[texts + name:code.index(b"\0", texts + name)].decode() for name, _, _, home in symbols if home == 0}


def test_without_being_asked_a_wheel_has_no_machine_code(tmp_path):
    wheel = built(tmp_path, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, TOP)
    inside = zipfile.ZipFile(wheel).namelist()
    assert "bunraku/jit.py" in inside
    assert not any("machine_code" in name for name in inside)


def test_for_an_editable_installation_nothing_is_compiled_even_if_asked(tmp_path):
    code = ("from hatchling.builders.wheel import WheelBuilder\n"
            f"list(WheelBuilder('.').build(directory={str(tmp_path)!r}, versions=['editable'], hooks_only=True))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=TOP,
                          env={**os.environ, "BUNRAKU_WHEEL_LEVELS": "all", "BUNRAKU_QUIET": ""})
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize(("levels", "needed"), [("", []), ("all", ["numba", "numpy", "scipy"])])
def test_only_wheels_with_machine_code_need_the_compiler(levels, needed):
    code = "from hatchling.build import get_requires_for_build_wheel; print(*get_requires_for_build_wheel())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=TOP,
                          env={**os.environ, "BUNRAKU_WHEEL_LEVELS": levels})
    assert [re.split("[<>=,]", word)[0] for word in sorted(done.stdout.split())] == needed


def test_an_unknown_level_is_refused_by_name(tmp_path):
    code = f"from hatchling.build import build_wheel; build_wheel({str(tmp_path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=TOP,
                          env={**os.environ, "BUNRAKU_WHEEL_LEVELS": "x86-64-v9"})
    assert "BUNRAKU_WHEEL_LEVELS names x86-64-v9" in done.stderr


def test_the_levels_of_wheels_are_those_of_the_compiler():
    from bunraku.cli.compile import LEVELS as OF_THE_VERB

    hook = (TOP / "hatch_build.py").read_text()
    assert set(OF_THE_VERB) == set(targets.SHIPPED)
    assert f"LEVELS = {OF_THE_VERB}".replace("'", '"') in hook
    assert files.SHIPPED.name == "machine_code"
