"""[YN99, sec. 6]: high bar and swing with the paper's 16-DOF figure, no torques but those of joint limits.

The paper counts degrees of freedom of all joints, those of the free base and of virtual links included: N_J of eq. 6.

    high bar  16 + 6 of the pelvis + 1 at each hand = 24; the right hand lets go: 23
    swing     16 + 6 + 3 at each hand + 1 at each thigh = 30; both thighs have left the plate: 28

So the paper's 30 leaves none for the swing itself: it stands still here, drawn back, as one whose bearing has seized;
a second run gives it a hinge of its own, 31 to 29. Mobility, the N_F = N_J - m of eq. 6, rises where N_J falls.
The paper gives no masses, lengths, start or times: figure and swing are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import bunraku as bk
from bunraku.models.solid_inertias import box
from bunraku.simulation.closing import capture

PAPER = {"high bar": (24, 23), "swing": (30, 28)}
PALM = (0.0, 0.0, -0.09)                              # in the hand's frame [m]
LETS_GO = 0.55                                        # the right hand [s]
HANGING = {"root": 2.0, "shoulder": -2.9}             # turns about y, to the left [rad]
BACK, LEAN = 0.7, -0.5                                # the swing is drawn back, the trunk leans back [rad]
SEATED = {"root": BACK + LEAN, "hip": -np.pi / 2 - LEAN, "knee": 1.2, "shoulder": -0.5, "elbow": -1.4}
ROD, APART, DEPTH, WIDTH = 1.9, 0.30, 0.40, 0.52      # rods: length, half their distance; plate [m]
SEAT, HOLD = -0.12, 1.30                              # hips on the plate; hands, from the axle [m]
THIGH, MIDDLE = 0.085, 0.21                           # middle of a thigh: above the plate, from the hip [m]
FORWARD = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])  # axes of the plate, in a thigh that lies on it
STOP, YIELD = 5000.0, 0.01                            # limits: stiffness [N m/rad]; damping, as part of it [s]
SETTINGS: dict[str, Any] = {"solver": "tsit5", "rtol": 1e-7, "atol": 1e-9, "progress": False}


def run() -> dict:
    """Three runs, as plain numbers."""
    return {"runs": [account(name, sim, PAPER.get(name)) for name, sim in simulations().items()]}


def simulations() -> dict[str, bk.Simulation]:
    """The examples, simulated."""
    sims = {"high bar": high_bar(), "swing": swing(hinged=False), "swing with a hinge": swing(hinged=True)}
    for name, sim in sims.items():
        sim.run(until=1.1 if name == "high bar" else 1.0)
    return sims


def figure() -> bk.Mechanism:
    """The paper's figure, with limits that hold."""
    m = bk.models.human(16, limits=True)
    for link in m.links[1:]:
        if link.joint.nv:
            m = m.with_joint(link.joint_name, limit_stiffness=STOP, limit_damping=YIELD * STOP)
    return m


def posed(m: bk.Mechanism, turns: dict[str, float]) -> np.ndarray:
    """Coordinates with joints turned about the y axis, both sides alike."""
    v = np.zeros(m.nv)
    for link in m.links:
        y, where = turns.get(link.joint_name.split("_")[-1], 0.0), m.v_slice(link.joint_name)
        if isinstance(link.joint, bk.Revolute):
            v[where] = y * link.joint.axis[1]
        elif link.joint.nv:
            v[where.stop - 2] = y
    return m.integrate(m.neutral(), v)


def high_bar() -> bk.Simulation:
    """Both hands on the bar by a rotational joint each; the right one is cut at a given time."""
    m = figure()
    q = posed(m, HANGING)
    for side in ("left", "right"):
        y = float(bk.poses(m, q)[f"{side}_hand"][1][1])
        m.connect("ground", f"{side}_hand", bk.Revolute((0, 1, 0)), f"{side}_grip", position_a=(0, y, 0),
                  position_b=PALM)
    rotation, hand = bk.poses(m, q)["left_hand"]
    q[m.q_slice("root")][[0, 2]] -= (hand + rotation @ PALM)[[0, 2]]
    sim = bk.Simulation(m, *bk.project(m, q, np.zeros(m.nv)), **SETTINGS)
    sim.when(lambda t, q, v: t - LETS_GO, lambda sim: sim.cut("right_grip"), name="the right hand lets go")
    return sim


