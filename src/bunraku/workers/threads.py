"""Teams of threads: one thread per worker, all in compiled code at the same time.

The thread that asks is worker 0; the others are kept while the team is. Between two requests nobody spins. An error in
one worker ends the waiting of the others (MAIL_ABORT) and is raised after all have stopped.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np

from bunraku.plan import fields as f
from bunraku.plan.arrays import Arrays
from bunraku.plan.chunk import Division
from bunraku.workers.mail import yield_address


class Team:
    """Workers for one division of a plan. `arrays` has the plan of each, with the mail that they share."""

    arrays: list[Arrays]

    def __init__(self, division: Division):
        self.division, self.parts = division, division.parts
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()
        self._renew()

    def __len__(self):
        return len(self.parts)

    def _renew(self) -> None:
        """Empty mail: nobody waits for anything."""
        mail, places = self.division.mail()
        self._words = mail.view(np.int64)
        self._words[f.MAIL_YIELD] = yield_address()
        self.arrays = [part.arrays(mail, places) for part in self.parts]

    def run(self, work: Callable[[int], object]) -> list:
        """work(0), work(1), ... at the same time, one in each worker: their results."""
        with self._lock:
            if self._process != os.getpid():  # threads do not survive a fork
                self._pool, self._process = None, os.getpid()
            if self._pool is None and len(self) > 1:
                self._pool = ThreadPoolExecutor(len(self) - 1, thread_name_prefix="bunraku-worker")
            futures = [self._pool.submit(self._guarded, work, k) for k in range(1, len(self))] if self._pool else []
            try:
                first = self._guarded(work, 0)
            finally:
                wait(futures)
                if self._words[f.MAIL_ABORT]:
                    self._renew()
            return [first, *(future.result() for future in futures)]

    def _guarded(self, work, k):
        try:
            return work(k)
        except BaseException:
            self._words[f.MAIL_ABORT] = 1
            raise
