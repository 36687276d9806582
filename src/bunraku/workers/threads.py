"""Teams of threads: one thread per worker, all in compiled code at the same time.

The calling thread is worker 0; the others live as long as the team and sleep between requests. Signals raise
exceptions in the main thread at any time, and could leave only part of the team running. So a request is passed by a
single call to worker 1, which forwards it; an exception during a request ends all waiting for messages (MAIL_ABORT) and
is raised when all workers have stopped. An error in another worker is treated alike.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue

import numpy as np

from bunraku.errors import SimulationError
from bunraku.plan import fields as f
from bunraku.plan.chunk_plan import Division
from bunraku.plan.plan_arrays import Arrays
from bunraku.workers.mail import yield_address


class Job:
    """work(1), work(2), ... in the threads of a team: results, errors, and whether all have ended."""

    def __init__(self, work: Callable[[int], object], size: int, words: np.ndarray):
        self.work, self.words = work, words
        self.results: list = [None] * size
        self.errors: list[BaseException | None] = [None] * size
        self.given = False
        self._left, self._counting = size - 1, threading.Lock()
        self._done = threading.Lock()
        self._done.acquire()

    def do(self, k: int) -> None:
        """The part of worker k, in its thread."""
        try:
            self.results[k] = self.work(k)
        except BaseException as error:
            self.errors[k] = error
            self.words[f.MAIL_ABORT] = 1
        with self._counting:
            self._left -= 1
            if self._left == 0:
                self._done.release()

    def wait(self) -> None:
        """Until all workers have ended."""
        if self._left:
            self._done.acquire()

    def wait_in_any_case(self) -> None:
        """The same, whatever exceptions arrive."""
        while self._left:
            with contextlib.suppress(BaseException):
                self._done.acquire(timeout=0.1)


def _worker(k: int, inboxes: list[SimpleQueue]) -> None:
    """Main loop of a thread while its team exists; the inbox of worker 1 is the first."""
    while (job := inboxes[k - 1].get()) is not None:
        if k == 1:
            if job.given:  # a second time, to be sure
                continue
            job.given = True
            for inbox in inboxes[1:]:
                inbox.put(job)
        job.do(k)
        del job


def _dismiss(inboxes: list[SimpleQueue]) -> None:
    for inbox in inboxes:
        inbox.put(None)


class Team:
    """Workers for one division of a plan. `arrays` has the plan of each, with the mail that they share."""

    arrays: list[Arrays]

    def __init__(self, division: Division):
        self.division, self.parts = division, division.parts
        self._lock = threading.Lock()
        self._inboxes: list[SimpleQueue] | None = None
        self._process = os.getpid()
        self._renew()

    def __len__(self):
        return len(self.parts)

    def _renew(self) -> None:
        """Empty mail: no message is pending."""
        self.arrays = self.division.arrays()
        self._words = self.arrays[0].mail.view(np.int64)
        self._words[f.MAIL_YIELD] = yield_address()

    def _start(self) -> list[SimpleQueue]:
        inboxes: list[SimpleQueue] = [SimpleQueue() for _ in self.parts[1:]]
        try:
            for k in range(1, len(self)):
                threading.Thread(target=_worker, args=(k, inboxes), name=f"bunraku-worker-{k}", daemon=True).start()
        except RuntimeError as error:
            _dismiss(inboxes)
            raise SimulationError(f"cannot start {len(inboxes)} more threads ({error}); ask for fewer "
                                  "workers") from None
        weakref.finalize(self, _dismiss, inboxes)
        return inboxes

    def run(self, work: Callable[[int], object]) -> list:
        """work(0), work(1), ... at the same time, one in each worker: their results."""
        if len(self) == 1:
            return [work(0)]
        with self._lock:
            if self._process != os.getpid():  # threads do not survive a fork
                self._inboxes, self._process = None, os.getpid()
                self._renew()
            if self._inboxes is None:
                self._inboxes = self._start()
            job = Job(work, len(self), self._words)
            try:
                self._inboxes[0].put(job)
                job.results[0] = work(0)
                job.wait()
            except BaseException:
                self._words[f.MAIL_ABORT] = 1
                self._inboxes[0].put(job)  # it may not have been given yet: then it ends at once
                job.wait_in_any_case()
                raise
            finally:
                if self._words[f.MAIL_ABORT]:
                    self._renew()
        for error in job.errors:
            if error is not None:
                raise error
        return job.results
