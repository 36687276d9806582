"""The tests themselves: one that hangs ends, and Ctrl-C is tested also where it is ignored (nohup, background jobs)."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent

HANGING = """
import numba, pytest, threading

@pytest.mark.parametrize("nogil", [True, False])
def test_in_compiled_code(nogil):
    @numba.njit(nogil=nogil)
    def forever(x):
        while x > 0.0:
            x = x + 1.0 if x < 1e300 else 1.0
        return x
    forever(1.0)

def test_waiting():
    threading.Event().wait()

def test_another_one():
    pass
"""


def pytest_with_ctrl_c_ignored(folder, *arguments, **environment):
    """Run pytest as nohup would; returns its exit code and what it prints."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # what a child inherits
    try:
        done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments], cwd=folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1000,
                              env={**os.environ, **environment})
    finally:
        signal.signal(signal.SIGINT, before)
    return done.returncode, done.stdout


def test_a_test_that_hangs_fails_and_the_others_go_on(tmp_path):
    shutil.copy(TESTS / "conftest.py", tmp_path)
    (tmp_path / "test_hanging.py").write_text(HANGING)
    code, shown = pytest_with_ctrl_c_ignored(tmp_path, "-n", "1", BUNRAKU_TEST_LIMIT="1.5")
    assert code == 1, shown
    assert "3 failed, 1 passed" in shown
    assert "crashed while running 'test_hanging.py::test_in_compiled_code[True]'" in shown
    assert "crashed while running 'test_hanging.py::test_waiting'" in shown
    assert "test_hanging.py\", line 11 in test_in_compiled_code" in shown  # where it hung


def test_ctrl_c_is_tested_also_where_it_is_ignored():
    code, shown = pytest_with_ctrl_c_ignored(
        TESTS, "-n", "0", "ivp/test_solve_ivp.py::test_ctrl_c_is_not_lost_while_python_is_called",
        "simulation/test_simulation.py::test_ctrl_c_leaves_the_partial_result",
        "simulation/test_ensemble.py::test_ctrl_c_ends_the_workers_and_keeps_the_results",
        "simulation/test_ranks.py::test_an_exception_ends_all_ranks", "cli/test_view.py", "-k",
        "ctrl_c or Ctrl-C or interrupted or threading", BUNRAKU_TEST_LIMIT="250")
    assert code == 0, shown
    assert shown.count(".") + shown.count("s") >= 5  # without MPI or viser some are skipped


ONE_FAILS = """
import signal

def test_ctrl_c_is_ignored():
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN

def test_another_one():
    pass
"""


def test_the_suite_is_repeated_in_all_ways_whatever_fails(tmp_path):
    (tmp_path / "test_one_fails.py").write_text(ONE_FAILS)
    tool = TESTS.parent / "tools" / "repeat_suite.py"
    done = subprocess.run([sys.executable, str(tool), "--times", "3", "--ways", "plain", "detached", "--out",
                           str(tmp_path / "kept"), str(tmp_path), "-p", "no:cacheprovider"], capture_output=True,
                          text=True, timeout=900)
    assert done.returncode == 1, done.stderr
    *rows, last = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [row[:4] for row in rows if len(row) > 1] == [["1", "plain", "1", "1"], ["2", "detached", "2", "0"],
                                                         ["3", "plain", "1", "1"]]
    assert done.stdout.count("test_one_fails::test_ctrl_c_is_ignored") == 2
    assert last[:5] == ["1", "of", "3", "runs", "passed,"]
    assert "assert" in (tmp_path / "kept" / "001-plain.log").read_text()
