"""Report of a scene: energy, forces in the hands, conservation errors."""

from __future__ import annotations

import numpy as np
from scipy.integrate import trapezoid
from scipy.interpolate import CubicSpline

import bunraku as bk
from bunraku.cli.scenes.muscles import beyond_limits, figure_links, muscles
from bunraku.evaluate import connection_forces


def torques(params: np.ndarray, segment) -> np.ndarray:
    """Torques of the muscles at the states of a segment."""
    size = segment.v.shape[1]
    if not len(params):
        return np.zeros_like(segment.v)
    return np.array([muscles.torque(*state, params, size)
                     for state in zip(segment.t, segment.q, segment.v, strict=True)])


def work(trajectory: bk.Trajectory, params: np.ndarray) -> tuple[float, float]:
    """Work of the muscles and limits over the whole motion [J]: net, and the positive part alone."""
    total = given = 0.0
    for segment in trajectory.segments:
        if len(segment.t) < 2:
            continue
        power = CubicSpline(segment.t, np.sum(torques(params, segment) * segment.v, axis=1))
        fine = np.linspace(segment.t[0], segment.t[-1], 2001)
        total += float(power.integrate(fine[0], fine[-1]))
        given += float(trapezoid(np.maximum(power(fine), 0.0), fine))
    return total, given


def account(sim: bk.Simulation, params: np.ndarray) -> dict:
    """The part of a report that all scenes share."""
    trajectory, mechanism, stats = sim.trajectory, sim.mechanism, sim.stats
    t, kinetic, potential = trajectory.energy()
    energy, (done, given) = kinetic + potential, work(trajectory, params)
    first = np.cumsum([0, *(len(s.t) for s in trajectory.segments)])[1:-1]  # of each segment but the first
    lost = float(sum(energy[k - 1] - energy[k] for k in first))
    return {
        "links": len(mechanism.links), "dof": mechanism.nv, "mass": mechanism.mass, "seconds": float(t[-1]),
        "weight": 9.81 * sum(link.mass for link in figure_links(trajectory.segments[0].mechanism) or mechanism.links),
        "joint_dof": [s.mechanism.nv + s.mechanism.nc for s in trajectory.segments],
        "mobility": [mobility(s) for s in trajectory.segments],
        "solver": sim.solver, "steps": stats.steps, "rejected": stats.rejected, "evaluations": stats.evaluations,
        "wall_time": stats.wall_time, "real_time_factor": float(t[-1]) / stats.wall_time,
        "energy_start": float(energy[0]), "energy_end": float(energy[-1]),
        "work": done, "work_given": given, "work_taken": given - done, "energy_lost_at_changes": lost,
        "energy_error": abs(float(energy[-1] - energy[0]) - done + lost) / float(kinetic.max()),
        **({"limit_excess_degrees": float(np.degrees(max(beyond_limits(params, s.q) for s in trajectory.segments)))}
           if len(params) else {}),
        "loop_error": stats.loop_error,
        "events": [{"t": event.t, "text": event.text} for event in trajectory.events],
    }


def mobility(segment) -> int:
    """Mobility in the middle of a segment: nv minus the number of independent constraints."""
    m = segment.mechanism
    return bk.closed_chain(m, segment.q[len(segment.q) // 2]).freedom if m.connections else m.nv


def grip_forces(trajectory: bk.Trajectory, params: np.ndarray, names, every: float = 0.004):
    """{connection: (times, newtons)}: the force through each at regular times; NaN where it does not exist."""
    times: list[np.ndarray] = []
    forces: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for segment in trajectory.segments:
        fine = np.arange(segment.t[0], segment.t[-1], every)
        chosen = np.unique([*np.searchsorted(segment.t, fine), len(segment.t) - 1])
        part = type(segment)(segment.mechanism, segment.t[chosen], segment.q[chosen], segment.v[chosen])
        held = connection_forces(part.mechanism, part.q, part.v, torques(params, part))
        times.append(part.t)
        for name in names:
            forces[name].append(np.linalg.norm(held[name][:, :3], axis=1) if name in held
                                else np.full(len(part.t), np.nan))
    t = np.concatenate(times)
    return {name: (t, np.concatenate(parts)) for name, parts in forces.items()}
