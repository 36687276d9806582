"""Changes of structure while a simulation runs. They work on a copy of the mechanism, which the simulation adopts when
everything has succeeded: if anything fails nothing has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bunraku.checks import as_size
from bunraku.errors import ShapeError, SimulationError
from bunraku.evaluate import impact
from bunraku.evaluate.loop_closure import closed_position
from bunraku.mechanism import Connection, Coupling, Mechanism
from bunraku.simulation.closing import Gap, capture, gap, large_enough, plan_of_moves
from bunraku.tolerances import EXACT

if TYPE_CHECKING:
    from bunraku.simulation.running import Running


class Joined(NamedTuple):
    """A mechanism with a further connection, and its state when the connection has become rigid."""

    mechanism: Mechanism
    connection: Connection
    q: np.ndarray
    v: np.ndarray
    impulses: dict[str, np.ndarray]


KEEPS = "keeps"
"""A change of structure that leaves the state as it is."""


class Strikes(NamedTuple):
    """A change of structure by a connection or coupling, whose impact changes velocities."""

    made: Connection | Coupling
    frame_a: Any  # (position, rotation) as given, or the offset of a coupling; None where they are captured
    frame_b: Any


def joined(mechanism: Mechanism, q, v, link_a: str, link_b: str, joint, name: str | None, frame_a, frame_b,
           actuated: bool | None, max_gap: float, where: str, prescribed=(), trajectory=None) -> Joined:
    """A copy of the mechanism with a further connection at (q, v); frames are (position, rotation), or (None, None)
    for those that the links have now."""
    a, b = capture(mechanism, q, link_a, link_b, frame_a, frame_b)
    mechanism = mechanism.copy()
    connection = mechanism.connect(link_a, link_b, joint, name, position_a=a[0], rotation_a=a[1], position_b=b[0],
                                   rotation_b=b[1], actuated=actuated)
    open_ = gap(mechanism, q, connection)
    if not max(open_) <= max_gap:
        raise SimulationError(f"connect {connection.name!r} {where}: the frames on {link_a!r} and "
                              f"{link_b!r} are {open_.length:.3g} m and {open_.angle:.3g} rad from where "
                              f"{connection.joint!r} lets them be; leave one side's frame out to capture it, bring "
                              f"the links together, or allow max_gap={large_enough(open_)}", trajectory)
    if max(open_) > EXACT:
        plan = plan_of_moves(mechanism, prescribed)
        q = closed_position(mechanism, plan, q)  # the velocity stays for the impact to change, and to count
    v, impulses = impact(mechanism, q, v, impulses=True, prescribed=prescribed)
    return Joined(mechanism, connection, q, v, impulses)


def connect(run: Running, link_a: str, link_b: str, joint, name: str | None, frame_a, frame_b, actuated: bool | None,
            max_gap: float) -> Connection:
    """See `Simulation.connect`; frames are (position, rotation)."""
    max_gap = as_size("max_gap [m, rad]", max_gap, ShapeError, infinite=True)
    mechanism, connection, q, v, impulses = joined(
        run.mechanism, run.q, run.v, link_a, link_b, joint, name, frame_a, frame_b, actuated, max_gap,
        f"at t = {run.t:.6g} s", run.acting.prescribed, run.trajectory)
    hit = impulses[connection.name]
    run.change(mechanism, q, v, f"connect {connection.name!r}: {link_a} - {link_b} by {connection.joint!r}, "
               f"impulse {np.linalg.norm(hit[:3]):.4g} N s, {np.linalg.norm(hit[3:]):.4g} N m s",
               by=Strikes(connection, frame_a, frame_b))
    run.impulses = impulses
    return connection


def couple(run: Running, joint: str, to: str, ratio: float, offset: float | None, max_gap: float) -> Coupling:
    """See `Simulation.couple`."""
    max_gap = as_size("max_gap [m, rad]", max_gap, ShapeError, infinite=True)
    q, v, mechanism = run.q, run.v, run.mechanism.copy()
    coupling = mechanism.couple(joint, to, ratio, 0.0 if offset is None else offset)
    here, there = (float(q[mechanism.q_slice(name)][0]) for name in (coupling.joint, coupling.to))
    open_ = here - coupling.ratio * there - coupling.offset
    if offset is None:
        mechanism.uncouple(joint)
        coupling = mechanism.couple(joint, to, ratio, open_)
    elif not abs(open_) <= max_gap:
        raise SimulationError(f"couple {coupling.joint!r} at t = {run.t:.6g} s: it is {open_:.3g} (rad, m) from "
                              f"{coupling.equation}; leave offset out to couple the joints as they are, move them "
                              f"there, or allow max_gap={large_enough(Gap(abs(open_), 0.0))}", run.trajectory)
    elif abs(open_) > EXACT:
        q = closed_position(mechanism, plan_of_moves(mechanism, run.acting.prescribed), q)
    before = v
    v = impact(mechanism, q, v, prescribed=run.acting.prescribed)
    run.change(mechanism, q, v, f"couple {coupling.joint!r}: {coupling.equation}, velocities jump by up to "
               f"{np.abs(v - before).max(initial=0.0):.4g}", by=Strikes(coupling, offset, None))
    return coupling


def uncouple(run: Running, joint: str) -> None:
    """See `Simulation.uncouple`."""
    mechanism = run.mechanism.copy()
    mechanism.uncouple(joint)
    mechanism.plan()  # refuses ends without mass
    run.change(mechanism, run.q, run.v, f"uncouple {joint!r}", by=KEEPS)


def cut(run: Running, name: str) -> None:
    """See `Simulation.cut`."""
    before, mechanism = run.mechanism, run.mechanism.copy()
    carry = mechanism.cut(name)
    link = None if name in before.connections else before.find_joint(name)
    mechanism.plan()  # refuses ends without mass
    q, v = carry(run.q, run.v)
    if link is None:
        old, names = before.connections[name], [*mechanism.link_names, "ground"]
        what = f"{names[old.link_a]} - {names[old.link_b]} by {old.joint!r}"
    else:
        what = f"{mechanism.links[link].name} is free"
    run.change(mechanism, q, v, f"cut {name!r}: {what}", cut=link, by=carry)
