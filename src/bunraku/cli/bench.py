"""`bunraku bench`: measurements beside other libraries."""

from __future__ import annotations

import json
import sys


def add_parser(subparsers):
    """Add the verb `bench` to the command line."""
    verb = subparsers.add_parser("bench", help="measure speed beside other libraries",
                                 description="Measure bunraku beside other libraries on this machine.",
                                 epilog="example: bunraku bench dynamics --quick")
    names = verb.add_subparsers(dest="name", metavar="NAME", required=True)
    dynamics = names.add_parser(
        "dynamics", help="forward and inverse dynamics and mass matrix beside Pinocchio and MuJoCo",
        description="Forward and inverse dynamics and mass matrix of a humanoid and a human figure beside Pinocchio "
                    "and MuJoCo in one run, the share of the processor's peak, and the cost of long chains. "
                    "With --model, of model files instead. "
                    "Needs: pip install 'bunraku[bench]'. About a minute after the first run.",
        epilog="examples: bunraku bench dynamics --json > bench.json; "
               "bunraku bench dynamics --model talos_reduced.urdf --model human.urdf")
    dynamics.add_argument("--quick", action="store_true", help="shorter and less exact, chains up to 10000 links")
    dynamics.add_argument("--json", action="store_true", help="print all numbers as JSON")
    dynamics.add_argument("--model", action="append", default=[], metavar="FILE",
                          help="measure this file (.urdf, or .xml: MJCF) instead of the built-in models and chains, "
                               "on a free base, without springs, dampers and armature; may be repeated. A file that "
                               "is not there is looked for among the robots of the package example-robot-data")
    dynamics.set_defaults(run=run)
    structure = names.add_parser(
        "structure", help="structures with loops beside Pinocchio, schedules, connecting and cutting, scaling",
        description="Talos with 1, 2 and 4 limbs held beside Pinocchio's constraintDynamics in one run, assembly in "
                    "several orders, connecting and cutting, and the cost of long chains with loops. "
                    "Needs: pip install 'bunraku[bench]' example-robot-data. About a minute after the first run.",
        epilog="example: bunraku bench structure --json > structure.json")
    structure.add_argument("--quick", action="store_true", help="shorter and less exact, chains up to 10000 links")
    structure.add_argument("--json", action="store_true", help="print all numbers as JSON")
    structure.set_defaults(run=run_structure)
    integrators = names.add_parser(
        "integrators", help="integrators beside CVODE and LSODA on the DETEST problems",
        description="Evaluations of the right-hand side and errors of Gear, BDF and the Runge-Kutta methods beside "
                    "CVODE and LSODA, on 18 problems that are not stiff and 12 that are. "
                    "Needs: pip install 'bunraku[bench]'. About ten seconds after the first run.",
        epilog="example: bunraku bench integrators --json > integrators.json")
    integrators.add_argument("--json", action="store_true", help="print all numbers as JSON")
    integrators.set_defaults(run=run_integrators)
    conservation = names.add_parser(
        "conservation", help="what a minute of motion keeps: energy, momentum, closed loops",
        description="A human figure of 48 degrees of freedom tumbling freely, three four-bars and Bricard's linkage, "
                    "60 s each with gear. About half a minute after the first run.",
        epilog="example: bunraku bench conservation --json > conservation.json")
    conservation.add_argument("--json", action="store_true", help="print all numbers as JSON")
    conservation.set_defaults(run=run_conservation)
    rollout = names.add_parser(
        "rollout", help="whole rollouts of one figure and of a thousand beside MuJoCo's",
        description="Steps of one and of 1024 copies of a figure with 34 degrees of freedom beside mujoco.rollout in "
                    "one run, with the same number of threads; actuation compiled and in plain Python; adaptive "
                    "steps. Final states are compared first. "
                    "Needs: pip install 'bunraku[bench]'. About a minute after the first run.",
        epilog="example: bunraku bench rollout --json > rollout.json")
    rollout.add_argument("--quick", action="store_true", help="shorter and less exact")
    rollout.add_argument("--json", action="store_true", help="print all numbers as JSON")
    rollout.set_defaults(run=run_rollout)
    stiff = names.add_parser(
        "stiff", help="a stiff step by number of links: the implicit method beside BDF and Gear",
        description="An elastic rod of 10 to 10000 links by the implicit method, whose step costs as much as forward "
                    "dynamics, beside BDF with a full matrix and Gear as far as they can go; the order measured on "
                    "stiff mechanisms. About a minute after the first run.",
        epilog="example: bunraku bench stiff --json > stiff.json")
    stiff.add_argument("--quick", action="store_true", help="shorter and less exact, up to 1000 links, without Gear")
    stiff.add_argument("--json", action="store_true", help="print all numbers as JSON")
    stiff.set_defaults(run=run_stiff)
    massmatrix = names.add_parser(
        "massmatrix", help="mass matrices beside Pinocchio's crba",
        description="Mass matrices of Talos and of chains with up to 256 degrees of freedom beside pin.crba in one "
                    "run: single calls, inside compiled code, batches. "
                    "Needs: pip install 'bunraku[bench]' example-robot-data. Half a minute after the first run.",
        epilog="example: bunraku bench massmatrix --json > massmatrix.json")
    massmatrix.add_argument("--quick", action="store_true", help="shorter and less exact")
    massmatrix.add_argument("--json", action="store_true", help="print all numbers as JSON")
    massmatrix.set_defaults(run=run_massmatrix)
    return verb


