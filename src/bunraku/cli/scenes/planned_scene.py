"""Common part of the scenes whose motion is planned: a plan that is followed, a regulator that holds its end.

Both are one compiled controller: a table of states, torques and gains, whose last row is that of the regulator.
"""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.contact_scene import work_of
from bunraku.cli.scenes.scene import Scene
from bunraku.control import Controller, state_feedback
from bunraku.optimal_control import PlannedMotion, Regulator
from bunraku.simulation.watching import with_torques


class PlannedScene(Scene):
    """Subclasses set `planned` and `regulator`; the simulation starts at q, v, beside the start of the plan."""

    figures = ()
    solver = "symplectic_euler"
    motor: float              # [N m] that each motor can do; plans take less, the rest is for corrections
    motors: dict[str, str]    # {joint: name of its curve}
    planned: PlannedMotion
    regulator: Regulator
    frames, elevation = 13, 4.0
    motion: bk.Trajectory     # of the last run, with torques

    def controller(self) -> Controller:
        """Along the plan, then at its end."""
        p, r = self.planned, self.regulator
        return state_feedback(self.mechanism, np.vstack([p.q[:-1], r.q]), np.concatenate([p.gains, [-r.gain]]),
                              v=np.vstack([p.v[:-1], np.zeros(self.mechanism.nv)]), tau=np.vstack([p.tau, r.tau]),
                              step=p.step, limits=self.motor)

    def simulation(self, **settings):
        follow = self.controller()
        return super().simulation(**{"actuation": follow, "params": follow.params, **settings})

    def run(self, seconds=None, progress=None):
        sim = self.simulation(progress=progress)
        sim.run(until=seconds or self.seconds)
        self.motion = with_torques(sim)
        return self.motion, self.report(sim)

    def report(self, sim):
        m, p, stats = self.mechanism, self.planned, sim.stats
        t, kinetic, potential = self.motion.energy()
        energy, tau = kinetic + potential, self.motion.segments[0].tau
        assert tau is not None
        return {
            "title": self.title, "links": len(m.links), "mass": m.mass, "dof": m.nv, "seconds": float(t[-1]),
            "iterations": p.iterations, "plan_seconds": p.seconds, "plan_steps": len(p.tau), "cost": p.cost,
            "torque_planned": float(np.abs(p.tau).max()), "torque_max": float(np.abs(tau).max()),
            "off_start": float(np.abs(m.difference(p.q[0], self.q)).max()),
            "off_end": float(np.abs(m.difference(self.regulator.q, sim.q)).max()),
            "slowest_pole": float(-self.regulator.poles.real.max()), "loop_error": stats.loop_error,
            "solver": sim.solver, "step": self.step, "steps": stats.steps, "wall_time": stats.wall_time,
            "real_time_factor": float(t[-1]) / stats.wall_time, "energy_start": float(energy[0]),
            "energy_end": float(energy[-1]), "work": work_of(self.motion),
            "events": [{"t": event.t, "text": event.text} for event in self.motion.events],
        }

    def rows(self, r):
        loops = [("loops", f"never open by more than {r['loop_error']:.1e} m")] if self.mechanism.connections else []
        return [
            ("structure", f"{r['links']} links, {r['mass']:.1f} kg"),
            ("plan", f"{r['plan_steps']} steps, {r['iterations']} iterations in {r['plan_seconds']:.1f} s; torques up "
                     f"to {r['torque_planned']:.2f} N m"),
            ("followed", f"from {r['off_start']:.3g} rad beside the start, with up to {r['torque_max']:.2f} N m; at "
                         f"the end {r['off_end']:.1e} rad off"),
            ("held", f"by a regulator: what is off decays with {r['slowest_pole']:.2f} 1/s or faster"),
            *loops,
            ("solver", f"{r['solver']}, {r['steps']} steps of {1e3 * r['step']:g} ms"),
            ("computed in", f"{1e3 * r['wall_time']:.1f} ms: {r['real_time_factor']:.1f} times real time"),
            ("energy", f"{r['energy_start']:.1f} J at the start, {r['energy_end']:.1f} J at the end, {r['work']:+.1f} "
                       "J by the motors"),
        ]

    def subtitle(self, r):
        return (f"{self.caption}  ·  planned in {r['iterations']} iterations for {r['torque_planned']:.3g} N m  ·  "
                f"followed from {r['off_start']:.2g} rad beside, then held")

    def panels(self, trajectory, report):
        tau, t = trajectory.segments[0].tau, trajectory.segments[0].t
        return {"torque [N m]": {name: (t, tau[:, self.mechanism.v_slice(joint).start])
                                 for joint, name in self.motors.items()}}
