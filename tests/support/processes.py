"""Python code in a process of its own, with this package and the helpers of the tests at hand."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import bunraku

PACKAGE = Path(bunraku.__file__).parent
SUPPORT = Path(__file__).parent


def start(command, *, deaf=False, **options):
    """A process to which Ctrl-C can be sent, also where this one ignores it (nohup, background jobs), which children
    inherit; `deaf`: one that ignores it. To be used as a context."""
    return subprocess.Popen(command, text=True, **options,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN if deaf else signal.SIG_DFL))


def run(code, source=PACKAGE.parent, **environment):
    """Run Python code in a process of its own; returns (stdout, stderr)."""
    path = os.pathsep.join([str(source), str(SUPPORT)])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=900,
                          env={**os.environ, "PYTHONPATH": path, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr
