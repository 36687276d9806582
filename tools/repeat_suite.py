"""Run the tests many times, in different ways, and print a table: a suite that passes by luck shows.

    python tools/repeat_suite.py --times 20                      the whole suite, twenty times
    python tools/repeat_suite.py --times 6 tests/workers -x      some tests; other arguments go to pytest

The ways take turns (--ways chooses some):

    plain       in the foreground, as `pytest` runs
    detached    in a session of its own without a terminal, Ctrl-C ignored: under nohup, in CI
    x86-64-v2, x86-64-v3, x86-64-v4
                machine code and lanes of that level (BUNRAKU_LEVEL), if this processor has it
    random      Hypothesis draws its cases from a new seed, which is printed

A failure does not end the others. Each run keeps its output and a report (JUnit XML) in --out. The exit code is 1 if
any run has failed.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

TOP = Path(__file__).parents[1]
LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
WAYS = ("plain", "detached", *LEVELS, "random")
ROW = "{:>3}  {:<24}{:>8}{:>8}{:>9}{:>8}  {}"


class Outcome(NamedTuple):
    """Of one run."""

    passed: int
    failed: int
    skipped: int
    seconds: float
    names: list[str]  # of the tests that failed; pytest's own complaint if there is no report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("--times", type=int, default=len(WAYS), metavar="N",
                        help=f"runs altogether (default: {len(WAYS)}, one of each way)")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, metavar="WAY", help="default: all")
    parser.add_argument("--limit", type=float, default=3600.0, metavar="S", help="a run that takes longer has failed")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where outputs are kept (default: a new folder)")
    args, rest = parser.parse_known_args()
    out = args.out or Path(tempfile.mkdtemp(prefix="bunraku-suite-"))
    out.mkdir(parents=True, exist_ok=True)
    ways = [way for way in args.ways if way not in LEVELS or way in levels_here()]
    for way in args.ways:
        if way not in ways:
            print(f"{way} is left out: this processor does not have it")
    print(ROW.format("", f"{args.times} runs", "passed", "failed", "skipped", "s", str(out)), flush=True)
    outcomes = []
    for k in range(args.times):
        way = ways[k % len(ways)]
        seed = random.randrange(10**9) if way == "random" else None
        log = out / f"{k + 1:03}-{way}.log"
        outcome = run(way, seed, rest, log, args.limit)
        outcomes.append(outcome)
        print(row(k + 1, way if seed is None else f"{way} (seed {seed})", outcome), flush=True)
        for name in outcome.names:
            print(f"       {name}", flush=True)
    bad = sum(bool(outcome.names) for outcome in outcomes)
    print(f"{len(outcomes) - bad} of {len(outcomes)} runs passed, in "
          f"{sum(outcome.seconds for outcome in outcomes):.0f} s")
    return 1 if bad else 0


def levels_here() -> set[str]:
    sys.path.insert(0, str(TOP / "src"))
    from bunraku.compiler.targets import levels_here

    return {level.name for level in levels_here()}


def row(number: int, what: str, outcome: Outcome) -> str:
    return ROW.format(number, what, outcome.passed, outcome.failed, outcome.skipped, f"{outcome.seconds:.0f}",
                      "FAILED" if outcome.names else "")


def run(way: str, seed: int | None, rest: list[str], log: Path, limit: float) -> Outcome:
    report = log.with_suffix(".xml")
    report.unlink(missing_ok=True)  # of an earlier run
    command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *rest]
    if seed is not None:
        command += ["--hypothesis-profile=random", f"--hypothesis-seed={seed}"]
    environment = {**os.environ, **({"BUNRAKU_LEVEL": way} if way in LEVELS else {})}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TOP / "src"), environment.get("PYTHONPATH")]))
    begin = time.monotonic()
    with open(log, "w", encoding="utf-8") as output:
        process = subprocess.Popen(command, cwd=TOP, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=way == "detached",
                                   preexec_fn=ignore_ctrl_c if way == "detached" else hear_ctrl_c)
        try:
            code: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        finally:  # Ctrl-C too
            process.kill()
            process.wait()
    return read(report, log, code, time.monotonic() - begin)


def ignore_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def hear_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def read(report: Path, log: Path, code: int | None, seconds: float) -> Outcome:
    """The outcome by pytest's report and exit code, of which each must be fine."""
    passed, failed, skipped, names = 0, 0, 0, []
    if report.exists():
        for case in ElementTree.parse(report).iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                failed += 1
                names.append(f"{case.get('classname')}::{case.get('name')}")
            elif case.find("skipped") is not None:
                skipped += 1
            else:
                passed += 1
    if code != 0 and not names:
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "no output")
        names = [f"exit code {code}: {last}" if code is not None else f"still running after {seconds:.0f} s: {last}"]
    return Outcome(passed, failed, skipped, seconds, names)


if __name__ == "__main__":
    sys.exit(main())
