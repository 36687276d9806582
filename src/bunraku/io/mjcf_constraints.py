"""Equality constraints of an MJCF file: connect and weld as connections, linear ones of two joints as couplings.

MuJoCo gives them a soft impedance; here they hold exactly. `connect` is a Spherical connection at its anchor, `weld` a
Fixed one (Spherical without torque scale); either between bodies or sites. `joint` with a straight polynomial, and
`tendon` whose fixed tendons come down to two joints, are couplings. What is inactive, holds to a body of motion
capture, or is none of these is left out, with a finding each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bunraku.errors import ModelError, NamingError
from bunraku.io.findings import Findings
from bunraku.mechanism import Fixed, Mechanism, Spherical

CONNECT, WELD, JOINT, TENDON = range(4)  # mjtEq
BODY, SITE, WRAP_JOINT = 1, 6, 1         # mjtObj, mjtWrap
FREE, BALL = 0, 1                        # mjtJoint
Terms = dict[int, float]                 # coefficients of joints


class Constraints:
    """`called`: names of links by MuJoCo's bodies; `rotation`: of a quaternion."""

    def __init__(self, model, findings: Findings, names: list[str], rotation: Callable):
        self.model, self.findings, self.rotation = model, findings, rotation
        self.names = names  # of the constraints
        self.straight = {k: line for k in range(model.neq) if (line := self._line(k)) is not None}

    @property
    def coupled(self) -> set[int]:
        """Joints of MuJoCo's that couplings need on their own."""
        return {j for terms, _ in self.straight.values() for j in terms}

    def add(self, mechanism: Mechanism, called: list[str], joint_names: list[str]) -> None:
        """Add connections and couplings to the mechanism of the tree."""
        model = self.model
        for k in range(model.neq):
            label = f"equality constraint {self.names[k]!r}" if self.names[k] else f"equality constraint {k}"
            try:
                if not model.eq_active0[k]:
                    raise ModelError("is not active in the file, and is left out")
                if model.eq_type[k] in (CONNECT, WELD):
                    self._connect(mechanism, called, k)
                elif k in self.straight:
                    self._couple(mechanism, joint_names, *self.straight[k])
                else:
                    raise ModelError("is left out: only linear ones of two joints (joint, fixed tendons), connect and "
                                     "weld are read")
            except ModelError as error:
                self.findings.note(label, str(error))

    # -- connections ---------------------------------------------------------------------------------------------------

    def _connect(self, mechanism: Mechanism, called: list[str], k: int) -> None:
        model, data, weld = self.model, np.array(self.model.eq_data[k], float), self.model.eq_type[k] == WELD
        ends = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
        turns = [np.eye(3), np.eye(3)]
        if getattr(model, "eq_objtype", np.full(model.neq, BODY))[k] == SITE:
            places = [np.array(model.site_pos[site]) for site in ends]
            turns = [self.rotation(model.site_quat[site]) for site in ends] if weld else turns
            bodies = [int(model.site_bodyid[site]) for site in ends]
        else:
            bodies = [max(body, 0) for body in ends]
            places = [data[3:6], data[:3]] if weld else [data[:3], data[3:6]]
            if weld:
                turns[0] = self.rotation(data[6:10])
        if any(model.body_mocapid[body] >= 0 for body in bodies):
            raise ModelError("holds to a body that is moved by motion capture, and is left out")
        joint = Fixed() if weld and data[10] != 0 else Spherical()
        given: dict[str, Any] = {"position_a": places[0], "rotation_a": turns[0], "position_b": places[1],
                                 "rotation_b": turns[1]}
        links = called[bodies[0]], called[bodies[1]]
        try:
            mechanism.connect(*links, joint, self.names[k] or None, **given)
        except NamingError:  # a link or a joint has this name
            mechanism.connect(*links, joint, **given)

    # -- couplings -----------------------------------------------------------------------------------------------------

    def _couple(self, mechanism: Mechanism, joint_names: list[str], terms: Terms, value: float) -> None:
        """sum of terms = value: the first joint follows the second, or the other way round if it follows another."""
        (first, a), (second, b) = terms.items()
        names = joint_names[first], joint_names[second]
        try:
            mechanism.couple(*names, -b / a, value / a)
        except ModelError:
            if b == 0.0:
                raise
            mechanism.couple(*names[::-1], -a / b, value / b)

    def _line(self, k: int) -> tuple[Terms, float] | None:
        """The constraint as (coefficients of two joints, value of their sum); None if it is none."""
        model, data, kind = self.model, self.model.eq_data[k], self.model.eq_type[k]
        if kind not in (JOINT, TENDON) or not model.eq_active0[k] or np.any(data[2:5] != 0):
            return None
        first, second = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
        one, two = self._terms(kind, first), self._terms(kind, second) if second >= 0 else {}
        if one is None or two is None:
            return None
        total, slope = dict(one), float(data[1]) if second >= 0 else 0.0
        for j, coefficient in two.items():
            total[j] = total.get(j, 0.0) - slope * coefficient
        if len(total) != 2 or not next(iter(total.values())):
            return None
        at = [model.qpos0[model.jnt_qposadr[j]] for j in total]
        value = float(data[0]) + float(np.dot(list(total.values()), at))
        return total, value

    def _terms(self, kind: int, number: int) -> Terms | None:
        """The coefficients of a joint by itself, or of a fixed tendon; None if it is not linear."""
        model = self.model
        if kind == JOINT:
            return None if model.jnt_type[number] in (FREE, BALL) else {number: 1.0}
        wraps = range(model.tendon_adr[number], model.tendon_adr[number] + model.tendon_num[number])
        if any(model.wrap_type[w] != WRAP_JOINT for w in wraps):
            return None
        found: Terms = {}
        for w in wraps:
            j = int(model.wrap_objid[w])
            if model.jnt_type[j] in (FREE, BALL):
                return None
            found[j] = found.get(j, 0.0) + float(model.wrap_prm[w])
        return found
