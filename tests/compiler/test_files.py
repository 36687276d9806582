"""Machine code in the cache: for any state of folders and files, results are right and nothing is compiled twice."""

import contextlib
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import small_kernel
from bunraku.compiler import code_files as files
from bunraku.compiler import targets
from bunraku.compiler.loading import Loaded
from damage import DAMAGE
from powers import ordinary, skip_if_impossible
from processes import PACKAGE, SUPPORT

PATH = os.pathsep.join([str(PACKAGE.parent), str(SUPPORT)])
CALL = """
import numpy as np
from small_kernel import quaternion_of
out = np.zeros(4)
quaternion_of.call(np.array([0.0, 0.0, 1.0]), out)
print(*out)
"""
RIGHT = [np.cos(0.5), 0, 0, np.sin(0.5)]


def start(code=CALL, **environment):
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            preexec_fn=ordinary,
                            env={**os.environ, "PYTHONPATH": PATH, "BUNRAKU_QUIET": "", "BUNRAKU_LEVEL": "",
                                 **environment})


def finish(process):
    """Its lines on standard error; its answer must be right."""
    out, said = process.communicate(timeout=900)
    skip_if_impossible(process)
    assert process.returncode == 0, said
    assert np.allclose(np.array(out.split(), float), RIGHT, rtol=1e-14)
    return said.splitlines()


def said(cache, **environment):
    return finish(start(NUMBA_CACHE_DIR=str(cache), **environment))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache folder with the machine code of the small kernel: its one file."""
    folder = tmp_path_factory.mktemp("cache")
    assert len(said(folder)) == 2  # compiling ..., compiled
    path, = folder.rglob("*.code")
    return path


@pytest.fixture
def cache(filled, tmp_path):
    """A copy of that folder, to be damaged; the file in it."""
    path = tmp_path / filled.parent.name / filled.name
    path.parent.mkdir()
    path.write_bytes(filled.read_bytes())
    yield path
    path.parent.chmod(0o755)


@pytest.mark.parametrize("kind", ["truncated", "a header of garbage", "unknown functions"])
def test_damaged_code_is_compiled_again_which_is_said_once_and_mends_it(cache, kind):
    cache.write_bytes(DAMAGE[kind](cache.read_bytes()))
    first, *rest = said(cache.parents[1])
    assert "the stored machine code of half a turn" in first
    assert len(rest) == 2  # compiling ..., compiled
    assert said(cache.parents[1]) == []


@pytest.mark.parametrize("kind", sorted(DAMAGE))
def test_every_damage_is_noticed(filled, tmp_path, kind):
    path = tmp_path / filled.name
    path.write_bytes(DAMAGE[kind](filled.read_bytes()))
    with pytest.raises(files.Unusable):
        Loaded(files.read(path, small_kernel.quaternion_of.key), small_kernel.quaternion_of._symbols)


def test_code_in_a_folder_that_is_read_only_is_used(cache):
    cache.parent.chmod(0o555)
    assert said(cache.parents[1]) == []


@pytest.mark.parametrize("mode", [0o555, 0o000])
def test_a_folder_that_cannot_be_written_or_read_is_said_once(tmp_path, mode):
    tmp_path.chmod(mode)
    try:
        lines = said(tmp_path)
        assert sum("cannot be kept on disk" in line for line in lines) == 1
        assert not any("(once; kept on disk)" in line for line in lines)
        assert len(lines) <= 4
    finally:
        tmp_path.chmod(0o755)


@pytest.mark.parametrize("where", ["a file", "a device"])
def test_a_folder_that_cannot_be_made_is_said_once(tmp_path, where):
    (tmp_path / "a file").write_text("not a folder")
    lines = said({"a file": tmp_path / "a file", "a device": "/dev/null"}[where])
    assert sum("cannot be kept on disk" in line for line in lines) == 1
    assert len(lines) == 3


def test_without_a_home_and_a_folder_for_temporary_files_it_works(tmp_path):
    code = f"import os, pwd, tempfile\ntempfile._candidate_tempdir_list = lambda: ['/dev/null']\n{CALL}"
    code = f"import pwd\ndef unknown(uid): raise KeyError(uid)\npwd.getpwuid = unknown\n{code}"
    environment = {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": "", "PYTHONDONTWRITEBYTECODE": "1"}
    process = start(f"import os; os.environ.pop('HOME', None)\n{code}", **environment)
    assert sum("cannot be kept on disk" in line for line in finish(process)) == 1


def test_processes_that_start_together_compile_once(tmp_path):
    """Each that compiles leaves a mark."""
    code = f"""
