"""States in MuJoCo's conventions: a mechanism of one's own matches its model; tests/io/test_mjcf.py has files."""

from __future__ import annotations

import numpy as np
import pytest

import bunraku as bk
from bunraku import convert
from conventions import everything, state


def test_a_mechanism_of_ones_own_matches_mujoco():
    mujoco = pytest.importorskip("mujoco")
    inertial = '<inertial pos=".1 0 -.2" mass="1" diaginertia=".02 .03 .04"/>'
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><option><flag constraint="disable"/></option><worldbody>
        <body><freejoint/>{inertial}
          <body pos="0 0 .5"><joint name="shoulder" type="ball"/>{inertial}
            <body pos=".3 0 0"><joint name="slide_x" type="slide" axis="1 0 0"/>
              <joint name="slide_y" type="slide" axis="0 1 0"/><joint name="slide_turn"/>{inertial}</body>
            <body><joint name="rod_y" type="slide" axis="0 1 0"/><joint name="rod_turn" axis="0 1 0"/>{inertial}</body>
          </body>
          <body>{inertial}</body>
          <body pos="0 .1 0"><joint name="hip_x" axis="1 0 0"/><joint name="hip_y" axis="0 1 0"/>
            <joint name="hip_z" type="slide" axis="0 0 1"/>{inertial}
            <body pos="0 0 -.4"><joint name="knee" axis="0 1 0"/>{inertial}</body></body>
        </body></worldbody></mujoco>""")
    m = everything()
    for link, name in (("tray", "slide_x+slide_y+slide_turn"), ("rod", "rod_y+rod_turn")):
        m = m.with_joint(link, joint_name=name)
    conv = convert.to(m, "mujoco", model)
    assert (conv.nq, conv.nv) == (model.nq, model.nv)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(7)
    for _ in range(5):
        q, v, _, tau = state(m, rng)
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = conv.q(q), conv.v(q, v), conv.tau(q, tau)
        mujoco.mj_forward(model, data)
        assert np.allclose(conv.a(q, v, bk.forward_dynamics(m, q, v, tau)), data.qacc, rtol=1e-9, atol=1e-9)
