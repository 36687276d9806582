"""`bunraku bench`: benchmarks, compared with other libraries.

A benchmark is a module `bunraku/bench/bench_<name>.py` with `run(...) -> dict`, which measures, and, there or in a
module of its own, `text(result) -> str`, which formats the report. Benchmarks with a short version have `Options` with
`quick()`.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import NamedTuple


class Bench(NamedTuple):
    """Description of a benchmark on the command line."""

    help: str
    description: str
    needs: str = ""           # packages, for pip
    lasts: str = "a minute after the first run"
    quick: str | None = None  # what --quick does, if there is that option
    words: str | None = None  # the module in which its `text` is, if another one
    colours: bool = True      # whether its `text` knows them
    example: str = ""         # further ones


EXTRA = "'bunraku[bench]'"
ROBOTS = f"{EXTRA} example-robot-data"

BENCHES = {
    "dynamics": Bench(
        "forward and inverse dynamics and mass matrix beside Pinocchio and MuJoCo",
        "Forward and inverse dynamics and mass matrix of a humanoid and a human figure beside Pinocchio and MuJoCo "
        "in one run, the share of the processor's peak, and the cost of long chains. With --model, of model files "
        "instead.",
        EXTRA, quick="shorter and less exact, chains up to 10000 links", words="report",
        example="bunraku bench dynamics --model talos_reduced.urdf --model human.urdf"),
    "structure": Bench(
        "structures with loops beside Pinocchio, schedules, connecting and cutting, scaling",
        "Talos with 1, 2 and 4 limbs held beside Pinocchio's constraintDynamics in one run, assembly in several "
        "orders, connecting and cutting, and the cost of long chains with loops.",
        ROBOTS, quick="shorter and less exact, chains up to 10000 links", words="structure_report"),
    "integrators": Bench(
        "integrators beside CVODE and LSODA on the DETEST problems",
        "Evaluations of the right-hand side and errors of Gear, BDF and the Runge-Kutta methods beside CVODE and "
        "LSODA, on 18 problems that are not stiff and 12 that are.",
        EXTRA, lasts="ten seconds after the first run"),
    "conservation": Bench(
        "what a minute of motion keeps: energy, momentum, closed loops",
        "A human figure of 48 degrees of freedom tumbling freely, three four-bars and Bricard's linkage, 60 s each "
        "with gear.",
        lasts="half a minute after the first run"),
    "rollout": Bench(
        "whole rollouts of one figure and of a thousand beside MuJoCo's",
        "Steps of one and of 1024 copies of a figure with 34 degrees of freedom beside mujoco.rollout in one run, "
        "with the same number of threads; actuation compiled and in plain Python; adaptive steps. Final states are "
        "compared first.",
        EXTRA, quick="shorter and less exact"),
    "worlds": Bench(
        "thousands of figures that step together, beside MuJoCo's rollout and Gymnasium's VectorEnv",
        "Steps a second on one core of humanoid, ant and half-cheetah, with contact and without, beside mujoco.rollout "
        "and Gymnasium's environments in one run; one call a step beside one call for all. Accelerations are compared "
        "with MuJoCo's first.",
        "'bunraku[gym]'", quick="shorter and less exact"),
    "contact": Bench(
        "contact with friction beside MuJoCo, Pinocchio and Drake: errors and times",
        "Boxes on slopes, a cube that slides, balls that roll and bounce, a rimless wheel, a rocking block, a sphere "
        "that falls and Painleve's rod beside MuJoCo and Pinocchio (and Drake where installed) in one run, each with "
        "its error from the exact answer; Talos standing on 8 points beside limbs held and mujoco.rollout.",
        ROBOTS, quick="shorter and less exact"),
    "joints": Bench(
        "joint friction and hard limits against closed forms, beside MuJoCo's frictionloss",
        "A block that stops, stick-slip on a belt, a Coulomb pendulum, an arm held by stiction and a stop with "
        "restitution by events, in steps and in MuJoCo, each with its error from the closed form; the time of a step "
        "of a chain with friction in every joint.",
        EXTRA, lasts="half a minute after the first run", quick="shorter and less exact"),
    "stiff": Bench(
        "a stiff step by number of links: the implicit method beside BDF and Gear",
        "An elastic rod of 10 to 10000 links by the implicit method, whose step costs as much as forward dynamics, "
        "beside BDF with a full matrix and Gear as far as they can go; the order measured on stiff mechanisms.",
        quick="shorter and less exact, up to 1000 links, without Gear"),
    "control": Bench(
        "controllers that know the model: compiled beside Python",
        "Computed torque of Talos compiled into the loop beside the same law in Python, with bunraku and with "
        "Pinocchio; gravity compensation beside inverse dynamics; 1024 arms with operational-space control.",
        ROBOTS, lasts="half a minute after the first run", quick="shorter and less exact", colours=False),
    "ik": Bench(
        "inverse kinematics of random reachable poses beside pink and mink",
        "Success and time on 1000 random reachable poses of UR5, Panda and Talos beside pink and mink in one run and "
        "TRAC-IK's published figures; batches of 10000 poses; a platform on six legs, and a figure on held feet.",
        ROBOTS, quick="fewer poses", colours=False),
    "plan": Bench(
        "planned motions beside Crocoddyl: iterations, cost, time of an iteration",
        "Iterative LQR with limits for the swing-up of a cart-pole and a reach of a UR5 beside Crocoddyl's box-DDP in "
        "one run, where it is installed, and for a figure on held soles. Accelerations are compared first.",
        ROBOTS, lasts="half a minute after the first run", quick="once each, at most 20 iterations", colours=False),
    "quantities": Bench(
        "Jacobians, momentum and Coriolis matrices, regressor, joint forces beside Pinocchio",
        "Jacobians and their rates, centroidal momentum, Coriolis matrix, operational-space inertia and inertial "
        "regressor of Talos beside Pinocchio in one run, and the cost of joint forces beside forward dynamics.",
        ROBOTS, lasts="half a minute after the first run", quick="shorter and less exact", colours=False),
    "identify": Bench(
        "identification from noisy recordings: how often bounds hold the truth",
        "100 identifications each of an arm of seven joints and of a four-bar leg from simulated recordings with noise "
        "in the torques, and of the arm from angles alone: how often confidence bounds of 95 % hold the true "
        "parameters, whether every fit is physically consistent, errors of torques before and after.",
        lasts="four minutes", quick="10 identifications each, of half as many samples", colours=False),
    "massmatrix": Bench(
        "mass matrices beside Pinocchio's crba",
        "Mass matrices of Talos and of chains with up to 256 degrees of freedom beside pin.crba in one run: single "
        "calls, inside compiled code, batches.",
        ROBOTS, lasts="half a minute after the first run", quick="shorter and less exact", colours=False),
    "parallel": Bench(
        "one mechanism on several workers and in lanes",
        "Forward dynamics and Gear steps of one mechanism on two threads, as a part of what two independent copies of "
        "the serial run reach in the same rounds; long chains in lanes; the cost of single operations.",
        quick="shorter and less exact"),
    "view": Bench(
        "the viewer: cost of a frame, of being watched, of a click",
        "Python per frame and script in the browser for 50 and 500 links, a simulation with and without a viewer, a "
        "slice after an hour simulated, and the time from a click to the frame that shows what it did. The browser's "
        "part needs Chromium and Playwright.",
        "'bunraku[view]' playwright", quick="shorter and less exact, six minutes simulated instead of an hour"),
    "ranks": Bench(
        "one mechanism on two ranks of MPI",
        "Gear steps of one mechanism on two processes that exchange messages by MPI, as a part of what two independent "
        "copies of the serial run reach in the same rounds; what 1, 2 and 4 ranks hold of a chain of a million links; "
        "bytes across MPI in a step for chains of up to 100000 links and each kind of record.",
        "'bunraku[mpi]'", lasts="five minutes", quick="shorter and less exact, chains of up to 100000 and 4100 links"),
    "ensemble": Bench(
        "many small cases on two processes",
        "An ensemble of 10000 small simulations on two processes, as a part of what two independent copies of the "
        "serial loop reach in the same rounds; with results in a file; and as a rollout in lanes.",
        quick="1500 cases, fewer rounds"),
    "start": Bench(
        "seconds to the first result: compilation, cold and warm",
        "Import, first evaluations, first simulation, first connection, the demo and all entries, each in new "
        "processes with an empty cache and again with the cache it left: processor time (child processes included) and "
        "wall time. Beside another revision or a wheel, whose answers are compared.",
        lasts="ten minutes",
        example="bunraku bench start --only forward --before v0.1 --wheel bunraku.whl"),
}


def add_parser(subparsers):
    """Add the verb `bench` to the command line."""
    verb = subparsers.add_parser("bench", help="measure speed beside other libraries",
                                 description="Measure bunraku beside other libraries on this machine.",
                                 epilog="example: bunraku bench dynamics --quick")
    names = verb.add_subparsers(dest="name", metavar="NAME", required=True)
    for name, bench in BENCHES.items():
        needs = f" Needs: pip install {bench.needs}." if bench.needs else ""
        examples = [f"bunraku bench {name} --json > {name}.json", *filter(None, [bench.example])]
        parser = names.add_parser(name, help=bench.help,
                                  description=f"{bench.description}{needs} About {bench.lasts}.",
                                  epilog=f"example{'s' * (len(examples) > 1)}: {'; '.join(examples)}")
        if bench.quick:
            parser.add_argument("--quick", action="store_true", help=bench.quick)
        parser.add_argument("--json", action="store_true", help="print all numbers as JSON")
        parser.set_defaults(run=run, model=[])
        if name == "dynamics":
            parser.add_argument("--model", action="append", default=[], metavar="FILE",
                                help="measure this file (.urdf, or .xml: MJCF) instead of the built-in models and "
                                     "chains, on a free base, without springs, dampers and armature; may be repeated. "
                                     "A file that is not there is looked for among the robots of the package "
                                     "example-robot-data")
        if name == "start":
            parser.add_argument("--before", metavar="REVISION|FOLDER",
                                help="measure this git revision of the sources, or this folder with sources, too")
            parser.add_argument("--wheel", metavar="FILE", help="measure this wheel too")
            parser.add_argument("--only", action="append", default=[], metavar="WORD",
                                help="only rows with this in their name; may be repeated")
    return verb


def run(args) -> int:
    """Measure and print; 0 whether or not the targets are met."""
    bench, module = BENCHES[args.name], import_module(f"bunraku.bench.bench_{args.name}")
    settings: dict = {"files": _read(args.model)} if args.model else {}
    if args.name == "start":
        settings = {"before": args.before, "wheel": args.wheel, "only": args.only, "quiet": args.json}
    if bench.quick:
        settings |= {"options": module.Options.quick() if args.quick else module.Options(), "quiet": args.json}
    result = module.run(**settings)
    if args.json:
        print(json.dumps(result, indent=2))
    else:
        words = import_module(f"bunraku.bench.{bench.words or 'bench_' + args.name}")
        print(words.text(result, **({"colour": sys.stdout.isatty()} if bench.colours else {})))
    return 0


def _read(names: list[str]) -> dict:
    """Mechanisms by file; one line on stderr for each file that is not clean."""
    from bunraku.bench import model_files as files

    models = {}
    for path in dict.fromkeys(map(files.find, names)):
        models[path], notes = files.read(path)
        if notes:
            print(f"bunraku: {path.name}: {len(notes)} warning{'s' * (len(notes) > 1)}; to read: bunraku info {path}",
                  file=sys.stderr)
    return models
