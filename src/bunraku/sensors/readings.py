"""Readings of sensors during a recorded motion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bunraku.checks import as_count, hint
from bunraku.errors import ModelError, ShapeError
from bunraku.sensors.kinds import Moment, Sensor
from bunraku.sensors.noise import normal
from bunraku.simulation import Simulation
from bunraku.simulation.records.recorded_forces import refuse_unknown_forces
from bunraku.simulation.records.trajectory import Trajectory, as_trajectory
from bunraku.simulation.watching import with_torques

KINDS = ("IMU", "Encoder", "ForceTorque", "Touch", "Range")
CONSTANT = -1  # number of the sample by which biases are drawn


class Reading(NamedTuple):
    """Readings of one sensor."""

    t: np.ndarray       # (n,) whole multiples of the sampling period
    values: np.ndarray  # (n, channels)


def read(motion: Simulation | Trajectory, sensors: Mapping[str, Sensor], seed: int = 0) -> dict[str, Reading]:
    """Readings of sensors during a motion, {name: (t, values)}, each at its own rate.

    motion   a simulation (with torques of its actuation at its present parameters), or a trajectory (with its recorded
             torques, if any). Forces in joints and contacts need all forces that acted: motions with pulls or external
             forces are rejected
    sensors  {name: sensor}; names are free
    seed     of noise and biases: errors depend only on it, on the sensor's place in `sensors` and on the number of the
             sample
    """
    if not isinstance(sensors, Mapping):
        raise ShapeError(f"sensors must be a dictionary {{name: sensor}}, not {sensors!r:.60}")
    for name, sensor in sensors.items():
        if not isinstance(sensor, Sensor):
            raise ModelError(f"{name!r}: {sensor!r:.60} is no sensor of bk.sensors"
                             f"{hint(type(sensor).__name__, KINDS, close=True)}")
    forces = any(sensor.forces for sensor in sensors.values())
    torques = forces and isinstance(motion, Simulation)
    trajectory = with_torques(motion) if torques and isinstance(motion, Simulation) else as_trajectory(motion)
    if forces:
        refuse_unknown_forces(trajectory)
    seed = as_count("seed", seed, 0)
    return {name: _readings(trajectory, sensor, seed, place) for place, (name, sensor) in enumerate(sensors.items())}


def _readings(trajectory: Trajectory, sensor: Sensor, seed: int, place: int) -> Reading:
    sensor.refuse(trajectory)
    period = 1.0 / sensor.rate
    if not trajectory.segments:
        raise ShapeError("the motion is empty")
    begin, end = float(trajectory.segments[0].t[0]), float(trajectory.segments[-1].t[-1])
    first = math.ceil((begin + (period if sensor.needs_before else 0.0)) * sensor.rate - 1e-6)
    samples = np.arange(first, math.floor(end * sensor.rate + 1e-6) + 1)
    times = np.clip(samples * period, begin, end)
    rows = [sensor.value(_moment(trajectory, t, max(begin, t - period), period)) for t in times.tolist()]
    channels = max((len(row) for row in rows), default=0)
    if any(len(row) != channels for row in rows):
        raise ShapeError(f"the structure of {sensor.name!r} changes during this motion; read its segments apart")
    values = np.array(rows).reshape(len(rows), channels)
    numbers = 64 * place + np.arange(channels)
    values += _spread(sensor, "bias", channels) * normal(seed, CONSTANT, numbers)
    values += _spread(sensor, "noise", channels) * normal(seed, samples[:, None], numbers)
    step = _spread(sensor, "resolution", channels)
    coarse = step > 0
    values[:, coarse] = np.round(values[:, coarse] / step[coarse]) * step[coarse]
    return Reading(times, values)


def _spread(sensor: Sensor, word: str, channels: int) -> np.ndarray:
    given = np.asarray(getattr(sensor, word), float)
    if given.shape not in ((), (channels,)):
        raise ShapeError(f"{word} of {sensor.name!r} must be a number or {channels} of them, one for each channel")
    return np.broadcast_to(given, channels)


def _moment(trajectory: Trajectory, t: float, before: float, period: float) -> Moment:
    segment = [s for s in trajectory.segments if s.t[0] <= t][-1]
    (_, q, v), (earlier,) = trajectory.sample(t)[0], trajectory.sample(before)
    return Moment(t, segment, q, v, period, earlier)
