"""From shapes on links to the flat arrays of `contact_fields.py`.

`build` reads the shapes of a mechanism and never changes them: `link`, `row` (a row of shape_f in the link's
frame), `kind`, masks and `shape.rows()`, rows of point_f. It runs on the first request for contacts after a change. Its
arrays grow with the shapes; the list of pairs is apart from it (`with_pairs`, `near_pairs.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt
from typing import Any

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.contact.contact_arrays import ContactArrays
from bunraku.contact.soft_contacts import in_series
from bunraku.plan import fields as f

OF_SPRING = slice(c.SHAPE_STIFFNESS, c.SHAPE_DAMPING + 1)


def build(shapes: Sequence[Any], rigid: Sequence[int], apart: Iterable[tuple[int, int]], plan,
          joints: Sequence[Any] = ()) -> ContactArrays:
    """The arrays of shapes for a plan, with an empty list of pairs. `rigid`: for each link, and last for the ground,
    the first link of its rigid body; `apart`: pairs of links whose shapes do not touch; `joints`: those of the links,
    if any has friction or hard limits."""
    shape_i, shape_f = np.zeros((len(shapes), c.SHAPE_I), np.int32), np.zeros((len(shapes), c.SHAPE_F))
    rows = Rows()
    for k, shape in enumerate(shapes):
        shape_i[k, c.SHAPE_KIND] = shape.kind
        shape_i[k, c.SHAPE_BODY] = -1 if shape.link < 0 else plan.link_i[shape.link, f.LINK_BODY]
        shape_i[k, c.SHAPE_CORNERS] = c.CORNERS_OF.get(shape.kind, 0)
        shape_i[k, c.SHAPE_LINK], shape_i[k, c.SHAPE_RIGID] = shape.link, rigid[shape.link]
        shape_i[k, c.SHAPE_GROUP], shape_i[k, c.SHAPE_MEETS] = shape.group, shape.meets
        data, numbers = shape.shape.rows()
        shape_i[k, c.SHAPE_POINT] = rows.put(data)
        shape_i[k, c.SHAPE_COUNT:c.SHAPE_COUNT + len(numbers)] = numbers
        shape_f[k] = shape.row
        if shape.link >= 0:  # from the link's frame to the body's
            row = plan.link_f[shape.link]
            R, x = row[f.LINK_ROTATION:f.LINK_ROTATION + 9].reshape(3, 3), row[f.LINK_OFFSET:f.LINK_OFFSET + 3]
            turn = shape.row[c.SHAPE_ROTATION:c.SHAPE_ROTATION + 9].reshape(3, 3)
            shape_f[k, c.SHAPE_ROTATION:c.SHAPE_ROTATION + 9] = (R @ turn).ravel()
            for at in (c.SHAPE_OFFSET, c.SHAPE_MIDDLE):
                shape_f[k, at:at + 3] = x + R @ shape.row[at:at + 3]
    joint_i, joint_f, contacts, surfaces = joint_tables(joints, plan)
    return ContactArrays(shape_i, shape_f, np.concatenate([np.zeros((0, 3)), *rows.kept]),
                         np.array(sorted(apart), np.int32).reshape(-1, 2), kind_table(),
                         *tables([], contacts, surfaces), joint_i, joint_f)


def joint_tables(joints: Sequence[Any], plan):
    """joint_i, joint_f, and rows of contact_i and contact_f, of joints with friction or hard limits."""
    numbers: list[tuple[int, ...]] = []
    bounds: list[tuple[float, ...]] = []
    contacts: list[tuple[int, ...]] = []
    surfaces: list[tuple[float, ...]] = []
    before: dict[int, int] = {}  # degrees of freedom of a link's joint in earlier bodies
    for body in range(plan.bodies if joints else 0):
        row, link = plan.body_i[body], int(plan.body_link[body])
        d = before.get(link, 0)
        before[link] = d + int(row[f.DOF])
        if row[f.DOF] != 1 or not joints[link].laws[d].any():
            continue
        (friction, hard, restitution), passive = joints[link].laws[d], joints[link].passive[d]
        angular = float(row[f.KIND] == f.REVOLUTE or plan.body_f[body, f.RATE_ANGULAR] != 0.0)
        found = [(c.LOWER, passive[f.LOWER], 0.0, restitution), (c.UPPER, passive[f.UPPER], 0.0, restitution)]
        found = [limit for limit in found if hard and np.isfinite(limit[1])]
        found += [(c.DRY, friction, 1.0, 0.0)] if friction > 0.0 else []
        for kind, bound, coefficient, e in found:
            numbers.append((kind, body, int(row[f.Q_INDEX]), int(row[f.V_INDEX])))
            bounds.append((float(bound), angular))
            contacts.append((-1, body, int(row[f.PARENT]), c.PUSH, len(contacts), 0))
            surfaces.append((coefficient, float(e), 0.0, 0.0, 0.0))
    return (np.array(numbers, np.int32).reshape(-1, c.JOINT_I), np.array(bounds, float).reshape(-1, c.JOINT_F),
            contacts, surfaces)


def tables(pairs, contacts, surfaces) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """pair_i, contact_i, contact_f of rows."""
    return (np.array(pairs, np.int32).reshape(-1, c.PAIR_I), np.array(contacts, np.int32).reshape(-1, c.CONTACT_I),
            np.array(surfaces, float).reshape(-1, c.CONTACT_F))


def with_pairs(arrays: ContactArrays, pairs: Iterable[tuple[int, int]]) -> ContactArrays:
    """The arrays with the list of these pairs of shapes (by number, a first as in KIND_OF)."""
    shape_i, shape_f = arrays.shape_i, arrays.shape_f
    kind = shape_i[:, c.SHAPE_KIND].tolist()
    listed: list[tuple[int, ...]] = []
    joints = len(arrays.joint_i)
    contacts: list[tuple[int, ...]] = arrays.contact_i[:joints].tolist()
    surfaces: list[tuple[float, ...]] = arrays.contact_f[:joints].tolist()
    rubs, soft = shape_f[:, [c.SHAPE_TORSIONAL, c.SHAPE_ROLLING]].any(), shape_f[:, c.SHAPE_STIFFNESS].any()
    body, friction, bounce = (x.tolist() for x in (shape_i[:, c.SHAPE_BODY], shape_f[:, c.SHAPE_FRICTION],
                                                   shape_f[:, c.SHAPE_RESTITUTION]))
    for p, (of, a, b) in enumerate(sorted((c.KIND_OF[kind[a], kind[b]], a, b) for a, b in pairs)):
        count, first = contacts_of(of, shape_i[a], shape_i[b]), len(contacts)
        moments = moments_of(shape_f[a], shape_f[b]) if rubs else ()
        stiffness, damping = in_series(*shape_f[a, OF_SPRING], *shape_f[b, OF_SPRING]) if soft else (0.0, 0.0)
        listed.append((of, a, b, first, count, len(moments)))
        contacts += [(p, body[a], body[b], c.PUSH, k, 0) for k in range(first, first + count)]
        surfaces += count * [(sqrt(friction[a] * friction[b]), max(bounce[a], bounce[b]) if stiffness == 0.0 else 0.0,
                              0.0, float(stiffness), float(damping))]
        for back, (role, arm) in enumerate(moments, 1):
            contacts += [(p, body[a], body[b], role, k, back) for k in range(first, first + count)]
            surfaces += count * [(1.0, 0.0, arm, 0.0, 0.0)]
    pair_i, contact_i, contact_f = tables(listed, contacts, surfaces)
    return arrays._replace(pair_i=pair_i, contact_i=contact_i, contact_f=contact_f)


def moments_of(a: np.ndarray, b: np.ndarray) -> list[tuple[int, float]]:
    """Moments of friction of a pair of shapes, by their rows of shape_f: role, and largest moment per normal force."""
    arms = ((c.SPIN, max(a[c.SHAPE_TORSIONAL], b[c.SHAPE_TORSIONAL])), (c.ROLL, max(a[c.SHAPE_ROLLING],
                                                                                    b[c.SHAPE_ROLLING])))
    return [(role, float(arm)) for role, arm in arms if arm > 0.0]


def kind_table() -> np.ndarray:
    """`kind_i`."""
    table = np.full((c.KINDS, c.KINDS, 2), (-1, 0), np.int32)
    for (a, b), kind in c.KIND_OF.items():
        table[a, b] = kind, c.CONTACTS_ON_FIELD.get(a, 0) if kind == c.FIELD else c.CONTACTS_OF.get(kind, 0)
    return table.reshape(-1, 2)


class Rows:
    """Rows of `point_f`; shapes with the same ones share them."""

    def __init__(self) -> None:
        self.kept: list[np.ndarray] = []
        self.where: dict[bytes, int] = {}
        self.count = 0

    def put(self, rows: np.ndarray) -> int:
        """Number of the first row."""
        key = rows.tobytes()
        if key not in self.where:
            self.where[key] = self.count
            self.kept.append(rows)
            self.count += len(rows)
        return self.where[key]


def contacts_of(kind: int, a: np.ndarray, b: np.ndarray) -> int:
    """Number of contacts of a pair of shapes, by their rows of shape_i."""
    if kind == c.CONVEX:
        return c.contacts_of_convex(int(a[c.SHAPE_CORNERS]), int(b[c.SHAPE_CORNERS]))
    if kind == c.FIELD:
        return c.CONTACTS_ON_FIELD.get(int(a[c.SHAPE_KIND]), int(a[c.SHAPE_COUNT]))
    return c.CONTACTS_OF.get(kind, int(a[c.SHAPE_COUNT]))
