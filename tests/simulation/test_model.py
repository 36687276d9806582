"""The model inside compiled functions: the numbers of the Python calls and of Pinocchio, wherever functions run."""

import threading

import numba
import numpy as np
import pytest

import bunraku as bk
from bunraku.jit import JIT_OFF
from loops import random_loops
from moving import double, figure
from pinocchio_trees import pinocchio_model, pinocchio_orders
from structures import random_tree

POINT = (0.3, -0.2, 0.1)


@bk.actuation
def hold(t, q, v, params, tau, model):
    model.gravity(q, tau)


@bk.actuation
def everything(t, q, v, params, tau, model):
    """params: the acceleration, then results."""
    nv, k = model.nv, model.nv
    a = params[:nv]
    model.gravity(q, params[k:k + nv])
    model.bias(q, v, params[k + nv:k + 2 * nv])
    model.inverse_dynamics(q, v, a, params[k + 2 * nv:k + 3 * nv])
    k += 3 * nv
    M = params[k:k + nv * nv].reshape((nv, nv))
    model.mass_matrix(q, M)
    k += nv * nv
    model.jacobian("link1", q, params[k:k + 6 * nv].reshape((6, nv)))
    model.jacobian("link1", q, params[k + 6 * nv:k + 12 * nv].reshape((6, nv)), (0.3, -0.2, 0.1))
    k += 12 * nv
    model.pose("link1", q, params[k:k + 12].reshape((3, 4)))
    model.pose("link0", q, params[k + 12:k + 24])
    model.velocity("link1", q, v, params[k + 24:k + 30])
    model.acceleration("link1", q, v, a, params[k + 30:k + 36])
    model.com(q, params[k + 36:k + 39])
    model.com_velocity(q, v, params[k + 39:k + 42])
    model.momentum(q, v, params[k + 42:k + 48])
    model.velocity("link0", q, v, params[k + 48:k + 54], np.array([0.3, -0.2, 0.1]))
    model.com_jacobian(q, params[k + 56:k + 56 + 3 * nv].reshape((3, nv)))
    params[k + 54] = model.q_index("link1") if model.nq > 0 else -1
    params[k + 55] = model.v_index("link1")


def expected(m, q, v, a):
    """The same by the calls from Python, one after the other."""
    tree = m if not m.connections else m.copy()
    for name in list(tree.connections):
        tree.cut(name)
    k, zero = bk.kinematics(tree, q, v, a), np.zeros(m.nv)
    (R, p), (R0, p0) = k.poses["link1"], k.poses["link0"]
    linear, angular = np.split(k.velocities["link0"], 2)
    return np.concatenate([
        bk.inverse_dynamics(tree, q, zero, zero, passive=False), bk.inverse_dynamics(tree, q, v, zero, passive=False),
        bk.inverse_dynamics(tree, q, v, a), bk.mass_matrix(tree, q).ravel(), k.jacobian("link1").ravel(),
        k.jacobian("link1", POINT).ravel(), np.column_stack([R, p]).ravel(), R0.ravel(), p0, k.velocities["link1"],
        k.accelerations["link1"], k.com, k.com_velocity, k.momentum,
        linear + np.cross(angular, R0 @ POINT), angular, [m.q_slice("link1").start, m.v_slice("link1").start],
        np.array([bk.kinematics(tree, q, column).com_velocity for column in np.eye(m.nv)]).T.ravel()])


def asked(m, q, v, a):
    """What `everything` writes, compiled."""
    params = np.concatenate([a, np.full(m.nv * (18 + m.nv) + 56, np.inf)])
    sim = bk.Simulation(m, q, v, actuation=everything, params=params)
    sim.torque(0.0, q, v)
    return params[m.nv:]


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11 * max(1.0, np.abs(wanted).max()))


# -- the numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_compiled_functions_get_the_numbers_of_the_python_calls(seed):
    tree, rng = random_tree(seed, links=2 + seed % 6, passive=True, springs=seed % 3 == 0), np.random.default_rng(seed)
    q, v, a = tree.state(rng)
    close(asked(tree.m, q, v, a), expected(tree.m, q, v, a))


@pytest.mark.parametrize("seed", range(3))
def test_with_connections_the_model_is_the_tree(seed):
    m, q, v, _ = random_loops(seed)
    a = np.random.default_rng(seed).normal(size=m.nv)
    params = np.concatenate([a, np.full(m.nv * (18 + m.nv) + 56, np.inf)])
    sim = bk.Simulation(m, q, v, actuation=everything, params=params)
    sim.torque(0.0, q, v)
    close(params[m.nv:], expected(m, q, v, a))


