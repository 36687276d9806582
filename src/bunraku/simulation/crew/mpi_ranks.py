"""MPI: the processes that compute one mechanism together, and the addresses of the functions that carry messages.

mpi4py starts MPI and finds its library; compiled code then calls MPI_Isend, MPI_Wait and MPI_Recv itself. Rank 0 runs
the program of the user; the others serve it (`simulation/crew/rank_server.py`). An uncaught exception ends all ranks:
otherwise, ranks that wait for a message would wait forever.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import pickle
import shutil
import sys
import time
import traceback
from typing import Any

import numpy as np

from bunraku.errors import MissingExtra, SimulationError
from bunraku.plan import fields as f
from bunraku.plan.plan_arrays import Arrays

LAUNCHED = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "MV2_COMM_WORLD_SIZE")  # set by mpiexec
CONTROL = 1          # tag of commands and answers; edges of the mechanism have their own communicator
PATIENCE = 2e-3      # [s] for which a rank looks for commands without a break
NAP = 5e-5           # [s] between looks after that


def launched() -> bool:
    """Whether mpiexec has started this process, as one of several."""
    return any(int(os.environ.get(name, "0") or 0) > 1 for name in LAUNCHED if name != "PMIX_RANK") or (
        "PMIX_RANK" in os.environ and "OMPI_COMM_WORLD_SIZE" not in os.environ)


def mpiexec(ranks: int, *arguments: str, give_way: bool = True) -> tuple[list[str], dict[str, str]]:
    """Command and environment that run this Python with some arguments on several ranks; `give_way`: there may be more
    ranks than cores. A MissingExtra if there is no mpiexec."""
    places = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    found = shutil.which("mpiexec", path=places)
    if found is None:
        raise MissingExtra('several ranks need MPI: pip install "bunraku[mpi]"')
    options = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"] if give_way else []
    return ([found, "-n", str(ranks), *options, sys.executable, *arguments],
            {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})


@functools.cache
def library():
    """mpi4py's MPI; a MissingExtra if it is not installed."""
    try:
        import mpi4py

        mpi4py.rc.thread_level = "serialized"  # one thread at a time calls MPI: no locks
        from mpi4py import MPI
    except ImportError as error:
        raise MissingExtra('several ranks need MPI: pip install "bunraku[mpi]"') from error
    except RuntimeError as error:
        raise MissingExtra(f'mpi4py does not find an MPI library: pip install "bunraku[mpi]" ({error})') from error
    return MPI


class Ranks:
    """All ranks of a run. Made once in a process, by `join`."""

    def __init__(self):
        self.MPI = library()
        self.control = self.MPI.COMM_WORLD.Dup()
        self.edges = self.MPI.COMM_WORLD.Dup()
        self.rank, self.size = self.control.Get_rank(), self.control.Get_size()
        self.numbers = itertools.count()    # of crews: a program may have several simulations
        self.forgotten: list[int] = []      # crews that are no more
        self.bytes = 0                      # of commands and answers that this rank has sent or received
        self._words = self._addresses()

    def _addresses(self) -> dict[int, int]:
        """Entries of the mail header for messages by MPI."""
        functions = ctypes.CDLL(_file_of_library())
        names = {f.MAIL_SEND: "MPI_Isend", f.MAIL_WAIT: "MPI_Wait", f.MAIL_RECEIVE: "MPI_Recv"}
        found = {place: ctypes.cast(getattr(functions, name), ctypes.c_void_p).value or 0
                 for place, name in names.items()}
        return {**found, f.MAIL_DOUBLE: self._handle(self.MPI.DOUBLE), f.MAIL_TEAM: self._handle(self.edges)}

    def _handle(self, thing) -> int:
        kind = ctypes.c_int64 if self.MPI._sizeof(type(thing)) == 8 else ctypes.c_int
        return kind.from_address(self.MPI._addressof(thing)).value

    def connect(self, arrays: Arrays) -> None:
        """Set up MPI messages for these arrays."""
        words = arrays.mail.view(np.int64)
        for place, value in self._words.items():
            words[place] = value

    # -- commands ----------------------------------------------------------------------------------------------------

    def tell(self, rank: int, message: Any) -> None:
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self.control.Send(data, dest=rank, tag=CONTROL)
        self.bytes += len(data)

    def hear(self, rank: int) -> Any:
        """The next message of a rank; waits without occupying a core."""
        begin, status = time.perf_counter(), self.MPI.Status()
        while not self.control.Iprobe(source=rank, tag=CONTROL, status=status):
            if time.perf_counter() - begin > PATIENCE:
                time.sleep(NAP)
        data = bytearray(status.Get_count(self.MPI.BYTE))
        self.control.Recv(data, source=rank, tag=CONTROL)
        self.bytes += len(data)
        return pickle.loads(data)

    def hand(self, rank: int, array: np.ndarray) -> None:
        """A table of floats, without a copy."""
        self.tell(rank, array.shape)
        self.control.Send(np.ascontiguousarray(array), dest=rank, tag=CONTROL)
        self.bytes += array.nbytes

    def fetch(self, rank: int) -> np.ndarray:
        array = np.empty(self.hear(rank))
        self.control.Recv(array, source=rank, tag=CONTROL)
        self.bytes += array.nbytes
        return array

    # -- ends --------------------------------------------------------------------------------------------------------

    def abort_on_errors(self) -> None:
        """Make an uncaught exception end all ranks, with its traceback."""
        sys.excepthook = lambda kind, error, trace: self.abort(error)

    def abort(self, error: BaseException) -> None:
        """End all ranks, because of this error on this one."""
        interrupted = isinstance(error, KeyboardInterrupt)
        if not interrupted:
            traceback.print_exception(error)
        print(f"bunraku: rank {self.rank} {'was interrupted' if interrupted else 'failed'}; all ranks end",
              file=sys.stderr, flush=True)
        sys.stdout.flush()
        self.control.Abort(130 if interrupted else 1)


def _file_of_library() -> str:
    """The file of the MPI library that mpi4py has loaded."""
    try:
        with open("/proc/self/maps") as maps:
            files = {line.split()[-1] for line in maps if "libmpi" in line and ".so" in line}
    except OSError:
        from ctypes.util import find_library

        files = {name for name in (find_library("mpi"), find_library("mpich")) if name}
    for file in sorted(files):
        try:
            if all(hasattr(ctypes.CDLL(file), name) for name in ("MPI_Isend", "MPI_Recv", "MPI_Wait")):
                return file
        except OSError:
            continue
    raise SimulationError("the library of MPI was not found in this process: is mpi4py built for another MPI?")


_joined: list[Ranks] = []


def join() -> Ranks:
    """The ranks of this run; starts MPI."""
    if not _joined:
        _joined.append(Ranks())
    return _joined[0]


def ranks() -> Ranks | None:
    """The ranks that serve this process, if there are any: rank 0 of several."""
    return _joined[0] if _joined and _joined[0].size > 1 and _joined[0].rank == 0 else None
