"""Actuators of MJCF files: torques are those of MuJoCo, of real models too; inputs by name and by copy; what is left
out is said."""

import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import bunraku as bk
from bunraku import convert

mujoco = pytest.importorskip("mujoco")

BOX = '<geom size=".1 .2 .3" type="box" contype="0"/>'
TREE = f"""<compiler angle="radian"/><worldbody>
<body name="one" pos="0 0 1" euler=".1 .2 .3">
  <joint name="a" axis="1 2 3" pos=".1 -.2 .3" ref=".4" actuatorfrcrange="-2 3"/>{BOX}
  <body name="two" pos=".3 0 0" euler=".3 .2 .1"><joint name="b" type="slide" axis="0 1 1" ref=".3"/>
    <joint name="c" axis="0 1 0"/>{BOX}
    <body name="three" pos=".3 0 .1" euler=".1 .3 .5"><joint name="d" type="ball" pos=".1 .1 .2"/>{BOX}</body>
  </body></body>
<body name="four" pos="1 0 1" euler=".1 .2 .3"><freejoint name="f"/>{BOX}</body></worldbody>
<tendon><fixed name="t"><joint joint="a" coef="2"/><joint joint="c" coef="-.5"/></fixed>
  <fixed name="u" actuatorfrclimited="true" actuatorfrcrange="-.4 .5"><joint joint="b" coef="1"/></fixed></tendon>"""
EVERY_KIND = """<actuator>
<motor name="motor" joint="a" gear="3" ctrlrange="-1 1" ctrllimited="true"/>
<position name="position" joint="c" kp="30" kv="2" gear="1.5" forcerange="-20 20"/>
<velocity name="velocity" joint="b" kv="4" gear="-2"/>
<damper name="damper" joint="c" kv="3" ctrlrange="0 2"/>
<general name="affine" joint="c" gaintype="affine" gainprm="1 2 3" biastype="affine" biasprm=".1 .2 .3"/>
<motor name="pull" tendon="t" gear="2"/><position name="haul" tendon="t" kp="5" gear="3"/>
<motor name="u1" tendon="u" gear="2"/><motor name="u2" tendon="u" gear="1"/>
<position name="ball" joint="d" kp="5" kv=".1" gear="1 2 3"/>
<position name="ball in parent" jointinparent="d" kp="5" kv=".1" gear="1 2 3"/>
<motor name="free" joint="f" gear="1 2 3 4 5 6"/>
<general name="free in parent" jointinparent="f" gear="1 2 3 4 5 6" biastype="affine" biasprm="0 1 .2"/>
<motor joint="b"/></actuator>"""
ODD = """<actuator><intvelocity name="integrator" joint="a" kp="3" actrange="-1 1"/><motor name="rocket" site="s"/>
<motor name="fine" joint="c"/><motor name="rope" tendon="rope"/></actuator>"""


def write(tmp_path, text):
    path = tmp_path / "model.xml"
    path.write_text(f"<mujoco>{text}</mujoco>")
    return path


def load(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bk.LoadWarning)
        return bk.load(path)


