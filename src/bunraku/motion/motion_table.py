"""Named columns over time: coordinates or ground forces of OpenSim's .mot and .sto files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bunraku.checks import hint
from bunraku.errors import ModelError, NamingError
from bunraku.io.axes import turned
from bunraku.mechanism import Compound, Cylindrical, Free, Mechanism, Planar, Prismatic, Revolute, Spherical
from bunraku.mechanism.joints import Joint
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.motion.motion import Motion
from bunraku.motion.plates import ForcePlate
from bunraku.motion.smoothing import sampling_rate

FORCE = re.compile(r"^(.*?)force(.*?)_?v([xyz])$", re.IGNORECASE)


@dataclass(eq=False)
class MotionTable:
    """Columns in the units and axes of the file."""

    name: str
    t: np.ndarray          # (rows,) [s]
    names: list[str]
    columns: np.ndarray    # (rows, columns)
    degrees: bool          # whether angles are in degrees

    @property
    def rate(self) -> float:
        """Rows a second."""
        return sampling_rate(self.t)

    def __getitem__(self, name: str) -> np.ndarray:
        """One column (rows,)."""
        if name not in self.names:
            raise NamingError(f"{self.name}: there is no column {name!r}{hint(name, self.names)}")
        return self.columns[:, self.names.index(name)]

    def motion(self, mechanism: Mechanism, columns: Mapping[str, Sequence[str]] | None = None) -> Motion:
        """The motion of a mechanism whose joints have the names of columns; angles become radians.

        A state file's "/jointset/knee_r/knee_angle_r/value" is "knee_angle_r". A joint with several coordinates, or
        another name, takes the columns given for it: {joint: (column, ...)}. Joints without a column, and Spherical
        and Free ones, which have no angles, are an error that names them; columns without a joint are ignored.
        """
        as_mechanism(mechanism)
        short = {_short(name): name for name in reversed(self.names)}
        given = dict(columns or {})
        for name in given:
            if name not in mechanism.joint_names:
                raise NamingError(f"columns: {mechanism.no_joint(name)}")
        q, differs = np.tile(mechanism.neutral(), (len(self.t), 1)), []
        for link in mechanism.links:
            name, joint = link.joint_name, link.joint
            wanted = list(given.get(name, [name] if joint.nq == 1 else []))
            if not joint.nq:
                continue
            if isinstance(joint, (Free, Spherical)):
                differs.append(f"{name!r} is {type(joint).__name__}, which has no angles (use a Compound of hinges)")
            elif not wanted:
                differs.append(f"{name!r} has {joint.nq} coordinates (name their columns: columns={{{name!r}: ...}})")
            elif len(wanted) != joint.nq:
                differs.append(f"{name!r} has {joint.nq} coordinates, but {len(wanted)} columns are given for it")
            elif missing := [x for x in wanted if x not in self.names and x not in short]:
                differs.append(f"{name!r} has no column {missing[0]!r}{hint(missing[0], list(short), close=True)}")
            else:
                angles = _angles(joint)
                values = np.column_stack([self[x if x in self.names else short[x]] for x in wanted])
                scale = np.where(angles, np.pi / 180.0 if self.degrees else 1.0, 1.0)
                q[:, mechanism.q_slice(name)] = values * scale
        if differs:
            more = f" and {len(differs) - 8} more" if len(differs) > 8 else ""
            raise ModelError(f"{self.name} does not fit {mechanism.name}: {', '.join(differs[:8])}{more}")
        return Motion(mechanism, self.t, q, self.name)

    def plates(self, up: str = "y", forward: str = "x") -> list[ForcePlate]:
        """Ground forces: columns such as ground_force_vx, ground_force_px and ground_torque_x (zero if missing), with
        any prefix or number, turned from OpenSim's axes (or those given) to x forward, z up."""
        axes = turned(up, forward)
        matches = [match for name in self.names if (match := FORCE.match(name))]
        found = list(dict.fromkeys((match[1], match[2]) for match in matches))
        if not found:
            raise ModelError(f"{self.name}: there are no ground forces, columns that end in force_vx, force_vy, "
                             f"force_vz{hint('ground_force_vx', self.names)}")
        plates = []
        for before, after in found:
            stem = f"{before}force{after}"
            force, cop = (self._vector(f"{stem}_{kind}", f"{stem}{kind}") for kind in "vp")
            torque = self._vector(*(f"{before}{word}{after}_{m}" for word in ("torque", "moment") for m in ("", "m")),
                                  optional=True)
            plates.append(ForcePlate.of_cop(f"{self.name}: {stem}", self.t, force @ axes.T, cop @ axes.T,
                                            torque @ axes.T))
        return plates

    def _vector(self, *stems: str, optional: bool = False) -> np.ndarray:
        lower = {name.lower(): name for name in self.names}
        for stem in stems:
            wanted = [lower.get(f"{stem}{axis}".lower()) for axis in "xyz"]
            if all(wanted):
                return np.column_stack([self[name] for name in wanted if name])
        if optional:
            return np.zeros((len(self.t), 3))
        raise ModelError(f"{self.name}: the columns {stems[0]}x, {stems[0]}y, {stems[0]}z are not all there")

    def __repr__(self):
        return (f"MotionTable {self.name!r}: {len(self.names)} columns, {len(self.t)} rows, {self.t[0]:g} to "
                f"{self.t[-1]:g} s")


def _short(name: str) -> str:
    parts = name.split("/")
    return parts[-2] if len(parts) > 2 and parts[-1] == "value" else name


def _angles(joint: Joint) -> list[bool]:
    """Which coordinates of a joint are angles."""
    if isinstance(joint, Compound):
        return [not isinstance(screw, Prismatic) for screw in joint.screws]
    if isinstance(joint, Planar):
        return [False, False, True]
    if isinstance(joint, Cylindrical):
        return [False, True]
    return [isinstance(joint, Revolute) or not isinstance(joint, Prismatic)]
