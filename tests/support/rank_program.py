"""A program for the ranks of MPI, run by tests: `mpiexec -n N python -m bunraku.mpi rank_program.py CASE OUT`.

`play(case)` is the same in one process, where the workers are threads.
"""

import copy
import sys
import tempfile
from pathlib import Path

import numpy as np

import bunraku as bk


def tree(n, seed):
    rng = np.random.default_rng(seed)
    m = bk.Mechanism(name=f"tree of {n}")
    kinds = [lambda: bk.Revolute(rng.normal(size=3)), bk.Spherical,
             lambda: bk.Prismatic(rng.normal(size=3), damping=0.1)]
    for i in range(n):
        before = int(rng.integers(max(0, i - 6), max(i, 1)))
        m.add_link(f"link{i}", f"link{before}" if i else "ground", kinds[int(rng.integers(3))]() if i else bk.Free(),
                   position=0.3 * rng.normal(size=3), mass=1.0, com=0.1 * rng.normal(size=3),
                   inertia=(0.03, 0.02, 0.02))
    return m


def play(case: str) -> dict:
    """What a simulation gives: "solver,workers,seed[,driven][,dense][,short][,jung]"."""
    solver, workers, seed, *rest = case.split(",")
    workers, seed = int(workers), int(seed)
    m = tree(30, seed)
    rng = np.random.default_rng(seed + 100)
    q, v = m.integrate(m.neutral(), 0.2 * rng.normal(size=m.nv)), 0.2 * rng.normal(size=m.nv)
    options = {"step": 2.5e-3} if solver in ("rk4", "symplectic_euler") else {"rtol": 1e-8, "atol": 1e-10}
    if "driven" in rest:
        options |= {"actuation": lambda t, q, v: -0.1 * v, "prescribed": {"link0": tour}}
    if "short" in rest:
        options |= {"record": 0.015}
    chosen = ({"method": "jung", "costs": {"cmptm": 1e-6, "roitm": 1e-6}} if "jung" in rest else {"exactly": True})
    sim = bk.Simulation(m, q, v, solver, workers=workers, schedule=bk.schedule(m, workers, **chosen),
                        dense="dense" in rest, **options)
    sim.advance(0.01)
    early = sim.trajectory if "dense" in rest else None  # read while it goes on
    sim.advance(0.02)
    saved, twin = (sim, sim) if "driven" in rest else (saved_and_loaded(sim), copy.deepcopy(sim))
    for other in (sim, saved, twin):
        other.advance(0.03)
    assert np.array_equal(sim.q, twin.q)
    assert np.array_equal(sim.v, saved.v)
    sim.connect("ground", "link29", bk.Spherical(), name="grip")
    sim.connect("link12", "link25", bk.Revolute((0, 1, 0)), name="hinge")
    sim.push("link7", (3.0, 0.0, 1.0, 0.0, 0.2, 0.0))
    sim.pull("link20", (0, 0, 0), (0.5, 0.5, 0.5), rotation=np.diag([1.0, -1.0, -1.0]))
    sim.advance(0.06)
    sim.cut("grip")
    if "driven" not in rest:
        sim.when(lambda t, q, v: t - 0.07, lambda sim: sim.cut("hinge"), name="let go")
    sim.release()
    tr = sim.run(0.09)
    if early is not None:
        assert np.array_equal(early.q, tr.segments[0].q[:len(early.t)])
    samples = np.concatenate([np.concatenate([q, v]) for _, q, v in tr.sample(np.linspace(tr.t[0], tr.t[-1], 7))])
    return {"t": tr.t, "states": np.concatenate([np.hstack([s.q, s.v]).ravel() for s in tr.segments]),
            "samples": samples, "q": sim.q, "v": sim.v, "steps": np.array([sim.stats.steps, sim.stats.evaluations]),
            "workers": np.array(sim.stats.workers), "last": tr.segments[-1].q,
            "events": np.array([f"{e.t!r} {e.text}" for e in tr.events])}


def saved_and_loaded(sim):
    """The simulation that goes on from a checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        return bk.Simulation.load(sim.save(Path(folder) / "checkpoint"))


def tour(t):
    half = 0.3 * np.sin(2.0 * t)
    return np.array([0.1 * t, 0.0, 0.2 * t * t, np.cos(half), np.sin(half), 0.0, 0.0])


if __name__ == "__main__":
    np.savez(sys.argv[2], **play(sys.argv[1]))
