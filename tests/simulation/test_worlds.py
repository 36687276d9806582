"""Worlds: copies move as in a rollout, whatever happens to the others, however their steps are cut."""

import pickle
import threading
import warnings

import numpy as np
import pytest

import bunraku as bk
from bunraku.spatial.lanes import WIDTH

STEP = 2.0**-9  # sums of it are exact


@bk.actuation
def servo(t, q, v, params, tau):
    if params[0] < 0.0 and t > 0.01:
        raise ValueError
    for j in range(len(tau)):
        tau[j] += params[0] * np.sin(7.0 * t) - 0.1 * v[j]
    params[1] += 1.0


def starts(m, count, seed=0, speed=1.0):
    rng = np.random.default_rng(seed)
    return (m.integrate(np.tile(m.neutral(), (count, 1)), 0.4 * rng.normal(size=(count, m.nv))),
            speed * rng.normal(size=(count, m.nv)))


def tumblers():
    """Two bodies on a hinge that fall on the ground."""
    m = bk.Mechanism(name="tumbler")
    m.add_plane(friction=0.6, restitution=0.2)
    m.add_link("a", joint=bk.Free(), mass=1.0, inertia=(0.02, 0.03, 0.01))
    m.add_link("b", "a", bk.Revolute((0, 1, 0), damping=0.05), position=(0.2, 0, 0), mass=0.5, com=(0.1, 0, 0),
               inertia=(0.01, 0.01, 0.01))
    m.add_shape("a", bk.Sphere(0.1))
    m.add_shape("b", bk.Capsule(0.05, 0.2), position=(0.15, 0, 0))
    m.exclude("a", "b")
    return m


def falling(m, count, seed=0):
    q, v = starts(m, count, seed)
    q[:, 2] = 0.5 + 0.01 * np.arange(count)
    return q, v


def chain_on_the_ground():
    m = bk.models.four_bar()
    return m, *bk.project(m, m.neutral(), np.full(m.nv, 0.5))


