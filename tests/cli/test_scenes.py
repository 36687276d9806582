"""The scenes of `bunraku demo`: the described events happen, and the conservation laws hold."""


import numpy as np
import pytest
from scipy.integrate import solve_ivp

import bunraku as bk
from bunraku import cli
from bunraku.cli.scenes.account import torques
from bunraku.cli.scenes.breaking import BEARS, WEAK
from bunraku.cli.scenes.fourbars import RATE, WINDOWS
from bunraku.cli.scenes.highbar import HOLDS
from bunraku.cli.scenes.muscles import ROW, beyond_limits, muscles, pose_of, posed, schedule
from bunraku.cli.scenes.swing import DEPTH, MIDDLE, SEAT, Swing
from bunraku.evaluate import connection_forces

LASTS = {  # [s] long enough for all that happens
    "highbar": None, "swing": "1.1", "release": "1.0", "somersault": None, "hands": None,
}


@pytest.mark.parametrize("name", LASTS)
def test_energy_changes_by_what_muscles_do(reports, name):
    report = reports(name)
    assert report["energy_error"] < 1e-5
    assert report["work_given"] > 1.0
    assert abs(report["energy_lost_at_changes"]) < 1e-6  # to let go costs nothing


@pytest.mark.parametrize("name", LASTS)
def test_loops_stay_closed_and_joints_within_their_limits(reports, name):
    report = reports(name)
    assert report["loop_error"] < 1e-6
    assert report["limit_excess_degrees"] < 2.0


# Joint degrees of freedom count those of connections too and drop when a grip opens; mobility rises
@pytest.mark.parametrize(("name", "events", "joint_dof", "mobility"), [
    # [YN99] has 24, then 23 joint degrees of freedom; here the right hand may slide along the bar
    ("highbar", ["the right hand slips"], [25, 23], [13, 17]),
    ("swing", ["the stay breaks", "the left thigh leaves the plate", "the right thigh leaves the plate"],
     [39, 33], [9, 21]),
    ("release", ["the right hand lets go", "the left hand lets go"], [37, 34], [25, 34]),
    ("hands", ["one hand lets go", "the other lets go"], [74, 68], [62, 68]),
])
def test_structure_changes_in_order(reports, name, events, joint_dof, mobility):
    report = reports(name)
    told = [event for event in report["events"] if not event["text"].startswith("cut ")]
    assert sorted(event["text"] for event in told) == sorted(events)
    assert told[0]["text"] == events[0]
    assert [event["t"] for event in told] == sorted(event["t"] for event in told)
    for key, (first, last), falls in (("joint_dof", joint_dof, True), ("mobility", mobility, False)):
        counts = report[key]
        assert (counts[0], counts[-1]) == (first, last)
        assert counts == sorted(set(counts), reverse=falls)


@pytest.mark.parametrize("name", ["highbar", "swing", "release"])
def test_hands_carry_what_hands_can_carry(reports, name):
    report = reports(name)
    for grip in ("left_grip", "right_grip"):
        assert 0.05 < report["forces_max"][grip] / report["weight"] < 4.0


def test_the_hand_slips_at_what_it_can_hold(reports):
    assert reports("highbar")["forces_max"]["right_grip"] == pytest.approx(HOLDS, rel=1e-3)


