"""Conservation in long motions: energy, momentum and loop closure over a minute.

Drifts are the largest deviation from the start along the whole motion, relative to the largest kinetic energy or to
the initial momentum. The human figure tumbles without gravity, so that neither is dwarfed by the fall. The four-bars
go round, through the flat position where they have more freedom, twice a turn.
"""

from __future__ import annotations

import numpy as np

import bunraku
from bunraku.bench import machine
from bunraku.bench.report import painter, target_lines

SECONDS = 60.0
CASES = (  # name, how to make it, relative tolerance, targets: energy, momentum, loops
    ("human 48, free", lambda: bunraku.models.human(dof=48), 1e-10, 1e-8, 1e-8, None),
    ("three four-bars", lambda: bunraku.models.n_four_bar(3), 1e-9, 1e-6, None, 1e-9),
    ("Bricard", bunraku.models.bricard, 1e-9, 1e-6, None, 1e-9),
)


def measure(name, make, rtol, seconds=SECONDS) -> dict:
    """One motion from a random velocity; drifts of all conserved quantities."""
    m = make()
    q, v = m.neutral(), 0.5 * np.random.default_rng(1).normal(size=m.nv)
    if m.connections:
        v = np.array([-1.0 if name.startswith("post") else 1.0 for name in m.joint_names])
        q, v = bunraku.project(m, q, v)
    else:
        m.gravity = (0, 0, 0)
    sim = bunraku.Simulation(m, q, v, rtol=rtol, atol=1e-2 * rtol)
    trajectory = sim.run(seconds)
    _, kinetic, potential = trajectory.energy()
    energy = kinetic + potential
    row = {"name": name, "dof": m.nv, "rtol": rtol, "seconds": seconds, "steps": sim.stats.steps,
           "evaluations": sim.stats.evaluations, "wall": sim.stats.wall_time, "loop": sim.stats.loop_error,
           "energy": float(np.abs(energy - energy[0]).max() / kinetic.max()), "momentum": None}
    if not m.connections:
        k = bunraku.kinematics(m, trajectory.q, trajectory.v).momentum
        row["momentum"] = max(float(np.linalg.norm(part - part[0], axis=1).max() / np.linalg.norm(part[0]))
                              for part in (k[:, :3], k[:, 3:]))
    return row


def run(seconds: float = SECONDS) -> dict:
    """All cases; the targets with what was measured."""
    rows, targets = [], []
    for name, make, rtol, *limits in CASES:
        row = measure(name, make, rtol, seconds)
        rows.append(row)
        for what, limit in zip(("energy", "momentum", "loop"), limits, strict=True):
            if limit is not None:
                targets.append({"what": f"{name}: {'loop error' if what == 'loop' else what + ' drift'}",
                                "measured": row[what], "target": limit, "met": row[what] < limit,
                                "unit": "m, rad" if what == "loop" else "relative"})
    return {"bunraku": bunraku.__version__, "machine": machine.describe(), "rows": rows, "targets": targets}


def text(result: dict, colour: bool = False) -> str:
    """A table, then every target."""
    paint = painter(colour)
    on = result["machine"]
    lines = [
        paint("1", f"bunraku {result['bunraku']}: what {result['rows'][0]['seconds']:g} s of motion keep (gear)"),
        f"{on['processor']}; {on['date'][:16].replace('T', ' ')}", "",
        paint("4", f"  {'':<18}{'rtol':>8}{'steps':>8}{'evaluations':>13}{'seconds':>9}{'energy':>10}{'momentum':>10}"
                   f"{'loops':>10}")]
    for r in result["rows"]:
        momentum = "" if r["momentum"] is None else f"{r['momentum']:.1e}"
        loop = "" if r["momentum"] is not None else f"{r['loop']:.1e}"
        lines.append(f"  {r['name']:<18}{r['rtol']:8.0e}{r['steps']:8}{r['evaluations']:13}{r['wall']:9.2f}"
                     f"{r['energy']:10.1e}{momentum:>10}{loop:>10}")
    lines += ["", *target_lines(result["targets"], paint)]
    return "\n".join(line.rstrip() for line in lines)
