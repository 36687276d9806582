"""Jacobian rates, centroidal momentum, Coriolis matrix, regressor, operational-space inertia and singularities: beside
differences of the quantities they are rates of, the equations of motion, and Pinocchio."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
from robots import FOLDER, Twin, needs_robots
from structures import random_tree

SEEDS = st.integers(0, 10**6)
STEP = 1e-5


def moving(seed, **options):
    tree = random_tree(seed, **options)
    rng = np.random.default_rng(seed)
    q, v, a = tree.state(rng)
    return tree.m, q, v, a


def rate(m, q, v, of):
    """Central difference of of(q) along the motion."""
    ahead, behind = (of(m.integrate(q, sign * STEP * v)) for sign in (1.0, -1.0))
    return (ahead - behind) / (2.0 * STEP)


def near(x, y, tolerance=1e-10):
    assert np.shape(x) == np.shape(y)
    assert np.abs(x - y).max(initial=0.0) <= tolerance * (1.0 + np.abs(y).max(initial=0.0))


@given(SEEDS)
@settings(max_examples=25)
def test_rates_are_those_of_the_motion(seed):
    m, q, v, a = moving(seed)
    link, point = m.link_names[-1], (0.1, -0.2, 0.3)
    k = bk.kinematics(m, q, v, a)
    near(k.jacobian_rate(link, point), rate(m, q, v, lambda q: bk.kinematics(m, q).jacobian(link, point)), 1e-7)
    near(k.jacobian(link) @ a + k.jacobian_rate(link) @ v, k.accelerations[link])
    if m.mass > 0.0:
        near(k.momentum_matrix_rate, rate(m, q, v, lambda q: bk.kinematics(m, q).momentum_matrix), 1e-7)
        near(k.momentum_matrix @ v, k.momentum)
        near(k.com_jacobian @ v, k.com_velocity)


@given(SEEDS)
@settings(max_examples=25)
def test_the_coriolis_matrix_completes_the_equations_of_motion(seed):
    m, q, v, a = moving(seed, passive=True)
    C = bk.coriolis_matrix(m, q, v)
    moving_now, at_rest = (bk.inverse_dynamics(m, q, speed, 0 * a, passive=False) for speed in (v, 0 * v))
    near(C @ v, moving_now - at_rest)
    skew = rate(m, q, v, lambda q: bk.mass_matrix(m, q)) - 2.0 * C
    near(skew + skew.T, np.zeros_like(C), 1e-6 * (1.0 + np.abs(C).max()))


@given(SEEDS)
@settings(max_examples=25)
def test_torques_are_linear_in_the_inertial_parameters(seed):
    m, q, v, a = moving(seed)
    near(bk.inertial_regressor(m, q, v, a) @ bk.inertial_parameters(m), bk.inverse_dynamics(m, q, v, a))


@given(SEEDS)
@settings(max_examples=15)
def test_operational_inertia_is_what_a_push_feels(seed):
    m, q, v, _ = moving(seed, massless=False)
    link = m.link_names[-1]
    W = np.stack([bk.dynamics(m, q, v, external={link: push}).links[link] for push in np.eye(6)], axis=1)
    W -= bk.dynamics(m, q, v).links[link][:, None]
    Lambda = bk.operational_inertia(m, q, link)
    near(W @ Lambda @ W, W, 1e-7)
    near(Lambda @ W @ Lambda, Lambda, 1e-7)


def test_operational_inertia_with_loops_closed():
    m = bk.models.four_bar()
    q = bk.project(m, np.array([0.3, 0.0, 0.0]))
    Lambda = bk.operational_inertia(m, q, "coupler")
    J = bk.kinematics(m, q).jacobian("coupler") @ bk.closed_chain(m, q).W
    M = bk.closed_chain(m, q).W.T @ bk.mass_matrix(m, q) @ bk.closed_chain(m, q).W
    along = J[:, 0] / np.linalg.norm(J[:, 0])
    near(along @ Lambda @ along, float(M[0, 0]) / (J[:, 0] @ J[:, 0]))
    assert bk.kinematics(m, q).singularity("coupler").rank == 1


def test_a_stretched_arm_cannot_reach_further():
    m = bk.Mechanism()
    body = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": (0.1,) * 3}
    m.add_link("upper", joint=bk.Revolute((0, 0, 1)), **body)
    m.add_link("fore", "upper", bk.Revolute((0, 0, 1)), position=(1, 0, 0), **body)
    bent, straight = (bk.kinematics(m, np.array([0.4, bend])).singularity("fore", (1, 0, 0)) for bend in (1.0, 0.0))
    assert bent.rank == 2
    assert straight.rank == 2  # it still turns while it moves


def test_a_straight_elbow_loses_the_direction_of_the_arm():
    pose = bk.kinematics(seven_joints(), np.array([0.3, 0.5, 0.2, 0.0, 0.1, 0.7, 0.0]))
    found = pose.singularity("6")
    shoulder, wrist = pose.poses["0"][1], pose.poses["4"][1]
    assert found.rank == 5
    assert np.isinf(found.condition)
    assert found.manipulability < 1e-12
    point = pose.poses["6"][1]
    axis = (wrist - shoulder) / np.linalg.norm(wrist - shoulder)
    expected = np.r_[axis, np.cross(wrist - point, axis)]  # no motion has a velocity of the wrist along the arm
    assert abs(abs(found.lost @ expected) / np.linalg.norm(found.lost) / np.linalg.norm(expected) - 1.0) < 1e-9


def seven_joints():
    m, parent = bk.Mechanism(), "ground"
    axes, x = ((0, 0, 1), (0, 1, 0), (0, 0, 1), (0, 1, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)), (0, 0, 0, 0.4, 0.4, 0, 0)
    for k, axis in enumerate(axes):
        m.add_link(f"{k}", parent, bk.Revolute(axis), position=(0, 0, x[k]), mass=1.0, inertia=(0.1,) * 3)
        parent = f"{k}"
    return m


@needs_robots
@pytest.mark.filterwarnings("ignore::bunraku.errors.LoadWarning")
@pytest.mark.parametrize(("name", "base"), [("talos_data/robots/talos_reduced.urdf", "free"),
                                            ("panda_description/urdf/panda.urdf", "fixed")])
def test_every_quantity_is_that_of_pinocchio(name, base):
    pin = pytest.importorskip("pinocchio")
    m = bk.load(str(FOLDER / name), base=base)
    for joint in list(m.couplings):  # fingers, which are free of each other in Pinocchio's model
        m.uncouple(joint)
    twin, rng = Twin(FOLDER / name, m, base), np.random.default_rng(3)
    q, v, a = m.integrate(m.neutral(), 0.5 * rng.normal(size=m.nv)), rng.normal(size=m.nv), rng.normal(size=m.nv)
    model, data, theirs = twin.model, twin.data, (twin.q(q), twin.v(v), twin.v(a))
    k, order = bk.kinematics(m, q, v, a), twin.order
    pin.forwardKinematics(model, data, *theirs)
    pin.computeJointJacobiansTimeVariation(model, data, *theirs[:2])
    pin.updateFramePlacements(model, data)
    pin.dccrba(model, data, *theirs[:2])
    near(k.momentum_matrix, data.Ag[:, order])
    near(k.momentum_matrix_rate, data.dAg[:, order])
    near(k.com_jacobian, pin.jacobianCenterOfMass(model, data, theirs[0])[:, order])
    near(bk.coriolis_matrix(m, q, v), pin.computeCoriolisMatrix(model, data, *theirs[:2])[np.ix_(order, order)])
    regressor = pin.computeJointTorqueRegressor(model, data, *theirs)[order]
    upper = np.triu(pin.crba(model, data, theirs[0]))
    inverse = np.linalg.inv(upper + np.triu(upper, 1).T)
    Y, frame = bk.inertial_regressor(m, q, v, a), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    pin.computeJointJacobiansTimeVariation(model, data, *theirs[:2])
    pin.forwardKinematics(model, data, *theirs)
    pin.updateFramePlacements(model, data)
    for number, link in enumerate(m.links):
        if link.joint.nv == 1:
            joint, name = model.getJointId(link.joint_name), link.name
            near(Y[:, 10 * number:10 * number + 10], regressor[:, 10 * (joint - 1):10 * joint])
            J = pin.getJointJacobian(model, data, joint, frame)
            near(k.jacobian(name), J[:, order])
            near(k.jacobian_rate(name), pin.getJointJacobianTimeVariation(model, data, joint, frame)[:, order])
            acceleration = pin.getClassicalAcceleration(model, data, joint, frame)
            near(k.accelerations[name], np.r_[acceleration.linear, acceleration.angular])
    mobility = J @ inverse @ J.T
    if np.linalg.cond(mobility) < 1e8:
        near(bk.operational_inertia(m, q, name), np.linalg.inv(mobility))


def test_a_batch_is_its_states():
    m, rng = bk.models.human(34), np.random.default_rng(4)
    q = np.array([m.integrate(m.neutral(), 0.5 * rng.normal(size=m.nv)) for _ in range(5)])
    v, a = rng.normal(size=(2, 5, m.nv))
    k = bk.kinematics(m, q, v, a)

    def of(k, q, v, a):
        return (k.jacobian("head"), k.jacobian_rate("head", (0, 0, 0.1)), k.momentum_matrix, k.momentum_matrix_rate,
                k.com_jacobian, k.singularity("head").values, bk.coriolis_matrix(m, q, v),
                bk.inertial_regressor(m, q, v, a), bk.operational_inertia(m, q, "left_hand"))

    batch = of(k, q, v, a)
    for n in range(5):
        for one, all_ in zip(of(bk.kinematics(m, q[n], v[n], a[n]), q[n], v[n], a[n]), batch, strict=True):
            near(all_[n], one, 1e-11)
    assert bk.coriolis_matrix(m, q[:0], v[:0]).shape == (0, m.nv, m.nv)


def test_what_makes_no_sense_is_refused():
    m = bk.models.human(16)
    q, v = m.neutral(), np.zeros(m.nv)
    with pytest.raises(bk.StateError, match=r"v\[3\]"):
        bk.coriolis_matrix(m, q, np.where(np.arange(m.nv) == 3, np.nan, v))
    with pytest.raises(bk.ShapeError, match="v has shape"):
        bk.coriolis_matrix(m, q, v[:-1])
    with pytest.raises(bk.NamingError, match="no link 'hat'"):
        bk.operational_inertia(m, q, "hat")
    with pytest.raises(bk.ModelError, match="'ground' cannot move"):
        bk.operational_inertia(m, q, "ground")
    assert not bk.kinematics(m, q).jacobian("ground").any()
