"""Cases that attacks have found, once each: every one of them failed before its cause was mended."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.check import attack_closed as closed
from bunraku.check import attack_marathon as marathon
from bunraku.check import attack_redundant as redundant


@pytest.mark.parametrize("seed", [1089, 1792, 2192, 2858, 3656, 6078, 8079])
def test_impacts_near_singular_poses_leave_no_velocity_in_the_gaps(seed):
    worst = marathon.case(seed).worst
    assert worst["velocities of gaps"] < 1e-11
    assert worst["energy gained"] < 1e-12


@pytest.mark.parametrize("seed", [2383, 3054, 7839, 8663, 9965, 12432, 14276])
def test_accelerations_of_nearly_dependent_constraints_are_those_of_a_dense_solution(seed):
    assert marathon.case(seed).worst["accelerations"] < 1e-9


@pytest.mark.parametrize("seed", [4441, 8019])
def test_redundant_structures_agree_with_the_unit_vector_method(seed):
    assert redundant.case(seed).worst["one state"] < 1e-11


@pytest.mark.parametrize("seed", [49, 58])
def test_a_rollout_ends_where_a_simulation_does_to_the_last_bit(seed):
    closed.case(seed)  # compares them


def test_loops_hold_up_a_massless_link_that_carries_one_ball_joint():
    """What hangs on a ball joint does not resist a turn of its carrier about the line to the joint: only loops do."""
    m = bk.Mechanism()
    m.add_link("carrier", "ground", bk.Spherical(), position=(-0.4, -0.4, 0.7))
    m.add_link("bob", "carrier", bk.Spherical(), position=(0.2, 0.3, -0.8), mass=1.0, com=(0.1, 0.0, 0.2),
               inertia=(0.1, 0.1, 0.1))
    simulation = bk.Simulation(m, m.neutral(), np.array([0.0, 0.4, 0.0, -0.6, -4.1, -1.3]), progress=False)
    for ends in (("ground", "carrier"), ("carrier", "ground")):
        simulation.connect(*ends, bk.Planar((0, 1, 0)))
    m, q, v = simulation.mechanism, np.array(simulation.q), np.array(simulation.v)
    a = bk.forward_dynamics(m, q, v)
    np.testing.assert_allclose(a, bk.forward_dynamics(m, q, v, method="unit_vector"), atol=1e-10)
    demands = bk.constraints(m, q, v)
    assert np.abs(demands.jacobian @ a + demands.bias).max() < 1e-12
