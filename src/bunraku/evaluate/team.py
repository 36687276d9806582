"""Mechanisms divided among workers: which division a request asks for, and the team that carries it out."""

from __future__ import annotations

import numpy as np

from bunraku.entries.parts import part_of_state, part_one
from bunraku.entries.signatures import FINE
from bunraku.errors import ModelError
from bunraku.evaluate.schedule import Schedule
from bunraku.evaluate.schedule import schedule as schedule_for
from bunraku.mechanism import Mechanism
from bunraku.plan.build import Plan
from bunraku.plan.chunk import Division
from bunraku.workers.threads import Team


def team_for(mechanism: Mechanism, plan: Plan, schedule: Schedule | None, workers: int | None) -> Team | None:
    """The team that computes this plan of the mechanism by the schedule, with at most so many workers; None if nothing
    is divided: one chunk, or connections and point springs, which one worker computes.

    Without a schedule: one for that many workers.
    """
    if schedule is not None and not isinstance(schedule, Schedule):
        raise ModelError(f"schedule must be made by bk.schedule or bk.Schedule, not {schedule!r}")
    if plan.loops is not None or len(plan.spring_i):
        return None
    key = ("team", id(plan), id(schedule), workers)
    found = mechanism._variants.get(key)
    if found is None:  # kept with the plan and the schedule, so that their numbers stay their own
        found = mechanism._variants[key] = (_team(mechanism, plan, schedule, workers), plan, schedule)
    return found[0]


def _team(mechanism, plan, schedule, workers) -> Team | None:
    chosen = schedule_for(mechanism, workers) if schedule is None else schedule
    chosen.fits(mechanism)
    assembly = chosen.assembly(plan)
    if assembly is None or len(assembly.worker) < 2:
        return None
    if workers is not None and workers < chosen.workers:  # the same chunks on fewer
        assembly = assembly._replace(worker=assembly.worker * workers // chosen.workers)
    return Team(Division(plan, assembly))


def accelerations(team: Team, plan: Plan, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray | None:
    """Accelerations of one state; None if there are none."""
    a = np.empty(plan.nv)
    motion = part_one.address
    part_of_state.load()

    def work(k):
        part = team.parts[k]
        return part_of_state.call(motion, team.arrays[k], part.q_index, part.v_index, q, v, tau, a)

    return a if all(answer == FINE for answer in team.run(work)) else None
