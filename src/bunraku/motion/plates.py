"""Force plates: ground forces over time, and the links on which they act.

A plate is kept as force and moment about the world's origin, so that it can be interpolated and moved to any point
without dividing by the vertical force; the centre of pressure is computed when it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bunraku.checks import as_array
from bunraku.errors import ModelError, NamingError, ShapeError
from bunraku.evaluate import poses

if TYPE_CHECKING:
    from bunraku.motion.motion import Motion

LOADED = 10.0   # [N] below it a plate carries nobody
SLACK = 1e-9    # of a duration: rounding of times


class ForcePlate:
    """Force on the person and moment about the world's origin, world axes [N, N m], at times t."""

    def __init__(self, name: str, t, force, moment, height: float = 0.0):
        self.name, self.height = name, float(height)
        self.t, self.force, self.moment = as_array("t", t), as_array("force", force), as_array("moment", moment)
        if self.t.ndim != 1 or not len(self.t) or self.force.shape != (len(self.t), 3) or (
                self.moment.shape != self.force.shape):
            raise ShapeError(f"{name}: t, force and moment have shapes {self.t.shape}, {self.force.shape}, "
                             f"{self.moment.shape}; they must be (n,), (n, 3) and (n, 3)")
        for what, values in (("force", self.force), ("moment", self.moment)):
            bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
            if len(bad):
                raise ShapeError(f"{name}: {what} has no finite value in sample {bad[0]} ({self.t[bad[0]]:g} s)")

    @classmethod
    def of_cop(cls, name: str, t, force, cop, free_moment=None) -> ForcePlate:
        """From centres of pressure (n, 3) and free moments about them, (n, 3) or (n,) about the vertical, zero by
        default; where the force is zero the centre may be NaN."""
        force, cop = as_array("force", force), as_array("cop", cop)
        free = np.zeros_like(force) if free_moment is None else as_array("free_moment", free_moment)
        if free.ndim == 1 and free.shape == force.shape[:1]:  # about the vertical
            free = np.column_stack([np.zeros((len(free), 2)), free])
        for what, array in (("force", force), ("cop", cop), ("free_moment", free)):
            if array.ndim != 2 or array.shape != (len(force), 3):
                raise ShapeError(f"force plate {name!r}: {what} has the shape {array.shape}; it must be (n, 3), a row "
                                 "for every time" + (", or (n,) about the vertical" if what == "free_moment" else ""))
        at = np.where(np.any(force, axis=1, keepdims=True), cop, 0.0)
        height = float(np.nanmedian(cop[:, 2])) if np.isfinite(cop[:, 2]).any() else 0.0
        return cls(name, t, force, np.cross(at, force) + free, height)

    @property
    def loaded(self) -> np.ndarray:
        """Where somebody stands on it: (n,) of booleans."""
        return np.abs(self.force[:, 2]) > LOADED

    @property
    def cop(self) -> np.ndarray:
        """Centre of pressure (n, 3) at the plate's height; NaN where nobody stands on it."""
        with np.errstate(divide="ignore", invalid="ignore"):
            fx, fy, fz = self.force.T
            mx, my, _ = self.moment.T  # about the origin: m = p x f + free moment along z, solved for p
            p = np.column_stack([(self.height * fx - my) / fz, (self.height * fy + mx) / fz,
                                 np.full(len(fz), self.height)])
        return np.where(self.loaded[:, None], p, np.nan)

    @property
    def free_moment(self) -> np.ndarray:
        """Vertical moment about the centre of pressure (n,) [N m]; zero where nobody stands on it."""
        arm = np.nan_to_num(self.cop)
        about = self.moment - np.cross(arm, self.force)
        return np.where(self.loaded, about[:, 2], 0.0)

    def reversed(self) -> ForcePlate:
        """For plates that report the force on themselves."""
        return ForcePlate(self.name, self.t, -self.force, -self.moment, self.height)

    def at(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Force and moment about the origin at other times, linear in between."""
        slack = SLACK * max(abs(self.t[-1]), abs(t[-1]), 1.0)
        if t[0] < self.t[0] - slack or t[-1] > self.t[-1] + slack:
            raise ModelError(f"{self.name} was recorded from {self.t[0]:g} to {self.t[-1]:g} s, the motion from "
                             f"{t[0]:g} to {t[-1]:g} s; cut it with motion.between")
        mixed = [np.column_stack([np.interp(t, self.t, column) for column in part.T])
                 for part in (self.force, self.moment)]
        return mixed[0], mixed[1]

    def __repr__(self):
        return (f"ForcePlate {self.name!r}: {self.t[0]:g} to {self.t[-1]:g} s, up to "
                f"{np.linalg.norm(self.force, axis=1).max():.0f} N")


def ground_forces(motion: Motion, plates, feet: Sequence[str]) -> dict[str, np.ndarray]:
    """{link: (frames, 6)}: force and moment at each link's origin, world axes."""
    if isinstance(plates, ForcePlate):
        plates = [plates]
    if isinstance(plates, Mapping):
        if feet:
            raise ModelError("feet is for a list of plates; these plates name their links themselves")
        acting = [(plate, link, np.ones(len(motion.t), bool)) for link, several in plates.items()
                  for plate in (several if isinstance(several, Sequence) else [several])]
    else:
        if plates and not feet:
            raise ModelError("which links stand on the plates? Give feet=('left_foot', 'right_foot'), or plates as "
                             "{link: plate}")
        acting = [(plate, *part) for plate in plates for part in contacts(motion, plate, feet)]
    where = poses(motion.mechanism, motion.q)
    wrenches: dict[str, np.ndarray] = {}
    for plate, link, when in acting:
        if not isinstance(plate, ForcePlate):
            raise ModelError(f"plates must be bk.ForcePlate, not {plate!r:.60}")
        force, moment = plate.at(motion.t)
        wrench = np.column_stack([force, moment - np.cross(where[link][1], force)]) * when[:, None]
        wrenches[link] = wrenches.get(link, 0.0) + wrench
    return wrenches


def contacts(motion: Motion, plate: ForcePlate, feet: Sequence[str]) -> list[tuple[str, np.ndarray]]:
    """Who stands on a plate when: (link, frames). A contact, from the first to the last loaded frame in a row, is that
    of the link whose origin is nearest to the centre of pressure on average."""
    for link in feet:
        if link not in motion.mechanism.link_names:
            raise NamingError(f"feet: {motion.mechanism.no_link(link)}")
    force, moment = plate.at(motion.t)
    there = ForcePlate(plate.name, motion.t, force, moment, plate.height)
    loaded, cop = there.loaded, there.cop
    where = poses(motion.mechanism, motion.q)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], loaded, [False]]).astype(int)))
    found = []
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        part = slice(start, stop)
        far = {link: float(np.linalg.norm(where[link][1][part] - cop[part], axis=1).mean()) for link in feet}
        when = np.zeros(len(motion.t), bool)
        when[part] = True
        found.append((min(far, key=lambda link: far[link]), when))
    return found
