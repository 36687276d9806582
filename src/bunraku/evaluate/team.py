"""Mechanisms divided among workers: the division for a request, and the team of threads that computes it."""

from __future__ import annotations

import weakref

import numpy as np

from bunraku.algorithms.connection_equations import DYNAMICS
from bunraku.entries.closed_solution import DENSE
from bunraku.entries.part_entries import part_closed, part_of_state, part_one
from bunraku.entries.pool import available
from bunraku.entries.signatures import DOUBTFUL, FINE
from bunraku.errors import ModelError
from bunraku.evaluate.schedules import Schedule
from bunraku.evaluate.schedules import schedule as schedule_for
from bunraku.mechanism import Mechanism
from bunraku.plan.build import Plan
from bunraku.plan.chunk_loops import ClosedDivision
from bunraku.plan.chunk_plan import Assembly, Division, Read
from bunraku.plan.loop_plan import with_connections
from bunraku.workers.threads import Team


def team_for(mechanism: Mechanism, plan: Plan, schedule: Schedule | None, workers: int | None,
             pushed: bool = False) -> Team | None:
    """The team that computes this plan of the mechanism by the schedule, with at most `workers` workers; `pushed`:
    external forces act. None if nothing is divided: one chunk, or an order of joints.

    Without a schedule: one for that many workers. Connections, point springs and external forces need world axes:
    `ClosedDivision`, whose chunks wait for those that they carry.
    """
    if schedule is not None and not isinstance(schedule, Schedule):
        raise ModelError(f"schedule must be made by bk.schedule or bk.Schedule, not {schedule!r}")
    posed = plan.loops is not None or len(plan.spring_i) > 0 or pushed
    known = _teams.setdefault(plan, weakref.WeakKeyDictionary()).setdefault(schedule or LEFT_ALONE, {})
    if (workers, posed) not in known:
        known[workers, posed] = _team(mechanism, plan, schedule, workers, posed)
    return known[workers, posed]


class LeftAlone:
    """Placeholder for a schedule that was not given."""


LEFT_ALONE = LeftAlone()
_teams: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # of plans and schedules, as long as both are there


def _team(mechanism, plan, schedule, workers, posed) -> Team | None:
    if schedule is None:  # more threads than processors would wait for each other
        workers = min(workers or 1, available())
    chosen = schedule_for(mechanism, workers or 1) if schedule is None else schedule
    chosen.fits(mechanism)
    assembly = chosen.assembly(plan)
    if assembly is None or len(assembly.worker) < 2:
        return None
    if workers is not None and workers < chosen.workers:  # the same chunks on fewer
        assembly = assembly._replace(worker=assembly.worker * workers // chosen.workers)
    return Team(divide(plan, assembly, posed))


def divide(plan: Plan, assembly: Assembly, posed: bool = False, read: Read | None = None) -> Division:
    """A plan divided by an assembly; `posed`: with poses, which connections, springs and external forces need;
    `read`: the entries of the state that an actuation reads."""
    if not (posed or plan.loops is not None or len(plan.spring_i)):
        return Division(plan, assembly, read)
    return ClosedDivision(with_connections(plan, ()) if plan.loops is None else plan, assembly, read)


def motion_of(division: Division) -> int:
    """Address of the compiled function that computes one worker's part."""
    return (part_closed if isinstance(division, ClosedDivision) else part_one).address


def accelerations(team: Team, plan: Plan, q: np.ndarray, v: np.ndarray, tau: np.ndarray,
                  external: np.ndarray | None = None) -> np.ndarray | None:
    """Accelerations of one state; None if it has no solution, or if the loops of a small mechanism need the serial
    check. tau holds torques of the tree joints, then of connections if it is longer; `external` 6 per link."""
    a = np.empty(plan.nv)
    drives = tau[plan.nv:]
    pushed = plan.nothing if external is None else external
    motion = motion_of(team.division)
    part_of_state.load()

    def work(k):
        part = team.parts[k]
        return part_of_state.call(motion, DYNAMICS, team.arrays[k], part.q_index, part.v_index, part.drive_index,
                                  part.link_index, q, v, tau, drives, pushed, a)

    good = (FINE,) if plan.nv <= DENSE else (FINE, DOUBTFUL)  # smaller ones are refined after a second look
    return a if all(answer in good for answer in team.run(work)) else None
