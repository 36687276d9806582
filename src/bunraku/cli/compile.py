"""`bunraku compile`: ahead-of-time compilation, also for other processors."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from bunraku.cli import told
from bunraku.errors import BunrakuError, NamingError

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "compile", help="compile before the first use",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Compile now what would otherwise be compiled on its first use, and keep it on\n"
                    "disk: what simulations and the demo need, or everything. Functions that are\n"
                    "compiled already are left as they are.",
        epilog="example: bunraku compile --all")
    parser.add_argument("names", nargs="*", metavar="ENTRY",
                        help="compiled functions by name, as in entries.forward.forward_one")
    parser.add_argument("--all", action="store_true", help="everything: batches, all solvers, references, benchmarks")
    parser.add_argument("--level", choices=LEVELS, metavar="LEVEL",
                        help=f"kind of processor (default: that of this machine): {', '.join(LEVELS)}")
    parser.add_argument("--out", type=Path, metavar="DIR",
                        help="write to DIR/LEVEL (default: the user's cache folder, or that of NUMBA_CACHE_DIR)")
    parser.add_argument("--json", action="store_true", help="report as JSON on standard output")
    parser.set_defaults(run=run)


def run(args) -> int:
    from bunraku.compiler.ahead import compile_ahead
    from bunraku.compiler.targets import check_runs_here, level
    from bunraku.jit import JIT_OFF

    if JIT_OFF:
        raise BunrakuError("with NUMBA_DISABLE_JIT=1 nothing is compiled")
    entries, start = chosen(args.names, args.all), time.perf_counter()
    target = args.level or level().name
    if target == level().name and args.out is None:  # for use here; a wheel's machine code counts too
        check_runs_here()
        there = {entry.name: path for entry in entries if (path := entry.on_disk()) is not None}
    else:
        there = {}
    missing = [entry for entry in entries if entry.name not in there]
    made = compile_ahead(missing, target, args.out and args.out / target) if missing else []
    there |= {one.name: one.file for one in made if not one.seconds}
    compiled = {one.name: one.file for one in made if one.seconds}
    files = [*there.values(), *compiled.values()]
    report = {
        "level": target, "already": sorted(there), "compiled": {one.name: one.seconds for one in made if one.seconds},
        "seconds": time.perf_counter() - start, "bytes": sum(path.stat().st_size for path in files),
        "folders": sorted({str(path.parent) for path in files})}
    print(json.dumps(report, indent=2) if args.json else _prose(report))
    return 0


def chosen(names: list[str], everything: bool) -> list:
    from bunraku.checks import hint
    from bunraku.jit import all_entries

    known = {entry.name: entry for entry in all_entries()}
    for name in names:
        if name not in known:
            raise NamingError(f"there is no compiled function {name!r}{hint(name, list(known))}")
    if everything:
        return list(known.values())
    return [known[name] for name in dict.fromkeys(names)] or usual()


def usual() -> list:
    """The usual entries: evaluations of one state, simulations and the demo."""
    from bunraku.entries.forward_entries import forward_one
    from bunraku.entries.inverse_entries import inverse_one
    from bunraku.entries.loop_entries import closed_plain
    from bunraku.runs.context import tree_one
    from bunraku.runs.multistep_run import run_multistep
    from bunraku.runs.runge_kutta_run import run_runge_kutta
    from bunraku.simulation.needed_kernels import ALWAYS, ENERGY, EVENTS, LOOPS

    return list(dict.fromkeys((*ALWAYS, *LOOPS, *EVENTS, *ENERGY, tree_one, run_multistep, run_runge_kutta, forward_one,
                               inverse_one, closed_plain)))


def _prose(report: dict) -> str:
    there, compiled = len(report["already"]), len(report["compiled"])
    return f"machine code for {report['level']}\n" + told([
        ("there already", f"{there} functions"),
        ("compiled", f"{compiled} functions in {report['seconds']:.1f} s" if compiled else "nothing"),
        ("size", f"{report['bytes'] / 1e6:.2f} MB"),
        *(("folder", folder) for folder in report["folders"])])