def swing(hinged: bool) -> bk.Simulation:
    """Hands on the rods by ball joints, thighs on the plate by sliding ones, each cut where the thigh leaves it."""
    m = figure()
    c, s = np.cos(BACK), np.sin(BACK)
    back = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    m.add_link("axle", joint=bk.Revolute((0, 1, 0)) if hinged else bk.Fixed(), rotation=back,
               **box(2.0, (0.03, 2 * APART, 0.03))._asdict())
    for side, y in (("left", APART), ("right", -APART)):
        m.add_link(f"{side}_rod", "axle", bk.Fixed(), position=(0, y, 0),
                   **box(3.0, (0.025, 0.025, ROD), (0, 0, -ROD / 2))._asdict())
    m.add_link("plate", "left_rod", bk.Fixed(), position=(0, 0, -ROD),
               **box(3.0, (DEPTH, WIDTH, 0.03), (0, -APART, 0))._asdict())
    q = posed(m, SEATED)
    q[m.q_slice("root")][:3] = back @ (SEAT, 0, THIGH - ROD) - m.link("pelvis").position
    carried = (0, 0, -MIDDLE)
    for side in ("left", "right"):
        (position, rotation), _ = capture(m, q, "plate", f"{side}_thigh", (None, None), (carried, FORWARD))
        m.connect("plate", f"{side}_thigh", bk.Prismatic((1, 0, 0)), f"{side}_slide", position_a=position,
                  rotation_a=rotation, position_b=carried, rotation_b=FORWARD)
        m.connect(f"{side}_rod", f"{side}_hand", bk.Spherical(), f"{side}_grip", position_a=(0, 0, -HOLD),
                  position_b=PALM)
    sim = bk.Simulation(m, *bk.project(m, q, np.zeros(m.nv)), **SETTINGS)
    for side in ("left", "right"):
        sim.when(_past_the_edge(sim, f"{side}_slide"), lambda sim, side=side: sim.cut(f"{side}_slide"),
                 name=f"the {side} thigh leaves the plate")
    return sim


def _past_the_edge(sim: bk.Simulation, slide: str) -> Callable:
    edge = DEPTH / 2 - SEAT - MIDDLE
    return lambda t, q, v: bk.coordinates(sim.mechanism, slide, q)[0] - edge


# -- numbers ---------------------------------------------------------------------------------------------------------


def account(name: str, sim: bk.Simulation, paper) -> dict:
    """Counts, velocities, forces and errors of a run."""
    trajectory = sim.trajectory
    t, kinetic, potential = trajectory.energy()
    energy = kinetic + potential
    segments = trajectory.segments
    return {
        "name": name, "paper": paper, "seconds": float(t[-1]),
        "events": [{"t": e.t, "text": e.text} for e in trajectory.events if not e.text.startswith("cut ")],
        "phases": [phase(s) for s in segments],
        "velocity_jump": max(float(np.abs(b.v[0] - a.v[-1]).max()) for a, b in pairwise(segments)),
        "loop_error": sim.stats.loop_error, "limit_excess_degrees": max(beyond_limits(s) for s in segments),
        "energy_start": float(energy[0]), "energy_end": float(energy[-1]), "energy_most": float(energy.max()),
        "kinetic_max": float(kinetic.max()), "steps": sim.stats.steps,
    }


