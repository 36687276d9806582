"""bunraku schedule MODEL: divide a mechanism into chunks for several workers and predict the speed-up."""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

from bunraku.cli import _models, told

COLUMNS = ("workers", "used", "predicted_time", "predicted_speedup")
WHAT_IF = (1, 2, 4, 8, 16, 32, 64, 128, 256, 1024, 4096, 16384, 65536, 10**6)


def add_parser(subparsers) -> None:
    """Add `schedule` to the command line."""
    parser = subparsers.add_parser(
        "schedule", help="cut a mechanism into chunks for several workers, and predict times",
        description="Cut a mechanism into chunks for several workers and predict the time of one\n"
                    "evaluation of forward dynamics, by measured costs. `bunraku bench parallel`\n"
                    "measures what two threads reach.",
        epilog=f"{_models.HELP}\n\nexample: bunraku schedule mobile --workers 8 --plot mobile.png\n"
               "         bunraku schedule mobile --workers 4 --method jung",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL", help="a file, or a name from the list below")
    parser.add_argument("--workers", type=int, default=2, metavar="P", help="workers at hand (default: %(default)s)")
    parser.add_argument("--method", default="auto", metavar="METHOD",
                        help="auto: the best that is found; jung: Jung's distribution, which divides no unbranched "
                             "chain and lets each branch start at most two siblings (default: %(default)s)")
    parser.add_argument("--exactly", action="store_true",
                        help="use all of them, even if fewer are predicted to be faster")
    parser.add_argument("--measure", action="store_true",
                        help="measure the costs on this machine first, instead of taking the stated ones")
    parser.add_argument("--latency", type=float, default=None, metavar="US",
                        help="microseconds that a message takes, such as 2 over a cluster's network (default: 0.3, "
                             "between threads)")
    parser.add_argument("--base", choices=("free", "fixed"), default="free",
                        help="how the root of a file hangs from the ground, if it has no root joint (default: free)")
    parser.add_argument("--what-if", action="store_true", help="predict for 1 to 10^6 workers as well")
    parser.add_argument("--plot", type=Path, default=None, metavar="FILE",
                        help="draw the assembly tree and the predicted evaluation")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args) -> int:
    from bunraku.checks import as_size
    from bunraku.errors import LoadWarning, SettingError
    from bunraku.evaluate import schedule
    from bunraku.scheduling import Costs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LoadWarning)  # `bunraku info` has them
        mechanism = _models.find(args.model, args.base)
    costs: Costs | str | None = "measured" if args.measure else None
    if args.latency is not None:
        if args.measure:
            raise SettingError("--latency and --measure exclude each other: a measured latency is that of threads")
        costs = Costs(latency=as_size("--latency", args.latency) * 1e-6, source="stated, but for the latency")
    s = schedule(mechanism, args.workers, method=args.method, exactly=args.exactly, costs=costs)
    if args.plot is not None:
        s.plot(args.plot)
    report = summary(s)
    if args.what_if:
        curve = s.what_if(WHAT_IF)
        columns = (column.tolist() for column in (curve.workers, curve.used, curve.time, curve.speedup))
        report["what_if"] = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]
    if args.plot is not None:
        report["files"] = [str(args.plot)]
    print(json.dumps(report, indent=1) if args.json else text(report))
    return 0


def summary(s) -> dict:
    """A schedule as plain data for JSON."""
    chunks = [{"worker": worker, "links": list(links), "handles": handles}
              for links, worker, handles in zip(s.chunks, s.chunk_workers, s.handles, strict=True)]
    return {"name": s.name, "joints": len(s.order), "method": s.method, "asked": s.asked, "workers": s.workers,
            "why_fewer": s.why_fewer, "depth": s.depth, "cuts": list(s.cuts), "chunks": chunks,
            "floats_per_edge": list(s.floats_per_edge), "predicted_time": s.predicted_time,
            "predicted_speedup": s.predicted_speedup, "costs": s.costs.to_dict()}


def text(report: dict) -> str:
    """The schedule as text."""
    chunks = report["chunks"]
    used = f"{report['workers']} of {report['asked']}{': ' * bool(report['why_fewer'])}{report['why_fewer']}"
    sizes = sorted((len(c["links"]) for c in chunks), reverse=True)
    if report["method"] == "jung":
        used += "; the distribution of Jung"
    rows = [("workers used", used),
            ("chunks", f"{len(chunks)}, of {sizes[0]} links" if sizes[0] == sizes[-1] else
             f"{len(chunks)}, of {sizes[-1]} to {sizes[0]} links"),
            ("depth", f"{report['depth']} joins above the deepest link, of {report['joints']} joints and connections"),
            ("predicted time", f"{report['predicted_time'] * 1e6:.3g} us for one evaluation of forward dynamics"),
            ("predicted speed-up", f"{report['predicted_speedup']:.3g} over one worker")]
    if len(chunks) > 1:
        floats = report["floats_per_edge"]
        rows.append(("floats per message", f"at most {', '.join(map(str, floats))} in passes 1 to 4"))
    rows.append(("costs", f"{report['costs']['source']}; assumed: {', '.join(report['costs']['assumed'])}"))
    parts = [report["name"], told(rows)]
    if "what_if" in report:
        parts += ["", "   workers      used   predicted us   speed-up"]
        for x in report["what_if"]:
            time, speedup = x["predicted_time"] * 1e6, x["predicted_speedup"]
            parts.append(f"  {x['workers']:>8}  {x['used']:>8}  {time:>13.4g}  {speedup:>9.3g}")
    return "\n".join([*parts, *(["wrote", *(f"  {path}" for path in report["files"])] if "files" in report else [])])
