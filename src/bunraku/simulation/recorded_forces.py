"""Forces of a recorded motion: evaluated again at its states, with the torques that it recorded.

A trajectory has states, and torques if they were recorded; forces follow from these unless something else acted (a pull,
an external force, a prescribed motion). Whether it did is seen from the events, and from the motion itself: velocities
must change as the accelerations say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bunraku.checks import hint
from bunraku.errors import ModelError, NamingError, ShapeError
from bunraku.evaluate import forward_dynamics
from bunraku.evaluate.contact_forces import EVENTS, FIXED_STEPS, Limits, contact_forces
from bunraku.evaluate.contacts import Contact, Contacts, no_contacts
from bunraku.mechanism.links import GROUND

if TYPE_CHECKING:
    from bunraku.simulation.trajectory import Segment, Trajectory

UNEXPLAINED = 0.2      # share of the changes of velocity: steps may be long
IMPACTS = 0.2          # share of the steps of a motion with contact, those that fit worst, which may have impacts
LOOKED_AT = 200        # steps by which a motion with contact is judged
NO_TORQUES = ("forces depend on the torques of the actuators, which this recording lacks (without any it would move "
              "otherwise); `bunraku run` and `sim.record_to(file, torques=True)` record them")
OTHER_FORCES = ("forces depend on what else acted on it (a pull, an external force, a prescribed motion), and "
                "that is not in this recording; `sim.dynamics()` has them while it runs")
OUTSIDE = ("external forces on ", "prescribed", "push ", "pull ")  # how events begin that tell of it


def refuse_unknown_forces(trajectory: Trajectory) -> None:
    """A ShapeError if forces do not follow from what is recorded."""
    if any(event.text.startswith(OUTSIDE) for event in trajectory.events):
        raise ShapeError(OTHER_FORCES)
    for segment in trajectory.segments:
        if not explained(segment):
            raise ShapeError(NO_TORQUES if segment.tau is None else OTHER_FORCES)


def explained(segment: Segment) -> bool:
    """Whether the motion is, by and large, the one that the recorded torques cause."""
    n = len(segment.t)
    if n < 3:
        return True
    if not segment.mechanism.may_touch():
        a = forward_dynamics(segment.mechanism, segment.q, segment.v, segment.tau)
        change, predicted = np.diff(segment.v, axis=0), 0.5 * np.diff(segment.t)[:, None] * (a[1:] + a[:-1])
        return bool(np.abs(change - predicted).sum() <= UNEXPLAINED * (np.abs(change).sum() + 1e-12))
    first = thinned(n - 1, LOOKED_AT)
    accelerations = {k: accelerations_and_contacts(segment, k)[0] for k in {*first, *(first + 1)}}
    step = segment.t[first + 1] - segment.t[first]
    change = segment.v[first + 1] - segment.v[first]
    predicted = 0.5 * step[:, None] * np.array([accelerations[k] + accelerations[k + 1] for k in first])
    missed, moved = np.abs(change - predicted).sum(axis=1), np.abs(change).sum(axis=1)
    some = np.argsort(missed - UNEXPLAINED * moved)[:max(1, round((1.0 - IMPACTS) * len(first)))]
    return bool(missed[some].sum() <= UNEXPLAINED * moved[some].sum() + 1e-2 * step[some].sum())


def limits_of(segment: Segment) -> Limits:
    """Time-stepping is known by its steps, which are alike; the last one may be shorter."""
    steps = np.diff(segment.t)[:-1]
    alike = len(steps) > 2 and np.ptp(steps) <= 1e-6 * steps[0]
    return FIXED_STEPS if alike else EVENTS


def accelerations_and_contacts(segment: Segment, k: int) -> tuple[np.ndarray, Contacts]:
    """At the recorded state k."""
    return _evaluated(segment, segment.q[k], segment.v[k], None if segment.tau is None else segment.tau[k])


def contacts_at(segment: Segment, t: float) -> Contacts:
    """At any time of the segment, torques interpolated; in fixed steps, whose velocities jump, at the state before."""
    t = min(max(t, float(segment.t[0])), float(segment.t[-1]))
    if limits_of(segment) is FIXED_STEPS:
        k = int(np.searchsorted(segment.t, t + 1e-9 * (segment.t[1] - segment.t[0]), side="right")) - 1
        return accelerations_and_contacts(segment, k)[1]
    tau = segment.tau
    if tau is not None:
        tau = np.array([np.interp(t, segment.t, column) for column in tau.T])
    return _evaluated(segment, *segment.at(t), tau)[1]


def _evaluated(segment: Segment, q, v, tau) -> tuple[np.ndarray, Contacts]:
    m = segment.mechanism
    if not m.may_touch():
        return np.zeros(m.nv), no_contacts(m, q)
    return contact_forces(m, q, v, tau, limits=limits_of(segment))


def refuse_no_shapes(trajectory: Trajectory) -> None:
    if not any(segment.mechanism.shapes for segment in trajectory.segments):
        raise ModelError("nothing can touch in this motion: its mechanism has no shapes; m.add_shape and m.add_plane "
                         "give it some")


def total(contacts: Contacts, of: tuple[str, ...]) -> np.ndarray:
    """(3,) force on of[0], a link or shape, by everything or by of[1] [N]."""
    force = np.zeros(3)
    for contact in contacts:
        assert contact.force is not None
        sides = [_is(contact, side, of) for side in (0, 1)]
        if sides[0]:
            force += contact.force
        if sides[1]:
            force -= contact.force
    return force


def _is(contact: Contact, side: int, of: tuple[str, ...]) -> bool:
    """Whether a side of a contact is of[0], and the other side of[1] if that is given."""
    names = [{contact.pair[k], contact.links[k]} for k in (side, 1 - side)]
    return all(name in known for name, known in zip(of, names, strict=False))


def as_names(trajectory: Trajectory, of) -> tuple[str, ...]:
    """The name of a link or shape, or two of them."""
    names = (of,) if isinstance(of, str) else tuple(of) if isinstance(of, (tuple, list)) else ()
    if len(names) not in (1, 2):
        raise NamingError(f"contact_forces is about a link or a shape, or a pair of them such as ('left_foot', 'floor'), "
                          f"not {of!r}")
    known = {GROUND: None}
    for segment in trajectory.segments:
        known |= dict.fromkeys([*segment.mechanism.shapes, *segment.mechanism.link_names])
    for name in names:
        if name not in known:
            raise NamingError(f"there is no link or shape {name!r}{hint(name, list(known))}")
    return names


def thinned(n: int, most: int) -> np.ndarray:
    """At most so many of n numbers, the first and the last included."""
    return np.unique(np.linspace(0, n - 1, max(min(n, 2), min(n, most))).astype(int))
