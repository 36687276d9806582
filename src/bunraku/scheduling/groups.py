"""Links that must stay together: massless links with the links they carry, links on Fixed joints with their parents.

A group of links is one vertex of the tree that is scheduled. All other links are attached to one link of it: where
several of its links carry subtrees, all but the heaviest of these belong to the group too. Cost: O(N).
"""

from __future__ import annotations

import numpy as np


def groups(parent, stuck, weight) -> tuple[np.ndarray, np.ndarray]:
    """(group of each link, parent group of each group), groups numbered parents first.

    stuck   links that stay with their parents
    weight  of each link
    """
    parent, stuck, weight = (np.asarray(x).tolist() for x in (parent, stuck, weight))
    n = len(parent)
    if not any(stuck):
        return np.arange(n), np.array(parent, np.int64)
    size = [max(x, 1e-6 * max(weight), 1e-300) for x in weight]
    for i in range(n - 1, -1, -1):
        if parent[i] >= 0:
            size[parent[i]] += size[i]
    top = list(range(n))             # of the group that a link is in
    for i, p in enumerate(parent):
        if p >= 0 and stuck[i]:
            top[i] = top[p]
    carried = [0.0] * n              # by each link, outside its group
    for i, p in enumerate(parent):
        if p >= 0 and top[i] == i:
            carried[p] += size[i]
    bearer: dict[int, int] = {}      # of each group with several links: its link that carries most
    for i, load in enumerate(carried):
        if load and (top[i] not in bearer or load > carried[bearer[top[i]]]):
            bearer[top[i]] = i
    group, hangs = [-1] * n, []
    tops: list[int] = []             # of groups
    swallowed = [False] * n          # whole subtrees that belong to the group above
    for i, p in enumerate(parent):
        if p >= 0 and (swallowed[p] or stuck[i] or bearer[tops[group[p]]] != p):
            group[i] = group[p]
            swallowed[i] = swallowed[p] or not stuck[i]
        else:
            group[i] = len(tops)
            tops.append(i)
            hangs.append(group[p] if p >= 0 else -1)
    return np.array(group), np.array(hangs, np.int64)
