"""Kinds of sensors: the quantity that each measures at a moment of a recorded motion, without its errors."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bunraku.checks import as_positive, as_rotation, as_size, as_vector
from bunraku.errors import ModelError, ShapeError
from bunraku.evaluate import dynamics, kinematics, raycast
from bunraku.mechanism import Mechanism
from bunraku.simulation.records.recorded_forces import as_names, contacts_at, total
from bunraku.simulation.records.trajectory import Segment, Trajectory


class Moment(NamedTuple):
    """A moment of a recorded motion, and the state one sampling period before."""

    t: float
    segment: Segment
    q: np.ndarray
    v: np.ndarray
    period: float
    before: tuple[Mechanism, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Sensor(ABC):
    """What all sensors have.

    rate        readings per second
    noise       standard deviation of each reading, in its unit: a number, or one for each channel
    bias        standard deviation of a constant error, drawn once by the seed
    resolution  readings are whole multiples of it; 0: no rounding
    """

    name: str
    rate: float
    noise: float | tuple = 0.0
    bias: float | tuple = 0.0
    resolution: float | tuple = 0.0

    forces = False       # whether joint or contact forces are needed
    needs_before = False  # whether the state a period before is

    def __post_init__(self):
        as_positive(f"rate of {self.name!r} [1/s]", self.rate, ShapeError)
        for word in ("noise", "bias", "resolution"):
            for x in np.ravel(getattr(self, word)):
                as_size(f"{word} of {self.name!r}", float(x), ShapeError)

    @abstractmethod
    def refuse(self, trajectory: Trajectory) -> None:
        """Raise an error if the motion has nothing for it to measure."""

    @abstractmethod
    def value(self, moment: Moment) -> np.ndarray:
        """The exact reading."""


@dataclass(frozen=True)
class Encoder(Sensor):
    """Coordinates of a joint: Encoder("knee", 1000, resolution=2 * pi / 4096)."""

    def refuse(self, trajectory):
        for segment in trajectory.segments:
            joint = segment.mechanism.joint(self.name)
            if joint.nq != joint.nv:
                raise ModelError(f"encoder of {self.name!r}: its coordinates are a quaternion; an IMU measures turning")

    def value(self, moment):
        return moment.q[moment.segment.mechanism.q_slice(self.name)]


@dataclass(frozen=True)
class IMU(Sensor):
    """Gyroscope and accelerometer on a link: angular velocity [rad/s], then specific force [m/s^2], in the axes of the
    sensor.

    Specific force is the mean over the last sampling period of acceleration minus gravity, as integrating sensors give
    it: it includes contact, impacts and everything else that moves the link. At rest it points up.

    position, rotation    of the sensor in the link's frame
    noise, ...            a number, or 6: of the gyroscope's three channels, then of the accelerometer's
    """

    position: tuple = (0.0, 0.0, 0.0)
    rotation: object = None
    needs_before = True

    def refuse(self, trajectory):
        as_vector("IMU: position", self.position)
        self.turn()
        for segment in trajectory.segments:
            segment.mechanism.find_link(self.name, "IMU")

    def turn(self) -> np.ndarray:
        return np.eye(3) if self.rotation is None else as_rotation("IMU: rotation", self.rotation)

    def value(self, moment):
        R, velocity, omega = self._motion(moment.segment.mechanism, moment.q, moment.v)
        _, earlier, _ = self._motion(*moment.before)
        axes = R @ self.turn()
        force = (velocity - earlier) / moment.period - moment.segment.mechanism.gravity
        return np.concatenate([axes.T @ omega, axes.T @ force])

    def _motion(self, mechanism, q, v):
        k = kinematics(mechanism, q, v)
        (R, _), (linear, angular) = k.poses[self.name], np.split(k.velocities[self.name], 2)
        return R, linear + np.cross(angular, R @ np.asarray(self.position, float)), angular


@dataclass(frozen=True)
class ForceTorque(Sensor):
    """Force [N] and moment [N m] that a joint or connection passes to its child link: as `bk.joint_forces`."""

    forces = True

    def refuse(self, trajectory):
        for segment in trajectory.segments:
            if self.name not in segment.mechanism.connections:
                segment.mechanism.find_joint(self.name, "ForceTorque: ", segment.mechanism.connections)

    def value(self, moment):
        mechanism, tau = moment.segment.mechanism, _torques(moment)
        contacts = contacts_at(moment.segment, moment.t) if mechanism.may_touch() else None
        forces = dynamics(mechanism, moment.q, moment.v, tau, contacts=contacts).forces
        name = self.name if self.name in forces else mechanism.links[mechanism.find_joint(self.name)].joint_name
        return forces[name]


def _torques(moment: Moment):
    """The recorded torques at a moment, interpolated."""
    tau = moment.segment.tau
    return None if tau is None else np.array([np.interp(moment.t, moment.segment.t, column) for column in tau.T])


@dataclass(frozen=True)
class Touch(Sensor):
    """Magnitude of the contact force on a link or shape [N], or on it by another one, `by`."""

    by: str | None = None
    forces = True

    def refuse(self, trajectory):
        as_names(trajectory, self._names())

    def _names(self) -> tuple[str, ...]:
        return (self.name,) if self.by is None else (self.name, self.by)

    def value(self, moment):
        return np.array([np.linalg.norm(total(contacts_at(moment.segment, moment.t), self._names()))])


@dataclass(frozen=True)
class Range(Sensor):
    """Distance from a point of a link along a ray to the nearest shape or plane [m]: Range("head", 20.0, most=10.0).

    position    of the sensor in the link's frame
    direction   of the ray in the link's frame; (n, 3) for n rays, a channel each, like a scanner
    most        largest distance, which is the reading where nothing is nearer

    Shapes of the link itself, and of links fixed to it, are not seen.
    """

    position: tuple = (0.0, 0.0, 0.0)
    direction: object = (1.0, 0.0, 0.0)
    most: float = math.inf

    def refuse(self, trajectory):
        as_vector("Range: position", self.position)
        for segment in trajectory.segments:
            self._distances(segment.mechanism, segment.mechanism.neutral())

    def value(self, moment):
        return self._distances(moment.segment.mechanism, moment.q)

    def _distances(self, mechanism: Mechanism, q) -> np.ndarray:
        found = raycast(mechanism, q, self.position, self.direction, link=self.name, most=self.most).distance
        return np.minimum(np.atleast_1d(found), self.most)
