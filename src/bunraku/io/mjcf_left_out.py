"""Features of an MJCF file that a mechanism does not have: one LoadWarning for each kind, naming joint or body."""

from __future__ import annotations

import numpy as np

from bunraku.io.findings import Findings
from bunraku.io.subtree_masses import NEARLY_MASSLESS


class LeftOut:
    """`called`: names of links by MuJoCo's bodies."""

    def __init__(self, model, findings: Findings, called: list[str], joint_names: list[str]):
        self.model, self.findings, self.called, self.joint_names = model, findings, called, joint_names

    def note(self, limits: bool, shapes: bool, friction: bool, mass: float) -> None:
        """`limits`: act in MuJoCo; `shapes`, `friction`: are read; `mass` of the mechanism."""
        model = self.model
        rubbing = model.dof_frictionloss != 0
        if friction:
            several = model.jnt_type[model.dof_jntid] < 2  # free joints and balls
            self._note_joints(rubbing & several, "dry friction (frictionloss) is that of joints with one degree of "
                                                 "freedom only, and is left out")
        else:
            self._note_joints(rubbing, "dry friction (frictionloss) is left out; bk.load(file, friction=True) reads "
                                       "that of joints with one degree of freedom")
        limited = [self.joint_names[j] for j in np.flatnonzero(model.jnt_limited) if model.jnt_type[j] != 0]  # 0: free
        if limits:
            self._note_many("joint", limited, "its limits are kept as information and do not act; m.with_joint(name, "
                            "hard_limits=True) makes them act, or limit_stiffness=..., limit_damping=...")
        if hasattr(model, "dof_dampingpoly"):  # since MuJoCo 4
            damping, stiffness = model.dof_dampingpoly != 0, model.jnt_stiffnesspoly != 0
            self._note_joints(np.any(damping, axis=-1), "only the linear part of its damping is read")
            self._note_joints(np.any(stiffness, axis=-1)[model.dof_jntid],
                              "only the linear part of its stiffness is read")
        self._note_bodies(model.body_gravcomp != 0, "gravity compensation (gravcomp) is left out")
        self._note_bodies(model.body_mocapid >= 0, "is moved by motion capture in MuJoCo; here it stands still")
        pair = None if shapes else self._contact()
        if pair:
            self.findings.note(f"body {pair[0]!r}", f"contacts are left out, such as with {pair[1]!r}")
        self._note_nearly_massless(mass)

    def _note_joints(self, dofs: np.ndarray, text: str) -> None:
        joints = dict.fromkeys(self.model.dof_jntid[dofs].tolist())
        self._note_many("joint", [self.joint_names[j] for j in joints], text)

    def _note_bodies(self, which: np.ndarray, text: str) -> None:
        self._note_many("body", [self.called[b] for b in np.flatnonzero(which)], text)

    def _note_many(self, kind: str, names: list[str], text: str) -> None:
        if names:
            more = f" (and of {len(names) - 1} more)" if len(names) > 1 else ""
            self.findings.note(f"{kind} {names[0]!r}{more}", text)

    def _contact(self) -> tuple[str, str] | None:
        """Two bodies that MuJoCo would let touch: not welded together, nor parent and child."""
        model = self.model
        weld = model.body_weldid[model.geom_bodyid]
        keys = dict.fromkeys(zip(weld.tolist(), model.geom_contype.tolist(), model.geom_conaffinity.tolist(),
                                 strict=True))
        classes: dict[tuple[int, int], list[int]] = {}
        for body, contype, conaffinity in keys:
            if contype or conaffinity:
                classes.setdefault((contype, conaffinity), []).append(body)
        above = model.body_weldid[model.body_parentid]
        for (type_a, affinity_a), bodies_a in classes.items():
            for (type_b, affinity_b), bodies_b in classes.items():
                if not (type_a & affinity_b or type_b & affinity_a):
                    continue
                for a in bodies_a[:200]:
                    for b in bodies_b[:200]:
                        # the parent filter does not apply to the world body
                        if a != b and (a == 0 or b == 0 or (above[a] != b and above[b] != a)):
                            return self.called[a or b], self.called[b if a else a]
        return None

    def _note_nearly_massless(self, total: float) -> None:
        model = self.model
        for body in range(1, model.nbody):
            mass = model.body_mass[body]
            if model.body_weldid[body] and 0 < mass < NEARLY_MASSLESS * total:
                self.findings.note(f"body {self.called[body]!r}", f"has nearly no mass: {mass:.3g} kg of the model's "
                                                                  f"{total:.3g} kg")
