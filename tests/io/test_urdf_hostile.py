"""Broken and hostile model files: a bunraku error that names the file, never another exception, never a hang."""

from __future__ import annotations

import os
import random
import time
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bunraku as bk
from bunraku.io import xml

GOOD = """<?xml version="1.0" encoding="utf-8"?>
<robot name="arm">
  <material name="steel"><color rgba="0.5 0.5 0.6 1"/></material>
  <link name="base">
    <inertial><origin xyz="0 0 0.1" rpy="0 0 0.3"/><mass value="3"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.01"/></inertial>
    <visual><origin xyz="0 0 0.1"/><geometry><cylinder radius="0.1" length="0.2"/></geometry>
      <material name="steel"/></visual>
  </link>
  <link name="upper">
    <inertial><origin xyz="0 0 0.2"/><mass value="2"/>
      <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.001"/></inertial>
    <visual><geometry><box size="0.1 0.1 0.4"/></geometry></visual>
  </link>
  <link name="lower"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial></link>
  <link name="tool"/>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/><origin xyz="0 0 0.2" rpy="0 0.5 0"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="10" velocity="1"/><dynamics damping="0.1" friction="0"/>
  </joint>
  <joint name="elbow" type="prismatic">
    <parent link="upper"/><child link="lower"/><origin xyz="0 0 0.4"/><axis xyz="0 0 1"/><limit lower="0" upper="1"/>
  </joint>
  <joint name="mount" type="fixed"><parent link="lower"/><child link="tool"/></joint>
</robot>
"""

LINK = "<link name='a'>{}</link>"
PAIR = "<link name='a'/><link name='b'/><joint name='j' type='revolute'>{}</joint>"
ENDS = "<parent link='a'/><child link='b'/>"
MASS = "<mass value='1'/>"
INERTIA = "<inertia ixx='1' iyy='1' izz='1'/>"


def robot(inside: str) -> str:
    return f"<robot name='r'>\n{inside}\n</robot>"


BOMB = ("<!DOCTYPE robot [<!ENTITY a 'aaaaaaaaaa'>" + "".join(
    f"<!ENTITY {chr(98 + k)} '{f'&{chr(97 + k)};' * 10}'>" for k in range(9)) + "]><robot name='&j;'/>")

