"""Force plates: ground forces over time, and the links on which they act.

A plate is kept as force and moment about the world's origin, so that it can be interpolated and moved to any point
without dividing by the vertical force; the centre of pressure is computed on request.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bunraku.checks import as_array, as_number
from bunraku.errors import ForcePlateWarning, ModelError, NamingError, ShapeError
from bunraku.evaluate import poses

if TYPE_CHECKING:
    from bunraku.motion.motion import Motion

LOADED = 10.0   # [N] smaller vertical loads are not assigned to a foot
SLACK = 1e-9    # of a duration: rounding of times
REACH = 0.12    # [m] from the line of a foot, ankle to toes, beyond which a centre of pressure is not under that foot


class Assignment(NamedTuple):
    """The link on which a load of a plate acts."""

    plate: str
    link: str
    start: float        # [s]
    end: float          # [s]
    distance: float     # [m] mean horizontal distance of the centre of pressure from the line of the foot

    def __str__(self):
        when = f"from {self.start:g} to {self.end:g} s"
        return f"{self.plate!r} acts on {self.link!r} {when} ({self.distance:.2f} m away)"


class ForcePlate:
    """Force on the person and moment about the world's origin, world axes [N, N m], at times t."""

    def __init__(self, name: str, t, force, moment, height: float = 0.0):
        self.name, self.height = name, as_number(f"{name}: height [m]", height, ShapeError)
        self.t, self.force, self.moment = as_array("t", t), as_array("force", force), as_array("moment", moment)
        if self.t.ndim != 1 or not len(self.t) or self.force.shape != (len(self.t), 3) or (
                self.moment.shape != self.force.shape):
            raise ShapeError(f"{name}: t, force and moment have shapes {self.t.shape}, {self.force.shape}, "
                             f"{self.moment.shape}; they must be (n,), (n, 3) and (n, 3)")
        wrong = np.flatnonzero(~np.isfinite(self.t) | ~(np.diff(self.t, prepend=-np.inf) > 0.0))
        if len(wrong):
            k = int(wrong[0])
            raise ShapeError(f"{name}: times must be finite and increase, but t[{k}] is {self.t[k]:g} s"
                             f"{f' after {self.t[k - 1]:g} s' if k else ''}")
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
        """Whether the vertical load is above 10 N: (n,) of booleans."""
        return np.abs(self.force[:, 2]) > LOADED

    @property
    def cop(self) -> np.ndarray:
        """Centre of pressure (n, 3) at the plate's height; NaN where it is not loaded."""
        with np.errstate(divide="ignore", invalid="ignore"):
            fx, fy, fz = self.force.T
            mx, my, _ = self.moment.T  # about the origin: m = p x f + free moment along z, solved for p
            p = np.column_stack([(self.height * fx - my) / fz, (self.height * fy + mx) / fz,
                                 np.full(len(fz), self.height)])
        return np.where(self.loaded[:, None], p, np.nan)

    @property
    def free_moment(self) -> np.ndarray:
        """Vertical moment about the centre of pressure (n,) [N m]; zero where it is not loaded."""
        arm = np.nan_to_num(self.cop)
        about = self.moment - np.cross(arm, self.force)
        return np.where(self.loaded, about[:, 2], 0.0)

    def reversed(self) -> ForcePlate:
        """The plate with opposite sign, for files that report the force on the plate."""
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


