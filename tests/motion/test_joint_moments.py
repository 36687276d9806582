"""Inverse dynamics of a gait with force plates, beside Pinocchio; force plates by themselves."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.cli.scenes.gait import Walk, record
from pinocchio_figures import model_of


@pytest.fixture(scope="module")
def walk():
    walk = Walk(1.1, 100.0)
    motion = walk.motion()
    return motion, walk.plates(motion)


def test_a_gait_with_force_plates_has_the_moments_of_pinocchio(walk):
    """rnea with the wrench of each plate moved by hand to the joint of the foot, in its own axes."""
    pin = pytest.importorskip("pinocchio")
    motion, plates = walk
    m = motion.mechanism
    model, carrier, of_q, of_v = model_of(pin, m)
    data = model.createData()
    ours = motion.inverse_dynamics({"left_foot": plates["left"], "right_foot": plates["right"]})
    for k in range(0, len(motion.t), 7):
        q, v, a = np.empty(model.nq), np.empty(model.nv), np.empty(model.nv)
        q[of_q], v[of_v], a[of_v] = motion.q[k], motion.v[k], motion.a[k]
        pin.forwardKinematics(model, data, q)
        pushed = [pin.Force.Zero() for _ in range(model.njoints)]
        for side in ("left", "right"):
            plate, joint = plates[side], carrier[f"{side}_foot"][0]
            cop = np.nan_to_num(plate.cop[k])
            if plate.loaded[k]:
                free = np.array([0.0, 0.0, plate.free_moment[k]])
                about_origin = pin.Force(plate.force[k], np.cross(cop, plate.force[k]) + free)
                pushed[joint] += data.oMi[joint].actInv(about_origin)
            else:
                pushed[joint] += data.oMi[joint].actInv(pin.Force(plate.force[k], plate.moment[k]))
        theirs = pin.rnea(model, data, q, v, a, pushed)[of_v]
        np.testing.assert_allclose(ours.tau[k], theirs, rtol=1e-9, atol=1e-9)


def test_forces_that_fit_leave_nothing_at_the_root(walk):
    motion, plates = walk
    result = motion.inverse_dynamics(list(plates.values()), feet=("left_foot", "right_foot"))
    # a contact begins at 10 N: what is below is left out
    assert result.residual_force < 2 * 10.5
    exact = motion.inverse_dynamics({"left_foot": plates["left"], "right_foot": [plates["right"]]})
    assert exact.residual_force < 1e-9
    assert exact.residual_moment < 1e-9
    without = motion.inverse_dynamics()
    assert without.residuals["root"][:, 2].mean() == pytest.approx(9.81 * motion.mechanism.mass, rel=0.05)
    assert set(exact.moments) == set(motion.mechanism.joint_names) - {"root"} - {
        link.joint_name for link in motion.mechanism.links if link.joint.nv == 0}
    with pytest.raises(bk.NamingError, match="left_knee"):
        exact.moments["left_kne"]


def test_the_moments_move_the_figure_as_recorded(walk):
    motion, plates = walk
    result = motion.inverse_dynamics({"left_foot": plates["left"], "right_foot": plates["right"]})
    a = bk.forward_dynamics(motion.mechanism, motion.q, motion.v, result.tau, external=result.external)
    np.testing.assert_allclose(a, motion.a, atol=1e-7)


def test_external_forces_add_to_those_of_plates(walk):
    motion, plates = walk
    feet = {"left_foot": plates["left"], "right_foot": plates["right"]}
    load = np.array([0.0, 0.0, -50.0, 0.0, 0.0, 0.0])  # something carried
    carried = motion.inverse_dynamics(feet, external={"left_hand": load, "left_foot": 0 * load})
    residual = carried.residuals["root"]
    np.testing.assert_allclose(residual[:, :3], np.tile([0, 0, 50.0], (len(residual), 1)), atol=1e-9)


def test_each_contact_is_given_to_the_foot_that_makes_it(walk):
    """One long plate under both feet: it is of no use. One under each step: the right foot is found."""
    motion, plates = walk
    result = motion.inverse_dynamics([plates["right"], plates["left"]], feet=("right_foot", "left_foot"))
    for side in ("left", "right"):
        np.testing.assert_allclose(result.external[f"{side}_foot"][:, 2], np.where(
            plates[side].loaded, plates[side].force[:, 2], 0.0), atol=1e-9)
    assert {(one.plate, one.link) for one in result.assignments} == {
        (plates[side].name, f"{side}_foot") for side in ("left", "right")}
    assert all(one.distance < 0.1 for one in result.assignments)
    assert all(str(one) in repr(result) for one in result.assignments)


def test_a_plate_away_from_the_feet_is_a_warning(walk):
    motion, plates = walk
    shifted = bk.ForcePlate("shifted", plates["left"].t, plates["left"].force,
                            plates["left"].moment + np.cross([0.0, 0.5, 0.0], plates["left"].force))
    with pytest.warns(bk.ForcePlateWarning, match="'shifted' acts on 'left_foot'.*not under that link"):
        motion.inverse_dynamics({"left_foot": shifted, "right_foot": plates["right"]})


def test_two_plates_on_one_foot_at_once_are_a_warning(walk):
    """Each half of a load on a plate of its own: one foot on two plates, or a wrong assignment."""
    motion, plates = walk
    halves = [bk.ForcePlate(name, p.t, 0.5 * p.force, 0.5 * p.moment) for name in ("front", "back")
              for p in (plates["left"],)]
    with pytest.warns(bk.ForcePlateWarning, match="'front' and 'back' are loaded together"):
        result = motion.inverse_dynamics([*halves, plates["right"]], feet=("left_foot", "right_foot"))
    assert {one.link for one in result.assignments if one.plate != plates["right"].name} == {"left_foot"}


def test_plates_know_their_centre_of_pressure_and_free_moment():
    rng = np.random.default_rng(0)
    n = 30
    cop = np.column_stack([rng.uniform(-1, 1, (n, 2)), np.full(n, 0.05)])
    force = rng.uniform(-100, 100, (n, 3)) + np.array([0, 0, 600.0])
    force[5] = 0.0
    cop[5] = np.nan
    free = np.outer(rng.uniform(-9, 9, n), [0, 0, 1.0])
    free[5] = 0.0
    plate = bk.ForcePlate.of_cop("plate", np.arange(n) / 100, force, cop, free)
    np.testing.assert_allclose(plate.cop, cop, atol=1e-12)
    np.testing.assert_allclose(plate.free_moment, free[:, 2], atol=1e-10)
    np.testing.assert_allclose(plate.reversed().cop, cop, atol=1e-12)


@pytest.mark.parametrize(("call", "said"), [
    (lambda m, p: m.inverse_dynamics([p["left"]]), "which links stand on the plates?"),
    (lambda m, p: m.inverse_dynamics([p["left"]], feet=("left_fot",)), "there is no link 'left_fot'; did you mean"),
    (lambda m, p: m.inverse_dynamics({"left_toe": p["left"]}), "left_toe"),
    (lambda m, p: m.inverse_dynamics({"left_foot": 3.0}), "plates must be bk.ForcePlate, not 3.0"),
    (lambda m, p: m.inverse_dynamics({"left_foot": [p["left"].force]}), "plates must be bk.ForcePlate"),
    (lambda m, p: m.inverse_dynamics({"left_foot": bk.ForcePlate("short", [0.0, 0.5], np.zeros((2, 3)),
                                                                 np.zeros((2, 3)))}),
     "short was recorded from 0 to 0.5 s, the motion from 0 to 1.1 s"),
    (lambda m, p: bk.ForcePlate("bad", [0.0, 0.1], np.zeros((2, 3)), np.zeros((2, 3)), np.nan),
     "bad: height [m] must be a finite number, not nan"),
    (lambda m, p: bk.ForcePlate("bad", [0.0, 0.2, 0.1], np.zeros((3, 3)), np.zeros((3, 3))),
     "bad: times must be finite and increase, but t[2] is 0.1 s after 0.2 s"),
    (lambda m, p: bk.ForcePlate("bad", [np.nan, 0.1], np.zeros((2, 3)), np.zeros((2, 3))),
     "bad: times must be finite and increase, but t[0] is nan"),
    (lambda m, p: bk.ForcePlate("bad", [0.0, 0.1], np.zeros((2, 3)), np.array([[0, 0, 0], [0, np.nan, 0]])),
     "bad: moment has no finite value in sample 1 (0.1 s)"),
    (lambda m, p: m.inverse_dynamics(external={"left_hand": np.zeros(5)}), "shape (5,); it must be (6,) or (111, 6)"),
])
def test_wrong_plates_are_said(walk, call, said):
    with pytest.raises(bk.BunrakuError) as error:
        call(*walk)
    assert said in str(error.value)


def test_a_recording_gives_back_the_moments_of_the_walk_it_was_made_of(tmp_path):
    """Through the files: noise and smoothing leave the moments of knee and ankle within a few newton metres."""
    figure, forces = record(tmp_path)
    walk = Walk(1.65, 100.0)
    exact = walk.motion()
    plates = walk.plates(exact)
    true = exact.inverse_dynamics({"left_foot": plates["left"], "right_foot": plates["right"]})
    motion = bk.load_motion(figure, unit="m", up="z", forward="x", mass=70.0).smooth(6.0)
    table = bk.load_motion(forces)
    measured = motion.inverse_dynamics(table.plates(), feet=("left_ankle", "right_ankle"))
    inner = slice(15, -15)
    for joint, k in (("left_knee", 0), ("right_ankle", 1)):
        off = measured.moments[joint][inner, k] - true.moments[joint][inner, k]
        assert np.abs(off).max() < 12.0
        assert np.abs(true.moments[joint]).max() > 90.0
    assert measured.residual_force < 0.15 * 70 * 9.81
