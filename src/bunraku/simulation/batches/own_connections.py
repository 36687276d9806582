"""Connections of single copies of a batch, made and cut between steps. All copies have the coordinates of the tree,
which connections do not change; velocities jump as in `Simulation.connect`.

Copies whose connections are the same objects share a mechanism, and so its plan: after a cut all copies that had the
same structure have the same one again.
"""

from __future__ import annotations

import numpy as np

from bunraku.errors import NamingError
from bunraku.mechanism import Mechanism
from bunraku.simulation.batches.singles import Singles
from bunraku.simulation.structure_changes import joined


def connect(singles: Singles, copies, link_a: str, link_b: str, joint, name: str | None, frame_a, frame_b,
            max_gap: float) -> None:
    """Connect in each of the copies, or, with an error, in none."""
    group, made = singles.group, []
    for k in copies.tolist():
        q, v = group.y[k, :group.nq].copy(), group.y[k, group.nq:].copy()
        where = f"in copy {k} at t = {group.steps[k] * group.settings.step:.6g} s"
        made.append(joined(group.mechanism_of(k), q, v, link_a, link_b, joint, name, frame_a, frame_b, None, max_gap,
                           where))
    for k, one in zip(copies.tolist(), made, strict=True):
        group.y[k] = np.concatenate([one.q, one.v])
        singles.change(k, one.mechanism.locked())


def cut(singles: Singles, copies, name: str) -> None:
    """Cut in each of the copies, or, with an error, in none."""
    after: dict[int, Mechanism] = {}
    before = {k: singles.group.mechanism_of(k) for k in copies.tolist()}
    for k, mechanism in before.items():
        if name not in mechanism.connections:
            known = ", ".join(map(repr, mechanism.connections)) or "none"
            raise NamingError(f"cut: copy {k} has no connection {name!r}; its connections: {known}. Joints of the tree "
                              "cannot be cut in worlds, whose copies have the same coordinates")
        if id(mechanism) not in after:
            after[id(mechanism)] = other = mechanism.copy()
            other.cut(name)
            other.plan()  # refuses ends without mass
            other.locked()
    for k, mechanism in before.items():
        singles.change(k, after[id(mechanism)])