@pytest.mark.parametrize("seed", range(4))
def test_gravity_and_bias_are_those_of_pinocchio(seed):
    pin = pytest.importorskip("pinocchio")
    tree = random_tree(seed, links=6, kinds=("revolute", "prismatic", "spherical", "free"))
    model, rng = pinocchio_model(pin, tree), np.random.default_rng(seed)
    at_q, at_v = pinocchio_orders(model, tree)
    q, v, a = tree.state(rng)
    theirs_q, theirs_v, theirs_a = np.empty(model.nq), np.empty(model.nv), np.empty(model.nv)
    theirs_q[at_q], theirs_v[at_v], theirs_a[at_v] = q, v, a
    data, nv = model.createData(), tree.m.nv
    found = asked(tree.m, q, v, a)
    close(found[:nv], pin.computeGeneralizedGravity(model, data, theirs_q)[at_v])
    close(found[nv:2 * nv], pin.nonLinearEffects(model, data, theirs_q, theirs_v)[at_v])
    close(found[2 * nv:3 * nv], pin.rnea(model, data, theirs_q, theirs_v, theirs_a)[at_v])


def test_the_difference_of_two_states_is_that_of_the_mechanism():
    tree, rng = random_tree(3, links=5), np.random.default_rng(3)
    q0, v, _ = tree.state(rng)
    q1 = tree.state(rng)[0]

    @bk.actuation
    def toward(t, q, v, params, tau, model):
        model.difference(q, params, tau)

    sim = bk.Simulation(tree.m, q0, actuation=toward, params=q1)
    close(sim.torque(0.0, q0, v), tree.m.difference(q0, q1))


def test_the_result_may_take_the_place_of_an_argument():
    m = bk.models.human(16)
    a = np.random.default_rng(1).normal(size=m.nv)

    @bk.actuation
    def in_place(t, q, v, params, tau, model):
        tau[:] = params
        model.inverse_dynamics(q, v, tau, tau)

    sim = bk.Simulation(m, actuation=in_place, params=a)
    close(sim.torque(0.0, sim.q, sim.v), bk.inverse_dynamics(m, sim.q, sim.v, a))


def test_dry_friction_is_not_in_the_torques_of_the_model():
    m, plain = double(friction=0.3), double()
    q, v, a, out = np.array([0.4, -0.3]), np.array([1.0, -2.0]), np.array([0.5, 0.2]), np.empty(2)
    bk.Model(m).inverse_dynamics(q, v, a, out)
    close(out, bk.inverse_dynamics(plain, q, v, a))
    close(bk.inverse_dynamics(m, q, v, a) - out, 0.3 * np.sign(v))


# -- wherever functions run ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["gear", "bdf", "tsit5", "implicit", "symplectic_euler", "rk4"])
def test_gravity_compensation_keeps_a_figure_still_with_every_solver(solver):
    m = bk.models.human(34)
    q = m.integrate(m.neutral(), 0.3 * np.random.default_rng(2).normal(size=m.nv))
    step = {"step": 0.01} if solver in ("symplectic_euler", "rk4") else {}
    sim = bk.Simulation(m, q, solver=solver, actuation=hold, **step)
    sim.run(0.2)
    np.testing.assert_allclose(sim.q, q, atol=1e-11)


@pytest.mark.parametrize("settings", [{}, {"solver": "rk4", "step": 0.005}])
def test_rollouts_have_the_model_in_lanes_and_threads(settings):
    m = bk.models.human(34)
    rng = np.random.default_rng(4)
    q = m.integrate(np.tile(m.neutral(), (37, 1)), 0.4 * rng.normal(size=(37, m.nv)))
    r = bk.rollout(m, q, until=0.05, actuation=hold, workers=3, **settings)
    np.testing.assert_allclose(r.q[:, -1], q, atol=1e-11)


