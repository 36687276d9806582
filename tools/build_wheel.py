"""Build the wheel with machine code for every kind of processor, and print the size of each part.

    python tools/build_wheel.py                                 all levels: some minutes on two cores
    python tools/build_wheel.py --levels x86-64-v3 --out /tmp   one of them

The same as BUNRAKU_WHEEL_LEVELS=all python -m build --wheel (`hatch_build.py`). The machine code serves the version of
Numba that is the newest at the time of the build; with others, kernels are compiled on first use.
"""

import argparse
import os
import subprocess
import sys
import time
import zipfile
from collections import defaultdict
from pathlib import Path

TOP = Path(__file__).parents[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", nargs="+", default=["all"], metavar="LEVEL", help="kinds of processors")
    parser.add_argument("--entries", nargs="+", default=[], metavar="ENTRY", help="a few entries in place of all")
    parser.add_argument("--out", type=Path, default=TOP / "dist", metavar="DIR", help="where to (default: dist)")
    parser.add_argument("--here", action="store_true",
                        help="build with the packages installed here, hatchling among them, not in an environment of "
                             "its own")
    args = parser.parse_args()
    start = time.perf_counter()
    args.out.mkdir(parents=True, exist_ok=True)
    before = {path: path.stat().st_mtime_ns for path in args.out.glob("bunraku-*.whl")}
    build([sys.executable, "-m", "pip", "wheel", "--no-deps", "--verbose", "--wheel-dir", str(args.out), str(TOP),
           *(["--no-build-isolation"] if args.here else [])],
          BUNRAKU_WHEEL_LEVELS=",".join(args.levels), BUNRAKU_WHEEL_ENTRIES=",".join(args.entries))
    wheel, = (path for path in args.out.glob("bunraku-*.whl") if before.get(path) != path.stat().st_mtime_ns)
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.2f} MB, built in {time.perf_counter() - start:.0f} s")
    for what, (files, packed, size) in sorted(contents(wheel).items()):
        print(f"  {what:<22} {files:4} files {packed / 1e6:8.2f} MB, {size / 1e6:.2f} MB installed")


def build(command, **environment):
    """Run pip; only what is compiled is shown of its output, or all of it if it fails."""
    pip = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           env={**os.environ, **environment})
    lines = []
    for line in pip.stdout:
        lines.append(line)
        if line.strip().startswith("bunraku:"):
            print(line.strip(), flush=True)
    if pip.wait() != 0:
        sys.exit("".join(lines))


def contents(wheel):
    """Files, bytes in the wheel and bytes installed: of each level, and of everything else."""
    found = defaultdict(lambda: [0, 0, 0])
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            folders = info.filename.split("/")
            row = found[folders[2] if folders[1:2] == ["machine_code"] else "everything else"]
            row[0], row[1], row[2] = row[0] + 1, row[1] + info.compress_size, row[2] + info.file_size
    return found


if __name__ == "__main__":
    main()
