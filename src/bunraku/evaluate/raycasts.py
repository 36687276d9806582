"""Rays against the shapes of a mechanism, by name: one, several, or batches of states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bunraku.checks import as_array, as_floats
from bunraku.contact import contact_fields as c
from bunraku.contact.rays import HIT, HIT_DISTANCE, HIT_NORMAL, HIT_SHAPE
from bunraku.entries.explain import refuse
from bunraku.entries.pool import spread
from bunraku.errors import ModelError, NamingError, ShapeError
from bunraku.mechanism import Fixed, Mechanism
from bunraku.mechanism.links import GROUND
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.plan import fields as f

SMALLEST_SHARE = 16
MOST_RANGE = 1e300


class Hits(NamedTuple):
    """The first hits of rays; arrays have the leading axes of the states, then those of the rays."""

    distance: np.ndarray     # along the ray [m]; inf where nothing is hit
    shape: np.ndarray        # number of the shape, -1 where nothing is hit
    normal: np.ndarray       # (..., 3) outward normal of its surface, world axes
    names: tuple[str, ...]   # of the shapes, by number

    @property
    def name(self) -> str | None:
        """Name of the shape that a single ray hits; None if it hits nothing."""
        if self.shape.ndim:
            raise ShapeError("several rays: hits.names[k] is the name of shape number k of hits.shape")
        return self.names[int(self.shape)] if self.shape >= 0 else None


def raycast(mechanism: Mechanism, q, origin, direction, *, link: str = GROUND, ignore: Sequence[str] = (),
            most: float = np.inf, workers: int | None = None) -> Hits:
    """The nearest surface along rays: distances to shapes and planes, as range sensors measure them.

    q           (nq,), or (B, nq) for a batch of states
    origin      (3,), or (R, 3) for several rays, or (B, R, 3) [m]
    direction   likewise; of any length but zero
    link        link in whose frame the rays are given, and with which they move; rays pass through its own shapes, and
                those of links fixed to it. "ground": the world, whose shapes are hit
    ignore      names of shapes and links that rays pass through
    most        largest distance that counts [m]

    A ray that begins inside a shape hits its surface from within. Points (`bk.Points`) have no surface. Compiled; cost
    in proportion to the number of shapes.
    """
    m, q = as_mechanism(mechanism), as_floats("q", q, as_mechanism(mechanism).nq)
    ignored = shapes_ignored(m, link, ignore)
    rays, lengths, batch, several = _rays(m, q, origin, direction, link)
    states = np.ascontiguousarray(q.reshape(-1, m.nq)) if batch is None else np.ascontiguousarray(
        np.broadcast_to(q, (batch, m.nq)))
    if not np.isfinite(states).all():
        bad = ~np.isfinite(states).all(axis=1)
        refuse(m.plan("tree"), q if batch is None else states, {}, None if batch is None else bad)
    from bunraku.contact.ray_entries import cast_rays

    plan, arrays = m.plan("tree"), m.contact_pairs().arrays
    body = -1 if link == GROUND else int(plan.link_i[m.find_link(link, "raycast"), f.LINK_BODY])
    count = lengths.shape[-1]
    hits = np.empty((len(states), HIT * count))
    if not most > 0.0:
        raise ShapeError(f"raycast: most must be positive, not {most!r}")
    cast_rays.load()
    spread(lambda start, stop: cast_rays.call(plan.arrays, arrays, states, rays, ignored, body,
                                              min(float(most), MOST_RANGE), hits, start, stop),
           len(states), 1, workers, SMALLEST_SHARE)
    hits = hits.reshape(len(states), count, HIT)
    if not several:
        hits = hits[:, 0]
    if batch is None:
        hits = hits[0]
    return Hits(hits[..., HIT_DISTANCE].copy(), hits[..., HIT_SHAPE].astype(int),
                hits[..., HIT_NORMAL:HIT_NORMAL + 3].copy(), tuple(shape.name for shape in m.contact_pairs().shapes))


def _rays(m: Mechanism, q, origin, direction, link: str):
    """Rays in the body's frame with unit directions, (B or 1, 6 R); lengths; size of the batch; whether several."""
    o, d = as_array("raycast: origin", origin), as_array("raycast: direction", direction)
    try:
        o, d = np.broadcast_arrays(o, d)
        if o.shape[-1:] != (3,) or o.ndim > 3 or (o.ndim == 3 and q.ndim == 2 and len(o) not in (1, len(q))):
            raise ValueError
    except ValueError:
        raise ShapeError(f"raycast: origin and direction must be (3,), (R, 3) or (B, R, 3), not {np.shape(origin)} and "
                         f"{np.shape(direction)}") from None
    lengths = np.linalg.norm(d, axis=-1)
    if not (np.isfinite(o).all() and np.isfinite(lengths).all() and (lengths > 0.0).all()):
        raise ShapeError("raycast: origins must be finite, directions finite and not zero")
    d = d / lengths[..., None]
    if link != GROUND:
        plan, number = m.plan("tree"), m.find_link(link, "raycast")
        row = plan.link_f[number]
        R, x = row[f.LINK_ROTATION:f.LINK_ROTATION + 9].reshape(3, 3), row[f.LINK_OFFSET:f.LINK_OFFSET + 3]
        o, d = x + o @ R.T, d @ R.T
    rays = np.concatenate([o, d], axis=-1)
    batch = len(q) if q.ndim == 2 else len(o) if o.ndim == 3 else None
    several = o.ndim > 1
    flat = rays.reshape(len(o) if o.ndim == 3 else 1, -1)
    return np.ascontiguousarray(flat), lengths.reshape(len(flat), -1), batch, several


def shapes_ignored(m: Mechanism, link: str, ignore: Sequence[str]) -> np.ndarray:
    """1 for every shape that is not met."""
    shapes = m.contact_pairs().shapes
    if not shapes:
        raise ModelError(f"{m.name} has no shapes for rays to hit; use m.add_shape(link, bk.Sphere(0.1)) "
                         "and m.add_plane()")
    if isinstance(ignore, str):
        raise NamingError(f"raycast: ignore must be a list of names, not {ignore!r}")
    rigid, links = m.contact_pairs().arrays.shape_i[:, [c.SHAPE_RIGID, c.SHAPE_LINK]].T
    out = np.zeros(len(shapes), np.int64)
    if link != GROUND:
        own = first = m.find_link(link, "raycast")
        while first >= 0 and isinstance(m.links[first].joint, Fixed):
            first = m.links[first].parent
        out[rigid == first if first >= 0 else links == own] = 1  # the ground is seen by what stands on it
    for name in ignore:
        named = [k for k, shape in enumerate(shapes) if shape.name == name]
        number = -1 if name == GROUND else None if named else m.find_link(name, "raycast: ignore")
        for k, shape in enumerate(shapes):
            if k in named or (not named and shape.link == number):
                out[k] = 1
    return out
