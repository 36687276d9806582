"""Common part of the scenes with contact: ground forces, and the energy dissipated by contact.

Ground forces are computed from the change of momentum without gravity: they are independent of the contact problem.
"""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.scene import Scene, happened
from bunraku.evaluate.contacts import Contacts
from bunraku.simulation.watching import with_torques

AVERAGED = 0.01   # [s] over which forces are averaged
FORCE = f"force [N], averaged over {1e3 * AVERAGED:g} ms"
TOUCHING_GAP = 1e-4      # [m] gap below which shapes touch
STILL = 1e-9     # [m/s]
LAST = 0.2       # [s] at the end, over which they are compared with the weight


class ContactScene(Scene):
    """A scene in which shapes touch. `grips` stays empty: objects are held by contacts."""

    solver = "symplectic_euler"
    step: float | None = 5e-4

    motion: bk.Trajectory  # of the last run, with torques

    def run(self, seconds=None, progress=None):
        sim = self.simulation(progress=progress)
        self.advance(sim, seconds or self.seconds)
        self.motion = with_torques(sim)
        return self.motion, self.report(sim)

    def advance(self, sim: bk.Simulation, until: float) -> None:
        """Simulate: in pieces, if quantities are sampled during the run."""
        sim.advance(until)

    def report(self, sim):
        trajectory, m, stats = self.motion, sim.mechanism, sim.stats
        t, kinetic, potential = trajectory.energy()
        energy, work = kinetic + potential, work_of(trajectory)
        moving = bk.kinematics(m, sim.q, sim.v)
        when, force = external_force(trajectory)
        touching = bk.contacts(m, sim.q, margin=TOUCHING_GAP)
        assert isinstance(touching, Contacts)
        return {
            "title": self.title, "links": len(m.links), "dof": m.nv, "mass": moving_mass(m), "weight": weight(m),
            "seconds": float(t[-1]), "solver": sim.solver, "step": self.step, "steps": stats.steps,
            "rejected": stats.rejected, "evaluations": stats.evaluations, "wall_time": stats.wall_time,
            "real_time_factor": float(t[-1]) / stats.wall_time,
            "energy_start": float(energy[0]), "energy_end": float(energy[-1]), "work": work,
            "energy_lost": float(energy[0] - energy[-1]) + work, "energy_rise": float(np.diff(energy).max()),
            "force_max": float(force[:, 2].max()), "force_end": force[when > t[-1] - LAST].mean(axis=0).tolist(),
            "touching_end": sorted({name for contact in touching for name in contact.links} - {"ground"}),
            "speed_end": float(max(np.linalg.norm(v[:3]) for v in moving.velocities.values())),
            "events": [{"t": event.t, "text": event.text} for event in trajectory.events],
        }

    def rows(self, r):
        every = f", every {1e3 * r['step']:g} ms" if r["step"] else f" ({r['rejected']} repeated)"
        return [
            ("structure", f"{r['links']} links, {r['mass']:.1f} kg, {r['dof']} degrees of freedom"),
            *((f"at {at:.3f} s", what) for at, what in happened(r) if not what.startswith(("contact of", "impact of"))),
            *self.about_motion(r),
            ("solver", f"{r['solver']}, {r['steps']} steps{every}"),
            ("computed in", f"{1e3 * r['wall_time']:.1f} ms: {r['real_time_factor']:.1f} times real time"),
            ("energy", f"{r['energy_start']:.1f} J at the start, {r['energy_end']:.1f} J at the end"
                       + (f", {r['work']:+.1f} J by joint torques" if r["work"] else "")
                       + f"; {r['energy_lost']:.1f} J lost"),
        ]

    def about_motion(self, r) -> list[tuple[str, str]]:
        """Rows of the report that are specific to the scene."""
        return [
            ("ground", f"pushes with up to {r['force_max']:.0f} N ({r['force_max'] / r['weight']:.1f} times the weight)"
                       f"; at the end {r['force_end'][2]:.2f} N, weight {r['weight']:.2f} N"),
            ("at the end", f"{at_most(r['speed_end'])}; touching: "
                           f"{', '.join(name.replace('_', ' ') for name in r['touching_end']) or 'nothing'}"),
        ]

    def panels(self, trajectory: bk.Trajectory, report: dict) -> dict:
        """Curves below the energy: {axis label: {curve: (times, values)}}."""
        when, force = external_force(trajectory)
        return {FORCE: {"of the ground": (when, force[:, 2]),
                        "weight": (when[[0, -1]], np.full(2, report["weight"]))}}


def at_most(speed: float) -> str:
    return "nothing moves" if speed < STILL else f"nothing moves faster than {1e3 * speed:.2g} mm/s"


def moving_mass(mechanism: bk.Mechanism) -> float:
    """[kg] of all links that are not fixed to the ground."""
    moves: list[bool] = []
    for link in mechanism.links:
        moves.append(not isinstance(link.joint, bk.Fixed) or (link.parent >= 0 and moves[link.parent]))
    return sum(link.mass for link, free in zip(mechanism.links, moves, strict=True) if free)


def weight(mechanism: bk.Mechanism) -> float:
    return moving_mass(mechanism) * float(np.linalg.norm(mechanism.gravity))


def external_force(trajectory: bk.Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """(times (n,), force (n, 3)) of the ground and all supports, from changes of momentum, averaged over short
    times."""
    times, forces = [], []
    for s in trajectory.segments:
        if len(s.t) < 2:
            continue
        chosen = np.unique(np.searchsorted(s.t, np.append(np.arange(s.t[0], s.t[-1], AVERAGED), s.t[-1])))
        momentum = bk.kinematics(s.mechanism, s.q[chosen], s.v[chosen]).momentum[:, :3]
        t = s.t[chosen]
        forces.append(np.diff(momentum, axis=0) / np.diff(t)[:, None] - moving_mass(s.mechanism) * s.mechanism.gravity)
        times.append(0.5 * (t[1:] + t[:-1]))
    return np.concatenate(times), np.concatenate(forces)


def step_forces(sim: bk.Simulation) -> list[tuple[str, np.ndarray]]:
    """(names of the shapes, (normal, tangential) [N]) of the loaded contacts: in the last step, or with events at the
    present state."""
    found = [(contact.pair, contact.force, contact.normal @ contact.force * contact.normal) for contact in sim.contacts]
    return [(" and ".join(pair), np.array([np.linalg.norm(pushed), np.linalg.norm(force - pushed)]))
            for pair, force, pushed in found if pushed.any()]


def work_of(trajectory: bk.Trajectory) -> float:
    """[J] of torques that are constant during a step, as in time-stepping."""
    total = 0.0
    for s in trajectory.segments:
        if s.tau is not None:
            tau = s.tau[:-1, :s.v.shape[1]]
            total += float(np.sum(tau * 0.5 * (s.v[1:] + s.v[:-1]) * np.diff(s.t)[:, None]))
    return total
