"""`bunraku reproduce`: experiments of the papers, published results beside ours."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

from bunraku.cli import ListNames

WORKERS = {  # experiments with several workers: help, description
    "yn02-table1": ("chains of ball joints on 1 to 8 processes: table 1 of Yamane and Nakamura",
                    "Forward dynamics of chains of 8, 16 and 32 links with ball joints on 1 to 8 processes, evenly and "
                    "unevenly distributed (4*), and again with 32 times the links."),
    "yn02-table2": ("figures of 34 and 48 degrees of freedom on 1 to 4 processes: table 2 and fig. 7",
                    "Forward dynamics of free-flying human figures on 1, 2 and 4 processes, of sixteen figures hand in "
                    "hand, and of a figure that lets go with one hand, then with the other (fig. 7)."),
    "jung-fig8": ("a family of mobiles, deep as the logarithm of their size: fig. 8 of Jung",
                  "Mobiles whose depth grows with the logarithm of the number of joints."),
    "jung-fig9": ("time of an evaluation over joints: fig. 9 of Jung",
                  "Time of an evaluation of the mobiles of jung-fig8, with the logarithm: the paper's estimate at its "
                  "costs, and our chunks at its costs and at those of this machine."),
    "jung-fig10": ("speed-up over processors of two mobiles: fig. 10 of Jung",
                   "Speed-up over processors for mobiles of 455 and 4100 joints, at the paper's costs and at those of "
                   "this machine."),
}
HOW = "Measured on the cores at hand, predicted beyond, each labelled. Under a minute after the first run."


def add_parser(subparsers):
    """Add the verb `reproduce` to the command line."""
    verb = subparsers.add_parser("reproduce", help="run experiments of the papers again",
                                 description="Run an experiment of one of the papers again and print its figures "
                                             "beside those measured here. The exit status is 0 if the experiment "
                                             "ran, whether or not the paper's conclusions hold here: those that do not "
                                             "are printed. It is 1 if it could not be run.",
                                 epilog="example: bunraku reproduce yn-hrp --out yn-hrp")
    names = verb.add_subparsers(dest="name", metavar="NAME", required=True)
    verb.add_argument("--list", action=ListNames, names=names.choices)
    _experiment(names, "yn-hrp", _with_progress,
                "2 s of a 34-DOF figure by assembly-disassembly and by the O(N^3) method; table 1, fig. 3",
                "Yamane and Nakamura's humanoid simulation: a 34-DOF figure for 2 s at steps of 2 ms, first on "
                "both feet, then on one, by assembly and disassembly and by the O(N^3) method side by side; the "
                "cost of both over degrees of freedom; figures and chains on several processes, measured, and "
                "predicted at the paper's costs. Half a minute after the first run.",
                "example: bunraku reproduce yn-hrp --json > yn-hrp.json", draws="cost over degrees of freedom",
                quick="0.4 s of motion and fewer structures")
    _experiment(names, "yn99", _yn99,
                "high bar and swing with a 16-DOF figure: the examples of structure-varying chains",
                "Yamane and Nakamura's examples of structure-varying chains: a figure of 16 degrees of freedom "
                "without torques, but for joint limits, on a high bar until a hand lets go, and on a swing until "
                "the thighs have left the plate: counts of degrees of freedom beside the paper's, velocities, "
                "forces and errors. A few seconds after the first run.",
                "example: bunraku reproduce yn99 --out yn99", draws="the motions")
    jung = _experiment(names, "jung-tables", _jung_tables,
                       "six integrators on swinging mobiles: tables IV to VII of Jung",
                       "Jung's comparison of solvers: evaluations of the right-hand side that six integrators need for "
                       "mobiles swinging for 10 s, the paper's counts beside ours, CVODE and LSODA as today's "
                       "references, and which of the paper's conclusions hold (FAILS where one does not). Under a "
                       "minute after the first run. CVODE needs: pip install 'bunraku[bench]'.",
                       "examples: bunraku reproduce jung-tables --out tables; "
                       "bunraku reproduce jung-tables --tables IV VII --json; bunraku reproduce jung-tables --readings",
                       draws="the tables", prints="the tables")
    jung.add_argument("--tables", nargs="+", default=None, metavar="TABLE", help="of IV V VI VII; all if not given")
    jung.add_argument("--rows", nargs="+", type=float, default=None, metavar="ROW",
                      help="rows of these tables by their first column; all if not given")
    jung.add_argument("--readings", action="store_true",
                      help="other readings of the paper instead: norms, step control, elongation, instability, "
                           "plateaus, and what each changes")
    _experiment(names, "fijany", _fijany, "what forming a mass matrix costs, serially and on processor arrays",
                "Fijany's comparison of ways to form the mass matrix of a chain: operations at n = 6 and for any n "
                "on 1, n and n (n + 1) / 2 processors, the paper's figures beside those counted by running the "
                "code, with every difference explained. A few seconds.",
                "example: bunraku reproduce fijany --out fijany", draws="cost over the number of joints",
                quick="chains up to 16 joints")
    for name, (short, long) in WORKERS.items():
        _experiment(names, name, _with_progress, short, f"{long} {HOW}",
                    f"example: bunraku reproduce {name} --out {name}", draws="it",
                    quick="fewer rounds and smaller mechanisms")
    return verb


def _experiment(names, name, measure, short, description, epilog, *, draws, quick=None, prints="all numbers"):
    """Add the parser of one experiment."""
    parser = names.add_parser(name, help=short, description=description, epilog=epilog)
    parser.add_argument("--out", type=Path, default=None, metavar="DIR",
                        help=f"draw {draws} into this folder (needs matplotlib)")
    if quick is not None:
        parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--json", action="store_true", help=f"print {prints} as JSON")
    parser.set_defaults(run=run, measure=measure)
    return parser


def run(args) -> int:
    """Measure, draw and print; 0 whether or not the paper's claims hold."""
    experiment = import_module(f"bunraku.reproduce.{args.name.replace('-', '_')}")
    if getattr(args, "readings", False):
        return _jung_readings(args)
    drawing = _drawing(args.out)
    result = args.measure(experiment, args)
    if drawing is not None:
        drawn = experiment.picture(result, args.out / f"{args.name}.png", drawing)
        result["files"] = [str(path) for path in (drawn if isinstance(drawn, list) else [drawn])]
    if args.json:
        print(json.dumps(result["tables"] if args.name == "jung-tables" else result, indent=2))
        return 0
    print(experiment.text(result))
    if "machine" in result:
        print(f"\n{result['machine']['processor']}; {result['machine']['date'][:16].replace('T', ' ')}")
    print("".join(f"wrote {path}\n" for path in result.get("files", ())), end="")
    return 0


