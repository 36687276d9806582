"""Collision shapes of model files as shapes of a mechanism, with warnings for approximated ones."""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from bunraku.contact import contact_fields as c
from bunraku.evaluate import contacts
from bunraku.evaluate.contacts import Contacts
from bunraku.io.findings import Findings
from bunraku.mechanism import Hull, Mechanism, Points, Shape
from bunraku.mechanism.links import GROUND

MOST_VERTICES = 128   # of a mesh's hull
OVERLAP = 1e-6        # [m]


def mesh_hull(vertices: np.ndarray, label: str, notes: Notes) -> Shape:
    """The convex hull of a mesh; with many vertices, that of the outermost ones along evenly spread directions."""
    notes.note(label, "a mesh becomes its convex hull")
    try:
        corners = vertices[np.sort(ConvexHull(vertices).vertices)]
    except QhullError:
        notes.note(label, "a flat mesh becomes its vertices, which do not touch those of other meshes")
        return Points(np.unique(vertices, axis=0))
    if len(corners) > MOST_VERTICES:
        notes.note(label, f"a hull with more than {MOST_VERTICES} vertices becomes that of the outermost ones along "
                          f"{MOST_VERTICES} directions")
        corners = corners[np.unique((corners @ directions(MOST_VERTICES).T).argmax(axis=0))]
    return Hull(corners)


def directions(count: int) -> np.ndarray:
    """Unit vectors, spread evenly along a spiral from pole to pole."""
    k = np.arange(count) + 0.5
    z, turn = 1.0 - 2.0 * k / count, np.pi * (1.0 + np.sqrt(5.0)) * k
    out = np.sqrt(1.0 - z * z)
    return np.column_stack([out * np.cos(turn), out * np.sin(turn), z])


class Notes:
    """Warnings about shapes, one for all shapes with the same issue."""

    def __init__(self, findings: Findings):
        self.findings = findings
        self.found: dict[str, list[str]] = {}

    def note(self, element: str, text: str) -> None:
        self.found.setdefault(text, []).append(element)

    def report(self, mechanism: Mechanism) -> None:
        """Note all, and leave out pairs that contact does not support, and pairs that overlap from the beginning."""
        self._leave_out_unsupported(mechanism)
        self._leave_out_overlapping(mechanism)
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

    def _leave_out_overlapping(self, mechanism: Mechanism) -> None:
        """Links of a robot whose shapes overlap at the neutral pose, next but one to each other for instance."""
        shapes = list(mechanism.shapes.values())
        if not any(shapes[a].link >= 0 and shapes[b].link >= 0 for a, b in mechanism.meeting_pairs()):
            return
        found = contacts(mechanism, mechanism.neutral(), 0.0)
        assert isinstance(found, Contacts)
        for links in dict.fromkeys(contact.links for contact in found if contact.gap < -OVERLAP):
            if GROUND not in links:
                mechanism.exclude(*links)
                self.note(f"links {links[0]!r} and {links[1]!r}",
                          "do not touch each other: their shapes overlap at the neutral pose")
