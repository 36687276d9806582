"""A chain of any number of equal links."""

from __future__ import annotations

from collections.abc import Sequence

from bunraku.checks import as_count, as_positive
from bunraku.errors import ModelError
from bunraku.mechanism import Free, Joint, Mechanism, Revolute, Spherical
from bunraku.models.solid_inertias import box

JOINTS = ("revolute", "spherical")
BASES = ("fixed", "free")


def chain(n: int, joint: str = "revolute", *, base: str = "fixed", axes: Sequence = ((0, 1, 0),), length: float = 0.2,
          mass: float = 1.0, width: float = 0.04, damping: float = 0.0,
          gravity: Sequence[float] = (0.0, 0.0, -9.81)) -> Mechanism:
    """n equal links "link0", "link1", ... that hang down (-z) from the origin at the neutral position.

    joint    "revolute" or "spherical"
    base     "fixed": link0 is connected to the ground by the same kind of joint; "free": by a Free joint
    axes     of revolute joints, taken in turn; ((0, 1, 0), (1, 0, 0)) gives a chain that moves in space
    length, width, mass   of each link, a solid box [m, m, kg]
    damping  of each joint [N m s/rad]
    """
    n = as_count("chain: the number of links", n)
    if joint not in JOINTS:
        raise ModelError(f"chain: joint {joint!r} is not one of {', '.join(JOINTS)}")
    if base not in BASES:
        raise ModelError(f"chain: base {base!r} is not one of {', '.join(BASES)}")
    length, width, mass = (as_positive(f"chain: {name}", x)
                           for name, x in (("length", length), ("width", width), ("mass", mass)))
    joints: list[Joint]
    if joint == "spherical":
        joints = [Spherical(damping=damping)]
    else:
        joints = [Revolute(axis, damping=damping) for axis in axes]
        if not joints:
            raise ModelError("chain: axes must name at least one axis")
    m = Mechanism(gravity, name=f"chain of {n}")
    body = box(mass, (width, width, length), com=(0.0, 0.0, -0.5 * length))
    parent, position = "ground", (0.0, 0.0, 0.0)
    for i in range(n):
        name = f"link{i}"
        own = Free() if i == 0 and base == "free" else joints[i % len(joints)]
        m.add_link(name, parent, own, position=position, mass=body.mass, com=body.com, inertia=body.inertia)
        parent, position = name, (0.0, 0.0, -length)
    return m
