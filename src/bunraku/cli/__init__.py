"""The command line: `bunraku VERB`. One file per verb.

A verb is a module `bunraku/cli/<verb>.py` with `add_parser(subparsers)`, which calls `set_defaults(run=function)`;
`function(args)` does the work and returns the exit code. Verb modules import nothing heavy before `run`, so that
`--help` and `--version` answer at once.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import shutil
import sys
import textwrap
import warnings
from collections.abc import Sequence

from bunraku.errors import BunrakuError

FAILED, INTERRUPTED, UNHEARD = 1, 130, 141  # argparse itself exits with 2 on wrong usage


def verbs() -> list[str]:
    """Names of all verbs."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.ispkg and not m.name.startswith("_"))


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    from bunraku import __version__

    top = argparse.ArgumentParser(
        prog="bunraku", description="Dynamics of human figures, humanoids and large articulated mechanisms.",
        epilog="example: bunraku demo somersault --out somersault")
    top.add_argument("--version", action="version", version=f"bunraku {__version__}")
    subparsers = top.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb in verbs():
        importlib.import_module(f"{__name__}.{verb}").add_parser(subparsers)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    try:
        given = sys.argv[1:] if argv is None else list(argv)
        if given[:1] == ["run"] and not {"-h", "--help"} & set(given):
            from bunraku.simulation.crew.mpi_ranks import launched

            if launched():  # by mpiexec: rank 0 goes on, the others are at its service
                from bunraku.simulation.crew.rank_server import take_part

                take_part()
        args = parser().parse_args(argv)
        with warnings.catch_warnings():
            warnings.showwarning = _warn  # type: ignore[assignment]
            code = int(args.run(args) or 0)
        sys.stdout.flush()
        return code
    except BunrakuError as error:
        print("\n  ".join([f"bunraku: {error}", *getattr(error, "__notes__", ())]), file=sys.stderr)
        return FAILED
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # no second error at exit
        return UNHEARD
    except OSError as error:  # a folder that cannot be written, a file that is not there
        print(f"bunraku: {error.strerror or error}{f': {error.filename}' if error.filename else ''}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("bunraku: interrupted", file=sys.stderr)
        return INTERRUPTED


def _warn(message, *_) -> None:
    """A warning in one line, without the source location."""
    print(f"bunraku: {message}", file=sys.stderr)


class ListNames(argparse.Action):
    """`--list`: print the given names, one a line, and exit; for scripts."""

    def __init__(self, option_strings, dest, names, **options):
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help="print the names, one a line", **options)
        self.names = names

    def __call__(self, parser, *_):
        print("\n".join(self.names))
        parser.exit()


def positive(text: str) -> float:
    """An argument that is a positive number."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return value


def told(rows: Sequence[tuple[str, str]], most: int = 110) -> str:
    """Rows of (label, text) as two columns, no wider than the terminal."""
    wide = max(len(what) for what, _ in rows)
    width = max(40, min(most, shutil.get_terminal_size((most, 24)).columns))
    return "\n".join(textwrap.fill(how, width, initial_indent=f"  {what:<{wide}}  ",
                                   subsequent_indent=" " * (wide + 4), break_long_words=False, break_on_hyphens=False)
                     for what, how in rows)
