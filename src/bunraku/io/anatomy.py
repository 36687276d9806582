"""Masses for a skeleton without masses: those of a person, by the lengths of its segments.

Every segment is a cylinder of water from its joint to each joint (or end) that hangs from it. The body's mass is shared
among head, trunk, upper arms, forearms, hands, thighs, shanks and feet as in de Leva's table (`models/human.py`), and
within each of them by length. Feet, hands and head are found by their names; the two longest segments between a foot
and the branching point of the legs are thigh and shank, and likewise in the arms. If they are not all found, the whole
mass is shared by length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from bunraku.models.human import SEGMENTS
from bunraku.models.solid_inertias import Solid

DENSITY = 1000.0   # [kg/m^3]
SHORTEST = 0.02    # [m] a moving segment without length counts as a ball of this share
LIMBS = ((r"foot|ankle|toe", ("thigh", "shank", "foot")), (r"hand|wrist", ("upper_arm", "forearm", "hand")))
SHARES = {name: segment.mass for name, segment in SEGMENTS.items()}
TRUNK = SHARES["upper_trunk"] + SHARES["middle_trunk"] + SHARES["lower_trunk"]


def solids(names: Sequence[str], parents: Sequence[int], bones: Sequence[np.ndarray], moves: Sequence[bool],
           mass: float) -> tuple[list[Solid], str]:
    """Mass, centre and inertia of every segment, and a description of the rule.

    bones  of each segment: vectors (k, 3) from its joint to those that hang from it
    moves  whether its joint moves: then it must have mass
    """
    lengths = [float(np.linalg.norm(b, axis=1).sum()) for b in bones]
    counted = [max(l, SHORTEST) if moving else l for l, moving in zip(lengths, moves, strict=True)]
    groups, rule = _segments(names, parents, bones)
    total: dict[str, float] = {}
    for group, length in zip(groups, counted, strict=True):
        total[group] = total.get(group, 0.0) + length
    found = {group: share for group, share in total.items() if share > 0.0}
    weights = {group: SHARES.get(group.split(" ")[0], TRUNK) for group in found}
    whole = sum(weights.values())
    bodies = []
    for group, length, bone in zip(groups, counted, bones, strict=True):
        share = mass * weights[group] / whole * length / total[group] if length > 0.0 else 0.0
        bodies.append(_body(share, bone))
    return bodies, rule


def _segments(names, parents, bones) -> tuple[list[str], str]:
    """The body part of each segment, and the distribution of the mass."""
    starts: dict[int, str] = {}
    for pattern, parts in LIMBS:
        tips = _topmost(names, parents, pattern)
        if len(tips) != 2:
            return ["body"] * len(names), "shared by segment length"
        paths = [_path(parents, tip) for tip in tips]
        shared = set(paths[0]) & set(paths[1])
        for k, (tip, path) in enumerate(zip(tips, paths, strict=True)):
            own = [i for i in path[:-1] if i not in shared]
            if len(own) < 2:
                return ["body"] * len(names), "shared by segment length"
            reach = {i: float(np.linalg.norm(bones[i], axis=1).max(initial=0.0)) for i in own}
            upper, lower = sorted(sorted(own, key=lambda i: -reach[i])[:2], key=own.index)
            starts |= {upper: f"{parts[0]} {k}", lower: f"{parts[1]} {k}", tip: f"{parts[2]} {k}"}
    heads = _topmost(names, parents, r"neck|head")
    if not heads:
        return ["body"] * len(names), "shared by segment length"
    starts |= dict.fromkeys(heads, "head")
    groups: list[str] = []
    for i, parent in enumerate(parents):
        groups.append(starts.get(i, groups[parent] if parent >= 0 else "trunk"))
    legs = ", ".join(names[i] for i, part in starts.items() if part.startswith("thigh"))
    return groups, f"shared among the parts of the body as in de Leva's table (thighs: {legs}), in them by length"


def _topmost(names, parents, pattern) -> list[int]:
    """Segments whose names match, without descendants of a match."""
    inside: list[bool] = []
    found = []
    for i, (name, parent) in enumerate(zip(names, parents, strict=True)):
        above = parent >= 0 and inside[parent]
        matches = re.search(pattern, name, re.IGNORECASE) is not None
        if matches and not above:
            found.append(i)
        inside.append(above or matches)
    return found


def _path(parents, i) -> list[int]:
    """From the root to segment i."""
    path = [i]
    while parents[path[-1]] >= 0:
        path.append(parents[path[-1]])
    return path[::-1]


def _body(mass: float, bones: np.ndarray) -> Solid:
    """Cylinders along the bones; a ball at the joint if they have no length."""
    lengths = np.linalg.norm(bones, axis=1)
    if mass == 0.0:
        return Solid(0.0, np.zeros(3), np.zeros((3, 3)))
    if lengths.sum() < 1e-9:
        radius = (0.75 * mass / (np.pi * DENSITY)) ** (1 / 3)
        return Solid(mass, np.zeros(3), 0.4 * mass * radius**2 * np.eye(3))
    long = lengths > 1e-9
    parts = [_cylinder(mass * length / lengths.sum(), bone) for bone, length in zip(bones[long], lengths[long],
                                                                                      strict=True)]
    body = parts[0]
    for part in parts[1:]:
        body = body + part
    return body


def _cylinder(mass: float, bone: np.ndarray) -> Solid:
    length = float(np.linalg.norm(bone))
    radius2 = mass / (DENSITY * np.pi * length)
    along = np.outer(bone, bone) / length**2
    inertia = 0.5 * mass * radius2 * along + mass * (3 * radius2 + length**2) / 12 * (np.eye(3) - along)
    return Solid(mass, 0.5 * bone, inertia)
