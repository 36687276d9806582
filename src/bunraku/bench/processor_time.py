"""python processor_time.py COMMAND ...: wall and processor seconds of a command and all that it started, as JSON.

A script of its own, which imports nothing of the package: processes that outlive the command (kernels compiled for
later) become its children, and it waits for them (Linux; elsewhere they are not counted).
"""

import ctypes
import json
import os
import resource
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main() -> None:
    adopt_orphans()
    start = time.perf_counter()
    done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    wall = time.perf_counter() - start
    try:
        while True:
            os.wait()
    except ChildProcessError:  # all have ended
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({"wall": wall, "processor": used.ru_utime + used.ru_stime, "status": done.returncode,
                      "stdout": done.stdout, "stderr": done.stderr}))


if __name__ == "__main__":
    main()
