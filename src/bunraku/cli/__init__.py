"""The command line: `bunraku VERB`. One file per verb.

A verb is a module `bunraku/cli/<verb>.py` with `add_parser(subparsers)`, which calls `set_defaults(run=function)`;
`function(args)` does the work and returns the exit code. Verb modules import nothing heavy before `run`, so that
`--help` and `--version` answer at once.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence

from bunraku.errors import BunrakuError

FAILED, INTERRUPTED = 1, 130  # argparse itself exits with 2 on wrong usage


def verbs() -> list[str]:
    """Names of the verbs there are."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.ispkg and not m.name.startswith("_"))


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    from bunraku import __version__

    top = argparse.ArgumentParser(
        prog="bunraku", description="Dynamics of human figures, humanoids and large articulated mechanisms.",
        epilog="example: bunraku demo --out somersault")
    top.add_argument("--version", action="version", version=f"bunraku {__version__}")
    subparsers = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb in verbs():
        importlib.import_module(f"{__name__}.{verb}").add_parser(subparsers)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    args = parser().parse_args(argv)
    try:
        return int(args.run(args) or 0)
    except BunrakuError as error:
        print(f"bunraku: {error}", file=sys.stderr)
        return FAILED
    except OSError as error:  # a folder that cannot be written, a file that is not there
        print(f"bunraku: {error.strerror or error}{f': {error.filename}' if error.filename else ''}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("bunraku: interrupted", file=sys.stderr)
        return INTERRUPTED
