"""Masses and inertias of bodies and subtrees as a file gives them, to find joints that move no mass."""

from __future__ import annotations

import numpy as np

from bunraku.io.findings import Findings
from bunraku.mechanism import Mechanism, Revolute
from bunraku.mechanism.links import GROUND

NEARLY_MASSLESS = 1e-6
"""Part of the model's mass below which a link is suspicious: small forces give it enormous accelerations."""
TINY_MASS = 1e-9
"""[kg] Mass below which every link is."""
NO_INERTIA = 1e-14
"""[kg m^2] A joint that moves less than this about its axis moves nothing."""


def note_weightless(mechanism: Mechanism, findings: Findings, labels: list[str]) -> None:
    """Warn about nearly massless bodies and joints that move no mass: torques there cause unbounded accelerations.
    `labels`: what moves each link, in the file."""
    total, bodies = mechanism.mass, body_masses(mechanism)
    for link, label in zip(mechanism.links, labels, strict=True):
        mass = bodies.get(link.name, 0.0)
        if 0 < mass < max(NEARLY_MASSLESS * total, TINY_MASS):
            findings.note(label, f"moves a nearly massless link ({mass:.3g} kg of {total:.3g} kg); small forces give "
                                 "it enormous accelerations")
    empty, thin = [], []
    for link, (mass, _, inertia), label in zip(mechanism.links, composites(mechanism), labels, strict=True):
        if link.joint.nv and mass == 0 and not inertia.any():
            empty.append(label)
        elif isinstance(link.joint, Revolute) and abs(link.joint.axis @ inertia @ link.joint.axis) < NO_INERTIA:
            thin.append(label)
    findings.note_many(empty, "moves no mass: its link and its subtree are massless, so accelerations cannot be "
                              "computed; give one of them mass or fix the joint")
    findings.note_many(thin, "its subtree has no inertia about the axis, so accelerations cannot be computed")


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