def test_high_bar_is_a_big_swing(reports):
    segments = reports("highbar")["trajectory"].segments
    height = np.concatenate([[bk.poses(s.mechanism, q)["left_foot"][1][2] for q in s.q[::20]] for s in segments])
    assert height[0] > 0.3          # feet above the bar
    assert height.min() < -1.6      # hanging
    assert height[len(height) // 2:].max() > 0.3   # and up again, by one hand


def test_thighs_leave_the_plate_at_its_edge(reports):
    report = reports("swing")
    on = [s for s in report["trajectory"].segments if "left_slide" in s.mechanism.connections][-1]
    slid = bk.coordinates(on.mechanism, "left_slide", on.q[-1])[0]
    assert slid == pytest.approx(DEPTH / 2 - SEAT - MIDDLE, abs=1e-6)


def test_the_plate_pushes_as_long_as_it_carries(reports):
    params = Swing().params
    for segment in reports("swing")["trajectory"].segments:
        forces = connection_forces(segment.mechanism, segment.q, segment.v, torques(params, segment))
        for name in {"left_slide", "right_slide"} & set(forces):
            assert forces[name][:, 2].min() > 0.0


def test_every_hand_costs(reports):
    cost = reports("release")["microseconds_per_evaluation"]
    assert list(cost) == ["2", "1", "0"]
    assert cost["2"] > cost["0"]


def test_somersault_keeps_its_momentum(reports):
    report = reports("somersault")
    assert report["angular_momentum_drift"] < 1e-6
    assert report["linear_momentum_drift"] < 1e-6
    assert report["spin_tucked"] > 3 * report["spin_open"]
    assert abs(report["turns"] - 1.0) < 0.1


def test_a_recorded_walk_has_its_moments_and_little_left_unexplained(reports):
    report = reports("recorded")
    assert 1.0 < report["ground_force_max"] / report["weight"] < 1.5
    assert report["residual_force_rms"] < 0.05 * report["weight"]
    assert 80.0 < report["moments_max"]["ankle"] < 150.0
    assert report["tracking"]["off_degrees"] < 1.0
    assert len(report["trajectory"].t) == report["frames"] == 166
    assert [file.rsplit("/")[-1] for file in report["files"]] == ["walk.bvh", "walk.mot", "recorded.npz",
                                                                      "recorded.html"]


def test_a_figure_that_cannot_play_the_scene_is_refused(tmp_path, capsys):
    assert cli.main(["demo", "swing", "--dof", "48", "--no-picture", "--out", str(tmp_path / "new")]) == 1
    assert "swing is played by a figure with 16 degrees of freedom, not 48" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_limits_push_back_and_only_beyond():
    m = bk.models.human(16)
    straight = schedule(m, {}, ((1.0, {}),), frequency=1e-9)  # muscles without force: what is left are the limits
    knee, hip = m.v_slice("left_knee").start, m.v_slice("left_hip")
    for bend, sign in ((2.5, -1), (1.0, 0), (-0.15, 1)):
        q, tau = posed(m, {"left_knee": (0, bend, 0)}), np.zeros(m.nv)
        muscles(0.5, q, np.zeros(m.nv), straight, tau)
        assert np.sign(np.round(tau[knee], 6)) == sign
        assert (beyond_limits(straight, q[None]) > 0) == bool(sign)
    back, tau = np.array([0.0, 0.6, 0.0]), np.zeros(m.nv)
    muscles(0.5, posed(m, {"hip": back}), np.zeros(m.nv), straight, tau)
    assert tau[hip] @ back < -100
    np.testing.assert_allclose(tau[hip][[0, 2]], 0, atol=1e-6)


def test_poses_go_both_ways():
    m = bk.models.human(34)
    pose = {"left_hip": (0.3, -1.0, 0.2), "knee": (0, 0.7, 0), "waist": (0, 0.2, 0.1)}
    q = posed(m, pose)
    np.testing.assert_allclose(posed(m, pose_of(m, q)), q, atol=1e-12)
    assert (len(schedule(m, pose, ((1.0, {}),), 10.0)) - 4) % (ROW + 6) == 0


def test_two_figures_keep_their_angular_momentum(reports):
    report = reports("hands")
    assert report["angular_momentum_drift"] < 1e-9
    assert report["spin_close"] > 1.5 * report["spin_start"]


def test_the_chain_breaks_at_what_its_joint_bears_and_its_lower_part_flies(tmp_path):
    assert cli.main(["demo", "breaking", "--json", "--no-picture", "--out", str(tmp_path)]) == 0
    held, broken = bk.load_trajectory(tmp_path / "breaking.npz").segments
    force = bk.joint_forces(held.mechanism, held.q[-1], held.v[-1])[WEAK][:3]
    assert np.linalg.norm(force) == pytest.approx(BEARS, rel=1e-4)
    names = broken.mechanism.link_names[broken.mechanism.link_names.index(WEAK):]
    masses = [broken.mechanism.link(name).mass for name in names]
    places = bk.poses(broken.mechanism, broken.q)
    centre = np.average([places[name][1] + places[name][0] @ broken.mechanism.link(name).com for name in names], axis=0,
                        weights=masses)
    t = broken.t - broken.t[0]
    fall = centre + 0.5 * np.outer(t**2, (0, 0, 9.81))  # without gravity, it would go straight on
    straight = fall[0] + np.outer(t / t[-1], fall[-1] - fall[0])
    np.testing.assert_allclose(fall, straight, atol=1e-6)


def test_four_bars_move_as_one_pendulum(tmp_path):
    assert cli.main(["demo", "fourbars", "--json", "--no-picture", "--out", str(tmp_path)]) == 0
    motion, n = bk.load_trajectory(tmp_path / "fourbars.npz"), WINDOWS
    pull = 9.81 * ((n + 1) / 2 + n) / ((n + 1) / 3 + n)
    answer = solve_ivp(lambda t, x: (x[1], -pull * np.cos(x[0])), (0, motion.t[-1]), (np.pi / 2, -RATE), rtol=1e-11,
                       atol=1e-11, t_eval=motion.t)
    np.testing.assert_allclose(np.pi / 2 + motion.q[:, :n + 1], np.tile(answer.y[0], (n + 1, 1)).T, atol=1e-3)


def test_a_scene_without_a_figure_takes_no_dof(tmp_path, capsys):
    assert cli.main(["demo", "fourbars", "--dof", "16", "--no-picture", "--out", str(tmp_path / "new")]) == 1
    assert "leave --dof out" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
