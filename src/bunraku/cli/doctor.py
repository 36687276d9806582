"""`bunraku doctor`: report on this installation: processor, versions, compiled kernels, extras."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
from pathlib import Path

from bunraku.cli import told

EXTRAS = {  # name: its distribution and module, what it is for
    "progress": ("tqdm", "tqdm", "progress bars"),
    "plot": ("matplotlib", "matplotlib", "pictures, plots and GIF films"),
    "video": ("av", "av", "MP4 films"),
    "record": ("mcap", "mcap", "recordings (.mcap)"),
    "frame": ("pandas", "pandas", "Trajectory.to_frame"),
    "mjcf": ("mujoco", "mujoco", "MJCF model files (.xml)"),
    "xacro": ("xacrodoc", "xacrodoc", "xacro model files (.xacro)"),
    "gym": ("gymnasium", "gymnasium", "environments of Gymnasium, and its figures"),
    "view": ("viser", "viser", "the live viewer in a browser"),
    "mocap": ("ezc3d", "ezc3d", "recorded motion (.c3d)"),
    "jax": ("jax", "jax", "dynamics as functions of JAX"),
    "torch": ("torch", "torch", "dynamics as functions of PyTorch"),
    "casadi": ("casadi", "casadi", "dynamics as functions of CasADi"),
    "mpi": ("mpi4py", "mpi4py", "several processes (mpiexec)"),
}
NEEDED = ("numpy", "scipy", "numba", "llvmlite")


def add_parser(subparsers) -> None:
    parser = subparsers.add_parser(
        "doctor", help="show what this installation has: processor, compiled kernels, extras",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="What this installation is and has: processor and lanes, versions, the cache of\n"
                    "machine code and what is compiled, which extras are installed, and the command\n"
                    "that installs the others. Good to have in a bug report.",
        epilog="example: bunraku doctor --json")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args) -> int:
    report = summary()
    print(json.dumps(report, indent=2) if args.json else text(report))
    return 0


def summary() -> dict:
    """The report of `doctor` as plain data for JSON."""
    from bunraku import __version__
    from bunraku.bench.machine import describe
    from bunraku.compiler import code_files as files
    from bunraku.compiler.targets import level
    from bunraku.jit import JIT_OFF, all_entries

    machine, cache = describe(), files.cache_directory()
    entries = all_entries()
    compiled = sorted(entry.name for entry in entries if entry.on_disk() is not None)
    caches = [folder for folder in files.cache_root().glob("kernels-*") if folder.is_dir()]
    return {
        "bunraku": __version__, "folder": str(Path(files.PACKAGE)), "python": machine["python"],
        "system": machine["system"], "processor": machine["processor"], "cores": machine["cores"],
        "level": level().name, "lanes": machine["lanes"], "compilation": not JIT_OFF,
        "versions": {name: importlib.metadata.version(name) for name in NEEDED},
        "cache": {"folder": str(cache), "exists": cache.is_dir(), "writable": _writable(cache), "bytes": _bytes(cache),
                  "other_versions": len([folder for folder in caches if folder != cache]),
                  "other_bytes": sum(_bytes(folder) for folder in caches if folder != cache),
                  "shipped": files.SHIPPED.is_dir()},
        "kernels": {"compiled": compiled, "missing": sorted({entry.name for entry in entries} - set(compiled)),
                    "seconds": sum(entry.seconds for entry in entries if entry.name not in set(compiled))},
        "extras": {name: {"installed": version(name), "for": what, "install": f'pip install "bunraku[{name}]"'}
                   for name, (*_, what) in EXTRAS.items()},
    }


def version(extra: str) -> str | None:
    """Version of the library of an extra; None if it is not installed."""
    distribution, module, _ = EXTRAS[extra]
    if importlib.util.find_spec(module) is None:
        return None
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "unknown version"


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0


def _writable(folder: Path) -> bool:
    """Whether machine code can be stored: in the folder, or in the parent where it would be created."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK)


def text(r: dict) -> str:
    """The report as text."""
    cache, kernels = r["cache"], r["kernels"]
    versions = ", ".join(f"{name} {number}" for name, number in r["versions"].items())
    kept = f"{cache['folder']}, {cache['bytes'] / 1e6:.1f} MB" if cache["exists"] else f"{cache['folder']} (empty)"
    rows = [("installed in", r["folder"]), ("python", f"{r['python']} on {r['system']}; {versions}"),
            ("processor", f"{r['processor']}, {r['cores']} core{'s' * (r['cores'] > 1)}"),
            ("lanes", f"{r['lanes']} doubles at a time ({r['level']})"), ("cache", kept)]
    if not cache["writable"]:
        rows.append(("", "cannot be written: every process compiles again; NUMBA_CACHE_DIR chooses another folder"))
    if cache["other_versions"]:
        rows.append(("", f"{cache['other_bytes'] / 1e6:.1f} MB more of {cache['other_versions']} other versions, which "
                         "are deleted when unused for 30 days"))
    missing = len(kernels["missing"])
    rows.append(("kernels", f"{len(kernels['compiled'])} compiled, {missing} not" + (
        f" (about {kernels['seconds']:.0f} s of processor time, on first use or by bunraku compile --all)" if missing
        else "") if r["compilation"] else "run as Python: NUMBA_DISABLE_JIT is set"))
    wide = max(map(len, r["extras"]))
    extras = [(name, f"{'+' if e['installed'] else '-'} {e['installed'] or 'missing: ' + e['install']}",
               e["for"]) for name, e in r["extras"].items()]
    how = max(len(state) for _, state, _ in extras)
    return "\n".join([f"bunraku {r['bunraku']}", told(rows), "extras",
                      *(f"  {name:<{wide}}  {state:<{how}}  {what}" for name, state, what in extras)])
