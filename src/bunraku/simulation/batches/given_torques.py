"""Torques that a step of worlds is given, checked, as rows of compiled code: of each copy, step after step."""

from __future__ import annotations

import numpy as np

from bunraku.checks import as_array, as_count, as_finite
from bunraku.errors import ShapeError
from bunraku.simulation.batches.copies import listed
from bunraku.simulation.batches.group import Group, torques_of


class GivenTorques:
    """Torques for the copies of a group; `strength` (n, torques) multiplies them, if it is set."""

    def __init__(self, group: Group):
        self.group, self.n, self.torques = group, len(group.y), torques_of(group.plan)
        self.rows, self.none = np.zeros((self.n, self.torques)), np.zeros((0, 0))
        self.strength: np.ndarray | None = None

    def strengthen(self, factors) -> None:
        """Set `strength`: one factor for each copy, or one for each of its torques; None for 1."""
        if factors is not None:
            given = as_finite("strength", factors)
            if given.shape == (self.n,):
                given = given[:, None]
            if given.shape not in ((self.n, 1), (self.n, self.torques)):
                raise ShapeError(f"strength has shape {given.shape}; it must be ({self.n},) or "
                                 f"({self.n}, {self.torques})")
            factors = np.broadcast_to(given, (self.n, self.torques)).copy()
        self.strength = factors

    def of(self, tau, count) -> tuple[np.ndarray, int]:
        """((n, T torques) or nothing, steps)."""
        repeat = 1 if count is None else as_count("count", count)
        if tau is None:
            return self.none, repeat
        given, nv = as_array("tau", tau), self.group.nv
        width = given.shape[-1] if given.ndim else 0
        shapes = given.ndim == 1 or (given.ndim in (2, 3) and given.shape[0] == self.n)
        if not shapes or width not in (nv, self.torques) or 0 in given.shape[:-1]:
            more = f" (or {self.torques} with the connections)" if self.torques > nv else ""
            raise ShapeError(f"tau has shape {given.shape}; it must be ({nv},), ({self.n}, {nv}) or "
                             f"({self.n}, T, {nv}){more}: torques in the order of v, for each copy and each step")
        if given.ndim == 3 and count is not None:
            raise ShapeError(f"tau has torques for {given.shape[1]} steps, so count={count} has no meaning")
        if width > nv and self.group.structures:
            raise ShapeError("torques of connections have no meaning while copies have connections of their own "
                             f"(copies {listed(sorted(self.group.structures))}); give those of the joints, ({nv},)")
        if not np.isfinite(given).all():
            self.refuse_not_finite(given)
        if self.strength is not None:
            given = given * (self.strength if given.ndim < 3 else self.strength[:, None])[..., :width]
        if given.ndim == 2 and width == self.torques:
            return given, repeat
        if given.ndim < 3:
            self.rows[:, :width] = given
            self.rows[:, width:] = 0.0
            return self.rows, repeat
        steps = given.shape[1]
        if width < self.torques:
            given = np.concatenate([given, np.zeros((self.n, steps, self.torques - width))], axis=2)
        return np.ascontiguousarray(given).reshape(self.n, -1), steps

    def refuse_not_finite(self, tau) -> None:
        """An error that names the copy and the joint."""
        bad = np.argwhere(~np.isfinite(tau))
        if not len(bad):
            return
        group, first = self.group, tuple(bad[0].tolist())
        names, place = group.plan.names, first[-1]
        joint = repr(names[group.plan.dof_link[place]][1]) if place < group.nv else "a connection"
        if tau.ndim == 1:
            raise ShapeError(f"tau[{place}] of joint {joint} is {tau[first]}; it must be finite. Nothing has moved")
        copies = np.unique(bad[:, 0])
        more = f"; so are torques of {len(copies) - 1} other copies" if len(copies) > 1 else ""
        raise ShapeError(f"tau{list(first)}, of copy {first[0]} and joint {joint}, is {tau[first]}{more} "
                         f"(copies {listed(copies)}); torques must be finite. Nothing has moved")