# -- the same as rollouts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, WIDTH, 2 * WIDTH + 3])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("touching", [False, True])
def test_steps_are_those_of_a_rollout_to_the_last_bit(count, workers, touching):
    m = tumblers() if touching else bk.models.human(16)
    q, v = falling(m, count) if touching else starts(m, count)
    steps = 300 if touching else 20
    w = bk.Worlds(m, count, STEP, 4, q=q, v=v, workers=workers)
    for _ in range(steps // 4):
        w.step()
    whole = np.repeat(q, 2, axis=0), np.repeat(v, 2, axis=0)  # a rollout of one state takes no lanes
    r = bk.rollout(m, *whole, until=steps * STEP, solver="symplectic_euler", step=STEP)
    assert (w.q == r.q[::2, 0]).all()
    assert (w.v == r.v[::2, 0]).all()
    assert (w.t == steps * STEP).all()
    assert not touching or np.abs(w.v - v).max() > 0.1


@pytest.mark.parametrize("solver", ["symplectic_euler", "rk4"])
def test_actuation_and_given_torques_add_up_as_it_says(solver):
    m, count = bk.models.chain(4), WIDTH + 1
    q, v = starts(m, count)
    params = np.column_stack([np.linspace(0.0, 2.0, count), np.zeros(count)])
    rng = np.random.default_rng(1)
    tau = rng.normal(size=(count, 5, m.nv))
    w = bk.Worlds(m, count, STEP, 3, q=q, v=v, solver=solver, actuation=servo, params=params)
    w.step(tau)
    assert (w.params[:, 1] == 15 * (4 if solver == "rk4" else 1)).all()  # it writes into params
    for k in (0, count - 1):
        def told(t, q, v, k=k):
            number = min(int(t / (3 * STEP) + 1e-9), 4)
            return tau[k, number] + params[k, 0] * np.sin(7.0 * t) - 0.1 * v

        if solver == "symplectic_euler":
            sim = bk.Simulation(m, q[k], v[k], solver=solver, step=STEP, actuation=told)
            sim.run(15 * STEP)
            np.testing.assert_allclose(w.q[k], sim.q, atol=1e-12)
            np.testing.assert_allclose(w.v[k], sim.v, atol=1e-11)
    apart = bk.Worlds(m, count, STEP, 3, q=q, v=v, solver=solver, actuation=servo, params=params, workers=2)
    for number in range(5):
        apart.step(tau[:, number])
    assert (apart.q == w.q).all()
    assert (apart.v == w.v).all()


def test_shapes_of_torques():
    m = bk.models.chain(3)
    rows, one = np.random.default_rng(0).normal(size=(4, 3)), np.array([0.3, -0.2, 0.1])
    ends = []
    for tau, count in ((one, None), (np.tile(one, (4, 1)), None), (np.tile(one, (4, 1, 1)), None),
                       (one.astype(np.float32).astype(float), None), (one.tolist(), 1)):
        w = bk.Worlds(m, 4, 0.002)
        w.step(tau, count)
        ends.append(w.v.copy())
    assert all((v == ends[0]).all() for v in ends[:3] + ends[4:])
    w, x = bk.Worlds(m, 4, 0.002), bk.Worlds(m, 4, 0.002)
    w.step(rows, count=7)
    x.step(np.repeat(rows[:, None], 7, axis=1))
    assert (w.v == x.v).all()
    w, x = bk.Worlds(m, 4, 0.002), bk.Worlds(m, 4, 0.002)
    w.step()
    x.step(np.zeros(3))
    assert (w.v == x.v).all()


# -- loops, one by one -------------------------------------------------------------------------------------------------


def test_loops_move_as_in_a_rollout_and_stay_closed():
    m, q, v = chain_on_the_ground()
    w = bk.Worlds(m, 3, STEP, 2, q=q, v=np.array([v, 0.0 * v, -v]), workers=2)
    for _ in range(10):
        w.step()
    r = bk.rollout(m, np.array([q] * 3), np.array([v, 0.0 * v, -v]), until=20 * STEP, solver="symplectic_euler",
                   step=STEP)
    assert (w.q == r.q[:, 0]).all()
    assert max(np.abs(bk.constraints(m, x).gap).max() for x in w.q) < 1e-8
    before = w.snapshot()
    w.step(np.ones(m.nv), 5)
    end = w.v.copy()
    w.restore(before)
    w.step(np.ones(m.nv), 5)
    assert (w.v == end).all()
    assert np.abs(end - before.y[:, m.nq:]).max() > 1e-3


def test_loops_with_contact_remember_their_contacts():
    m = bk.Mechanism()
    m.add_plane(friction=0.5)
    m.add_link("a", joint=bk.Free(), mass=1.0, inertia=(0.01, 0.01, 0.01))
    m.add_link("b", "a", bk.Revolute((0, 1, 0)), position=(0.3, 0, 0), mass=1.0, inertia=(0.01, 0.01, 0.01))
    m.connect("a", "b", bk.Revolute((0, 1, 0)), name="twin", position_a=(0.3, 0.1, 0), position_b=(0, 0.1, 0))
    for name in "ab":
        m.add_shape(name, bk.Sphere(0.1))
    m.exclude("a", "b")
    q = np.tile(m.neutral(), (2, 1))
    q[:, 2] = 0.12, 0.25
    w = bk.Worlds(m, 2, 0.002, q=q)
    w.step(count=60)
    kept = pickle.loads(pickle.dumps(w.snapshot()))
    w.step(count=40)
    end = w.q.copy(), w.v.copy()
    w.restore(kept, copies=[0, 1])
    w.step(count=40)
    assert (w.q == end[0]).all()
    assert (w.v == end[1]).all()
    assert np.abs(w.q[:, 2] - 0.1).max() < 1e-3  # both lie on the ground
    sim = bk.Simulation(m, q[1], solver="symplectic_euler", step=0.002)
    sim.run(0.2)
    np.testing.assert_allclose(w.q[1], sim.q, atol=1e-9)


# -- reset, snapshots, seeds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("touching", [False, True])
def test_a_reset_copy_does_what_a_new_one_does_and_others_go_on(touching):
    m, count = tumblers() if touching else bk.models.chain(5), 2 * WIDTH
    q, v = falling(m, count) if touching else starts(m, count)
    straight, other = bk.Worlds(m, count, STEP, q=q, v=v), bk.Worlds(m, count, STEP, q=q, v=v, workers=2)
    mask = np.zeros(count, bool)
    mask[[1, 3, WIDTH]] = True
    straight.step(count=150)
    other.step(count=130)
    other.reset(np.flatnonzero(mask)[::-1])       # in another order, by number
    other.step(count=20)
    assert (other.q[~mask] == straight.q[~mask]).all()
    assert (other.t == np.where(mask, 20, 150) * STEP).all()
    other.step(count=130)
    assert (other.q[mask] == straight.q[mask]).all()
    assert (other.v[mask] == straight.v[mask]).all()
    other.reset(mask, q[0], v[:3])
    assert (other.v[[1, 3, WIDTH]] == v[:3]).all()
    other.reset(mask, q, v)
    np.testing.assert_allclose(other.q[mask], q[mask], atol=1e-15)


@pytest.mark.parametrize("touching", [False, True])
def test_after_a_snapshot_the_same_bits_also_in_other_worlds(touching):
    m, count = tumblers() if touching else bk.models.chain(5), WIDTH + 2
    q, v = falling(m, count) if touching else starts(m, count)
    w = bk.Worlds(m, count, STEP, q=q, v=v, actuation=servo, params=[0.1, 0.0])
    w.step(count=140)
    kept = pickle.loads(pickle.dumps(w.snapshot()))
    w.step(count=60)
    end = w.q.copy(), w.params.copy(), w.random(size=3)
    w.restore(kept)
    assert (w.t == 140 * STEP).all()
    w.step(count=60)
    assert (w.q == end[0]).all()
    assert (w.params == end[1]).all()
    assert (w.random(size=3) == end[2]).all()
    many = bk.Worlds(m, 3 * WIDTH, STEP, q=q[0], actuation=servo, params=[0.1, 0.0], workers=2)
    many.restore(kept, copies=4)  # branches of one
    many.step(count=60)
    assert (many.q == end[0][4]).all()


def test_random_numbers_of_a_copy_do_not_depend_on_the_others():
    m = bk.models.chain(2)
    w, x = bk.Worlds(m, 5, seed=3), bk.Worlds(m, 9, seed=3)
    a = np.hstack([w.random(size=2), w.random(size=3)])
    x.random([1, 7], size=4)
    b = x.random([0, 2, 3, 4], size=5)
    assert (a[[0, 2, 3, 4]] == b).all()
    many = bk.Worlds(m, 200, seed=1).random(size=500)
    assert many.min() >= 0.0
    assert many.max() < 1.0
    assert abs(many.mean() - 0.5) < 0.005
    assert abs(np.corrcoef(many[:-1].ravel(), many[1:].ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(many[:, :-1].ravel(), many[:, 1:].ravel())[0, 1]) < 0.02
    assert not (bk.Worlds(m, 200, seed=2).random(size=500) == many).any()


# -- copies that stop --------------------------------------------------------------------------------------------------


def test_a_copy_that_diverges_is_named_and_the_others_go_on():
    m, count = bk.models.chain(3), WIDTH + 1
    q, v = starts(m, count)
    alone = bk.Worlds(m, count, STEP, q=q, v=v)
    v = v.copy()
    v[2] = 1e160
    w = bk.Worlds(m, count, STEP, q=q, v=v)
    with pytest.warns(bk.SimulationWarning, match=r"copy 2 stopped: .*others go on"):
        w.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is named once
        w.step(count=9)
    alone.step(count=10)
    others = np.arange(count) != 2
    assert (w.q[others] == alone.q[others]).all()
    assert (w.running == others).all()
    assert list(w.failed) == [2]
    assert np.isfinite(w.v).all()
    kept = w.snapshot()
    w.reset([2], q[2], 0.0 * v[2])
    w.step()
    assert w.running.all()
    assert not w.failed
    w.restore(kept)
    assert "cannot go on" in w.failed[2]


def test_an_actuation_that_raises_stops_its_copy():
    m = bk.models.chain(2)
    w = bk.Worlds(m, 3, 0.002, actuation=servo, params=[[1.0, 0.0], [-1.0, 0.0], [0.5, 0.0]])
    with pytest.warns(bk.SimulationWarning, match=r"copy 1 stopped: the actuation failed at t = 0\.012 s: ValueError"):
        w.step(count=20)
    assert (w.t == [0.04, 0.012, 0.04]).all()


def test_stopped_copies_stay_until_they_are_reset():
    w = bk.Worlds(bk.models.chain(2), 4, 0.002, v=[1.0, 0.0])
    w.step()
    w.stop([1, 3])
    before = w.q[1].copy()
    w.step(count=5)
    assert (w.q[1] == before).all()
    assert (w.running == [True, False, True, False]).all()
    assert not w.failed
    w.reset(1)
    w.step()
    assert w.t.tolist() == [0.014, 0.002, 0.014, 0.002]


def test_copies_find_room_for_more_contacts():
    m, at = bk.Mechanism(), np.linspace(-0.2, 0.2, 12)
    m.add_plane()
    m.add_link("board", joint=bk.Free(), mass=1.0, inertia=(0.02, 0.02, 0.04))
    m.add_shape("board", bk.Points([(x, y, 0.0) for x in at for y in at]))  # more than there is room for at first
    q, count = m.neutral(), WIDTH + 2
    q = np.tile(q, (count, 1))
    q[:, 2] = 0.002 * np.arange(count)
    w = bk.Worlds(m, count, STEP, 5, q=q, max_contacts=144)
    for _ in range(6):
        w.step()
    r = bk.rollout(m, q, until=30 * STEP, solver="symplectic_euler", step=STEP, max_contacts=144)
    assert w.running.all()
    assert (w.t == 30 * STEP).all()
    assert (w.q == r.q[:, 0]).all()
    few = bk.Worlds(m, count, STEP, 5, q=q)  # room for each by itself, but for one
    few.reset(1, q[1], [0, 0, 0, 1e-9, 0, 0])
    few.reset(np.arange(2, count), q[2:] + np.eye(7)[2])
    with pytest.warns(bk.SimulationWarning, match=r"copy 0 .*1 more.* more than 128 contacts; .*max_contacts=256"):
        few.step(count=6)
    free = bk.Worlds(m, count, STEP, 5, q=q[-1] + np.eye(7)[2])
    free.step(count=6)
    assert (few.q[-1] == free.q[0]).all()
    assert few.running.tolist() == [False, False] + [True] * (count - 2)


# -- bad input ---------------------------------------------------------------------------------------------------------


def test_bad_input_is_refused_and_nothing_moves():
    m = bk.models.chain(3)
    w = bk.Worlds(m, 4)
    bad = np.zeros((4, 3))
    bad[2, 1] = bad[3, 0] = np.nan
    for tau, words in ((np.zeros((3, 3)), r"shape \(3, 3\)"), (np.zeros(4), r"shape \(4,\)"),
                       (np.zeros((4, 0, 3)), "shape"), (1.0, "shape"), ("no", "numbers"),
                       (bad, r"tau\[2, 1\], of copy 2.*copies 2, 3"),
                       (np.array([0.0, np.inf, 0.0]), r"tau\[1\]"), (np.full((4, 2, 3), np.nan), "copies 0, 1, 2, 3")):
        with pytest.raises(bk.ShapeError, match=words):
            w.step(tau)
    with pytest.raises(bk.ShapeError, match="no meaning"):
        w.step(np.zeros((4, 2, 3)), count=2)
    for which, words in ((np.ones(3, bool), "mask"), ([4], "no copy 4"), ([0, 0], "twice"), ([0.5], "mask of bools"),
                         ("all", "mask of bools")):
        with pytest.raises(bk.ShapeError, match=words):
            w.reset(which)
    with pytest.raises(bk.ShapeError, match="3 rows"):
        w.reset([0, 1], np.zeros((3, 3)))
    with pytest.raises(bk.SimulationError, match=r"copy 1: cannot start: q\[0\].* is nan"):
        w.reset([1, 2], [[np.nan, 0, 0], [0, 0, 0]])
    for arguments, words in (({"n": 0}, "at least 1"), ({"substeps": 0}, "at least 1"), ({"solver": "gear"}, "fixed"),
                             ({"step": -1.0}, "step"), ({"actuation": lambda t, q, v: 0}, "bk.actuation"),
                             ({"seed": -1}, "seed"), ({"q": np.zeros((3, 3))}, "3 rows"), ({"workers": 0}, "workers")):
        with pytest.raises(bk.BunrakuError, match=words):
            bk.Worlds(m, **{"n": 4, **arguments})
    assert (w.t == 0.0).all()
    assert not w.q.any()
    with pytest.raises(ValueError, match="read-only"):
        w.q[0] = 1.0
    with pytest.raises(bk.ShapeError, match=r"params\[0\] is nan"):
        bk.Worlds(m, 4, actuation=servo, params=[np.nan, 0.0])
    with pytest.raises(bk.ShapeError, match="takes a snapshot"):
        w.restore(w.q)
    with pytest.raises(bk.SimulationError, match="snapshot"):
        pickle.dumps(w)
    with pytest.raises(bk.ShapeError, match="3 of a snapshot"):
        w.restore(w.snapshot(), [0, 1], [0, 1, 2])
    w.reset([])
    with pytest.raises(bk.ShapeError, match="another mechanism"):
        w.restore(bk.Worlds(bk.models.chain(2), 4).snapshot())


def test_shapes_that_overlap_have_no_start():
    m = tumblers()
    q = np.tile(m.neutral(), (3, 1))
    q[:, 2] = 0.5, -0.2, 0.5
    with pytest.raises(bk.SimulationError, match=r"1 of 3 copies have no start\n.*copy 1: .*overlap"):
        bk.Worlds(m, 3, q=q)
    w = bk.Worlds(m, 3, q=q[0])
    w.step(count=10)
    before = w.q.copy()
    with pytest.raises(bk.SimulationError, match="copy 1"):
        w.reset([1], q[1])
    assert (w.q == before).all()
    assert w.running.all()


def test_two_threads_are_refused():
    w, entered, go = bk.Worlds(bk.models.chain(2), 2), threading.Event(), threading.Event()

    class Slow:
        def __array__(self, dtype=None, copy=None):
            entered.set()
            go.wait(10)
            return np.zeros(2)

    thread = threading.Thread(target=lambda: w.step(Slow()))
    thread.start()
    entered.wait(10)
    for call in (w.step, w.reset, w.snapshot):
        with pytest.raises(bk.SimulationError, match="another thread"):
            call()
    go.set()
    thread.join()
    w.step()
    assert (w.t == 0.004).all()


# -- other numbers in each copy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("touching", [False, True])
def test_several_mechanisms_move_each_as_alone(touching):
    first = tumblers() if touching else bk.models.chain(3)
    name = first.link_names[-1]
    heavy = first.with_link(name, mass=3.0)
    light = first.with_link(name, mass=0.2)
    n = 24
    q, v = falling(first, n) if touching else starts(first, n)
    w = bk.Worlds([first, heavy, light], n, STEP, 3, q=q, v=v, workers=2)
    w.step(count=50)
    for k, m in enumerate((first, heavy, light)):
        part = slice(8 * k, 8 * k + 8)
        alone = bk.Worlds(m, 8, STEP, 3, q=q[part], v=v[part])
        alone.step(count=50)
        assert (w.q[part] == alone.q).all()
        assert (w.v[part] == alone.v).all()
    for others, words in (([first, bk.models.chain(4)], "other links"), ([], "no mechanism")):
        with pytest.raises(bk.ModelError, match=words):
            bk.Worlds(others, n)
    with pytest.raises(bk.ShapeError, match="n=24"):
        bk.Worlds([first, heavy, light], 30)
    with pytest.raises(bk.ModelError, match="Worlds for each"):
        bk.Worlds([bk.models.four_bar()] * 2, 16)


def test_compiled_observations_see_each_copy_with_its_own_model():
    nominal = bk.models.chain(3)
    tip = nominal.link_names[-1]
    several = [nominal, nominal.with_link(tip, mass=3.0)]

    def seen(t, q, v, params, out, model):
        out[0], out[1] = t, params[0]
        model.com(q, out[2:5])
        model.gravity(q, out[5:8])

    @bk.actuation
    def lighter(t, q, v, params, tau, model):  # gravity times params[0]
        model.gravity(q, tau)
        for j in range(len(tau)):
            tau[j] *= 1.0 - params[0]

    q, v = starts(nominal, 16)
    part = np.linspace(0.0, 2.0, 16)[:, None]
    w = bk.Worlds(several, 16, STEP, q=q, v=v, params=part, observe=seen, observation_size=8, actuation=lighter,
                  workers=2)
    w.step(count=40)
    out = np.full((16, 8), np.nan)
    assert w.observe(out=out) is out
    assert (out[:, 0] == 40 * STEP).all()
    assert (out[:, 1:2] == part).all()
    for k in (0, 3, 11, 15):
        own = several[k // 8].copy()
        np.testing.assert_allclose(out[k, 2:5], bk.kinematics(own, w.q[k]).com, atol=1e-14)
        np.testing.assert_allclose(out[k, 5:], bk.inverse_dynamics(own, w.q[k], 0 * v[k], 0 * v[k]), atol=1e-12)
        own.gravity = part[k, 0] * np.array(own.gravity)
        alone = bk.Worlds(own, 1, STEP, q=q[k], v=v[k])
        alone.step(count=40)
        np.testing.assert_allclose(w.q[k], alone.q[0], atol=1e-12)


def test_observations_that_fail_are_named():
    m = bk.models.chain(2)

    def seen(t, q, v, params, out):
        out[int(params[0])] = 1.0

    w = bk.Worlds(m, 3, params=[[0.0], [1.0], [5.0]], observe=seen, observation_size=2)
    with pytest.raises(bk.SimulationError, match=r"failed for copy 2 at t = 0 s: IndexError: index 5"):
        w.observe()
    w.params[2] = 1.0
    assert (w.observe() == [[1, 0], [0, 1], [0, 1]]).all()
    for out, words in ((np.empty((3, 3)), r"float64 \(3, 2\), not float64 \(3, 3\)"), ([[0, 0]] * 3, "not list"),
                       (np.empty((3, 2), np.float32), "float32"), (np.empty((2, 3)).T, "contiguous")):
        with pytest.raises(bk.ShapeError, match=words):
            w.observe(out=out)
    with pytest.raises(bk.SimulationError, match="observe=function"):
        bk.Worlds(m, 3).observe()
    with pytest.raises(bk.ModelError, match=r"\(t, q, v, params, out\)"):
        bk.Worlds(m, 3, observe=lambda q, v: q, observation_size=1)
    with pytest.raises(bk.ModelError, match="observation_size"):
        bk.Worlds(m, 3, observe=seen)


def test_strength_scales_torques():
    m = bk.models.chain(3)
    rng = np.random.default_rng(0)
    tau, factors = rng.normal(size=(4, 2, 3)), rng.uniform(0.5, 1.5, (4, 3))
    w, x = bk.Worlds(m, 4), bk.Worlds(m, 4)
    w.strength = factors
    w.step(tau)
    x.step(tau * factors[:, None])
    assert (w.v == x.v).all()
    w.strength = factors[:, 0]
    w.step(tau[:, 0])
    x.step(tau[:, 0] * factors[:, :1])
    assert (w.v == x.v).all()
    w.strength = None
    w.step(np.ones(3))
    x.step(np.ones(3))
    assert (w.v == x.v).all()
    with pytest.raises(bk.ShapeError, match="strength has shape"):
        w.strength = np.ones((3, 4))
    with pytest.raises(bk.ShapeError, match=r"strength\[1\] is nan"):
        w.strength = [1.0, np.nan, 1.0, 1.0]


# -- connections of single copies --------------------------------------------------------------------------------------


def swinger(touching=False):
    """A body in the plane with two arms; with a ground that it may touch."""
    m = bk.Mechanism(name="swinger")
    m.add_link("body", joint=bk.Compound(bk.Prismatic((1, 0, 0)), bk.Prismatic((0, 0, 1)), bk.Revolute((0, 1, 0))),
               mass=5.0, inertia=(0.1, 0.1, 0.1))
    for name, angle in (("left", 0.5), ("right", -0.5)):
        turned = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
        m.add_link(name, "body", bk.Revolute((0, 1, 0), damping=0.1), position=(0, 0, 0.2), rotation=turned, mass=1.0,
                   com=(0, 0, 0.15), inertia=(0.01, 0.01, 0.001))
    if touching:
        m.add_plane(point=(0, 0, -0.9))
        m.add_shape("body", bk.Sphere(0.1))
    return m


@pytest.mark.parametrize("touching", [False, True])
def test_copies_connect_and_cut_as_simulations_do(touching):
    m, pin = swinger(touching), bk.Revolute((0, 1, 0))
    v = np.array([0.3, 0.0, 0.5, 0.2, -0.1])
    w = bk.Worlds(m, 3, STEP, 2, v=v, own_connections=True, workers=2)
    sims = [bk.Simulation(m, v=v, solver="symplectic_euler", step=STEP) for _ in range(3)]

    def onwards(count):
        w.step(count=count)
        for sim in sims:
            sim.run(sim.t + 2 * count * STEP)

    def same():
        return all(np.allclose(w.q[k], sim.q, atol=1e-11) and np.allclose(w.v[k], sim.v, atol=1e-10)
                   for k, sim in enumerate(sims))

    w.connect([0, 1], "ground", "left", pin, "grip", position_b=(0, 0, 0.3))
    for sim in sims[:2]:
        sim.connect("ground", "left", pin, "grip", position_b=(0, 0, 0.3))
    onwards(40)
    assert same()
    assert w.connected("grip").tolist() == [True, True, False]
    assert w.q[2, 1] < -0.05
    assert w.q[2, 1] < w.q[0, 1] - 0.01
    w.connect([1], "ground", "right", pin, "other", position_b=(0, 0, 0.3))
    sims[1].connect("ground", "right", pin, "other", position_b=(0, 0, 0.3))
    kept = pickle.loads(pickle.dumps(w.snapshot()))
    onwards(10)
    w.cut([0, 1], "grip")
    for sim in sims[:2]:
        sim.cut("grip")
    onwards(60)
    assert same()
    assert w.connected("other").tolist() == [False, True, False]
    assert "other" in w.mechanism_of(1).connections
    assert not touching or w.q[2, 1] > -0.81
    end = w.q.copy(), w.v.copy()
    branches = bk.Worlds(m, 2, STEP, 2, v=v, own_connections=True)
    branches.restore(kept, copies=[1, 0])
    branches.step(count=10)
    branches.cut(None, "grip")
    branches.step(count=60)
    assert (branches.q == end[0][[1, 0]]).all()
    assert (branches.v == end[1][[1, 0]]).all()
    w.reset([1])
    assert not w.connected("other").any()


def test_connections_that_cannot_be_made_change_nothing():
    m, pin = swinger(), bk.Revolute((0, 1, 0))
    w = bk.Worlds(m, 2, own_connections=True)
    w.connect([1], "ground", "left", pin, "grip")
    before = w.q.copy()
    for call, words in ((lambda: w.connect(None, "ground", "left", pin, "grip"), "already a connection 'grip'"),
                        (lambda: w.connect([0], "ground", "left", pin, position_a=(5, 0, 0), position_b=(0, 0, 0)),
                         r"in copy 0 at t = 0 s: .* max_gap="),
                        (lambda: w.connect([0], "ground", "leg", pin), "leg"),
                        (lambda: w.connect([0], "ground", "left", pin, max_gap=-1.0), "max_gap"),
                        (lambda: w.cut(None, "grip"), "copy 0 has no connection 'grip'; its connections: none"),
                        (lambda: w.cut([1], "left"), "Joints of the tree"),
                        (lambda: w.restore(bk.Worlds(m, 2).snapshot()), "own"),
                        (lambda: bk.Worlds(m, 2).cut([0], "grip"), "own_connections=True"),
                        (lambda: bk.Worlds(None, 2), "must be a mechanism|Mechanism")):
        with pytest.raises(bk.BunrakuError, match=words):
            call()
    assert (w.q == before).all()
    assert w.connected("grip").tolist() == [False, True]
    motor = bk.Worlds(m, 2, own_connections=True)
    motor.connect([0], "ground", "left", pin, "grip")
    motor.step(np.ones(m.nv))
    motor.step(np.ones((2, 3, m.nv)))
    assert motor.running.all()
