"""The order of joints of a partition, and the depth of its assembly tree [YN02, sec. 5.1].

A chunk is assembled from its tips to its top; a join in series adds the top joints of the lower cluster. A
waiting chunk is assembled after the chunks it carries, as in the articulated-body algorithm.
"""

from __future__ import annotations

import numpy as np

from bunraku.scheduling.partition import Partition


def assembly_order(partition: Partition, inner: list[list[int]], tops: list[list[int]]) -> list[int]:
    """Links in the order in which their joints are added. tops: of each chunk, the links by which it hangs; inner: its
    other links, tips first."""
    chunks, joins = partition.chunks, partition.joins
    m = len(chunks)
    waits = partition.waits & (chunks.far >= 0)
    order = [v for k in range(m - 1, -1, -1) if not waits[k] for v in inner[k]]
    tops = list(tops)
    for a, b, series in zip(joins.left.tolist(), joins.right.tolist(), joins.series.tolist(), strict=True):
        if not series:
            tops.append(tops[a] + tops[b])
            continue
        tops.append(tops[a])
        order += tops[b]
        if a < m and waits[a]:
            order += inner[a]
    return order + (tops[-1] if tops else [])


def assembly_depth(partition: Partition, height: np.ndarray) -> int:
    """Joins above the deepest link, the joint to the ground included. height: of each chunk, the links on its longest
    path that follow each other."""
    chunks, joins = partition.chunks, partition.joins
    m = len(chunks)
    if not m:
        return 0
    steps = [int(h) - 1 for h in height]
    for a, b, series in zip(joins.left.tolist(), joins.right.tolist(), joins.series.tolist(), strict=True):
        waiting = series and a < m and partition.waits[a]
        steps.append(1 + (steps[a] + steps[b] if waiting else max(steps[a], steps[b])))
    return steps[-1] + 1
