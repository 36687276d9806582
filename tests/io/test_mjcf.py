"""MJCF files move here as they do in MuJoCo (constraints and actuators off), and their issues give warnings."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import bunraku as bk
from bunraku import convert
from bunraku.errors import LoadError, LoadWarning
from bunraku.io.mjcf import load_mjcf
from bunraku.mechanism.describe import describe, rebuild

mujoco = pytest.importorskip("mujoco")

TOLERANCE = 1e-8
SUITE = ("humanoid", "humanoid_CMU", "quadruped", "dog", "walker", "cheetah")


def suite(name: str) -> Path:
    from importlib.util import find_spec

    found = find_spec("dm_control")
    if found is None:
        pytest.skip("dm_control is not installed")
    return Path(found.submodule_search_locations[0]) / "suite" / f"{name}.xml"


def load_quietly(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_mjcf(path, **options)


def oracle(path):
    """MuJoCo's model without constraints, actuators and fluid."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mujoco.MjSpec.from_file(str(path)).compile()
    flags = mujoco.mjtDisableBit
    model.opt.disableflags |= int(flags.mjDSBL_CONSTRAINT) | int(flags.mjDSBL_ACTUATION)
    model.opt.density = model.opt.viscosity = 0
    return model


def random_state(model, rng):
    """qpos, qvel at random; quaternions uniform."""
    qpos = rng.normal(size=model.nq)
    for j in range(model.njnt):
        k = model.jnt_qposadr[j]
        if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE:
            qpos[k + 3:k + 7] /= np.linalg.norm(qpos[k + 3:k + 7])
        elif model.jnt_type[j] == mujoco.mjtJoint.mjJNT_BALL:
            qpos[k:k + 4] /= np.linalg.norm(qpos[k:k + 4])
    return qpos, rng.normal(size=model.nv)


def full_mass_matrix(model, data):
    M = np.zeros((model.nv, model.nv))
    try:
        mujoco.mj_fullM(model, data, M)
    except TypeError:  # before MuJoCo 4
        mujoco.mj_fullM(model, M, data.qM)
    return M


def relative(ours, theirs):
    return np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-12)


def compare(path, mechanism, states=5, seed=0):
    """The largest relative difference of poses, M, bias and accelerations, passive forces on and off, without equality
    constraints: those are in test_mjcf_constraints.py."""
    mechanism = mechanism.copy()
    for joint in list(mechanism.couplings):
        mechanism.uncouple(joint)
    for name in list(mechanism.connections):
        mechanism.cut(name)
    model = oracle(path)
    data = mujoco.MjData(model)
    conv = convert.to(mechanism, "mujoco", model)
    rng = np.random.default_rng(seed)
    worst = dict.fromkeys(("pose", "matrix", "bias", "passive", "a", "a_bare", "inverse"), 0.0)

    def meet(name, ours, theirs):
        worst[name] = max(worst[name], relative(ours, theirs))

    off = [getattr(mujoco.mjtDisableBit, name) for name in ("mjDSBL_PASSIVE", "mjDSBL_SPRING", "mjDSBL_DAMPER")
           if hasattr(mujoco.mjtDisableBit, name)]
    no_passive = sum(int(flag) for flag in off)
    flags = model.opt.disableflags
    names = convert.mujoco.body_names(model)
    for _ in range(states):
        data.qpos[:], data.qvel[:] = random_state(model, rng)
        data.qfrc_applied[:] = rng.normal(size=model.nv)
        model.opt.disableflags = flags
        mujoco.mj_forward(model, data)
        q = conv.back.q(data.qpos)
        v = conv.back.v(data.qpos, data.qvel)
        tau = conv.back.tau(data.qpos, data.qfrc_applied)
        assert np.allclose(conv.q(q), data.qpos, atol=1e-12)
        for body in range(1, model.nbody):
            R, p = bk.poses(mechanism, q)[names[body]]
            meet("pose", np.append(R.ravel(), p), np.append(data.xmat[body], data.xpos[body]))
        M = full_mass_matrix(model, data)
        T = np.array([conv.v(q, e) for e in np.eye(model.nv)]).T  # v' = T v
        meet("matrix", T @ bk.mass_matrix(mechanism, q) @ T.T, M)
        # qacc = 0 in MuJoCo is not a = 0 here
        rest = conv.back.a(data.qpos, data.qvel, np.zeros(model.nv))
        # MuJoCo's bias has no armature in it, and at qacc = 0 armature does nothing there
        meet("bias", conv.tau(q, bk.inverse_dynamics(mechanism, q, v, rest, passive=False)), data.qfrc_bias)
        meet("passive", conv.tau(q, bk.inverse_dynamics(mechanism, q, v, rest)), data.qfrc_bias - data.qfrc_passive)
        a = bk.forward_dynamics(mechanism, q, v, tau)
        meet("a", conv.a(q, v, a), data.qacc)
        meet("inverse", conv.tau(q, bk.inverse_dynamics(mechanism, q, v, conv.back.a(data.qpos, data.qvel, data.qacc))),
             data.qfrc_applied)
        armature = model.dof_armature.copy()
        model.opt.disableflags = flags | no_passive
        model.dof_armature[:] = 0
        mujoco.mj_forward(model, data)
        meet("a_bare", conv.a(q, v, bk.forward_dynamics(mechanism, q, v, tau, passive=False)), data.qacc)
        model.dof_armature[:] = armature
    return worst


