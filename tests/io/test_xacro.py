"""Xacro files: macros, arguments and includes are expanded; errors name the file."""

import pytest

import bunraku as bk

pytest.importorskip("xacrodoc")

ARM = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:include filename="mass.xacro"/><xacro:arg name="count" default="2"/>
<xacro:macro name="segment" params="k"><link name="l${k}"><xacro:mass value="${0.5 * k + 1}"/></link>
<xacro:if value="${k > 0}"><joint name="j${k}" type="continuous"><parent link="l${k - 1}"/><child link="l${k}"/>
<origin xyz="0 0 ${0.1 * k}"/><axis xyz="0 1 0"/></joint><xacro:segment k="${k - 1}"/></xacro:if></xacro:macro>
<xacro:segment k="$(arg count)"/></robot>"""
MASS = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:macro name="mass" params="value"><inertial>
<mass value="${value}"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></xacro:macro>
</robot>"""


def test_macros_and_arguments_are_expanded(tmp_path):
    (tmp_path / "mass.xacro").write_text(MASS)
    path = tmp_path / "arm.urdf.xacro"
    path.write_text(ARM)
    m = bk.load(path, base="fixed", strict=True)
    assert sorted(m.link_names) == ["l0", "l1", "l2"]
    assert m.link("l2").mass == 2.0
    longer = bk.load(path, base="fixed", strict=True, arguments={"count": 4})
    assert longer.nv == 4
    assert abs(longer.link("l4").position[2] - 0.4) < 1e-15


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "arm.xacro"
    path.write_text(ARM.replace("${0.5 * k + 1}", "${nothing}"))
    (tmp_path / "mass.xacro").write_text(MASS)
    with pytest.raises(bk.LoadError, match=r"arm\.xacro: xacro says: .*nothing"):
        bk.load(path)
    with pytest.raises(bk.ModelError, match="arguments are for"):
        bk.load(tmp_path / "arm.urdf", arguments={})
