"""Independent libraries as judges: Pinocchio on random trees, MuJoCo on one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
from oracle import close, quaternion_matrix
from pinocchio_trees import pinocchio_model, pinocchio_orders
from structures import ONE_DOF, random_tree

COMMON = (*ONE_DOF, "spherical", "free", "fixed")


@given(st.integers(0, 10**6))
@settings(max_examples=80)
def test_accelerations_torques_and_mass_matrices_are_pinocchios(seed):
    pin = pytest.importorskip("pinocchio")
    tree = random_tree(seed, kinds=COMMON)
    q, v, tau = tree.state(np.random.default_rng(seed))
    model = pinocchio_model(pin, tree)
    data = model.createData()
    order_q, order_v = pinocchio_orders(model, tree)
    their_q, their_v, their_tau = np.empty(model.nq), np.empty(model.nv), np.empty(model.nv)
    their_q[order_q], their_v[order_v], their_tau[order_v] = q, v, tau
    close(bk.forward_dynamics(tree.m, q, v, tau), pin.aba(model, data, their_q, their_v, their_tau)[order_v])
    close(bk.inverse_dynamics(tree.m, q, v, tau), pin.rnea(model, data, their_q, their_v, their_tau)[order_v])
    M = np.triu(pin.crba(model, data, their_q))
    M = M + M.T - np.diag(np.diag(M))
    close(bk.mass_matrix(tree.m, q), M[np.ix_(order_v, order_v)])


@given(st.integers(0, 10**6))
@settings(max_examples=30)
def test_moves_along_joints_are_pinocchios(seed):
    pin = pytest.importorskip("pinocchio")
    tree = random_tree(seed, kinds=COMMON)
    q, v, _ = tree.state(np.random.default_rng(seed))
    model = pinocchio_model(pin, tree)
    order_q, order_v = pinocchio_orders(model, tree)
    their_q, their_v = np.empty(model.nq), np.empty(model.nv)
    their_q[order_q], their_v[order_v] = q, v
    ours, theirs = tree.m.integrate(q, v), pin.integrate(model, their_q, their_v)[order_q]
    for part in tree.parts:  # a quaternion and its negative are the same turn
        if part.kind in ("spherical", "free"):
            turn = slice(tree.m.q_slice(part.joint_name).stop - 4, tree.m.q_slice(part.joint_name).stop)
            close(quaternion_matrix(ours[turn]), quaternion_matrix(theirs[turn]), 1e-12)
            ours[turn] = theirs[turn]
    close(ours, theirs, 1e-12)


MJCF = """
<mujoco>
  <option gravity="0.3 -0.4 -9.81"/>
  <compiler angle="radian"/>
  <worldbody>
    <body name="torso" pos="0 0 1">
      <freejoint/>
      <inertial pos="0.1 0 0.2" mass="10" fullinertia="0.5 0.6 0.4 0.01 0.02 0.03"/>
      <body name="upper" pos="0.2 0.1 0.3" quat="0.8 0.6 0 0">
        <joint name="shoulder" type="ball" damping="0.3"/>
        <inertial pos="0 0 -0.15" mass="2" diaginertia="0.02 0.02 0.01"/>
        <body name="lower" pos="0 0 -0.3">
          <joint name="elbow" type="hinge" axis="0 1 0" stiffness="3" springref="0.4" damping="0.2" armature="0.05"/>
          <inertial pos="0 0 -0.12" mass="1" diaginertia="0.01 0.01 0.005"/>
          <body name="rail" pos="0 0 -0.25">
            <joint name="slide" type="slide" axis="0 0.6 0.8" armature="0.1"/>
            <inertial pos="0.01 0 0" mass="0.5" diaginertia="0.001 0.001 0.001"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def test_accelerations_and_places_are_mujocos():
    mujoco = pytest.importorskip("mujoco")
    m = bk.Mechanism(gravity=(0.3, -0.4, -9.81))
    m.add_link("torso", joint=bk.Free(), mass=10.0, com=(0.1, 0, 0.2),
               inertia=[[0.5, 0.01, 0.02], [0.01, 0.6, 0.03], [0.02, 0.03, 0.4]])
    m.add_link("upper", "torso", bk.Spherical(damping=0.3), position=(0.2, 0.1, 0.3),
               rotation=quaternion_matrix(np.array([0.8, 0.6, 0, 0])), mass=2.0, com=(0, 0, -0.15),
               inertia=(0.02, 0.02, 0.01))
    m.add_link("lower", "upper", bk.Revolute((0, 1, 0), stiffness=3, rest=0.4, damping=0.2, armature=0.05),
               position=(0, 0, -0.3), mass=1.0, com=(0, 0, -0.12), inertia=(0.01, 0.01, 0.005))
    m.add_link("rail", "lower", bk.Prismatic((0, 0.6, 0.8), armature=0.1), position=(0, 0, -0.25), mass=0.5,
               com=(0.01, 0, 0), inertia=(0.001,) * 3)
    rng = np.random.default_rng(0)
    q, v, tau = m.integrate(m.neutral(), rng.normal(size=m.nv)), rng.normal(size=m.nv), rng.normal(size=m.nv)
    push = rng.normal(size=6)
    model = mujoco.MjModel.from_xml_string(MJCF)
    data = mujoco.MjData(model)
    # A MuJoCo free joint has its linear velocity in world axes
    R, w = quaternion_matrix(q[3:7]), v[3:6]
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau
    data.qvel[:3], data.qfrc_applied[:3] = R @ v[:3], R @ tau[:3]
    mujoco.mj_forward(model, data)
    lower = model.body("lower").id
    moment = push[3:] + np.cross(data.xpos[lower] - data.xipos[lower], push[:3])  # theirs acts at the centre of mass
    data.xfrc_applied[lower] = np.concatenate([push[:3], moment])
    mujoco.mj_forward(model, data)
    expected = data.qacc.copy()
    expected[:3] = R.T @ expected[:3] - np.cross(w, v[:3])
    close(bk.forward_dynamics(m, q, v, tau, external={"lower": push}), expected, 1e-8)
    close(bk.poses(m, q)["rail"][1], data.xpos[model.body("rail").id], 1e-12)
    close(bk.kinematics(m, q).com, data.subtree_com[0], 1e-12)
