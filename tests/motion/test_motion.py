"""Motions of mechanisms: derivatives, smoothing, other skeletons, files."""

import warnings

import numpy as np
import pytest

import bunraku as bk
import bvh_files


def waving(m, seconds=2.0, rate=100.0, reach=0.5, seed=0):
    """Every degree of freedom swings at its own frequency."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * rate) + 1) / rate
    waves = reach * np.sin(2 * np.pi * np.outer(t, rng.uniform(0.3, 1.0, m.nv)) + rng.uniform(0, 6, m.nv))
    return bk.Motion(m, t, m.integrate(np.tile(m.neutral(), (len(t), 1)), waves), "waving")


@pytest.fixture(scope="module")
def figure():
    return bk.models.human(34)


def test_velocities_and_accelerations_are_derivatives_of_the_curve(figure):
    """Differences on the manifold, which know nothing of splines of components."""
    motion, h = waving(figure), 1e-5
    t = np.linspace(0.2, 1.8, 9)
    _, v, a = motion.curve(t)
    (q0, v0, _), (q1, v1, _) = motion.curve(t - h), motion.curve(t + h)
    np.testing.assert_allclose(v, figure.difference(q0, q1) / (2 * h), atol=1e-7)
    np.testing.assert_allclose(a, (v1 - v0) / (2 * h), atol=1e-6)


def test_a_body_in_free_flight_has_the_accelerations_of_its_equations():
    """A thrown, tumbling body as a recording at 200 frames a second."""
    m = bk.Mechanism()
    m.add_link("body", joint=bk.Free(), mass=2.0, inertia=(0.02, 0.03, 0.04))
    sim = bk.Simulation(m, v=[1.0, 0.5, 4.0, 3.0, 5.0, -2.0], rtol=1e-10, atol=1e-12, solver="tsit5", dense=True)
    flight = sim.run(until=0.8)
    t = np.arange(161) / 200
    motion = bk.Motion(m, t, np.array([q for _, q, _ in flight.sample(t)]))
    exact = np.array([bk.forward_dynamics(m, q, v) for _, q, v in flight.sample(t)])
    inner = slice(8, -8)
    np.testing.assert_allclose(motion.a[inner], exact[inner], atol=2e-4)
    assert motion.inverse_dynamics().residual_force < 0.1


def test_the_sign_of_quaternions_does_not_matter(figure):
    motion = waving(figure)
    flipped = motion.q.copy()
    flipped[::3, figure.q_slice("left_hip")] *= -1.0
    flipped[50:, figure.q_slice("root").start + 3:figure.q_slice("root").stop] *= -1.0
    again = bk.Motion(figure, motion.t, flipped)
    np.testing.assert_allclose(again.a, motion.a, atol=1e-9)


@pytest.mark.parametrize("cutoff", [3.0, 6.0])
def test_the_filter_has_no_delay_and_its_cutoff_is_where_it_says(cutoff):
    m = bk.Mechanism()
    m.add_link("arm", joint=bk.Revolute((0, 0, 1)), mass=1.0, inertia=(0.1, 0.1, 0.1))
    t, inner = np.arange(2001) / 200, slice(500, -500)
    for frequency, gain in ((cutoff, np.sqrt(0.5)), (cutoff / 10, 1.0), (10 * cutoff, 0.0)):
        wave = np.sin(2 * np.pi * frequency * t)
        out = bk.Motion(m, t, wave[:, None]).smooth(cutoff).q[:, 0]
        np.testing.assert_allclose(out[inner], gain * wave[inner], atol=2e-3)


def test_smoothing_takes_noise_away(figure):
    clean = waving(figure)
    noise = 1e-3 * np.random.default_rng(1).standard_normal(clean.v.shape)
    noisy = bk.Motion(figure, clean.t, figure.integrate(clean.q, noise))
    inner = slice(20, -20)
    error = [np.abs(x.a - clean.a)[inner].max() for x in (noisy, noisy.smooth(6.0))]
    assert error[1] < 0.02 * error[0]


def test_it_plays_as_a_trajectory(figure, tmp_path):
    motion = waving(figure)
    played = motion.trajectory()
    np.testing.assert_array_equal(played.q, motion.q)
    (_, q, v), = played.sample([0.705])
    np.testing.assert_allclose(figure.difference(q, motion.curve(0.705)[0]), 0.0, atol=1e-8)
    np.testing.assert_allclose(v, motion.curve(0.705)[1], atol=1e-5)
    assert bk.load_trajectory(played.save(tmp_path / "walk")).t[-1] == 2.0


def test_resampled_and_cut_motions_follow_the_same_curve(figure):
    motion = waving(figure)
    coarse, part = motion.resample(30.0), motion.between(0.5, 1.0)
    assert coarse.rate == pytest.approx(30.0)
    np.testing.assert_allclose(figure.difference(coarse.q, motion.curve(coarse.t)[0]), 0.0, atol=1e-12)
    assert (part.t[0], part.t[-1], len(part)) == (0.5, 1.0, 51)


@pytest.mark.parametrize("make", [bvh_files.cmu, bvh_files.lafan, bvh_files.soma])
def test_a_motion_written_to_a_file_comes_back(make, tmp_path):
    (tmp_path / "in.bvh").write_text(make())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bk.LoadWarning)
        motion = bk.load_motion(tmp_path / "in.bvh")
    path = motion.save(tmp_path / "out.bvh")
    again = bk.load_motion(path, motion.mechanism, unit="m", up="z", forward="x", strict=True)
    np.testing.assert_allclose(motion.mechanism.difference(again.q, motion.q), 0.0, atol=1e-7)
    np.testing.assert_allclose(again.t, motion.t, atol=1e-9)


@pytest.mark.parametrize("dof", [34, 48])
def test_a_figure_of_ours_moves_by_the_file_it_was_written_to(dof, tmp_path):
    """In the file, the pelvis is counted from the origin and every axis points along x, y or z."""
    m = bk.models.human(dof)
    motion = waving(m)
    again = bk.load_motion(motion.save(tmp_path / "out.bvh"), m, unit="m", up="z", forward="x")
    np.testing.assert_allclose(m.difference(again.q, motion.q), 0.0, atol=1e-7)


def test_the_motion_of_another_skeleton_names_the_joints_that_differ(figure, tmp_path):
    motion = waving(figure)
    heavier = figure.with_link("head", mass=6.0)
    assert motion.on(heavier).mechanism is heavier
    with pytest.raises(bk.ModelError, match=r"another skeleton than human 48: .*'left_clavicle' is not in the motion"):
        motion.on(bk.models.human(48))
    with pytest.raises(bk.ModelError, match=r"'waist' is Fixed\(\) instead of Spherical\(upper=0.9\), 'neck'"):
        motion.on(bk.models.human(16))
    legless = bk.Mechanism()
    legless.add_link("pelvis", joint=bk.Free(), joint_name="root", position=figure.link("pelvis").position, mass=1.0)
    with pytest.raises(bk.ModelError, match=r"'waist' is missing, 'neck' is missing, .* and 4 more"):
        motion.on(legless)
    with pytest.raises(bk.ModelError, match=r"'left_knee' is Revolute\(\(0, 0, 1\).*instead of Revolute\(\(0, 1, 0\)"):
        motion.on(figure.with_joint("left_knee", axis=(0, 0, 1)))
    taller = bk.models.human(34, height=1.9)
    with pytest.raises(bk.ModelError, match=r"'waist' is [0-9.]+ mm off.*any_length=True"):
        motion.on(taller)
    np.testing.assert_allclose(motion.on(taller, any_length=True).q[:, 7:], motion.q[:, 7:], atol=1e-12)


@pytest.mark.parametrize(("call", "said"), [
    (lambda m, t, q: bk.Motion(m, t, q[:, :-1]), "must be (frames,) and"),
    (lambda m, t, q: bk.Motion(m, t[::-1], q), "times must increase"),
    (lambda m, t, q: bk.Motion(m, t, np.where(np.arange(q.size).reshape(q.shape) == 3 * q.shape[1] + 8, np.nan, q)),
     "joint 'waist' has no finite coordinate in frame 3"),
    (lambda m, t, q: bk.Motion(m, t, q).smooth(80.0), "too high for 100 frames a second; give less than 40.1 Hz"),
    (lambda m, t, q: bk.Motion(m, t**1.1, q).smooth(5.0), "not evenly spaced"),
    (lambda m, t, q: bk.Motion(m, t[:1], q[:1]).v, "one frame has no velocity"),
    (lambda m, t, q: bk.Motion(m, t, q).between(7.0, 8.0), "no frame between 7 and 8 s"),
    (lambda m, t, q: bk.Motion(m, t, q).tracking(kp={"knee": 1.0}), "there is no joint or connection 'knee'"),
])
def test_what_cannot_be_is_said(figure, call, said):
    motion = waving(figure)
    with pytest.raises(bk.BunrakuError) as error:
        call(figure, motion.t, motion.q)
    assert said in str(error.value)


def test_simulations_follow_a_motion_by_pd_control():
    """A figure that waves: held by its pelvis and its joints; and PD control alone, which lags but follows."""
    m = bk.models.human(16)
    motion = waving(m, seconds=1.0, reach=0.3)
    for options, most in (({}, 0.01), ({"frequency": 100.0, "feedforward": False}, 0.1)):
        sim = bk.Simulation(m, motion.q[0], motion.v[0], actuation=motion.tracking(**options), rtol=1e-5)
        followed = sim.run(until=1.0)
        off = np.abs(m.difference(followed.q, motion.curve(followed.t)[0]))
        assert off.max() < most
    sim = bk.Simulation(m, motion.q[0], motion.v[0], actuation=motion.tracking(hold=False), rtol=1e-5)
    sim.run(until=0.3)
    assert np.abs(m.difference(sim.q, motion.curve(0.3)[0]))[2] > 0.1  # it is not held: it falls


def test_a_pelvis_that_is_led_along_its_recorded_path():
    m = bk.models.human(16)
    motion = waving(m, seconds=0.5, reach=0.3)
    sim = bk.Simulation(m, motion.q[0], motion.v[0], rtol=1e-5, actuation=motion.tracking(),
                        prescribed=motion.prescribed("root"))
    led = sim.run(until=0.5)
    off = np.abs(m.difference(led.q, motion.curve(led.t)[0]))
    assert off[:, :6].max() < 1e-4
    assert off.max() < 0.01
    with pytest.raises(bk.NamingError, match="there is no joint or connection 'pelvs'"):
        motion.prescribed("pelvs")


def test_files_of_other_kinds_are_refused(tmp_path):
    for name, said in (("walk.fbx", "reads .bvh, .trc, .c3d, .mot, .sto"), ("walk.bvh", "there is no such file")):
        with pytest.raises(bk.LoadError, match=said):
            bk.load_motion(tmp_path / name)
    with pytest.raises(bk.ModelError, match=r"mass has no meaning for .trc files"):
        bk.load_motion(tmp_path / "walk.trc", mass=70.0)


@pytest.mark.parametrize("frames", [2, 3, 4])
def test_few_frames_are_a_motion_all_the_same(frames):
    m = bk.models.chain(2)
    t = 0.1 * np.arange(frames)
    motion = bk.Motion(m, t, np.outer(t, [2.0, -1.0]))
    assert np.allclose(motion.v, [2.0, -1.0])
    assert np.allclose(motion.a, 0.0)
    assert len(motion.trajectory().t) >= frames
