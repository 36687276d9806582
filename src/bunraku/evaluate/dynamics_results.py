"""Results of the dynamics: forces in joints by name, and the report on redundant loop constraints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bunraku.evaluate.contacts import Contacts
from bunraku.evaluate.kinematics import Kinematics
from bunraku.notebook import html_table
from bunraku.plan import fields as f
from bunraku.tolerances import SINGULAR_VALUE


@dataclass(frozen=True)
class Report:
    """Report on the loop constraints.

    Forces of redundant connections are not determined by rigid-body mechanics. Those reported have the smallest norm
    over all connections, moments divided by the mechanism's `length_scale`; accelerations are unique all the same.
    """

    constraints: int      # constrained directions of all connections
    rank: int             # how many of them are independent
    condition: float      # how close the independent ones are to dependent: from 1; beyond 1e8 digits are lost
    indeterminate: dict[str, int]        # connections whose forces are not unique: in how many directions
    directions: dict[str, np.ndarray]    # of these: (n, 6) orthonormal, force and moment / length scale, child axes


class Dynamics:
    """Results of one evaluation of the dynamics; `forces` and `links` are computed when they are first read.

    a           accelerations
    forces      {joint or connection: wrench}: see `joint_forces`
    links       {link: acceleration of its frame (linear, angular)}, world axes
    report      on the loop constraints
    contacts    with forces and modes; None if nothing can touch
    couplings   {joint: torque (force) by which its coupling drives it}; the joint it follows gets -ratio times that
    resistance  torques and forces of joints by their Coulomb friction and hard limits, in the order of v
    """

    def __init__(self, a: np.ndarray, report: Report, contacts: Contacts | list[Contacts] | None,
                 moved: Callable[[], Kinematics], passed: Callable[[], dict[str, np.ndarray]],
                 couplings: dict[str, Any], resistance: np.ndarray | None = None):
        self.a, self.report, self.contacts, self.couplings = a, report, contacts, couplings
        self.resistance = np.zeros_like(a) if resistance is None else resistance
        self._moved, self._passed = moved, passed

    @cached_property
    def forces(self) -> dict[str, np.ndarray]:
        return self._passed()

    @cached_property
    def links(self) -> dict[str, np.ndarray]:
        return self._moved().accelerations

    def _repr_html_(self) -> str:
        """Forces in joints and connections as a table, in notebooks."""
        batch = f"{len(self.a)} states, the first: " if self.a.ndim == 2 else ""
        title = (f"{batch}forces in {len(self.forces)} joints and connections, child-side axes; "
                 f"constraints {self.report.constraints}, rank {self.report.rank}")
        return html_table(title, ("joint", "fx [N]", "fy [N]", "fz [N]", "mx [N m]", "my [N m]", "mz [N m]"), (
            (name, *map(float, wrench if wrench.ndim == 1 else wrench[0])) for name, wrench in self.forces.items()))


def report_of(mechanism, solution, basis) -> Report:
    loops = solution.plan.loops
    if basis is None:
        return Report(loops.rows, loops.rows, solution.condition, {}, {})
    blocks: dict[int, list[int]] = {}  # of each row: the blocks of the null space that it is in
    for number, (rows, _) in enumerate(basis):
        for row in rows.tolist():
            blocks.setdefault(row, []).append(number)
    free: dict[str, np.ndarray] = {}
    for c, name in enumerate(loops.names):
        mine = solution.rows(c)
        found = []
        for number in sorted({k for row in range(mine.start, mine.stop) for k in blocks.get(row, ())}):
            rows, vectors = basis[number]
            inside = (rows >= mine.start) & (rows < mine.stop)
            full = np.zeros((mine.stop - mine.start, vectors.shape[1]))
            full[rows[inside] - mine.start] = vectors[inside]
            found.append(full)
        if not found:
            continue
        u, s, _ = np.linalg.svd(np.concatenate(found, axis=1), full_matrices=False)
        u = u[:, s > SINGULAR_VALUE]
        if u.shape[1]:
            free[name] = (u.T @ solution.directions(c)) / np.repeat([1.0, mechanism.length_scale], 3)
    lost = sum(vectors.shape[1] for _, vectors in basis)
    return Report(loops.rows, loops.rows - lost, solution.condition, {name: len(x) for name, x in free.items()}, free)


def with_connection_forces(mechanism, moved, held, pushed):
    """External forces on links with those of the connections added: on b as they are, on a the opposite."""
    shape = next(iter(held.values())).shape[:-1]
    pushed = np.zeros((*shape, 6 * len(mechanism.links))) if pushed is None else np.array(pushed)
    if pushed.ndim == 1 and shape:
        pushed = np.repeat(pushed[None], shape[0], axis=0)
    ground = (np.eye(3), np.zeros(3))
    places = [*moved.poses.values(), ground]
    for name, connection in mechanism.connections.items():
        R, x = places[connection.link_b]
        turn = R @ connection.rotation_b
        origin = x + R @ connection.position_b
        force = (turn @ held[name][..., :3, None])[..., 0]
        moment = (turn @ held[name][..., 3:, None])[..., 0]
        for link, sign in ((connection.link_b, 1.0), (connection.link_a, -1.0)):
            if link >= 0:
                arm = origin - places[link][1]
                pushed[..., 6 * link:6 * link + 3] += sign * force
                pushed[..., 6 * link + 3:6 * link + 6] += sign * (moment + np.cross(arm, force))
    return pushed


def link_wrenches(mechanism, plan, passed) -> dict[str, np.ndarray]:
    """From wrenches at body origins in body axes to wrenches at link origins in link axes."""
    passed = passed.reshape(*passed.shape[:-1], plan.bodies, 6)[..., plan.link_i[:, f.LINK_BODY], :]
    R = plan.link_f[:, f.LINK_ROTATION:f.LINK_ROTATION + 9].reshape(-1, 3, 3)
    offset = plan.link_f[:, f.LINK_OFFSET:f.LINK_OFFSET + 3]
    force, moment = passed[..., :3], passed[..., 3:] - np.cross(offset, passed[..., :3])  # of all links at once
    turned = np.concatenate([np.einsum("...li,lij->...lj", x, R) for x in (force, moment)], axis=-1)
    return {link.joint_name: turned[..., k, :] for k, link in enumerate(mechanism.links)}
