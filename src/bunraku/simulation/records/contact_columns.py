"""Contacts of a recorded motion as columns of a table, and as messages of a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bunraku.evaluate.contact_resultants import resultants
from bunraku.evaluate.contacts import MODES
from bunraku.simulation.records.recorded_forces import contacts_in, refuse_unknown_forces

if TYPE_CHECKING:
    from bunraku.simulation.records.trajectory import Segment, Trajectory

PARTS = ("normal", "friction", "mode", "gap", "x", "y", "z")
"""Of the columns of a pair of shapes: normal force and friction [N], mode (0 open, 1 sticking, 2 sliding), smallest gap
[m], and the centre of pressure, without load the nearest point [m]."""


def contact_columns(trajectory: Trajectory) -> list[dict[str, np.ndarray]]:
    """Of each segment {"foot - floor.normal": (states,), ...}, NaN where the shapes are apart; nothing for pairs that
    are never near each other."""
    refuse_unknown_forces(trajectory)
    return [_of_segment(segment) for segment in trajectory.segments]


def _of_segment(segment: Segment) -> dict[str, np.ndarray]:
    columns: dict[str, np.ndarray] = {}
    for k in range(len(segment.t) if segment.mechanism.may_touch() else 0):
        for (a, b), numbers in pairs_at(segment, k).items():
            for part, value in zip(PARTS, numbers, strict=True):
                columns.setdefault(f"{a} - {b}.{part}", np.full(len(segment.t), np.nan))[k] = value
    return columns


def pairs_at(segment: Segment, k: int) -> dict[tuple[str, str], tuple[float, ...]]:
    """{pair of shapes: PARTS} at a recorded state."""
    contacts = contacts_in(segment, k)
    nearest = {}
    for contact in reversed(contacts):
        nearest[contact.pair] = contact.point
    found = {}
    for pair, total in resultants(contacts, "pair").items():
        p = nearest[pair] if total.center_of_pressure is None else total.center_of_pressure
        found[pair] = (total.normal_force, float(np.linalg.norm(total.friction)), float(MODES.index(total.mode)),
                       total.gap, *map(float, p))
    return found


def contact_messages(segment: Segment):
    """(t, message) of each recorded state with shapes near each other, for /contact of recordings."""
    for k in range(len(segment.t) if segment.mechanism.may_touch() else 0):
        pairs = pairs_at(segment, k)
        if pairs:
            t = float(segment.t[k])
            yield t, {"t": t, "contacts": [
                {"pair": list(pair), "normal": n, "friction": f, "mode": MODES[int(mode)], "gap": gap, "point": point}
                for pair, (n, f, mode, gap, *point) in pairs.items()]}
