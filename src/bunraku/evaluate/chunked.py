"""A mechanism as `scheduling/` sees it: parents, groups that stay together, costs, open rows of connections."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bunraku.errors import ModelError
from bunraku.mechanism import Fixed, Mechanism
from bunraku.plan import fields as f
from bunraku.plan.build import Plan
from bunraku.plan.chunk_plan import Assembly
from bunraku.plan.loop_plan import clusters as together
from bunraku.scheduling import Costs, Partition, Partitions, Prediction, Tree, cut_at, groups, predict
from bunraku.scheduling.assembly import assembly_order
from bunraku.scheduling.clusters import NONE


class Chunked:
    """The tree to be divided. Links on Fixed joints stay with their parents, massless links with their children;
    links fixed to the ground belong to the ground and are listed with the first chunk."""

    def __init__(self, mechanism: Mechanism, costs: Costs, passes: int = 3, far: bool = True):
        self.costs = costs
        links, plan = mechanism.links, mechanism.plan("tree")
        n = len(links)
        first = np.full(n, -1)                                  # body of each joint
        first[plan.body_link[::-1]] = np.arange(plan.bodies)[::-1]
        top = np.array(together(plan), np.int64)
        parent = np.array([link.parent for link in links], np.int64)
        self.kept = np.flatnonzero(plan.link_i[:n, f.LINK_BODY] >= 0)
        number = np.full(n + 1, -1)                             # the last: the ground
        number[self.kept] = np.arange(len(self.kept))
        stuck = (first < 0) | (top[first] != first) if plan.bodies else np.ones(n, bool)
        self.stuck = stuck
        cost = _costs_of([links[i].joint for i in self.kept], costs)
        self.parent = number[parent[self.kept]]
        self.group, hangs = groups(self.parent, stuck[self.kept], cost.sum(axis=1))
        self.number = number
        size = len(hangs)
        self.tops = np.full(size, -1)                           # top link of each group
        self.tops[self.group[::-1]] = self.kept[::-1]
        of_groups = np.zeros((size, cost.shape[1]))
        np.add.at(of_groups, self.group, cost)
        rows, self.ends = self._rows(mechanism, Tree(hangs))
        of_groups[:, 1] += costs.row * rows
        self.partitions = Partitions(hangs, of_groups, costs, self.ties, passes, far)

    def _group_of(self, link: int) -> int:
        k = self.number[link]
        return int(self.group[k]) if k >= 0 else -1

    def _rows(self, mechanism: Mechanism, tree: Tree) -> tuple[np.ndarray, list[tuple[int, int]]]:
        """Open constraint rows at the joint of each group, if each loop is closed at the join of its two ends."""
        opened, ends, ties = np.zeros(tree.n, np.int64), [], []
        for c in mechanism.connections.values():
            a, b = self._group_of(c.link_a), self._group_of(c.link_b)
            rows = max(0, 6 - c.joint.nv)
            ends.append((a, b))
            ties.append((a, b, rows))
            if a == b:
                continue
            meet = tree.meet(a, b)
            for end in (a, b):
                if end >= 0:
                    opened[end] += rows
            if meet >= 0:
                opened[meet] -= 2 * rows
        self.ties = np.array(ties, np.int64).reshape(-1, 3)
        return (tree.below(opened).astype(np.int64) if opened.any() else opened), ends

    def at(self, mechanism: Mechanism, cuts: Sequence[str]) -> Partition:
        """The partition with these joints cut."""
        if isinstance(cuts, str):
            raise ModelError(f"cuts must be a list of joint names, not the text {cuts!r}")
        chosen: dict[int, str] = {}
        for name in cuts:
            link = mechanism.find_joint(name, "cuts: ")
            if link in chosen:
                raise ModelError(f"cuts: joint {name!r} is there twice")
            chosen[link] = name
            group = self._group_of(link)
            if group < 0 or self.tops[group] != link:
                name = mechanism.links[link].joint_name
                why = (f"of link {mechanism.links[link].name!r} is Fixed, so the link is part of the one it hangs from"
                       if isinstance(mechanism.links[link].joint, Fixed) else
                       "hangs from a link that has no inertia of its own about its joint and cannot be without it")
                raise ModelError(f"cuts: joint {name!r} {why}; cut another joint")
        tree = self.partitions.tree
        return self.partitions.evaluate(cut_at(tree, [self._group_of(link) for link in chosen]))

    # -- of a partition ------------------------------------------------------------------------------------------------

    def members(self, partition: Partition) -> np.ndarray:
        """The chunk of every link."""
        member = np.zeros(len(self.number) - 1, np.int64)
        if len(self.kept):
            member[self.kept] = self.partitions.weighed.members(partition.chunks)[self.group]
        return member

    def assembly(self, plan: Plan, partition: Partition) -> Assembly:
        """The partition in the form from which `plan/chunk_plan.py` divides the plan of this mechanism."""
        chunks, joins = partition.chunks, partition.joins
        chunk = self.members(partition)[plan.body_link]
        return Assembly(chunk, chunks.worker, partition.waits & (chunks.far >= 0), joins.left, joins.right,
                        joins.series, joins.far != NONE, partition.owner)

    def top_links(self, partition: Partition) -> list[list[int]]:
        return [self.tops[tops].tolist() for tops in partition.chunks.tops]

    def order(self, partition: Partition) -> list[int]:
        """Links in the order in which their joints are added; those on the ground first."""
        tops, member = self.top_links(partition), self.members(partition)
        apart = np.zeros(len(member), bool)
        apart[[i for links in tops for i in links]] = True
        apart[self.number[:-1] < 0] = True
        inner: list[list[int]] = [[] for _ in tops]
        for i in np.flatnonzero(~apart)[::-1].tolist():
            inner[member[i]].append(i)
        return [*np.flatnonzero(self.number[:-1] < 0).tolist(), *assembly_order(partition, inner, tops)]

    def heights(self, partition: Partition) -> np.ndarray:
        """Height of each chunk: number of moving links on its longest path from the top."""
        member = self.members(partition)[self.kept].tolist()
        height = (~(self.stuck[self.kept] & (self.parent >= 0))).astype(int).tolist()
        own = list(height)
        longest = [1] * max(len(partition.chunks), 1)
        parent = self.parent.tolist()
        for i in range(len(member) - 1, -1, -1):
            p = parent[i]
            if p >= 0 and member[p] == member[i]:
                height[p] = max(height[p], own[p] + height[i])
            longest[member[i]] = max(longest[member[i]], height[i])
        return np.array(longest)

    def open_ends(self, partition: Partition) -> np.ndarray:
        """Per chunk, the ends of connections that lead to other chunks."""
        member = self.partitions.weighed.members(partition.chunks)
        count = np.zeros(len(partition.chunks), np.int64)
        for a, b in self.ends:
            one, two = (int(member[x]) if x >= 0 else -1 for x in (a, b))
            if one != two:
                for k in (one, two):
                    if k >= 0:
                        count[k] += 1
        return count

    def with_sums(self, partition: Partition, record: bool = False) -> Prediction:
        """An evaluation with the solver's error sums."""
        return predict(partition.chunks, partition.joins, partition.waits, partition.owner, self.costs, 4, record)


def _costs_of(joints, costs: Costs) -> np.ndarray:
    """Passes 1 to 4 of the link of each joint."""
    known: dict[tuple[str, int], tuple[float, ...]] = {}
    rows = []
    for joint in joints:
        kind = type(joint).__name__.lower()
        key = kind, joint.nv if kind == "compound" else 1
        if key not in known:
            known[key] = costs.of(*key)
        rows.append(known[key])
    return np.array(rows).reshape(len(rows), -1) if rows else np.zeros((0, 4))
