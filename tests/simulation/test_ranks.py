"""One mechanism on several ranks of MPI: the bits of one process, few floats, and no rank that waits forever."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import mpi
import rank_program

PROGRAM = Path(rank_program.__file__)


@pytest.mark.parametrize(("case", "ranks"), [("gear,3,2", 3), ("gear,3,2", 2), ("tsit5,2,4,dense", 2),
                                             ("implicit,2,5,short", 2), ("gear,2,6,driven", 2), ("rk4,5,7", 5),
                                             ("gear,3,2,jung", 3)])
def test_ranks_have_the_bits_of_threads(case, ranks, tmp_path):
    out = tmp_path / "out.npz"
    mpi.mpiexec(ranks, "-m", "bunraku.mpi", str(PROGRAM), case, str(out))
    found, here = np.load(out), rank_program.play(case)
    assert found["workers"] == min(ranks, int(case.split(",")[1]))
    for name, array in here.items():
        if name != "workers":
            assert np.array_equal(found[name], array), name


def test_command_line_needs_a_script():
    answer = mpi.mpiexec(2, "-m", "bunraku.mpi", check=False)
    assert answer.returncode != 0
    assert "usage" in answer.stderr


def test_run_on_ranks_writes_what_one_process_writes(tmp_path):
    import bunraku as bk

    files = [tmp_path / "ranks.mcap", tmp_path / "one.npz"]
    arguments = ("-m", "bunraku", "run", "hands", "--until", "0.1", "--workers", "2", "--out")
    mpi.mpiexec(2, *arguments, str(files[0]))
    subprocess.run([sys.executable, *arguments, str(files[1])], check=True, capture_output=True, env=mpi.environment())
    ranks, one = map(bk.load_trajectory, files)
    assert np.array_equal(ranks.t, one.t)
    assert np.array_equal(ranks.q, one.q)
    assert [e.text for e in ranks.events] == [e.text for e in one.events]


SEVERAL = """
import sys
import numpy as np
import bunraku as bk

sims = [bk.Simulation(m, np.full(m.nq, 0.1), workers=2, schedule=bk.schedule(m, 2, exactly=True))
        for m in (bk.models.chain(40), bk.models.chain(60))]
for k in range(1, 4):
    for sim in sims:
        sim.advance(0.01 * k)
        if k == 2:
            sim.connect("ground", sim.mechanism.link_names[-1], bk.Spherical(), name="grip")
del sim
first = sims.pop(0).q.copy()
sims[0].advance(0.04)
np.savez(sys.argv[1], first=first, second=sims[0].q)
"""


def test_several_simulations_of_a_program_have_shares_of_their_own(tmp_path):
    script = tmp_path / "several.py"
    script.write_text(SEVERAL)
    mpi.mpiexec(2, "-m", "bunraku.mpi", str(script), str(tmp_path / "ranks.npz"))
    subprocess.run([sys.executable, str(script), str(tmp_path / "threads.npz")], check=True, env=mpi.environment())
    found = [np.load(tmp_path / f"{name}.npz") for name in ("ranks", "threads")]
    for name in ("first", "second"):
        assert np.array_equal(found[0][name], found[1][name])


FAILS = """
import os, signal, sys, time, numpy as np, bunraku as bk
from bunraku.simulation.crew.mpi_ranks import join
m = bk.models.chain(60)
sim = bk.Simulation(m, np.full(m.nq, 0.2), rtol=1e-9, workers=2)
sim.advance(0.001)
open(os.path.join(os.path.dirname(__file__), "begun"), "w").close()
print("begun", flush=True)
{what}
sim.advance(1000.0)
"""


@pytest.mark.parametrize(("what", "words"), [
    ("raise ValueError('something of mine')", "something of mine"),
    ("sim = bk.Simulation(m, actuation=lambda t, q, v: 1 / 0, workers=2)", "division by zero"),
    ("signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # jobs in the background ignore Ctrl-C
     "import threading; threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()", "interrupted"),
])
def test_an_exception_ends_all_ranks(what, words, tmp_path):
    script = tmp_path / "fails.py"
    script.write_text(FAILS.format(what=what))
    answer = mpi.mpiexec(2, "-m", "bunraku.mpi", str(script), check=False)
    assert answer.returncode != 0
    assert words in answer.stderr
    assert time.time() - (tmp_path / "begun").stat().st_mtime < 100  # to start may take as long on a busy machine


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_rank_ends_the_others(victim, tmp_path):
    script = tmp_path / "goes_on.py"
    script.write_text(FAILS.format(what="pass"))
    with subprocess.Popen(mpi.command(2, "-m", "bunraku.mpi", str(script)), env=mpi.environment(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout.readline().strip() == "begun"
        ranks = [int(p) for p in subprocess.run(["pgrep", "-f", str(script)], capture_output=True, text=True,
                                                check=True).stdout.split() if int(p) != run.pid]
        assert len(ranks) == 2
        begin = time.perf_counter()
        os.kill(sorted(ranks)[victim], signal.SIGKILL)
        _, said = run.communicate(timeout=300)
        assert run.returncode != 0
        assert time.perf_counter() - begin < 100
        assert said.strip()


COUNTS = """
import json
from bunraku.bench import bench_ranks as bench
from bunraku.simulation.crew.mpi_ranks import ranks

def keep(sim, sims=[]):
    sims.append(sim)
    return sims

make = bench.bk.Simulation
bench.bk.Simulation = lambda *given, **options: keep(make(*given, **options))[-1]
rows = [bench.traffic(ranks(), links) for links in (40, 4100)]
posted = [sum(float(x[0, 0]) for x in sim._running.sharing.shared.crew.ask("posted")) for sim in keep(None)[:-1]]
print("found", json.dumps([rows, 8 * sum(posted) + ranks().bytes]))
"""


def test_bytes_across_mpi_do_not_grow_with_the_mechanism(tmp_path):
    """Of a step, whatever is recorded; counted by us, and by Open MPI itself."""
    script = tmp_path / "counts.py"
    script.write_text(COUNTS)
    monitor = {"OMPI_MCA_pml_monitoring_enable": "2", "OMPI_MCA_pml_monitoring_enable_output": "3",
               "OMPI_MCA_pml_monitoring_filename": str(tmp_path / "sent")}
    said = mpi.mpiexec(2, "-m", "bunraku.mpi", str(script), **monitor).stdout
    (few, many), total = json.loads(next(line for line in said.splitlines() if line.startswith("found"))[5:])
    steps = [found["step"] for row in (few, many) for found in row["records"].values()]
    assert len(steps) == 6
    assert 4 * 8 * 2 * (6 + 7) < min(steps) <= max(steps) < 4 * 8 * (90 + 27 + 18 + 12 + 2 * 7) + 100
    assert max(steps) - min(steps) < 4.0  # numbers of one byte or two in the orders
    for links, row in ((40, few), (4100, many)):
        for words, states in (("None", 1), ("all", 62)):
            part = row["records"][words]["record"] / (8 * 2 * links * states)
            assert 0.4 < part < 0.7  # that of the other rank, when it is read
    by_mpi = [line.split() for k in (0, 1) for line in (tmp_path / f"sent.{k}.prof").read_text().splitlines()]
    assert 0 <= sum(int(line[3]) for line in by_mpi if line[:1] == ["E"]) - total < 50  # its last word is "end"