WRONG = {
    # not XML, or not only XML
    "empty": "", "blank": " \n\t ", "text": "hello", "binary": b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 20,
    "zeros": bytes(1000), "nul inside": b"<robot name='r'>\x00</robot>", "json": '{"robot": []}',
    "unclosed": "<robot name='r'><link name='a'>", "crossed": "<robot name='r'><a><b></a></b></robot>",
    "two documents": "<robot name='r'/><robot name='r'/>", "twice the attribute": "<robot name='r' name='s'/>",
    "unknown entity": "<robot name='&what;'/>", "bad character": "<robot name='\x01'/>",
    "latin-1 called utf-8": "<?xml version='1.0' encoding='utf-8'?><robot name='é'/>".encode("latin-1"),
    "unknown encoding": "<?xml version='1.0' encoding='klingon'?><robot name='r'/>",
    "no text encoding": "<?xml version='1.0' encoding='rot13'?><robot name='r'/>",
    "wide encoding": "<?xml version='1.0' encoding='utf-32'?><robot name='r'/>",
    "half of utf-16": "<robot name='r'/>".encode("utf-16")[:-1], "only a mark": b"\xef\xbb\xbf",
    # attacks
    "billion laughs": BOMB, "quadratic": f"<!DOCTYPE r [<!ENTITY a '{'a' * 100000}'>]><robot name='{'&a;' * 1000}'/>",
    "read a file": "<!DOCTYPE r [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><robot name='r'>&a;</robot>",
    "fetch a page": "<!DOCTYPE r SYSTEM 'http://localhost:1/x.dtd'><robot name='r'/>",
    "parameter entity": "<!DOCTYPE r [<!ENTITY % a SYSTEM 'http://localhost:1/'>%a;]><robot name='r'/>",
    "deep": "<robot name='r'>" + "<a>" * 100_000, "deep and closed": "<a>" * 50_000 + "</a>" * 50_000,
    "many elements": "<robot name='r'>" + "<a/>" * (xml.MAX_ELEMENTS + 1) + "</robot>",
    "long name": robot(f"<link name='{'x' * 1_000_000}'/>"), "long tag": f"<{'x' * 1_000_000}/>",
    "long number": robot(LINK.format(f"<inertial><mass value='{'9' * 1_000_000}'/></inertial>")),
    "many numbers": robot(PAIR.format(ENDS + f"<axis xyz='{'1 ' * 1_000_000}'/>")),
    "many attributes": "<robot " + " ".join(f"a{k}='1'" for k in range(50_000)) + "/>",
    # not a robot
    "other root": "<mujoco/>", "namespace": "<x:robot xmlns:x='y'/>", "no links": robot(""),
    "xacro": robot("<xacro:macro name='m'/><link name='a'/>"),
    "xacro in a link": robot(LINK.format("<xacro:body/>")),
    # names
    "link without name": robot("<link/>"), "link with empty name": robot("<link name=' '/>"),
    "same link twice": robot("<link name='a'/><link name='a'/>"),
    "joint without name": robot("<link name='a'/><link name='b'/><joint type='fixed'>" + ENDS + "</joint>"),
    "same joint twice": robot("<link name='a'/><link name='b'/><link name='c'/>" + "".join(
        f"<joint name='j' type='fixed'><parent link='a'/><child link='{c}'/></joint>" for c in "bc")),
    # trees
    "no parent": robot(PAIR.format("<child link='b'/>")), "no child": robot(PAIR.format("<parent link='a'/>")),
    "two parents in one": robot(PAIR.format(ENDS + "<parent link='b'/>")),
    "unknown parent": robot(PAIR.format("<parent link='x'/><child link='b'/>")),
    "unknown child": robot(PAIR.format("<parent link='a'/><child link='x'/>")),
    "parent without link": robot(PAIR.format("<parent/><child link='b'/>")),
    "its own child": robot(PAIR.format("<parent link='a'/><child link='a'/>")),
    "two roots": robot("<link name='a'/><link name='b'/>"),
    "cycle": robot("".join(f"<link name='{n}'/>" for n in "abc") + "".join(
        f"<joint name='{a}{b}' type='fixed'><parent link='{a}'/><child link='{b}'/></joint>"
        for a, b in ("ab", "bc", "ca"))),
    "cycle beside a root": robot("".join(f"<link name='{n}'/>" for n in "abc") + "".join(
        f"<joint name='{a}{b}' type='fixed'><parent link='{a}'/><child link='{b}'/></joint>" for a, b in ("bc", "cb"))),
    "two parents": robot("".join(f"<link name='{n}'/>" for n in "abc") + "".join(
        f"<joint name='{a}{b}' type='fixed'><parent link='{a}'/><child link='{b}'/></joint>" for a, b in ("ac", "bc"))),
    # joints
    "no type": robot("<link name='a'/><link name='b'/><joint name='j'>" + ENDS + "</joint>"),
    "unknown type": robot(PAIR.replace("revolute", "wobbly").format(ENDS)),
    "zero axis": robot(PAIR.format(ENDS + "<axis xyz='0 0 0'/>")),
    "short axis": robot(PAIR.format(ENDS + "<axis xyz='0 1'/>")),
    "long axis": robot(PAIR.format(ENDS + "<axis xyz='0 1 0 0'/>")),
    "two axes": robot(PAIR.format(ENDS + "<axis xyz='0 0 1'/><axis xyz='0 0 1'/>")),
    "negative damping": robot(PAIR.format(ENDS + "<dynamics damping='-1'/>")),
    "limit nan": robot(PAIR.format(ENDS + "<limit lower='nan' upper='1'/>")),
    # bodies
    "no mass": robot(LINK.format(f"<inertial>{INERTIA}</inertial>")),
    "negative mass": robot(LINK.format(f"<inertial><mass value='-1'/>{INERTIA}</inertial>")),
    "mass without value": robot(LINK.format(f"<inertial><mass/>{INERTIA}</inertial>")),
    "no moment": robot(LINK.format(f"<inertial>{MASS}<inertia ixx='1' iyy='1'/></inertial>")),
    "two inertials": robot(LINK.format(f"<inertial>{MASS}{INERTIA}</inertial>" * 2)),
    "bad colour": robot(LINK.format("<visual><geometry><sphere radius='1'/></geometry><material name='m'>"
                                    "<color rgba='red'/></material></visual>")),
    "mesh without file": robot(LINK.format("<visual><geometry><mesh/></geometry></visual>")),
    "sphere without radius": robot(LINK.format("<visual><geometry><sphere/></geometry></visual>")),
}

