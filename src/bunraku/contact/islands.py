"""Islands: contacts that influence each other, each island a contact problem of its own.

A contact force moves the tree of links that it acts on, and nothing else. So two contacts influence each other only if
a chain of contacts between trees joins them; the ground joins nothing. With connections all contacts are one island.

`find_islands` orders the contacts of a step by island (union-find over trees), in the order of their numbers within
each. Cost: O(contacts) but for the inverse Ackermann function.
"""

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.jit import inline, inner


@inline
def tree_of(body, touch):
    """First body of a body's tree; -1 for the ground."""
    return touch.tree[body] if body >= 0 else -1


@inline
def leader_of(tree, leader):
    """The tree that stands for the island of a tree; shortens the path to it."""
    while leader[tree] != tree:
        leader[tree] = leader[leader[tree]]
        tree = leader[tree]
    return tree


@inline
def sides(k, touch):
    """Trees on both sides of contact k."""
    return (tree_of(np.int64(touch.contact_i[k, c.CONTACT_A]), touch),
            tree_of(np.int64(touch.contact_i[k, c.CONTACT_B]), touch))


@inner
def find_islands(count, contacts, joined, touch):
    """Order `contacts` (numbers) by island, in place: first contact of each island into `island`, which ends with the
    number of contacts. Returns the number of islands. `joined`: all of them are one."""
    island, leader, mark, number = touch.island, touch.leader, touch.on, touch.number
    island[0] = 0
    if count == 0:
        return 0
    if joined:
        island[1] = count
        return 1
    for i in range(count):
        for tree in sides(contacts[i], touch):
            if tree >= 0 and leader[tree] < 0:
                leader[tree] = tree
    for i in range(count):
        a, b = sides(contacts[i], touch)
        if a >= 0 and b >= 0:
            a, b = leader_of(a, leader), leader_of(b, leader)
            leader[max(a, b)] = min(a, b)
    islands = 0
    for i in range(count):  # islands in the order of their first contacts
        a, b = sides(contacts[i], touch)
        root = leader_of(a if a >= 0 else b, leader)
        if mark[root] < 0:
            mark[root] = islands
            island[islands + 1] = 0
            islands += 1
        number[i] = mark[root]
        island[mark[root] + 1] += 1
    for i in range(islands):
        island[i + 1] += island[i]
    for i in range(count):
        for tree in sides(contacts[i], touch):
            if tree >= 0:
                leader[tree] = mark[tree] = -1
    distribute(count, contacts, islands, touch)
    return islands


@inner
def distribute(count, contacts, islands, touch):
    """Move each contact to the place of its island, which `number` holds."""
    if islands == 1:
        return
    island, number, moved = touch.island, touch.number, touch.moved
    for i in range(count):
        to = number[i]
        moved[island[to]] = contacts[i]
        island[to] += 1
    for i in range(count):
        contacts[i] = moved[i]
    for back in range(islands):  # every start has moved to its end
        to = islands - back
        island[to] = island[to - 1]
    island[0] = 0
