"""bk.inverse_kinematics: targets met, limits kept, loops closed, priorities obeyed; beside closed forms."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import bunraku as bk

EXACT = 1e-12


def arm(lengths=(0.5, 0.4), axes=((0, 1, 0), (0, 1, 0)), **joint):
    """Links in a row along x; the tip of the last is a point of it."""
    m, parent, x = bk.Mechanism(), "ground", 0.0
    for k, (length, axis) in enumerate(zip(lengths, axes, strict=True)):
        m.add_link(f"{k}", parent, bk.Revolute(axis, **joint), position=(x, 0, 0), mass=1.0, inertia=(0.1,) * 3)
        parent, x = f"{k}", length
    return m, (parent, (x, 0.0, 0.0))


SEVEN = ((0, 0, 1), (0, 1, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0))


def seven():
    return arm((0.0, 0.4, 0.0, 0.4, 0.0, 0.1, 0.1), SEVEN, lower=-2.5, upper=2.5)


def tips(m, tip, q):
    R, x = bk.poses(m, q)[tip[0]]
    return R, x + R @ np.array(tip[1])


def random_states(m, n, seed=0):
    """States within the limits of joints with one degree of freedom."""
    rng = np.random.default_rng(seed)
    q = np.array([m.integrate(m.neutral(), rng.uniform(-1.0, 1.0, m.nv)) for _ in range(n)])
    for name in m.joint_names:
        joint, where = m.joint(name), m.q_slice(name)
        if isinstance(joint, bk.Revolute) and np.isfinite(joint.lower):
            q[:, where] = rng.uniform(joint.lower, joint.upper, (n, 1))
    return q


def within_limits(m, q):
    fits = True
    for name in m.joint_names:
        joint, x = m.joint(name), q[..., m.q_slice(name)]
        if isinstance(joint, bk.Spherical):
            turn = 2.0 * np.arctan2(np.linalg.norm(x[..., 1:], axis=-1), np.abs(x[..., 0]))
            fits &= bool(np.all(turn <= np.min(joint.upper) + 1e-12))
        elif joint.nv == 1:
            fits &= bool(np.all((x >= joint.lower - 1e-12) & (x <= joint.upper + 1e-12)))
    return fits


def test_reachable_poses_are_reached_within_the_limits():
    m, tip = seven()
    R, x = tips(m, tip, random_states(m, 200))
    r = bk.inverse_kinematics(m, {tip: (R, x)})
    assert r.success.all()
    assert r.error.max() < EXACT
    assert within_limits(m, r.q)
    found = tips(m, tip, r.q)
    assert np.abs(found[0] - R).max() < EXACT
    assert np.abs(found[1] - x).max() < EXACT


@pytest.mark.parametrize("limits", [False, True])
def test_several_links_of_a_figure_with_spherical_joints(limits):
    m = bk.models.human(34, limits=True)
    q = random_states(m, 40, seed=1)
    if limits:  # within them
        for name in m.joint_names:
            if isinstance(m.joint(name), bk.Spherical):
                q[:, m.q_slice(name)] = (1, 0, 0, 0)
    poses = bk.poses(m, q)
    targets = {"left_hand": poses["left_hand"], ("right_hand", (0.0, 0.0, -0.05)): (
        None, poses["right_hand"][1] + poses["right_hand"][0] @ (0.0, 0.0, -0.05)), "head": (poses["head"][0], None)}
    r = bk.inverse_kinematics(m, targets, limits=limits)
    assert r.success.all()
    assert r.error.max() < EXACT
    assert not limits or within_limits(m, r.q)
    found = bk.poses(m, r.q)
    assert np.abs(found["left_hand"][1] - poses["left_hand"][1]).max() < EXACT
    assert np.abs(found["head"][0] - poses["head"][0]).max() < EXACT


def test_a_batch_is_its_states_one_by_one_whoever_computes():
    m, tip = seven()
    R, x = tips(m, tip, random_states(m, 40, seed=2))
    alone = [bk.inverse_kinematics(m, {tip: (R[k], x[k])}).q for k in range(len(x))]
    for workers in (1, 3):
        assert np.array_equal(bk.inverse_kinematics(m, {tip: (R, x)}, workers=workers).q, alone)


def test_a_solution_near_the_start_is_found():
    m, tip = seven()
    q = 0.8 * random_states(m, 50, seed=3)
    R, x = tips(m, tip, q)
    r = bk.inverse_kinematics(m, {tip: (R, x)}, q + 0.05)
    assert r.success.all()
    assert (r.starts == 1).all()
    assert np.abs(r.q - q).max() < 0.4


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_small_and_large_arms_reach_as_well(size):
    m, tip = arm((0.0, 0.4 * size, 0.0, 0.4 * size, 0.0, 0.1 * size, 0.1 * size), SEVEN, lower=-2.5, upper=2.5)
    R, x = tips(m, tip, random_states(m, 50, seed=6))
    r = bk.inverse_kinematics(m, {tip: (R, x)})
    assert r.success.all()
    assert r.error[:, 0].max() < EXACT * max(1.0, size)


def test_a_quaternion_without_a_direction_is_refused():
    m = bk.models.human(34)
    with pytest.raises(bk.StateError, match="quaternion"):
        bk.inverse_kinematics(m, {"head": (0, 0, 1)}, 0.0 * m.neutral())


def test_out_of_reach_the_arm_points_at_the_target():
    m, tip = arm()
    r = bk.inverse_kinematics(m, {tip: (0.9, 0.0, -1.2)})  # 1.5 m away, reach 0.9 m
    assert not r.success
    assert r.error[0] == pytest.approx(0.6, abs=1e-9)
    assert tips(m, tip, r.q)[1] == pytest.approx([0.54, 0.0, -0.72], abs=1e-6)


def test_at_a_limit_the_nearest_pose_is_found():
    m, tip = arm((0.5,), ((0, 1, 0),), lower=-0.5, upper=0.5)
    r = bk.inverse_kinematics(m, {tip: (0.0, 0.0, -0.5)})  # a turn by pi / 2
    assert not r.success
    assert r.q == pytest.approx([0.5], abs=1e-12)
    assert bk.inverse_kinematics(m, {tip: (0.0, 0.0, -0.5)}, limits=False).q == pytest.approx([np.pi / 2])


def test_lower_priorities_move_only_what_higher_ones_leave():
    m, tip = arm((0.5, 0.4, 0.3), ((0, 1, 0),) * 3)
    first, second = tip, ("1", (0.4, 0.0, 0.0))
    asked = {first: (0.6, 0.0, 0.4), second: (-0.3, 0.0, 0.5)}
    r = bk.inverse_kinematics(m, asked, priorities={second: 1})
    assert not r.success
    assert r.errors[first][0] < 1e-9
    # the second end of link 1 is 0.3 from the first target and within 0.9 of the ground: nearest such point
    angle = np.linspace(0, 2 * np.pi, 200001)
    end = np.array([0.6, 0.4])[:, None] + 0.3 * np.array([np.cos(angle), np.sin(angle)])
    away = np.hypot(*end)
    distance = np.hypot(*(end - np.array([-0.3, 0.5])[:, None]))
    assert r.errors[second][0] == pytest.approx(distance[(away >= 0.1) & (away <= 0.9)].min(), abs=1e-6)
    other = bk.inverse_kinematics(m, asked, priorities={first: 1})
    assert other.errors[second][0] < 1e-9 < other.errors[first][0]


def test_weights_divide_what_cannot_be_met():
    m = bk.Mechanism()
    m.add_link("slide", joint=bk.Prismatic((1, 0, 0)), mass=1.0)
    targets = {"slide": (0.0, 0.0, 0.0), ("slide", (0.0, 1.0, 0.0)): (1.0, 1.0, 0.0)}
    q = bk.inverse_kinematics(m, targets, weights={"slide": 2.0}).q
    assert q == pytest.approx([0.2])  # minimum of 4 q^2 + (q - 1)^2


def test_a_posture_is_as_near_as_the_target_leaves_freedom():
    m, tip = seven()
    q = 0.6 * random_states(m, 20, seed=4)
    x, wanted = tips(m, tip, q)[1], 0.3 * np.ones(m.nv)
    r = bk.inverse_kinematics(m, {tip: x}, q, posture=wanted)
    assert r.success.all()
    assert r.error.max() < 1e-9
    for k in range(len(q)):
        if np.all(np.abs(r.q[k]) < 2.49):  # no limit acts
            J = bk.kinematics(m, r.q[k]).jacobian(*tip)[:3]
            away = wanted - r.q[k]
            along = away - np.linalg.pinv(J) @ (J @ away)
            assert np.abs(along).max() < 1e-5 * max(1.0, np.abs(away).max())


def test_a_figure_reaches_while_it_stands_on_held_feet():
    m = bk.models.human(34)
    q0, feet = m.neutral(), ["left_foot", "right_foot"]
    poses = bk.poses(m, q0)
    goal = poses["left_hand"][1] + np.array([0.35, 0.0, 0.3])
    r = bk.inverse_kinematics(m, {"left_hand": goal}, q0, hold=feet)
    found = bk.poses(m, r.q)
    assert r.success
    assert np.abs(found["left_hand"][1] - goal).max() < EXACT
    for foot in feet:
        assert np.abs(found[foot][1] - poses[foot][1]).max() < EXACT
        assert np.abs(found[foot][0] - poses[foot][0]).max() < EXACT
    far = bk.inverse_kinematics(m, {"left_hand": goal + np.array([3.0, 0, 0])}, q0, hold=feet, starts=3)
    assert not far.success
    assert max(far.errors[foot].max() for foot in feet) < 1e-9


class Platform:
    """6-UPS: legs of a universal joint and a slide each from the ground to a plate, by balls."""

    def __init__(self, shortest=0.95, longest=1.7):
        turn = 2.0 * np.pi / 3.0 * np.repeat(np.arange(3), 2)
        below, above = turn + np.tile([-0.2, 0.2], 3), turn + np.pi / 3 + np.tile([-0.8, 0.8], 3)
        self.base = np.stack([np.cos(below), np.sin(below), 0 * below], axis=1)
        self.plate = 0.6 * np.stack([np.cos(above), np.sin(above), 0 * above], axis=1)
        self.range = shortest, longest
        self.m = m = bk.Mechanism()
        m.add_link("plate", joint=bk.Free(), mass=5.0, inertia=(0.1, 0.1, 0.2))
        home = np.array([0.0, 0.0, 1.0])
        for k in range(6):
            leg = self.plate[k] + home - self.base[k]
            length = np.linalg.norm(leg)
            z = leg / length
            x = np.cross([0, 1, 0], z) / np.linalg.norm(np.cross([0, 1, 0], z))
            m.add_link(f"cross {k}", joint=bk.Revolute((1, 0, 0)), position=self.base[k],
                       rotation=np.stack([x, np.cross(z, x), z], axis=1), mass=0.1, inertia=(1e-3,) * 3)
            m.add_link(f"leg {k}", f"cross {k}", bk.Revolute((0, 1, 0)), mass=1.0, inertia=(0.02, 0.02, 1e-3))
            m.add_link(f"rod {k}", f"leg {k}", bk.Prismatic((0, 0, 1), lower=shortest - length, upper=longest - length),
                       position=(0, 0, length), mass=0.5, inertia=(0.01, 0.01, 1e-3))
            m.connect(f"rod {k}", "plate", bk.Spherical(), position_b=self.plate[k])
        self.q0 = m.neutral()
        self.q0[:3] = home

    def lengths(self, R, x):
        return np.linalg.norm(x[:, None] + self.plate @ R.transpose(0, 2, 1) - self.base, axis=-1)


def test_a_platform_is_posed_exactly_where_its_legs_are_long_enough():
    platform, rng = Platform(), np.random.default_rng(5)
    x = np.array([0.0, 0.0, 1.0]) + rng.uniform(-0.12, 0.12, (120, 3))
    R = Rotation.from_rotvec(rng.uniform(-0.2, 0.2, (120, 3))).as_matrix()
    lengths, (shortest, longest) = platform.lengths(R, x), platform.range
    margin = np.minimum(lengths - shortest, longest - lengths).min(axis=1)
    clear = np.abs(margin) > 1e-6
    r = bk.inverse_kinematics(platform.m, {"plate": (R, x)}, platform.q0, starts=5)
    assert np.array_equal(r.success[clear], margin[clear] > 0)
    assert 20 < r.success.sum() < 120
    assert r.error[r.success].max() < EXACT
    assert r.gap[r.success].max() < EXACT
    assert all(np.abs(bk.constraints(platform.m, q).gap).max() < EXACT for q in r.q[r.success])
    assert r.gap.max() < 1e-6  # and loops stay closed where the pose cannot be reached


def test_redundant_loops():
    m = bk.models.four_bar()
    q = np.array([0.4, 0.0, 0.0])
    R, x = bk.poses(m, bk.project(m, q))["coupler"]
    r = bk.inverse_kinematics(m, {"coupler": (None, x)})
    assert r.success
    assert r.error[0] < EXACT
    assert r.gap < EXACT


def test_coupled_joints_turn_together():
    m, tip = arm((0.5, 0.4, 0.3), ((0, 1, 0),) * 3)
    m.couple("2", "1", ratio=0.5, offset=0.1)
    q = np.array([0.4, -0.9, 0.5 * -0.9 + 0.1])
    x = tips(m, tip, q)[1]
    r = bk.inverse_kinematics(m, {tip: x}, q + np.array([0.1, 0.1, 0.0]))
    assert r.success
    assert abs(r.q[2] - 0.5 * r.q[1] - 0.1) < EXACT
    assert np.abs(tips(m, tip, r.q)[1] - x).max() < EXACT


def test_only_the_given_joints_move():
    m, tip = seven()
    q0 = np.full(m.nq, 0.2)
    x = tips(m, tip, q0)[1] + [0.02, 0.0, 0.03]
    r = bk.inverse_kinematics(m, {tip: x}, q0, joints=["0", "1", "3"])
    assert r.success
    assert np.array_equal(r.q[[2, 4, 5, 6]], q0[[2, 4, 5, 6]])


def test_empty_batches():
    m, tip = seven()
    r = bk.inverse_kinematics(m, {tip: np.zeros((0, 3))})
    assert r.q.shape == (0, 7)
    assert r.success.shape == (0,)
    assert r.error.shape == (0, 2)


@pytest.mark.parametrize(("targets", "options", "error", "words"), [
    ({"6": "there"}, {}, bk.ShapeError, "target '6'.*array of numbers"),
    ({"6": (np.nan, 0, 0)}, {}, bk.ShapeError, "target '6': position must be finite"),
    ({"6": np.eye(3)}, {}, bk.ShapeError, r"orientation as \(rotation, None\)"),
    ({"6": (2 * np.eye(3), None)}, {}, bk.ModelError, "not a rotation matrix"),
    ({"6": (None, None)}, {}, bk.ShapeError, "neither a rotation nor a position"),
    ({"hand": (0, 0, 0)}, {}, bk.NamingError, "no link 'hand'"),
    ({"ground": (0, 0, 0)}, {}, bk.ModelError, "ground, which does not move"),
    ({}, {}, bk.ModelError, "no target"),
    ({"6": np.zeros((3, 3)), "5": np.zeros((4, 3))}, {}, bk.ShapeError, "batches of different size"),
    ({"6": (0, 0, 0)}, {"hold": "5"}, bk.NamingError, r"hold=\['5'\]"),
    ({"6": (0, 0, 0)}, {"hold": ["6"]}, bk.NamingError, "has a target and is held"),
    ({"6": (0, 0, 0)}, {"weights": {"5": 1.0}}, bk.NamingError, "no target '5'"),
    ({"6": (0, 0, 0)}, {"weights": {"6": -1.0}}, bk.ModelError, "weight of '6'"),
    ({"6": (0, 0, 0)}, {"priorities": {"6": -1}}, bk.ModelError, "priority of '6'"),
    ({"6": (0, 0, 0)}, {"q0": np.full(7, np.nan)}, bk.StateError, "joint '0' is nan"),
    ({"6": (0, 0, 0)}, {"joints": []}, bk.ModelError, "no joint that may move"),
    ({"6": (0, 0, 0)}, {"tolerance": 0.0}, bk.ModelError, "tolerance"),
    ({"6": (0, 0, 0)}, {"starts": 0}, bk.ModelError, "starts"),
])
def test_what_makes_no_sense_is_refused(targets, options, error, words):
    with pytest.raises(error, match=words):
        bk.inverse_kinematics(seven()[0], targets, **options)


def test_loops_elsewhere_that_are_open_at_the_start_are_closed():
    m, tip = seven()
    for name, lead in (("a", "ground"), ("b", "a")):
        m.add_link(name, lead, bk.Revolute((0, 1, 0)), mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.couple("b", "a", 2.0, 0.7)
    r = bk.inverse_kinematics(m, {tip: tips(m, tip, np.full(9, 0.2))[1]}, np.full(9, 0.3))
    assert r.success
    assert r.gap == np.abs(bk.constraints(m, r.q, np.zeros(9)).gap).max() < EXACT
