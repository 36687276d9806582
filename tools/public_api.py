"""Public names and their signatures in one file, so that a change of them shows in review.

    python tools/public_api.py            writes docs/public-api.txt
    python tools/public_api.py --check    exits with 1 if the file is not what the package has
"""

from __future__ import annotations

import argparse
import inspect
import sys
from pathlib import Path

import bunraku as bk

FILE = Path(__file__).parents[1] / "docs" / "public-api.txt"
PLACES = {"bk": bk.__all__, "bk.models": None, "bk.control": None, "bk.optimal_control": None,
          "bk.differentiable": None, "bk.sensors": None, "bk.view": None}


def listed() -> str:
    """A line for every public name; classes with their public methods and properties."""
    lines = []
    for place, names in PLACES.items():
        home = bk
        for part in place.split(".")[1:]:
            home = getattr(home, part)
        for name in sorted(names or home.__all__):
            lines += described(f"{place}.{name}", getattr(home, name))
    return "\n".join(lines) + "\n"


def described(name: str, value) -> list[str]:
    if inspect.isclass(value):
        lines = [f"class {name}{signature(value)}"]
        for member in sorted(vars(value)):
            if not member.startswith("_"):
                lines += [f"    {line}" for line in described(f".{member}", inspect.getattr_static(value, member))]
        return lines
    if isinstance(value, property):
        return [f"{name}: property"]
    if isinstance(value, (classmethod, staticmethod)):
        return [f"{name}{signature(value.__func__)}"]
    return [f"{name}{signature(value)}" if callable(value) else name]


def signature(value) -> str:
    if inspect.isclass(value) and "__init__" in vars(value):  # joints are made by a metaclass
        value = value.__init__
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()
             if not p.name.startswith("_") and p.name != "self"]
    return str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    present = listed()
    if not parser.parse_args().check:
        FILE.write_text(present)
        return 0
    if FILE.read_text() == present:
        return 0
    print("public names or signatures have changed: run python tools/public_api.py and review docs/public-api.txt",
          file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
