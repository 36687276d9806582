"""Forces of a recorded motion: evaluated again at its states, with the recorded torques.

A trajectory has states, and torques if they were recorded; forces follow from these unless something else acted (a
pull, an external force, a prescribed motion). This is detected from the events, and from the motion itself:
changes of velocity must agree with the accelerations; or, of motions recorded at few instants, with a simulation from
one to the next.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from scipy.spatial.transform import Rotation

from bunraku.checks import hint
from bunraku.errors import BunrakuError, ModelError, NamingError, ShapeError
from bunraku.evaluate import dynamics, forward_dynamics, kinematics
from bunraku.evaluate.contact_forces import EVENTS, after_step, contact_forces, step_forces
from bunraku.evaluate.contacts import Contact, Contacts, no_contacts
from bunraku.mechanism import Free
from bunraku.mechanism.links import GROUND

if TYPE_CHECKING:
    from bunraku.simulation.records.trajectory import Segment, Trajectory

UNEXPLAINED = 0.2      # share of the changes of velocity: steps may be long
STILL = 1e-2           # [m/s^2, rad/s^2] accelerations of all coordinates together that are none
SAME = 1e-10           # [m, rad] poses that are the same
LOOKED_AT = 60         # steps by which a motion with contact is judged
SIMULATED = 10         # intervals that are simulated again if these do not explain it
NO_TORQUES = ("forces depend on the torques of the actuators, which this recording lacks, and its motion differs from "
              "that without torques; `bunraku run` and `sim.record_to(file, torques=True)` record them")
OTHER_FORCES = ("forces depend on what else acted on it (a pull, an external force, a prescribed motion), and "
                "that is not in this recording; `sim.dynamics()` has them while it runs")
OUTSIDE = ("external forces on ", "prescribed", "push ", "pull ")  # how events begin that tell of it


def refuse_unknown_forces(trajectory: Trajectory) -> None:
    """A ShapeError if forces do not follow from what is recorded."""
    if any(event.text.startswith(OUTSIDE) for event in trajectory.events):
        raise ShapeError(OTHER_FORCES)
    groups: dict[int, list[Segment]] = {}  # impacts make many short segments of one mechanism: those are judged as one
    for number, segment in enumerate(trajectory.segments):
        groups.setdefault(-1 if segment.mechanism.needs_contact() else number, []).append(segment)
    for group in groups.values():
        if not explained(group):
            raise ShapeError(NO_TORQUES if group[0].tau is None else OTHER_FORCES)


def explained(segments: list[Segment]) -> bool:
    """Whether the recorded torques explain the motion, up to a small remainder."""
    return _agrees(segments, _explained, LOOKED_AT) or _agrees(segments, _simulated, SIMULATED)


def _agrees(segments: list[Segment], compared, most: int) -> bool:
    """Whether changes of velocity, at `most` of all intervals, are as they should be."""
    each = [(0.0, 0.0, 1e-12), *(compared(segment, max(1, most // len(segments))) for segment in segments)]
    missed, moved, floor = np.sum(each, axis=0)
    return bool(missed <= UNEXPLAINED * moved + floor)


def _simulated(segment: Segment, most: int) -> tuple[float, float, float]:
    """As `_explained`, by simulations from one state to the next, torques interpolated."""
    from bunraku.simulation.simulation import Simulation

    m, missed, moved, span = segment.mechanism, 0.0, 0.0, 0.0
    for k in thinned(len(segment.t) - 1, most) if len(segment.t) > 2 else ():
        t, end, driven = segment.t[k:k + 2] - segment.t[k], segment.v[k + 1], None
        if segment.tau is not None:
            driven = partial(_between, t, segment.tau[k:k + 2])
        try:
            sim = Simulation(m, segment.q[k], segment.v[k], actuation=driven, record=None)
            sim.advance(float(t[1]))
            missed += float(np.abs(end - sim.v).sum())
        except BunrakuError:
            missed += np.inf
        moved, span = moved + float(np.abs(end - segment.v[k]).sum()), span + float(t[1])
    return missed, moved, STILL * span if m.needs_contact() else 0.0


def _explained(segment: Segment, most: int) -> tuple[float, float, float]:
    """Velocity changes unexplained by the accelerations, total velocity changes, and the absolute floor."""
    n, touches = len(segment.t), segment.mechanism.needs_contact()
    if n < 3:
        return 0.0, 0.0, 0.0
    k = thinned(n - 1, most) if touches else np.arange(n - 1)
    change, step = segment.v[k + 1] - segment.v[k], (segment.t[k + 1] - segment.t[k])[:, None]
    if touches and fixed_step(segment):
        predicted = np.array([_end_of_step(segment, int(i)) for i in k]) - segment.v[k]
    else:
        some = np.union1d(k, k + 1)
        given = segment.mechanism, segment.q[some], segment.v[some], _row(segment.tau, some)
        a = contact_forces(*given, limits=EVENTS)[0] if touches else forward_dynamics(*given)
        at = np.searchsorted(some, k)
        predicted = 0.5 * step * (a[at] + a[at + 1])
    return (float(np.abs(change - predicted).sum()), float(np.abs(change).sum()),
            STILL * float(step.sum()) if touches else 0.0)


def _between(times, tau, t, q, v) -> np.ndarray:
    """Torques between two recorded states, as an actuation."""
    return np.array([np.interp(t, times, column) for column in tau.T])


_step: WeakKeyDictionary[Segment, float] = WeakKeyDictionary()


def fixed_step(segment: Segment) -> float:
    """Step length of time-stepping; 0 for adaptive solvers. With time-stepping most steps have equal length (the last
    one of a run may be shorter), and most move the pose by the velocity at their end; others also remove
    penetration."""
    if segment not in _step:
        steps, m, found = np.diff(segment.t), segment.mechanism, 0.0
        if len(steps) > 3 and np.median(steps) >= (1.0 - 1e-6) * steps.max():
            k = thinned(len(steps), 25)
            h, q, v = steps[k, None], segment.q[k + 1], segment.v[k + 1]
            missed = np.abs(m.integrate(q, -h * v) - segment.q[k])
            before, after = kinematics(m, segment.q[k]), kinematics(m, q, v)
            for link in m.links:
                if isinstance(link.joint, Free):  # derivative of the position: velocity in world axes
                    at, name = m.q_slice(link.joint_name).start, link.name
                    missed[:, at:at + 3] = np.abs(after.poses[name][1] - before.poses[name][1]
                                                  - h * after.velocities[name][:, :3])
            changed = h * np.abs(v - segment.v[k]) + SAME  # adaptive solvers would miss by half of it
            found = float(steps.max()) if np.median(missed.max(axis=1) / changed.max(axis=1)) < 0.1 else 0.0
        _step[segment] = found
    return _step[segment]


def _end_of_step(segment: Segment, k: int) -> np.ndarray:
    """Velocity at the end of a step of time-stepping; of free joints in their axes there."""
    m, q, v, tau = segment.mechanism, segment.q[k], segment.v[k], _row(segment.tau, k)
    contacts = contacts_in(segment, k)
    a = dynamics(m, q, v, tau, contacts=contacts).a
    end = after_step(m, v, a, float(segment.t[k + 1] - segment.t[k]))
    for link in m.links:
        if isinstance(link.joint, Free):
            at, to = m.q_slice(link.joint_name).start + 3, m.v_slice(link.joint_name).start
            before, after = (Rotation.from_quat(np.roll(x[at:at + 4], -1)) for x in (q, segment.q[k + 1]))
            end[to:to + 3] = after.inv().apply(before.apply(end[to:to + 3]))
    return end


def contacts_in(segment: Segment, k: int) -> Contacts:
    """Contacts at the recorded state k; in fixed steps in the step that begins there."""
    m, q, v, tau, step = segment.mechanism, segment.q[k], segment.v[k], _row(segment.tau, k), fixed_step(segment)
    if not m.needs_contact():
        return no_contacts(m, q)
    if step:
        return step_forces(m, q, v, tau, float(segment.t[k + 1] - segment.t[k]) if k < len(segment.t) - 1 else step)
    return contact_forces(m, q, v, tau, limits=EVENTS)[1]


def _row(array, k):
    return None if array is None else array[k]


def contacts_at(segment: Segment, t: float) -> Contacts:
    """Contacts at any time of the segment, torques interpolated; in fixed steps those of the step."""
    t = min(max(t, float(segment.t[0])), float(segment.t[-1]))
    step = fixed_step(segment)
    if step or not segment.mechanism.needs_contact():
        return contacts_in(segment, int(np.searchsorted(segment.t, t + 1e-9 * step, side="right")) - 1)
    tau = segment.tau
    if tau is not None:
        tau = np.array([np.interp(t, segment.t, column) for column in tau.T])
    return contact_forces(segment.mechanism, *segment.at(t), tau, limits=EVENTS)[1]


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
        raise NamingError("contact_forces takes a link or a shape, or a pair such as ('left_foot', 'floor'), not "
                          f"{of!r}")
    known = {GROUND: None}
    for segment in trajectory.segments:
        known |= dict.fromkeys([*segment.mechanism.shapes, *segment.mechanism.link_names])
    for name in names:
        if name not in known:
            raise NamingError(f"there is no link or shape {name!r}{hint(name, list(known))}")
    return names


def thinned(n: int, most: int) -> np.ndarray:
    """At most `most` of n indices, evenly spaced, the first and the last included."""
    return np.unique(np.linspace(0, n - 1, max(min(n, 2), min(n, most))).astype(int))
