"""Equality constraints of MJCF files: connections and couplings that accelerate as in MuJoCo where its impedance
stiffens; loops of files close; what is left out is said."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import bunraku as bk
from bunraku import convert
from bunraku.io.mjcf import load_mjcf
from mujoco_constraints import compare, load_quietly

mujoco = pytest.importorskip("mujoco")

def write(tmp_path, text):
    path = tmp_path / "model.xml"
    path.write_text(f"<mujoco>{text}</mujoco>")
    return path


GEOM = '<geom type="box" size=".1 .2 .3" pos=".1 .05 -.2" euler="10 20 30" contype="0"/>'
TREE = f"""<worldbody><body name="one" pos="1 2 3" euler="10 20 30">
        <joint name="a" axis="1 2 3" pos=".1 -.2 .3" ref="40"/>{GEOM}
        <body name="two" pos=".3 0 0"><joint name="b" type="slide" axis="0 1 1" ref=".3"/>
          <joint name="c" axis="0 1 0" pos=".3 .1 0" ref="-70"/>{GEOM}
          <body name="three" pos=".3 0 .1"><joint name="d" axis="0 0 1" ref="25"/><joint name="e" axis="1 0 1"/>{GEOM}
          <site name="there" pos=".1 .2 .3" euler="40 50 60"/></body></body></body>
        <body name="four" pos="1 0 1"><freejoint name="f"/>{GEOM}<site name="here" pos="0 .1 .2"/></body>
      </worldbody>"""
CASES = {
    "joints": '<equality><joint joint1="c" joint2="a" polycoef=".2 -1.5 0 0 0"/><joint joint1="b" joint2="e"/>'
              "</equality>",
    "one led by two": '<equality><joint joint1="c" joint2="a"/><joint joint1="c" joint2="d" polycoef="0 2 0 0 0"/>'
                      "</equality>",
    "tendons": """<tendon><fixed name="t"><joint joint="a" coef="2"/></fixed>
        <fixed name="u"><joint joint="e" coef="-.5"/></fixed>
        <fixed name="w"><joint joint="c" coef="3"/><joint joint="d" coef=".5"/></fixed></tendon>
        <equality><tendon tendon1="t" tendon2="u" polycoef=".1 .7 0 0 0"/><tendon tendon1="w"/></equality>""",
    "connect": '<equality><connect body1="three" body2="four" anchor=".1 .2 .1"/></equality>',
    "connect to the world": '<equality><connect body1="three" anchor=".1 .2 .1"/></equality>',
    "connect sites": '<equality><connect site1="here" site2="there"/></equality>',
    "weld": '<equality><weld body1="two" body2="four" anchor=".1 0 0"/></equality>',
    "weld with a pose": '<equality><weld body1="four" body2="one" relpose=".1 .2 .3 .9 .1 .2 .3"/></equality>',
    "weld sites": '<equality><weld site1="here" site2="there"/></equality>',
    "loop and coupling": '<equality><connect body1="one" body2="four" anchor=".1 .2 .1"/>'
                         '<joint joint1="d" joint2="e" polycoef="0 -1 0 0 0"/></equality>',
}


@pytest.mark.parametrize("case", CASES)
def test_small_files_accelerate_as_in_mujoco(tmp_path, case):
    path = write(tmp_path, TREE + CASES[case])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m = load_mjcf(path)
    assert len(m.couplings) + len(m.connections) == (1 if "connect" in case or "weld" in case else 2)
    assert compare(path, moving=not m.connections) < 1e-9


def installed(package: str, pattern: str) -> Path | None:
    found = find_spec(package)
    return next((Path(found.submodule_search_locations[0])).rglob(pattern), None) if found else None


REAL = {"manipulator": ("dm_control", "suite/manipulator.xml"), "stacker": ("dm_control", "suite/stacker.xml"),
        "Franka in a kitchen": ("gymnasium_robotics", "kitchen_assets/kitchen_env_model.xml"),
        "Jaco gripper": ("robosuite", "grippers/jaco_three_finger_gripper.xml"),
        "Robotiq 140": ("robosuite", "grippers/robotiq_gripper_140.xml"),
        "Robotiq S": ("robosuite", "grippers/robotiq_gripper_s.xml")}


@pytest.mark.parametrize("name", REAL)
def test_real_models_with_couplings_accelerate_as_in_mujoco(name):
    path = installed(*REAL[name])
    if path is None:
        pytest.skip(f"{REAL[name][0]} is not installed")
    couplings, error = len(load_quietly(path).couplings), compare(path, moving=True)
    print(f"{name}: {couplings} couplings, relative difference {error:.1e}")
    assert couplings
    assert error < 1e-9


LEFT_OUT = {
    "cubic": ('<equality><joint name="tie" joint1="a" joint2="c" polycoef="0 1 2 0 0"/></equality>', "only linear"),
    "one joint": ('<equality><joint name="tie" joint1="a"/></equality>', "only linear"),
    "three joints": ("""<tendon><fixed name="t"><joint joint="a" coef="2"/><joint joint="c" coef="2"/><joint joint="e"
        coef="1"/></fixed></tendon><equality><tendon name="tie" tendon1="t"/></equality>""", "only linear"),
    "inactive": ('<equality><joint name="tie" joint1="a" joint2="c" active="false"/></equality>', "not active"),
    "hand": ('<worldbody><body name="hand" mocap="true"/></worldbody><equality><weld name="tie" body1="hand" '
             'body2="one"/></equality>', "motion capture, and is left out"),
    "twice": ('<equality><joint joint1="a" joint2="c"/><joint name="tie" joint1="c" joint2="a"/></equality>',
              "already follows"),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_what_is_left_out_is_said(tmp_path, case):
    text, reason = LEFT_OUT[case]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        m = load_mjcf(write(tmp_path, TREE + text))
    said = [str(warning.message) for warning in caught if "equality constraint 'tie'" in str(warning.message)]
    assert len(said) == 1
    assert reason in said[0]
    assert len(m.couplings) == (case == "twice")
    with pytest.raises(bk.LoadError, match="equality constraint 'tie'"):
        load_mjcf(write(tmp_path, TREE + text), strict=True)


def test_friction_brakes_as_in_mujoco(tmp_path):
    """Of joints that move; MuJoCo creeps where joints stick."""
    path = write(tmp_path, TREE.replace('name="b"', 'name="b" frictionloss="3"').replace('name="e"',
                 'name="e" frictionloss=".7"'))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m = bk.load(path, friction=True)
    with pytest.warns(bk.LoadWarning, match="friction=True"):
        assert not bk.load(path).joint("d+e").friction.any()
    model = mujoco.MjModel.from_xml_path(str(path))
    conv, data, rng = convert.to(m, "mujoco", model), mujoco.MjData(model), np.random.default_rng(3)
    model.opt.tolerance = 0.0
    for _ in range(4):
        q, v, tau = m.integrate(m.neutral(), 0.3 * rng.normal(size=m.nv)), 5.0 * rng.normal(size=m.nv), np.zeros(m.nv)
        data.qpos[:], data.qvel[:] = conv.q(q), conv.v(q, v)
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(conv.a(q, v, bk.forward_dynamics(m, q, v, tau)), data.qacc, rtol=1e-7, atol=1e-7)


def test_ranges_of_actuators_are_efforts_of_joints(tmp_path):
    tree = TREE.replace('name="d"', 'name="d" actuatorfrcrange="-3 3"')
    m = load_quietly(write(tmp_path, tree + """<actuator>
        <motor joint="a" gear="50" ctrlrange="-0.5 0.4" ctrllimited="true"/>
        <motor joint="a" gear="-2" forcerange="-1 1"/>
        <position joint="b" kp="7" ctrlrange="-1 1" forcerange="-8 8"/><position joint="c" ctrlrange="-1 1"/>
        <motor joint="d" ctrlrange="-9 9"/></actuator>"""))
    found = dict(zip("abcde", m.effort[:5], strict=True))
    assert found == {"a": 27.0, "b": 8.0, "c": np.inf, "d": 3.0, "e": np.inf}


def test_actuators_say_which_joints_are_actuated(tmp_path):
    m = load_quietly(write(tmp_path, TREE + CASES["joints"] + '<actuator><motor joint="a"/></actuator>'))
    assert [link.joint_name for link in m.links if link.actuated] == ["a"]
    without = load_quietly(write(tmp_path, TREE + CASES["joints"]))
    assert [link.joint_name for link in without.links if link.actuated] == ["a", "b", "c", "d", "e"]
