"""Exceptions that signals raise at any moment, threads that cannot start, teams that are no longer needed."""

import copy
import gc
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import bunraku as bk
from bunraku.bench.bench_parallel import free_tree

ALARMS = """
import random, signal, sys, time
import numpy as np, bunraku as bk
from bunraku.bench.bench_parallel import free_tree

class Alarm(Exception): pass
armed = []
def ring(*_):
    if armed:
        armed.clear()
        raise Alarm
signal.signal(signal.SIGALRM, ring)
m, rng = free_tree(40), random.Random(0)
q, v, s = m.neutral(), 0.1 * np.ones(m.nv), bk.schedule(m, 2, exactly=True)
expected = bk.forward_dynamics(m, q, v, schedule=s)
sim = bk.Simulation(m, q, v, workers=2, schedule=s, progress=False)
sim.advance(0.01)
rung, end = 0, time.monotonic() + 6.0
while time.monotonic() < end:
    try:
        armed.append(1)
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 2e-3))
        if rung % 2:
            for _ in range(50):
                bk.forward_dynamics(m, q, v, schedule=s)
        else:
            sim.advance(sim.t + 0.05)
        armed.clear()
    except Alarm:
        rung += 1
signal.setitimer(signal.ITIMER_REAL, 0)
assert np.array_equal(bk.forward_dynamics(m, q, v, schedule=s), expected)
sim.advance(sim.t + 0.01)
assert np.isfinite(sim.q).all()
print("rung", rung)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGALRM")
def test_signals_at_any_moment_leave_no_worker_behind():
    done = subprocess.run([sys.executable, "-c", ALARMS], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) > 20


def test_threads_that_cannot_start(monkeypatch):
    m = free_tree(30)
    q, v, s = m.neutral(), np.zeros(m.nv), bk.schedule(m, 3, exactly=True)
    start, calls = threading.Thread.start, []

    def fails(thread):
        calls.append(thread)
        if len(calls) == 2:
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fails)
        with pytest.raises(bk.SimulationError, match="cannot start 2 more threads"):
            bk.forward_dynamics(m, q, v, schedule=s)
    assert np.isfinite(bk.forward_dynamics(m, q, v, schedule=s)).all()


def test_threads_end_with_their_schedule():
    m = free_tree(30)
    q, v = m.neutral(), np.zeros(m.nv)
    bk.forward_dynamics(m, q, v, schedule=bk.schedule(m, 2, exactly=True))
    gc.collect()
    before = threading.active_count()
    for _ in range(20):
        bk.forward_dynamics(m, q, v, schedule=bk.schedule(m, 2, exactly=True))
    for _ in range(100):
        gc.collect()
        if threading.active_count() <= before + 4:
            break
        time.sleep(0.05)
    assert threading.active_count() <= before + 4


def test_mechanisms_and_simulations_can_be_copied_after_workers_were_used():
    m = free_tree(30)
    q, v, s = m.neutral(), 0.1 * np.ones(m.nv), bk.schedule(m, 2, exactly=True)
    bk.forward_dynamics(m, q, v, schedule=s)
    assert pickle.loads(pickle.dumps(m)).nv == m.nv
    sim = bk.Simulation(m, q, v, workers=2, schedule=s)
    sim.run(0.01)
    twin = copy.deepcopy(sim)
    twin.run(0.02)
    sim.run(0.02)
    assert np.array_equal(twin.q, sim.q)


def test_a_cut_that_makes_the_cuts_of_the_schedule_impossible():
    """Nothing is left half changed: another schedule is made for as many workers."""
    body = {"mass": 1.0, "com": (0, 0, -0.3), "inertia": (0.1, 0.1, 0.1)}
    m = bk.Mechanism()
    m.add_link("a", "ground", bk.Fixed(), **body)
    m.add_link("b", "a", bk.Fixed(), position=(0, 0, -0.5), **body)
    m.add_link("c", "b", bk.Revolute((0, 1, 0)), position=(0, 0, -0.5), **body)
    m.add_link("d", "a", bk.Revolute((0, 1, 0)), position=(0, 0.3, 0), **body)
    sim = bk.Simulation(m, schedule=bk.Schedule(m, cuts=["c", "d"]), workers=2)
    sim.run(0.01)
    sim.cut("a")
    sim.run(0.02)
    assert len(sim.q) == sim.mechanism.nq
    whole = bk.Simulation(m, workers=1)
    whole.run(0.01)
    whole.cut("a")
    whole.run(0.02)
    assert np.abs(whole.q - sim.q).max() < 1e-9


def test_one_heavy_link_in_a_long_chain_costs_no_digits():
    """Lanes are not used beside a link that is a million times heavier: torques return from the accelerations."""
    m = bk.Mechanism()
    for i in range(120):
        mass = 1e6 if i == 100 else 1.0
        m.add_link(f"l{i}", f"l{i - 1}" if i else "ground", bk.Revolute((0, 1, 0) if i % 2 else (1, 0, 0)),
                   position=(0, 0, -0.2), mass=mass, com=(0, 0, -0.1), inertia=(0.01 * mass,) * 3)
    rng = np.random.default_rng(0)
    q, v, tau = 0.3 * rng.normal(size=m.nv), 0.1 * rng.normal(size=m.nv), rng.normal(size=m.nv)
    a = bk.forward_dynamics(m, q, v, tau)
    assert np.abs(bk.inverse_dynamics(m, q, v, a) - tau).max() < 1e-11 * 9.81 * 1e6 * 50
