"""Gamepads and 3-D mice: six velocities from the report of a browser's Gamepad API (`page/device.js`).

Velocities are numbers from -1 to 1: to the right, away, up as seen from the camera, and turns about these directions by
the right-hand rule.

    gamepad     left stick: right, away. Triggers: up (right), down (left). Right stick: turn about the vertical, tilt
                away and back. Shoulder buttons: roll
    3-D mouse   any device without the standard mapping of gamepads that has six axes: x to the right, y towards the
                person, z down, and turns about these (3Dconnexion's order and directions)
"""

from __future__ import annotations

import json
import math

import numpy as np

DEAD_ZONE = 0.12       # of an axis: devices at rest report noise
LARGEST = 8192         # characters of a report
MOST = 8               # devices


def read(text) -> list[dict]:
    """The devices of a report; a ValueError if it is invalid."""
    if not isinstance(text, str) or len(text) > LARGEST:
        raise ValueError("not the report of a device")
    devices = json.loads(text)
    if not isinstance(devices, list) or len(devices) > MOST:
        raise ValueError("a report is a list of devices")
    return [_checked(device) for device in devices]


def _checked(device) -> dict:
    if not isinstance(device, dict):
        raise ValueError("a device has an id, a mapping, axes and buttons")
    rows = {name: device.get(name, []) for name in ("axes", "buttons")}
    for row in rows.values():
        if not isinstance(row, list) or not all(isinstance(x, (int, float)) and math.isfinite(x) for x in row):
            raise ValueError("axes and buttons are finite numbers")
    return {"id": str(device.get("id", ""))[:60], "standard": device.get("mapping") == "standard", **rows}


def motion(devices: list[dict]) -> np.ndarray:
    """(6,): the sum of the velocities of all devices."""
    return np.clip(sum((_gamepad(d) if d["standard"] else _mouse(d) for d in devices), np.zeros(6)), -1.0, 1.0)


def _gamepad(device: dict) -> np.ndarray:
    x, y, turn, tilt = (_live(device["axes"], k) for k in range(4))
    left, right, down, up = (_live(device["buttons"], k) for k in (4, 5, 6, 7))
    return np.array([x, -y, up - down, tilt, right - left, -turn])


def _mouse(device: dict) -> np.ndarray:
    if len(device["axes"]) < 6:
        return np.zeros(6)
    x, y, z, turn_x, turn_y, turn_z = (_live(device["axes"], k) for k in range(6))
    return np.array([x, -y, -z, turn_x, -turn_y, -turn_z])


def _live(row: list, k: int) -> float:
    """An axis or button beyond its dead zone."""
    value = float(row[k]) if k < len(row) else 0.0
    return math.copysign(min(max(abs(value) - DEAD_ZONE, 0.0) / (1.0 - DEAD_ZONE), 1.0), value)


def name(devices: list[dict]) -> str:
    return " and ".join(device["id"] or "a device" for device in devices)
