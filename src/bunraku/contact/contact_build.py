"""From shapes on links to the flat arrays of `contact_fields.py`.

`build` reads the shapes of a mechanism and never changes them: `link`, `row` (a row of shape_f in the link's
frame), `kind` and `points`. It runs on the first request for contacts after a change.
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
    points: list[np.ndarray] = []
    for k, shape in enumerate(shapes):
        shape_i[k, c.SHAPE_KIND] = shape.kind
        shape_i[k, c.SHAPE_BODY] = -1 if shape.link < 0 else plan.link_i[shape.link, f.LINK_BODY]
        shape_i[k, c.SHAPE_POINT], shape_i[k, c.SHAPE_COUNT] = sum(map(len, points)), len(shape.points)
        points.append(shape.points)
        shape_f[k] = shape.row
        if shape.link >= 0:  # from the link's frame to the body's
            row = plan.link_f[shape.link]
            R, x = row[f.LINK_ROTATION:f.LINK_ROTATION + 9].reshape(3, 3), row[f.LINK_OFFSET:f.LINK_OFFSET + 3]
            turn = shape.row[c.SHAPE_ROTATION:c.SHAPE_ROTATION + 9].reshape(3, 3)
            shape_f[k, c.SHAPE_ROTATION:c.SHAPE_ROTATION + 9] = (R @ turn).ravel()
            for at in (c.SHAPE_OFFSET, c.SHAPE_MIDDLE):
                shape_f[k, at:at + 3] = x + R @ shape.row[at:at + 3]
    kinds = [c.KIND_OF[shapes[a].kind, shapes[b].kind] for a, b in pairs]
    order = sorted(range(len(pairs)), key=lambda p: (kinds[p], pairs[p]))
    pair_i = np.zeros((len(pairs), c.PAIR_I), np.int32)
    contact_i: list[tuple[int, int, int]] = []
    contact_f: list[tuple[float, float]] = []
    for p, number in enumerate(order):
        a, b = pairs[number]
        pair_i[p] = kinds[number], a, b, len(contact_i)
        count = c.CONTACTS_OF.get(kinds[number], len(shapes[a].points))
        contact_i += count * [(p, int(shape_i[a, c.SHAPE_BODY]), int(shape_i[b, c.SHAPE_BODY]))]
        contact_f += count * [(float(np.sqrt(shapes[a].friction * shapes[b].friction)),
                               max(shapes[a].restitution, shapes[b].restitution))]
    return ContactArrays(shape_i, shape_f, np.concatenate([np.zeros((0, 3)), *points]), pair_i,
                         np.array(contact_i, np.int32).reshape(-1, c.CONTACT_I),
                         np.array(contact_f, float).reshape(-1, c.CONTACT_F))
