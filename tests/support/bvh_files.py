"""Small BVH files in the styles of CMU, LAFAN1 and SOMA, and odd ones; motions are random."""

from __future__ import annotations

import numpy as np

ZYX = "Zrotation Yrotation Xrotation"
SIX = "Xposition Yposition Zposition " + ZYX


def text(tree, frames, frame_time="0.033333", indent="\t") -> str:
    """tree: (name, offset, channels, children); a child that is three numbers is an end site."""
    lines = ["HIERARCHY"]

    def write(node, depth, keyword):
        pad = indent * depth
        name, offset, channels, children = node
        place = " ".join(f"{x:.6f}" for x in offset)
        lines.extend([f"{pad}{keyword} {name}", pad + "{", f"{pad}{indent}OFFSET {place}"])
        if channels is not None:
            lines.append(f"{pad}{indent}CHANNELS {len(channels.split())} {channels}")
        for child in children:
            if isinstance(child[0], str):
                write(child, depth + 1, "JOINT")
            else:
                inner = pad + indent
                lines.extend([f"{inner}End Site", inner + "{", f"{inner}{indent}OFFSET " + " ".join(
                    f"{x:.6f}" for x in child), inner + "}"])
        lines.append(pad + "}")

    write(tree, 0, "ROOT")
    lines += ["MOTION", f"Frames: {len(frames)}", f"Frame Time: {frame_time}"]
    lines += [" ".join(f"{x:.6f}" for x in frame) for frame in frames]
    return "\n".join(lines) + "\n"


def channels_of(tree) -> list[tuple[str, str, np.ndarray]]:
    """(joint, channel, offset), in the order of the file."""
    name, offset, channels, children = tree
    found = [(name, channel, np.array(offset)) for channel in (channels or "").split()]
    return found + [x for child in children if isinstance(child[0], str) for x in channels_of(child)]


def motion(tree, count: int, at, reach: float, seed: int = 0, still=()) -> np.ndarray:
    """Random frames: the root near `at`, angles of any size; positions of other joints vary unless they are `still`."""
    rng = np.random.default_rng(seed)
    columns = []
    for name, channel, offset in channels_of(tree):
        axis = "XYZ".index(channel[0])
        if channel.endswith("rotation"):
            columns.append(rng.uniform(-170, 170, count) if name not in still else np.zeros(count))
        elif name == tree[0]:
            columns.append(at[axis] + reach * rng.standard_normal(count) * (name not in still))
        elif name in still:
            columns.append(np.full(count, offset[axis]))
        else:
            columns.append(offset[axis] + reach * rng.standard_normal(count))
    return np.round(np.array(columns).T, 6)


def limb(names, offsets, channels, end):
    """Joints one below the other."""
    node = end
    for name, offset in zip(reversed(names), reversed(offsets), strict=True):
        node = (name, offset, channels, [node])
    return node


def cmu(seed: int = 0) -> str:
    """Units of 1/0.45 inch, y up, a joint of no length at each hip, 120 frames a second."""
    def side(s, y):
        leg = limb([f"{s[0]}HipJoint", f"{s}UpLeg", f"{s}Leg", f"{s}Foot", f"{s}ToeBase"],
                   [(0, 0, 0), (y * 1.3, -1.8, 0.8), (y * 2.4, -6.7, 0), (y * 2.5, -6.9, 0), (y * 0.1, -0.3, 2.1)], ZYX,
                   (0.0, -0.0, 1.1))
        arm = limb([f"{s}Shoulder", f"{s}Arm", f"{s}ForeArm", f"{s}Hand", f"{s}FingerBase", f"{s}HandIndex1"],
                   [(0, 0, 0), (y * 3.3, 0.8, -0.1), (y * 4.9, 0, 0), (y * 3.4, 0, 0), (0, 0, 0), (y * 0.7, 0, 0)], ZYX,
                   (y * 0.56, 0.0, 0.0))
        return leg, arm
    (left, left_arm), (right, right_arm) = side("Left", 1.0), side("Right", -1.0)
    head = limb(["Neck", "Neck1", "Head"], [(0, 0, 0), (-0.1, 1.7, 0.2), (0, 1.7, -0.2)], ZYX, (0.0, 1.7, 0.0))
    spine = ("LowerBack", (0, 0, 0), ZYX, [("Spine", (0.0, 2.1, -0.1), ZYX, [
        ("Spine1", (0.0, 2.1, 0.0), ZYX, [head, left_arm, right_arm])])])
    tree = ("Hips", (0, 0, 0), SIX, [left, right, spine])
    frames = motion(tree, 5, (9.0, 17.0, -30.0), 1.0, seed)
    frames[:, 3:] *= 0.1  # nearly upright: the vertical is to be seen
    return text(tree, frames, ".0083333", "  ")


