"""Trajectory files: written atomically, and any damage is a bunraku error that names the file."""

import io
import json
import os
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

import bunraku as bk
from bunraku.simulation.records.trajectory import Event


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A file of two segments of different structure."""
    sim = bk.Simulation(bk.models.human(dof=16))
    sim.connect("ground", "left_hand", bk.Spherical(), name="grip")
    sim.run(0.02)
    sim.cut("grip")
    return sim.run(0.04).save(tmp_path_factory.mktemp("saved") / "motion")


def attempt(path) -> bool:
    """Whether a file loads, and then can be used; anything but a bunraku error fails the test."""
    try:
        trajectory = bk.load_trajectory(path)
    except bk.ModelError as error:
        said = str(error)
    else:
        said = ""
    if said:
        assert path.name in said
        assert len(said) < 1000
        return False
    t, kinetic, potential = trajectory.energy()
    assert np.isfinite(kinetic + potential).all()
    assert np.isfinite(trajectory.sample(0.5 * (t[0] + t[-1]))[0][1]).all()
    return True


def test_flipped_bytes_and_truncated_files_are_refused_or_harmless(saved, tmp_path):
    data, rng = saved.read_bytes(), np.random.default_rng(11)
    path, loaded = tmp_path / "damaged.npz", 0
    for k in range(400):
        damaged = bytearray(data[:rng.integers(len(data))] if k % 4 == 0 else data)
        for place in rng.integers(len(damaged), size=rng.integers(1, 5)) if k % 4 else ():
            damaged[place] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        loaded += attempt(path)
    assert loaded < 100  # some bytes of a zip file say nothing


def tampered(saved, path, change):
    """The file with a changed header or arrays, otherwise in order."""
    with np.load(saved, allow_pickle=False) as file:
        arrays = dict(file)
    header = json.loads(str(arrays.pop("header")))
    change(header, arrays)
    np.savez(path, header=np.array(json.dumps(header)), **arrays)


def put(name, place, value):
    return lambda header, arrays: arrays[name].__setitem__(place, value)


@pytest.mark.parametrize(("change", "words"), [
    (put("q0", (1, 2), np.nan), r"q of segment 0\[1, 2\] is nan"), (put("v1", (0, 0), np.inf), "v of segment 1"),
    (put("t0", 1, -1.0), "t of segment 0 decreases from 0 to -1"), (put("t1", 0, 0.0), "segment 1 begins at 0 s"),
    (put("t0", 0, np.nan), "t of segment 0"),
    (lambda h, a: a.update(q0=a["q0"][:, :-1]), r"should be 27 \(nq\)"),
    (lambda h, a: a.update(q0=a["q0"][:-1]), r"q of segment 0 has the shape"),
    (lambda h, a: a.update(v1=a["v1"].ravel()), "1 dimensions"),
    (lambda h, a: a.update(t0=a["t0"][:0]), "q of segment 0"),
    (lambda h, a: a.update(t0=a["t0"][:0], q0=a["q0"][:0], v0=a["v0"][:0]), "segment 0 is empty"),
    (lambda h, a: a.update(q1=a["q1"].astype(complex)), "complex128"),
    (lambda h, a: a.pop("t1"), "t of segment 1 is missing"),
    (lambda h, a: h.update(events=[[0.0, 3]]), "an event is text"),
    (lambda h, a: h.update(events=[["x", "y"]]), "event"),
    (lambda h, a: h.update(events=3), ""), (lambda h, a: h.pop("mechanisms"), "mechanisms"),
    (lambda h, a: h["mechanisms"][0]["links"][1].update(mass=-1.0), "mass"),
    (lambda h, a: h["mechanisms"][0]["links"][1].update(mass="heavy"), "mass"),
    (lambda h, a: h["mechanisms"][0]["links"][1]["joint"].update(type="np"), "no joint of type 'np'"),
    (lambda h, a: h["mechanisms"][0]["links"][1]["joint"].update(type=[]), "no joint of type"),
    (lambda h, a: h["mechanisms"][0]["links"][1].update(wings=2), ""),
    (lambda h, a: h["mechanisms"][0].update(name=7), "text"),
    (lambda h, a: h["mechanisms"][0].update(length_scale=-1.0), "length_scale"),
    (lambda h, a: h["mechanisms"][0].update(gravity=[0, 0, float("nan")]), "gravity"),
    (lambda h, a: h["mechanisms"][0]["connections"][0].update(link_a="nowhere"), "nowhere"),
])
def test_tampered_contents_are_refused_by_name(saved, tmp_path, change, words):
    path = tmp_path / "tampered.npz"
    tampered(saved, path, lambda header, arrays: None)
    assert attempt(path)
    tampered(saved, path, change)
    with pytest.raises(bk.ModelError, match=rf"tampered\.npz is not a trajectory.*{words}"):
        bk.load_trajectory(path)


def test_arrays_that_claim_to_be_huge_are_refused_at_once(saved, tmp_path):
    path = tmp_path / "huge.npz"
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "q0.npy":
                stream = io.BytesIO()
                np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False,
                                                              "shape": (10**13, 27)})
                data = stream.getvalue() + bytes(100)
            target.writestr(name, data)
    start = time.process_time()
    with pytest.raises(bk.ModelError, match=r"huge\.npz"):
        bk.load_trajectory(path)
    assert time.process_time() - start < 5.0


def test_what_is_saved_can_be_loaded_or_is_refused_at_once(tmp_path):
    trajectory = bk.Simulation(bk.models.chain(2)).run(0.1)
    trajectory.segments[0].v[-1, 0] = np.nan
    with pytest.raises(bk.ShapeError, match="cannot be saved: v of segment 0"):
        trajectory.save(tmp_path / "nan")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_the_file_that_was_there(saved, tmp_path):
    code = ("import resource, sys, bunraku as bk\ntrajectory = bk.load_trajectory(sys.argv[1])\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\ntrajectory.save(sys.argv[2])")
    path = tmp_path / "motion.npz"
    bk.Simulation(bk.models.chain(2)).run(0.1).save(path)
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", code, saved, path], capture_output=True, text=True, timeout=900)
    assert "OSError" in done.stderr
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_killed_process_leaves_a_whole_file_and_the_next_one_clears_up(saved, tmp_path):
    code = ("import sys, bunraku as bk\ntrajectory = bk.load_trajectory(sys.argv[1])\n"
            "trajectory.save(sys.argv[2])\nprint('saving', flush=True)\n"
            "while True:\n    trajectory.save(sys.argv[2])")
    path, partial = tmp_path / "motion.npz", []
    for _ in range(20):
        with subprocess.Popen([sys.executable, "-c", code, saved, path], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "saving\n"
            for _ in range(10_000):
                if len(list(tmp_path.iterdir())) > 1:
                    break
            process.kill()
        partial = [entry for entry in tmp_path.iterdir() if entry != path]
        assert (bk.load_trajectory(path).t == bk.load_trajectory(saved).t).all()
        if partial:
            break
    assert partial
    trajectory = bk.load_trajectory(saved)
    trajectory.events.append(Event(0.04, "the end"))
    trajectory.save(path)
    assert list(tmp_path.iterdir()) == [path]
    assert bk.load_trajectory(path).events[-1] == (0.04, "the end")
    assert os.stat(path).st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