def _jung_tables(experiment, args) -> dict:
    from bunraku.bench import machine
    from bunraku.bench.timing import Progress

    wanted = experiment.rows(args.tables, args.rows)
    with _Bar(Progress(len(wanted), quiet=args.json)) as progress:
        return experiment.run(wanted, progress) | {"machine": machine.describe()}


def _jung_readings(args) -> int:
    from bunraku.bench import machine
    from bunraku.bench.timing import Progress
    from bunraku.errors import SettingError
    from bunraku.reproduce import jung_readings

    for name in ("tables", "rows", "out"):
        if getattr(args, name) is not None:
            raise SettingError(f"--readings compares whole tables and draws nothing: leave out --{name}")
    with _Bar(Progress(len(jung_readings.READINGS), quiet=args.json)) as progress:
        result = jung_readings.run(progress=progress)
    print(json.dumps(result, indent=2) if args.json else
          f"{jung_readings.text(result)}\n\n{machine.describe()['processor']}")
    return 0


def _with_progress(experiment, args) -> dict:
    from bunraku.bench import machine
    from bunraku.bench.timing import Progress

    options = _options(experiment, args)
    with _Bar(Progress(experiment.pieces(options), quiet=args.json)) as progress:
        return experiment.run(options, progress) | {"machine": machine.describe()}


def _yn99(experiment, args) -> dict:
    return experiment.run()


def _fijany(experiment, args) -> dict:
    return experiment.run(_options(experiment, args))


def _options(experiment, args):
    return experiment.Options.quick() if args.quick else experiment.Options()


def _drawing(folder: Path | None):
    """Import matplotlib and create the folder: errors come before the work, not after it."""
    if folder is None:
        return None
    from bunraku.view.filmstrip import drawing

    tools = drawing()
    folder.mkdir(parents=True, exist_ok=True)
    return tools


class _Bar:
    """Progress bar, called with the name of each part as it starts."""

    def __init__(self, progress):
        self.progress, self.started = progress, False

    def __call__(self, what: str) -> None:
        if self.started:
            self.progress.done()
        self.started = True
        self.progress(what)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.progress.close()
