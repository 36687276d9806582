"""bunraku info FILE: contents of a model file, as a tree or as JSON."""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings

import bunraku as bk
from bunraku.errors import LoadWarning

EPILOG = """\
example: bunraku info robot.urdf --moving

columns:
  type     and axis of the joint; links on fixed joints merge with their parents
           and cost nothing
  v        the places of the joint's degrees of freedom in v, a and tau
  limits   of its coordinates
  kg       mass of the link
"""


def add_parser(subparsers) -> None:
    """Add `info` to the command line."""
    parser = subparsers.add_parser("info", help="show what is in a model file",
                                   description="Contents of a model file, as a tree or as JSON.", epilog=EPILOG,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE", help="a model file: .urdf, .xacro, .xml (MJCF), .sdf or .bvh")
    parser.add_argument("--base", choices=("free", "fixed"), default="free",
                        help="how the root hangs from the ground, if the file has no root joint (default: free)")
    parser.add_argument("--strict", action="store_true", help="fail if the file is not clean")
    parser.add_argument("--moving", action="store_true", help="leave out links on fixed joints")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args) -> int:
    from bunraku.io import load

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mechanism = load(args.file, base=args.base, strict=args.strict)
    notes = [str(w.message) for w in caught if issubclass(w.category, LoadWarning)]
    if args.json:
        print(json.dumps(summary(mechanism, args.file, notes), indent=1))
    else:
        _print(text(mechanism, notes, args.moving))
    return 0


def _print(lines: str) -> None:
    """Print, with plain characters on a terminal without line-drawing characters."""
    encoding = sys.stdout.encoding or "ascii"
    try:
        lines.encode(encoding)
    except UnicodeEncodeError:
        lines = lines.translate(str.maketrans("│├└─·", "|+`-0")).replace("∞", "inf")
        lines = lines.encode(encoding, "replace").decode(encoding)
    print(lines)


# -- as data -----------------------------------------------------------------------------------------------------------


def summary(mechanism: bk.Mechanism, file: str, notes: list[str]) -> dict:
    """The report of `info` as plain data for JSON; missing limits are null."""
    from bunraku.mechanism.joints import LAWS, PASSIVE

    names = [*mechanism.link_names, "ground"]
    return {
        "file": str(file), "name": mechanism.name, "gravity": mechanism.gravity.tolist(), "mass": mechanism.mass,
        "nq": mechanism.nq, "nv": mechanism.nv, "nc": mechanism.nc, "mobility": mobility(mechanism),
        "links": [{
            "name": link.name, "parent": names[link.parent], "mass": link.mass, "com": link.com.tolist(),
            "inertia": link.inertia.tolist(), "visuals": len(link.visuals),
            "position": link.position.tolist(), "rotation": link.rotation.tolist(),
            "joint": {
                "name": link.joint_name, "type": type(link.joint).__name__, "axis": _direction(link.joint),
                "q": _places(mechanism.q_slice(link.joint_name)), "v": _places(mechanism.v_slice(link.joint_name)),
                "actuated": link.actuated, **{name: [x if math.isfinite(x) else None for x in column.tolist()]
                                              for name, column in zip(PASSIVE, link.joint.passive.T, strict=True)},
                **{name: link.joint.laws[:, place].tolist() for place, name in enumerate(LAWS)},
            },
        } for link in mechanism.links],
        "springs": [{"name": s.name, "from": names[s.link_a], "to": names[s.link_b], "stiffness": s.stiffness,
                     "rest_length": s.rest_length, "damping": s.damping} for s in mechanism.springs],
        "connections": [{
            "name": c.name, "from": names[c.link_a], "to": names[c.link_b], "type": type(c.joint).__name__,
            "axis": _direction(c.joint), "actuated": c.actuated, "drive": _places(mechanism.drive_slice(c.name)),
            "position_from": c.position_a.tolist(), "rotation_from": c.rotation_a.tolist(),
            "position_to": c.position_b.tolist(), "rotation_to": c.rotation_b.tolist(),
        } for c in mechanism.connections.values()],
        "couplings": [{"joint": c.joint, "to": c.to, "ratio": c.ratio, "offset": c.offset}
                      for c in mechanism.couplings.values()],
        "warnings": notes,
    }


def mobility(mechanism: bk.Mechanism) -> int:
    """Mobility at the neutral position: nv minus the number of independent constraints."""
    if not mechanism.constrained:
        return mechanism.nv
    from bunraku.evaluate import closed_chain

    return closed_chain(mechanism, mechanism.neutral()).freedom


def _direction(joint) -> list[float] | None:
    axis = getattr(joint, "normal", getattr(joint, "axis", None))
    return None if axis is None else axis.tolist()


def _places(where: slice) -> list[int]:
    return list(range(where.start, where.stop))


# -- as text -----------------------------------------------------------------------------------------------------------

HEAD = ("link", "joint", "type", "v", "limits", "", "", "kg")
MAX_INDENT = 40
"""Columns of branches after which deeper links are no longer moved to the right."""


def text(mechanism: bk.Mechanism, notes: list[str], moving_only: bool = False) -> str:
    """The tree with its totals, connections, springs and warnings."""
    rows = list(_tree(mechanism, moving_only))
    parts = [*_totals(mechanism), "", *_table(rows)]
    names = [*mechanism.link_names, "ground"]
    if mechanism.connections:
        parts += ["", f"connections ({len(mechanism.connections)})"]
        parts += [f"  {c.name}: {names[c.link_a]} - {names[c.link_b]}, {' '.join(_motion(c.joint).split())}"
                  for c in mechanism.connections.values()]
    if mechanism.couplings:
        parts += ["", f"couplings ({len(mechanism.couplings)})"]
        parts += [f"  {c.equation}" for c in mechanism.couplings.values()]
    if mechanism.springs:
        parts += ["", f"springs ({len(mechanism.springs)})"]
        parts += [f"  {s.name}: {names[s.link_a]} - {names[s.link_b]}, {s.stiffness:g} N/m, "
                  f"at rest {s.rest_length:g} m, damping {s.damping:g} Ns/m" for s in mechanism.springs]
    if notes:
        parts += ["", f"warnings ({len(notes)})", *(f"  {note}" for note in notes)]
    return "\n".join(parts)


