"""The ready-made mechanisms are what they say: they weigh, measure, stand and fall as they should."""

import numpy as np
import pytest

import bunraku as bk

BUILDERS = {
    "human 16": lambda: bk.models.human(16),
    "human 34": lambda: bk.models.human(34),
    "human 48": lambda: bk.models.human(48),
    "humanoid": bk.models.humanoid,
    "chain": lambda: bk.models.chain(9, axes=((0, 1, 0), (1, 0, 0))),
    "spherical chain": lambda: bk.models.chain(9, joint="spherical"),
    "free chain": lambda: bk.models.chain(9, base="free"),
}
FIGURES = ("human 16", "human 34", "human 48", "humanoid")


def random_state(m, seed=0):
    rng = np.random.default_rng(seed)
    return m.integrate(m.neutral(), rng.normal(size=m.nv)), rng.normal(size=m.nv), rng.normal(size=m.nv)


def test_numbers_of_things_may_come_from_numpy():
    assert bk.models.chain(np.int64(3)).nv == 3
    assert bk.models.n_four_bar(np.int32(2)).nv == bk.models.n_four_bar(2).nv
    assert bk.schedule(bk.models.chain(3), workers=np.int64(2)).depth


@pytest.mark.parametrize(("build", "told"), [
    (lambda: bk.models.chain(2.0), "chain: the number of links must be a whole number, at least 1, not 2.0"),
    (lambda: bk.models.chain(2, mass="heavy"), "chain: mass must be a positive number, not 'heavy'"),
    (lambda: bk.models.chain(2, length=np.inf), "chain: length must be a positive number, not inf"),
    (lambda: bk.models.human(height=None), "human: height must be a positive number, not None"),
    (lambda: bk.models.chain_held(1), "chain_held: the number of links must be a whole number, at least 2, not 1")])
def test_numbers_that_cannot_be_are_named(build, told):
    with pytest.raises(bk.ModelError) as error:
        build()
    assert str(error.value) == told


@pytest.mark.parametrize(("dof", "nv", "bodies"), [(16, 22, 9), (34, 34, 13), (48, 48, 19)])
def test_humans_have_their_degrees_of_freedom_and_bodies(dof, nv, bodies):
    m = bk.models.human(dof)
    assert m.nv == nv
    assert m.plan().bodies == bodies


def test_humanoid_is_revolute_and_the_right_size():
    m = bk.models.humanoid()
    assert m.nv == 39
    assert 30 <= len(m.links) <= 40
    assert all(isinstance(link.joint, bk.Revolute) for link in m.links[1:])


@pytest.mark.parametrize("dof", [16, 34, 48])
@pytest.mark.parametrize(("height", "mass"), [(1.75, 70.0), (1.2, 25.0), (2.0, 110.0)])
def test_humans_have_the_mass_and_height_asked_for(dof, height, mass):
    m = bk.models.human(dof, height=height, mass=mass)
    assert m.mass == pytest.approx(mass)
    k = bk.kinematics(m, m.neutral())
    top = k.poses["head"][1][2] + 0.2429 / 0.6033 * (k.poses["head"][1][2] - k.poses["pelvis"][1][2])
    assert top == pytest.approx(height)
    assert 0.55 < k.com[2] / height < 0.58
    assert k.poses["left_foot"][1][2] == pytest.approx(0.039 * height)


def test_human_48_weighs_like_34_in_the_same_pose():
    a, b = bk.models.human(34), bk.models.human(48)
    root = slice(0, 6)  # as one rigid body: total inertia seen by the pelvis
    assert np.allclose(bk.mass_matrix(a, a.neutral())[root, root], bk.mass_matrix(b, b.neutral())[root, root])


@pytest.mark.parametrize("name", FIGURES)
def test_figures_stand_and_are_symmetric(name):
    m = BUILDERS[name]()
    k = bk.kinematics(m, m.neutral())
    foot = "ankle_roll" if name == "humanoid" else "foot"
    left, right = k.poses[f"left_{foot}"][1], k.poses[f"right_{foot}"][1]
    assert abs(k.com[1]) < 1e-12
    assert right[1] < k.com[1] < left[1]
    assert left[0] - 0.07 < k.com[0] < left[0] + 0.15
    mirror = np.diag([1.0, -1.0, 1.0])
    for link in m.links:
        if link.name.startswith("left_"):
            twin = m.link(link.name.replace("left", "right"))
            assert np.allclose(k.poses[twin.name][1], mirror @ k.poses[link.name][1])
            assert np.allclose(twin.com, mirror @ link.com)
            assert np.allclose(twin.inertia, mirror @ link.inertia @ mirror)
            assert twin.mass == link.mass


@pytest.mark.parametrize("name", BUILDERS)
def test_inverse_dynamics_undoes_forward_dynamics(name):
    m = BUILDERS[name]()
    q, v, tau = random_state(m)
    a = bk.forward_dynamics(m, q, v, tau)
    assert np.allclose(bk.inverse_dynamics(m, q, v, a), tau, atol=1e-9)


@pytest.mark.parametrize("name", [*FIGURES, "free chain"])
def test_centre_of_mass_falls_freely(name):
    m = BUILDERS[name]()
    q, v, tau = random_state(m, 1)
    tau[:6] = 0.0
    a = bk.forward_dynamics(m, q, v, tau)
    h = 1e-4  # central difference of the velocity of the centre of mass
    ahead = bk.kinematics(m, m.integrate(q, h * v + 0.5 * h * h * a), v + h * a).com_velocity
    behind = bk.kinematics(m, m.integrate(q, -h * v + 0.5 * h * h * a), v - h * a).com_velocity
    assert np.allclose((ahead - behind) / (2 * h), m.gravity, atol=1e-3)


def test_limits_act_only_when_asked():
    loose, firm = bk.models.human(34), bk.models.human(34, limits=True)
    q = loose.neutral()
    q[loose.q_slice("left_knee")] = -0.3  # bent the wrong way
    push = bk.forward_dynamics(firm, q, np.zeros(34)) - bk.forward_dynamics(loose, q, np.zeros(34))
    assert push[firm.v_slice("left_knee")] > 0.0
    assert np.allclose(bk.forward_dynamics(firm, loose.neutral(), np.zeros(34)),
                       bk.forward_dynamics(loose, loose.neutral(), np.zeros(34)))


def test_knees_and_elbows_bend_the_human_way():
    m = bk.models.human(34)
    q = m.neutral()
    for joint in ("left_knee", "left_elbow"):
        q[m.q_slice(joint)] = 1.0
    p = bk.poses(m, q)
    assert p["left_foot"][1][0] < -0.1   # heel goes back
    assert p["left_hand"][1][0] > 0.1    # hand comes forward


@pytest.mark.parametrize("call", [
    lambda: bk.models.chain(0), lambda: bk.models.chain(2.5), lambda: bk.models.chain(3, joint="rubber"),
    lambda: bk.models.chain(3, base="loose"), lambda: bk.models.chain(3, length=0.0),
    lambda: bk.models.chain(3, axes=()), lambda: bk.models.human(40), lambda: bk.models.human(34, height=-1.0),
])
def test_figures_and_chains_that_cannot_be_are_refused(call):
    with pytest.raises(bk.ModelError):
        call()
