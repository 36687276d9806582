"""TRC, C3D, MOT and STO: equal to independent readers (pandas, ezc3d), gaps and faults with name, frame and line."""

import warnings

import numpy as np
import pytest

import bunraku as bk

NAMES = ["LASI", "RASI", "L Toe"]
Y_UP = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # OpenSim's x forward, y up to ours


def trc(positions, names=NAMES, rate=100.0, units="mm", first=1):
    """A file as OpenSim and Cortex write it; NaN is an empty cell."""
    rows = ["\t".join([str(k + first), f"{k / rate:.5f}", *("" if np.isnan(x) else f"{x:.5f}" for x in frame.ravel())])
            for k, frame in enumerate(positions)]
    head = ["PathFileType\t4\t(X/Y/Z)\twalk.trc",
            "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames",
            f"{rate}\t{rate}\t{len(rows)}\t{len(names)}\t{units}\t{rate}\t1\t{len(rows)}",
            "Frame#\tTime\t" + "\t\t\t".join(names) + "\t\t",
            "\t\t" + "\t".join(f"{a}{k + 1}" for k in range(len(names)) for a in "XYZ"), ""]
    return "\n".join(head + rows) + "\n"


def sto(values, names, degrees="yes", first="coordinates"):
    rows = ["\t".join(f"{x:.8f}" for x in row) for row in values]
    return "\n".join([first, "version=1", f"nRows={len(rows)}", f"nColumns={len(names)}", f"inDegrees={degrees}",
                      "Units are S.I. units (second, meters, ...)", "endheader", "\t".join(names), *rows]) + "\n"


@pytest.fixture
def points():
    positions = np.round(np.random.default_rng(0).uniform(-1000, 1000, (12, 3, 3)), 5)
    positions[4:6, 1] = np.nan
    positions[9, 2] = np.nan
    return positions


@pytest.fixture
def write(tmp_path):
    def write(text, name):
        path = tmp_path / name
        path.write_text(text)
        return path
    return write