def _totals(mechanism: bk.Mechanism) -> list[str]:
    fixed = sum(isinstance(link.joint, bk.Fixed) for link in mechanism.links)
    visuals = sum(len(link.visuals) for link in mechanism.links)
    held, coupled = len(mechanism.connections), len(mechanism.couplings)
    with_them = [_count(held, "connection")] if held else []
    with_them += [_count(coupled, "coupling")] if coupled else []
    loops = [f"  {_count(mechanism.nv + mechanism.nc, 'joint degree')} of freedom with those of "
             f"{' and '.join(with_them)}; mobility {mobility(mechanism)} at the neutral position"] if with_them else []
    return [mechanism.name,
            f"  {_count(len(mechanism.links), 'link')} on {_count(len(mechanism.links) - fixed, 'moving joint')} "
            f"and {_count(fixed, 'fixed joint')}, {_count(visuals, 'visual')}",
            f"  {_count(mechanism.nv, 'degree')} of freedom (nq {mechanism.nq}, nv {mechanism.nv})", *loops,
            f"  {mechanism.mass:.6g} kg, gravity ({', '.join(f'{x:g}' for x in mechanism.gravity)}) m/s^2"]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """A table with columns of the necessary width. Limits are three columns, aligned at the decimal points."""
    columns = list(zip(*rows or [HEAD], strict=True))
    widths = [max(map(len, column)) for column in columns]
    limits = widths[4] + widths[5] + (4 if widths[5] else 0)
    titles = [len(title) for title in HEAD]
    for k in (0, 1, 2, 3, 7):
        widths[k] = max(widths[k], titles[k])
    limits = max(limits, titles[4])

    def line(link, joint, kind, places, lower, upper, unit, mass):
        bounds = f"{lower:>{widths[4]}} .. {upper:>{widths[5]}}" if upper else lower
        return (f"{link:<{widths[0]}}  {joint:<{widths[1]}}  {kind:<{widths[2]}}  {places:>{widths[3]}}  "
                f"{bounds:<{limits}} {unit:<{widths[6]}}  {mass:>{widths[7]}}")

    head = line(*HEAD)
    return [head, "─" * len(head), *(line(*row) for row in rows)]


def _tree(mechanism: bk.Mechanism, moving_only: bool):
    """A row for each link, children under parents."""
    children: dict[int, list[int]] = {}
    shown: list[int] = []  # of each link, the link under which its children are shown
    for i, link in enumerate(mechanism.links):
        parent = -1 if link.parent < 0 else shown[link.parent]
        hidden = moving_only and isinstance(link.joint, bk.Fixed)
        shown.append(parent if hidden else i)
        if not hidden:
            children.setdefault(parent, []).append(i)
    stack = [(i, "", "") for i in reversed(children.get(-1, []))]
    while stack:
        i, branch, under = stack.pop()
        yield _row(mechanism, i, branch)
        below = children.get(i, [])
        for k in range(len(below) - 1, -1, -1):
            last = k == len(below) - 1
            deeper = under + ("  " if last else "│ ")
            stack.append((below[k], under + ("└ " if last else "├ "), deeper if len(deeper) <= MAX_INDENT else under))


def _row(mechanism: bk.Mechanism, i: int, branch: str) -> tuple[str, ...]:
    link = mechanism.links[i]
    where = mechanism.v_slice(link.joint_name)
    places = ("", str(where.start))[link.joint.nv] if link.joint.nv < 2 else f"{where.start}..{where.stop - 1}"
    mass = f"{link.mass:.3f}" if link.mass >= 0.01 else f"{link.mass:.2g}" if link.mass else "·"
    return branch + link.name, link.joint_name, _motion(link.joint), places, *_limits(link.joint), mass


def _motion(joint) -> str:
    """Type and axis of the joint: "revolute   z", "prismatic (0.6, 0, 0.8)"."""
    kind, axis = type(joint).__name__.lower(), _direction(joint)
    if isinstance(joint, bk.Compound):
        return " + ".join(" ".join(_motion(screw).split()) for screw in joint.screws)
    if axis is None:
        return kind
    extra = f", pitch {joint.linear:g}" if isinstance(joint, bk.Helical) else ""
    return f"{kind:<9} {_axis_name(axis)}{extra}"


def _axis_name(axis) -> str:
    for k, name in enumerate("xyz"):
        if abs(abs(axis[k]) - 1) < 1e-12:
            return f"-{name}" if axis[k] < 0 else f" {name}"
    return "(" + ", ".join(f"{x:.3g}" for x in axis) + ")"


def _limits(joint) -> tuple[str, str, str]:
    """Lower, upper, unit; empty for joints without limits."""
    from bunraku.mechanism.joints import PASSIVE

    pairs = joint.passive[:, [PASSIVE.index("lower"), PASSIVE.index("upper")]].tolist()
    if all(math.isinf(lower) and math.isinf(upper) for lower, upper in pairs):
        return "", "", ""
    if len(pairs) > 1:
        return ", ".join(f"{_bound(lower)}..{_bound(upper)}" for lower, upper in pairs), "", ""
    lower, upper = pairs[0]
    return _bound(lower), _bound(upper), "m" if isinstance(joint, bk.Prismatic) else "rad"


def _bound(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "-∞" if value < 0 else "∞"
