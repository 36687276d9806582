"""Changes of the forces on a simulation: pushes and pulls. Each is an event of the record; the solver restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bunraku.errors import BunrakuError, SimulationError
from bunraku.simulation.pulls import as_pull
from bunraku.simulation.records.trajectory import Event

if TYPE_CHECKING:
    from bunraku.simulation.running import Running


def push(run: Running, link: str, wrench) -> None:
    """See `Simulation.push`."""
    run.refuse_within_a_step("push")
    acting, before = run.acting, dict(run.acting.external)
    try:
        run.mechanism.find_link(link, "push")
        acting.external.pop(link, None)
        if wrench is not None:
            acting.external[link] = wrench
        acting.fit(run.mechanism)
    except BunrakuError:
        acting.external = before
        acting.fit(run.mechanism)
        raise
    run.tape.event(Event(run.t, f"push {link!r}{' no more' if wrench is None else ''}"))
    acting.drive(run.mechanism)
    run.restart()


def pull(run: Running, link: str, *spring) -> None:
    """See `Simulation.pull`; `spring`: the further arguments of `as_pull`."""
    run.refuse_within_a_step("pull")
    acting, row = run.acting, as_pull(run.mechanism, link, *spring)
    known = acting.pulls.get(link)
    if known is None:
        acting.pulls[link] = row
        acting.fit(run.mechanism)
        run.tape.event(Event(run.t, f"pull {link!r}"))
    else:
        known[:] = row
        place = 6 * len(run.mechanism.links) + len(row) * list(acting.pulls).index(link)
        acting.array[place:place + len(row)] = row
    run.restart()


def release(run: Running, link: str | None) -> None:
    """See `Simulation.release`."""
    run.refuse_within_a_step("release")
    pulls = run.acting.pulls
    if link is not None and link not in pulls:
        run.mechanism.find_link(link, "release")
        raise SimulationError(f"release: {link!r} is not being pulled")
    for name in [link] if link is not None else list(pulls):
        del pulls[name]
        run.tape.event(Event(run.t, f"release {name!r}"))
    run.acting.fit(run.mechanism)
    run.restart()
