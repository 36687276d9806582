"""Masses and inertias of bodies and subtrees as a file gives them, to find joints that move no mass."""

from __future__ import annotations

import numpy as np

from bunraku.mechanism import Mechanism
from bunraku.mechanism.links import GROUND

NEARLY_MASSLESS = 1e-6
"""Part of the model's mass below which a link is suspicious: small forces give it enormous accelerations."""


def body_masses(mechanism: Mechanism) -> dict[str, float]:
    """{link on a moving joint: its mass with that of the links fixed to it}."""
    masses: dict[str, float] = {}
    carriers: list[str] = []
    for link in mechanism.links:
        fixed = link.joint.nv == 0
        carriers.append(link.name if not fixed else GROUND if link.parent < 0 else carriers[link.parent])
        masses[carriers[-1]] = masses.get(carriers[-1], 0.0) + link.mass
    masses.pop(GROUND, None)
    return masses


def composites(mechanism: Mechanism):
    """Composite of each link and its subtree at neutral joints: mass, mass times centre, inertia about the link's
    origin."""
    sums = []
    for link in mechanism.links:
        moment = link.mass * link.com
        sums.append([link.mass, moment, link.inertia + _spread(link.com, moment)])
    for link, (mass, moment, inertia) in zip(reversed(mechanism.links), reversed(sums), strict=True):
        if link.parent < 0 or (mass == 0 and not inertia.any()):
            continue
        R, p = link.rotation, link.position
        turned = R @ moment
        parent = sums[link.parent]
        parent[0] += mass
        parent[1] = parent[1] + turned + mass * p
        parent[2] = (parent[2] + R @ inertia @ R.T + _spread(p, turned) + _spread(turned, p) + _spread(p, mass * p))
    return sums


def _spread(a, b):
    """(a.b) 1 - b a^T, the part of an inertia that comes from a shift of origin (summed over a, b and b, a)."""
    return a @ b * np.eye(3) - np.outer(b, a)
