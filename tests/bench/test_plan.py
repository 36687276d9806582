"""The benchmark of planned motions: goals are reached in few iterations, and a peer that does not fit is refused."""

from types import SimpleNamespace

import numpy as np
import pytest

import bunraku as bk
from bunraku.bench import bench_plan


def test_a_cart_pole_swings_up_and_an_arm_reaches():
    pole, arm = bench_plan.cart_pole(), bench_plan.arm()
    found = [bench_plan._ours(problem, count) for problem, count in ((pole, 60), (arm, 10))]
    assert found[0]["cost"] < 1.6                     # hanging costs 490
    assert found[1]["cost"] == pytest.approx(0.0366, rel=0.02)
    assert found[1]["iterations"] < 10
    row = {"title": "arm", "steps": 100, "dof": 6, "ours": found[1]}
    result = {"bunraku": bk.__version__, "machine": bench_plan.machine.describe(), "rows": [row], "crocoddyl": None}
    assert "Crocoddyl is not installed" in bench_plan.text(result)


def test_a_peer_with_other_accelerations_is_refused():
    problem = bench_plan.cart_pole()
    data = SimpleNamespace(differential=SimpleNamespace(xout=np.zeros(2)))
    running = SimpleNamespace(createData=lambda: data, calc=lambda *_: None)
    peer = SimpleNamespace(q=lambda q: q, v=lambda v: v, back=lambda v: v)
    with pytest.raises(bk.ModelError, match="does not fit"):
        bench_plan._agree(problem, peer, running)
