"""Progress bar, deferred Ctrl-C, and SIGTERM in its place."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator


class Interrupts:
    """Defer Ctrl-C until results have been stored; a second Ctrl-C interrupts at once."""

    def __enter__(self):
        self.asked = False
        self.ours = (threading.current_thread() is threading.main_thread()
                     and signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        if self.ours:
            signal.signal(signal.SIGINT, self._ask)
        return self

    def _ask(self, *_):
        self.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def let_in(self):
        if self.asked:
            self.asked = False
            raise KeyboardInterrupt

    def __exit__(self, *_):
        if self.ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self.let_in()


@contextlib.contextmanager
def terminable() -> Iterator[str]:
    """Context in which SIGTERM (`kill`, `docker stop`, systemd) ends a program cleanly, as Ctrl-C does. Yields the
    advice for ending it: Ctrl-C is ignored under nohup and in background jobs."""
    ours = (threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
    if ours:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield f"kill {os.getpid()}" if signal.getsignal(signal.SIGINT) is signal.SIG_IGN else "Ctrl-C"
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


class Bar:
    """A progress bar, over simulated time by default; no bar if the output is not a terminal or tqdm is not
    installed."""

    def __init__(self, wanted, start, until, what="simulating", unit="s", digits=2):
        self.bar = None
        if wanted is False or (wanted is None and not sys.stderr.isatty()) or until <= start:
            return
        try:
            from tqdm import tqdm
        except ImportError:
            return
        self.bar = tqdm(total=round(until - start, 9), unit=unit, desc=what, leave=False, delay=0.5,
                        bar_format=f"{{desc}} {{bar}} {{n:.{digits}f}}/{{total:.{digits}f}} {unit} "
                                   "[{elapsed}<{remaining}]")
        self.start = start

    def show(self, t):
        if self.bar is not None:
            self.bar.update(t - self.start - self.bar.n)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.bar is not None:
            self.bar.close()
