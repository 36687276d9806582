"""Python code in a process of its own, with this package and the helpers of the tests at hand."""

import os
import subprocess
import sys
from pathlib import Path

import bunraku

PACKAGE = Path(bunraku.__file__).parent
SUPPORT = Path(__file__).parent


def run(code, source=PACKAGE.parent, **environment):
    """Run Python code in a process of its own; returns (stdout, stderr)."""
    path = os.pathsep.join([str(source), str(SUPPORT)])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": path, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr
