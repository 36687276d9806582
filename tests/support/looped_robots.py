"""Robots with loops as MJCF: a Delta robot, and Cassie from the facts of its SDF file (gears and rods included)."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

from robots import FOLDER

CASSIE = FOLDER / "cassie_description/robots/cassie.sdf" if FOLDER else Path("missing")


def delta(base=0.2, plate=0.05, arm=0.3, forearm=0.8, height=-0.6) -> str:
    """Three driven arms, each with two parallel rods to a plate, which therefore does not turn."""
    out_of_line = arm + base - plate
    drop = np.sqrt(forearm**2 - out_of_line**2)
    bodies, ties, motors = [], [], []
    for k in range(3):
        turn = 120 * k
        rods = "".join(
            f"""<body name="rod{k}{side}" pos="{arm} {y} 0"><joint name="u{k}{side}" axis="0 1 0"/>
              <joint name="w{k}{side}" axis="1 0 0"/><inertial pos="{-out_of_line / 2} 0 {-drop / 2}" mass="0.05"
              diaginertia=".003 .003 .003"/></body>""" for side, y in (("l", 0.04), ("r", -0.04)))
        bodies.append(f"""<body name="hip{k}" euler="0 0 {turn}"><body name="arm{k}" pos="{base} 0 0">
            <joint name="drive{k}" axis="0 1 0"/><inertial pos="{arm / 2} 0 0" mass="0.3" diaginertia=".003 .003 .003"/>
            {rods}</body><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body>""")
        c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
        for side, y in (("l", 0.04), ("r", -0.04)):
            ties.append(f'<connect name="ball{k}{side}" body1="plate" body2="rod{k}{side}" '
                        f'anchor="{c * plate - s * y} {s * plate + c * y} 0"/>')
        motors.append(f'<motor joint="drive{k}"/>')
    return f"""<mujoco model="delta"><worldbody>{"".join(bodies)}<body name="plate" pos="0 0 {-drop}"><freejoint/>
        <inertial pos="0 0 0" mass="0.4" diaginertia=".001 .001 .002"/></body></worldbody>
        <equality>{"".join(ties)}</equality><actuator>{"".join(motors)}</actuator></mujoco>"""


def numbers(node, what, count):
    found = node.find(what) if node is not None else None
    return np.zeros(count) if found is None else np.array(found.text.split(), float)


def placed(pose):
    """(R, x) of a pose x y z roll pitch yaw."""
    x, (a, b, c) = pose[:3], pose[3:]
    ca, sa, cb, sb, cc, sc = np.cos(a), np.sin(a), np.cos(b), np.sin(b), np.cos(c), np.sin(c)
    return np.array([[cc * cb, cc * sb * sa - sc * ca, cc * sb * ca + sc * sa],
                     [sc * cb, sc * sb * sa + cc * ca, sc * sb * ca - cc * sa], [-sb, cb * sa, cb * ca]]), x


def spaced(values):
    return " ".join(f"{x:.15g}" for x in values)


def cassie() -> str:
    """The model of the SDF: the first joint of each link is in the tree, further revolute and ball joints hold points
    together, gearboxes couple. Axes are in the model's frame, tree joints at the origins of their child links."""
    model = ET.parse(CASSIE).getroot().find("model")
    links = {link.get("name"): link for link in model.findall("link")}
    pose = {name: placed(numbers(link, "pose", 6)) for name, link in links.items()}
    hung, children, ties = {}, {}, []
    for joint in model.findall("joint"):
        kind, parent, child = joint.get("type"), joint.find("parent").text, joint.find("child").text
        if kind == "gearbox":
            ratio = float(joint.find("gearbox_ratio").text)
            drive = hung[parent].get("name")
            output = next(other.get("name") for other in model.findall("joint") if other.get("type") == "revolute"
                          and other.find("child").text == child)
            ties.append(f'<joint name="{joint.get("name")}" joint1="{output}" joint2="{drive}" '
                        f'polycoef="0 {ratio} 0 0 0"/>')
        elif child in hung:
            if kind in ("ball", "revolute"):
                R, x = pose[parent]
                R_child, x_child = pose[child]
                anchor = R.T @ (x_child + R_child @ numbers(joint, "pose", 6)[:3] - x)
                ties.append(f'<connect name="{joint.get("name")}" body1="{parent}" body2="{child}" '
                            f'anchor="{spaced(anchor)}"/>')
        else:
            hung[child] = joint
            children.setdefault(parent, []).append(child)

    def body(name, above):
        R, x = pose[name]
        R_above, x_above = (np.eye(3), np.zeros(3)) if above is None else pose[above]
        turn, inertial, joint = R_above.T @ R, links[name].find("inertial"), hung.get(name)
        R_com, com = placed(numbers(inertial, "pose", 6))
        xx, yy, zz, xy, xz, yz = (float(inertial.find(f"inertia/i{k}").text) for k in ("xx", "yy", "zz", "xy", "xz",
                                                                                      "yz"))
        inertia = R_com @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R_com.T
        full = spaced(inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]])
        if joint is None:
            how = "<freejoint/>"
        elif joint.get("type") == "ball":
            how = f'<joint name="{joint.get("name")}" type="ball"/>'
        else:
            axis = R.T @ numbers(joint, "axis/xyz", 3)
            stiffness, damping = (joint.find(f"axis/dynamics/{k}") for k in ("spring_stiffness", "damping"))
            how = (f'<joint name="{joint.get("name")}" axis="{spaced(axis)}" '
                   f'stiffness="{0 if stiffness is None else stiffness.text}" '
                   f'damping="{0 if damping is None else damping.text}"/>')
        inside = "".join(body(child, name) for child in children.get(name, ()))
        return (f'<body name="{name}" pos="{spaced(R_above.T @ (x - x_above))}" xyaxes="{spaced(turn[:, 0])} '
                f'{spaced(turn[:, 1])}">{how}<inertial pos="{spaced(com)}" '
                f'mass="{inertial.find("mass").text}" fullinertia="{full}"/>{inside}</body>')

    return (f'<mujoco model="cassie"><compiler balanceinertia="true" angle="radian"/><worldbody>{body("pelvis", None)}'
            f'</worldbody><equality>{"".join(ties)}</equality></mujoco>')
