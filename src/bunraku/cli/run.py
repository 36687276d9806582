"""`bunraku run`: simulate a scene or a model and write the motion to a file."""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from bunraku.cli import _models, positive, told
from bunraku.cli.demo import SCENES
from bunraku.errors import BunrakuError, MissingFileError, ModelError

if TYPE_CHECKING:
    from bunraku.simulation import Simulation, Trajectory

ENDINGS = (".npz", ".mcap")
SOLVERS = ("gear", "implicit", "bdf", "tsit5", "rkf", "rkg", "rki", "iec")


def add_parser(subparsers) -> None:
    wide = max(map(len, SCENES))
    scenes = "\n".join(f"  {name:<{wide}}  {what}" for name, (_, what) in SCENES.items())
    parser = subparsers.add_parser(
        "run", help="simulate a scene or a model and write the motion to a file",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Simulate a scene or a model and write the motion, with the torques of its\n"
                    "actuators, to a file: .npz, or .mcap (other tools read it too). Models start in\n"
                    "their neutral pose, at rest. `bunraku plot`, `export` and `view` read the file.",
        epilog=f"scenes:\n{scenes}\n\n{_models.HELP}\n\nexample: bunraku run highbar --out highbar.mcap")
    parser.add_argument("what", metavar="SCENE|MODEL", help="a scene, or a model: a file, or a name below")
    parser.add_argument("--until", type=positive, default=None, metavar="S",
                        help="time to stop at [s] (default: as long as the scene lasts; models need it)")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="ends in .npz or .mcap")
    parser.add_argument("--solver", default=None, choices=SOLVERS, metavar="SOLVER",
                        help=f"{', '.join(SOLVERS)} (default: that of the scene; gear for models)")
    parser.add_argument("--rtol", type=positive, default=None, metavar="X",
                        help="relative tolerance (default: that of the scene; 1e-6 for models)")
    parser.add_argument("--workers", type=int, default=None, metavar="P",
                        help="threads that share the mechanism, at most (default: as many as pay)")
    parser.add_argument("--base", choices=("free", "fixed"), default="free",
                        help="how the root of a file hangs from the ground, if it has no root joint (default: free)")
    parser.add_argument("--single", action="store_true", help="states in float32 (.mcap only): half the size")
    parser.add_argument("--json", action="store_true", help="report as JSON on standard output")
    parser.set_defaults(run=run)


def run(args) -> int:
    from bunraku.simulation.watching import with_torques

    check_out(args.out, args.single)
    sim, until = simulation(args)
    live = sim.record_to(args.out, single=args.single) if args.out.suffix == ".mcap" else None
    try:
        sim.run(until)
    except (BunrakuError, KeyboardInterrupt) as error:
        (live.close if live else lambda: sim.trajectory.save(args.out))()
        kept = f"the motion up to {sim.t:g} s is in {args.out}"
        error.add_note(kept)
        if isinstance(error, KeyboardInterrupt):
            print(f"bunraku: {kept}", file=sys.stderr)
        raise
    finally:
        if live:
            live.close()
    trajectory = sim.trajectory if live else with_torques(sim)
    if not live:
        trajectory.save(args.out)
    report = summary(sim, trajectory) | {"files": [str(args.out)]}
    print(json.dumps(report, indent=2) if args.json else text(report))
    return 0


def check_out(out: Path, single: bool) -> None:
    """Check the output path before the work, not after it."""
    if out.suffix not in ENDINGS:
        raise ModelError(f"--out {out}: unsupported extension; use {' or '.join(ENDINGS)}")
    if not out.parent.is_dir():
        raise MissingFileError(f"--out {out}: there is no folder {str(out.parent)!r}; make it first")
    if single and out.suffix != ".mcap":
        raise ModelError(f"--single is for recordings that end in .mcap, not for {out}")
    if out.suffix == ".mcap":
        from bunraku.record.layout import need_mcap

        need_mcap()


def simulation(args) -> tuple[Simulation, float]:
    """The simulation that the arguments describe, and its end time."""
    from bunraku.simulation import Simulation

    settings = {name: value for name, value in (("solver", args.solver), ("rtol", args.rtol),
                                                ("workers", args.workers)) if value is not None}
    if args.what in SCENES:
        scene = getattr(import_module(f"bunraku.cli.scenes.{args.what}"), SCENES[args.what][0])()
        return scene.simulation(**settings), args.until or scene.seconds
    mechanism = _models.find(args.what, args.base, tuple(SCENES))
    if args.until is None:
        raise ModelError(f"{args.what} is a model, not a scene: pass --until SECONDS, as in --until 2")
    return Simulation(mechanism, **settings), args.until


def summary(sim: Simulation, trajectory: Trajectory) -> dict:
    """The report of a run as plain data for JSON."""
    stats, (t, kinetic, potential) = sim.stats, trajectory.energy()
    energy = kinetic + potential
    return {
        "name": sim.mechanism.name, "links": len(sim.mechanism.links), "dof": sim.mechanism.nv,
        "connections": len(sim.mechanism.connections), "seconds": float(t[-1] - t[0]), "states": len(t),
        "segments": len(trajectory.segments), "solver": sim.solver, "steps": stats.steps, "rejected": stats.rejected,
        "evaluations": stats.evaluations, "workers": stats.workers, "wall_time": stats.wall_time,
        "energy_start": float(energy[0]), "energy_end": float(energy[-1]), "kinetic_max": float(kinetic.max()),
        "loop_error": stats.loop_error, "events": [{"t": event.t, "text": event.text} for event in trajectory.events]}


def text(report: dict) -> str:
    """The summary as text."""
    r = report
    loops = f", {r['connections']} connection{'s' * (r['connections'] > 1)}" if r["connections"] else ""
    rate = f": {r['seconds'] / r['wall_time']:.3g} times real time" if r["wall_time"] else ""
    rows = [("structure", f"{r['links']} links, {r['dof']} degrees of freedom{loops}"),
            ("motion", f"{r['seconds']:g} s, {r['states']} states"
                       + (f" in {r['segments']} segments" if r["segments"] > 1 else "")),
            *((f"at {event['t']:.3f} s", event["text"]) for event in r["events"]),
            ("solver", f"{r['solver']}, {r['steps']} steps ({r['rejected']} repeated), {r['evaluations']} evaluations"
                       + (f", {r['workers']} workers" if r["workers"] > 1 else "")),
            ("computed in", f"{1e3 * r['wall_time']:.3g} ms{rate}"),
            ("energy", f"{r['energy_start']:.6g} J at the start, {r['energy_end']:.6g} J at the end; kinetic up to "
                       f"{r['kinetic_max']:.4g} J")]
    if r["loop_error"]:
        rows.append(("loops", f"never open by more than {r['loop_error']:.1e} m"))
    return "\n".join([r["name"], told(rows), "wrote", *(f"  {path}" for path in r["files"])])
