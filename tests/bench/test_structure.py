"""`bunraku bench structure`: limbs that are held accelerate as in Pinocchio."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.bench import model_files as files
from robots import needs_robots
from verdicts import check_verdicts


@needs_robots
@pytest.mark.parametrize("held", [1, 4])
def test_limbs_held_give_pinocchios_accelerations(held):
    pytest.importorskip("pinocchio")
    from bunraku.bench import bench_structure as structure

    m = files.read(files.find(structure.ROBOT))[0]
    assert m.nv == 38
    limbs, twin = structure.LIMBS[:held], m.copy()
    structure.hold(twin, limbs)
    peer = structure.Limbs(m, limbs)
    for q, v, tau in zip(*structure.held_states(twin, 8), strict=True):
        ours, constraints = bk.forward_dynamics(twin, q, v, tau), bk.constraints(twin, q, v)
        assert np.abs(peer.forward(q, v, tau, peer.thorough) - ours).max() < 1e-9 * np.abs(ours).max()
        assert np.abs(constraints.jacobian @ ours + constraints.bias).max() < 1e-8


@needs_robots
def test_structures_are_timed_beside_pinocchio_and_judged(monkeypatch):
    pytest.importorskip("pinocchio")
    from bunraku.bench import bench_structure as structure
    from bunraku.bench import structure_report

    monkeypatch.setattr(structure, "BATCH", structure.IN_TURN)
    monkeypatch.setitem(structure.TARGETS, "change", 1e9)
    monkeypatch.setitem(structure.TARGETS, "batch", 1e9)
    result = structure.run(structure.Options(seconds=0.05, links=(50, 100), bars=(3, 6), rounds=1), quiet=True)
    page = structure_report.text(result)
    check_verdicts(page, result["targets"])
    assert {target["met"] for target in result["targets"]} == {True, False}
    for held in structure.HELD:
        assert f"held to the ground: {6 * held} constraints" in page
