"""Limits of the drives of joints: information about a mechanism, for controllers."""

from __future__ import annotations

from typing import Any

import numpy as np

from bunraku.checks import as_floats
from bunraku.mechanism.joints import DRIVE


class Drives:
    """`effort`, `speed` and `clip_torques`; part of `Mechanism`."""

    links: Any
    nv: int
    nc: Any

    @property
    def effort(self) -> np.ndarray:
        """(nv,) largest torques and forces of the joints' drives [N m, N]; infinite where there is no limit."""
        return self._drives("effort")

    @property
    def speed(self) -> np.ndarray:
        """(nv,) largest rates that the joints are made for [rad/s, m/s]; infinite where there is no limit."""
        return self._drives("speed")

    def clip_torques(self, tau) -> np.ndarray:
        """Torques that the drives can give: tau within -effort and effort, of one state or a batch; torques of
        connections, if there are any, stay."""
        array = np.asarray(tau, float)
        width = self.nv + (self.nc if array.ndim and array.shape[-1] != self.nv else 0)
        limited, effort = as_floats("tau", tau, width).copy(), self.effort
        limited[..., :self.nv] = np.clip(limited[..., :self.nv], -effort, effort)
        return limited

    def _drives(self, name: str) -> np.ndarray:
        return np.concatenate([np.zeros(0), *(link.joint.drive[:, DRIVE.index(name)] for link in self.links)])