def test_threads_share_no_memory():
    m, rng = bk.models.human(34), np.random.default_rng(5)
    qs = m.integrate(np.tile(m.neutral(), (8, 1)), 0.4 * rng.normal(size=(8, m.nv)))
    still: list[float] = []

    def run(q):
        sim = bk.Simulation(m, q, actuation=hold)
        for _ in range(20):
            sim.run(sim.t + 0.01)
        still.append(np.abs(sim.q - q).max())

    threads = [threading.Thread(target=run, args=(q,)) for q in qs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(still) == 8
    assert max(still) < 1e-11


def test_workers_gather_the_state_for_the_model():
    m = bk.models.chain(64)
    q = 0.1 * np.random.default_rng(6).normal(size=m.nv)
    sim = bk.Simulation(m, q, actuation=hold, workers=2)
    sim.run(0.1)
    np.testing.assert_allclose(sim.q, q, atol=1e-10)
    with pytest.raises(bk.ModelError, match="reads the whole state"):
        bk.Simulation(m, q, actuation=hold, workers=2, reads=["link1"])


def test_the_model_follows_changes_of_structure():
    """The figure lets go: its pelvis is free, and the torques that hold its arms change with it."""
    m = figure()
    q, v = bk.project(m, m.neutral(), np.zeros(m.nv))
    sim = bk.Simulation(m, q, v, actuation=everything, params=np.zeros(m.nv * (19 + m.nv) + 56))
    with pytest.raises(bk.NamingError, match="'link1'"):
        sim.run(0.01)
    sim = bk.Simulation(m, q, v, actuation=hold)
    sim.run(0.05)
    for change in (lambda: sim.cut("left_grip"), lambda: sim.connect("ground", "right_hand", bk.Spherical(), "grip"),
                   lambda: sim.cut("right_shoulder")):
        change()
        twin, zero = without(sim.mechanism), np.zeros(sim.mechanism.nv)
        sim.run(sim.t + 0.02)
        close(sim.torque(0.0, sim.q, sim.v)[:len(zero)], bk.inverse_dynamics(twin, sim.q, zero, zero, passive=False))


def without(m):
    twin = m.copy()
    for name in list(twin.connections):
        twin.cut(name)
    return twin


def test_one_function_serves_several_mechanisms_at_the_same_time():
    sims = [bk.Simulation(bk.models.human(34), actuation=hold), bk.Simulation(bk.models.chain(5), actuation=hold)]
    for _ in range(3):
        for sim in sims:
            sim.run(sim.t + 0.05)
    for sim in sims:
        np.testing.assert_allclose(sim.q, sim.mechanism.neutral(), atol=1e-11)


def test_names_may_come_from_the_function_around():
    def height(link):
        @bk.actuation
        def push(t, q, v, params, tau, model):
            place = np.empty(12)
            model.pose(link, q, place)
            tau[0] = place[11]
        return push

    m = double()
    sim = [bk.Simulation(m, [0.4, -0.9], actuation=height(link)) for link in m.link_names]
    for s, link in zip(sim, m.link_names, strict=True):
        assert s.torque(0.0, s.q, s.v)[0] == pytest.approx(bk.poses(m, s.q)[link][1][2], abs=1e-14)


@numba.njit
def low(t, q, v, model):
    place = np.empty(12)
    model.pose("lower", q, place, (0.0, 0.0, -0.5))
    return 0.4 - place[11]


@pytest.mark.parametrize("condition", [low, low.py_func] if not JIT_OFF else [low])
def test_a_condition_has_the_model_too(condition):
    m = double()
    sim = bk.Simulation(m, [1.5, 0.0], rtol=1e-9, atol=1e-11)
    sim.when(condition, lambda s: True, "low")
    sim.run(2.0)
    R, p = bk.poses(m, sim.q)["lower"]
    assert (p + R @ (0, 0, -0.5))[2] == pytest.approx(0.4, abs=1e-8)
    assert sim.t < 2.0


# -- what is wrong ---------------------------------------------------------------------------------------------------


def refusal(function, m=None):
    m = m or double()
    with pytest.raises(bk.BunrakuError) as caught:
        bk.Simulation(m, actuation=bk.actuation(function)).run(0.1)
    return str(caught.value)


def test_an_unknown_name_is_refused_before_the_run():
    def misspelt(t, q, v, params, tau, model):
        out = np.empty(12)
        model.pose("uper", q, out)

    def joint(t, q, v, params, tau, model):
        tau[model.v_index("lower_join")] = 1.0

    assert "did you mean 'upper'" in refusal(misspelt)
    assert "'misspelt'" in refusal(misspelt)
    assert "did you mean 'lower_joint'" in refusal(joint)


def test_arrays_of_the_wrong_size_end_the_run():
    def short(t, q, v, params, tau, model):
        model.gravity(q, tau[:1])

    def small(t, q, v, params, tau, model):
        model.jacobian("upper", q, np.empty((3, 2)))

    assert "model.gravity: arrays of the wrong size" in refusal(short)
    assert "out is (6, nv)" in refusal(small)


@pytest.mark.skipif(JIT_OFF, reason="about compilation")
def test_arrays_of_the_wrong_kind_are_refused():
    def transposed(t, q, v, params, tau, model):
        model.jacobian("upper", q, np.empty((2, 6)).T)

    def into_q(t, q, v, params, tau, model):
        model.gravity(q, q)

    def variable(t, q, v, params, tau, model):
        out = np.empty(12)
        for name in ["upper", "lower"]:
            model.pose(name, q, out)

    assert "C-contiguous" in refusal(transposed)
    assert "read-only" in refusal(into_q)
    assert "must be a constant" in refusal(variable)


@pytest.mark.skipif(JIT_OFF, reason="about compilation")
def test_wrong_calls_of_methods_are_named():
    def misspelt(t, q, v, params, tau, model):
        model.gravty(q, tau)

    def short(t, q, v, params, tau, model):
        model.gravity(tau)

    def long(t, q, v, params, tau, model):
        model.com(q, v, tau)

    assert "did you mean 'gravity'" in refusal(misspelt)
    assert "missing a required argument: 'out'; call model.gravity(q, out)" in refusal(short)
    assert "too many positional arguments; call model.com(q, out)" in refusal(long)


def test_six_arguments_are_the_most():
    with pytest.raises(bk.ModelError, match="model"):
        @bk.actuation
        def seven(t, q, v, params, tau, model, more):
            pass
