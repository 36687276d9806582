"""States in other libraries' conventions, without the libraries: there and back, power, rates; what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import bunraku as bk
from bunraku import convert
from bunraku.convert.blocks import rotations
from bunraku.errors import ModelError, ShapeError, StateError
from conventions import INERTIA, everything, pinocchio_twin, same_state, state

LIBRARIES = convert.LIBRARIES


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("batch", [(), (5,)])
@pytest.mark.parametrize("placed", [False, True])
def test_there_and_back(library, batch, placed):
    m = everything(helical=library != "mujoco", placed=placed)
    conv = convert.to(m, library)
    q, v, a, tau = state(m, np.random.default_rng(0), batch)
    x, xv = conv.q(q), conv.v(q, v)
    assert x.shape == (*batch, conv.nq)
    assert xv.shape == (*batch, conv.nv) == (*batch, m.nv)
    assert same_state(m, q, conv.back.q(x))
    assert np.allclose(conv.back.v(x, xv), v, atol=1e-13)
    assert np.allclose(conv.back.a(x, xv, conv.a(q, v, a)), a, atol=1e-12)
    assert np.allclose(conv.back.tau(x, conv.tau(q, tau)), tau, atol=1e-13)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_batch_is_its_states(library):
    m = everything()
    conv = convert.to(m, library)
    q, v, a, tau = state(m, np.random.default_rng(1), (7,))
    for k in range(7):
        assert np.array_equal(conv.q(q)[k], conv.q(q[k]))
        assert np.allclose(conv.v(q, v)[k], conv.v(q[k], v[k]), atol=1e-15)
        assert np.allclose(conv.a(q, v, a)[k], conv.a(q[k], v[k], a[k]), atol=1e-14)
        assert np.allclose(conv.tau(q, tau)[k], conv.tau(q[k], tau[k]), atol=1e-15)
    assert np.allclose(conv.v(q[0], v), [conv.v(q[0], x) for x in v])  # one q for all


@pytest.mark.parametrize("library", LIBRARIES)
def test_power_is_the_same(library):
    m = everything()
    conv = convert.to(m, library)
    q, v, _, tau = state(m, np.random.default_rng(2), (20,))
    assert np.allclose(np.sum(conv.tau(q, tau) * conv.v(q, v), -1), np.sum(tau * v, -1), rtol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("placed", [False, True])
def test_accelerations_are_the_rate_of_converted_velocities(library, placed):
    """Along q(t + h) = q + h v + h^2/2 a, of which the first order is all that matters."""
    m = everything(placed=placed)
    conv = convert.to(m, library)
    q, v, a, _ = state(m, np.random.default_rng(3), (10,))
    h = 1e-5
    ahead, behind = ((m.integrate(q, s * h * v + 0.5 * h * h * a), v + s * h * a) for s in (1, -1))
    numeric = (conv.v(*ahead) - conv.v(*behind)) / (2 * h)
    assert np.allclose(numeric, conv.a(q, v, a), atol=1e-7)


def expected_rates(library, kind, x, xv):
    """dq/dt of a library's joint from its own q and v, as its documentation has it."""
    cross = np.cross
    if library == "drake" and kind == "free":
        w, u, quaternion = xv[:3], xv[3:], x[:4]
        # w in parent axes
        rate = 0.5 * np.array([-w @ quaternion[1:], *(quaternion[0] * w + cross(w, quaternion[1:]))])
        return np.concatenate([rate, u])
    if library == "drake" and kind == "ball":
        r, p, y = x
        # w = (roll rate) Rz Ry x + (pitch rate) Rz y + (yaw rate) z
        axes = np.array([[np.cos(y) * np.cos(p), -np.sin(y), 0], [np.sin(y) * np.cos(p), np.cos(y), 0],
                         [-np.sin(p), 0, 1]])
        return np.linalg.solve(axes, xv)
    scalar_last = library == "pinocchio"
    quaternion = np.roll(x[-4:], 1) if scalar_last else x[-4:]
    w = xv[-3:]
    rate = 0.5 * np.array([-w @ quaternion[1:], *(quaternion[0] * w + cross(quaternion[1:], w))])  # w in child axes
    rate = np.roll(rate, -1) if scalar_last else rate
    if kind == "ball":
        return rate
    u = xv[:3] if library == "mujoco" else rotations(quaternion) @ xv[:3]
    return np.concatenate([u, rate])


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", ["ball", "free"])
@pytest.mark.parametrize("placed", [False, True])
def test_converted_coordinates_move_as_the_library_says(library, kind, placed):
    m = bk.Mechanism()
    place = {"position": (1, 2, 3), "rotation": rotations(np.array([1.0, 2.0, 3.0, 4.0]))} if placed else {}
    m.add_link("one", joint=bk.Free() if kind == "free" else bk.Spherical(), mass=1, inertia=INERTIA, **place)
    conv = convert.to(m, library)
    rng = np.random.default_rng(4)
    for _ in range(10):
        q, v, _, _ = state(m, rng)
        h = 1e-6
        numeric = (conv.q(m.integrate(q, h * v)) - conv.q(m.integrate(q, -h * v))) / (2 * h)
        if np.abs(numeric).max() < 50:  # roll and yaw jump by whole turns
            assert np.allclose(numeric, expected_rates(library, kind, conv.q(q), conv.v(q, v)), atol=1e-7)


