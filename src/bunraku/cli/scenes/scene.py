"""What the scenes of `bunraku demo` have in common: a figure and its muscles, a run, a report, a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.account import account, grip_forces
from bunraku.cli.scenes.muscles import muscles
from bunraku.view.filmstrip import filmstrip


class Scene:
    """A mechanism, a start, muscles with their schedule, and what shall happen on the way.

    A scene of its own sets `mechanism`, `q`, `v` and `params` when it is made.
    """

    title: str
    seconds: float           # how long by default
    solver, rtol = "gear", 1e-7
    grips: tuple[str, ...] = ()   # connections whose forces are shown
    frames = 9                    # of the picture
    mechanism: bk.Mechanism
    q: np.ndarray
    v: np.ndarray
    params: np.ndarray

    def start(self, progress: bool | None = None) -> bk.Simulation:
        """A simulation at the beginning of the scene, with what shall happen."""
        sim = bk.Simulation(self.mechanism, self.q, self.v, solver=self.solver, rtol=self.rtol, atol=1e-9,
                            actuation=muscles, params=self.params, progress=progress)
        self.plot(sim)
        return sim

    def plot(self, sim: bk.Simulation) -> None:
        """Say when the structure shall change."""

    def run(self, seconds: float | None = None, progress: bool | None = None):
        """The trajectory, and a report: what happened and how well the laws of mechanics were kept."""
        sim = self.start(progress)
        sim.run(until=seconds or self.seconds)
        return sim.trajectory, self.report(sim)

    def report(self, sim: bk.Simulation) -> dict:
        forces = grip_forces(sim.trajectory, self.params, self.grips)
        return {"title": self.title, **account(sim, self.params),
                "grip_forces_max": {name: float(np.nanmax(values)) for name, (_, values) in forces.items()}}

    def rows(self, r: dict) -> list[tuple[str, str]]:
        """The report in words: (what, how)."""
        weight = 9.81 * bk.models.human(16).mass
        carried = ", ".join(f"{name.replace('_', ' ')} up to {force:.0f} N ({force / weight:.1f} of the weight)"
                            for name, force in r["grip_forces_max"].items())
        return [
            ("structure", f"{r['links']} links, {r['dof']} coordinates of motion, {r['mass']:.1f} kg"),
            *(("at {:.3f} s".format(event["t"]), event["text"]) for event in r["events"]),
            ("hands", carried),
            *common(r),
            ("loops", f"never open by more than {r['loop_error']:.1e} m"),
            ("limits", f"joints beyond their range by at most {r['limit_excess_degrees']:.2f} degrees"),
        ]

    def subtitle(self, r: dict) -> str:
        """One line under the picture's title."""
        raise NotImplementedError

    def picture(self, trajectory: bk.Trajectory, report: dict, path: Path) -> Path:
        panels = {}
        if self.grips:
            curves = grip_forces(trajectory, self.params, self.grips)
            panels["force [N]"] = {name.replace("_", " "): curve for name, curve in curves.items()}
        return filmstrip(trajectory, path, title=self.title, subtitle=self.subtitle(report), panels=panels,
                         frames=self.frames)


def common(r: dict) -> list[tuple[str, str]]:
    """Rows about solver and energy that every scene has."""
    return [
        ("solver", f"{r['solver']}, {r['steps']} steps ({r['rejected']} repeated), {r['evaluations']} evaluations"),
        ("computed in", f"{1e3 * r['wall_time']:.1f} ms: {r['real_time_factor']:.0f} times real time"),
        ("energy", f"{r['energy_start']:.1f} J at the start, {r['energy_end']:.1f} J at the end, "
                   f"{r['energy_lost_at_changes']:.1e} J lost at changes of structure"),
        ("muscles", f"{r['work']:+.1f} J in all, {r['work_given']:.1f} J given, {r['work_taken']:.1f} J taken; "
                    f"balance off by {r['energy_error']:.1e} of the kinetic energy"),
    ]
