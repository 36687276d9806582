"""Ensembles: the same results on every executor, failures by case, files that go on after a crash."""

import contextlib
import functools
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import bunraku as bk
import ensemble_cases
import mpi
from bunraku.simulation.batches.results_file import FRAME, MAGIC, pack, unpack
from processes import PACKAGE, SUPPORT, start
from processes import run as run_code

CASES = [0.1 * k for k in range(24)]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(SUPPORT)])}


@pytest.fixture(scope="module")
def expected():
    return [ensemble_cases.energy(case) for case in CASES]


@pytest.fixture(scope="module")
def threads():
    with ThreadPoolExecutor(2) as pool:
        yield pool


def same(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a["q"].tobytes() == b["q"].tobytes()
        assert (a["steps"], a["energy"]) == (b["steps"], b["energy"])


# -- executors ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def loky():
    yield pytest.importorskip("loky").get_reusable_executor(max_workers=2)
    pytest.importorskip("loky").get_reusable_executor().shutdown()


@contextlib.contextmanager
def processes():
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        yield pool


EXECUTORS = {"none": contextlib.nullcontext, "threads": lambda: ThreadPoolExecutor(3), "processes": processes,
             "loky": loky}


@pytest.mark.parametrize("name", EXECUTORS)
def test_results_are_the_same_on_every_executor(name, expected):
    with EXECUTORS[name]() as executor:
        same(bk.ensemble(ensemble_cases.energy, CASES, executor), expected)


ELSEWHERE = """
import ensemble_cases, bunraku as bk
{imports}
if __name__ == "__main__":
    with {executor} as executor:
        found = bk.ensemble(ensemble_cases.energy, [0.1 * k for k in range(24)], executor, {file!r})
        failures = bk.ensemble(ensemble_cases.troubled, range(8), executor)
        assert [type(x).__name__ for x in failures[2:4]] == ["tuple", "KeyError"], failures
"""


def elsewhere(tmp_path, imports, executor, command):
    """What a script with that executor writes to its file."""
    script, file = tmp_path / "script.py", tmp_path / "results"
    script.write_text(ELSEWHERE.format(imports=imports, executor=executor, file=str(file)))
    done = subprocess.run([*command, str(script)], env=ENVIRONMENT, capture_output=True, text=True, timeout=900,
                          cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return list(bk.load_ensemble(file).values())


def test_results_are_the_same_on_a_dask_cluster(tmp_path, expected):
    pytest.importorskip("distributed")
    cluster = ("LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, "
               "Client(cluster) as client, client.get_executor()")
    imports = "from distributed import Client, LocalCluster"
    same(elsewhere(tmp_path, imports, cluster, [sys.executable]), expected)


def test_results_are_the_same_on_mpi_ranks(tmp_path, expected):
    command = mpi.command(3, "-m", "mpi4py.futures")  # fails, not skips, in continuous integration
    with pytest.MonkeyPatch.context() as patch:
        for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
            patch.setitem(ENVIRONMENT, name, "1")
        same(elsewhere(tmp_path, "from mpi4py.futures import MPIPoolExecutor", "MPIPoolExecutor()", command), expected)


# -- failures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("filed", [False, True])
def test_a_failed_case_holds_its_exception_and_the_others_go_on(tmp_path, threads, filed):
    file = tmp_path / "results" if filed else None
    for _ in range(1 + filed):  # computed, then read
        found = bk.ensemble(ensemble_cases.troubled, range(21), threads, file)
        assert [k for k, x in enumerate(found) if isinstance(x, Exception)] == [3, 5, 10, 12, 17, 19]
        assert isinstance(found[3], KeyError)
        assert found[3].args == ("shoulder",)
        assert isinstance(found[10], bk.StateError)
        assert str(found[10]) == "case of 10"
        assert str(found[12]) == "Odd: 12 and more"         # cannot be made again from its message
        assert "in troubled" in found[12].__notes__[0]
        assert found[6] == (36, pytest.approx([0.0]))


def test_failed_cases_are_computed_again_on_demand(tmp_path, threads):
    log, file = tmp_path / "log", tmp_path / "results"
    wrong = [(k, str(log) if k % 2 else str(tmp_path / "none" / "log"), 0.0) for k in range(6)]
    found = bk.ensemble(ensemble_cases.logged, wrong, threads, file)
    assert [isinstance(x, FileNotFoundError) for x in found] == [True, False] * 3
    (tmp_path / "none").mkdir()
    again = bk.ensemble(ensemble_cases.logged, wrong, threads, file)
    assert [isinstance(x, FileNotFoundError) for x in again] == [True, False] * 3
    assert [x["number"] for x in bk.ensemble(ensemble_cases.logged, wrong, threads, file, retry=True)] == list(range(6))
    assert sorted(log.read_text().split()) == ["1", "3", "5"]


def test_a_worker_that_dies_is_named_by_its_cases(tmp_path):
    with pytest.raises(bk.SimulationError, match=r"cases .*5.* were under way"):
        bk.ensemble(ensemble_cases.dies, range(12), file=tmp_path / "results")


# -- files -------------------------------------------------------------------------------------------------------------


def test_what_is_in_the_file_is_not_computed_again(tmp_path, threads):
    log, file = tmp_path / "log", tmp_path / "results"
    cases = [(k, str(log), 0.0) for k in range(30)]
    bk.ensemble(ensemble_cases.logged, cases[:20], threads, file)
    found = bk.ensemble(ensemble_cases.logged, cases, threads, file)   # ten more
    assert Counter(map(int, log.read_text().split())) == Counter(range(30))
    assert [x["number"] for x in found] == list(range(30))
    assert list(bk.load_ensemble(file)) == list(range(30))


def test_files_of_other_cases_or_functions_are_refused_by_name(tmp_path, threads):
    file = tmp_path / "results"
    bk.ensemble(ensemble_cases.troubled, [0, 1, 2], threads, file)
    with pytest.raises(bk.ModelError, match=r"results has results of other cases: case 1 there"):
        bk.ensemble(ensemble_cases.troubled, [0, 8, 2], threads, file)
    with pytest.raises(bk.ModelError, match=r"result of case 2; only 1 cases"):
        bk.ensemble(ensemble_cases.troubled, [0], threads, file)
    with pytest.raises(bk.ModelError, match=r"of the function 'ensemble_cases.troubled', not of"):
        bk.ensemble(ensemble_cases.energy, [0, 1, 2], threads, file)
    bound = tmp_path / "bound"
    bk.ensemble(functools.partial(max, 5), [1, 7], threads, bound)
    assert bk.ensemble(functools.partial(max, 5), [1, 7], threads, bound) == [5, 7]
    with pytest.raises(bk.ModelError, match="other bound arguments"):
        bk.ensemble(functools.partial(max, 6), [1, 7], threads, bound)


def test_a_function_that_has_changed_is_a_warning(tmp_path, threads):
    (tmp_path / "changing.py").write_text("def f(x):\n    return x + 1\n")
    code = """if True:
        import sys, warnings
        sys.path.insert(0, {folder!r})
        import changing, bunraku as bk
        from concurrent.futures import ThreadPoolExecutor
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(bk.ensemble(changing.f, [1, 2], ThreadPoolExecutor(1), {file!r}), *[w.message for w in caught])
        """.format(folder=str(tmp_path), file=str(tmp_path / "results"))
    assert run_code(code)[0] == "[2, 3]\n"
    (tmp_path / "changing.py").write_text("def f(x):\n    return x + 100 + 1\n")
    assert "[2, 3]" in (said := run_code(code)[0])
    assert "the source of 'changing.f' has changed" in said


VALUES = [None, True, 3, -0.1, float("inf"), 2 + 1j, "text", b"\x00bytes", [1, (2, "x")], {"a": [1.5]},
          {3: None, (1,): 2}, np.float64(0.1), np.int32(-4), np.arange(6.0).reshape(2, 3)[:, ::2], np.zeros((0, 3)),
          np.array(["a", "bc"]), np.array([np.nan, 1e300])]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back_with_their_types(value):
    found = unpack(pack([value, {"beside": np.arange(3)}]))[0]
    assert type(found) is type(value)
    assert repr(found) == repr(value)
    if isinstance(value, np.ndarray):
        assert (found.dtype, found.shape) == (value.dtype, value.shape)
        assert found.tobytes() == np.ascontiguousarray(value).tobytes()


def test_trajectories_and_mechanisms_come_back():
    m = bk.models.human(16)
    sim = bk.Simulation(m, progress=False)
    sim.connect("ground", "left_hand", bk.Spherical(), name="grip")
    sim.run(until=0.02)
    sim.cut("grip")
    path = sim.run(until=0.04)
    found, mechanism = unpack(pack((path, m)))
    assert [s.q.tobytes() for s in found.segments] == [s.q.tobytes() for s in path.segments]
    assert found.events == path.events
    assert (mechanism.name, mechanism.nv, mechanism.mass) == (m.name, m.nv, m.mass)


@pytest.mark.parametrize("value", [object(), {1, 2}, np.array([None]), lambda: 0])
def test_what_cannot_be_stored_is_named(tmp_path, threads, value):
    with pytest.raises(bk.ModelError, match=r"case 0 returned a.*return None, numbers, text"):
        bk.ensemble(lambda case: value, [1], threads, tmp_path / "results")
    with pytest.raises(bk.ModelError, match="case 1 holds a"):
        bk.ensemble(len, ["text", value], threads, tmp_path / "others")


# -- crashes -----------------------------------------------------------------------------------------------------------


def test_a_record_cut_anywhere_is_computed_again(tmp_path, threads):
    file, log = tmp_path / "results", tmp_path / "log"
    cases = [(k, str(log), 0.0) for k in range(4)]
    whole = bk.ensemble(ensemble_cases.logged, cases, threads, file)
    data = file.read_bytes()
    last = data.rindex(MAGIC)
    for end in [0, 3, 5, *np.linspace(last, len(data) - 1, 7).astype(int).tolist()]:
        file.write_bytes(data[:end])
        log.unlink()
        found = bk.ensemble(ensemble_cases.logged, cases, threads, file)
        assert [x["root"].tobytes() for x in found] == [x["root"].tobytes() for x in whole]
        assert len(log.read_text().split()) == (1 if end >= last else 4)
        assert len(file.read_bytes()) == len(data)


def test_damage_in_the_middle_is_an_error_that_says_where(tmp_path, threads):
    file = tmp_path / "results"
    bk.ensemble(ensemble_cases.troubled, range(3), threads, file)
    data = bytearray(file.read_bytes())
    second = data.index(MAGIC, 1)
    data[second + FRAME.size + 3] ^= 1
    file.write_bytes(data)
    with pytest.raises(bk.ModelError, match=f"damaged at byte {second}, after 0 results"):
        bk.ensemble(ensemble_cases.troubled, range(3), threads, file)
    file.write_text("something else")
    with pytest.raises(bk.ModelError, match="is not a file of results"):
        bk.ensemble(ensemble_cases.troubled, range(3), threads, file)
    assert file.read_text() == "something else"
    with pytest.raises(bk.MissingFileError):
        bk.load_ensemble(tmp_path / "none")


KILLED = """
import sys, ensemble_cases, bunraku as bk
from concurrent.futures import ThreadPoolExecutor
if __name__ == "__main__":
    cases = [(k, {log!r}, 0.004) for k in range({count})]
    bk.ensemble(ensemble_cases.logged, cases, {executor}, {file!r})
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
@pytest.mark.parametrize(("executor", "kills"), [("ThreadPoolExecutor(2)", 5), ("None", 2)])
def test_killed_at_random_and_resumed_everything_is_there_once(tmp_path, executor, kills):
    script, file, log = tmp_path / "script.py", tmp_path / "results", tmp_path / "log"
    count, rng, killed = 500, random.Random(kills), 0
    script.write_text(KILLED.format(log=str(log), count=count, executor=executor, file=str(file)))
    while True:
        before = set(bk.load_ensemble(file)) if file.exists() and file.stat().st_size else set()
        log.write_bytes(b"")
        process = subprocess.Popen([sys.executable, str(script)], env=ENVIRONMENT)
        deadline = time.monotonic() + 60.0
        while not log.stat().st_size and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)                                        # until cases are computed
        if killed < kills:
            time.sleep(rng.uniform(0.0, 0.25))
            process.kill()
        ended = process.wait(60)
        time.sleep(0.5 if executor == "None" and ended else 0.0)    # workers end with it
        computed = list(map(int, log.read_text().split()))
        assert not before & set(computed)                           # what the file had was not computed again
        assert len(set(computed)) == len(computed)
        if ended == 0:
            break
        killed += 1
    found = bk.load_ensemble(file)
    assert list(found) == list(range(count))
    assert all(x["root"].tobytes() == np.sqrt(np.arange(k, k + 40.0)).tobytes() for k, x in found.items())
    assert file.read_bytes().count(MAGIC) == 1 + count              # one record each
    assert killed == kills


def test_two_processes_do_not_write_to_one_file(tmp_path, threads):
    pytest.importorskip("fcntl")
    script, file, log = tmp_path / "script.py", tmp_path / "results", tmp_path / "log"
    log.write_bytes(b"")
    script.write_text(KILLED.format(log=str(log), count=20_000, executor="ThreadPoolExecutor(1)", file=str(file)))
    process = subprocess.Popen([sys.executable, str(script)], env=ENVIRONMENT)
    try:
        while not log.stat().st_size and process.poll() is None:
            time.sleep(0.02)
        with pytest.raises(bk.ModelError, match="another process is writing to it"):
            bk.ensemble(ensemble_cases.logged, [], threads, file)
    finally:
        process.kill()
        process.wait()


def test_two_ensembles_of_a_process_do_not_write_to_one_file(tmp_path, threads):
    file = tmp_path / "results"

    def nested(case):
        return bk.ensemble(len, ["a"], threads, file)

    (found,) = bk.ensemble(nested, [1], threads, file)
    assert "another ensemble of this process" in str(found)


# -- rollouts ----------------------------------------------------------------------------------------------------------


def rollout_cases(m, count):
    rng = np.random.default_rng(1)
    return [{"q": rng.normal(size=m.nq), "params": [float(k % 9)]} for k in range(count)]


def test_cases_of_a_rollout_go_in_lanes_with_the_same_bits_in_any_company(tmp_path):
    m = bk.models.chain(3)
    function = bk.RolloutCase(m, times=[0.1, 0.2], solver="rk4", step=1e-3, actuation=ensemble_cases.hold)
    cases = rollout_cases(m, 70)
    file = tmp_path / "results"
    found = bk.ensemble(function, cases, file=file)
    alone = [function(case) for case in cases[:5]]
    together = bk.rollout(m, [c["q"] for c in cases], times=[0.1, 0.2], solver="rk4", step=1e-3,
                          actuation=ensemble_cases.hold, params=[c["params"] for c in cases])
    read = bk.load_ensemble(file)
    for k, x in enumerate(found):
        assert x.q.tobytes() == together.q[k].tobytes() == read[k].q.tobytes()
        assert x.trajectory().t.tolist() == [0.1, 0.2]
    assert [x.q.tobytes() for x in alone] == [x.q.tobytes() for x in found[:5]]
    by_hand = bk.Simulation(m, cases[7]["q"], solver="rk4", step=1e-3, actuation=ensemble_cases.hold,
                            params=cases[7]["params"], progress=False).run(until=0.2)
    np.testing.assert_allclose(found[7].q[-1], by_hand.q[-1], rtol=1e-10)
    with pytest.raises(bk.ModelError, match="another rollout of chain of 3: mechanism or settings differ"):
        bk.ensemble(bk.RolloutCase(m, times=[0.1, 0.2], solver="rk4", step=2e-3), cases, file=file)


def test_rollouts_of_several_mechanisms_and_wrong_cases(threads):
    two = {"short": bk.models.chain(2), "long": bk.models.chain(4)}
    function = bk.RolloutCase(two, until=0.05)
    cases = [{"mechanism": "long"}, {"mechanism": "short", "q": [0.5, 0.0]}, {"mechanism": "lng"}, {"q": [1.0]}, 7,
             {"mechanism": "short", "w": 1}, {"mechanism": "short", "v": [1.0]}, {"mechanism": "long", "q": [0.1] * 4},
             {"mechanism": "short", "q": [np.nan, 0.0]}]
    found = bk.ensemble(function, cases, threads)
    assert [x.mechanism.name for x in found[:2]] == ["chain of 4", "chain of 2"]
    assert found[7].q.shape == (1, 4)
    expected = bk.rollout(two["short"], [0.5, 0.0], until=0.05)
    np.testing.assert_allclose(found[1].q, expected.q, rtol=1e-10)
    for k, words in ((2, "did you mean 'long'"), (3, "does not name its mechanism"), (4, "this one is 7"),
                     (5, "has 'w'"), (6, r"v of a case has shape \(1,\); it must be \(2,\)"), (8, "cannot start")):
        with pytest.raises(bk.BunrakuError, match=words):
            raise found[k]


# -- documentation and benchmark ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "says"), [("sweep.py", "200 cases, 0 failed"),
                                            ("lanes.py", "Trajectory of chain of 3")])
def test_the_scripts_of_the_page_run(tmp_path, name, says):
    page = (Path(__file__).parents[2] / "docs" / "ensembles.md").read_text(encoding="utf-8")
    script = tmp_path / name
    script.write_text(next(code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if f"# {name}" in code))
    done = subprocess.run([sys.executable, str(script)], env=ENVIRONMENT, capture_output=True, text=True, timeout=900,
                          cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout


def test_the_benchmark_compares_results_and_judges():
    from bunraku.bench import bench_ensemble as ensemble

    result = ensemble.run(ensemble.Options(cases=60, rounds=1), quiet=True)
    assert list(result["rows"]) == ["one process", "two copies", "ensemble", "with a file", "in lanes"]
    assert "60 cases, with a file" in ensemble.text(result)


# -- calls -------------------------------------------------------------------------------------------------------------


def test_wrong_calls_say_what_to_do(tmp_path, threads):
    with pytest.raises(bk.ModelError, match="top level of a module; loky sends any"):
        bk.ensemble(lambda case: case, [1])
    with pytest.raises(bk.ModelError, match="cannot be called"):
        bk.ensemble(3, [1])
    with pytest.raises(bk.ModelError, match="needs `submit`"):
        bk.ensemble(len, [1], executor=4)
    with pytest.raises(bk.MissingFileError, match="there is no folder"):
        bk.ensemble(len, ["a"], threads, tmp_path / "none" / "file")
    with pytest.raises(bk.ModelError, match="q is not a setting: cases have it"):
        bk.RolloutCase(bk.models.chain(2), q=[0.0, 0.0], until=1.0)
    assert bk.ensemble(len, []) == []


def test_a_script_without_a_guard_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import math, bunraku as bk\nbk.ensemble(math.sqrt, [1.0, 4.0])\n")
    done = subprocess.run([sys.executable, str(script)], env=ENVIRONMENT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 1
    assert 'under `if __name__ == "__main__":`' in done.stderr.splitlines()[-1]


def test_a_prompt_is_told_where_functions_must_be():
    out, _ = run_code("""if True:
        import bunraku as bk
        def f(x): return x
        try:
            bk.ensemble(f, [1, 2])
        except bk.ModelError as error:
            print(error)""")
    assert "typed at a prompt or in a notebook" in out


def test_ctrl_c_ends_the_workers_and_keeps_the_results(tmp_path):
    script, file, log = tmp_path / "script.py", tmp_path / "results", tmp_path / "log"
    log.write_bytes(b"")
    script.write_text(KILLED.format(log=str(log), count=20_000, executor="None", file=str(file)))
    with start([sys.executable, str(script)], env=ENVIRONMENT, stderr=subprocess.PIPE) as process:
        try:
            while log.stat().st_size < 100 and process.poll() is None:
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=300)
        finally:
            process.kill()
    assert "KeyboardInterrupt" in said
    done = len(log.read_text().split())
    time.sleep(0.3)
    assert len(log.read_text().split()) <= done + 200               # no worker goes on
    size = log.stat().st_size
    time.sleep(0.3)
    assert log.stat().st_size == size
    assert len(bk.load_ensemble(file)) > 0
