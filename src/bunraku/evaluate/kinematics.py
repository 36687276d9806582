"""Poses, velocities, Jacobians, centre of mass and momentum, by name."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from bunraku.checks import as_vector
from bunraku.entries.kinematics_entries import observation
from bunraku.entries.motion_matrix_entries import centroidal, jacobians
from bunraku.errors import ModelError
from bunraku.evaluate.mobility import Singularity, singularity
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.mechanism.named import Named


class Kinematics:
    """Poses and motion of a mechanism; world axes, one state or a batch (leading axis)."""

    def __init__(self, mechanism: Mechanism, q, v=None, a=None):
        self.mechanism = as_mechanism(mechanism)
        self._q, self._v = np.array(q, float), None if v is None else np.array(v, float)
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

        `point` is in the link's frame.
        """
        return self._jacobians("jacobian", link, point)[0]

    def jacobian_rate(self, link: str, point=(0.0, 0.0, 0.0)) -> np.ndarray:
        """dJ/dt (6, nv): J a + dJ/dt v are the acceleration of a point of the link and the angular acceleration."""
        return self._jacobians("jacobian_rate", link, point)[1]

    def _jacobians(self, what, link, point):
        plan, k = self.mechanism.plan(), self.mechanism.find_link(link, what)
        if k < 0:
            none = np.zeros((*self._links.shape[:-2], 6, plan.nv))
            return none, none
        return jacobians(plan, k, as_vector(f"{what}: point", point), self._q, self._v)

    @cached_property
    def _momentum_matrices(self):
        if not self.mass > 0.0:
            raise ModelError(f"{self.mechanism.name} has no mass, so it has no centre of mass")
        return centroidal(self.mechanism.plan(), self._q, self._v)

    @property
    def momentum_matrix(self) -> np.ndarray:
        """A (6, nv), the centroidal momentum matrix: A v is `momentum`."""
        return self._momentum_matrices[0]

    @property
    def momentum_matrix_rate(self) -> np.ndarray:
        """dA/dt (6, nv): A a + dA/dt v is the rate of `momentum`, the sum of all external forces and their moments."""
        return self._momentum_matrices[1]

    @property
    def com_jacobian(self) -> np.ndarray:
        """(3, nv): its product with v is `com_velocity`."""
        return self.momentum_matrix[..., :3, :] / self.mass

    def singularity(self, link: str, point=(0.0, 0.0, 0.0)) -> Singularity:
        """How far the joints (with loops closed) can move a point of a link in every direction."""
        return singularity(self.mechanism, self._q, self.jacobian(link, point))

    def __repr__(self):
        return f"Kinematics of {self.mechanism.name}: {len(self._index)} links"


def kinematics(mechanism: Mechanism, q, v=None, a=None) -> Kinematics:
    """Poses, velocities, accelerations, centre of mass, momentum and Jacobians of one state or a batch."""
    return Kinematics(mechanism, q, v, a)


def poses(mechanism: Mechanism, q) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """{link: (rotation, position)} of every link frame in the world."""
    return Kinematics(mechanism, q).poses
