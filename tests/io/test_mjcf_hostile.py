"""Malformed, truncated and hostile MJCF: a bunraku error that names the file, never anything else, never a hang."""

from __future__ import annotations

import contextlib
import os
import re
import time
import warnings

import numpy as np
import pytest

import bunraku as bk
from bunraku.errors import BunrakuError, LoadError
from bunraku.io import prescan
from bunraku.io.mjcf import load_mjcf

pytest.importorskip("mujoco")

PATIENCE = 20.0  # seconds for any one file

GOOD = """<?xml version="1.0"?>
<mujoco model="arm">
  <compiler angle="degree" inertiafromgeom="auto" autolimits="true"/>
  <option timestep="0.01" gravity="0 0 -9.81"><flag contact="disable"/></option>
  <default><joint damping="1"/><default class="big"><geom size=".2"/></default></default>
  <asset><material name="grey" rgba=".5 .5 .5 1"/>
    <mesh name="tet" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/></asset>
  <worldbody>
    <light pos="0 0 4"/>
    <geom type="plane" size="1 1 1"/>
    <body name="base" pos="0 0 1" quat="1 0 0 0">
      <freejoint name="root"/>
      <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <geom name="g" class="big" type="sphere" material="grey"/>
      <body name="upper" pos="0 .1 0" euler="0 10 0">
        <joint name="x" type="hinge" axis="1 0 0" pos="0 0 .1" range="-10 20" ref="5" stiffness="3" springref="2"/>
        <joint name="z" type="slide" axis="0 0 1" armature=".1"/>
        <geom type="capsule" fromto="0 0 0 0 0 1" size=".1"/>
        <body name="lower" pos="0 0 1">
          <joint name="ball" type="ball" pos="0 .1 0" range="0 50"/>
          <geom type="mesh" mesh="tet"/>
          <site name="tip" pos="0 0 1"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="x" gear="3"/></actuator>
  <equality><connect body1="base" body2="lower" anchor="0 0 0"/></equality>
  <tendon><fixed name="t"><joint joint="x" coef="1"/></fixed></tendon>
  <sensor><jointpos joint="z"/></sensor>
  <keyframe><key qpos="0 0 1 1 0 0 0 0 0 1 0 0 0"/></keyframe>
</mujoco>
"""


def survives(path) -> bool:
    """Whether the file loads; any error must be ours and name the file."""
    bk.forward_dynamics(bk.models.chain(1), [0.0], [0.0])   # compiling is not the file's fault
    start = time.thread_time()   # nor is a busy machine
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mechanism = load_mjcf(path)
            if mechanism.nv:
                with contextlib.suppress(BunrakuError):
                    bk.forward_dynamics(mechanism, mechanism.neutral(), np.zeros(mechanism.nv))
        said = None
    except LoadError as error:
        said = str(error)
    assert said is None or (path.name in said and len(said) < 2000)
    assert time.thread_time() - start < PATIENCE
    return said is None


def test_the_file_that_is_spoilt_is_good(tmp_path):
    path = tmp_path / "good.xml"
    path.write_text(GOOD)
    assert survives(path)


def test_truncated_files_are_refused(tmp_path):
    path = tmp_path / "short.xml"
    for cut in range(0, len(GOOD.rstrip()), 23):
        path.write_text(GOOD[:cut])
        assert not survives(path), cut


def test_flipped_bytes_are_refused_or_harmless(tmp_path):
    path, rng = tmp_path / "flipped.xml", np.random.default_rng(1)
    for _ in range(150):
        data = bytearray(GOOD, "utf-8")
        for where in rng.integers(0, len(data), rng.integers(1, 6)):
            data[where] = rng.integers(0, 256)
        path.write_bytes(bytes(data))
        survives(path)


ODD_VALUES = ["", "nan", "inf", "-inf", "1e999", "-1", "1e30", "-1e-30", "0", "0 0 0", "1 2 3 4 5 6 7 8 9", "a",
              "\u2603", "true", "x" * 5000, "&lt;&gt;", "%s%n%s%n", "../../../etc/passwd", "2147483648",
              "99999999999999999999", "free", "world", "ground"]


