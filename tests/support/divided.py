"""Random divisions of mechanisms among workers."""

import contextlib

import numpy as np

import bunraku as bk
from bunraku.entries.signatures import FINE
from bunraku.evaluate.team import accelerations
from bunraku.plan.chunk_plan import Assembly, Division
from bunraku.scheduling.clusters import NONE, clusters
from bunraku.scheduling.forest import Tree
from bunraku.workers.threads import Team

__all__ = ["FINE", "by_team", "possible_cuts", "random_assembly", "state"]


def possible_cuts(m: bk.Mechanism) -> list[str]:
    """Joints that can be cut: not Fixed ones, nor those of links that cannot stand alone."""
    found = []
    for link in m.links:
        with contextlib.suppress(bk.ModelError):
            bk.Schedule(m, cuts=[link.joint_name])
            found.append(link.joint_name)
    return found


def random_assembly(m: bk.Mechanism, rng, cuts=None, waiting=None) -> Assembly:
    """Random cuts; each chunk that carries others waits for them, or has a far handle, by chance."""
    if cuts is None:
        names = possible_cuts(m)
        cuts = [str(x) for x in rng.permutation(names)[:rng.integers(0, len(names) + 1)]]
    chunked, partition = bk.Schedule(m, cuts=cuts)._parts()
    chunks = partition.chunks
    waits = (chunks.far >= 0) & (rng.random(len(chunks)) < (rng.random() if waiting is None else waiting))
    joins = clusters(Tree(chunks.parent, chunks.cost.sum(axis=1), waits))
    plain = chunked.assembly(m.plan(), partition)
    owner = rng.integers(0, max(len(chunks), 1), len(joins.left))  # any worker may compute a join
    return plain._replace(waits=waits, left=joins.left, right=joins.right, series=joins.series,
                          open=joins.far != NONE, owner=owner)


def state(m: bk.Mechanism, rng):
    return (m.integrate(m.neutral(), 0.5 * rng.normal(size=m.nv)), rng.normal(size=m.nv), rng.normal(size=m.nv))


def by_team(m: bk.Mechanism, assembly: Assembly, worker, q, v, tau):
    """Accelerations by workers that have the chunks as given, and the division."""
    division = Division(m.plan(), assembly._replace(worker=np.asarray(worker)))
    return accelerations(Team(division), m.plan(), q, v, tau), division