def phase(segment) -> dict:
    """One structure: counts [YN99, eq. 6], and at its first and last moment velocities and forces."""
    m = segment.mechanism
    chain = bk.closed_chain(m, segment.q[len(segment.q) // 2])
    ends = {}
    for when, k in (("first", 0), ("last", -1)):
        q, v = segment.q[k], segment.v[k]
        forces = bk.joint_forces(m, q, v)
        reference = bk.forward_dynamics(m, q, v, method="unit_vector")
        difference = np.abs(bk.forward_dynamics(m, q, v) - reference).max() / np.abs(reference).max()
        ends[when] = {"t": float(segment.t[k]), "fastest_joint": float(np.abs(v[6:]).max()),
                      "pelvis_speed": float(np.linalg.norm(v[:3])), "difference": float(difference),
                      "forces": {c: float(np.linalg.norm(forces[c][:3])) for c in m.connections}}
    return {"joint_dof": m.nv + m.nc, "independent": chain.rank + m.nc, "redundant": chain.constraints - chain.rank,
            "mobility": chain.freedom, **ends}


def beyond_limits(segment) -> float:
    """By how much a joint is beyond its range at most [degrees]."""
    m, worst = segment.mechanism, 0.0
    for link in m.links:
        q = segment.q[:, m.q_slice(link.joint_name)]
        if isinstance(link.joint, bk.Spherical):
            turn = 2.0 * np.arctan2(np.linalg.norm(q[:, 1:], axis=1), np.abs(q[:, 0]))
            worst = max(worst, float((turn - link.joint.upper[0]).max()))
        elif isinstance(link.joint, bk.Revolute):
            worst = max(worst, float(np.maximum(q - link.joint.upper, link.joint.lower - q).max()))
    return float(np.degrees(worst))


# -- for people ------------------------------------------------------------------------------------------------------


def text(result: dict) -> str:
    """The runs as a page."""
    lines = ["Structure-varying chains [YN99, sec. 6]: a 16-DOF figure, no torques but those that hold joint limits",
             "N_J: degrees of freedom of all joints, connections included; m: independent constraints of the loops;",
             "mobility: N_F = N_J - m [YN99, eq. 6]; double: constraints that others imply"]
    for r in result["runs"]:
        first, last = r["phases"][0]["joint_dof"], r["phases"][-1]["joint_dof"]
        said = f"; the paper: {r['paper'][0]}, then {r['paper'][1]}" if r["paper"] else ""
        lines += ["", f"{r['name']}: {first} degrees of freedom in total, then {last}{said}",
                  f"  {'from':>6}{'to':>7} |{'N_J':>5}{'m':>5}{'N_F':>5}{'double':>8} |{'pelvis m/s':>12}"
                  f"{'joint rad/s':>13} | forces at the end of the phase [N]"]
        for p in r["phases"]:
            forces = ", ".join(f"{name.replace('_', ' ')} {force:.0f}" for name, force in p["last"]["forces"].items())
            lines.append(f"  {p['first']['t']:6.3f}{p['last']['t']:7.3f} |{p['joint_dof']:>5}{p['independent']:>5}"
                         f"{p['mobility']:>5}{p['redundant']:>8} |{p['last']['pelvis_speed']:12.3f}"
                         f"{p['last']['fastest_joint']:13.3f} | {forces}")
        lines += [f"  at {e['t']:.3f} s {e['text']}" for e in r["events"]]
        lines += [f"  force in the left grip before and after: {before['last']['forces']['left_grip']:.1f}, "
                  f"{after['first']['forces']['left_grip']:.1f} N"
                  for before, after in pairwise(r["phases"])]
        worst = max(p[when]["difference"] for p in r["phases"] for when in ("first", "last"))
        lines += [f"  velocities jump by {r['velocity_jump']:.0e} where the structure changes; loops open by at most "
                  f"{r['loop_error']:.0e} m",
                  f"  limits exceeded by at most {r['limit_excess_degrees']:.1f} degrees; energy falls from "
                  f"{r['energy_start']:.1f} to {r['energy_end']:.1f} J (limits damp) and never rises above its start "
                  f"by more than {max(r['energy_most'] - r['energy_start'], 0.0):.0e} J",
                  f"  assembly-disassembly and the paper's unit-vector method differ by {worst:.0e}"]
    return "\n".join(lines)


def picture(result: dict, path: Path, drawing) -> list[Path]:
    """A filmstrip of each run."""
    from bunraku.view.filmstrip import filmstrip

    files = []
    for r, (name, sim) in zip(result["runs"], simulations().items(), strict=True):
        counts = ", then ".join(str(p["joint_dof"]) for p in r["phases"])
        files.append(filmstrip(sim.trajectory, path.with_stem(f"{path.stem}-{name.replace(' ', '-')}"), frames=8,
                               title=name.capitalize(), subtitle=f"no torques but those of joint limits; {counts} "
                                                                 "degrees of freedom of all joints"))
    return files
