"""Resultant of the contact forces between two links or two shapes: net wrench, and centre of pressure.

The forces f_i at the points x_i have the net force F and, about a point P, the moment M(P) = sum (x_i - P) x f_i. The
plane of the contact goes through the mean c of the points, weighted by normal forces, and its normal n is the mean of
the normals, weighted alike. The centre of pressure is the point of this plane in which the tangential moment vanishes:

    p = c + n x M(c) / (n . F)         M(p) = n (n . M(p))

[Sardain & Bessonnet (2004), eq. 8, for a plane at any place]. If all points lie in one plane, p is the mean c and lies
within their convex hull. A contact without load (n . F = 0) has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from bunraku.evaluate.contacts import Contact

LOADED = 1e-12
"""Part of the sum of all forces above which a normal force is a load."""


class Resultant(NamedTuple):
    """Net contact wrench on the first of two links or shapes, by the second; world axes."""

    between: tuple[str, str]
    force: np.ndarray                       # (3,) [N]
    normal: np.ndarray                      # (3,) of the plane of the contact
    center_of_pressure: np.ndarray | None   # (3,) [m]; None without load
    moment: np.ndarray                      # (3,) about the centre of pressure: along the normal; zero without load
    gap: float                              # smallest [m]
    mode: str                               # "sticking" if a contact sticks, else "sliding" if one slides, or "open"

    @property
    def normal_force(self) -> float:
        """Along the normal [N]."""
        return float(self.normal @ self.force)

    @property
    def friction(self) -> np.ndarray:
        """(3,) the force across the normal [N]."""
        return self.force - self.normal_force * self.normal

    def moment_about(self, point) -> np.ndarray:
        """(3,) about any point [N m]."""
        if self.center_of_pressure is None:
            return self.moment
        return self.moment + np.cross(self.center_of_pressure - np.asarray(point, float), self.force)


def resultants(contacts: Iterable[Contact], of: str = "links") -> dict[tuple[str, str], Resultant]:
    """Resultants of contacts with forces, by pair of links or of shapes (`of="pair"`); names in the order of the first
    contact of each."""
    groups: dict[tuple[str, str], list[tuple[Contact, float]]] = {}
    for contact in contacts:
        a, b = getattr(contact, of)
        key, sign = ((b, a), -1.0) if (b, a) in groups else ((a, b), 1.0)
        groups.setdefault(key, []).append((contact, sign))
    return {key: _resultant(key, group) for key, group in groups.items()}


def _resultant(between, group) -> Resultant:
    points = np.array([contact.point for contact, _ in group])
    normals = np.array([sign * contact.normal for contact, sign in group])
    forces = np.array([sign * contact.force for contact, sign in group])
    modes = {contact.mode for contact, _ in group}
    mode = next((name for name in ("sticking", "sliding") if name in modes), "open")
    gap = min(contact.gap for contact, _ in group)
    along, force = np.maximum(np.einsum("ij,ij->i", forces, normals), 0.0), forces.sum(axis=0)
    n = (along @ normals) if along.any() else normals[0]
    length = np.linalg.norm(n)
    n = n / length if length > 0.0 else normals[0]
    if not n @ force > LOADED * np.abs(forces).sum():
        return Resultant(between, force, n, None, np.zeros(3), gap, mode)
    middle = along @ points / along.sum()
    moment = np.cross(points - middle, forces).sum(axis=0) + sum(sign * contact.moment for contact, sign in group
                                                                 if contact.moment is not None)
    arm = np.cross(n, moment) / (n @ force)
    return Resultant(between, force, n, middle + arm, n * (n @ (moment - np.cross(arm, force))), gap, mode)
