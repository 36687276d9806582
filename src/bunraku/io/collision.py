"""Collision shapes of model files as shapes of a mechanism, with warnings for approximated ones."""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from bunraku.contact import contact_fields as c
from bunraku.io.findings import Findings
from bunraku.mechanism import Capsule, Mechanism, Points, Shape
from bunraku.mechanism.links import GROUND

RIM = 16  # points on each rim of a flat cylinder


def cylinder(radius: float, length: float) -> tuple[Shape, str]:
    """A cylinder along z: the inscribed capsule if it is longer than wide, else points on its rims; and the warning."""
    if length > 2.0 * radius:
        return Capsule(radius, length - 2.0 * radius), "a cylinder becomes the capsule in it, with round ends"
    ring = radius * np.exp(2j * np.pi * np.arange(RIM) / RIM)
    rims = [np.column_stack([ring.real, ring.imag, np.full(RIM, z)]) for z in (-0.5 * length, 0.5 * length)]
    return Points(np.concatenate(rims)), f"a flat cylinder becomes {RIM} points on each rim, which touch planes only"


def hull(vertices: np.ndarray) -> Points:
    """The corners of the convex hull of a mesh."""
    try:
        return Points(vertices[np.sort(ConvexHull(vertices).vertices)])
    except QhullError:  # flat: every vertex may be a corner
        return Points(np.unique(vertices, axis=0))


class Notes:
    """Warnings about shapes, one for all shapes with the same issue."""

    def __init__(self, findings: Findings):
        self.findings = findings
        self.found: dict[str, list[str]] = {}

    def note(self, element: str, text: str) -> None:
        self.found.setdefault(text, []).append(element)

    def report(self, mechanism: Mechanism) -> None:
        """Note all, and leave out pairs that contact does not support."""
        self._leave_out_unsupported(mechanism)
        for text, elements in self.found.items():
            more = f" (and {len(elements) - 1} more)" if len(elements) > 1 else ""
            self.findings.note(elements[0] + more, text)

    def _leave_out_unsupported(self, mechanism: Mechanism) -> None:
        shapes, names = list(mechanism.shapes.values()), [*mechanism.link_names, GROUND]
        for a, b in list(mechanism.meeting_pairs()):
            one, other = shapes[a], shapes[b]
            if not {(one.kind, other.kind), (other.kind, one.kind)} & set(c.KIND_OF):
                kinds = f"{type(one.shape).__name__} and {type(other.shape).__name__}"
                mechanism.exclude(names[one.link], names[other.link])
                self.note(f"links {names[one.link]!r} and {names[other.link]!r}",
                          f"do not touch each other: contact between {kinds} is not supported")