def ground_forces(motion: Motion, plates, feet: Sequence[str]) -> tuple[dict[str, np.ndarray], list[Assignment]]:
    """{link: (frames, 6)}: force and moment at each link's origin, world axes; and which plate acts on which link.

    A ForcePlateWarning names centres of pressure that are not under their foot, and plates that are loaded at the same
    time and assigned to one foot.
    """
    if isinstance(plates, ForcePlate):
        plates = [plates]
    where = poses(motion.mechanism, motion.q)
    if isinstance(plates, Mapping):
        if feet:
            raise ModelError("feet is for a list of plates; these plates name their links themselves")
        pairs = [(plate, link) for link, several in plates.items()
                 for plate in (several if isinstance(several, Sequence) else [several])]
        for plate, link in pairs:
            _check(motion, plate, link, "plates")
        acting = [(plate, part, loads) for plate, link in pairs
                  for part, loads in contacts(motion, plate, (link,), where, every=True)]
    else:
        if plates and not feet:
            raise ModelError("which links stand on the plates? Give feet=('left_foot', 'right_foot'), or plates as "
                             "{link: plate}")
        for plate in plates:
            for link in feet:
                _check(motion, plate, link, "feet")
        acting = [(plate, *part) for plate in plates for part in contacts(motion, plate, feet, where)]
    wrenches: dict[str, np.ndarray] = {}
    for plate, assigned, when in acting:
        force, moment = plate.at(motion.t)
        link = assigned.link
        wrench = np.column_stack([force, moment - np.cross(where[link][1], force)]) * when[:, None]
        wrenches[link] = wrenches.get(link, 0.0) + wrench
    found = [assigned for _, assigned, _ in acting]
    for text in _doubts(found, feet):
        warnings.warn(text, ForcePlateWarning, stacklevel=4)
    return wrenches, found


def _check(motion: Motion, plate, link: str, what: str) -> None:
    if not isinstance(plate, ForcePlate):
        raise ModelError(f"plates must be bk.ForcePlate, not {plate!r:.60}")
    if link not in motion.mechanism.link_names:
        raise NamingError(f"{what}: {motion.mechanism.no_link(link)}")


def contacts(motion: Motion, plate: ForcePlate, feet: Sequence[str], where,
             every: bool = False) -> list[tuple[Assignment, np.ndarray]]:
    """Assignments of the loads of a plate, and the frames of each. A load lasts from the first to the last loaded frame
    in a row and acts on the foot nearest to the centre of pressure, on average; `every`: all frames are one load."""
    force, moment = plate.at(motion.t)
    there = ForcePlate(plate.name, motion.t, force, moment, plate.height)
    loaded, cop = there.loaded, there.cop
    if every:
        edges = np.array([0, len(motion.t)])
    else:
        edges = np.flatnonzero(np.diff(np.concatenate([[False], loaded, [False]]).astype(int)))
    found = []
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        when = np.zeros(len(motion.t), bool)
        when[start:stop] = True
        pressed = when & loaded
        far = {link: float(_distance(motion, link, where[link], cop)[pressed].mean()) if pressed.any() else 0.0
               for link in feet}
        link = min(far, key=lambda link: far[link])
        found.append((Assignment(plate.name, link, float(motion.t[start]), float(motion.t[stop - 1]), far[link]), when))
    return found


def _distance(motion: Motion, link: str, pose, points: np.ndarray) -> np.ndarray:
    """Horizontal distance (frames,) of points from the line of a foot: from its joint through its centre of mass to
    twice that distance."""
    rotation, origin = pose
    foot = next(x for x in motion.mechanism.links if x.name == link)
    along = 2.0 * np.einsum("nij,j->ni", rotation, foot.com)[:, :2]
    to = (points - origin)[:, :2]
    length = np.maximum(np.sum(along * along, axis=1), 1e-12)
    share = np.clip(np.sum(to * along, axis=1) / length, 0.0, 1.0)
    return np.linalg.norm(to - share[:, None] * along, axis=1)


def _doubts(found: list[Assignment], feet: Sequence[str]) -> Iterator[str]:
    """Warning texts for assignments that are probably wrong."""
    remedy = "; say it yourself with plates={link: plate}, or check the place and the time of the plate"
    for one in found:
        if one.distance > REACH:
            yield f"force plate {one}: the centre of pressure is not under that link{remedy}"
    for one, other in combinations(found, 2):
        both = min(one.end, other.end) - max(one.start, other.start)
        if len(feet) > 1 and one.plate != other.plate and one.link == other.link and both > 0.0:
            yield (f"force plates {one.plate!r} and {other.plate!r} are loaded together for {both:.3g} s, and both are "
                   f"assigned to {one.link!r}{remedy}")