@pytest.mark.parametrize("name", SUITE)
def test_dm_control_models_move_as_in_mujoco(name):
    path = suite(name)
    mechanism = load_quietly(path)
    worst = compare(path, mechanism)
    print(name, {key: f"{value:.1e}" for key, value in worst.items()})
    assert max(worst.values()) < TOLERANCE, worst


@pytest.mark.parametrize("name", ["fish", "swimmer", "hopper", "acrobot", "pendulum", "cartpole", "reacher", "finger",
                                  "point_mass", "ball_in_cup", "manipulator", "stacker"])
def test_the_rest_of_the_suite_loads(name):
    path = suite(name)
    model = oracle(path)
    if model.tendon_stiffness.any() or model.tendon_damping.any():
        pytest.skip("has tendon springs")
    worst = compare(path, load_quietly(path), states=2)
    assert max(worst.values()) < TOLERANCE, worst


# -- small files -----------------------------------------------------------------------------------------------------

BODY = '<geom type="box" size=".1 .2 .3" pos=".1 .05 -.2" euler="10 20 30" contype="0"/>'
CASES = {
    "offset anchor": f"""<body pos="1 2 3" euler="10 20 30"><joint name="a" axis="1 2 3" pos=".1 -.2 .3"/>{BODY}
        <body name="tip" pos=".3 0 0"><joint name="b" type="slide" axis="0 1 1" pos="1 1 1"/>{BODY}</body></body>""",
    "references": f"""<body pos="1 2 3" euler="10 20 30">
        <joint name="a" axis="1 2 3" pos=".1 -.2 .3" ref="40"/>
        <joint name="b" type="slide" axis="0 1 1" ref=".3"/>
        <joint name="c" axis="0 1 0" pos=".3 .1 0" ref="-70"/>{BODY}
        <body name="tip" pos=".3 0 0"><joint name="d" axis="0 0 1" pos="0 0 .2" ref="25"/>{BODY}</body></body>""",
    "springs with reference": f"""<body><joint name="a" axis="1 2 3" ref="30" stiffness="3" springref="-20"
            damping=".7" armature=".2"/>{BODY}
        <body name="tip" pos=".3 0 0"><joint name="d" type="slide" axis="0 0 1" ref=".1" springref=".4" stiffness="20"
            damping="2" armature=".3"/>{BODY}</body></body>""",
    "ball": f"""<body name="one"><joint name="a" type="ball" stiffness="3" damping=".5" armature=".1"/>{BODY}
        <body name="two" pos="0 0 -1" euler="50 0 20"><joint name="b" type="ball" pos=".1 .2 .3" stiffness="2"
            damping=".3"/>{BODY}</body></body>""",
    "ball among others": f"""<body name="one" euler="0 30 0" pos="0 0 1">
        <joint name="a" type="hinge" axis="1 1 0" pos=".1 0 .2" ref="20"/>
        <joint name="b" type="ball" pos=".1 .2 .3" stiffness="2" damping=".3"/>
        <joint name="c" type="slide" axis="0 1 1" ref=".2" stiffness="30" damping="1" armature=".1"/>{BODY}
        <body name="two" pos="0 0 -1"><joint name="d" type="slide" axis="0 0 1"/><joint name="e" type="ball"/>
        {BODY}</body></body>""",
    "free": f"""<body name="one" euler="0 30 0" pos="0 0 1"><freejoint name="root"/>{BODY}
        <body name="two" pos="0 0 -1"><joint name="d" axis="0 0 1"/>{BODY}</body></body>""",
    "damped free": f"""<body name="one" euler="0 30 0" pos="0 0 1"><joint type="free" damping="3"/>{BODY}</body>""",
    "free with armature": f"""<body name="one" euler="0 30 0" pos="0 0 1">
        <joint name="root" type="free" damping="3" armature=".4"/>{BODY}
        <body name="two" pos="0 0 -1"><joint name="d" axis="0 0 1"/>{BODY}</body></body>""",
    "free with spring": f"""<body name="one" pos=".1 .2 1"><joint name="root" type="free" stiffness="3"/>{BODY}
        </body>""",
    "fixed children": f"""<body name="one"><joint name="a" axis="0 1 0"/>
        <body name="two" pos="0 .1 -1" euler="10 0 0">{BODY}<body name="three" pos="0 0 1">{BODY}</body></body></body>
        <body name="post" pos="1 0 0">{BODY}<body name="arm" pos="0 0 1"><joint name="b"/>{BODY}</body></body>""",
    "frames and classes": f"""<frame pos="1 0 0" euler="0 0 40"><body name="one" childclass="stiff">
        <joint name="a" axis="0 1 0"/><frame euler="30 0 0"><joint name="b" type="slide" axis="1 0 0"/></frame>{BODY}
        <body name="two" pos="0 0 1"><joint name="c" class="soft"/>{BODY}</body></body></frame>""",
    "replicated": f"""<replicate count="3" offset="0 0 1" euler="0 0 20"><body name="one"><joint name="a" axis="0 1 0"/>
        {BODY}</body></replicate>""",
    "inertial": """<body name="one"><joint axis="0 1 0"/><inertial pos=".1 .2 .3" mass="2"
        fullinertia="2 3 4 .1 .2 .3"/><body pos="1 0 0"><joint type="ball" pos=".1 0 0"/><inertial pos="0 0 0" mass="1"
        quat="1 1 0 0" diaginertia="1 2 2.5"/></body></body>""",
    "inertia without mass, standing still": f"""<body name="post"><inertial pos="0 0 0" mass="0" diaginertia="1 1 1"/>
        <body name="arm"><joint name="a"/>{BODY}</body></body>""",
    "zero range ends": f"""<body><joint name="a" range="-30 0"/>{BODY}</body>""",
}
HEAD = """<mujoco model="small"><compiler angle="degree" autolimits="true"/><option gravity="1 2 -9"/>
<default><joint damping="0"/><default class="stiff"><joint stiffness="5" damping="1" armature=".1"/></default>
<default class="soft"><joint stiffness=".5" springref="10"/></default></default><worldbody>
<geom type="plane" size="1 1 1" contype="0" conaffinity="0"/>"""


