"""Simulations shared by several workers: the same steps, orders and states to the last bit, for the same chunks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
from bunraku.bench.bench_parallel import free_tree
from bunraku.integrate import solver_memory as memory
from structures import random_tree

ADAPTIVE = ("gear", "tsit5", "rkf", "rkg", "rki", "iec", "implicit")
FIXED = ("rk4", "symplectic_euler")


def start(m, seed=0):
    rng = np.random.default_rng(seed)
    return m.integrate(m.neutral(), 0.2 * rng.normal(size=m.nv)), 0.2 * rng.normal(size=m.nv)


def runs(m, solver, workers, schedule, **more):
    q, v = start(m)
    step = {"step": 0.004} if solver in FIXED else {}
    sim = bk.Simulation(m, q, v, solver=solver, workers=workers, schedule=schedule, **step, **more)
    sim.run(0.05)
    return sim, sim.run(0.1)


def identical(one, other):
    (a, ta), (b, tb) = one, other
    for x, y in zip(ta.segments, tb.segments, strict=True):
        assert np.array_equal(x.t, y.t)
        assert np.array_equal(x.q, y.q)
        assert np.array_equal(x.v, y.v)
    for name in ("clock", "tally", "rows"):
        assert np.array_equal(getattr(a._running.memory, name), getattr(b._running.memory, name), equal_nan=True), name


@pytest.mark.parametrize("solver", [*ADAPTIVE, *FIXED])
def test_all_solvers_take_the_same_steps_on_one_and_more_workers(solver):
    m = free_tree(40)
    s = bk.schedule(m, 3, exactly=True)
    alone = runs(m, solver, 1, s)
    for workers in (2, 3):
        shared = runs(m, solver, workers, s)
        identical(alone, shared)
        assert shared[0].stats.workers == workers
        assert shared[0].stats.steps == alone[0].stats.steps
    whole, trajectory = runs(m, solver, 1, None)
    assert whole.stats.steps == alone[0].stats.steps
    assert np.abs(trajectory.q[-1] - alone[1].q[-1]).max() < 1e-10


@given(st.integers(0, 10**6))
@settings(max_examples=12)
def test_random_trees(seed):
    rng = np.random.default_rng(seed)
    m = random_tree(seed, passive=bool(rng.integers(2))).m
    s = bk.schedule(m, int(rng.integers(2, 5)), exactly=True)
    q, v = start(m, seed)
    found = []
    for workers in (1, s.workers):
        sim = bk.Simulation(m, q, v, workers=workers, schedule=s)
        found.append((sim, sim.run(0.02)))
    identical(*found)
    whole = bk.Simulation(m, q, v, workers=1)
    whole.run(0.02)
    assert np.abs(whole.q - found[0][0].q).max() <= 1e-9 * max(1.0, np.abs(whole.q).max())


def test_the_history_is_shared_through_connect_and_cut():
    """A change of structure: the schedule is made again, and the motion goes on the same to the last bit."""
    m = free_tree(60)
    joint = m.links[20].joint_name
    q, v = start(m)
    found = []
    for workers in (1, 2):
        sim = bk.Simulation(m, q, v, workers=workers, schedule=bk.schedule(m, 2, exactly=True))
        sim.run(0.03)
        sim.cut(joint)
        sim.run(0.06)
        assert sim.schedule is not None
        assert sim.schedule.workers == 2
        assert sim.stats.workers == workers
        found.append(sim)
    assert np.array_equal(found[0].q, found[1].q)
    assert found[0].stats.steps == found[1].stats.steps


@bk.actuation
def springs(t, q, v, params, tau):
    for j in range(6, len(tau)):
        tau[j] = -params[0] * q[j + 1] - params[1] * v[j]


def in_python(t, q, v):
    tau = np.zeros(len(v))
    tau[6:] = -5.0 * q[7:] - 0.5 * v[6:]
    return tau


@pytest.mark.parametrize(("actuation", "params"), [(springs, [5.0, 0.5]), (in_python, None)])
def test_an_actuation_sees_the_whole_state(actuation, params):
    m = free_tree(40)
    s = bk.schedule(m, 3, exactly=True)
    alone = runs(m, "gear", 1, s, actuation=actuation, params=params)
    shared = runs(m, "gear", 3, s, actuation=actuation, params=params)
    identical(alone, shared)
    assert shared[0].stats.gathers == shared[0].stats.evaluations  # counted
    assert alone[0].stats.gathers == 0
    whole, _ = runs(m, "gear", 1, None, actuation=actuation, params=params)
    assert np.abs(whole.q - shared[0].q).max() < 1e-10


def test_an_actuation_that_fails_ends_the_run_for_all_workers():
    def fails(t, q, v):
        if t > 0.05:
            raise ZeroDivisionError("on purpose")
        return np.zeros(len(v))

    m = free_tree(30)
    q, v = start(m)
    sim = bk.Simulation(m, q, v, actuation=fails, workers=2, schedule=bk.schedule(m, 2, exactly=True))
    with pytest.raises(bk.SimulationError, match="on purpose"):
        sim.run(1.0)
    assert 0.0 < sim.t <= 0.05
    assert sim.trajectory.t[-1] == sim.t


def test_polynomials_of_the_steps_are_put_together():
    m = free_tree(30)
    s = bk.schedule(m, 2, exactly=True)
    (_, alone), (sim, shared) = runs(m, "tsit5", 1, s, dense=True), runs(m, "tsit5", 2, s, dense=True)
    assert sim.stats.workers == 2
    for t in (0.011, 0.042, 0.087):
        a, b = alone.sample(t)[0], shared.sample(t)[0]
        assert np.array_equal(a[1], b[1])
        assert np.array_equal(a[2], b[2])


def test_checkpoints_of_shared_simulations_go_on(tmp_path):
    m = free_tree(30)
    q, v = start(m)
    s = bk.schedule(m, 2, exactly=True)
    sim = bk.Simulation(m, q, v, workers=2, schedule=s)
    sim.run(0.05)
    sim.save(tmp_path / "half.npz")
    sim.run(0.1)
    loaded = bk.Simulation.load(tmp_path / "half.npz")
    loaded.run(0.1)
    assert np.abs(loaded.q - sim.q).max() < 1e-10


def watched_run(m, workers, schedule, **more):
    """A condition of time and a joint angle comes true again and again; the second time the joint is cut."""
    q, v = start(m)
    sim = bk.Simulation(m, q, v, workers=workers, schedule=schedule, **more)
    joint, k, times = m.links[5].joint_name, m.q_slice(m.links[5].joint_name).start, []

    def passes(sim):
        times.append(sim.t)
        if len(times) == 2:
            sim.cut(joint)

    sim.when(lambda t, q, v: np.sin(40.0 * t + q[k] - 1.0), passes, repeat=True)
    sim.when(lambda t, q, v: t - 0.4, lambda sim: True)
    return sim, sim.run(1.0), times


@pytest.mark.parametrize("solver", ["gear", "tsit5"])
def test_conditions_are_found_in_shared_runs(solver):
    m = free_tree(30)
    s = bk.schedule(m, 2, exactly=True)
    alone, shared = watched_run(m, 1, s, solver=solver), watched_run(m, 2, s, solver=solver)
    assert len(alone[2]) >= 2
    assert alone[2] == shared[2]
    identical(alone[:2], shared[:2])
    assert shared[0].stats.workers == 2
    whole = watched_run(m, 1, None, solver=solver)
    assert abs(whole[0].t - 0.4) < 1e-12
    assert len(whole[2]) == len(shared[2])
    assert np.abs(np.array(whole[2]) - shared[2]).max() < 1e-8
    assert np.abs(whole[0].q - shared[0].q).max() < 1e-7


def test_one_worker_where_sharing_is_not_possible():
    """An actuation with a memory must not be called beyond an event: one worker computes."""
    m = free_tree(30)
    q, v = start(m)
    sim = bk.Simulation(m, q, v, workers=2, schedule=bk.schedule(m, 2, exactly=True), actuation=in_python)
    sim.when(lambda t, q, v: t - 0.05, lambda sim: True)
    sim.run(1.0)
    assert abs(sim.t - 0.05) < 1e-12
    assert sim.stats.workers == 1


def test_nobody_has_asked_for_workers():
    """Left to itself a large tree is cut into chunks that wait, which one worker computes as fast as the whole."""
    m = free_tree(150)
    q, v = start(m)
    sims = [bk.Simulation(m, q, v, solver="rk4", step=1e-4, progress=False) for _ in range(2)]
    for sim in sims:
        sim.run(0.1)
        assert sim.schedule is None  # so short a run is not worth a schedule
        sim.run(0.3)
    if sims[0].schedule is not None:  # on machines with several processors
        chunked, partition = sims[0].schedule._parts()
        assert (partition.waits == (partition.chunks.far >= 0)).all()
    assert np.array_equal(sims[0].q, sims[1].q)  # whichever stretches were shared
    whole = bk.Simulation(m, q, v, solver="rk4", step=1e-4, workers=1, progress=False)
    whole.run(0.3)
    assert whole.schedule is None
    assert np.abs(whole.q - sims[0].q).max() < 1e-8
    small = bk.Simulation(bk.models.human(48))
    small.run(0.01)
    assert small.schedule is None


@pytest.mark.parametrize("workers", [0, -2, True, 2.5, "two"])
def test_numbers_of_workers_that_are_none(workers):
    with pytest.raises(bk.ModelError, match="workers must be a whole number"):
        bk.Simulation(bk.models.chain(3), workers=workers)


def test_full_matrices_are_refused_by_name():
    with pytest.raises(bk.ModelError, match="'bdf' factors one matrix"):
        bk.Simulation(bk.models.chain(3), solver="bdf", workers=2)
    bk.Simulation(bk.models.chain(3), solver="bdf", workers=1).run(0.01)


def test_schedules_of_another_structure_are_refused():
    with pytest.raises(bk.ModelError, match="another structure"):
        bk.Simulation(bk.models.chain(3), schedule=bk.schedule(bk.models.chain(4), 2))
    with pytest.raises(bk.ModelError, match="schedule must be made by"):
        bk.Simulation(bk.models.chain(3), schedule="best")


def test_memory_has_a_size_of_the_whole():
    sim, _ = runs(free_tree(30), "gear", 2, bk.schedule(free_tree(30), 2, exactly=True))
    assert sim._running.memory.clock[memory.SIZE] == sim._running.memory.rows.shape[1]


# -- loops -------------------------------------------------------------------------------------------------------------


def on_the_bar():
    m = bk.models.human(34)
    where = bk.poses(m, m.neutral())
    for hand in ("left_hand", "right_hand"):
        rotation, position = where[hand]
        m.connect("ground", hand, bk.Spherical(), f"{hand} grip", position_a=position, rotation_a=rotation)
    return m


LOOPS = {"bar": on_the_bar, "bricard": bk.models.bricard, "slider": bk.models.slider_crank,
         "four bars": lambda: bk.models.n_four_bar(6)}


@pytest.mark.parametrize("solver", ["gear", "tsit5", "implicit", "rk4", "symplectic_euler"])
@pytest.mark.parametrize("name", LOOPS)
def test_loops_across_workers(name, solver):
    m = LOOPS[name]()
    q, v = bk.project(m, m.neutral(), 0.3 * np.random.default_rng(1).normal(size=m.nv))
    s = bk.Schedule(m, cuts=[link.joint_name for link in m.links[1::3]])
    step = {"step": 0.002} if solver in FIXED else {}
    found = []
    for workers in (1, s.workers):
        sim = bk.Simulation(m, q, v, solver=solver, workers=workers, schedule=s, **step)
        found.append((sim, sim.run(0.05)))
        assert sim.stats.workers == workers
        assert sim.stats.loop_error < 1e-9
    identical(*found)
    whole = bk.Simulation(m, q, v, solver=solver, workers=1, **step)
    whole.run(0.05)
    assert whole.stats.steps == found[0][0].stats.steps
    assert np.abs(whole.q - found[0][0].q).max() < 1e-10


def test_connect_impact_and_cut_of_loops_under_several_workers():
    """The figure grips the bar while it moves, and lets go with one hand: schedules are made again each time."""
    m = bk.models.human(34)
    found = []
    for workers in (1, 3):
        sim = bk.Simulation(m, v=0.1 * np.ones(m.nv), workers=workers, schedule=bk.schedule(m, 3, exactly=True))
        sim.run(0.02)
        for hand in ("left_hand", "right_hand"):
            sim.connect("ground", hand, bk.Spherical(), name=f"{hand} grip")
        sim.run(0.05)
        assert sim.stats.workers == workers
        sim.when(lambda t, q, v: t - 0.06, lambda sim: sim.cut("right_hand grip"))
        found.append((sim, sim.run(0.09)))
    identical(*found)
    assert list(map(str, found[0][1].events)) == list(map(str, found[1][1].events))
    assert len(found[0][1].events) == 4


def test_forces_that_hold_loops_together_across_workers():
    m = on_the_bar()
    s = bk.Schedule(m, cuts=[link.joint_name for link in m.links[2::4]])
    q, v = bk.project(m, m.neutral(), 0.2 * np.ones(m.nv))
    found = []
    for workers in (1, s.workers):
        sim = bk.Simulation(m, q, v, workers=workers, schedule=s, baumgarte=50.0)
        found.append((sim, sim.run(0.05)))
    identical(*found)
    whole = bk.Simulation(m, q, v, workers=1, baumgarte=50.0)
    whole.run(0.05)
    assert np.abs(whole.q - found[0][0].q).max() < 1e-9


def test_point_springs_across_workers():
    m = free_tree(30)
    m.add_spring("link3", "link20", stiffness=40.0, rest_length=0.1, damping=0.3)
    m.add_spring("ground", "link28", stiffness=20.0, rest_length=0.2)
    s = bk.schedule(m, 3, exactly=True)
    alone, shared = runs(m, "gear", 1, s), runs(m, "gear", 3, s)
    identical(alone, shared)
    assert shared[0].stats.workers > 1
    whole, _ = runs(m, "gear", 1, None)
    assert np.abs(whole.q - shared[0].q).max() < 1e-10


# -- found by a user trial ---------------------------------------------------------------------------------------------


def test_a_schedule_of_the_same_links_by_other_joints_is_refused():
    """Links that are Fixed in one figure and move in another: chunks of one are none of the other."""
    s = bk.Schedule(bk.models.human(34), cuts=["waist", "left_hip", "right_shoulder"])
    m = bk.models.human(16)
    with pytest.raises(bk.ModelError, match="another structure"):
        bk.forward_dynamics(m, m.neutral(), np.zeros(m.nv), schedule=s)
    with pytest.raises(bk.ModelError, match="another structure"):
        bk.Simulation(m, schedule=s)


@pytest.mark.parametrize("workers", [1, 2])
def test_checkpoints_keep_workers_and_schedule(tmp_path, workers):
    m = free_tree(60)
    q, v = start(m)
    for s in (bk.schedule(m, 2, exactly=True), bk.Schedule(m, cuts=["link20", "link40"]), None):
        sim = bk.Simulation(m, q, v, workers=workers, schedule=s)
        sim.run(0.03)
        sim.save(tmp_path / "half.npz")
        loaded = bk.Simulation.load(tmp_path / "half.npz")
        identical((sim, sim.run(0.06)), (loaded, loaded.run(0.06)))
        assert loaded.stats.workers == sim.stats.workers


def test_the_cuts_of_a_number_of_workers_are_those_of_its_schedule():
    m = bk.models.mobile(0.2, 0.3, 0.2, 1.0, 3, 5, 9, 3.0, 2.0)
    sim = bk.Simulation(m, workers=2)
    sim.run(0.001)
    if sim.schedule is not None:  # on machines with several processors
        assert sim.schedule.chunks == bk.schedule(m, workers=2).chunks


def test_no_more_threads_than_processors_unless_a_schedule_asks_for_them():
    from bunraku.entries.pool import available
    m = free_tree(400)
    sim = bk.Simulation(m, workers=50)
    sim.run(0.0005)
    assert sim.stats.workers <= available()
