"""A recorded walk and its joint moments: motion from a BVH file, ground forces from a MOT file, inverse dynamics, and
PD control that repeats the motion in a simulation.

The recording is synthetic (`gait.py`), noise included, and its files are written beside the results.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import bunraku as bk
from bunraku.cli.scenes.gait import CYCLE, record
from bunraku.cli.scenes.scene import Scene
from bunraku.view.filmstrip import filmstrip

CUTOFF = 6.0                 # of the filter [Hz]
MASS = 70.0                  # of the person, from a scale [kg]
FEET = ("left_ankle", "right_ankle")
FLEXION = {"hip": 1, "knee": 0, "ankle": 1}  # which component of a joint's moment turns it about y


class Recorded(Scene):
    title = "A recorded walk and its joint moments"
    seconds = 1.5 * CYCLE
    solver = "gear"
    figures = (48,)

    def __init__(self, dof: int = 48):
        self.moments: bk.JointMoments

    def recording(self, seconds: float | None = None) -> tuple[bk.Motion, list[bk.ForcePlate]]:
        """The motion, smoothed, and the plates, from files in the scene's folder."""
        with tempfile.TemporaryDirectory() as temporary:
            files = record(self.folder or Path(temporary), seconds or self.seconds)
            motion, table = bk.load_motion(files[0], unit="m", up="z", forward="x", mass=MASS), bk.load_motion(files[1])
        self.files = files if self.folder else ()
        assert isinstance(motion, bk.Motion)
        assert isinstance(table, bk.MotionTable)
        return motion.smooth(CUTOFF), table.plates()

    def simulation(self, motion: bk.Motion | None = None, **settings) -> bk.Simulation:
        """The motion once more, by PD control."""
        motion = self.recording()[0] if motion is None else motion
        return bk.Simulation(motion.mechanism, motion.q[0], motion.v[0], **{
            "solver": self.solver, "rtol": 1e-5, "actuation": motion.tracking(), **settings})

    def run(self, seconds: float | None = None, progress: bool | None = None):
        motion, plates = self.recording(seconds)
        self.moments = motion.inverse_dynamics(plates, feet=FEET)
        return motion.trajectory(), self.report(motion, plates, self.moments, self.track(motion, progress))

    def track(self, motion: bk.Motion, progress: bool | None) -> dict:
        """How well the simulation follows the motion."""
        m, sim = motion.mechanism, self.simulation(motion, progress=progress)
        followed = sim.run(until=float(motion.t[-1]))
        off = np.abs(m.difference(followed.q, motion.curve(followed.t)[0]))
        turned = [off[:, m.v_slice(name)].max() for name in self.moments.moments]
        return {"solver": sim.solver, "steps": sim.stats.steps, "evaluations": sim.stats.evaluations,
                "wall_time": sim.stats.wall_time, "off_degrees": float(np.degrees(max(turned)))}

    def report(self, motion: bk.Motion, plates, moments: bk.JointMoments, tracked: dict) -> dict:  # type: ignore[override]
        m = motion.mechanism
        weight = 9.81 * m.mass
        residual = moments.residuals["root"]
        return {
            "title": self.title, "links": len(m.links), "dof": m.nv, "mass": m.mass, "weight": weight,
            "frames": len(motion.t), "rate": motion.rate, "seconds": float(motion.t[-1] - motion.t[0]),
            "cutoff": CUTOFF, "ground_force_max": float(max(plate.force[:, 2].max() for plate in plates)),
            "moments_max": {joint: float(max(np.abs(moments.moments[f"{side}_{joint}"][:, k]).max()
                                             for side in ("left", "right"))) for joint, k in FLEXION.items()},
            "residual_force_rms": float(np.sqrt(np.mean(np.sum(residual[:, :3] ** 2, axis=1)))),
            "residual_force_max": moments.residual_force,
            "residual_moment_rms": float(np.sqrt(np.mean(np.sum(residual[:, 3:] ** 2, axis=1)))),
            "residual_moment_max": moments.residual_moment, "tracking": tracked,
        }

    def rows(self, r):
        most = ", ".join(f"{joint} {value:.0f} N m" for joint, value in r["moments_max"].items())
        tracked = r["tracking"]
        return [
            ("figure", f"{r['links']} links, {r['dof']} degrees of freedom, {r['mass']:.1f} kg"),
            ("recording", f"{r['frames']} frames, {r['rate']:.0f} a second, smoothed by a Butterworth filter of order "
                          f"4 without delay, {r['cutoff']:g} Hz"),
            ("ground", f"up to {r['ground_force_max']:.0f} N under a foot ({r['ground_force_max'] / r['weight']:.2f} "
                       "times the weight)"),
            ("moments", f"of flexion at most: {most}"),
            ("residuals", f"at the root {r['residual_force_rms']:.0f} N and {r['residual_moment_rms']:.0f} N m (root "
                          f"mean square), at most {r['residual_force_max']:.0f} N and {r['residual_moment_max']:.0f} "
                          f"N m: {100 * r['residual_force_rms'] / r['weight']:.1f} % of the weight are not explained"),
            ("simulated", f"by PD control, off by at most {tracked['off_degrees']:.2f} degrees; {tracked['solver']}, "
                          f"{tracked['steps']} steps, {tracked['wall_time']:.1f} s"),
        ]

    def subtitle(self, r):
        return (f"from a BVH file, two force plates and a mass of {r['mass']:.0f} kg  ·  "
                f"{100 * r['residual_force_rms'] / r['weight']:.1f} % of the weight left unexplained at the root")

    def picture(self, trajectory, report, path):
        t, moments = self.moments.t, self.moments.moments
        panels = {f"{joint} moment [N m]": {side: (t, moments[f"{side}_{joint}"][:, k]) for side in ("left", "right")}
                  for joint, k in FLEXION.items()}
        panels["ground force [N]"] = {side: (t, self.moments.external[f"{side}_ankle"][:, 2])
                                      for side in ("left", "right")}
        return filmstrip(trajectory, path, title=self.title, subtitle=self.subtitle(report), panels=panels, frames=9)
