"""Sensors: readings of a recorded motion at their own rates, with noise by seed.

kinds.py       encoder, IMU, force-torque sensor, touch, range
readings.py    `read`: the readings of sensors during a motion
noise.py       normal random numbers by seed, sample and channel, in Python and in compiled functions
"""

from bunraku.sensors.kinds import IMU, Encoder, ForceTorque, Range, Sensor, Touch
from bunraku.sensors.noise import normal
from bunraku.sensors.readings import Reading, read

__all__ = ["IMU", "Encoder", "ForceTorque", "Range", "Reading", "Sensor", "Touch", "normal", "read"]
