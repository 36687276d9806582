"""Loop closure at the start of a simulation and on `connect`: frames captured from the present pose, gaps of given
frames, and loops closed to rounding."""

from __future__ import annotations

import contextlib
import math
from typing import NamedTuple

import numpy as np

from bunraku.checks import as_rotation, as_vector
from bunraku.entries.closed_solution import gaps, velocity_gaps
from bunraku.errors import BunrakuError, ConstraintError
from bunraku.evaluate import impact, poses, project
from bunraku.evaluate.loop_closure import closed_position
from bunraku.integrate.solver_memory import LOOPS_OPEN, OPEN_AT, OPEN_BY, REACHED, RECORD_FULL
from bunraku.mechanism import Connection, Mechanism
from bunraku.mechanism.links import GROUND
from bunraku.plan.build import Plan
from bunraku.plan.loop_plan import with_connections
from bunraku.tolerances import CLOSED, EXACT, TOO_OPEN


class Gap(NamedTuple):
    """Constraint violation of a connection: distance of its two frames from a pose that its joint allows."""

    length: float  # [m]
    angle: float   # [rad]


def capture(mechanism: Mechanism, q, link_a: str, link_b: str, a, b):
    """Frames (position, rotation) of a connection on both links; those given as (None, None) from the present pose.

    With neither given the joint frame is link b's own.
    """
    what = f"connection of {link_a!r} and {link_b!r}"
    where = {GROUND: (np.eye(3), np.zeros(3)), **poses(mechanism, q)}
    for link, side in ((link_a, "link_a"), (link_b, "link_b")):
        mechanism.find_link(link, f"{side} of the {what}")  # an error for people if there is none
    frames: list[tuple[np.ndarray, np.ndarray] | None] = []
    for (position, rotation), side in ((a, "a"), (b, "b")):
        given = position is not None or rotation is not None
        frames.append((as_vector(f"{what}: position_{side}", (0, 0, 0) if position is None else position),
                       as_rotation(f"{what}: rotation_{side}", rotation)) if given else None)
    first, second = frames
    if first is None:
        second = second or (np.zeros(3), np.eye(3))
        first = _seen_from(where[link_a], where[link_b], second)
    elif second is None:
        second = _seen_from(where[link_b], where[link_a], first)
    return first, second


def _seen_from(link, other, frame):
    """A frame of another link, in a link's own frame; poses as (rotation, position), frames the other way round."""
    (R, x), (R_other, x_other), (position, rotation) = link, other, frame
    return R.T @ (x_other + R_other @ position - x), R.T @ R_other @ rotation


def gap(mechanism: Mechanism, q, connection: Connection) -> Gap:
    """Gap of an existing or planned connection at the present pose of the links."""
    plan = with_connections(mechanism.plan("tree"), [connection], mechanism.length_scale)
    _, solution = gaps(plan, q)
    return Gap(*solution.gap(0))


def neutral_start(mechanism: Mechanism, prescribed=()) -> np.ndarray:
    """The coordinates at which a simulation starts by default: neutral, or the nearest ones that close all loops; if
    there are none, the neutral ones, whose gaps the check of the start names."""
    q = mechanism.neutral()
    plan = plan_of_moves(mechanism, prescribed)
    if plan.loops is not None:
        with contextlib.suppress(ConstraintError):
            q = closed_position(mechanism, plan, q)
    return q


def closed_start(mechanism: Mechanism, q, v, prescribed=()):
    """(q, v, description of the corrections) with loops closed to rounding. A ConstraintError names the loop whose gap
    or velocity exceeds the tolerance, and the remedy. Joints that are `prescribed` keep their motion."""
    plan, done = plan_of_moves(mechanism, prescribed), []
    if plan.loops is None:
        return q, v, ""
    gap = _widest(mechanism, plan, q, v, gaps(plan, q)[0], "open by", "m, rad")
    _widest(mechanism, plan, q, v, speeds := velocity_gaps(plan, q, v), "separating at", "m/s, rad/s")
    if gap > EXACT:
        q = closed_position(mechanism, plan, q)
        speeds = velocity_gaps(plan, q, v)
        done.append(f"open by {gap:.2g} (m, rad)")
    if speeds.max(initial=0.0) > EXACT:
        v = impact(mechanism, q, v, prescribed=prescribed)
        done.append(f"separating at {speeds.max():.2g} (m/s, rad/s)")
    return q, v, f"loops closed that were {' and '.join(done)}" if done else ""


def plan_of_moves(mechanism: Mechanism, prescribed) -> Plan:
    """The plan for closing loops, in which prescribed joints are locked."""
    if not prescribed:
        return mechanism.plan()
    return mechanism.driven_plan({mechanism.find_joint(name, "prescribed: ") for name in prescribed})


def _widest(mechanism, plan, q, v, worst, what: str, unit: str) -> float:
    """The largest gap, or gap velocity; a ConstraintError if it exceeds the tolerance."""
    most = worst.max(initial=0.0)
    if most > CLOSED:
        label = plan.loops.label(int(worst.argmax()))
        raise ConstraintError(f"{label} is {what} {most:.3g} ({unit}); {_remedy(mechanism, q, v)}")
    return most


def look_at_loops(mechanism: Mechanism, plan, memory, hold: float, status: int) -> tuple[float, int]:
    """(largest loop gap at the present state of a run [m, rad], status of the run).

    Loops are closed by the solver. With Baumgarte forces (`hold`) the run ends if a loop comes apart.
    """
    if plan.loops is None:
        return 0.0, status
    widest, worst = 0, np.inf
    q = memory.rows[0, :plan.nq].copy()
    if np.isfinite(q).all():
        with contextlib.suppress(BunrakuError):
            all_gaps = gaps(plan, q)[0]
            widest, worst = int(all_gaps.argmax()), float(all_gaps.max())
    if hold > 0.0 and status in (REACHED, RECORD_FULL) and not worst <= TOO_OPEN:
        status, memory.clock[OPEN_BY], memory.tally[OPEN_AT] = LOOPS_OPEN, worst, widest
    return worst, status


def _remedy(mechanism, q, v) -> str:
    """Advice for closing the loops."""
    try:
        project(mechanism, q, v)
    except ConstraintError as error:
        return f"bk.project does not close it either: {error}"
    return "start from bk.project(mechanism, q, v)"


def large_enough(gap: Gap) -> str:
    """A max_gap that admits this gap, rounded up to a few digits."""
    exponent = 10.0 ** (math.floor(math.log10(max(gap))) - 2)
    return f"{math.ceil(max(gap) / exponent * (1.0 + 1e-9)) * exponent:.3g}"
