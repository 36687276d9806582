"""BVH: joint positions as other readers have them, guesses said, masses that add up, errors with their line."""

import warnings

import numpy as np
import pytest

import bunraku as bk
import bvh_files
from bunraku.io.bvh import read_figure

DIALECTS = {"cmu": (bvh_files.cmu, "cmu", 0.0254 / 0.45), "lafan": (bvh_files.lafan, "cm", 0.01),
            "soma": (bvh_files.soma, "cm", 0.01)}
Y_UP = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # forward z, up y


@pytest.fixture
def write(tmp_path):
    def write(text, name="figure.bvh"):
        path = tmp_path / name
        path.write_text(text)
        return path
    return write


def quiet(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bk.LoadWarning)
        return read_figure(path, **options)


def our_places(figure):
    poses = bk.poses(figure.mechanism, figure.q)
    return {name: position for name, (_, position) in poses.items()}


def bvhio_places(path):
    bvhio = pytest.importorskip("bvhio")
    root = bvhio.readAsHierarchy(str(path))
    found = {}
    for frame in range(len(bvhio.readAsBvh(str(path)).Root.Keyframes)):
        root.loadPose(frame)
        for joint, _, _ in root.layout():
            found.setdefault(joint.Name, []).append(np.array(joint.PositionWorld))
    return {name: np.array(rows) for name, rows in found.items()}


def pybvh_places(path):
    pybvh = pytest.importorskip("pybvh")
    file = pybvh.read_bvh_file(path, world_up="+y")
    every = file.node_positions()
    names = [node.name if not node.is_end_site() else f"{node.parent.name}_end" for node in file.nodes]
    return {name: every[:, k] for k, name in enumerate(names)}


def by_hand(path):
    return bvh_files.places(path.read_text())


READERS = {"bvhio": bvhio_places, "pybvh": pybvh_places, "by hand": by_hand}


@pytest.mark.parametrize(("dialect", "reader"), [
    ("cmu", "bvhio"), ("cmu", "pybvh"), ("cmu", "by hand"), ("lafan", "bvhio"), ("lafan", "pybvh"),
    ("lafan", "by hand"), ("soma", "bvhio"), ("soma", "by hand")])  # pybvh reads positions of the root only
@pytest.mark.parametrize("seed", [0, 1])
def test_joints_are_where_other_readers_have_them(write, dialect, reader, seed):
    make, _, unit = DIALECTS[dialect]
    path = write(make(seed))
    theirs, ours = READERS[reader](path), our_places(quiet(path))
    assert set(theirs) <= set(ours)
    assert len(theirs) >= 20
    for name, places in theirs.items():
        np.testing.assert_allclose(ours[name], unit * places @ Y_UP.T, atol=1e-6, err_msg=name)


def test_any_channels_in_any_order(write):
    path = write(bvh_files.odd())
    figure = quiet(path, unit="m", up="z", forward="x")
    ours = our_places(figure)
    for name, places in by_hand(path).items():
        np.testing.assert_allclose(ours[name], places, atol=1e-12, err_msg=name)
    m = figure.mechanism
    kinds = {name: type(m.joint(name)) for name in ("trunk", "arm", "elbow", "wrist", "knee", "left foot", "head")}
    assert kinds == {"trunk": bk.Free, "arm": bk.Spherical, "elbow": bk.Revolute, "wrist": bk.Compound,
                     "knee": bk.Fixed, "left foot": bk.Spherical, "head": bk.Compound}


