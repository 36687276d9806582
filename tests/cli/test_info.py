"""`bunraku info`: the tree as text and as JSON."""

from __future__ import annotations

import io
import json
import sys

import pytest

import bunraku as bk
from bunraku import cli
from bunraku.cli import info

ROBOT = """<robot name="crane">
  <link name="tower"><inertial><mass value="5"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <link name="jib"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="5"/></inertial></link>
  <link name="lamp"/>
  <link name="hook"><inertial><mass value="0.5"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <joint name="slew" type="revolute"><parent link="tower"/><child link="jib"/><axis xyz="0 0 -1"/>
    <limit lower="-1.5" upper="2"/></joint>
  <joint name="screwed" type="fixed"><parent link="jib"/><child link="lamp"/></joint>
  <joint name="lift" type="prismatic"><parent link="jib"/><child link="hook"/><axis xyz="0 0.6 0.8"/>
    <limit lower="0" upper="3"/></joint>
</robot>
"""


@pytest.fixture
def crane(tmp_path):
    path = tmp_path / "crane.urdf"
    path.write_text(ROBOT)
    return str(path)


def call(*arguments) -> int:
    return cli.main(["info", *arguments])


def test_the_tree_is_shown_with_limits_masses_and_warnings(crane, capsys):
    assert call(crane, "--base", "fixed") == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "crane",
        "  4 links on 2 moving joints and 2 fixed joints, 0 visuals",
        "  2 degrees of freedom (nq 2, nv 2)",
        "  7.5 kg, gravity (0, 0, -9.81) m/s^2",
        "",
        "link      joint    type                     v  limits                  kg",
        "─────────────────────────────────────────────────────────────────────────",
        "tower     root     fixed                                            5.000",
        "└ jib     slew     revolute  -z             0  -1.500 .. 2.000 rad  2.000",
        "  ├ lamp  screwed  fixed                                                ·",
        "  └ hook  lift     prismatic (0, 0.6, 0.8)  1   0.000 .. 3.000 m    0.500",
        "",
        "warnings (1)",
        "  crane.urdf: link 'jib', line 3: principal moments 1, 1, 5 kg m^2 violate the triangle inequality (no body "
        "has one larger than the sum of the others)",
    ]


def test_moving_leaves_out_what_does_not_move(crane, capsys):
    assert call(crane, "--base", "fixed", "--moving") == 0
    out = capsys.readouterr().out
    assert "lamp" not in out
    assert "tower" not in out
    assert "└ hook" in out


def test_json_has_the_numbers_of_the_tree(crane, capsys):
    assert call(crane, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["name"], data["nq"], data["nv"], data["mass"]) == ("crane", 9, 8, 7.5)
    assert [link["name"] for link in data["links"]] == ["tower", "jib", "lamp", "hook"]
    slew = data["links"][1]["joint"]
    assert (slew["name"], slew["type"], slew["axis"], slew["v"]) == ("slew", "Revolute", [0, 0, -1], [6])
    assert (slew["lower"], slew["upper"]) == ([-1.5], [2])
    assert data["links"][0]["joint"]["lower"] == [None] * 6
    assert len(data["warnings"]) == 1


def test_missing_files_and_strict_warnings_are_errors(crane, tmp_path, capsys):
    assert call(str(tmp_path / "none.urdf")) == 1
    assert "none.urdf: there is no such file" in capsys.readouterr().err
    assert call(crane, "--strict") == 1
    assert "link 'jib', line 3" in capsys.readouterr().err


def test_a_terminal_without_line_drawing_gets_plain_letters(crane, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert call(crane) == 0
    sys.stdout.flush()
    assert b"` jib" in raw.getvalue()


def test_every_joint_can_be_shown():
    mechanism = bk.Mechanism()
    joints = [bk.Free(), bk.Spherical(), bk.Cylindrical((0, 0, 1), lower=[0, -1], upper=1), bk.Planar((0, 1, 0)),
              bk.Helical((1, 0, 0), 0.1), bk.Compound(bk.Revolute((1, 0, 0), lower=-1), bk.Prismatic((0, 0, -1))),
              bk.Fixed()]
    parent = "ground"
    for k, joint in enumerate(joints):
        parent = mechanism.add_link(f"link{k}", parent, joint, mass=1).name
    mechanism.add_spring("link0", "link3", stiffness=10, name="band")
    shown = info.text(mechanism, [])
    for part in ("free", "spherical", "0.000..1.000, -1.000..1.000", "planar     y", "helical    x, pitch 0.1",
                 "revolute x + prismatic -z", "-1.000..∞, -∞..∞", "band: link0 - link3, 10 N/m"):
        assert part in shown
    json.dumps(info.summary(mechanism, "none", []))
    empty = bk.Mechanism()
    empty.add_link("rock")
    assert info.text(empty, [], moving_only=True).startswith("mechanism\n  1 link on 0 moving joints")


def test_long_chains_do_not_run_off_the_screen():
    mechanism = bk.Mechanism()
    for k in range(200):
        mechanism.add_link(f"link{k}", f"link{k - 1}" if k else "ground", bk.Revolute((0, 0, 1)), mass=1)
    assert max(map(len, info.text(mechanism, []).splitlines())) < 120


def test_mobility_is_what_loops_leave_of_the_joints_degrees_of_freedom():
    m = bk.models.four_bar()
    lines = info.text(m, [], False).splitlines()
    assert "  3 degrees of freedom (nq 3, nv 3)" in lines
    assert "  4 joint degrees of freedom with those of 1 connection; mobility 1 at the neutral position" in lines
    found = info.summary(m, "four_bar", [])
    assert (found["nv"], found["nc"], found["mobility"]) == (3, 1, 1)
    m.cut(next(iter(m.connections)))
    found = info.summary(m, "open", [])
    assert (found["nv"], found["nc"], found["mobility"]) == (3, 0, 3)
