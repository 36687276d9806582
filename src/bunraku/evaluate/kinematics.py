"""Poses, velocities, Jacobians, centre of mass and momentum, by name."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from bunraku.checks import as_vector
from bunraku.entries.kinematics_entries import observation, point_jacobian
from bunraku.errors import ShapeError
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.mechanism.named import Named
from bunraku.plan import fields as f


class Kinematics:
    """Poses and motion of a mechanism; world axes, one state or a batch (leading axis)."""

    def __init__(self, mechanism: Mechanism, q, v=None, a=None):
        self.mechanism = as_mechanism(mechanism)
        self._q = np.array(q, float)
        self._links, self._sums = observation(mechanism.plan(), q, v, a)
        self._index = {name: k for k, name in enumerate(mechanism.link_names)}

    def _each(self, function):
        found = {name: function(self._links[..., k, :]) for name, k in self._index.items()}
        return Named(found, self.mechanism.no_link)

    @cached_property
    def poses(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """{link: (rotation, position)} of the link frames."""
        return self._each(lambda s: (s[..., :9].reshape(*s.shape[:-1], 3, 3), s[..., 9:12]))

    @cached_property
    def velocities(self) -> dict[str, np.ndarray]:
        """{link: (linear, angular)}: velocity of the link frame's origin, angular velocity."""
        return self._each(lambda s: np.concatenate([s[..., 15:18], s[..., 12:15]], axis=-1))

    @cached_property
    def accelerations(self) -> dict[str, np.ndarray]:
        """{link: (linear, angular)}: acceleration of the link frame's origin (without gravity), angular."""
        return self._each(lambda s: np.concatenate([s[..., 21:24], s[..., 18:21]], axis=-1))

    @property
    def mass(self) -> float:
        return float(self._sums[..., 11].flat[0])

    @property
    def com(self) -> np.ndarray:
        """Centre of mass."""
        return self._sums[..., 0:3] / self.mass

    @property
    def com_velocity(self) -> np.ndarray:
        return self._sums[..., 3:6] / self.mass

    @property
    def momentum(self) -> np.ndarray:
        """(linear, angular about the centre of mass)."""
        linear = self._sums[..., 3:6]
        return np.concatenate([linear, self._sums[..., 6:9] - np.cross(self.com, linear)], axis=-1)

    @property
    def kinetic_energy(self):
        return self._sums[..., 9]

    @property
    def potential_energy(self):
        return self._sums[..., 10]

    def jacobian(self, link: str, point=(0.0, 0.0, 0.0)) -> np.ndarray:
        """J (6, nv) with J v = (velocity of a point of the link, angular velocity), world axes.

        `point` is in the link's frame. For one state only.
        """
        if self._links.ndim != 2:
            raise ShapeError("jacobian takes one state; make one Kinematics per state of the batch")
        plan, k = self.mechanism.plan(), self.mechanism.find_link(link, "jacobian")
        if k < 0:
            return np.zeros((6, plan.nv))
        state = self._links[k]
        x = state[9:12] + state[:9].reshape(3, 3) @ as_vector("jacobian: point", point)
        return point_jacobian(plan, np.ascontiguousarray(self._q, float), x, int(plan.link_i[k, f.LINK_BODY]))

    def __repr__(self):
        return f"Kinematics of {self.mechanism.name}: {len(self._index)} links"


def kinematics(mechanism: Mechanism, q, v=None, a=None) -> Kinematics:
    """Poses, velocities, accelerations, centre of mass, momentum and Jacobians of one state or a batch."""
    return Kinematics(mechanism, q, v, a)


def poses(mechanism: Mechanism, q) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """{link: (rotation, position)} of every link frame in the world."""
    return Kinematics(mechanism, q).poses
