"""Mobiles: trees of wedges, the test bodies of [J] for solvers and for engines on many processors.

A *wedge* is the space between its top edge, of half-length a along x, and its bottom at z = -h, a stadium of
half-length b and radius c: at the share t = |z|/h of the way down, a stadium of half-length a + t (b - a) and radius
t c [J, fig. 1 and appendix II]. It turns about its top edge. z here is the paper's y, y the paper's -z.

In *stages*, chains of l bodies hang one below the other, the last of each a *plateau* with a round bottom (b = 0), from
which o chains hang, and so on. Where the printed formulas contradict each other we use: the mass has /3 instead of /2
(the other moments agree with /3); below a plateau with k stages the radius is p o^k / (2 pi), so that the arc between
neighbours on the lowest one is p (printed: (p o / pi)^k).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bunraku.checks import as_count, as_positive, as_size
from bunraku.errors import ModelError
from bunraku.mechanism import Free, Mechanism, Revolute
from bunraku.models.solid_inertias import Solid

MOST = 1_000_000  # bodies


def wedge(a: float, b: float, c: float, h: float, rho: float) -> Solid:
    """The wedge of [J, appendix II] in a frame at the middle of its top edge, x along the edge, z up."""
    pi, part = math.pi, rho * c * h
    mass = part * (2 * a + 4 * b + pi * c) / 3  # [J, appendix II], printed / 2
    moment = -part * h * (4 * a + 12 * b + 3 * pi * c) / 12                                 # mass times height of com
    along = part / 60 * ((4 * a + 16 * b + 3 * pi * c) * c**2 + 12 * (a + 4 * b + pi * c) * h**2)           # I_xx
    down = part / 30 * (2 * a**3 + 4 * a**2 * b + 6 * a * b**2 + 8 * b**3 + (6 * a + 24 * b + 3 * pi * c) * c**2
                        + pi * c * (a**2 + 3 * a * b + 6 * b**2))                           # I_yy of the paper
    across = part / 60 * (4 * a**3 + 8 * a**2 * b + 12 * a * b**2 + 16 * b**3 + (8 * a + 32 * b + 3 * pi * c) * c**2
                          + 12 * (a + 4 * b + pi * c) * h**2 + pi * c * (2 * a**2 + 6 * a * b + 12 * b**2))  # I_zz
    height = moment / mass
    shift = mass * height**2                                                                # from the edge to the com
    return Solid(mass, np.array([0.0, 0.0, height]), np.diag([along - shift, across - shift, down]))


def mobile(a: float, b: float, c: float, h: float, s: int, l: int, o: int | None, p: float | None, rho: float, *,
           damping: float = 0.0, suspension: bool = False,
           gravity: Sequence[float] = (0.0, 0.0, -9.81)) -> Mechanism:
    """The mobile of [J] with nine parameters, hanging from the origin; at the neutral position it is at rest.

    a        half-length of every body's top edge, the axis of its joint [m]
    b, c     half-length and radius of the bottom of bodies that are not plateaus [m]
    h        height of every body [m]
    s        stages: 1 is a single chain
    l        bodies of each chain, the plateau included
    o        chains below each plateau                               (o and p are unused where s = 1: may be None)
    p        arc between neighbouring chains of the last stage [m]
    rho      density [kg/m^3]
    damping  of each joint [N m s/rad]
    suspension   hang it from a link "suspension" on a Free joint, to be moved in six directions as [J] does by hand:
                 `bk.Simulation(m, prescribed={"suspension": bk.Guide(m.neutral()[:7])})`

    Plateaus of the last stage have the radius b + c. Edges on a plateau are radial, their outer ends on its brim.
    Bodies are called "link0", "link1", ..., "plateau"; those below a plateau have the number of the chain in front,
    counted from 0: "2/link0", "2/1/plateau".
    """
    s, l = (as_count(f"mobile: {name}", x) for name, x in (("s", s), ("l", l)))
    o, p = (0, 0.0) if s == 1 else (as_count("mobile: o", o), as_positive("mobile: p", p))
    a, b, damping = (as_size(f"mobile: {name}", x) for name, x in (("a", a), ("b", b), ("damping", damping)))
    c, h, rho = (as_positive(f"mobile: {name}", x) for name, x in (("c", c), ("h", h), ("rho", rho)))
    chains = s if o == 1 else sum(o**k for k in range(min(s, 64)))
    if l * chains > MOST:
        raise ModelError(f"mobile: {s} stages of chains of {l} bodies, {o} to a plateau, are more than {MOST} bodies")
    m = Mechanism(gravity, name=f"mobile of {l * chains}")
    link, joint = wedge(a, b, c, h, rho), Revolute((1.0, 0.0, 0.0), damping=damping)
    ends: list[tuple[str, str, float, float, np.ndarray | None]]
    if suspension:
        m.add_link("suspension", joint=Free(), **link._replace(com=np.zeros(3))._asdict())
    top = "suspension" if suspension else "ground"
    ends = [(top, "", 0.0, 0.0, None)]  # where chains of a stage begin: parent, path, place there, turn
    position: tuple[float, float, float]
    for stage in range(s):
        k = s - 1 - stage                                                        # stages below
        radius = p * float(o) ** k / (2 * math.pi) if k else b + c
        plateau = wedge(a, 0.0, radius, h, rho)
        below: list[tuple[str, str, float, float, np.ndarray | None]] = []
        for parent, path, x, y, rotation in ends:
            position = (x, y, 0.0 if parent == top else -h)
            for i in range(l):
                name, body = (f"{path}link{i}", link) if i < l - 1 else (f"{path}plateau", plateau)
                m.add_link(name, parent, joint, position=position, rotation=rotation, **body._asdict())
                parent, position, rotation = name, (0.0, 0.0, -h), None
            for i in range(o if k else 0):
                cos, sin = math.cos(2 * math.pi * i / o), math.sin(2 * math.pi * i / o)
                below.append((parent, f"{path}{i}/", (radius - a) * cos, (radius - a) * sin,
                              np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])))
        ends = below
    return m