def test_odd_attribute_values_are_refused_or_harmless(tmp_path):
    """Every attribute of the file with every odd value, a random third of them."""
    path, rng = tmp_path / "odd.xml", np.random.default_rng(2)
    places = [m.span(1) for m in re.finditer(r'\w+="([^"]*)"', GOOD)][1:]
    assert len(places) > 60
    for start, stop in places:
        for value in rng.permutation(ODD_VALUES)[:8]:
            path.write_text(GOOD[:start] + str(value) + GOOD[stop:], "utf-8")
            survives(path)


def test_an_axis_that_is_not_finite_is_refused_by_name(tmp_path):
    path = tmp_path / "odd.xml"
    path.write_text('<mujoco><worldbody><body><joint name="knee" axis="inf 0.2 nan"/><geom size="1"/><body>'
                    '<joint name="ankle"/><geom size="1"/></body></body></worldbody></mujoco>')
    with pytest.raises(bk.LoadError, match=r"knee.*axis.*not finite"):
        bk.load(path)


def test_moved_and_repeated_elements_are_refused_or_harmless(tmp_path):
    path, rng = tmp_path / "moved.xml", np.random.default_rng(3)
    lines = GOOD.splitlines()
    for _ in range(150):
        shuffled = list(lines)
        for _ in range(rng.integers(1, 4)):
            line = shuffled.pop(rng.integers(2, len(shuffled) - 1))
            for _ in range(rng.integers(0, 3)):
                shuffled.insert(rng.integers(2, len(shuffled) - 1), line)
        path.write_text("\n".join(shuffled))
        survives(path)


BODY = '<body><joint/><geom size="1"/></body>'
BOMBS = {
    "entities": '<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {x} "{f"&{y};" * 10}">' for y, x in zip("abcdefgh", "bcdefghi", strict=True))
        + ']><mujoco model="&i;"/>',
    "external entity": '<!DOCTYPE m [<!ENTITY a SYSTEM "file:///etc/passwd">]><mujoco model="&a;"/>',
    "network": '<!DOCTYPE m SYSTEM "http://example.com/m.dtd"><mujoco/>',
    "deep": "<mujoco><worldbody>" + '<body><joint/><geom size="1"/>' * 5000 + "</body>" * 5000
            + "</worldbody></mujoco>",
    "wide": "<mujoco><worldbody>" + "<body/>" * 600_000 + "</worldbody></mujoco>",
    "replicate": f'<mujoco><worldbody><replicate count="1000000000">{BODY}</replicate></worldbody></mujoco>',
    "nested replicate": "<mujoco><worldbody>" + '<replicate count="100">' * 6 + BODY + "</replicate>" * 6
                        + "</worldbody></mujoco>",
    "composite": '<mujoco><worldbody><body><composite type="cable" count="99999999 1 1" size="1"><geom size="1"/>'
                 "</composite></body></worldbody></mujoco>",
    "flexcomp": '<mujoco><worldbody><flexcomp name="f" type="grid" count="9999 9999 9999" spacing="1 1 1" dim="3"/>'
                "</worldbody></mujoco>",
    "hfield": '<mujoco><asset><hfield name="h" nrow="2000000" ncol="2000000" size="1 1 1 1"/></asset></mujoco>',
    "user data": f'<mujoco><size nuser_body="2000000000"/><worldbody>{BODY}</worldbody></mujoco>',
    "sphere": '<mujoco><asset><mesh name="m" builtin="sphere" params="1000000"/></asset></mujoco>',
    "numeric": '<mujoco><custom><numeric name="n" size="2000000000"/></custom></mujoco>',
    "include itself": '<mujoco><include file="bomb.xml"/></mujoco>',
    "include a device": '<mujoco><include file="/dev/zero"/></mujoco>',
    "include a secret": '<mujoco><include file="../../../../../../../etc/passwd"/></mujoco>',
    "include nothing": '<mujoco><include file="nothing.xml"/></mujoco>',
    "include a folder": '<mujoco><include file="."/></mujoco>',
    "attach itself": '<mujoco><asset><model name="m" file="bomb.xml"/></asset><worldbody><attach model="m" body="b" '
                     'prefix="p"/></worldbody></mujoco>',
    "mesh from a device": '<mujoco><asset><mesh name="m" file="/dev/zero"/></asset></mujoco>',
    "mesh from a pipe": '<mujoco><asset><mesh name="m" file="pipe.stl"/></asset></mujoco>',
    "mesh from the network": '<mujoco><asset><mesh name="m" file="http://example.com/m.stl"/></asset><worldbody><body>'
                             '<joint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>',
    "plugin": '<mujoco><extension><plugin plugin="mujoco.evil"/></extension></mujoco>',
    "open comments": "<mujoco>" + "<!--" * 2_000_000,
    "many attributes": "<mujoco " + " ".join(f'a{k}="1"' for k in range(300_000)) + "/>",
    "long attribute": '<mujoco><worldbody><body><joint axis="' + "1 " * 5_000_000 + '"/></body></worldbody></mujoco>',
    "long name": '<mujoco><worldbody><body name="' + "x" * 10_000_000 + '"><joint/></body></worldbody></mujoco>',
    "long text": "<mujoco>" + "x" * 20_000_000 + "</mujoko>",
    "long tag": "<" + "x" * 10_000_000 + "/>",
    "many classes": "<mujoco><default>" + "".join(f'<default class="c{k}"/>' for k in range(30_000))
                    + "</default><a/></mujoco>",
    "two roots": "<mujoco/><mujoco/>",
    "URDF": '<robot name="r"><link name="a"/></robot>',
    "empty": "",
    "not XML": "MUJOCO " * 100,
    "NUL": "<mujoco\0/>",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_are_refused_at_once(tmp_path, bomb):
    os.mkfifo(tmp_path / "pipe.stl")
    path = tmp_path / "bomb.xml"
    path.write_text(BOMBS[bomb])
    assert not survives(path)