def test_a_root_that_moves_above_the_hips_is_added_to_them(write):
    path = write(bvh_files.soma(0, moving_root=True))
    ours, theirs = our_places(quiet(path)), by_hand(path)
    for name in set(theirs) - {"Root"}:
        np.testing.assert_allclose(ours[name], 0.01 * theirs[name] @ Y_UP.T, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_guesses_are_right_and_said(write, dialect):
    make, unit, _ = DIALECTS[dialect]
    path = write(make())
    with pytest.warns(bk.LoadWarning) as said:
        m = bk.load(path)
    text = [str(w.message) for w in said]
    assert any(f"unit={unit!r}" in x for x in text)
    assert any("up='y'" in x for x in text)
    assert any("70 kg" in x and "de Leva" in x for x in text)
    assert m.mass == pytest.approx(70.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = bk.load(path, unit=unit, up="y", mass=70.0, strict=True)
    assert [link.mass for link in told.links] == [link.mass for link in m.links]
    with pytest.raises(bk.LoadError, match="not clean"):
        bk.load(path, strict=True)


def test_masses_are_those_of_a_person(write):
    human = bk.models.human(34, mass=80.0)
    figure = quiet(write(bvh_files.lafan()), mass=80.0, masses={"Head": 5.0}).mechanism
    for ours, theirs in (("LeftUpLeg", "left_thigh"), ("RightLeg", "right_shank"), ("LeftArm", "left_upper_arm"),
                         ("RightForeArm", "right_forearm"), ("LeftHand", "left_hand")):
        assert figure.link(ours).mass == pytest.approx(human.link(theirs).mass, rel=1e-3)  # shares add up to 1.0002
    assert figure.link("Head").mass == 5.0
    thigh = figure.link("LeftUpLeg")
    np.testing.assert_allclose(thigh.com, 0.5 * figure.link("LeftLeg").position)
    assert np.all(np.linalg.eigvalsh(bk.mass_matrix(figure, figure.neutral())) > 0)


def test_a_figure_without_head_and_feet_shares_its_mass_by_length(write):
    path = write(bvh_files.text(("a", (0, 0, 0), "Zrotation", [("b", (0, 2, 0), "Zrotation", [(0.0, 1.0, 0.0)])]),
                                np.zeros((2, 2))))
    with pytest.warns(bk.LoadWarning, match=r"shared by segment length|unit=|up="):
        m = bk.load(path, mass=None)
    assert m.link("a").mass == pytest.approx(2 * m.link("b").mass)


@pytest.mark.parametrize(("text", "exact"), [("0.033333", 1 / 30), (".0083333", 1 / 120), ("0.01", 0.01),
                                              ("0.0417083", 0.0417083), ("0.016667", 1 / 60), ("0.3", 0.3)])
def test_frame_times_are_what_their_digits_stand_for(write, text, exact):
    path = write(bvh_files.lafan().replace("0.033333", text))
    assert quiet(path).t[1] == exact


def test_segments_that_stretch_are_free_or_rigid(write):
    tree = ("root", (0, 0, 0), bvh_files.SIX, [("arm", (0, 1, 0), bvh_files.SIX, [(0.0, 1.0, 0.0)]),
                                                ("leg", (0, -1, 0), bvh_files.ZYX, [(0.0, -1.0, 0.0)])])
    path = write(bvh_files.text(tree, bvh_files.motion(tree, 6, (0, 0, 0), 0.1)))
    with pytest.warns(bk.LoadWarning, match=r"joint 'arm', line 6: its position varies by .* mm") as said:
        m = bk.load(path, unit="m", up="y", mass=10.0)
    assert len(said) == 1
    assert isinstance(m.joint("arm"), bk.Free)
    with pytest.warns(bk.LoadWarning, match="taken as constant"):
        m = bk.load(path, unit="m", up="y", mass=10.0, rigid=True)
    assert isinstance(m.joint("arm"), bk.Spherical)


def test_a_file_without_frames_is_a_figure(write):
    text = bvh_files.lafan()
    path = write(text[:text.index("Frames:")] + "Frames: 0\nFrame Time: 0.01\n")
    figure = quiet(path, unit="cm", up="x", forward="y")
    assert figure.q.shape == (0, figure.mechanism.nq)
    with pytest.warns(bk.LoadWarning), pytest.raises(bk.LoadError, match="has no frames"):
        bk.load_motion(path)


def edited(old, new, count=1):
    text = bvh_files.lafan()
    assert old in text
    return text.replace(old, new, count)


@pytest.mark.parametrize(("text", "said"), [
    ("", "empty"),
    ("hello", r"line 1: 'hello' where HIERARCHY is expected"),
    ("HIERARCHY\nJOINT a\n", r"line 2: 'JOINT' where ROOT is expected"),
    ("HIERARCHY\nROOT a\n{\nOFFSET 0 0 0\n", r"line 4: the file ends here"),
    ("HIERARCHY\nROOT\n{\n}\n", r"line 2: ROOT without a name"),
    ("HIERARCHY\nROOT a\n{\nOFFSET 0 0 0\nCHANNELS " + 5000 * "9", r"line 5: the number of CHANNELS is '999"),
    ("HIERARCHY\nROOT a\n{\n}\n", r"line 4: 'a' has no OFFSET"),
    (edited("OFFSET 43.500000 0.000000 0.000000", "OFFSET 43.5 zero 0"), r"line 12: an OFFSET is 'zero'"),
    (edited("OFFSET 43.500000 0.000000 0.000000", "OFFSET 43.5 0"), r"line 12: an OFFSET is 'CHANNELS'"),
    (edited("CHANNELS 3 Zrotation", "CHANNELS 3 Wrotation"), r"line 9: channel 'Wrotation' of 'LeftUpLeg'"),
    (edited("CHANNELS 3 Zrotation", "CHANNELS 3 Xscale"), r"line 9: channel 'Xscale'.*change their size"),
    (edited("CHANNELS 3 Zrotation", "CHANNELS three Zrotation"), r"line 9: the number of CHANNELS is 'three'"),
    (edited("Zrotation Yrotation Xrotation\n\t\tJOINT", "Zrotation Zrotation Xrotation\n\t\tJOINT"),
     r"line 9: Zrotation of 'LeftUpLeg'.*twice in a row"),
    (edited("6 Xposition Yposition", "6 Xposition Xposition"), r"line 5: Xposition of 'Hips' is there"),
    (edited("JOINT LeftLeg", "JOINT LeftUpLeg"), r"line 10: the name 'LeftUpLeg' is that of line 6 too"),
    (edited("JOINT LeftLeg", "JOINT ground"), r"line 10: the name 'ground'"),
    (edited("JOINT LeftLeg", "BONE LeftLeg"), r"line 10: 'BONE' where OFFSET, CHANNELS, JOINT"),
    (edited("}\n}\nMOTION", "}\nMOTION"), r"MOTION begins before the braces of 'Hips' are closed"),
    (edited("Frames: 5", "Frames: 6"), r"the last of 5 frames, but the file promises 6"),
    (edited("Frames: 5", "Frames: many"), r"the number of Frames is 'many'"),
    (edited("Frame Time: 0.033333", "Frame Time: 0"), r"the Frame Time is 0 s; it must be positive"),
])
def test_what_is_malformed_is_said_with_its_line(write, text, said):
    with pytest.raises(bk.LoadError, match=said) as error:
        bk.load(write(text))
    assert "figure.bvh" in str(error.value)
    assert "\n" not in str(error.value)


def test_frames_that_are_cut_off_or_no_numbers_are_said_with_their_line(write):
    lines = bvh_files.lafan().splitlines()
    first = lines.index("MOTION") + 3
    short = [*lines[:first + 2], lines[first + 2][:100], *lines[first + 3:]]
    with pytest.raises(bk.LoadError, match=rf"line {first + 3}: \d+ numbers in place of 69"):
        bk.load(write("\n".join(short)))
    words = lines[first + 1].split()
    for word in ("nan", "1e999", "x", "1_0"):
        wrong = [*lines[:first + 1], " ".join([*words[:4], word, *words[5:]]), *lines[first + 2:]]
        with pytest.raises(bk.LoadError, match=rf"line {first + 2}: Yrotation of Hips is '{word}'"):
            bk.load(write("\n".join(wrong)))


def test_options_of_bvh_are_refused_elsewhere_and_checked(write, tmp_path):
    (tmp_path / "robot.urdf").write_text("<robot name='r'><link name='a'/></robot>")
    with pytest.raises(bk.ModelError, match="unit is for"):
        bk.load(tmp_path / "robot.urdf", unit="cm")
    path = write(bvh_files.lafan())
    for options, said in (({"unit": "yards"}, "unit must be one of"), ({"up": "w"}, "up must be one of"),
                          ({"up": "y", "forward": "-y"}, "are one line"), ({"mass": -1.0}, "mass"),
                          ({"base": "floating"}, "base must be"),
                          ({"masses": {"LeftLeg ": 1.0}}, "did you mean 'LeftLeg'")):
        with pytest.raises(bk.ModelError, match=said):
            quiet(path, **options)