def load(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return bk.load_motion(path, **options)


# -- TRC ---------------------------------------------------------------------------------------------------------------


def test_trc_as_pandas_reads_it(write, points):
    pandas = pytest.importorskip("pandas")
    path = write(trc(points), "walk.trc")
    theirs = pandas.read_csv(path, sep="\t", skiprows=5, header=None).to_numpy(float)[:, :11]
    markers = load(path, up="y", forward="x")
    np.testing.assert_array_equal(markers.t, theirs[:, 1])
    np.testing.assert_allclose(markers.positions, 1e-3 * theirs[:, 2:].reshape(-1, 3, 3) @ Y_UP.T, rtol=1e-14)
    assert markers.names == NAMES
    assert markers.rate == pytest.approx(100.0)
    np.testing.assert_array_equal(markers["L Toe"], markers.positions[:, 2])


def test_axes_that_are_assumed_are_said(write, points):
    with pytest.warns(bk.LoadWarning, match=r"walk.trc: axes: .*y up and x forward"):
        bk.load_motion(write(trc(points), "walk.trc"))


def test_gaps_have_names_and_frames(write, points):
    markers = load(write(trc(points, first=101), "walk.trc"), up="y")
    assert markers.gaps == [("RASI", 105, 106), ("L Toe", 110, 110)]
    with pytest.raises(bk.ShapeError, match=r"walk.trc: marker 'RASI' has a gap in frames 105 to 106 \(and 1 more"):
        markers.smooth(6.0)
    with pytest.raises(bk.ShapeError, match=r"'RASI' has a gap in frames 105 to 106, longer than 1"):
        markers.filled(1)
    assert markers.filled(2).gaps == []
    points[0, 0] = np.nan
    with pytest.raises(bk.ShapeError, match=r"'LASI' has a gap in frame 1, at an end"):
        load(write(trc(points), "walk.trc"), up="y").filled(5)


def test_gaps_are_filled_smoothly(write):
    t = np.arange(100) / 100
    path = 500 * np.stack([np.sin(3 * t), np.cos(2 * t), t], axis=1)[:, None]
    holed = path.copy()
    holed[40:50] = np.nan
    markers = load(write(trc(holed, ["A"]), "walk.trc"), up="y").filled(10)
    np.testing.assert_allclose(markers["A"], 1e-3 * path[:, 0] @ Y_UP.T, atol=1e-4)
    assert markers.smooth(10.0).positions.shape == (100, 1, 3)


@pytest.mark.parametrize(("old", "new", "said"), [
    ("PathFileType", "Path", "line 1: a TRC file begins with PathFileType"),
    ("NumMarkers", "Markers", "line 3: NumMarkers is not said"),
    ("\tmm\t", "\tfurlongs\t", "line 3: the unit 'furlongs'"),
    ("\t3\tmm", "\t4\tmm", "line 4: 3 names of markers.*promises 4"),
    ("RASI", "LASI", "line 4: the marker 'LASI' is there twice"),
    ("\t12\t3", "\t13\t3", "line 18: the last of 12 frames, but line 3 promises 13"),
    ("\n3\t0.02000", "\n3\t0.00000", "line 9: the time 0 s is not later"),
    ("\n3\t0.02000", "\n3\t0.02000\t7", "line 9: 12 numbers in place of 11"),
    ("\n3\t0.02000\t", "\n3\t0.02000\tx", "line 9: X of LASI is"),
])
def test_malformed_trc_is_said_with_its_line(write, points, old, new, said):
    text = trc(points)
    assert old in text
    with pytest.raises(bk.LoadError, match=said):
        load(write(text.replace(old, new, 1), "walk.trc"), up="y")


# -- MOT and STO -------------------------------------------------------------------------------------------------------


def test_tables_as_pandas_reads_them(write):
    pandas = pytest.importorskip("pandas")
    names = ["time", "pelvis_tx", "knee_angle_r"]
    values = np.column_stack([np.arange(20) / 50, np.random.default_rng(0).standard_normal((20, 2))])
    for suffix in ("mot", "sto"):
        path = write(sto(values, names), f"walk.{suffix}")
        theirs = pandas.read_csv(path, sep="\t", skiprows=7)
        table = load(path)
        assert table.names == names[1:] == list(theirs.columns)[1:]
        np.testing.assert_array_equal(table.t, theirs["time"])
        np.testing.assert_array_equal(table["knee_angle_r"], theirs["knee_angle_r"])
        assert table.degrees


def leg():
    m = bk.Mechanism(name="leg")
    m.add_link("pelvis", joint=bk.Compound(bk.Prismatic((1, 0, 0)), bk.Revolute((0, 1, 0))), joint_name="ground_pelvis",
               mass=10.0, inertia=(0.1, 0.1, 0.1))
    m.add_link("shank", "pelvis", bk.Revolute((0, 1, 0)), "knee_angle_r", mass=3.0, inertia=(0.1, 0.1, 0.1))
    return m


def test_columns_move_the_joints_of_their_names(write):
    values = np.column_stack([np.arange(9) / 50, np.random.default_rng(0).uniform(-50, 50, (9, 3))])
    names = ["time", "pelvis_tx", "pelvis_tilt", "/jointset/knee_r/knee_angle_r/value"]
    table = load(write(sto(values, names), "walk.sto"))
    motion = table.motion(leg(), columns={"ground_pelvis": ("pelvis_tx", "pelvis_tilt")})
    np.testing.assert_allclose(motion.q, np.column_stack([values[:, 1], np.radians(values[:, 2:])]), atol=1e-9)
    radians = load(write(sto(values, names, "no"), "walk.sto"))
    np.testing.assert_allclose(radians.motion(leg(), {"ground_pelvis": ("pelvis_tx", "pelvis_tilt")}).q[:, 2],
                               values[:, 3], atol=1e-8)
    with pytest.raises(bk.ModelError, match=r"walk.sto does not fit leg: 'ground_pelvis' has 2 coordinates"):
        bk.load_motion(write(sto(values, names), "walk.sto"), leg())
    with pytest.raises(bk.ModelError, match=r"'root' is Free, .* 'waist' is Spherical, .*'left_elbow' has no column"):
        table.motion(bk.models.human(34))


@pytest.mark.parametrize("style", ["{side}_ground_{kind}", "ground_{kind}", "{side}_{kind}"])
def test_ground_forces_of_any_naming(write, style):
    rng = np.random.default_rng(0)
    force, cop = rng.uniform(-50, 50, (9, 3)) + np.array([0, 500.0, 0]), rng.uniform(-1, 1, (9, 3)) * [1, 0, 1]
    free = np.outer(rng.uniform(-5, 5, 9), [0, 1.0, 0])
    words = {"v": "force_v", "p": "force_p", "t": "torque_"}
    names = ["time"] + [style.format(side="l", kind=words[kind]) + axis for kind in "vpt" for axis in "xyz"]
    values = np.column_stack([np.arange(9) / 50, force, cop, free])
    plate, = load(write(sto(values, names), "grf.mot")).plates()
    np.testing.assert_allclose(plate.force, force @ Y_UP.T, atol=1e-7)
    np.testing.assert_allclose(plate.cop, cop @ Y_UP.T, atol=1e-7)
    np.testing.assert_allclose(plate.free_moment, free[:, 1], atol=1e-5)


@pytest.mark.parametrize(("old", "new", "said"), [
    ("endheader", "end", "line 1: a .mot file has a header"),
    ("nRows=4", "nRows=5", "line 3: nrows promises 5 rows, but there are 4"),
    ("nColumns=3", "nColumns=2", "line 4: ncolumns promises 2 columns, but there are 3"),
    ("inDegrees=yes", "inDegrees=maybe", "line 5: inDegrees is 'maybe'"),
    ("time\t", "t\t", "line 8: the first column must be time"),
    ("b\n", "a\n", "line 8: the column 'a' is there twice"),
    ("0.02000000\t", "0.00000000\t", "line 10: the time 0 s is not later"),
    ("0.04000000\t", "0.04000000\tnan\t", "line 11: 4 numbers in place of 3"),
    ("0.04000000\t", "0.04000000x\t", "line 11: time is '0.04000000x'"),
])
def test_malformed_tables_are_said_with_their_line(write, old, new, said):
    text = sto(np.column_stack([np.arange(4) / 50, np.ones((4, 2))]), ["time", "a", "b"])
    assert old in text
    with pytest.raises(bk.LoadError, match=said):
        load(write(text.replace(old, new, 1), "walk.mot"))


def test_names_that_are_not_there_are_said(write):
    table = load(write(sto(np.zeros((1, 2)), ["time", "knee_angle_r"]), "walk.mot"))
    with pytest.raises(bk.NamingError, match="no column 'knee_angle_l'; did you mean 'knee_angle_r'"):
        table["knee_angle_l"]
    with pytest.raises(bk.ModelError, match="there are no ground forces"):
        table.plates()


# -- C3D ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def c3d(tmp_path, points):
    """A file written by ezc3d: three markers and a force plate of type 2, its x along the world's x, its z down."""
    ezc3d = pytest.importorskip("ezc3d")
    rng = np.random.default_rng(1)
    file = ezc3d.c3d()
    file["parameters"]["POINT"]["RATE"]["value"] = [100]
    file["parameters"]["POINT"]["UNITS"]["value"] = ["mm"]
    file["parameters"]["POINT"]["LABELS"]["value"] = NAMES
    data = np.ones((4, 3, len(points)))
    data[:3] = points.transpose(2, 1, 0)
    file["data"]["points"] = data
    file["parameters"]["ANALOG"]["RATE"]["value"] = [1000]
    file["parameters"]["ANALOG"]["LABELS"]["value"] = ["Fx1", "Fy1", "Fz1", "Mx1", "My1", "Mz1", "EMG"]
    file["parameters"]["ANALOG"]["UNITS"]["value"] = ["N", "N", "N", "Nmm", "Nmm", "Nmm", "V"]
    analog = rng.uniform(-100, 100, (1, 7, 10 * len(points)))
    analog[0, 2] -= 600.0
    analog[0, 3:6] *= 100.0
    file["data"]["analogs"] = analog
    corners = np.array([[600, 0, 5], [0, 0, 5], [0, 400, 5], [600, 400, 5]], float)  # x+ y+ of the plate first
    for key, value in {"USED": [1], "TYPE": [2], "ZERO": [1, 0], "CHANNEL": np.arange(1, 7).reshape(6, 1),
                       "CORNERS": corners.T.reshape(3, 4, 1), "ORIGIN": np.array([[0.0], [0.0], [-40.0]])}.items():
        file["parameters"]["FORCE_PLATFORM"][key]["value"] = np.array(value)
    file.write(str(tmp_path / "walk.c3d"))
    return tmp_path / "walk.c3d", analog[0]


def test_c3d_as_ezc3d_reads_it(c3d, points):
    import ezc3d
    path, analog = c3d
    markers, theirs = load(path, up="z"), ezc3d.c3d(str(path), extract_forceplat_data=True)
    np.testing.assert_allclose(markers.positions, 1e-3 * points, rtol=1e-6, atol=1e-9)
    assert markers.gaps == [("RASI", 5, 6), ("L Toe", 10, 10)]
    np.testing.assert_array_equal(markers.analog["EMG"], theirs["data"]["analogs"][0, 6])
    np.testing.assert_allclose(markers.analog["EMG"], analog[6], rtol=1e-5, atol=1e-4)
    assert markers.analog_units["Mx1"] == "Nmm"
    assert (markers.analog_t[1], markers.t[1]) == (0.001, 0.01)
    plate, raw = markers.plates[0], theirs["data"]["platform"][0]
    np.testing.assert_allclose(plate.force, raw["force"].T, rtol=1e-12)
    np.testing.assert_allclose(plate.cop, 1e-3 * raw["center_of_pressure"].T, atol=1e-9)
    np.testing.assert_allclose(plate.free_moment, 1e-3 * raw["Tz"][2], atol=1e-9)


def test_the_wrench_of_a_plate_by_hand(c3d):
    """Type 2: the plate's y and z point against the world's; its moments are about a point 40 mm below its middle."""
    path, analog = c3d
    plate, flip = load(path, up="z").plates[0], np.diag([1.0, -1.0, -1.0])
    force, moment = analog[:3].T @ flip, 1e-3 * analog[3:6].T @ flip
    sensor = np.array([0.3, 0.2, 0.005]) + flip @ np.array([0.0, 0.0, 0.04])
    np.testing.assert_allclose(plate.force, force, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(plate.moment, moment + np.cross(sensor, force), rtol=1e-4, atol=1e-2)


def test_the_screen_of_a_c3d_says_its_axes(c3d):
    import ezc3d
    path, _ = c3d
    with pytest.warns(bk.LoadWarning, match="z is assumed; confirm"):
        bk.load_motion(path)
    file = ezc3d.c3d(str(path))
    file.add_parameter("POINT", "X_SCREEN", ["+Y"])
    file.add_parameter("POINT", "Y_SCREEN", ["+Z"])
    file.write(str(path))
    turned = load(path)
    straight = load(path, up="z", forward="x")
    np.testing.assert_allclose(turned["LASI"], straight["LASI"] @ np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]))