@pytest.mark.parametrize("data", [
    b"\xff\xfe<\0m\0", b"<mujoco model='\xe4'/>", bytes(range(256)) * 40, b"\0" * 10000, b"PK\x03\x04" * 99,
    b'<?xml version="1.0" encoding="latin-1"?><mujoco model="\xe4"/>'])
def test_bytes_that_are_no_text_are_refused(tmp_path, data):
    path = tmp_path / "bytes.xml"
    path.write_bytes(data)
    assert not survives(path)


def test_huge_sizes_that_cost_nothing_are_set_aside(tmp_path):
    path = tmp_path / "stack.xml"
    path.write_text(f'<mujoco><size memory="900G"/><worldbody>{BODY}</worldbody></mujoco>')
    assert survives(path)


def test_paths_that_are_no_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.xml")
    for path in (tmp_path, tmp_path / "missing.xml", tmp_path / "pipe.xml", "nul\0.xml", "", tmp_path / ("x" * 5000)):
        with pytest.raises(LoadError):
            load_mjcf(path)
    with pytest.raises(LoadError):
        load_mjcf(3)


def test_large_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(prescan, "MAX_BYTES", 10_000)
    path = tmp_path / "large.xml"
    path.write_text("<mujoco>" + " " * 20_000 + "</mujoco>")
    assert not survives(path)


@pytest.mark.parametrize(("content", "told"), [
    ('<mujoco>\n<worldbody>\n<body name="one">\n<joint type="wheel"/>\n</body></worldbody></mujoco>',
     r"model\.xml: element 'joint', line 4: MuJoCo says: invalid keyword: 'wheel'"),
    ('<mujoco>\n<worldbody>\n<body name="one">\n<joint/>\n</body></worldbody></mujoco>',
     r"model\.xml: (element 'one', line 3|model): MuJoCo says: mass and inertia"),
    ('<mujoco>\n<asset>\n<mesh name="m" file="lost.stl"/></asset></mujoco>',
     r"model\.xml, <mesh>, line 3: MuJoCo says: .*lost.stl"),
    ("<mujoco>\n<worldbody>\n</mujoco>", r"model\.xml, line 3: is not XML: mismatched tag"),
    ('<mujoco>\n<!-- -- dashes -- -->\n<include file="/etc/passwd"/></mujoco>',
     r"model\.xml, <include>, line 3: '/etc/passwd' lies outside"),
])
def test_errors_say_where(tmp_path, content, told):
    path = tmp_path / "model.xml"
    path.write_text(content)
    with pytest.raises(LoadError, match=told):
        load_mjcf(path)
