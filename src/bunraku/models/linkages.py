"""Linkages with closed loops. The neutral position closes every loop; `bk.project` finds other closed poses.

Planar linkages move in the plane x z; their hinges turn from x to z. Unless stated otherwise a link's frame is at
its own joint, with x along the link at the neutral position.

The N-four-bar and Bricard linkages are problems A02 and A04 of the IFToMM library of multibody benchmarks (M. Gonzalez,
D. Dopico, U. Lugris, J. Cuadrado: A benchmarking system for MBS simulation software, Multibody System Dynamics 16,
2006), with z up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bunraku.checks import as_count
from bunraku.errors import ModelError
from bunraku.mechanism import Joint, Mechanism, Prismatic, Revolute, Spherical
from bunraku.models.solid_inertias import Solid, box, rod

HINGE = (0.0, -1.0, 0.0)  # seen with x to the right and z up, anticlockwise


def four_bar(lengths: Sequence[float] = (1.2, 0.5, 1.0, 0.9), angle: float = math.pi / 2, *, mass: float = 1.0,
             gravity: Sequence[float] = (0.0, 0.0, -9.81)) -> Mechanism:
    """Crank, coupler and rocker, thin rods; "pin" holds the rocker's end to the coupler's.

    lengths  of ground, crank, coupler and rocker; the rocker stands on the ground at x = lengths[0] [m]
    angle    of the crank at the neutral position, from x towards z [rad]
    mass     of each metre of rod [kg/m]
    """
    lengths = _lengths("four_bar", lengths, 4)
    ground, crank, coupler, rocker = lengths
    pin = np.array([crank * math.cos(angle), crank * math.sin(angle)])
    across = np.array([ground, 0.0]) - pin
    distance = math.hypot(*across)
    if not abs(coupler - rocker) < distance < coupler + rocker:
        raise ModelError(f"four_bar: with lengths {lengths} the loop cannot close at a crank angle of {angle:g} rad")
    along = (coupler**2 - rocker**2 + distance**2) / (2.0 * distance)
    up = math.sqrt(coupler**2 - along**2)
    end = pin + (along * across + up * np.array([-across[1], across[0]])) / distance
    turn_coupler = math.atan2(*(end - pin)[::-1])
    turn_rocker = math.atan2(end[1], end[0] - ground)
    m = Mechanism(gravity, name="four-bar linkage")
    _add(m, "crank", "ground", (0.0, 0.0, 0.0), angle, rod(mass * crank, crank))
    _add(m, "coupler", "crank", (crank, 0.0, 0.0), turn_coupler - angle, rod(mass * coupler, coupler))
    _add(m, "rocker", "ground", (ground, 0.0, 0.0), turn_rocker, rod(mass * rocker, rocker))
    m.connect("coupler", "rocker", Revolute(HINGE), name="pin", position_a=(coupler, 0.0, 0.0),
              rotation_a=_turn(turn_rocker - turn_coupler), position_b=(rocker, 0.0, 0.0))
    return m


def n_four_bar(n: int = 2, *, length: float = 1.0, mass: float = 1.0,
               gravity: Sequence[float] = (0.0, 0.0, -9.81)) -> Mechanism:
    """n four-bar windows in a row: posts "post0" ... stand on the ground, bars "bar0" ... join their tops.

    All 2 n + 1 links are thin rods of the same length and mass. The posts stand upright at the neutral position; the
    benchmark starts there with post rates of -1 rad/s and bar rates of 1. One degree of freedom, but n + 1 at the
    instant when all lie flat.
    """
    n = as_count("n_four_bar: the number of windows", n)
    _lengths("n_four_bar", (length, mass), 2)
    m = Mechanism(gravity, name=f"{n}-four-bar linkage")
    for i in range(n + 1):
        _add(m, f"post{i}", "ground", (i * length, 0.0, 0.0), math.pi / 2, rod(mass, length))
    for i in range(n):
        _add(m, f"bar{i}", f"post{i}", (length, 0.0, 0.0), -math.pi / 2, rod(mass, length))
    for i in range(n):
        m.connect(f"bar{i}", f"post{i + 1}", Revolute(HINGE), name=f"pin{i}", position_a=(length, 0.0, 0.0),
                  rotation_a=_turn(math.pi / 2), position_b=(length, 0.0, 0.0))
    return m


def bricard(*, length: float = 1.0, mass: float = 1.0, width: float = 0.1,
            gravity: Sequence[float] = (0.0, 0.0, -9.81)) -> Mechanism:
    """Five rods "rod0" ... "rod4" along edges of a cube and the ground as the sixth: six hinges, each at right angles
    to both its rods. By the Gruebler count it is rigid; it has one degree of freedom, and one redundant constraint.

    Link axes are those of the world at the neutral position. Rods have a square section of the given width; "hinge5"
    closes the loop.
    """
    _lengths("bricard", (length, mass, width), 3)
    edges = np.array([(1, 0, 0), (0, -1, 0), (0, 0, 1), (-1, 0, 0), (0, 1, 0)], float)  # the ground's is (0, 0, -1)
    axes = np.array([(0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)], float)
    m = Mechanism(gravity, name="Bricard linkage")
    for i, edge in enumerate(edges):
        body = box(mass, width + (length - width) * np.abs(edge), com=0.5 * length * edge)
        m.add_link(f"rod{i}", f"rod{i - 1}" if i else "ground", Revolute(axes[i]), joint_name=f"hinge{i}",
                   position=length * edges[i - 1] if i else (0.0, 0.0, 0.0), **body._asdict())
    m.connect("ground", "rod4", Revolute(axes[5]), name="hinge5", position_a=length * edges.sum(axis=0),
              position_b=length * edges[4])
    return m


def slider_crank(crank: float = 0.3, rod_length: float = 1.0, angle: float = math.pi / 3, *, offset: float = 0.0,
                 mass: float = 1.0, slider_mass: float = 1.0,
                 gravity: Sequence[float] = (0.0, 0.0, -9.81)) -> Mechanism:
    """Crank and "rod", thin rods, drive a "slider" along x at height `offset`; "pin" holds it to the rod's end.

    angle  of the crank at the neutral position, where the slider's coordinate is zero
    mass   of each metre of rod [kg/m]
    """
    _lengths("slider_crank", (crank, rod_length), 2)
    rise = offset - crank * math.sin(angle)
    if abs(rise) >= rod_length:
        raise ModelError(f"slider_crank: a rod of {rod_length:g} m does not reach the slider at a crank angle of "
                         f"{angle:g} rad")
    turn = math.asin(rise / rod_length)
    x = crank * math.cos(angle) + rod_length * math.cos(turn)
    m = Mechanism(gravity, name="slider-crank")
    _add(m, "crank", "ground", (0.0, 0.0, 0.0), angle, rod(mass * crank, crank))
    _add(m, "rod", "crank", (crank, 0.0, 0.0), turn - angle, rod(mass * rod_length, rod_length))
    m.add_link("slider", "ground", Prismatic((1.0, 0.0, 0.0)), position=(x, 0.0, offset), mass=slider_mass)
    m.connect("rod", "slider", Revolute(HINGE), name="pin", position_a=(rod_length, 0.0, 0.0), rotation_a=_turn(-turn))
    return m


def chain_held(n: int = 10, joint: str = "spherical", *, span: float | None = None, length: float = 0.2,
               mass: float = 1.0, width: float = 0.04, gravity: Sequence[float] = (0.0, 0.0, -9.81)) -> Mechanism:
    """A chain of n equal links "link0", ... that hangs between two points at the same height.

    At the neutral position it is at rest under gravity along -z: every joint transmits the same horizontal force.

    joint  "revolute" or "spherical", of all joints and of "end", which holds the last link to the ground
    span   distance of the two points; three quarters of the chain's length unless given [m]
    length, width, mass   of each link, a solid box [m, m, kg]
    """
    n = as_count("chain_held: the number of links", n, least=2)
    _lengths("chain_held", (length, width, mass), 3)
    if joint not in ("revolute", "spherical"):
        raise ModelError(f"chain_held: joint {joint!r} is not one of revolute, spherical")
    span = 0.75 * n * length if span is None else span
    turns = _bow(n, span / length)
    own: Joint = Spherical() if joint == "spherical" else Revolute(HINGE)
    body = box(mass, (length, width, width), com=(0.5 * length, 0.0, 0.0))
    m = Mechanism(gravity, name=f"chain of {n} held at both ends")
    before = 0.0
    for i, turn in enumerate(turns):
        parent, start = (f"link{i - 1}", length) if i else ("ground", 0.0)
        _add(m, f"link{i}", parent, (start, 0.0, 0.0), turn - before, body, own)
        before = turn
    m.connect("ground", f"link{n - 1}", own, name="end", position_a=(span, 0.0, 0.0), rotation_a=_turn(turns[-1]),
              position_b=(length, 0.0, 0.0))
    return m


def _bow(n, span):
    """Angles of n hinged unit rods that hang at rest: the vertical force grows by a rod's weight from middle to middle,
    the horizontal force is the same in all; it is found by bisection so that the rods have the given span."""
    vertical = np.arange(n) - 0.5 * (n - 1)
    least = n % 2
    if not least < span < n:
        raise ModelError(f"chain_held: a chain of {n} links can span more than {least} and less than {n} times a "
                         f"link's length, not {span:g}")
    low, high = 1e-9, 1e9
    for _ in range(200):
        horizontal = math.sqrt(low * high)
        if np.sum(horizontal / np.hypot(horizontal, vertical)) < span:
            low = horizontal
        else:
            high = horizontal
    return np.arctan2(vertical, horizontal).tolist()


def _add(m: Mechanism, name: str, parent: str, position, turn: float, body: Solid, joint: Joint | None = None):
    m.add_link(name, parent, joint or Revolute(HINGE), position=position, rotation=_turn(turn), **body._asdict())


def _turn(angle: float) -> np.ndarray:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]])


def _lengths(what, values, count) -> tuple[float, ...]:
    try:
        numbers = tuple(float(x) for x in values)
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != count or not all(math.isfinite(x) and x > 0 for x in numbers):
        raise ModelError(f"{what}: lengths and masses must be {count} positive numbers, not {values!r}")
    return numbers