def test_plates_that_report_the_force_on_themselves_are_said(c3d):
    import ezc3d
    path, _ = c3d
    file = ezc3d.c3d(str(path))
    file["data"]["analogs"] = -file["data"]["analogs"]
    file.write(str(path))
    with pytest.warns(bk.LoadWarning, match=r"plate 1: pulls downwards.*reversed"):
        bk.load_motion(path, up="z")


def test_what_is_no_c3d_is_said(tmp_path, c3d, monkeypatch):
    path, _ = c3d
    (tmp_path / "text.c3d").write_text("PathFileType")
    with pytest.raises(bk.LoadError, match="is no C3D file"):
        bk.load_motion(tmp_path / "text.c3d")
    with pytest.raises(bk.MissingFileError):
        bk.load_motion(tmp_path / "none.c3d")
    whole = path.read_bytes()
    for size in (2, 100, 512, 700, len(whole) // 2, len(whole) - 600):
        (tmp_path / "cut.c3d").write_bytes(whole[:size])
        with pytest.raises(bk.LoadError, match=r"cut.c3d: the file is cut off"):
            bk.load_motion(tmp_path / "cut.c3d")
    monkeypatch.setitem(__import__("sys").modules, "ezc3d", None)
    with pytest.raises(bk.MissingExtra, match=r'pip install "bunraku\[mocap\]"'):
        bk.load_motion(path)