NO_NUMBERS = ["", "x", "1,5", "nan", "NaN", "inf", "-inf", "1e999", "1e400", "1_0", "0x10", "1 2", "--1", "1e", "½",
              "None", "1e60", "$(arg x)", "${pi}"]

PLACES = {
    "mass": robot(LINK.format("<inertial><mass value='{}'/>" + INERTIA + "</inertial>")),
    "moment": robot(LINK.format("<inertial>" + MASS + "<inertia ixx='{}' iyy='1' izz='1'/></inertial>")),
    "product": robot(LINK.format("<inertial>" + MASS + "<inertia ixx='1' iyy='1' izz='1' ixy='{}'/></inertial>")),
    "centre": robot(LINK.format("<inertial>" + MASS + INERTIA + "<origin xyz='0 {} 0'/></inertial>")),
    "turn": robot(PAIR.format(ENDS + "<origin rpy='0 0 {}'/>")),
    "place": robot(PAIR.format(ENDS + "<origin xyz='0 {} 0'/>")),
    "axis": robot(PAIR.format(ENDS + "<axis xyz='{} 0 1'/>")),
    "damping": robot(PAIR.format(ENDS + "<dynamics damping='{}'/>")),
    "radius": robot(LINK.format("<visual><geometry><sphere radius='{}'/></geometry></visual>")),
}


def attempt(path) -> Exception | None:
    """Load the file; the bunraku error, or None if it loads. Anything else fails the test."""
    start = time.thread_time()  # not the clock on the wall: the machine may be busy
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", bk.LoadWarning)
            bk.load(path)
        error = None
    except bk.BunrakuError as caught:
        error = caught
    assert time.thread_time() - start < 1.0, "took too long"
    if error is not None:
        assert path.name in str(error)
        assert len(str(error)) < 2000
    return error


