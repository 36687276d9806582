"""Trajectories as tables: every number under its name, as pandas and NumPy read them."""

import sys

import numpy as np
import pytest

import bunraku as bk
from bunraku.simulation.records.data_frame import write_csv
from moving import pendulum


@pytest.fixture(scope="module")
def broken():
    """A chain whose second joint breaks."""
    sim = bk.Simulation(bk.models.chain(3), q=[0.3, 0.2, 0.1])
    sim.run(0.1)
    sim.cut(sim.mechanism.joint_names[1])
    return sim.run(0.2)


def test_a_frame_has_every_state_by_name(broken):
    frame = broken.to_frame()
    first, second = broken.segments
    names = first.mechanism.joint_names
    assert frame.index.name == "t"
    np.testing.assert_array_equal(frame.index, broken.t)
    np.testing.assert_array_equal(frame["segment"], np.repeat([0, 1], [len(first.t), len(second.t)]))
    for k, name in enumerate(names):
        np.testing.assert_array_equal(frame[name][frame.segment == 0], first.q[:, k])
        np.testing.assert_array_equal(frame[f"{name}.rate"][frame.segment == 0], first.v[:, k])
    place = second.mechanism.q_slice(names[1]).start
    np.testing.assert_array_equal(frame[f"{names[1]}.z"][frame.segment == 1], second.q[:, place + 2])
    assert frame[f"{names[1]}.z"][frame.segment == 0].isna().all()
    assert frame[names[1]][frame.segment == 1].isna().all()


def test_a_frame_has_torques_if_they_are_recorded():
    trajectory = bk.Simulation(pendulum(), [0.1]).run(0.1)
    assert list(trajectory.to_frame().columns[1:]) == ["rod", "rod.rate"]
    trajectory.segments[0].tau = np.full((len(trajectory.t), 1), 2.5)
    assert (trajectory.to_frame()["rod.tau"] == 2.5).all()


def test_numpy_reads_the_csv_to_the_last_bit(broken, tmp_path):
    path = write_csv(broken, tmp_path / "motion.csv")
    frame = broken.to_frame()
    header = path.read_text().splitlines()[0].split(",")
    assert header == ["t", *frame.columns]
    read = np.loadtxt(path, delimiter=",", skiprows=1)
    np.testing.assert_array_equal(read[:, 0], frame.index)
    np.testing.assert_array_equal(read[:, 1:], frame.to_numpy())
    named = np.genfromtxt(path, delimiter=",", names=True, deletechars="")
    np.testing.assert_array_equal(named[header[2]], read[:, 2])


def test_names_with_commas_are_quoted(tmp_path):
    m = bk.Mechanism()
    m.add_link('arm, "left"', joint=bk.Revolute((0, 1, 0)), mass=1, com=(0, 0, -1), inertia=(1, 1, 1))
    path = write_csv(bk.Simulation(m).run(0.01), tmp_path / "a.csv")
    assert np.loadtxt(path, delimiter=",", skiprows=1, quotechar='"').shape[1] == 4
    assert path.read_text().startswith('t,segment,"arm, ""left""",')


def test_without_pandas_the_error_says_what_to_install(broken, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(bk.MissingExtra, match=r'pip install "bunraku\[frame\]"'):
        broken.to_frame()
