"""Experience from several processes is that of one, to the last bit."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from operator import methodcaller

import numpy as np

import bunraku as bk
from bunraku.envs.collecting import Collect


def swing(gain):
    """A policy that other processes know: torques in proportion to the speed."""
    return methodcaller("dot", np.array([[0.0], [0.0], [gain]]))


def test_processes_collect_the_same_experience():
    collect = Collect("pendulum", copies=9, steps=30)
    cases = [(swing(gain), seed) for seed, gain in enumerate((0.5, 1.0, -3.0))]
    alone = [collect(case) for case in cases]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        there = bk.ensemble(collect, cases, pool, progress=False)
    for a, b in zip(alone, there, strict=True):
        assert a.keys() == b.keys()
        assert all((a[name] == b[name]).all() for name in a)
    first = alone[0]
    assert first["seen"].shape == (31, 9, 3)
    assert (np.abs(alone[2]["action"]) <= 2.0).all()
    np.testing.assert_allclose(np.clip(first["seen"][:-1, :, 2:] * 0.5, -2, 2), first["action"], atol=1e-15)
    assert not (alone[0]["seen"][0] == alone[1]["seen"][0]).any()


def test_episodes_that_end_begin_anew():
    found = Collect("cart-pole", copies=4, steps=40)((lambda seen: np.full((4, 1), 10.0), 0))
    assert found["over"].any()
    step, copy = np.argwhere(found["over"])[0]
    assert abs(found["seen"][step + 1, copy, 2]) < 0.06
    assert (found["reward"] == 1.0).all()