def run(args) -> int:
    """Measure and print; 0 whether or not the targets are met."""
    from bunraku.bench import dynamics, report

    files = _read(args.model)
    result = dynamics.run(dynamics.Options.quick() if args.quick else dynamics.Options(), quiet=args.json, files=files)
    print(json.dumps(result, indent=2) if args.json else report.text(result, colour=sys.stdout.isatty()))
    return 0


def run_structure(args) -> int:
    """Measure and print; 0 whether or not the targets are met."""
    from bunraku.bench import structure, structure_report

    result = structure.run(structure.Options.quick() if args.quick else structure.Options(), quiet=args.json)
    print(json.dumps(result, indent=2) if args.json else structure_report.text(result, colour=sys.stdout.isatty()))
    return 0


def run_integrators(args) -> int:
    """Measure and print; 0 whether or not the targets are met."""
    from bunraku.bench import integrators

    result = integrators.run()
    print(json.dumps(result, indent=2) if args.json else integrators.text(result, colour=sys.stdout.isatty()))
    return 0


def run_conservation(args) -> int:
    """Measure and print; 0 whether or not the targets are met."""
    from bunraku.bench import conservation

    result = conservation.run()
    print(json.dumps(result, indent=2) if args.json else conservation.text(result, colour=sys.stdout.isatty()))
    return 0


def run_rollout(args) -> int:
    """Measure and print; 0 whether or not the targets are met."""
    from bunraku.bench import rollout

    result = rollout.run(rollout.Options.quick() if args.quick else rollout.Options(), quiet=args.json)
    print(json.dumps(result, indent=2) if args.json else rollout.text(result, colour=sys.stdout.isatty()))
    return 0


def run_stiff(args) -> int:
    """Measure and print; 0 whether or not the targets are met."""
    from bunraku.bench import stiff

    result = stiff.run(stiff.Options.quick() if args.quick else stiff.Options(), quiet=args.json)
    print(json.dumps(result, indent=2) if args.json else stiff.text(result, colour=sys.stdout.isatty()))
    return 0


def run_massmatrix(args) -> int:
    """Measure and print; 0 whether or not the targets are met."""
    from bunraku.bench import massmatrix

    result = massmatrix.run(massmatrix.Options.quick() if args.quick else massmatrix.Options(), quiet=args.json)
    print(json.dumps(result, indent=2) if args.json else massmatrix.text(result))
    return 0


def _read(names: list[str]) -> dict:
    """Mechanisms by file; one line on stderr for each file that is not clean."""
    from bunraku.bench import files

    models = {}
    for path in dict.fromkeys(map(files.find, names)):
        models[path], notes = files.read(path)
        if notes:
            print(f"bunraku: {path.name}: {len(notes)} warning{'s' * (len(notes) > 1)}; to read: bunraku info {path}",
                  file=sys.stderr)
    return models
