"""Settling at a contact event: the contact modes anew from the state, in five steps.

    release      closed contacts where other features have taken over (`contact/features.py`) count as open from here on
    clear        closed contacts are projected: the smallest change of position and velocity removes the gap and slip
                 that the solver's errors have left
    close        contacts with a gap below CONTACT_CLOSED are closed, and their overlap is removed
    strike       if any of them approach each other there is an impact: the contact problem on velocities, with
                 friction and restitution. Rebounds that would last less than SHORTEST_FLIGHT are suppressed, so that
                 an infinite sequence of bounces comes to rest (Zeno); separations as short are held back. What presses
                 a contact together, and so ends its flight, are also the forces of the other contacts.
    take_modes   closed contacts that separate are open. For the others the contact problem on accelerations determines
                 which stay closed, sticking or sliding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.contact.contact_fields import OPEN, SLIDING, STICKING
from bunraku.contact.contact_memory import MARK, MARK_GAP
from bunraku.contact.contact_motion import HOLD_GAP, HOLD_SPEED, KEEP, LOOK, RELEASE
from bunraku.errors import ContactError
from bunraku.evaluate.contact_workspace import Acts, Answer, Touching
from bunraku.tolerances import (
    APPROACHES,
    CLOSES_SOON,
    CLOSING_DEPTH,
    CONTACT_CLOSED,
    DRIFTED,
    LARGE_MOVE,
    LEAVES_SLOWLY,
    SEPARATES,
    SHORTEST_FLIGHT,
    SLOWEST_JAM,
    SMALLEST_MARGIN,
    STILL_SLIP,
    TRACE,
)


class Immovable(ContactError):
    """Contacts that no contact force can keep apart."""


class Errors(NamedTuple):
    """Errors of the solver that may be in a state."""

    slow: float    # [m/s] slip without a direction
    slack: float   # [m] gaps and overlaps just after a start of the solver
    wider: float   # factor of the times and speeds within which contacts close or leave


class Struck(NamedTuple):
    """An impact."""

    v: np.ndarray            # before it
    closed: np.ndarray       # numbers of the contacts that take part
    restitution: np.ndarray  # of all contacts
    after: np.ndarray        # velocity after it


class Settling:
    """Impacts and modes at one state (q, v), which the steps change; modes and marks are those of the workspace."""

    look: Answer         # velocities at the closed contacts, where there are any

    def __init__(self, touching: Touching, q, v, acts: Acts, errors: Errors, before: np.ndarray, fresh: bool):
        """`before`: the modes until now, of which nothing is known if `fresh`."""
        self.touching, self.q, self.v, self.acts, self.errors = touching, q, v, acts, errors
        self.before, self.fresh = before, fresh
        self.known = before                       # the same without contacts whose features have changed
        self.gap: np.ndarray = np.empty(0)        # [m] of all contacts
        self.closed = np.empty(0, np.int64)       # numbers of the closed ones
        self.slip: np.ndarray = np.empty(0)       # [m/s] of those in `look`
        self.leaving = np.empty(0, np.int64)      # contacts that leave slowly
        self.texts: list[str] = []                # for the events of the trajectory
        self.jumped = False                       # whether velocities have jumped by an impact
        self.struck: Struck | None = None         # the impact; None also by the sequential law

    def settle(self) -> None:
        """All steps."""
        self.release()
        self.clear()
        self.close()
        if self.closed.size:
            self.strike()
            self.hold_back()
            self.take_modes()
        else:
            self.touching.set_modes(self.closed)
        self.mark()

    @property
    def released(self) -> bool:
        """Whether features have changed."""
        return not self.fresh and not np.array_equal(self.known, self.before)

    # -- the steps ---------------------------------------------------------------------------------------------------

    def release(self) -> None:
        """Open the contacts whose features have changed."""
        touch = self.touching.touch
        if self.fresh:
            touch.features[:] = 0.0
        else:
            touch.modes[:] = self.before
            self.touching.solve(RELEASE, self.q, self.v, self.acts)
            self.known = touch.modes.copy()

    def clear(self) -> None:
        """No gap, normal velocity or slip where contacts were closed or stuck."""
        if not self.fresh and (self.known != OPEN).any():
            self.remove_gaps(self.known)
            self.touching.touch.modes[:] = self.known
            self.v = self.without_slip()

    def close(self) -> None:
        """The closed contacts, without overlap."""
        touching = self.touching
        self.gap = touching.gaps(self.q).copy()
        self.closed = self.found_closed()
        self.keep()
        if not self.fresh and (self.gap[self.closed] < -CONTACT_CLOSED).any():
            touching.set_modes(self.closed)
            self.remove_gaps(touching.touch.modes.copy())
            self.gap = touching.gaps(self.q).copy()
            self.closed = np.union1d(self.closed, self.found_closed())
            self.keep()

    def strike(self) -> None:
        """The impact, if closed contacts approach each other."""
        touching, look = self.touching, self.seen()
        if not (look.before[:, 0] < -APPROACHES).any():
            return
        if touching.in_turn:
            self.v, answer = touching.impulses_in_turn(self.q, self.v, self.acts, self.closed, SHORTEST_FLIGHT)
        else:
            v, closed, restitution = self.v, self.closed.copy(), self.restitution()
            self.v, answer = touching.impulses(self.q, v, self.acts, closed, restitution)
            self.struck = Struck(v, closed, restitution, self.v)
        strong = (answer.force[:, 0] > 0) & (answer.before[:, 0] < -DRIFTED)
        self.jumped = bool(strong.any())
        self.texts += [f"impact of {touching.pair(int(k))}: {p:.4g} {touching.impulse_unit(int(k))}" for k, p in
                       zip(answer.rows[strong], np.linalg.norm(answer.force[strong], axis=1), strict=True)]
        look = self.seen()
        if (look.before[:, 0] < -DRIFTED).any():
            pair = touching.pair(int(look.rows[look.before[:, 0].argmin()]))
            raise Immovable(f"nothing keeps {pair} apart: no force of theirs can move them, since the motion of their "
                            "joints is prescribed, or connections hold them")

    def hold_back(self) -> None:
        """Contacts that would separate only briefly stay closed, and with them all that do not separate: the projection
        in the metric of the mass matrix, which has less energy."""
        touching, look = self.touching, self.look
        apart = look.before[:, 0]
        slowly = apart > SEPARATES
        if slowly.any():
            slowly &= 2 * apart < SHORTEST_FLIGHT * touching.pressing(self.q, self.v, self.acts, look)
        if slowly.any():
            touching.set_modes(look.rows[slowly | (apart <= SEPARATES)], SLIDING)
            touching.solve(HOLD_SPEED, self.q, self.v, self.acts)
            self.v = self.v + touching.touch.delta
            self.seen()

    def take_modes(self) -> None:
        """Modes of the contacts that stay closed; the velocity, without slip below the solver's errors. Slip without an
        acceleration solution (Painleve) is ended by an impulse if it is slow enough."""
        touching, look, limit = self.touching, self.look, 1.5 * self.errors.slow
        stays = look.before[:, 0] <= SEPARATES
        self.slip = np.hypot(look.before[:, 1], look.before[:, 2])
        self.closed = look.rows[stays]
        while self.closed.size:
            sticks = np.where(self.known[look.rows] == STICKING, max(DRIFTED, 2.0 * limit), limit)
            try:
                self.v = self.modes_with(stays & (self.slip < sticks))
                break
            except ContactError:
                limit *= 10.0
                if limit > SLOWEST_JAM:
                    raise
        else:
            touching.set_modes(self.closed)
        self.leaving = look.rows[(touching.touch.modes[look.rows] == OPEN) & (
            look.before[:, 0] < LEAVES_SLOWLY * self.errors.wider)]

    def mark(self) -> None:
        """Gaps at which open contacts close and speeds at which slip ends; texts of the changes."""
        touching, slow = self.touching, self.errors.slow
        touch = touching.touch
        mark = touch.mark.reshape(-1, MARK)
        mark[:, MARK_GAP] = np.minimum(np.where(np.isfinite(self.gap), self.gap, 0.0), 0.0) - CLOSING_DEPTH
        mark[self.leaving, MARK_GAP] -= self.errors.slack
        if self.closed.size:
            rows = self.look.rows
            slides = touch.modes[rows] == SLIDING
            mark[rows[slides], MARK_GAP] = np.where(self.slip[slides] > 1.5 * slow, slow, -slow)
        changed = np.flatnonzero(self.before != touch.modes)
        self.texts += dict.fromkeys(self.touching.contact_change(int(k), int(touch.modes[k])) for k in changed)
        touching.solve(KEEP, self.q, self.v, self.acts)
        changes = bool(self.texts) or self.released
        touch.margin[0] = 0.0 if changes else min(1e-3, max(SMALLEST_MARGIN, 10.0 * touch.margin[0]))

    # -- parts of the steps ------------------------------------------------------------------------------------------

    def keep(self) -> None:
        """Keep the features of the closed contacts, and no others."""
        self.touching.set_modes(self.closed)
        self.touching.solve(KEEP, self.q, self.v, self.acts)

    def seen(self) -> Answer:
        """Velocities of the closed contacts, kept in `look`."""
        self.touching.set_modes(self.closed)
        self.look = self.touching.solve(LOOK, self.q, self.v, self.acts)
        return self.look

    def found_closed(self) -> np.ndarray:
        """Numbers of the closed contacts: by their gap, because they were closed and have drifted, or because they
        close within CLOSES_SOON. (An event is located on the solver's polynomial; projecting the contacts that were
        closed moves others by the errors of the step.)"""
        touching, gap = self.touching, self.gap
        closed = (gap <= CONTACT_CLOSED) | ((self.known != OPEN) & (gap <= DRIFTED))
        near = np.flatnonzero(~closed & (gap <= self.errors.slack))
        if near.size:
            touching.set_modes(near)
            look = touching.solve(LOOK, self.q, self.v, self.acts)
            closed[look.rows[gap[look.rows] <= -CLOSES_SOON * self.errors.wider * look.before[:, 0]]] = True
        return np.flatnonzero(closed)

    def modes_with(self, slow) -> np.ndarray:
        """Modes of the closed contacts if those marked `slow` have no slip; the velocity without it."""
        touching, look, after, left = self.touching, self.look, self.v, STILL_SLIP
        if (self.slip[slow] > 0.0).any():
            touching.set_modes(self.closed, SLIDING)
            touching.touch.modes[look.rows[slow]] = STICKING
            after = self.without_slip()
            left = STILL_SLIP if after is not self.v else float(self.slip[slow].max())
        touching.set_modes(self.closed)
        touching.forces(self.q, after, self.acts, self.closed, left)
        return after

    def without_slip(self) -> np.ndarray:
        """The velocity with the normal velocity of closed contacts and the slip of sticking ones removed, by the
        present modes. Unchanged if that would remove more than a trace of its energy: where contact constraints are
        nearly dependent, a small slip may be a large motion."""
        touching = self.touching
        answer = touching.solve(HOLD_SPEED, self.q, self.v, self.acts)
        taken = 0.5 * abs(float((answer.force * answer.before).sum()))
        kinetic = touching.mechanism.energy(self.q, self.v)[0]
        return self.v + touching.touch.delta if taken <= TRACE * kinetic + 1e-12 else self.v

    def remove_gaps(self, modes) -> None:
        """Move to the pose without gaps where contacts are closed, unless that would be a large move."""
        touching = self.touching
        for _ in range(2):
            touching.touch.modes[:] = modes
            touching.solve(HOLD_GAP, self.q, self.v, self.acts)
            if np.abs(touching.touch.delta).max(initial=0.0) > LARGE_MOVE:
                break
            self.q = touching.mechanism.integrate(self.q, touching.touch.delta)

    def restitution(self) -> np.ndarray:
        """Coefficient of restitution of every contact; zero for rebounds that would be too short."""
        touching, look = self.touching, self.look
        e = np.zeros(touching.contacts)
        own = touching.arrays.contact_f[look.rows, c.RESTITUTION]
        flight = -2.0 * own * np.minimum(look.before[:, 0], 0.0)
        shortest = SHORTEST_FLIGHT * touching.pressing(self.q, self.v, self.acts, look)
        e[look.rows] = np.where(flight < shortest, 0.0, own)
        return e