def write(tmp_path, text, name="model.xml"):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("case", CASES)
def test_small_files_move_as_in_mujoco(tmp_path, case):
    path = write(tmp_path, f"{HEAD}{CASES[case]}</worldbody></mujoco>")
    limited = "range" in CASES[case]
    if limited:
        with pytest.warns(LoadWarning, match="do not act"):
            mechanism = load_mjcf(path)
    else:
        mechanism = load_mjcf(path, strict=True)  # and nothing is odd about them
    worst = compare(path, mechanism, states=8)
    assert max(worst.values()) < TOLERANCE, worst


def test_coordinates_are_qpos(tmp_path):
    """Without any conversion, `ref` included, as long as nothing is free."""
    path = write(tmp_path, f"{HEAD}{CASES['references']}</worldbody></mujoco>")
    mechanism, model = load_mjcf(path), oracle(path)
    data = mujoco.MjData(model)
    data.qpos[:] = np.random.default_rng(0).normal(size=model.nq)
    mujoco.mj_kinematics(model, data)
    R, p = bk.poses(mechanism, data.qpos)["tip"]
    assert np.allclose(p, data.body("tip").xpos, atol=1e-12)
    assert np.allclose(R.ravel(), data.body("tip").xmat, atol=1e-12)
    assert mechanism.joint_names == ["a+b+c", "d"]
    assert mechanism.link_names == ["body1", "tip"]


def test_massless_helpers_are_named_after_body_and_joint(tmp_path):
    path = write(tmp_path, f"{HEAD}{CASES['ball among others']}</worldbody></mujoco>")
    mechanism = load_mjcf(path)
    assert mechanism.link_names == ["one/a", "one/b", "one", "two/d", "two"]
    assert mechanism.link("one").mass > 0 == mechanism.link("one/b").mass