import os, time
from bunraku.jit import Entry
compiled = Entry.compiled
def slowly(self):
    open({str(tmp_path / 'marks')!r}, "a").write("x")
    time.sleep(1.0)
    return compiled(self)
Entry.compiled = slowly
{CALL}"""
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(start(code, NUMBA_CACHE_DIR=str(tmp_path / "cache"))) for _ in range(3)]
        for process in processes:
            finish(process)
    assert (tmp_path / "marks").read_text() == "x"


def test_a_cache_that_is_only_read_counts_as_used(cache):
    """Other versions of the package delete what was not used for a month."""
    long_ago = time.time() - 300 * 86400
    os.utime(cache.parent, (long_ago, long_ago))
    assert said(cache.parents[1]) == []
    assert time.time() - cache.parent.stat().st_mtime < 3600


def test_another_version_of_numba_has_another_cache(monkeypatch):
    files.machine_key.cache_clear()
    ours = files.machine_key()
    for version, same in (("0.999.0", False), (".".join([*files.numba.__version__.split(".")[:2], "99"]), True)):
        monkeypatch.setattr(files.numba, "__version__", version)
        files.machine_key.cache_clear()
        assert (files.machine_key() == ours) == same
    monkeypatch.undo()
    files.machine_key.cache_clear()
    assert files.machine_key() == ours


# -- kinds of processors -----------------------------------------------------------------------------------------------


@pytest.fixture
def processor(monkeypatch):
    """Make this machine one with other features, and ask for a level."""
    def be(asked, **without):
        has = targets.llvm.get_host_cpu_features()
        for level in targets.LEVELS:
            has.update(dict.fromkeys(level.needs, True))
        has.update({name.replace("_", "."): False for name in without})
        monkeypatch.setattr(targets.llvm, "get_host_cpu_features", lambda: has)
        monkeypatch.setattr(targets.sys, "platform", "linux")
        monkeypatch.setattr(targets.platform, "machine", lambda: "x86_64")
        monkeypatch.setenv("BUNRAKU_LEVEL", asked)
        clear()

    def clear():
        for function in (targets.level, targets.levels_here, targets.check_runs_here):
            function.cache_clear()

    yield be
    monkeypatch.undo()
    clear()


@pytest.mark.parametrize(("without", "best"), [
    ((), "x86-64-v4"), (("avx512bw",), "x86-64-v3"), (("fma",), "x86-64-v2"), (("sse4_2",), "native")])
def test_the_best_level_is_chosen_that_the_processor_has_all_features_of(processor, without, best):
    processor("", **dict.fromkeys(without))
    assert targets.level().name == best
    targets.check_runs_here()


@pytest.mark.parametrize(("asked", "without"), [("x86-64-v4", "avx512dq"), ("x86-64-v3", "bmi2"), ("aarch64", "fma")])
def test_a_level_that_the_processor_cannot_run_is_refused(processor, asked, without):
    processor(asked, **{without: None})
    assert targets.level().name == asked  # compiling for it is allowed
    with pytest.raises(targets.SettingError, match=f"BUNRAKU_LEVEL is '{asked}'.*here it can be .*x86-64-v2"):
        targets.check_runs_here()


@pytest.mark.parametrize("level", ["aarch64", "x86-64-v3"])
def test_a_level_of_another_architecture_is_an_error_not_a_crash(tmp_path, level):
    if level in (known.name for known in targets.levels_here()):
        pytest.skip("that is this machine's")
    process = start(NUMBA_CACHE_DIR=str(tmp_path), BUNRAKU_LEVEL=level)
    _, complaint = process.communicate(timeout=900)
    assert process.returncode == 1
    assert f"BUNRAKU_LEVEL is '{level}'" in complaint.splitlines()[-1]
    assert not list(tmp_path.rglob("*.code"))


def test_an_unknown_level_is_refused():
    process = start("import bunraku.jit; bunraku.jit.level()", BUNRAKU_LEVEL="x86-64-v5")
    assert "BUNRAKU_LEVEL is 'x86-64-v5'; it can be x86-64-v4" in process.communicate(timeout=900)[1]
