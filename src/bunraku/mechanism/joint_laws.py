"""Coulomb friction and hard limits of joints: laws of the contact problem (`contact/joint_rows.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bunraku.errors import ModelError
from bunraku.mechanism.joints import FRICTION, HARD, Joint


class JointLaws:
    """Joints with friction or hard limits; part of `Mechanism`."""

    links: Any
    nv: int
    may_touch: Any
    frictionless: bool = False     # a twin without contact: `bunraku.evaluate.contacts.without_contact`
    joint_laws: bool | None = None  # `has_joint_laws`; None: not known since the last change

    def has_joint_laws(self) -> bool:
        """Whether a joint has Coulomb friction or hard limits."""
        if self.joint_laws is None:
            self.joint_laws = not self.frictionless and any(link.joint.laws.any() for link in self.links)
        return self.joint_laws

    def needs_contact(self) -> bool:
        """Whether forces follow from the contact problem: shapes may touch, or joints have friction or hard limits."""
        return self.may_touch() or self.has_joint_laws()

    def coulomb_friction(self) -> np.ndarray:
        """(nv,) largest friction torques and forces of the joints [N m, N]."""
        if not self.has_joint_laws():
            return np.zeros(self.nv)
        return np.concatenate([np.zeros(0), *(link.joint.laws[:, FRICTION] for link in self.links)])

    def why_contact(self) -> str:
        """The reason for `needs_contact`, for messages."""
        if self.may_touch():
            return "shapes of this mechanism may touch"
        name, law = next((link.joint_name, "friction" if link.joint.laws[:, FRICTION].any() else "hard limits")
                         for link in self.links if link.joint.laws[:, :HARD + 1].any())
        return f"joint {name!r} has {law}"


def refuse_laws(what: str, joint: Joint) -> None:
    """A ModelError for the joint of a connection with friction or hard limits."""
    if joint.laws.any():
        raise ModelError(f"{what}: a connection has no {next(iter(joint.given_laws() or {'friction'}))}; give it to a "
                         "joint of the tree")
