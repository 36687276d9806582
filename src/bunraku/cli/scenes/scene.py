"""Common part of the scenes of `bunraku demo`: a mechanism and its muscles, a run, a report, a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.account import account, grip_forces
from bunraku.cli.scenes.muscles import muscles
from bunraku.simulation.watching import with_torques
from bunraku.view.figure import Camera
from bunraku.view.filmstrip import filmstrip


class Scene:
    """A mechanism, its initial state, muscles with their schedule, and events during the run.

    A scene sets `mechanism`, `q`, `v` and `params` in its constructor, and changes of structure in `watch`.
    Without `params` there are no muscles.
    """

    title: str
    caption = ""                  # what happens, in a line
    seconds: float                # how long it lasts
    pictured: float | None = None  # seconds in the picture, if not all
    solver, rtol = "tsit5", 1e-6
    step: float | None = None     # of solvers with a fixed one [s]
    grips: tuple[str, ...] = ()   # connections whose forces are shown
    frames = 8                    # of the picture
    elevation = 9.0               # from which it is seen [degrees]
    figures: tuple[int, ...] = (16, 34, 48)  # that can play it, by their degrees of freedom; none: no figure
    mechanism: bk.Mechanism
    q: np.ndarray
    v: np.ndarray
    params: np.ndarray = np.zeros(0)
    drive = muscles               # what gives the torques, by `params`
    folder: Path | None = None    # for files that belong to the scene
    files: Sequence[Path] = ()    # which it has written there

    def watch(self, sim: bk.Simulation) -> None:
        """Register the events that change the structure."""

    def simulation(self, **settings) -> bk.Simulation:
        """The simulation, ready to run; settings as of `bk.Simulation`."""
        sim = bk.Simulation(self.mechanism, self.q, self.v, **{
            "solver": self.solver, "step": self.step, "rtol": self.rtol, "atol": 1e-9,
            "actuation": self.drive if len(self.params) else None, "params": self.params, **settings})
        self.watch(sim)
        return sim

    def live(self, **settings) -> bk.Simulation:
        """The simulation for the viewer: without an end, and moved by the user instead of a prescribed motion."""
        return self.simulation(**settings)

    def run(self, seconds: float | None = None, progress: bool | None = None):
        """The trajectory, and a report of events and conservation errors."""
        sim = self.simulation(progress=progress)
        sim.run(until=seconds or self.seconds)
        return with_torques(sim), self.report(sim)

    def report(self, sim: bk.Simulation) -> dict:
        forces = grip_forces(sim.trajectory, self.params, self.grips)
        return {"title": self.title, **account(sim, self.params),
                "forces_max": {name: float(np.nanmax(values)) for name, (_, values) in forces.items()}}

    def rows(self, r: dict) -> list[tuple[str, str]]:
        """The report as rows of text: (label, text)."""
        carried = ", ".join(f"{_plain(name)} up to {force:.0f} N ({force / r['weight']:.1f} times the weight)"
                            for name, force in r["forces_max"].items())
        return [
            ("structure", f"{r['links']} links, {r['mass']:.1f} kg"),
            ("mobility", f"{_then(r['mobility'])}; joint degrees of freedom, connections included: "
                         f"{_then(r['joint_dof'])}"),
            *((f"at {at:.3f} s", what) for at, what in happened(r)),
            *([("forces", carried)] if carried else []),
            *about_energy(r),
            *([("loops", f"never open by more than {r['loop_error']:.1e} m")] if self.mechanism.connections else []),
            *([("limits", f"joints beyond their range by at most {r['limit_excess_degrees']:.2f} degrees")]
              if "limit_excess_degrees" in r else []),
        ]

    def subtitle(self, r: dict) -> str:
        """One line under the picture's title."""
        most = max(r["forces_max"][name] for name in self.grips if name.endswith("grip"))
        return f"{self.caption}  ·  a hand carries up to {most:.0f} N, {most / r['weight']:.1f} times the weight"

    def panels(self, trajectory: bk.Trajectory, report: dict) -> dict:
        """Curves below the energy: {axis label: {curve: (times, values)}}."""
        if not self.grips:
            return {}
        curves = grip_forces(trajectory, self.params, self.grips)
        return {"force [N]": {_plain(name): curve for name, curve in curves.items()}}

    def picture(self, trajectory: bk.Trajectory, report: dict, path: Path) -> Path:
        return filmstrip(trajectory, path, title=self.title, subtitle=self.subtitle(report),
                         panels=self.panels(trajectory, report), frames=self.frames, until=self.pictured,
                         camera=Camera(elevation=self.elevation))


def about_energy(r: dict) -> list[tuple[str, str]]:
    """Rows on solver and energy, common to all scenes."""
    changes = len(r["mobility"]) - 1
    lost = f", {_joules(r['energy_lost_at_changes'])} lost at changes of structure" if changes else ""
    balance = f"balance off by {r['energy_error']:.1e} of the largest kinetic energy"
    return [
        ("solver", f"{r['solver']}, {r['steps']} steps ({r['rejected']} repeated), {r['evaluations']} evaluations"),
        ("computed in", f"{1e3 * r['wall_time']:.1f} ms: {r['real_time_factor']:.1f} times real time"),
        ("energy", f"{r['energy_start']:.1f} J at the start, {r['energy_end']:.1f} J at the end{lost}"),
        ("muscles", f"{r['work']:+.1f} J in all, {r['work_given']:.1f} J given, {r['work_taken']:.1f} J taken; "
                    f"{balance}") if "limit_excess_degrees" in r else ("conservation", balance),
    ]


def happened(r: dict) -> list[tuple[float, str]]:
    """Events: (time, description, with the change of structure in parentheses)."""
    told: list[tuple[float, str]] = []
    for event in r["events"]:
        what = event["text"].split(":")[0]
        if told and what.startswith("cut ") and told[-1][0] == event["t"]:
            told[-1] = (event["t"], f"{told[-1][1]} ({what})")
        else:
            told.append((event["t"], what))
    return told


def _then(counts: Sequence[int]) -> str:
    return ", then ".join(map(str, counts))


def _joules(energy: float) -> str:
    return f"{energy:.1e} J" if energy else "none"


def _plain(name: str) -> str:
    return name.replace("_", " ")
