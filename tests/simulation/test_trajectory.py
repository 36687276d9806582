"""Trajectories: segments, files, and what is recorded."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.simulation.records.trajectory import Event, Segment
from moving import pendulum


@pytest.mark.parametrize("name", ["motion", "motion.v2", "motion.npz"])
def test_a_trajectory_is_loaded_by_the_name_it_was_saved_under(tmp_path, name):
    trajectory = bk.Simulation(pendulum(), [0.1]).run(0.1)
    file = trajectory.save(tmp_path / name)
    assert (bk.load_trajectory(tmp_path / name).q == trajectory.q).all()
    assert (bk.load_trajectory(str(file)).q == trajectory.q).all()
    with pytest.raises(bk.MissingFileError, match=r"other\.npz: there is no such file"):
        bk.load_trajectory(tmp_path / "other")


def test_a_saved_trajectory_reads_back_the_same_with_its_mechanism(tmp_path):
    m = pendulum(damping=0.1, lower=-1.0, stiffness=2.0)
    m.add_link("two", "rod", bk.Compound(bk.Revolute((1, 0, 0), at=(0, 0, 0.1)), bk.Prismatic((0, 0, 1))),
               mass=0.5, com=(0, 0, 0.2), inertia=(0.01, 0.01, 0.01))
    m.add_link("ball", "two", bk.Spherical(upper=1.0, limit_stiffness=3.0), mass=0.1, inertia=(0.01, 0.01, 0.01))
    m.add_spring("ground", "ball", stiffness=3.0, rest_length=0.2, name="elastic")
    trajectory = bk.Simulation(m, v=np.ones(m.nv)).run(0.5)
    again = bk.load_trajectory(trajectory.save(tmp_path / "motion"))
    for name in ("t", "q", "v"):
        np.testing.assert_array_equal(getattr(again, name), getattr(trajectory, name))
    there = again.segments[0].mechanism
    assert repr(there) == repr(m)
    np.testing.assert_array_equal(bk.forward_dynamics(there, trajectory.q[-1], trajectory.v[-1]),
                                  bk.forward_dynamics(m, trajectory.q[-1], trajectory.v[-1]))


def test_a_trajectory_has_segments_of_different_width_and_events(tmp_path):
    one, two = pendulum(), bk.models.chain(3)
    first, second = bk.Simulation(one, [0.1]).run(1.0), bk.Simulation(two).run(0.5)
    later = Segment(two, second.t + 1.0, second.q, second.v)
    trajectory = bk.Trajectory([*first.segments, later], [Event(1.0, "became a chain")])
    again = bk.load_trajectory(trajectory.save(tmp_path / "both.npz"))
    assert [s.q.shape[1] for s in again.segments] == [1, 3]
    assert again.events == [(1.0, "became a chain")]
    assert [m.nv for m, _, _ in again.sample([0.5, 1.0, 1.2])] == [1, 3, 3]
    with pytest.raises(bk.ShapeError, match="segments"):
        _ = again.q
    t, kinetic, potential = again.energy()
    assert len(t) == len(kinetic) == len(potential)


def test_a_file_keeps_the_length_that_decides_forces_in_loops(tmp_path):
    m = bk.models.bricard()
    m.length_scale = 0.3
    again = bk.load_trajectory(bk.Simulation(m).run(0.1).save(tmp_path / "loops.npz")).segments[0].mechanism
    assert again.length_scale == 0.3
    q, v = m.neutral(), np.zeros(m.nv)
    expected, forces = bk.joint_forces(m, q, v), bk.joint_forces(again, q, v)
    assert all(np.array_equal(forces[name], expected[name]) for name in expected)


@pytest.mark.parametrize("content", [b"", b"not a file of ours", b"PK\x03\x04 truncated"])
def test_other_files_are_refused_by_name(tmp_path, content):
    path = tmp_path / "other.npz"
    path.write_bytes(content)
    with pytest.raises(bk.ModelError, match=r"other\.npz") as error:
        bk.load_trajectory(path)
    assert "unsafe" not in str(error.value)  # NumPy's advice for what it takes for a pickle


def test_folders_that_are_not_there_are_named(tmp_path):
    sim = bk.Simulation(pendulum(), [1.0])
    for save in (sim.save, sim.trajectory.save):
        with pytest.raises(bk.MissingFileError, match="there is no folder"):
            save(tmp_path / "no" / "file")
