"""States in Pinocchio's conventions: its dynamics agree with ours."""

from __future__ import annotations

import numpy as np
import pytest

import bunraku as bk
from bunraku import convert
from conventions import everything, pinocchio_twin, state


@pytest.mark.parametrize("unbounded", [False, True])
@pytest.mark.parametrize("composite", [False, True])
def test_dynamics_agree_with_pinocchio(unbounded, composite):
    pin = pytest.importorskip("pinocchio")
    m = everything()
    model = pinocchio_twin(pin, unbounded, composite)
    data = model.createData()
    conv = convert.to(m, "pinocchio", model)
    assert (conv.nq, conv.nv) == (model.nq, model.nv)
    assert conv.joint_names[:3] == ["root", "shoulder", "slide"]
    rng = np.random.default_rng(5)
    for _ in range(5):
        q, v, a, tau = state(m, rng)
        theirs = pin.rnea(model, data, conv.q(q), conv.v(q, v), conv.a(q, v, a))
        ours = bk.inverse_dynamics(m, q, v, a)
        assert np.allclose(conv.tau(q, ours), theirs, atol=1e-11)
        assert np.allclose(conv.back.tau(conv.q(q), theirs), ours, atol=1e-11)
        acceleration = pin.aba(model, data, conv.q(q), conv.v(q, v), conv.tau(q, tau))
        assert np.allclose(conv.a(q, v, bk.forward_dynamics(m, q, v, tau)), acceleration, rtol=1e-9, atol=1e-9)
        # Ours goes straight in x and y, Pinocchio's planar joint along an arc: the same for a short way
        moved = conv.back.q(pin.integrate(model, conv.q(q), 1e-6 * conv.v(q, v)))
        gap = m.difference(m.integrate(q, 1e-6 * v), moved)
        assert np.abs(np.remainder(gap + np.pi, 2 * np.pi) - np.pi).max() < 1e-11


def test_random_pinocchio_states_come_back():
    pin = pytest.importorskip("pinocchio")
    m, model = everything(), pinocchio_twin(pin, True, True)
    conv = convert.to(m, "pinocchio", model)
    rng = np.random.default_rng(6)
    x = np.array([pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv)) for _ in range(20)])
    assert np.allclose(conv.q(conv.back.q(x)), x, atol=1e-12)


def test_pinocchios_own_reading_of_mjcf_is_matched(tmp_path):
    pin = pytest.importorskip("pinocchio")
    pytest.importorskip("mujoco")
    from bunraku.io.mjcf import load_mjcf

    path = tmp_path / "model.xml"
    inertial = '<inertial pos=".1 0 -.2" mass="1" diaginertia=".02 .03 .04"/>'
    path.write_text(f"""<mujoco><worldbody><body name="base"><freejoint name="root"/>{inertial}
        <body name="leg" pos="0 0 1"><joint name="x" axis="1 0 0"/><joint name="y" axis="0 1 0"/>{inertial}
        </body></body></worldbody></mujoco>""")
    m, model = load_mjcf(path), pin.buildModelFromMJCF(str(path))
    model = model[0] if isinstance(model, tuple) else model
    conv = convert.to(m, "pinocchio", model)
    q, v, a, _ = state(m, np.random.default_rng(10))
    theirs = pin.rnea(model, model.createData(), conv.q(q), conv.v(q, v), conv.a(q, v, a))
    assert np.allclose(conv.tau(q, bk.inverse_dynamics(m, q, v, a)), theirs, rtol=1e-9, atol=1e-9)