def test_limits_are_kept_as_information_and_said_not_to_act(tmp_path):
    path = write(tmp_path, f"{HEAD}{CASES['zero range ends']}</worldbody></mujoco>")
    with pytest.warns(LoadWarning, match=r"joint 'a': its limits .* do not act; m.with_joint\(name, hard_limits"):
        mechanism = load_mjcf(path)
    acting = mechanism.with_joint("a", limit_stiffness=100.0)
    assert bk.forward_dynamics(acting, [0.5], [0.0])[0] < bk.forward_dynamics(mechanism, [0.5], [0.0])[0]
    lower, upper = mechanism.joint("a").passive[0, 4:6]
    assert (lower, upper) == (pytest.approx(-np.pi / 6), 0.0)
    assert mechanism.joint("a").passive[0, 6] == 0


def test_flags_of_the_file_are_heeded(tmp_path):
    text = f"{HEAD}{CASES['springs with reference']}</worldbody></mujoco>"
    passive = 'passive="disable"' if hasattr(mujoco.mjtDisableBit, "mjDSBL_PASSIVE") else (
        'spring="disable" damper="disable"')
    flags = f'<option><flag gravity="disable" {passive}/></option><default>'
    mechanism = load_mjcf(write(tmp_path, text.replace("<default>", flags, 1)), strict=True)
    assert not mechanism.gravity.any()
    assert not mechanism.joint("a").passive[0, 1:3].any()
    assert mechanism.joint("a").passive[0, 0] == pytest.approx(0.2)


def test_a_loaded_mechanism_can_be_written_and_read(tmp_path):
    mechanism = load_quietly(suite("humanoid"))
    twin = rebuild(json.loads(json.dumps(describe(mechanism))))
    q, v = mechanism.neutral(), np.ones(mechanism.nv)
    assert np.allclose(bk.forward_dynamics(mechanism, q, v), bk.forward_dynamics(twin, q, v), rtol=1e-10)


# -- visuals ---------------------------------------------------------------------------------------------------------


def test_shapes_have_our_sizes(tmp_path):
    path = write(tmp_path, """<mujoco><asset><material name="red" rgba="1 0 0 1"/></asset><worldbody><body name="one">
        <joint/><geom type="box" size="1 2 3" pos="1 0 0" material="red"/><geom type="capsule" size=".1 .5"/>
        <geom type="cylinder" fromto="0 0 0 0 0 2" size=".2"/><geom size=".3" rgba="0 1 0 .5"/>
        <geom type="ellipsoid" size=".1 .2 .3"/><geom size="9" group="3"/></body></worldbody></mujoco>""")
    shapes = [(v.shape, v.size) for v in load_mjcf(path).link("one").visuals]
    assert [s for s, _ in shapes] == ["box", "capsule", "cylinder", "sphere", "ellipsoid"]
    assert [list(np.round(size, 9)) for _, size in shapes] == [[2, 4, 6], [.1, 1], [.2, 2], [.3], [.1, .2, .3]]
    colours = [v.colour for v in load_mjcf(path).link("one").visuals]
    assert colours[0] == (1, 0, 0, 1)
    assert colours[3] == (0, 1, 0, .5)