def test_looking_straight_up_is_no_trouble():
    m = bk.Mechanism()
    m.add_link("one", joint=bk.Spherical(), mass=1, inertia=INERTIA)
    conv = convert.to(m, "drake")
    for tilt in (np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, np.pi / 2 + 1e-13):
        for yaw in (0.0, 0.7, 3.0):
            q = conv.back.q(np.array([0.3, tilt, yaw]))
            assert np.abs(m.difference(q, conv.back.q(conv.q(q)))).max() < 1e-7


# -- what is refused -------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_said():
    pin = pytest.importorskip("pinocchio")
    m = everything()
    model = pinocchio_twin(pin, False, False)
    model.addJoint(0, pin.JointModelRX(), pin.SE3.Identity(), "extra")
    with pytest.raises(ModelError, match="only there 'extra'"):
        convert.to(m, "pinocchio", model)
    m.add_link("more", "base", bk.Revolute((0, 0, 1)), mass=1)
    with pytest.raises(ModelError, match="only here 'more'; only there 'extra'"):
        convert.to(m, "pinocchio", model)
    model = pinocchio_twin(pin, False, False)
    model.addJoint(0, pin.JointModelSpherical(), pin.SE3.Identity(), "more")
    with pytest.raises(ModelError, match=r"joint 'more' is Revolute.* but in the Pinocchio model ball"):
        convert.to(m, "pinocchio", model)
    with pytest.raises(ModelError, match="MuJoCo has no joint like Helical"):
        convert.to(everything(helical=True), "mujoco")
    with pytest.raises(ModelError, match="no converter for 'dart'"):
        convert.to(m, "dart")
    for library in LIBRARIES:
        with pytest.raises(ModelError, match="not int"):
            convert.to(m, library, 3)


def test_states_are_checked():
    m = everything()
    for library in LIBRARIES:
        conv = convert.to(m, library)
        with pytest.raises(ShapeError):
            conv.q(np.zeros(3))
        with pytest.raises(ShapeError):
            conv.back.v(conv.q(m.neutral()), np.zeros(2))
        with pytest.raises(StateError):
            conv.q(np.zeros(m.nq))
        batch = np.tile(m.neutral(), (4, 1))
        batch[[1, 3], 3] = 0
        with pytest.raises(StateError, match=r"states \[1, 3\]") as error:
            conv.q(batch)
        assert error.value.states == (1, 3)
