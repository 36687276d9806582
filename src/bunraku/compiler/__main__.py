"""python -m bunraku.compiler [--cache FOLDER | --wheel FOLDER] ENTRY ...: a child of `together.py` or `ahead.py`.

Compiles those entries that are not on disk yet and that no other process is compiling, and reports each when it is
done by a line of JSON. With --wait, entries that another process is compiling are waited for.
"""

import argparse
import importlib
import json
from pathlib import Path

from bunraku.compiler import code_files as files
from bunraku.compiler.together import make


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--wait", action="store_true")
    parser.add_argument("names", nargs="+")
    given = parser.parse_args()
    if given.cache is None:  # the cache of the user, not a folder for this process only
        given.cache = files.cache_directory()
    (given.wheel or given.cache).mkdir(parents=True, exist_ok=True)
    for name in given.names:
        module, function = name.rsplit(".", 1)
        entry = getattr(importlib.import_module(f"bunraku.{module}"), function)
        path = entry.path_in_wheel(given.wheel) if given.wheel else entry.path(given.cache)
        seconds = make(entry, path, given.wait)
        if seconds is not None:
            print(json.dumps({"name": name, "seconds": seconds, "file": str(path)}), flush=True)


if __name__ == "__main__":
    main()
