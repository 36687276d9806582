"""Build hook: machine code for wheels.

With BUNRAKU_WHEEL_LEVELS=all, or a list such as x86-64-v3,aarch64, a wheel carries the machine code of all entries for
these kinds of processors, under bunraku/machine_code/, so that nothing is compiled where it is installed. Without it,
as in `pip install .`, and in an editable install nothing is compiled here. `python tools/build_wheel.py` is the command
for it. BUNRAKU_WHEEL_ENTRIES names a few entries in place of all, for tests.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")


class MachineCode(BuildHookInterface):
    folder = None

    def dependencies(self):
        """Needed by the compiler; a build without machine code needs none of it."""
        return self.metadata.core.dependencies if levels() else []

    def initialize(self, version, build_data):
        if version == "editable":
            return
        for level in levels():
            self.folder = self.folder or Path(tempfile.mkdtemp(prefix="bunraku-machine-code-"))
            self.compile(level)
            for path in sorted((self.folder / level).glob("*.code")):
                build_data["force_include"][str(path)] = f"bunraku/machine_code/{level}/{path.name}"

    def compile(self, level):
        names = os.environ.get("BUNRAKU_WHEEL_ENTRIES", "").replace(",", " ").split()
        path = os.pathsep.join([str(Path(self.root) / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
        subprocess.run([sys.executable, "-m", "bunraku", "compile", *(names or ["--all"]), "--level", level, "--out",
                        str(self.folder)], check=True, env={**os.environ, "PYTHONPATH": path})

    def finalize(self, version, build_data, artifact_path):
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def levels():
    asked = os.environ.get("BUNRAKU_WHEEL_LEVELS", "").replace(",", " ").split()
    asked = list(LEVELS) if asked == ["all"] else asked
    if unknown := set(asked) - set(LEVELS):
        raise ValueError(f"BUNRAKU_WHEEL_LEVELS names {', '.join(sorted(unknown))}; it can be all, or a list of "
                         f"{', '.join(LEVELS)}")
    return asked
