"""python -m bunraku.compiler [--out FOLDER] ENTRY ...: a child of `together.py`.

Compiles those entries that are not on disk yet and that no other process is compiling, and names each when it is done.
"""

import argparse
import importlib
from pathlib import Path

from bunraku.compiler import files


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    parser.add_argument("names", nargs="+")
    given = parser.parse_args()
    for name in given.names:
        module, function = name.rsplit(".", 1)
        entry = getattr(importlib.import_module(f"bunraku.{module}"), function)
        path = entry.path(given.out)
        with files.alone(path, wait=False) as mine:
            if mine and not files.usable(path):
                files.write(path, entry.compiled())
        if mine:
            print(name, flush=True)


main()
