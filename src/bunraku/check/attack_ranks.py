"""MPI ranks killed, interrupted or raising at random times: none waits forever, and the recording is readable.

A run on two or three ranks records to a file. At a random moment one rank gets SIGKILL, SIGTERM or SIGINT, or its
program raises. All ranks must end within SOON, with a message, and the file must be readable, with a motion
that agrees bit for bit with an undisturbed one as far as it goes. Needs `bunraku[mpi,record]`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from bunraku.check import Case
from bunraku.errors import MissingExtra
from bunraku.models import chain
from bunraku.simulation import Simulation, load_trajectory
from bunraku.simulation.crew.mpi_ranks import mpiexec

TITLE = "ranks of MPI killed, interrupted or raising: all end within 10 s, recordings stay readable"
UNIT = "runs"
SEEDS, SHORT = 1000, 6
LIMIT = 120.0
SOON = 10.0        # [s]
UNTIL = 60.0       # [s] simulated: longer than any run lasts
LINKS = 24

PROGRAM = """
import sys, time, threading
import numpy as np
import bunraku as bk
from bunraku.check.attack_ranks import build
out, fails = sys.argv[1], float(sys.argv[2])
sim = build()
with sim.record_to(out):
    sim.advance(1e-3)
    print("begun", flush=True)
    begin = time.perf_counter()
    k = 0
    while sim.t < {until}:
        k += 1
        sim.advance(sim.t + 0.01)
        if k % 7 == 3:
            sim.connect("ground", "link{last}", bk.Spherical(), name="grip")
        if k % 7 == 5:
            sim.cut("grip")
        if fails and time.perf_counter() - begin > fails:
            raise ValueError("on purpose")
"""


def build(workers: int | None = None) -> Simulation:
    m = chain(LINKS)
    return Simulation(m, 0.3 * np.sin(np.arange(m.nq)), rtol=1e-8, workers=workers)


def missing() -> str:
    """Missing requirements of this attack."""
    try:
        mpiexec(1)
        import mcap  # noqa: F401
    except (MissingExtra, ImportError) as error:
        return str(error)
    return ""


def case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    ranks, delay = int(rng.integers(2, 4)), float(rng.uniform(0.0, 1.5))
    how = ("raise", signal.SIGKILL, signal.SIGTERM, signal.SIGINT)[int(rng.integers(4))]
    with tempfile.TemporaryDirectory(prefix="bunraku-check-") as folder:
        _run(Path(folder), ranks, delay, how, rng)
    return Case(1, {})


def _run(folder: Path, ranks: int, delay: float, how, rng) -> None:
    script, out = folder / "program.py", folder / "motion.mcap"
    script.write_text(PROGRAM.format(until=UNTIL, last=LINKS - 1))
    fails = str(max(delay, 1e-3) if how == "raise" else 0.0)
    command, environment = mpiexec(ranks, "-m", "bunraku.mpi", str(script), str(out), fails)
    run = subprocess.Popen(command, env={**environment, "BUNRAKU_QUIET": "1", "TMPDIR": str(folder)},
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                           start_new_session=True)
    try:
        assert run.stdout is not None
        if run.stdout.readline().strip() != "begun":
            raise AssertionError(f"the ranks have not begun: {run.communicate(timeout=SOON)[1][-500:]}")
        processes = _ranks_of(script, run.pid)
        if how != "raise" and len(processes) != ranks:  # those that raise may have ended by now
            raise AssertionError(f"{len(processes)} of {ranks} ranks are running")
        if how != "raise":
            time.sleep(delay)
            victim = processes[int(rng.integers(ranks))] if how is not signal.SIGINT else run.pid
            os.kill(victim, how)
            delay = 0.0
        begin = time.perf_counter()
        try:
            _, said = run.communicate(timeout=delay + SOON)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{ranks} ranks still run {SOON:g} s after {how}") from None
        assert run.returncode != 0, f"{how}: the run ended as if nothing had happened"
        assert said.strip() or how is signal.SIGINT, f"{how}: nothing was said"
        while time.perf_counter() - begin < delay + SOON and _ranks_of(script, run.pid):
            time.sleep(0.1)
        assert not _ranks_of(script, run.pid), f"ranks are left over after {how}"
        _compare(out)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()


def _ranks_of(script: Path, starter: int) -> list[int]:
    """Processes whose command line has the script in it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) not in (starter, os.getpid()):
            try:
                line = (entry / "cmdline").read_bytes().split(b"\0")
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if str(script).encode() in line and state != "Z" and b"-m" in line and b"bunraku.mpi" in line and (
                    not line[0].endswith(b"mpiexec")):
                found.append(int(entry.name))
    return sorted(found)


def _compare(out: Path) -> None:
    """The recorded part must equal the motion of one process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recorded = load_trajectory(out)
    first = recorded.segments[0]
    assert len(first.t) > 0
    sim = build(workers=1)
    sim.advance(1e-3)
    alone = sim.trajectory.segments[0]
    n = min(len(first.t), 3)
    assert np.allclose(first.q[:n], alone.q[:n], atol=1e-9), "the recorded motion is another one"
    for segment in recorded.segments:
        assert np.isfinite(segment.q).all()
        assert (np.diff(segment.t) >= 0).all()
