"""Recordings: appended states are in the file, other tools read it, and so is a file truncated by a crash."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap.writer import Writer
from mcap_ros2.decoder import DecoderFactory

import bunraku as bk
from bunraku.mechanism.coordinate_names import coordinate_names
from bunraku.record import Recording
from bunraku.record import writing as writing_module
from bunraku.simulation.records.trajectory import Event, record
from moving import pendulum


def whole(trajectory):
    """States of a segment, as a recording is given them."""
    return [np.hstack([s.q, s.v]) for s in trajectory.segments]


@pytest.fixture(scope="module")
def motion():
    """Two hands on a bar, then one: two structures, with events."""
    sim = bk.Simulation(bk.models.human(dof=16), v=None)
    for hand in ("left", "right"):
        sim.connect("ground", f"{hand}_hand", bk.Spherical(), name=f"{hand}_grip")
    sim.run(0.1)
    sim.cut("right_grip")
    return sim.run(0.3)


@pytest.fixture(scope="module")
def recorded(motion, tmp_path_factory):
    return motion.save(tmp_path_factory.mktemp("recorded") / "motion.mcap")


def assert_same(a, b):
    assert [s.mechanism.nv for s in a.segments] == [s.mechanism.nv for s in b.segments]
    for one, other in zip(a.segments, b.segments, strict=True):
        for name in ("t", "q", "v"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert list(one.mechanism.connections) == list(other.mechanism.connections)
        assert (one.tau is None) == (other.tau is None)
    assert a.events == b.events


# -- other readers -------------------------------------------------------------------------------------------------


def messages(path, topic):
    with open(path, "rb") as file:
        reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory(), _Json()])
        return [decoded for *_, decoded in reader.iter_decoded_messages(topics=[topic], log_time_order=False)]


class _Json:
    """Decodes messages in JSON."""

    def decoder_for(self, encoding, schema):
        return json.loads if encoding == "json" else None


@pytest.mark.parametrize("single", [False, True])
def test_the_mcap_reader_finds_every_state(motion, tmp_path, single):
    path = record(motion, tmp_path / "motion.mcap", single=single)
    states = messages(path, "/state")
    exact = np.float32 if single else np.float64
    expected = [(t, q, v) for s in motion.segments for t, q, v in zip(s.t, s.q, s.v, strict=True)]
    assert len(states) == len(expected)
    for state, (t, q, v) in zip(states, expected, strict=True):
        assert state.t == t
        np.testing.assert_array_equal(state.q, q.astype(exact))
        np.testing.assert_array_equal(state.v, v.astype(exact))
        assert len(state.tau) == 0


def test_the_mcap_reader_finds_structures_events_and_counts(motion, recorded):
    structures = messages(recorded, "/mechanism")
    assert [s["segment"] for s in structures] == [0, 1]
    assert [s["t"] for s in structures] == [s.t[0] for s in motion.segments]
    assert [len(s["mechanism"]["connections"]) for s in structures] == [2, 1]
    assert len(structures[0]["q"]) == motion.segments[0].mechanism.nq
    assert [(e["t"], e["text"]) for e in messages(recorded, "/event")] == motion.events
    with open(recorded, "rb") as file:
        reader = make_reader(file)
        channels, statistics = reader.get_summary().channels, reader.get_summary().statistics
        assert reader.get_header().profile == "bunraku"
    counts = {channels[k].topic: n for k, n in statistics.channel_message_counts.items() if n}
    assert counts == {"/mechanism": 2, "/state": len(motion.t), "/event": len(motion.events)}
    assert statistics.message_end_time == round(motion.t[-1] * 1e9)


def test_every_message_is_found_through_the_index(motion, recorded):
    with open(recorded, "rb") as file:
        backwards = [message.log_time for *_, message in make_reader(file).iter_messages("/state", reverse=True)]
    np.testing.assert_array_equal(backwards, np.rint(1e9 * motion.t[::-1]))


def test_a_file_that_another_writer_arranges_is_read_as_well(motion, recorded, tmp_path):
    """The same messages, by the writer of the mcap package: other blocks, schemas inside them."""
    path = tmp_path / "again.mcap"
    with open(recorded, "rb") as source, open(path, "wb") as target:
        reader, writer = make_reader(source), Writer(target, chunk_size=3000)
        writer.start("bunraku")
        for metadata in reader.iter_metadata():
            writer.add_metadata(metadata.name, metadata.metadata)
        numbers = {}
        for schema, channel, message in reader.iter_messages(log_time_order=False):
            if channel.id not in numbers:
                numbers[channel.id] = writer.register_channel(
                    channel.topic, channel.message_encoding,
                    writer.register_schema(schema.name, schema.encoding, schema.data))
            writer.add_message(numbers[channel.id], message.log_time, message.data, message.publish_time)
        writer.finish()
    assert_same(bk.load_trajectory(path), motion)


# -- our reader ----------------------------------------------------------------------------------------------------


def test_a_recording_reads_back_the_same(motion, recorded):
    assert_same(bk.load_trajectory(recorded), motion)
    assert_same(bk.Trajectory.load(str(recorded)), motion)


def test_single_precision_halves_the_file_and_keeps_unit_quaternions(motion, recorded, tmp_path):
    long = bk.Simulation(bk.models.human(16), v=np.full(22, 0.3)).run(3.0)
    sizes = [record(long, tmp_path / f"{single}.mcap", single=single).stat().st_size for single in (False, True)]
    assert sizes[1] < 0.65 * sizes[0]
    again = bk.load_trajectory(tmp_path / "True.mcap")
    np.testing.assert_array_equal(again.t, long.t)
    np.testing.assert_allclose(again.q, long.q, atol=1e-6)
    root = again.segments[0].mechanism.q_slice("root")
    np.testing.assert_allclose(np.linalg.norm(again.q[:, root][:, 3:], axis=1), 1.0, atol=1e-14)


def test_torques_are_kept_in_both_kinds_of_files(motion, tmp_path):
    for s in motion.segments:
        s.tau = np.random.default_rng(3).normal(size=(len(s.t), s.mechanism.nv + s.mechanism.nc))
    try:
        for name in ("motion.npz", "motion.mcap"):
            again = bk.load_trajectory(motion.save(tmp_path / name))
            for one, other in zip(again.segments, motion.segments, strict=True):
                np.testing.assert_array_equal(one.tau, other.tau)
    finally:
        for s in motion.segments:
            s.tau = None


def test_times_below_zero_are_kept(tmp_path):
    with Recording(tmp_path / "early.mcap", pendulum(), -0.5, np.zeros(2)) as file:
        file.append([-0.25, 1.0], np.ones((2, 2)))
    np.testing.assert_array_equal(bk.load_trajectory(tmp_path / "early.mcap").t, [-0.5, -0.25, 1.0])
    assert [state.t for state in messages(tmp_path / "early.mcap", "/state")] == [-0.5, -0.25, 1.0]


def test_a_state_at_the_time_of_the_last_one_replaces_it(tmp_path):
    with Recording(tmp_path / "a.mcap", pendulum(), 0.0, [0.0, 0.0]) as file:
        file.append([0.1, 0.2], [[1.0, 1.0], [2.0, 2.0]])
        file.append([0.2, 0.3], [[5.0, 5.0], [3.0, 3.0]])
    np.testing.assert_array_equal(bk.load_trajectory(tmp_path / "a.mcap").q[:, 0], [0.0, 1.0, 5.0, 3.0])


def test_a_structure_that_lasted_no_time_leaves_only_its_events(tmp_path):
    one, two, three = pendulum(), bk.models.chain(2), bk.models.chain(3)
    with Recording(tmp_path / "a.mcap", one, 0.0, np.zeros(2)) as file:
        file.append([1.0], np.ones((1, 2)))
        file.event(Event(1.0, "first"))
        file.change(two, 1.0, np.zeros(4))
        file.event(Event(1.0, "second"))
        file.change(three, 1.0, np.zeros(6))
        file.append([2.0], np.ones((1, 6)))
    again = bk.load_trajectory(tmp_path / "a.mcap")
    assert [s.mechanism.nv for s in again.segments] == [1, 3]
    assert again.events == [(1.0, "first"), (1.0, "second")]


def test_a_time_that_is_set_back_begins_the_motion_anew(tmp_path):
    with Recording(tmp_path / "a.mcap", pendulum(), 0.0, np.zeros(2)) as file:
        file.append([1.0], np.ones((1, 2)))
        file.event(Event(1.0, "forgotten"))
        file.change(pendulum(), 0.5, np.zeros(2))
        file.event(Event(0.5, "set back"))
        file.append([0.6], np.ones((1, 2)))
    again = bk.load_trajectory(tmp_path / "a.mcap")
    np.testing.assert_array_equal(again.t, [0.5, 0.6])
    assert again.events == [(0.5, "set back")]


# -- crashes -------------------------------------------------------------------------------------------------------


def test_a_file_cut_anywhere_gives_every_whole_block(tmp_path, monkeypatch):
    monkeypatch.setattr(writing_module, "BLOCK", 2000)
    path, rng = tmp_path / "whole.mcap", np.random.default_rng(5)
    long = bk.Simulation(bk.models.chain(3), v=np.ones(3)).run(2.0)
    (y,) = whole(long)
    with Recording(path, long.segments[0].mechanism, 0.0, y[0]) as file:
        for k in range(1, len(y), 7):
            file.append(long.t[k:k + 7], y[k:k + 7])
    with open(path, "rb") as file:  # where blocks end, and how many states they have, by the mcap package
        reader = make_reader(file)
        chunks = reader.get_summary().chunk_indexes
        ends = [chunk.chunk_start_offset + chunk.chunk_length for chunk in chunks]
        times = [chunk.message_end_time for chunk in chunks]
    states = [int(np.sum(np.rint(long.t * 1e9) <= end)) for end in times]
    assert len(ends) > 8
    data = path.read_bytes()
    cut = tmp_path / "cut.mcap"
    for place in [*rng.integers(len(data), size=100), *ends, ends[0] - 1, len(data) - 1]:
        cut.write_bytes(data[:place])
        blocks = sum(end <= place for end in ends)
        if not blocks:
            with pytest.raises(bk.ModelError, match=r"cut\.mcap"):
                bk.load_trajectory(cut)
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            again = bk.load_trajectory(cut)
        n = states[blocks - 1]
        np.testing.assert_array_equal(again.t, long.t[:n])
        np.testing.assert_array_equal(again.q, long.q[:n])
        in_summary = place > ends[-1] and not caught  # the data are whole, and their end is marked
        assert in_summary or "was not closed" in str(caught[0].message)


def test_whatever_is_appended_is_in_the_file_after_a_second(tmp_path):
    """Even if nothing is appended after it: a simulation that is paused."""
    file = Recording(tmp_path / "live.mcap", pendulum(), 0.0, np.zeros(2))
    file.append([0.1], np.ones((1, 2)))
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline:
        with pytest.warns(bk.LoadWarning, match="was not closed"):
            states = len(bk.load_trajectory(tmp_path / "live.mcap").t)
        if states == 2:
            break
        time.sleep(0.05)
    else:
        pytest.fail("the state is not in the file")
    file.close()


def test_a_killed_process_leaves_all_but_its_last_second(tmp_path):
    code = ("import sys, numpy as np, bunraku as bk\nfrom bunraku.record import Recording\n"
            "m = bk.models.chain(2)\nfile = Recording(sys.argv[1], m, 0.0, np.zeros(4))\n"
            "file.append([1.0], np.ones((1, 4)))\nfile.flush()\nfile.append([2.0], np.ones((1, 4)))\n"
            "print('appended', flush=True)\nsys.stdin.read()")
    path = tmp_path / "killed.mcap"
    with subprocess.Popen([sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout.readline() == "appended\n"
        process.send_signal(signal.SIGKILL)
    with pytest.warns(bk.LoadWarning, match="last whole block, which ends at"):
        assert set(bk.load_trajectory(path).t) >= {0.0, 1.0}


def test_a_full_disk_is_an_error_and_leaves_whole_blocks(tmp_path):
    code = ("import resource, sys, numpy as np, bunraku as bk\nfrom bunraku.record import Recording\n"
            "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "file = Recording(sys.argv[1], bk.models.chain(2), 0.0, np.zeros(4))\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))\n"
            "for k in range(100):\n    file.append(k + np.arange(1, 11) / 10, np.ones((10, 4)))\n    file.flush()\n")
    path = tmp_path / "full.mcap"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=900)
    assert "OSError" in done.stderr
    assert "full.mcap" in done.stderr
    with pytest.warns(bk.LoadWarning):
        again = bk.load_trajectory(path)
    assert len(again.t) % 10 == 1
    assert len(again.t) > 10


# -- wrong files and calls -----------------------------------------------------------------------------------------


def test_flipped_bytes_are_found(motion, recorded, tmp_path):
    data, rng, path = recorded.read_bytes(), np.random.default_rng(7), tmp_path / "damaged.mcap"
    refused = 0
    for _ in range(200):
        damaged = bytearray(data)
        damaged[rng.integers(len(data) - 8)] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            again = bk.load_trajectory(path)
        except bk.ModelError as error:
            assert "damaged.mcap" in str(error)  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017
            refused += 1
        else:
            assert_same(again, motion)  # the index and the summary are for other tools
    assert refused > 100


@pytest.mark.parametrize(("old", "new", "words"), [
    ({"format": "1"}, {"format": "2"}, r"other\.mcap: recording of format 2; this version reads 1"),
    ({"format": "1"}, {"format": "x"}, r"other\.mcap is not a recording that bunraku wrote"),
])
def test_another_version_is_refused_by_name(recorded, tmp_path, monkeypatch, old, new, words):
    monkeypatch.setattr(writing_module, "FORMAT", new["format"])
    with Recording(tmp_path / "other.mcap", pendulum(), 0.0, np.zeros(2)):
        pass
    with pytest.raises(bk.ModelError, match=words):
        bk.load_trajectory(tmp_path / "other.mcap")


def test_a_recording_of_another_program_is_refused(tmp_path):
    path = tmp_path / "robot.mcap"
    with open(path, "wb") as file:
        writer = Writer(file)
        writer.start()
        channel = writer.register_channel("/odometry", "json", writer.register_schema("Odometry", "jsonschema", b"{}"))
        writer.add_message(channel, 0, b"{}", 0)
        writer.finish()
    with pytest.raises(bk.ModelError, match=r"robot\.mcap is not a recording that bunraku wrote"):
        bk.load_trajectory(path)


def test_a_recording_is_no_checkpoint(recorded):
    with pytest.raises(bk.ModelError, match=r"is a recording, not a checkpoint: bk\.load_trajectory reads it"):
        bk.Simulation.load(recorded)


def test_wrong_shapes_and_folders_are_refused(tmp_path):
    with Recording(tmp_path / "a.mcap", pendulum(), 0.0, np.zeros(2)) as file:
        with pytest.raises(bk.ShapeError, match=r"must have \(n,\), \(n, 2\), \(n, 0\)"):
            file.append([1.0], np.ones((1, 3)))
        with pytest.raises(bk.ShapeError, match="tau"):
            file.append([1.0], np.ones((1, 2)), tau=np.ones((1, 1)))
    with pytest.raises(bk.SimulationError, match="closed"):
        file.append([1.0], np.ones((1, 2)))
    with pytest.raises(bk.MissingFileError, match="there is no folder"):
        Recording(tmp_path / "no" / "a.mcap", pendulum(), 0.0, np.zeros(2))
    assert sorted(os.listdir(tmp_path)) == ["a.mcap"]


def test_dense_polynomials_that_are_left_out_are_said(tmp_path):
    dense = bk.Simulation(pendulum(), [0.1], dense=True).run(0.1)
    with pytest.warns(bk.SimulationWarning, match=r"save it as \.npz"):
        dense.save(tmp_path / "dense.mcap")


def test_without_mcap_the_error_says_what_to_install(recorded, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcap.records", None)
    for call in (lambda: bk.load_trajectory(recorded), lambda: Recording(tmp_path / "a", pendulum(), 0.0, [0.0, 0.0])):
        with pytest.raises(bk.MissingExtra, match=r'pip install "bunraku\[record\]"'):
            call()


# -- the page ------------------------------------------------------------------------------------------------------


def test_the_python_of_the_page_runs(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "recordings.md").read_text("utf-8")
    code = "".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd=tmp_path,
                          timeout=900)
    assert done.returncode == 0, done.stderr
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ["chain.gif", "chain.mcap", "chain.png", "live.mcap", "wave.mcap"]
    assert bk.load_trajectory(tmp_path / "wave.mcap").events == [(2.0, "the end")]


# -- names ---------------------------------------------------------------------------------------------------------


def test_every_coordinate_has_a_name_of_its_own():
    m = bk.Mechanism()
    body = {"mass": 1.0, "inertia": (1, 1, 1)}
    for name, joint in (("root", bk.Free()), ("ball", bk.Spherical()), ("hinge", bk.Revolute((0, 1, 0))),
                        ("tube", bk.Cylindrical((0, 0, 1))), ("disc", bk.Planar((0, 0, 1))), ("weld", bk.Fixed()),
                        ("cardan", bk.Compound(bk.Revolute((1, 0, 0)), bk.Revolute((0, 1, 0))))):
        m.add_link(f"{name} link", joint=joint, joint_name=name, **body)
    m.connect("hinge link", "tube link", bk.Revolute((0, 1, 0)), name="loop")
    names = coordinate_names(m)
    assert names.q == ["root.x", "root.y", "root.z", "root.qw", "root.qx", "root.qy", "root.qz", "ball.qw", "ball.qx",
                       "ball.qy", "ball.qz", "hinge", "tube.length", "tube.angle", "disc.x", "disc.y", "disc.angle",
                       "cardan.1", "cardan.2"]
    assert names.v[6:14] == ["ball.wx", "ball.wy", "ball.wz", "hinge.rate", "tube.length.rate", "tube.angle.rate",
                             "disc.x.rate", "disc.y.rate"]
    assert names.tau[9] == "hinge.tau"
    assert names.tau[-1] == "loop.tau"
    assert [len(part) for part in names] == [m.nq, m.nv, m.nv + m.nc]
    assert len({*names.q, *names.v, *names.tau}) == m.nq + m.nv + m.nv + m.nc
    for joint in ("root", "ball", "hinge", "tube", "disc", "cardan"):
        assert {name.split(".")[0] for name in names.q[m.q_slice(joint)]} == {joint}


@pytest.mark.parametrize(("single", "value"), [(False, np.nan), (False, np.inf), (True, 1e39)])
def test_what_could_not_be_read_again_is_not_written(tmp_path, single, value):
    m = bk.models.chain(2)
    y = np.zeros(4)
    with Recording(tmp_path / "a.mcap", m, 0.0, y, single=single) as recording:
        with pytest.raises(bk.ShapeError, match="y has a value"):
            recording.append([0.1], [[value, 0, 0, 0]])
        recording.append([0.2], [y])
    assert bk.load_trajectory(tmp_path / "a.mcap").t.tolist() == [0.0, 0.2]
