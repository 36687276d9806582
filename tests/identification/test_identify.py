"""Identification: exact data give exact parameters, their number is that of the literature, every fit is a body that
could be built, loops agree with the tree, bounds hold the truth, and what cannot be found is refused with a reason."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.bench.bench_identify import _consistent, leg, leg_motion, truth, wrong
from bunraku.simulation import Segment

AXES = ((0, 0, 1), (0, 1, 0), (1, 0, 0))
LAWS = {"damping": 0.2, "friction": 0.5, "armature": 0.05}


def chain(axes, gravity=(0, 0, -9.81), **joint):
    """Hinges at the ends of links, with bodies of no symmetry."""
    m, parent, rng = bk.Mechanism(gravity), "ground", np.random.default_rng(1)
    for k, axis in enumerate(axes):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        m.add_link(f"link{k}", parent, bk.Revolute(axis, **joint), joint_name=f"joint{k}",
                   position=(0.05, 0.1, 0.3) if k else (0, 0, 0), mass=1.0 + k, com=0.1 * rng.normal(size=3),
                   inertia=turn @ np.diag(rng.uniform(0.02, 0.03, 3)) @ turn.T)
        parent = f"link{k}"
    return m


def waves(m, samples=120, seed=0):
    """A motion of several frequencies, with its exact derivatives."""
    rng, t = np.random.default_rng(seed), np.linspace(0.0, 5.0, samples)
    q, v, a = np.zeros((3, samples, m.nv))
    for k in range(1, 5):
        w, (s, c) = 1.3 * k, rng.normal(size=(2, m.nv)) / k
        S, C = np.sin(w * t)[:, None], np.cos(w * t)[:, None]
        q, v, a = q + s * S + c * C, v + w * (s * C - c * S), a - w * w * (s * S + c * C)
    return q, v, a


def noisy(tau, part, seed):
    return tau + part * np.sqrt(np.mean(tau**2, axis=0)) * np.random.default_rng(seed).normal(size=tau.shape)


def test_exact_data_give_exact_parameters():
    m = chain(AXES, **LAWS)
    q, v, a = waves(m)
    tau = bk.inverse_dynamics(m, q, v, a)
    r = bk.identify(wrong(m, np.random.default_rng(3)), q, v, a, tau)
    found, real = r.identifiable, truth(m, r.parameters)
    assert np.abs(found.values - found.matrix @ real).max() < 1e-7
    for name, value in zip(r.parameters, real, strict=True):  # those that are determined one by one
        if name not in found.undetermined:
            assert abs(r.parameters[name] - value) < 1e-7
            assert r.identifiable.from_data[name] > 0.99
    assert {"joint0.damping", "joint2.friction", "link2.my"}.isdisjoint(found.undetermined)
    assert {"link0.mass", "link2.mass"} <= set(found.undetermined)
    other = waves(m, 20, seed=5)
    assert np.abs(bk.inverse_dynamics(r.mechanism, *other) - bk.inverse_dynamics(m, *other)).max() < 1e-6


@pytest.mark.parametrize(("axes", "gravity", "number"), [
    (((0, 1, 0),) * 3, (0, 0, -9.81), 9),             # planar, upright: 3 n
    (((0, 0, 1),) * 3, (0, 0, -9.81), 7),             # planar, gravity along the axes: 3 n - 2
    (AXES, (0, 0, -9.81), 7 * 3 - 4 - 2),
    (((0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0), (1, 0, 0)), (0, 0, -9.81), 36),  # as PUMA 560
    (((0, 1, 0), (1, 0, 0), (0, 1, 0)), (0, 0, -9.81), 7 * 3 - 4)])
def test_the_number_of_base_parameters_is_that_of_mayeda(axes, gravity, number):
    """7 n - 4 b, b joints parallel to the first before any other, and 2 less if gravity is parallel to it: Mayeda,
    Yoshida and Osuka, Base parameters of manipulator dynamic models, 1990."""
    m = chain(axes, gravity)
    q, v, a = waves(m)
    r = bk.identify(m, q, v, a, bk.inverse_dynamics(m, q, v, a), fit="inertia")
    assert r.identifiable.rank == number
    assert r.identifiable.matrix.shape == (number, 10 * len(axes))


def test_combinations_of_a_double_pendulum_are_those_of_the_textbook():
    m = bk.Mechanism()
    m.add_link("upper", joint=bk.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -0.2), inertia=(0.1, 0.1, 0.1))
    m.add_link("lower", "upper", bk.Revolute((0, 1, 0)), position=(0, 0, -0.5), mass=1.0, com=(0, 0, -0.2),
               inertia=(0.1, 0.1, 0.1))
    q, v, a = waves(m)
    r = bk.identify(m, q, v, a, bk.inverse_dynamics(m, q, v, a), fit="inertia")
    assert set(r.identifiable.combinations) == {
        "upper.mx", "upper.mz - 0.5 lower.mass", "upper.iyy + 0.25 lower.mass", "lower.mx", "lower.mz", "lower.iyy"}


def test_a_motion_that_excites_little_is_told():
    m = chain(AXES)
    q, v, a = waves(m)
    assert not bk.identify(m, q, v, a, bk.inverse_dynamics(m, q, v, a)).identifiable.unexcited
    still = 0.0 * v                             # poses at rest show first moments, no inertia
    r = bk.identify(m, q, still, still, bk.inverse_dynamics(m, q, still, still), fit="inertia").identifiable
    assert "link2.ixx" in r.unexcited
    assert not any("link2.my" in text for text in r.unexcited)
    assert f"{len(r.unexcited)} are not" in repr(r)


def test_every_fit_is_a_body_that_could_be_built():
    m = chain(AXES, **LAWS)
    q, v, a = waves(m, 40)
    tau = noisy(bk.inverse_dynamics(m, q, v, a), 3.0, 0)  # three times as much noise as torque
    r = bk.identify(wrong(m, np.random.default_rng(0)), q, v, a, tau, spread=30.0)
    assert _consistent(r.mechanism)
    assert all(value >= 0.0 for name, value in r.parameters.items() if name.startswith("joint"))
    plain = np.linalg.lstsq(bk.inertial_regressor(m, q, v, a).reshape(-1, 30), tau.ravel(), rcond=1e-9)[0][20:]
    assert min(plain[0], *np.linalg.eigvalsh(plain[[[4, 5, 7], [5, 6, 8], [7, 8, 9]]])) < 0.0  # not of itself


def test_a_small_spread_keeps_the_given_model():
    m = chain(AXES)
    q, v, a = waves(m)
    start = m.with_link("link2", mass=6.0)
    tau = noisy(bk.inverse_dynamics(m, q, v, a), 0.05, 1)
    near, far = (bk.identify(start, q, v, a, tau, fit="inertia", spread=s).parameters["link2.mass"]
                 for s in (1e-4, 1.0))
    assert abs(near - 6.0) < 0.01
    assert abs(far - 6.0) > 0.5


def test_bounds_hold_the_truth():
    m = chain(AXES, **LAWS)
    q, v, a = waves(m, 200)
    tau = bk.inverse_dynamics(m, q, v, a)
    inside = []
    for seed in range(8):
        r = bk.identify(wrong(m, np.random.default_rng(seed)), q, v, a, noisy(tau, (0.02, 0.04, 0.1), seed))
        found = r.identifiable
        error = found.values - found.matrix @ truth(m, r.parameters)
        inside += (np.abs(error) <= 1.96 * found.deviation).tolist()
    assert np.mean(inside) > 0.85  # 95 % are expected of 8 times 21
    size = np.array((0.02, 0.04, 0.1)) * np.sqrt(np.mean(tau**2, axis=0))
    assert np.all(np.abs(r.noise / size - 1.0) < 0.35)
    assert np.allclose(np.nanstd(r.residual, axis=0), size, rtol=0.35)
    low, high = r.bounds(0.95)["joint0.damping"]
    assert low < r.parameters["joint0.damping"] < high
    with pytest.raises(bk.ModelError, match="between 0 and 1"):
        r.bounds(95)


# -- loops -------------------------------------------------------------------------------------------------------------


def test_a_loop_gives_the_combinations_of_its_tree():
    m = leg()
    q, v, a = leg_motion(100)
    start = wrong(m, np.random.default_rng(2))
    closed = bk.identify(start, q, v, a, bk.inverse_dynamics(m, q, v, a))
    tree, open_start = m.copy(), start.copy()
    for cut in (tree, open_start):
        cut.cut("pin")
    opened = bk.identify(open_start, *waves(tree, 150), bk.inverse_dynamics(tree, *waves(tree, 150)))
    found = closed.identifiable
    assert list(closed.parameters) == list(opened.parameters)
    assert found.rank < opened.identifiable.rank
    assert np.abs(found.values - found.matrix @ truth(m, closed.parameters)).max() < 1e-6
    assert np.abs(found.values - found.matrix @ list(opened.parameters.values())).max() < 1e-6
    assert np.isnan(closed.noise[2:]).all()  # passive joints have no drive, whose torque could be wrong


def test_a_connection_that_holds_nothing_changes_nothing():
    m = chain(AXES)
    q, v, a = waves(m, 60)
    tau = noisy(bk.inverse_dynamics(m, q, v, a), 0.05, 1)
    held = m.copy()
    held.connect("ground", "link2", bk.Free(), name="thread")
    one, other = (bk.identify(x, q, v, a, tau, fit="inertia") for x in (m, held))
    for name, value in one.parameters.items():
        assert abs(value - other.parameters[name]) < 1e-4 * one.deviation[name]


def test_drives_in_loops_may_be_anywhere_and_unmeasured():
    m = leg()
    q, v, a = leg_motion(100)
    start, rng = wrong(m, np.random.default_rng(0)), np.random.default_rng(1)
    moved = {"lever": False, "pin": True}  # the second motor is in the connection, not at the hip
    driven, given = m, start
    for name, actuated in moved.items():
        driven, given = (x.with_joint(name, actuated=actuated) for x in (driven, given))
    tau = bk.inverse_dynamics(driven, q, v, a)
    assert tau.shape == (100, 5)
    whole = bk.identify(given, q, v, a, tau)
    one = whole.identifiable
    assert np.abs(one.values - one.matrix @ truth(m, whole.parameters)).max() < 1e-7
    tau = bk.inverse_dynamics(m, q, v, a)
    tau[:, 1] = rng.normal(size=100)       # nonsense, which is not used
    part = bk.identify(start, q, v, a, tau, unmeasured="lever")
    found = part.identifiable
    assert found.rank < one.rank
    assert np.abs(found.values - found.matrix @ truth(m, part.parameters)).max() < 1e-7


def test_angles_of_a_loop_with_errors_are_closed_first():
    m = leg()
    q, v, a = leg_motion(100)
    tau = bk.inverse_dynamics(m, q, v, a)
    r = bk.identify(m, q + 1e-4 * np.random.default_rng(0).normal(size=q.shape), v, a, tau, spread=0.5)
    assert np.sqrt(np.nanmean(r.residual**2)) < 0.01 * np.sqrt(np.mean(tau[:, :2] ** 2))
    q[7, 3] += 0.1
    with pytest.raises(bk.StateError, match="sample 7 the loop of 'pin' is open"):
        bk.identify(m, q, v, a, tau)


# -- recordings --------------------------------------------------------------------------------------------------------


def test_a_loose_base_without_force_plates():
    m = bk.Mechanism()
    m.add_link("base", joint=bk.Free(), mass=3.0, inertia=(0.1, 0.2, 0.3))
    m.add_link("arm", "base", bk.Revolute((0, 1, 0), armature=0.02), mass=1.0, com=(0, 0, -0.2),
               inertia=(0.1, 0.1, 0.1))
    rng = np.random.default_rng(0)
    q = np.array([m.integrate(m.neutral(), rng.normal(size=m.nv)) for _ in range(60)])
    v, a = rng.normal(size=(2, 60, m.nv))
    tau = bk.inverse_dynamics(m, q, v, a)
    whole = bk.identify(m.with_link("base", mass=4.0), q, v, a, tau, fit="inertia")
    assert abs(whole.parameters["base.mass"] + whole.parameters["arm.mass"] - 4.0) < 1e-6
    tau[:, :6] = np.nan
    part = bk.identify(m.with_link("base", mass=4.0), q, v, a, tau, fit="inertia", unmeasured="base")
    assert part.identifiable.rank < whole.identifiable.rank
    assert np.isnan(part.residual[:, :6]).all()
    assert abs(part.parameters["base.mass"] - 4.0) < 1e-6  # as given
    assert abs(part.parameters["arm.mz"] + 0.2) < 1e-6


def test_times_and_angles_are_enough():
    m = chain(AXES[:2], damping=0.3)
    motion = bk.exciting_motion(m, 6.0, rate=200, tries=20)
    tau = bk.inverse_dynamics(m, motion.q, motion.v, motion.a)
    start = m.with_link("link1", mass=5.0)
    exact = bk.identify(start, motion, tau=tau, fit=("inertia", "damping"))
    assert abs(exact.parameters["joint1.damping"] - 0.3) < 1e-6
    rng = np.random.default_rng(0)
    r = bk.identify(start, motion.q + 1e-5 * rng.normal(size=motion.q.shape), t=motion.t, cutoff=5.0,
                    tau=noisy(tau, 0.05, 1), fit=("inertia", "damping"))
    assert r.samples < len(motion)
    low, high = r.bounds(0.999)["joint1.damping"]
    assert low < 0.3 < high


def test_a_trajectory_with_recorded_torques():
    m = chain(AXES[:2], damping=0.3)
    motion = bk.exciting_motion(m, 4.0, rate=100, tries=5)
    tau = bk.inverse_dynamics(m, motion.q, motion.v, motion.a)
    locked = m.copy().locked()
    trajectory = bk.Trajectory([Segment(locked, motion.t, motion.q, motion.v, tau=tau)])
    r = bk.identify(m.with_joint("joint0", damping=0.0), trajectory, fit="damping", joints=["joint0"])
    assert list(r.parameters) == ["joint0.damping"]
    assert abs(r.parameters["joint0.damping"] - 0.3) < 1e-6
    with pytest.raises(bk.ShapeError, match="no torques"):
        bk.identify(m, bk.Trajectory([Segment(locked, motion.t, motion.q, motion.v)]))


def test_exciting_motions_are_within_limits_and_tell_more():
    m = chain(AXES, **LAWS).with_joint("joint1", lower=-0.2, upper=0.6)
    good, first = (bk.exciting_motion(m, 4.0, rate=50, tries=n) for n in (60, 1))
    assert good.q[:, 1].min() >= -0.2
    assert good.q[:, 1].max() <= 0.6
    assert np.abs(good.v).max() <= 2.0
    assert np.abs(good.v[[0, -1]]).max() < 1e-3
    volume = []
    for x in (good, first):
        r = bk.identify(m, x, tau=noisy(bk.inverse_dynamics(m, x.q, x.v, x.a), 0.05, 0))
        volume.append(np.linalg.slogdet(r.identifiable.covariance)[1])
    assert volume[0] < volume[1]


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_what_makes_no_sense_is_refused():
    m = chain(AXES)
    q, v, a = waves(m, 30)
    tau = bk.inverse_dynamics(m, q, v, a)
    hole = tau.copy()
    hole[4, 1] = np.nan
    still = [x * (1.0, 1.0, 0.0) for x in (v, a)]
    for error, match, given, options in [
            (bk.ShapeError, r"tau of 'joint1.tau' is nan in sample 4", (q, v, a, hole), {}),
            (bk.ShapeError, r"v has shape \(30, 2\)", (q, v[:, :2], a, tau), {}),
            (bk.ShapeError, "q has 30 samples and tau 29", (q, v, a, tau[:-1]), {}),
            (bk.ShapeError, "3 samples make 9 equations, too few", (q[:3], v[:3], a[:3], tau[:3]), {}),
            (bk.ShapeError, "times of the samples", (q, None, None, tau), {}),
            (bk.ShapeError, "torques are needed", (q, v, a), {}),
            (bk.StateError, "joint 'joint2' does not move", (q, *still, tau), {}),
            (bk.NamingError, "did you mean 'friction'", (q, v, a, tau), {"fit": "frictoin"}),
            (bk.NamingError, "no joint or link 'elbow'", (q, v, a, tau), {"joints": ["elbow"]}),
            (bk.NamingError, "no link 'hand'", (q, v, a, tau), {"links": ["hand"]})]:
        with pytest.raises(error, match=match):
            bk.identify(m, *given, **options)
    floating = chain(((0, 1, 0),), gravity=(0, 0, 0))
    nothing = np.zeros((30, 1))
    with pytest.raises(bk.BunrakuError, match=r"no link or joint that moves|needs no torque"):
        bk.identify(floating, nothing, nothing, nothing, nothing, fit="inertia")
    with pytest.raises(bk.NamingError, match="did you mean"):
        bk.identify(m, q, v, a, tau, fit="inertia").parameters["link0.mas"]
    with pytest.raises(bk.ModelError, match="connections or couplings"):
        bk.exciting_motion(leg())
