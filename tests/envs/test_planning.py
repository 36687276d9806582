"""Planning by sampling: the pendulum is swung up and held, with the same bits on any number of threads."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.envs.planning import METHODS, Planner
from bunraku.envs.tasks import task


@pytest.mark.parametrize("method", METHODS)
def test_the_pendulum_is_swung_up_and_held(method):
    own = task("pendulum")
    w = bk.Worlds(own.mechanism, 1, own.step, own.substeps, q=[np.pi])
    planner = Planner(own, samples=64, horizon=30, method=method, seed=1)
    for _ in range(110):
        action = planner.plan(w.snapshot())
        assert np.abs(action).max() <= 2.0
        w.step(own.torques(action[None]))
    assert abs((w.q[0, 0] + np.pi) % (2 * np.pi) - np.pi) < 0.3
    assert abs(w.v[0, 0]) < 1.0


def test_plans_do_not_depend_on_threads_and_begin_anew():
    own = task("cart-pole")
    w, plans = bk.Worlds(own.mechanism, 2, own.step, own.substeps, q=[0.0, 0.05]), []
    for workers in (1, 2):
        planner = Planner(own, samples=33, horizon=12, seed=3, workers=workers)
        plans.append([planner.plan(w.snapshot(), copy=1) for _ in range(3)])
    assert (np.array(plans[0]) == np.array(plans[1])).all()
    assert planner.actions.shape == (12, 1)
    assert planner.costs.shape == (33,)
    planner.forget()
    assert not planner.actions.any()


def test_futures_that_diverge_are_not_followed():
    own = task("pendulum")
    w = bk.Worlds(own.mechanism, 1, own.step, own.substeps, v=[1e200])
    planner = Planner(own, samples=8, horizon=4)
    action = planner.plan(w.snapshot())
    assert np.isinf(planner.costs).all()
    assert np.isfinite(action).all()


def test_bad_input_is_refused():
    for arguments, words in (({"method": "best"}, "no method 'best'"), ({"samples": 1}, "samples"),
                             ({"horizon": 1}, "horizon"), ({"knots": 1}, "knots"), ({"spread": -1.0}, "spread")):
        with pytest.raises(bk.BunrakuError, match=words):
            Planner("pendulum", **arguments)
    with pytest.raises(bk.ShapeError, match="another mechanism"):
        Planner("pendulum").plan(bk.Worlds(bk.models.chain(3), 1).snapshot())