def lafan(seed: int = 0) -> str:
    """Centimetres, y up, every bone along its x axis, an offset of the root, 30 frames a second."""
    def leg(s, z):
        return limb([f"{s}UpLeg", f"{s}Leg", f"{s}Foot", f"{s}Toe"],
                    [(0.103456, 1.857827, z), (43.5, 0, 0), (42.372192, 0, 0), (17.299999, 0, 0)], ZYX, (0.0, 0.0, 0.0))
    def arm(s, z):
        return limb([f"{s}Shoulder", f"{s}Arm", f"{s}ForeArm", f"{s}Hand"],
                    [(11.692, -0.03, z), (11.692, 0, 0), (32.998, 0, 0), (25.79, 0, 0)], ZYX, (9.0, 0.0, 0.0))
    head = limb(["Neck", "Head"], [(25.706, 0, 0), (11.7, 0, 0)], ZYX, (18.0, 0.0, 0.0))
    spine = ("Spine", (6.901968, -2.603733, 0.000001), ZYX, [("Spine1", (12.588099, 0, 0), ZYX, [
        ("Spine2", (12.343206, 0, 0), ZYX, [head, arm("Left", 3.0), arm("Right", -3.0)])])])
    tree = ("Hips", (173.4, 91.9, -118.3), SIX, [leg("Left", 10.5), leg("Right", -10.5), spine])
    frames = motion(tree, 5, (173.4, 91.9, -118.3), 5.0, seed)
    frames[:, 3:] *= 0.1
    frames[:, 3:6] += (90.0, 0.0, 0.0)  # the trunk, along x at rest, upright
    names = [name for name, _, _ in channels_of(tree)]
    for s in ("LeftUpLeg", "RightUpLeg"):
        frames[:, names.index(s)] += 180.0
    return text(tree, frames, "0.033333")


def soma(seed: int = 0, moving_root: bool = False) -> str:
    """Centimetres, y up, a root above the hips, six channels at every joint; all but those of the hips never change."""
    def leg(s, x):
        return limb([f"{s}Leg", f"{s}Shin", f"{s}Foot", f"{s}ToeBase"],
                    [(x, -5.0, 0), (0, -43.0, 0.5), (0, -41.0, -1.0), (0, -6.0, 13.0)], SIX, (0.0, 0.0, 7.0))
    def arm(s, x):
        return limb([f"{s}Shoulder", f"{s}Arm", f"{s}ForeArm", f"{s}Hand"],
                    [(x * 0.2, 20, 0), (x, 0, 0), (2 * x, 0, 0), (1.8 * x, 0, 0)], SIX, (x, 0.0, 0.0))
    head = limb(["Neck1", "Head"], [(0, 24, 0), (0, 9, 1)], SIX, (0.0, 18.0, 0.0))
    spine = ("Spine1", (0, 9, 0), SIX, [("Chest", (0, 12, 0), SIX, [head, arm("Left", 13.0), arm("Right", -13.0)])])
    hips = ("Hips", (0.0, 95.0, 0.0), SIX, [spine, leg("Left", 9.0), leg("Right", -9.0)])
    tree = ("Root", (0.0, 0.0, 0.0), SIX, [hips])
    frames = motion(tree, 5, (0, 0, 0), 8.0, seed, still=() if moving_root else {"Root"})
    for k, (name, channel, offset) in enumerate(channels_of(tree)):
        if channel.endswith("position") and name not in ("Root", "Hips"):
            frames[:, k] = offset["XYZ".index(channel[0])]
        elif channel.endswith("rotation"):
            frames[:, k] *= 0.1
    return text(tree, frames, "0.008333")


