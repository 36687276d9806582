"""Curves of a motion over time: energies, coordinates, velocities, forces of joints and contacts, loop error, steps of
the solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bunraku.checks import hint
from bunraku.entries.closed_solution import gaps
from bunraku.errors import NamingError, ShapeError
from bunraku.evaluate import dynamics
from bunraku.mechanism.coordinate_names import coordinate_names
from bunraku.simulation.records.recorded_forces import contacts_in, refuse_no_shapes, refuse_unknown_forces, thinned
from bunraku.simulation.records.trajectory import Trajectory, as_trajectory
from bunraku.view.filmstrip import (
    DPI,
    FAINT,
    INK,
    KINETIC,
    MARGIN,
    OVER,
    PAPER,
    POTENTIAL,
    SENTENCE,
    TOTAL,
    apart,
    covered,
    drawing,
    dress,
    round_times,
    short,
)
from bunraku.view.filmstrip import happenings as named_events

if TYPE_CHECKING:
    from bunraku.simulation import Simulation

    Curve = tuple[np.ndarray, np.ndarray]

TONES = ("#d1603d", "#2f7f86", "#8a5a9e", "#b08a2e", "#5b7f3a", "#39424e", "#c2477f", "#4a6fb5")
MOST = len(TONES)      # curves in a panel, if none are named
STATES = 1500          # at which forces and loops are computed, about
WIDTH, TALL, BETWEEN = 10.0, 1.9, 0.5  # inches
LASTING, IMPACT = 0.98, 3.0  # forces beyond a multiple of this quantile are impacts
BRIEF = 0.01           # share of a motion: contacts that open or close for less have no mark
MARKS = {"touch": "^", "lift-off": "v", "impact": "x"}  # of contacts, on the foot of their panel


class Panel(NamedTuple):
    """Curves with one unit."""

    label: str
    curves: dict[str, Curve]
    note: str = ""     # what is not shown, and why
    log: bool = False
    marks: Sequence[tuple[str, str, float]] = ()  # of MARKS, curve, time
    top: float = np.inf  # what is larger leaves the panel


class Plot(Sequence[Panel]):
    """Panels of a trajectory as a picture: shown by notebooks, written by `save`; indexing gives the data of a
    panel."""

    def __init__(self, panels: list[Panel], page):
        self.panels, self.figure = panels, page

    def __len__(self):
        return len(self.panels)

    def __getitem__(self, k):
        return self.panels[k]

    def save(self, path) -> Path:
        """Write the picture: .png, .pdf or .svg by the extension."""
        self.figure.savefig(path, facecolor=PAPER)
        return Path(path)

    def _repr_png_(self) -> bytes:
        file = BytesIO()
        self.figure.savefig(file, format="png", facecolor=PAPER)
        return file.getvalue()

    def __repr__(self):
        return f"Plot of {', '.join(panel.label for panel in self.panels)}"


def plot(trajectory: Trajectory | Simulation, path=None, what: Sequence[str] = ("energy", "q", "v"),
         joints: Sequence[str] | None = None, title: str | None = None) -> Plot:
    """Draw panels of a trajectory, or that of a simulation, below each other: to a picture file if a path is given, and
    in notebooks as the result.

    what     of "energy", "q", "v", "tau", "forces", "contacts", "pressure", "loops", "steps"
    joints   names of the joints and connections to show, for contacts those of links and shapes; by default those with
             the largest motion or load
    """
    trajectory, (Page, Canvas) = as_trajectory(trajectory), drawing()
    times = trajectory.t
    if not (len(times) and times[-1] > times[0]):
        raise ShapeError("this trajectory has no duration: there is nothing to draw")
    wanted = [panel for name in what for panel in _of(name)(trajectory, joints)]
    if not wanted:
        raise ShapeError(f"what to plot? Give some of {', '.join(map(repr, WHAT))}")
    names = [name for panel in wanted for name in panel.curves]
    right = 0.35 + 0.072 * max(len(short(name)) for name in names)
    above, below = 0.95, 0.62
    height = above + below + len(wanted) * TALL + (len(wanted) - 1) * BETWEEN
    page = Page(figsize=(WIDTH, height), dpi=DPI, facecolor=PAPER)
    Canvas(page)
    events = named_events(trajectory)
    for k, panel in enumerate(wanted):
        bottom = below + (len(wanted) - 1 - k) * (TALL + BETWEEN)
        axes = page.add_axes((MARGIN / WIDTH, bottom / height, (WIDTH - MARGIN - right) / WIDTH, TALL / height))
        _draw(axes, panel, (float(times[0]), float(times[-1])), last=k == len(wanted) - 1)
        for at, _ in events:
            axes.axvline(at, color=INK, lw=0.8, zorder=1)
        if k == 0:
            _name_events(axes, events, float(times[-1] - times[0]))
    mechanism = trajectory.segments[0].mechanism
    page.text(MARGIN / WIDTH, 1 - 0.42 / height, short(mechanism.name if title is None else title, SENTENCE),
              fontsize=17, color=INK, family="serif", va="center")
    drawn = Plot(wanted, page)
    if path is not None:
        drawn.save(path)
    return drawn


# -- what there is to see ------------------------------------------------------------------------------------------


def _energy(trajectory, joints):
    t, kinetic, potential = trajectory.energy()
    return [Panel("energy [J]", {"potential": (t, potential), "kinetic": (t, kinetic),
                                 "total": (t, kinetic + potential)})]


def _coordinates(label, kind):
    def panels(trajectory, joints):
        curves: dict[str, list[Curve]] = {}
        for segment in trajectory.segments:
            values = getattr(segment, kind)
            if values is None:
                raise ShapeError("torques are not in this recording; `bunraku run` records them")
            for name, column in zip(getattr(coordinate_names(segment.mechanism), kind), values.T, strict=True):
                curves.setdefault(name, []).append((segment.t, column))
        joined = {name: _joined(parts) for name, parts in curves.items()}
        return [_chosen(label, joined, trajectory, joints, lambda y: float(np.nanmax(y) - np.nanmin(y)), "vary")]
    return panels


def _forces(trajectory, joints):
    curves: dict[str, list[Curve]] = {}
    refuse_unknown_forces(trajectory)
    for segment in trajectory.segments:
        k = thinned(len(segment.t), STATES // len(trajectory.segments))
        tau = None if segment.tau is None else segment.tau[k]
        touching = [contacts_in(segment, i) for i in k] if segment.mechanism.may_touch() else None
        found = dynamics(segment.mechanism, segment.q[k], segment.v[k], tau, contacts=touching).forces
        for name, wrench in found.items():
            curves.setdefault(name, []).append((segment.t[k], np.linalg.norm(wrench[:, :3], axis=1)))
    joined = {name: _joined(parts) for name, parts in curves.items()}
    return [_without_impacts(_chosen("force [N]", joined, trajectory, joints, lambda y: float(np.nanmax(y)), "carry"))]


def _contacts(trajectory, joints):
    """Normal force and friction of every pair of touching shapes, summed over its contacts."""
    refuse_no_shapes(trajectory)
    refuse_unknown_forces(trajectory)
    found: list[tuple[np.ndarray, list[dict]]] = []
    for segment in trajectory.segments:
        k = thinned(len(segment.t), STATES // len(trajectory.segments))
        found.append((segment.t[k], [_by_pair(contacts_in(segment, i), joints) for i in k]))
    pairs = dict.fromkeys(pair for _, states in found for state in states for pair in state)
    if not pairs:
        about = f" of {', '.join(map(repr, joints))}" if joints else ""
        raise ShapeError(f"contacts{about}: no contact force in this motion; leave this panel out")
    panels = [{f"{a} - {b}": _joined([(t, np.array([state.get((a, b), (0.0, 0.0))[part] for state in states]))
                                      for t, states in found]) for a, b in pairs} for part in (0, 1)]
    best = sorted(panels[0], key=lambda name: -float(np.nanmean(panels[0][name][1])))[:MOST]
    note = f"{MOST} of {len(pairs)} pairs; --joints chooses others" if len(pairs) > MOST else ""
    shown = [{name: curve for name, curve in panel.items() if name in best} for panel in panels]
    marks = _marks(trajectory, shown[0])
    return [_without_impacts(panel) for panel in (Panel("normal force [N]", shown[0], note, marks=marks),
                                                  Panel("friction [N]", shown[1]))]


def _pressure(trajectory, joints):
    """Centre of pressure of every pair of links in contact; gaps in the curves where there is no load."""
    refuse_no_shapes(trajectory)
    refuse_unknown_forces(trajectory)
    states = [(float(segment.t[i]), contacts_in(segment, i).resultants) for segment in trajectory.segments
              for i in thinned(len(segment.t), STATES // len(trajectory.segments))]
    pairs = dict.fromkeys(pair for _, found in states for pair, total in found.items()
                          if total.center_of_pressure is not None and (joints is None or {*pair} & set(joints)))
    if not pairs:
        about = f" of {', '.join(map(repr, joints))}" if joints else ""
        raise ShapeError(f"pressure{about}: no contact force in this motion; leave this panel out")
    t, nowhere, curves = np.array([when for when, _ in states]), np.full(3, np.nan), {}
    for pair in list(pairs)[:MOST]:
        places = [found[pair].center_of_pressure if pair in found else None for _, found in states]
        curves[" - ".join(pair)] = np.array([nowhere if p is None else p for p in places])
    note = f"{MOST} of {len(pairs)} pairs; --joints chooses others" if len(pairs) > MOST else ""
    return [Panel(f"centre of pressure {axis} [m]", {name: (t, p[:, k]) for name, p in curves.items()},
                  "" if k else note) for k, axis in enumerate("xyz")]


def _without_impacts(panel: Panel) -> Panel:
    """A panel of forces, clipped above the sustained ones: with fixed steps an impact is a large force in one step."""
    largest = max(float(np.nanmax(y)) for _, y in panel.curves.values())
    lasting = max(float(np.nanquantile(y, LASTING)) for _, y in panel.curves.values())
    if not largest > IMPACT * lasting > 0.0:
        return panel
    note = f"impacts up to {float(f'{largest:.2g}'):.0f} N are cut off"
    return panel._replace(top=1.5 * lasting, note=f"{panel.note}; {note}" if panel.note else note)


def _by_pair(contacts, names) -> dict[tuple[str, str], tuple[float, float]]:
    """{pair: (normal force, friction)} of the loaded pairs, of all or of the named links and shapes."""
    sums: dict[tuple[str, str], np.ndarray] = {}
    for contact in contacts:
        if contact.mode != "open" and (names is None or {*contact.pair, *contact.links} & set(names)):
            along = float(contact.force @ contact.normal)
            parts = np.array([along, *(contact.force - along * contact.normal)])
            sums[contact.pair] = sums.get(contact.pair, 0.0) + parts
    return {pair: (float(x[0]), float(np.linalg.norm(x[1:]))) for pair, x in sums.items()}


def _marks(trajectory, curves) -> list[tuple[str, str, float]]:
    """Times of touch-down and lift-off of pairs, from their forces; of impacts, from the events."""
    marks = []
    for name, (t, force) in curves.items():
        known = np.isfinite(force)
        at, pressed = t[known], force[known] > 0.0
        turns = np.flatnonzero(np.diff(pressed)) + 1
        brief = np.diff(at[turns]) < BRIEF * (trajectory.t[-1] - trajectory.t[0])
        kept = np.ones(len(turns), bool)
        for k in np.flatnonzero(brief):  # a moment apart, or together: no mark at all
            if kept[k]:
                kept[k] = kept[k + 1] = False
        marks += [("touch" if pressed[k] else "lift-off", name, float(at[k])) for k in turns[kept]]
    for event in trajectory.events:
        for name in curves:
            if event.text.startswith("impact of {!r} and {!r}:".format(*name.split(" - "))):
                marks.append(("impact", name, event.t))
    struck = {mark[1:] for mark in marks if mark[0] == "impact"}
    return list(dict.fromkeys(mark for mark in marks if mark[0] != "touch" or mark[1:] not in struck))


def _loops(trajectory, joints):
    parts = []
    for segment in trajectory.segments:
        plan, k = segment.mechanism.plan(), thinned(len(segment.t), STATES // len(trajectory.segments))
        if plan.loops is not None:
            parts.append((segment.t[k], np.array([gaps(plan, q)[0].max(initial=0.0) for q in segment.q[k]])))
    if not parts:
        raise ShapeError("there are no loops in this recording: the mechanism has no connections")
    t, error = _joined(parts)
    return [Panel("loop error [m, rad]", {"largest gap": (t, np.maximum(error, 1e-17))}, log=True)]


def _steps(trajectory, joints):
    parts = [(s.t[1:], np.diff(s.t)) for s in trajectory.segments if len(s.t) > 1]
    if not parts:
        raise ShapeError("there are no steps in this recording: every segment has one state only")
    t, step = _joined(parts)
    panels = [Panel("step [s]", {"step": (t, np.maximum(step, 1e-17))}, log=True)]
    orders = [(s.steps.table[:, 3], s.steps.table[:, 2]) for s in trajectory.segments if s.steps is not None]
    if orders:
        panels.append(Panel("order", {"order": _joined(orders)}))
    else:
        panels[0] = panels[0]._replace(note="orders are recorded by dense simulations only")
    return panels


WHAT: dict[str, Callable] = {
    "energy": _energy, "q": _coordinates("coordinates [m, rad]", "q"),
    "v": _coordinates("velocities [m/s, rad/s]", "v"),
    "tau": _coordinates("torques [N, N m]", "tau"), "forces": _forces,
    "contacts": _contacts, "pressure": _pressure, "loops": _loops, "steps": _steps}


def _of(name: str):
    if name not in WHAT:
        raise NamingError(f"there is no plot {name!r}{hint(name, list(WHAT))}")
    return WHAT[name]


def _chosen(label, curves, trajectory, joints, size, verb) -> Panel:
    """The curves of the named joints, or the largest."""
    if joints is not None:
        found = _found(trajectory, joints)
        keys = [key for name in found for key in curves if key == name or key.startswith(f"{name}.")]
        if not keys:
            raise NamingError(f"{label.split(' [')[0]}: {', '.join(map(repr, joints))} ha{'ve' if joints[1:] else 's'} "
                              "none; name other joints, or leave this panel out")
        return Panel(label, {key: curves[key] for key in dict.fromkeys(keys)})
    if len(curves) <= MOST:
        return Panel(label, curves)
    best = sorted(curves, key=lambda name: -size(curves[name][1]))[:MOST]
    return Panel(label, {name: curves[name] for name in curves if name in best},
                 f"the {MOST} of {len(curves)} that {verb} most; --joints chooses others")


def _found(trajectory, joints) -> list[str]:
    """Joints and connections of these names; a joint may be called by its link."""
    known: dict[str, str] = {}
    for segment in trajectory.segments:
        m = segment.mechanism
        known |= {link.name: link.joint_name for link in m.links} | {name: name for name in m.connections}
    known |= {name: name for name in list(known.values())}
    for name in joints:
        if name not in known:
            raise NamingError(f"there is no joint or connection {name!r}{hint(name, list(known))}")
    return [known[name] for name in joints]


def _joined(parts: list[Curve]) -> Curve:
    """Curves of several segments as one, with gaps between."""
    t = np.concatenate([x for part, _ in parts for x in (part, part[-1:])])[:-1]
    y = np.concatenate([x for _, part in parts for x in (np.asarray(part, float), [np.nan])])[:-1]
    return t, y


# -- drawing -------------------------------------------------------------------------------------------------------


def _draw(axes, panel: Panel, limits: tuple[float, float], last: bool) -> None:
    tones = {name: TONES[k % len(TONES)] for k, name in enumerate(panel.curves)}
    tones |= {name: tone for name, tone in (("potential", POTENTIAL), ("kinetic", KINETIC), ("total", TOTAL))
              if name in tones}
    hidden = covered(panel.curves)
    for name, (t, y) in panel.curves.items():
        axes.plot(t, y, color=tones[name], lw=1.4, solid_capstyle="round", **(OVER if name in hidden else {}))
    if panel.log:
        axes.set_yscale("log")
    scale = np.log10 if panel.log else np.asarray
    everything = np.concatenate([y[np.isfinite(y)] for _, y in panel.curves.values()])
    low, high = (float(scale(x)) for x in (everything.min(), min(everything.max(), panel.top)))
    room = max(high - low, 1e-9 + 1e-3 * abs(high), 1.0 if panel.log or low == high == 0.0 else 0.0)
    ends = [low - 0.06 * room, low + 1.1 * room]
    axes.set(xlim=limits, ylim=[10.0**end for end in ends] if panel.log else ends)
    _draw_marks(axes, panel.marks, tones)
    names = []
    for name, (_, y) in panel.curves.items():
        names.append((float(scale(y[np.isfinite(y)][-1])), name))
    names.sort()
    heights = apart([value for value, _ in names], 0.155 / TALL * 1.16 * room)
    shift = max(ends[0] + 0.04 * room - heights[0], 0.0) or min(ends[1] - heights[-1], 0.0)  # beside their own panel
    heights = [height + shift for height in heights]
    for (_, name), height in zip(names, heights, strict=True):
        place = (height - ends[0]) / (ends[1] - ends[0])
        axes.annotate(short(name), (1, place), xycoords="axes fraction", xytext=(7, 0), textcoords="offset points",
                      color=tones[name], fontsize=9, va="center", annotation_clip=False)
    label = panel.label + (f"   ({panel.note})" if panel.note else "")
    axes.annotate(label, (0, 1), xycoords="axes fraction", xytext=(-MARGIN * 72 * 0.72, 6),
                  textcoords="offset points", fontsize=9, color=INK)
    if not panel.log:
        axes.locator_params(axis="y", nbins=4)
    axes.set_xticks(round_times(*limits))
    axes.grid(axis="x", color=FAINT, lw=0.6, dashes=(1, 2.2))
    axes.minorticks_off()
    dress(axes)
    if last:
        axes.set_xlabel("time [s]", fontsize=9, color=INK)
    else:
        axes.tick_params(labelbottom=False)


def _draw_marks(axes, marks, tones) -> None:
    """Marks of touch-down, lift-off and impact at the bottom of a panel, with a legend."""
    from matplotlib.transforms import offset_copy

    for kind, symbol in MARKS.items():
        hollow = kind == "lift-off"
        for _, name, at in (mark for mark in marks if mark[0] == kind):
            axes.plot([at], [0.0], symbol, transform=axes.get_xaxis_transform(), clip_on=False, ms=4.6, zorder=5,
                      mec=tones[name], mfc=PAPER if hollow else tones[name], mew=1.0)
    right = 0.0  # in points, from the right
    for kind in [kind for kind in reversed(MARKS) if any(mark[0] == kind for mark in marks)]:
        axes.annotate(kind, (1, 1), xycoords="axes fraction", xytext=(right, 6), textcoords="offset points", fontsize=8,
                      color=INK, ha="right", annotation_clip=False)
        right -= 4.4 * len(kind) + 6
        place = offset_copy(axes.transAxes, axes.figure, x=right, y=9, units="points")
        axes.plot([1], [1], MARKS[kind], transform=place, clip_on=False, ms=4.6, mec=INK,
                  mfc=PAPER if kind == "lift-off" else INK, mew=1.0)
        right -= 12


def _name_events(axes, events, duration: float) -> None:
    """Labels above the event lines, at heights without overlap."""
    ends: list[float] = []  # where the words on each level end
    for at, words in events:
        wide = 0.011 * len(words) * duration
        level = next((k for k, end in enumerate(ends) if at > end), len(ends))
        ends[level:level + 1] = [at + wide]
        axes.annotate(words, (at, 1), xycoords=axes.get_xaxis_transform(), xytext=(2, 17 + 10 * min(level, 2)),
                      textcoords="offset points", fontsize=8, color=INK, annotation_clip=False,
                      ha="left" if at < duration * 0.8 + events[0][0] else "right")
