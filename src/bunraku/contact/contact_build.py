"""From shapes on links to the flat arrays of `contact_fields.py`.

`build` reads the shapes of a mechanism and never changes them: `link`, `row` (a row of shape_f in the link's
frame), `kind` and `shape.rows()`, rows of point_f. It runs on the first request for contacts after a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.contact.contact_arrays import ContactArrays
from bunraku.plan import fields as f


def build(shapes: Sequence[Any], pairs: Sequence[tuple[int, int]], plan) -> ContactArrays:
    """The arrays of contact of these pairs of shapes (by number, a first as in KIND_OF), for a plan."""
    shape_i, shape_f = np.zeros((len(shapes), c.SHAPE_I), np.int32), np.zeros((len(shapes), c.SHAPE_F))
    kinds = [c.KIND_OF[shapes[a].kind, shapes[b].kind] for a, b in pairs]
    convex = {shape for kind, pair in zip(kinds, pairs, strict=True) if kind == c.CONVEX for shape in pair}
    rows = Rows()
    for k, shape in enumerate(shapes):
        shape_i[k, c.SHAPE_KIND] = shape.kind
        shape_i[k, c.SHAPE_BODY] = -1 if shape.link < 0 else plan.link_i[shape.link, f.LINK_BODY]
        shape_i[k, c.SHAPE_CORNERS] = c.CORNERS_OF.get(shape.kind, 0)
        if shape.kind != c.BOX or k in convex:
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
    order = sorted(range(len(pairs)), key=lambda p: (kinds[p], pairs[p]))
    pair_i = np.zeros((len(pairs), c.PAIR_I), np.int32)
    contact_i: list[tuple[int, int, int]] = []
    contact_f: list[tuple[float, float]] = []
    for p, number in enumerate(order):
        a, b = pairs[number]
        count = contacts_of(kinds[number], shape_i[a], shape_i[b])
        pair_i[p] = kinds[number], a, b, len(contact_i), count
        contact_i += count * [(p, int(shape_i[a, c.SHAPE_BODY]), int(shape_i[b, c.SHAPE_BODY]))]
        contact_f += count * [(float(np.sqrt(shapes[a].friction * shapes[b].friction)),
                               max(shapes[a].restitution, shapes[b].restitution))]
    return ContactArrays(shape_i, shape_f, np.concatenate([np.zeros((0, 3)), *rows.kept]), pair_i,
                         np.array(contact_i, np.int32).reshape(-1, c.CONTACT_I),
                         np.array(contact_f, float).reshape(-1, c.CONTACT_F))


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