def odd(seed: int = 0) -> str:
    """Rotations before positions, other orders of axes, hinges, a joint that does not move, two end sites; m, z up."""
    arm = ("elbow", (0.0, 0.0, -0.3), "Yrotation", [("wrist", (0.0, 0.0, -0.25), "Xrotation Zrotation", [
        (0.0, 0.02, -0.1), (0.0, -0.02, -0.1)])])
    knee = ("knee", (0.0, 0.0, -0.4), None, [("left foot", (0.0, 0.0, -0.4), "Xrotation Yrotation Xrotation",
                                                [(0.2, 0.0, 0.0)])])
    tree = ("trunk", (0.1, 0.2, 0.9), "Yrotation Xrotation Zrotation Zposition Xposition Yposition", [
        ("arm", (0.0, 0.2, 0.4), "Xrotation Zrotation Yrotation", [arm]),
        ("hip", (0.0, 0.1, 0.0), "Zrotation Xrotation Yrotation", [knee]),
        ("head", (0.0, 0.0, 0.5), "Zposition Zrotation", [(0.0, 0.0, 0.2)])])
    return text(tree, motion(tree, 4, (0.1, 0.2, 0.9), 0.1, seed), "0.01")


def places(file: str) -> dict[str, np.ndarray]:
    """{joint: (frames, 3)} by products of 4x4 matrices, straight from the text; axes and units of the file."""
    head, _, tail = file.partition("MOTION")
    frames = np.array([[float(x) for x in line.split()] for line in tail.split("\n")[3:] if line.strip()])
    found: dict[str, list] = {}
    for frame in frames:
        numbers, stack, name = iter(frame), [np.eye(4)], ""
        for line in head.split("\n"):
            words = line.split()
            if words[:1] in (["ROOT"], ["JOINT"]):
                name = " ".join(words[1:])
            elif words[:1] == ["End"]:
                name += "_end"
                while len(found.get(name, ())) > len(found[next(iter(found))]) - 1:
                    name += "2"
            elif words[:1] == ["OFFSET"]:
                parent, offset = stack[-1], np.array([float(x) for x in words[1:]])
                stack.append(parent @ _matrix(offset))
                found.setdefault(name, []).append(stack[-1][:3, 3].copy())
            elif words[:1] == ["CHANNELS"]:
                turn = np.eye(4)
                for word in words[2:]:
                    axis, value = "XYZ".index(word[0]), next(numbers)
                    if word.endswith("position"):
                        offset[axis] = value
                    else:
                        turn = turn @ _turn(axis, np.radians(value))
                stack[-1] = parent @ _matrix(offset) @ turn
                found[name][-1] = stack[-1][:3, 3].copy()
            elif words == ["}"]:
                stack.pop()
                name = name.removesuffix("_end2").removesuffix("_end")
    return {name: np.array(rows) for name, rows in found.items()}


def _matrix(offset) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, 3] = offset
    return matrix


def _turn(axis: int, angle: float) -> np.ndarray:
    matrix, (i, j) = np.eye(4), ((axis + 1) % 3, (axis + 2) % 3)
    matrix[i, i] = matrix[j, j] = np.cos(angle)
    matrix[j, i], matrix[i, j] = np.sin(angle), -np.sin(angle)
    return matrix
