"""A motion as a BVH file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.transform import Rotation

from bunraku.errors import ModelError
from bunraku.mechanism import Compound, Fixed, Free, Link, Prismatic, Revolute, Spherical

if TYPE_CHECKING:
    from bunraku.motion.motion import Motion

DIGITS = 8
POSITIONS, ROTATIONS = "Xposition Yposition Zposition", "Zrotation Yrotation Xrotation"


def write_bvh(motion: Motion, path) -> Path:
    """Figure and motion as text: metres, z up, degrees; three rotations in the order z, y, x. Last links end at
    twice the distance of their centre of mass; links on Fixed joints without children are end sites."""
    path, m = Path(path), motion.mechanism
    roots = [k for k, link in enumerate(m.links) if link.parent < 0]
    if len(roots) != 1:
        raise ModelError(f"{path.name}: a BVH has one root, but {len(roots)} links of {m.name} hang from the ground")
    children: list[list[int]] = [[] for _ in m.links]
    for k, link in enumerate(m.links):
        if link.parent >= 0:
            children[link.parent].append(k)
    lines: list[str] = ["HIERARCHY"]
    columns: list[np.ndarray] = []
    pending: list[tuple[int, int]] = [(roots[0], 0)]
    while pending:
        k, depth = pending.pop()
        pad = "\t" * depth
        if k < 0:
            lines.append(pad + "}")
            continue
        link = m.links[k]
        if isinstance(link.joint, Fixed) and not children[k] and depth:
            lines += _end(pad, link.position)
            continue
        channels, values = _channels(link, motion.q[:, m.q_slice(link.joint_name)], path)
        lines += [f"{pad}{'JOINT' if depth else 'ROOT'} {link.joint_name}", pad + "{",
                  f"{pad}\tOFFSET {_numbers(link.position)}", f"{pad}\tCHANNELS {len(channels)} {' '.join(channels)}"]
        columns += list(values)
        if not children[k]:
            lines += _end(pad + "\t", 2.0 * link.com)
        pending.append((-1, depth))
        pending += [(c, depth + 1) for c in reversed(children[k])]
    lines += ["MOTION", f"Frames: {len(motion.t)}", f"Frame Time: {1.0 / motion.rate:.10g}"]
    lines += [_numbers(row) for row in np.array(columns).T]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _channels(link: Link, q: np.ndarray, path: Path) -> tuple[list[str], np.ndarray]:
    """Names and values (channels, frames) of a joint's channels."""
    what = f"{path.name}: joint {link.joint_name!r}"
    if np.abs(link.rotation - np.eye(3)).max() > 1e-9:
        raise ModelError(f"{what} has a turned joint frame, which a BVH cannot say")
    joint = link.joint
    if isinstance(joint, (Free, Spherical)):
        angles = Rotation.from_quat(np.roll(q[:, -4:], -1, axis=1)).as_euler("ZYX", degrees=True).T
        if isinstance(joint, Spherical):
            return ROTATIONS.split(), np.unwrap(angles, period=360.0)
        places = q[:, :3].T + link.position[:, None]
        return (POSITIONS + " " + ROTATIONS).split(), np.concatenate([places, np.unwrap(angles, period=360.0)])
    screws = joint.screws if isinstance(joint, Compound) else () if isinstance(joint, Fixed) else (joint,)
    names, values = [], []
    for k, screw in enumerate(screws):
        axis = int(np.abs(getattr(screw, "axis", np.zeros(3))).argmax())
        if not isinstance(screw, (Revolute, Prismatic)) or abs(screw.axis[axis]) < 1.0 - 1e-9 or screw.at.any() or (
                isinstance(screw, Prismatic) and any(isinstance(before, Revolute) for before in screws[:k])):
            raise ModelError(f"{what}: {joint!r:.60} has no channels in a BVH, which knows slides and then turns along "
                             "x, y and z")
        sign, turns = np.sign(screw.axis[axis]), isinstance(screw, Revolute)
        names.append("XYZ"[axis] + ("rotation" if turns else "position"))
        values.append(sign * (np.degrees(q[:, k]) if turns else q[:, k]) + (0.0 if turns else link.position[axis]))
    return names, np.array(values).reshape(len(names), len(q))


def _end(pad: str, offset) -> list[str]:
    return [f"{pad}End Site", pad + "{", f"{pad}\tOFFSET {_numbers(offset)}", pad + "}"]


def _numbers(values) -> str:
    return " ".join(f"{x:.{DIGITS}g}" for x in values)