def test_meshes_are_placed_as_their_files_have_them(tmp_path):
    """A vertex of the file, scaled and placed by the visual, is where MuJoCo has it."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3.0]]) + np.array([0.3, 0.2, 0.1])
    (tmp_path / "meshes").mkdir()
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + ["f 1 3 2", "f 1 2 4", "f 1 4 3", "f 2 3 4"]
    (tmp_path / "meshes" / "corner.obj").write_text("\n".join(lines))
    path = write(tmp_path, """<mujoco><compiler meshdir="meshes"/><asset><mesh name="m" file="corner.obj"
        scale="2 1 1" refpos=".1 0 .2" refquat="1 .2 0 0"/></asset><worldbody><body name="one" pos="1 0 0"><joint/>
        <geom type="mesh" mesh="m" pos="0 1 0" euler="20 30 40"/></body></worldbody></mujoco>""")
    mechanism, model = load_mjcf(path), oracle(path)
    visual = mechanism.link("one").visuals[0]
    assert visual.shape == "mesh"
    assert os.path.samefile(visual.mesh, tmp_path / "meshes" / "corner.obj")
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    theirs = data.geom_xpos[0] + model.mesh_vert @ data.geom_xmat[0].reshape(3, 3).T
    ours = [1, 0, 0] + visual.position + (corners * visual.size) @ visual.rotation.T
    gaps = np.linalg.norm(ours[:, None] - theirs[None], axis=-1).min(axis=1)
    assert gaps.max() < 1e-6


# -- warnings and errors ---------------------------------------------------------------------------------------------

ODD = {
    "sensor 'feel'": ("", '<sensor><jointpos name="feel" joint="a"/></sensor>'),
    "tendon 'rope'": ("", '<tendon><fixed name="rope"><joint joint="a" coef="1"/></fixed></tendon>'),
    "equality constraint 'tie'": ("", '<equality><joint name="tie" joint1="a"/></equality>'),
    "keyframe 'start'": ("", '<keyframe><key name="start" qpos="1"/></keyframe>'),
    "option": ("", '<option density="1"/>'),
    "frictionloss": ('<joint name="b" axis="1 0 0" frictionloss="1"/>', ""),
    "gravcomp": ('<body name="light" gravcomp="1"><joint/><geom size=".1" contype="0"/></body>', ""),
    "motion capture": ("", '<worldbody><body name="hand" mocap="true"/></worldbody>'),
    "contacts": ("", '<worldbody><geom type="plane" size="1 1 1" conaffinity="3" contype="3"/></worldbody>'),
    "called 'ground/body'": ("", '<worldbody><body name="ground" pos="1 0 0"/></worldbody>'),
    "nearly no mass": ('<body name="dust"><joint/><inertial pos="0 0 0" mass="1e-9" diaginertia="1e-9 1e-9 1e-9"/>'
                       "</body>", ""),
    "only the linear part of its stiffness": ('<joint name="b" axis="1 0 0" stiffness="1 2"/>', ""),
    "only the linear part of its damping": ('<joint name="b" axis="1 0 0" damping="1 2"/>', ""),
    "deprecated": ("", '<compiler settotalmass="3"/>'),
}


@pytest.mark.parametrize("odd", ODD)
def test_what_is_left_out_is_said_and_strict_raises(tmp_path, odd):
    inside, outside = ODD[odd]
    if odd.startswith(("deprecated", "only the linear")) and int(mujoco.__version__.split(".")[0]) < 4:
        pytest.skip("new in MuJoCo 4")
    path = write(tmp_path, f"""<mujoco><worldbody><body name="one"><joint name="a"/><geom size=".1"/>{inside}</body>
        </worldbody>{outside}</mujoco>""")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mechanism = load_mjcf(path)
    said = [str(warning.message) for warning in caught]
    assert all(issubclass(warning.category, LoadWarning) for warning in caught)
    assert any(odd in text and text.startswith("model.xml: ") for text in said), said
    assert len(said) == 1, said
    bk.forward_dynamics(mechanism, mechanism.neutral(), np.zeros(mechanism.nv))
    with pytest.raises(LoadError, match="strict") as error:
        load_mjcf(path, strict=True)
    assert odd in str(error.value)


def test_what_cannot_be_represented_is_refused(tmp_path):
    spring = """<mujoco><worldbody><body euler="10 20 30"><joint name="root" type="free" stiffness="1"/>
        <geom size=".1"/></body></worldbody></mujoco>"""
    with pytest.raises(LoadError, match=r"model\.xml: joint 'root': .*cannot be represented"):
        load_mjcf(write(tmp_path, spring))
    cloth = """<mujoco><worldbody><flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" mass="1"
        radius=".01"/></worldbody></mujoco>"""
    with pytest.raises(LoadError, match=r"model\.xml: flex 'cloth'"):
        load_mjcf(write(tmp_path, cloth))


def test_nothing_is_left_behind(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>")
    with pytest.raises(LoadError):
        load_mjcf(path)
    load_quietly(suite("cheetah"))
    assert os.listdir(tmp_path) == ["model.xml"]
    assert capfd.readouterr() == ("", "")


def test_without_mujoco_the_command_is_given(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(bk.MissingExtra, match=r'pip install "bunraku\[mjcf\]"'):
        load_mjcf(tmp_path / "model.xml")


def test_relative_paths_and_includes_work(tmp_path, monkeypatch):
    (tmp_path / "robot").mkdir()
    (tmp_path / "common").mkdir()
    write(tmp_path / "common", '<mujocoinclude><default><joint damping="3"/></default></mujocoinclude>', "defaults.xml")
    write(tmp_path / "robot", """<mujoco><include file="../common/defaults.xml"/><worldbody><body name="one">
        <joint name="a"/><geom size=".1"/></body></worldbody></mujoco>""")
    monkeypatch.chdir(tmp_path)
    assert load_mjcf("robot/model.xml").joint("a").passive[0, 1] == 3
