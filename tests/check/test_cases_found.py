"""Cases that attacks have found, once each: every one of them failed before its cause was mended."""

import pytest

from bunraku.check import closed, marathon, redundant


@pytest.mark.parametrize("seed", [1089, 1792, 2192, 2858, 3656, 6078, 8079])
def test_impacts_near_singular_poses_leave_no_velocity_in_the_gaps(seed):
    worst = marathon.case(seed).worst
    assert worst["velocities of gaps"] < 1e-11
    assert worst["energy gained"] < 1e-12


@pytest.mark.parametrize("seed", [2383, 3054, 7839, 8663, 9965])
def test_accelerations_of_nearly_dependent_constraints_are_those_of_a_dense_solution(seed):
    assert marathon.case(seed).worst["accelerations"] < 1e-9


@pytest.mark.parametrize("seed", [4441, 8019])
def test_redundant_structures_agree_with_the_unit_vector_method(seed):
    assert redundant.case(seed).worst["one state"] < 1e-11


@pytest.mark.parametrize("seed", [49, 58])
def test_a_rollout_ends_where_a_simulation_does_to_the_last_bit(seed):
    closed.case(seed)  # compares them
