"""`bunraku check`: test the library with random cases."""

from __future__ import annotations

import argparse
import json
import sys

ATTACKS_SHORT = """attacks:
  marathon    connects and cuts in motion: poses, impulses, energy, dynamics
  redundant   redundant loops at rest: none is refused, methods agree
  stops       runs stopped a few rounding errors apart, with every solver
  closed      every solver on every linkage: a run ends closed, or says why not
  sample      states between steps are as good as steps
  workers     structures cut at random joints: several workers against one
  ranks       ranks of MPI killed, interrupted or raising: none waits forever
  kill        processes killed while they save, compile or run lose nothing
  files       damaged files load and can be used, or are refused by name
  contacts    shapes in random poses: gaps, normals and points beside Coal
  problems    random impacts with friction: the law holds, beside Pinocchio
  drops       bodies dropped at random: no depth, no gain of energy, restarts
  worlds      a closed-chain leg under extreme actions, the same bits always
  all         all of these

example: bunraku check redundant --seeds 10000"""


def add_parser(subparsers):
    """Add the verb `check` to the command line."""
    from bunraku.check import ATTACKS

    verb = subparsers.add_parser(
        "check", help="attack the library with random cases",
        description="Attack the library with random cases, each checked against laws of mechanics\n"
                    "or independent solutions. Every failure is printed with its seed.",
        epilog=ATTACKS_SHORT, formatter_class=argparse.RawDescriptionHelpFormatter)
    verb.add_argument("name", choices=[*ATTACKS, "all"], nargs="+", metavar="NAME", help=", ".join([*ATTACKS, "all"]))
    verb.add_argument("--seeds", type=int, default=None, metavar="N", help="number of cases")
    verb.add_argument("--first", type=int, default=0, metavar="SEED", help="first seed (default 0)")
    verb.add_argument("--minutes", type=float, default=None, metavar="M",
                      help="go on for this long, for each NAME, instead of a number of cases")
    verb.add_argument("--short", action="store_true", help="a few cases of each, in about a minute")
    verb.add_argument("--workers", type=int, default=None, metavar="W", help="processes (default: one per core)")
    verb.add_argument("--json", action="store_true", help="print all numbers as JSON")
    verb.add_argument("--table", action="store_true", help="print a Markdown table")
    verb.set_defaults(run=run)
    return verb


def run(args) -> int:
    """Run the checks and print the report; 1 if anything failed."""
    from bunraku.bench.machine import describe, line
    from bunraku.check import ATTACKS, runner

    names = list(ATTACKS) if "all" in args.name else list(dict.fromkeys(args.name))
    on, results = describe(), []
    machine = line(on)
    if not args.json:
        print(machine, flush=True)
    for name in names:
        module = runner.module_of(name)
        missing = getattr(module, "missing", lambda: "")()
        if missing and "all" in args.name:
            print(f"{name}: left out, since {missing}", file=sys.stderr)
            continue
        seeds = args.seeds or (module.SHORT if args.short else module.SEEDS)
        with _Bar(name, None if args.minutes else seeds) as bar:
            results.append(runner.attack(name, seeds, first=args.first, minutes=args.minutes, workers=args.workers,
                                         progress=bar.show))
        if not (args.json or args.table):
            print(runner.text(results[-1]), flush=True)
        if results[-1].get("interrupted"):
            break
    if args.json:
        print(json.dumps({"machine": on, "attacks": results}, indent=2))
    elif args.table:
        print("\n| attack | tried | failed | largest error | command |\n|---|---|---|---|---|")
        print("\n".join(map(runner.row, results)))
    return int(any(result["failures"] for result in results))


class _Bar:
    """Progress bar over cases; none if standard error is not a terminal or tqdm is not installed."""

    def __init__(self, name, total):
        self.bar = None
        if sys.stderr.isatty():
            try:
                from tqdm import tqdm
            except ImportError:
                return
            self.bar = tqdm(total=total, desc=name, unit=" cases", leave=False)

    def show(self, cases, failures):
        if self.bar is not None:
            self.bar.update(cases - self.bar.n)
            if failures:
                self.bar.set_postfix(failed=failures)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.bar is not None:
            self.bar.close()
