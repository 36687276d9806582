"""Kill processes while they save, compile and run: saved files stay intact, and runs can be resumed.

The victims are forks of the process that runs the case, which has everything loaded and compiled; they end by SIGKILL
after a random time.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

from bunraku import jit
from bunraku.check import Case
from bunraku.compiler import code_files as files
from bunraku.mechanism import Spherical
from bunraku.models import human
from bunraku.simulation import Simulation, Trajectory
from bunraku.simulation.checkpoint import KEPT
from bunraku.simulation.records.trajectory import Event
from bunraku.simulation.simulation import running

TITLE = "SIGKILL while saving, compiling, running: files stay whole, runs go on to the last bit, the cache heals"
UNIT = "kills"
SEEDS, SHORT = 250, 8
LIMIT = 300.0
KILLS = 4            # in a case
STOPS = [0.01 * k for k in range(1, 41)]  # [s] of simulated time; checkpoints are saved there
CHANGE = 20          # at this stop the figure lets go


def case(seed: int) -> Case:
    """One of four attacks in turn, each with several kills."""
    rng = np.random.default_rng(seed)
    attack = (_trajectory, _checkpoint, _running, _compiling)[seed % 4]
    with tempfile.TemporaryDirectory(prefix="bunraku-check-") as folder:
        worst = attack(rng, Path(folder))
    return Case(KILLS, worst)


class Victim:
    """A fork that does `work(report)`, where `report(number)` reports its progress."""

    def __init__(self, work):
        self.pipe, ours = os.pipe()
        parent = os.getpid()
        self.process = os.fork()
        if self.process == 0:
            code = 1
            try:
                os.close(self.pipe)

                def report(number: int) -> None:
                    os.write(ours, b"%d\n" % number)
                    if os.getppid() != parent:  # the parent, which would kill this process, has ended
                        os._exit(2)

                work(report)
                code = 0
            except BaseException as error:
                os.write(ours, f"{type(error).__name__}: {error}\n".replace("\n", " ").encode() + b"\n")
            finally:
                os._exit(code)
        os.close(ours)

    def wait_for_report(self, seconds: float) -> None:
        select.select([self.pipe], [], [], seconds)

    def end(self, kill: bool = True, seconds: float = 200.0) -> int:
        """Kill it (or wait for its end); the last number that it reported, or -1. What it raised is raised here."""
        if kill:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGKILL)
        said = b""
        deadline = time.monotonic() + seconds
        while select.select([self.pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
            more = os.read(self.pipe, 65536)
            if not more:
                break
            said += more
        else:
            os.kill(self.process, signal.SIGKILL)
        os.close(self.pipe)
        _, status = os.waitpid(self.process, 0)
        lines = said.decode(errors="replace").splitlines()
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 1:
            raise AssertionError(f"a process that was not killed failed: {lines[-1] if lines else 'silently'}")
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
            raise AssertionError(f"a process crashed: {signal.Signals(os.WTERMSIG(status)).name}")
        if not kill and not os.WIFEXITED(status):
            raise AssertionError(f"a process did not end within {seconds:.0f} s")
        return int(lines[-1]) if lines else -1


def _only(path: Path) -> None:
    """An error if the folder contains anything but the file."""
    left = sorted(os.listdir(path.parent))
    if left != [path.name]:
        raise AssertionError(f"left behind beside {path.name}: {left}")


# -- saving --------------------------------------------------------------------------------------------------------


def hanging() -> Simulation:
    simulation = Simulation(human(dof=16), v=None, progress=False)
    simulation.connect("ground", "left_hand", Spherical(), name="grip")
    return simulation


@functools.cache
def _motion() -> Trajectory:
    return hanging().run(0.05)


def _saving(rng, path: Path, save, read) -> dict[str, float]:
    """Versions of a file are saved as fast as they can be; the file is always the last one that was finished, or the
    one after it."""
    last = -1
    for _ in range(KILLS):
        def work(report, first=last + 1):
            for version in range(first, first + 10_000):
                save(path, version)
                report(version)

        victim = Victim(work)
        victim.wait_for_report(60.0)
        time.sleep(rng.exponential(0.03))
        said = victim.end()
        if said < 0:
            continue
        found = read(path)
        if found not in (said, said + 1):
            raise AssertionError(f"version {said} was saved, but the file holds version {found}")
        last = found
    save(path, last + 1)
    if read(path) != last + 1:
        raise AssertionError("a later file was not saved")
    _only(path)
    return {}


def _trajectory(rng, folder: Path) -> dict[str, float]:
    motion = _motion()

    def save(path, version):
        Trajectory(motion.segments, [Event(0.0, str(version))]).save(path)

    def read(path):
        trajectory = Trajectory.load(path)
        if not np.array_equal(trajectory.q, motion.q):
            raise AssertionError("another motion is in the file")
        return int(trajectory.events[-1].text)

    return _saving(rng, folder / "motion.npz", save, read)


def _checkpoint(rng, folder: Path) -> dict[str, float]:
    simulation = hanging()
    simulation.run(0.02)
    events = running(simulation).tape.events
    count = len(events)

    def save(path, version):
        events[count:] = [Event(simulation.t, str(version))]
        simulation.save(path)

    def read(path):
        again = Simulation.load(path)
        if not np.array_equal(again.q, simulation.q):
            raise AssertionError("another state is in the file")
        return int(again.trajectory.events[-1].text)

    return _saving(rng, folder / "checkpoint.npz", save, read)


# -- running -------------------------------------------------------------------------------------------------------


def _on(simulation: Simulation, stop: int) -> None:
    """From one stop to the next."""
    if stop == CHANGE:
        simulation.cut("grip")
    simulation.run(STOPS[stop])


@functools.cache
def _undisturbed() -> tuple[bytes, int]:
    simulation = hanging()
    for stop in range(len(STOPS)):
        _on(simulation, stop)
    return _bits(simulation), simulation.stats.steps


def _bits(simulation: Simulation) -> bytes:
    parts = [getattr(running(simulation).memory, name).tobytes() for name in KEPT]
    for segment in simulation.trajectory.segments:
        parts += [segment.t.tobytes(), segment.q.tobytes(), segment.v.tobytes()]
    return b"".join(parts)


def _running(rng, folder: Path) -> dict[str, float]:
    """A run that saves a checkpoint at every stop is killed and taken up again until it is done."""
    path, reached = folder / "run.npz", 0
    hanging().save(path)

    def work(report):
        simulation = Simulation.load(path, progress=False)
        for stop in range(_stop(simulation), len(STOPS)):
            _on(simulation, stop)
            simulation.save(path)
            report(stop + 1)

    for _ in range(KILLS):
        victim = Victim(work)
        victim.wait_for_report(60.0)
        time.sleep(rng.exponential(0.05))
        said = max(victim.end(), reached)
        reached = _stop(Simulation.load(path))
        if reached not in (said, said + 1):
            raise AssertionError(f"stop {said} was saved, but the file is at stop {reached}")
    Victim(work).end(kill=False)
    simulation = Simulation.load(path)
    bits, steps = _undisturbed()
    if _bits(simulation) != bits or simulation.stats.steps != steps:
        raise AssertionError("the run that was taken up again ended elsewhere")
    if reached < len(STOPS):
        _only(path)  # a checkpoint has been saved since the last kill
    return {}


def _stop(simulation: Simulation) -> int:
    """Number of stops already passed."""
    return int(np.searchsorted(STOPS, simulation.t, side="right"))


# -- compiling -----------------------------------------------------------------------------------------------------


def _small_kernel() -> jit.Entry:
    """A small kernel as in a newly started process."""
    from bunraku.entries import moves

    model = moves.normalise_states
    return jit.Entry(model.function, model.label, model.signature)


@functools.cache
def _figure() -> tuple[np.ndarray, np.ndarray]:
    figure = human(dof=16)
    return figure.plan().body_i, figure.neutral()


def _compile_into(folder: Path, report) -> None:
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    os.environ["BUNRAKU_QUIET"] = "1"
    files.cache_directory.cache_clear()
    files.writable_directory.cache_clear()
    began = time.monotonic()
    body_i, neutral = _figure()
    q = 2.0 * neutral[None]
    _small_kernel().call(body_i, q)
    if not np.array_equal(q[0], neutral):
        raise AssertionError(f"the kernel gave {q[0]}")
    report(int(1e6 * (time.monotonic() - began)))


def _compiling(rng, folder: Path) -> dict[str, float]:
    """A kernel is compiled into an empty cache; the next process repairs the remains of a killed one."""
    compiling = functools.partial(_compile_into, folder)
    _figure()
    took = 1e-6 * Victim(functools.partial(_compile_into, folder / "measured")).end(kill=False)
    for k in range(KILLS):
        victim = Victim(compiling)
        time.sleep(max(0.0, took * rng.uniform() if k % 2 else took + rng.normal(scale=0.02)))  # files are written last
        victim.end()
    Victim(compiling).end(kill=False)
    kept, = folder.glob("kernels-*/*.code")
    file = kept.stat().st_ino  # a file that is written anew replaces it
    loaded = 1e-6 * Victim(compiling).end(kill=False)
    if kept.stat().st_ino != file:
        raise AssertionError("the stored kernel was compiled again")
    left = [p.name for p in folder.rglob("*") if ".tmp." in p.name or p.suffix == ".partial"]
    if left:
        raise AssertionError(f"left behind in the cache: {left}")
    return {"loading the healed kernel [s]": loaded}
