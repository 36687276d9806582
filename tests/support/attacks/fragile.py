"""An attack whose cases go wrong in every way there is: what `bunraku check` must survive and report."""

import os
import signal
import time

from bunraku.check import Case

TITLE, UNIT = "seeds that fail in different ways", "things"
SEEDS, SHORT, LIMIT = 6, 6, 1.0


def case(seed):
    if seed == 1:
        raise ValueError("one is wrong")
    if seed == 2:
        time.sleep(60)
    if seed == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    return Case(10, {"error": 0.1 * seed, "gap": float("nan") if seed == 4 else 0.0})
