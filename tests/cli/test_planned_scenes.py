"""Scenes with plans and fits: what is reached, held and found."""

import numpy as np
import pytest

import bunraku as bk


@pytest.mark.parametrize("name", ["swingup", "linkage"])
def test_a_planned_motion_is_reached_within_its_torques_and_held(reports, name):
    report = reports(name)
    assert report["torque_max"] < {"swingup": 12.0, "linkage": 6.0}[name] + 1e-9
    assert report["off_end"] < 0.02
    assert report["slowest_pole"] > 0.5
    assert report["loop_error"] < 1e-8
    segment = report["trajectory"].segments[-1]
    assert np.abs(segment.v[-1]).max() < 0.05
    _, kinetic, potential = report["trajectory"].energy()
    assert potential[-1] > potential[0] + 15.0
    assert abs(report["energy_end"] - report["energy_start"] - report["work"]) < 0.3 * report["work"]  # Euler's
    assert kinetic[-1] < 0.01


def test_the_numbers_of_a_filmed_pendulum_are_found_within_their_errors(reports):
    report = reports("filmed")
    off = (np.array(report["found"]) - report["true"]) / report["errors"]
    assert np.abs(off).max() < 3.5
    assert report["off_rms"] == pytest.approx(0.006, rel=0.1)
    assert isinstance(report["trajectory"], bk.Trajectory)