def write(folder, content, name="hostile.urdf"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_the_good_file_is_good(tmp_path):
    assert bk.load(write(tmp_path, GOOD), strict=True).nv == 8


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files_are_refused(name, tmp_path):
    error = attempt(write(tmp_path, WRONG[name]))
    assert isinstance(error, bk.LoadError)


@pytest.mark.parametrize("name", [n for n in WRONG if n not in ("other root", "namespace")])
def test_wrong_files_called_xml_are_refused_too(name, tmp_path):
    if b"<robot" in (WRONG[name] if isinstance(WRONG[name], bytes) else WRONG[name].encode()):
        assert isinstance(attempt(write(tmp_path, WRONG[name], "hostile.xml")), bk.LoadError)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("number", NO_NUMBERS)
def test_what_is_no_number_is_refused_with_its_line(place, number, tmp_path):
    error = attempt(write(tmp_path, PLACES[place].replace("{}", number)))
    assert isinstance(error, bk.LoadError)
    assert ", line " in str(error)


def test_errors_say_element_and_line(tmp_path):
    text = GOOD.replace('<mass value="2"/>', '<mass value="two"/>')
    with pytest.raises(bk.LoadError, match=r"hostile\.urdf: <mass>, line 11: value has 'two' where a finite number"):
        bk.load(write(tmp_path, text))
    text = GOOD.replace('<parent link="upper"/>', '<parent link="uper"/>')
    with pytest.raises(bk.LoadError, match=r"joint 'elbow', line 21: its parent link 'uper' does not exist; did "
                                           r"you mean 'upper'\?"):
        bk.load(write(tmp_path, text))
    with pytest.raises(bk.LoadError, match=r"line 16: not well-formed XML inside robot 'arm', line 2: mismatched"):
        bk.load(write(tmp_path, GOOD.replace('<link name="tool"/>', "</link>")))


def test_countless_oddities_are_counted(tmp_path):
    """A file cannot flood its reader with warnings."""
    with pytest.warns(bk.LoadWarning) as caught:
        bk.load(write(tmp_path, robot(LINK.format("") + "".join(f"<x{k}/>" for k in range(5000)))))
    assert len(caught) <= 201
    assert "more oddities" in str(caught[-1].message)


def test_what_is_not_a_file_is_refused(tmp_path):
    folder = tmp_path / "folder.urdf"
    folder.mkdir()
    assert isinstance(attempt(folder), bk.LoadError)
    assert isinstance(attempt(tmp_path / "missing.urdf"), bk.LoadError)
    (tmp_path / "dangling.urdf").symlink_to(tmp_path / "nowhere")
    assert isinstance(attempt(tmp_path / "dangling.urdf"), bk.LoadError)
    (tmp_path / "circle.urdf").symlink_to(tmp_path / "circle.urdf")
    assert isinstance(attempt(tmp_path / "circle.urdf"), bk.LoadError)
    with pytest.raises(bk.LoadError, match="cannot be read"):
        bk.load(tmp_path / "a\0b.urdf")
    with pytest.raises(bk.LoadError, match="cannot be read"):
        bk.load(tmp_path / ("x" * 1000 + ".urdf"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe.urdf")
    assert isinstance(attempt(tmp_path / "pipe.urdf"), bk.LoadError)


def test_large_files_are_not_read(tmp_path):
    path = tmp_path / "large.urdf"
    with open(path, "wb") as file:
        file.truncate(xml.MAX_BYTES + 1)
    assert isinstance(attempt(path), bk.LoadError)


def test_a_large_but_honest_file_loads(tmp_path):
    """A chain of 2000 links: no recursion anywhere."""
    body = "<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1'/></inertial>"
    links = "".join(f"<link name='l{k}'>{body}</link>" for k in range(2000))
    joints = "".join(f"<joint name='j{k}' type='continuous'><parent link='l{k}'/><child link='l{k + 1}'/></joint>"
                     for k in range(1999))
    assert bk.load(write(tmp_path, robot(links + joints))).nv == 6 + 1999


@pytest.mark.parametrize("cut", range(0, len(GOOD) - 10, 19))
def test_truncated_files_are_refused(cut, tmp_path):
    assert isinstance(attempt(write(tmp_path, GOOD[:cut])), bk.LoadError)


@pytest.mark.parametrize("seed", range(150))
def test_damaged_bytes_are_refused_or_harmless(seed, tmp_path):
    rng = random.Random(seed)
    data = bytearray(GOOD.encode())
    for _ in range(rng.choice([1, 2, 5, 20])):
        place = rng.randrange(len(data))
        match rng.randrange(3):
            case 0:
                data[place] = rng.randrange(256)
            case 1:
                del data[place:place + rng.randrange(1, 30)]
            case 2:
                other = rng.randrange(len(data))
                data[place:place] = data[other:other + rng.randrange(1, 200)]
    attempt(write(tmp_path, bytes(data)))


PIECES = GOOD.split('"')
JUNK = st.one_of(st.sampled_from(["", " ", "base", "upper", "nan", "-1", "0 0 0", "1e308 1e308 1e308", "1e-320",
                                  "fixed", "floating", "planar", "1e49", "-1e49 1e49 1e49", "package://../../x", "∞"]),
                 st.text(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters='<&"'), max_size=20),
                 st.floats().map(repr), st.integers().map(str))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, len(PIECES) // 2 - 1), JUNK), min_size=1, max_size=4))
def test_other_attribute_values_are_refused_or_harmless(tmp_path, changes):
    """Well-formed files with wrong contents."""
    pieces = list(PIECES)
    for k, value in changes:
        pieces[2 * k + 1] = value
    attempt(write(tmp_path, '"'.join(pieces)))


ELEMENTS = GOOD.splitlines()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_lines_dropped_doubled_and_moved_are_refused_or_harmless(tmp_path, data):
    lines = list(ELEMENTS)
    for _ in range(data.draw(st.integers(1, 4))):
        k, j = data.draw(st.integers(1, len(lines) - 1)), data.draw(st.integers(1, len(lines) - 1))
        match data.draw(st.sampled_from(["drop", "double", "move"])):
            case "drop":
                del lines[k]
            case "double":
                lines.insert(j, lines[k])
            case "move":
                lines.insert(j, lines.pop(k))
    attempt(write(tmp_path, "\n".join(lines)))