def differences(m, path, motors, torque, states=4, seed=0):
    """Largest difference of our torques from MuJoCo's at random states and controls, relative to its largest."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data, forth, rng = mujoco.MjData(model), convert.to(m, "mujoco", model), np.random.default_rng(seed)
    worst = largest = 0.0
    for _ in range(states):
        q, v = m.integrate(m.neutral(), 1.5 * rng.normal(size=m.nv)), rng.normal(size=m.nv)
        data.qpos[:], data.qvel[:] = forth.q(q), forth.v(q, v)
        for i in range(model.nu):
            name = model.actuator(i).name or f"actuator{i}"
            if name in motors.entries:
                data.ctrl[i] = motors[name] = 2.0 * rng.normal()
        mujoco.mj_forward(model, data)
        worst = max(worst, np.abs(forth.tau(q, torque(q, v)) - data.qfrc_actuator).max())
        largest = max(largest, np.abs(data.qfrc_actuator).max())
    return worst / largest


def test_torques_of_every_kind_of_actuator_are_those_of_mujoco(tmp_path):
    path = write(tmp_path, TREE + EVERY_KIND)
    m = load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        motors = bk.control.from_file(m, path)
    assert len(motors.entries) == 14
    compiled = motors.on(bk.Model(m))
    assert differences(m, path, motors, lambda q, v: compiled.torque(0.0, q, v, motors.params, m.nv)) < 1e-12


REAL = {"gymnasium": ("ant", "half_cheetah", "hopper", "humanoid", "inverted_double_pendulum", "point", "pusher_v5",
                      "reacher", "swimmer", "walker2d_v5"),
        "dm_control": ("suite/fish", "suite/finger", "suite/humanoid_CMU", "suite/manipulator", "suite/ball_in_cup",
                       "locomotion/walkers/assets/fruitfly_v2/fruitfly")}


@pytest.mark.parametrize("package", REAL)
def test_torques_of_real_models_are_those_of_mujoco(package):
    found = find_spec(package)
    if found is None:
        pytest.skip(f"{package} is not installed")
    folder = Path(found.submodule_search_locations[0])
    for name in REAL[package]:
        path = folder / (f"envs/mujoco/assets/{name}.xml" if package == "gymnasium" else f"{name}.xml")
        if not path.exists():
            continue
        m = load(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bk.LoadWarning)  # adhesion of the fly
            motors = bk.control.from_file(m, path)
        model = bk.Model(m)

        def torque(q, v, motors=motors, m=m, model=model):  # not compiled
            tau = np.zeros(m.nv)
            motors.function(0.0, q, v, motors.params, tau, model)
            return tau
        assert differences(m, path, motors, torque, states=2) < 1e-12, name


def test_copies_have_controls_of_their_own_and_sequences_of_them(tmp_path):
    """Beside torques computed by hand; worlds, rollouts and sums of controllers."""
    path = write(tmp_path, f"""<worldbody><body><joint name="hip" axis="0 1 0"/>{BOX}
        <body pos="0 0 -.5"><joint name="knee" axis="0 1 0"/>{BOX}</body></body></worldbody>
        <actuator><motor name="hip" joint="hip" gear="4" ctrlrange="-1 1" ctrllimited="true"/>
        <motor name="knee" joint="knee" gear="2"/></actuator>""")
    m, rng = load(path), np.random.default_rng(1)
    commands, steps = rng.normal(size=(3, 4, 2)), {"solver": "symplectic_euler", "step": 0.002}
    motors = bk.control.from_file(m, path, control=commands[0], period=0.01)
    many = bk.rollout(m, np.zeros((3, 2)), until=0.04, actuation=motors,
                      params=motors.batch(3, control=commands), **steps)
    torques = np.clip(commands, [-1.0, -np.inf], [1.0, np.inf]) * (4.0, 2.0)
    held = bk.control.hold(m, torques[0], 0.01)
    wanted = bk.rollout(m, np.zeros((3, 2)), until=0.04, actuation=held, params=held.batch(3, commands=torques),
                        **steps)
    np.testing.assert_allclose(many.q, wanted.q, rtol=0, atol=1e-13)
    motors = bk.control.from_file(m, path)
    worlds = bk.Worlds(m, 3, 0.002, 5, actuation=motors, params=motors.batch(3, knee=[1.0, 2.0, 3.0]), workers=1)
    np.testing.assert_array_equal(worlds.params[:, motors.columns("control")], [[0, 1], [0, 2], [0, 3]])
    for k in range(4):
        worlds.params[:, motors.columns("control")] = commands[:, k]
        worlds.step()
    np.testing.assert_allclose(worlds.q, wanted.q[:, -1], rtol=0, atol=1e-13)
    both = bk.control.gravity_compensation(m) + motors
    both["knee"] = 0.5
    assert both.names == ["control", "gain", "bias"]
    np.testing.assert_array_equal(both["control"], [0.0, 0.5])
    assert motors["knee"] == 0.0


def test_what_cannot_be_represented_is_said(tmp_path):
    sites = TREE.replace('<geom size', '<site name="s"/><geom size', 1).replace(
        "</tendon>", '<spatial name="rope"><site site="s"/><site site="r"/></spatial></tendon>').replace(
        '<body name="four"', '<site name="r"/><body name="four"')
    path = write(tmp_path, sites + ODD)
    m = load(path)
    with pytest.warns(bk.LoadWarning) as said:
        motors = bk.control.from_file(m, path)
    texts = [str(warning.message) for warning in said]
    assert len(texts) == 3
    assert "actuator 'integrator': is left out: it has activation dynamics" in texts[0]
    assert "actuator 'rocket': is left out: its transmission is none of joints or fixed tendons" in texts[1]
    assert "actuator 'rope'" in texts[2]
    assert list(motors.entries) == ["fine"]
    with pytest.raises(bk.LoadError, match="actuator 'integrator'"):
        bk.control.from_file(m, path, strict=True)
    with pytest.raises(bk.NamingError, match="actuator 'fine'"), pytest.warns(bk.LoadWarning):
        bk.control.from_file(bk.models.chain(3), path)
    with pytest.raises(bk.ModelError, match="no actuators that can be represented"):
        bk.control.from_file(m, write(tmp_path, TREE))
    with pytest.raises(bk.LoadError, match=r"MJCF files \(\.xml\)"):
        bk.control.from_file(m, "robot.urdf")
    with pytest.raises(bk.NamingError, match="did you mean 'fine'"):
        motors["finer"]
