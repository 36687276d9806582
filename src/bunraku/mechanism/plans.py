"""Plans of a mechanism (`plan/build.py`): made when first asked for, kept until the structure changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from bunraku.errors import ModelError
from bunraku.mechanism.joints import Free
from bunraku.plan import fields as f
from bunraku.plan.build import Plan, build


class Plans:
    """The mechanism as flat arrays; part of `Mechanism`."""

    links: Any
    springs: Any
    connections: Any
    couplings: Any
    length_scale: Any
    name: str
    nv: int
    _gravity: np.ndarray
    ready_plan: Plan | None
    free_plan: Plan | None
    free_forces: tuple | None
    _tree_plan: Plan | None
    _variants: dict
    joint_laws: bool | None

    def plan(self, variant=None) -> Plan:
        """The flat arrays. Variants: None, "bare" (no passive forces), "apart" (a body for every link), "tree" (without
        the connections; not checked for massless ends)."""
        if variant is None:
            if self.ready_plan is None:
                self.ready_plan = self._closed(self.plan("tree"))
            return self.ready_plan
        if variant == "tree":
            if self._tree_plan is None:
                self._tree_plan = build(self.links, self.springs, self._gravity)
            return self._tree_plan
        if variant not in self._variants:
            if variant == "bare":
                self._variants[variant] = self.driven_plan(passive=False)
            elif variant == "apart":
                self._variants[variant] = build(self.links, self.springs, self._gravity, keep_fixed=True)
            else:
                raise ValueError(f"no plan variant {variant!r}")
        return self._variants[variant]

    def kept(self, key, make):
        """make(), kept under this key until the structure changes."""
        if key not in self._variants:
            self._variants[key] = make()
        return self._variants[key]

    def plan_for(self, entry) -> Plan:
        """The plan for a subsequent call of this entry: if both have to be compiled, they are compiled in parallel."""
        if self.ready_plan is None:
            from bunraku.jit import prepare
            from bunraku.plan.assemble import assemble, lay_out_records, mark_slots

            prepare((assemble, entry, *((mark_slots, lay_out_records) if self.constrained else ())))
        return self.plan()

    def driven_plan(self, locked=frozenset(), given=frozenset(), passive=True) -> Plan:
        """The plan with the joints of some links (`locked`, by index) and some connections (`given`, by name) driven by
        acceleration; not `passive`: without springs, dampers, limits and armature."""
        key = ("driven", frozenset(locked), frozenset(given), passive)
        if key not in self._variants:
            tree = self.plan("tree")
            tree = tree if passive else tree.without_passive()
            self._variants[key] = self._closed(tree.with_locked(locked) if locked else tree, given, passive)
        return self._variants[key]

    def yielding_plan(self, driven: bool) -> Plan:
        """The plan for implicit solvers, with a variable armature at every degree of freedom whose torque may depend on
        its own motion: joints with springs, dampers or limits and, if they are `driven`, those that are actuated."""
        key = ("yielding", driven)
        if key not in self._variants:
            own = [f.DAMPING, f.STIFFNESS, f.LIMIT_STIFFNESS]
            links = [i for i, link in enumerate(self.links)
                     if link.joint.nv > 1 and ((driven and link.actuated) or link.joint.passive[:, own].any())]
            tree = self.plan("tree")
            self._variants[key] = self._closed(tree.with_columns(links)) if links else self.plan()
        return self._variants[key]

    def touching_plan(self, locked=frozenset()) -> Plan:
        """The plan for contact: in a tree, every joint is eliminated column by column, so that the factors for contact
        forces are available."""
        if self.constrained:
            return self.driven_plan(locked) if locked else self.plan()
        key = ("touching", frozenset(locked))
        if key not in self._variants:
            tree = self.plan("tree")
            tree = tree.with_locked(locked) if locked else tree
            self._variants[key] = self._closed(tree.with_columns(range(len(self.links))))
        return self._variants[key]

    def _closed(self, plan: Plan, given=frozenset(), passive=True) -> Plan:
        """The plan of the tree with its loops closed, checked for massless ends."""
        if self.nv == 0:
            raise ModelError(f"{self.name} has nothing to move: no joint has a degree of freedom; hang a link by a "
                             "joint that moves, such as bk.Revolute((0, 1, 0)) or bk.Free()")
        self._refuse_massless_ends(plan)
        if not self.constrained:
            return plan
        from bunraku.plan.loop_plan import with_connections

        return with_connections(plan, list(self.connections.values()), self.length_scale, frozenset(given), passive,
                                list(self.couplings.values()))

    def _refuse_massless_ends(self, plan):
        """Every joint must move some mass, or be held by a loop: a massless end would accelerate without bound."""
        n = plan.bodies
        massive = plan.body_i[:n, f.MASSIVE]
        if massive.all():
            return
        parent = plan.body_i[:n, f.PARENT].tolist()
        held = [*map(bool, massive.tolist()), True]
        for connection in self.connections.values():
            for link in (connection.link_a, connection.link_b):
                if link >= 0 and not isinstance(connection.joint, Free):
                    held[plan.link_i[link, f.LINK_BODY]] = True
        for i in range(n - 1, -1, -1):
            if held[i]:
                held[parent[i]] = True
        self._hold_coupled(plan, held)
        if all(held):
            return
        armature = plan.dof_f[f.ARMATURE] > 0
        for i in range(n):
            j, dof = plan.body_i[i, f.V_INDEX], plan.body_i[i, f.DOF]
            if not held[i] and not armature[j:j + dof].all():
                link = self.links[plan.body_link[i]]
                raise ModelError(f"joint {link.joint_name!r} moves no mass: link {link.name!r} and its subtree are "
                                 "massless. Give one of them mass, the joint an armature, or use a Fixed joint")

    def _hold_coupled(self, plan, held: list[bool]):
        """Mark joints that move no mass but are coupled to one that does."""
        armature = plan.dof_f[f.ARMATURE] > 0
        pairs = [[int(plan.link_i[link, f.LINK_BODY]) for link in (c.leader, c.follower)]
                 for c in self.couplings.values()]
        before = -1
        while sum(held) > before:
            before = sum(held)
            for pair in pairs:
                if any(held[i] or armature[plan.body_i[i, f.V_INDEX]] for i in pair):
                    for i in pair:
                        while i >= 0 and not held[i]:
                            held[i] = True
                            i = plan.body_i[i, f.PARENT]

    @property
    def constrained(self) -> bool:
        """Whether connections or couplings constrain the joints of the tree."""
        return bool(self.connections or self.couplings)

    def _changed(self):
        self._tree_plan = None
        self._reconnected()

    def _reconnected(self):
        """The plan after a change of connections alone: the plan of the tree is reused."""
        self.ready_plan = self.free_plan = self.free_forces = self.joint_laws = None
        self._variants = {}
