"""MPI ranks other than 0: each holds a share of the mechanism and executes the requests of rank 0."""

from __future__ import annotations

import atexit
import platform
import sys

from bunraku.compiler import code_files as files
from bunraku.errors import SimulationError
from bunraku.simulation.crew.mpi_ranks import Ranks, join
from bunraku.simulation.crew.worker_share import Order, Piece, Share


def take_part() -> Ranks:
    """Start MPI. On rank 0 it returns, and the other ranks serve it; on those it does not return."""
    ranks = join()
    if ranks.size == 1:
        return ranks
    ranks.abort_on_errors()
    _compare(ranks)
    if ranks.rank > 0:
        serve(ranks)
        sys.stdout.flush()
        sys.exit(0)
    atexit.register(_dismiss, ranks)
    return ranks


def _compare(ranks: Ranks) -> None:
    """All ranks must run the same program."""
    import bunraku

    own = {"version": bunraku.__version__, "kernels": files.kernels_key(), "bytes": sys.byteorder}
    everyone = ranks.control.allgather((own, platform.node()))
    for k, (theirs, node) in enumerate(everyone):
        for what, value in theirs.items():
            if value != everyone[0][0][what] and ranks.rank == 0:
                raise SimulationError(f"ranks differ: {what} of bunraku is {value} on rank {k} ({node}), {own[what]} "
                                      f"on rank 0 ({everyone[0][1]}): install the same everywhere")


def _dismiss(ranks: Ranks) -> None:
    if not ranks.MPI.Is_finalized():
        for k in range(1, ranks.size):
            ranks.tell(k, ("end",))


def serve(ranks: Ranks) -> None:
    """Execute the requests of rank 0 until it ends the run. Shares are numbered by their crew."""
    shares: dict[int, Share] = {}
    while True:
        what, *given = ranks.hear(0)
        if what == "end":
            return
        if what == "forget":
            for number in given[0]:
                shares.pop(number, None)
            continue
        number, *given = given
        if what == "share":
            arrays, *rest = given
            ranks.connect(arrays)
            shares[number] = Share(arrays, *rest)
            del arrays, rest, given
        elif what == "take over":
            shares[number].take_over(Piece(*given))
        elif what == "stretch":
            shares[number].stretch(Order(*given))
        elif what == "ask":
            name, *rest = given
            ranks.hand(0, getattr(shares[number], name)(*rest))
        elif what == "retire":
            shares[number].retire()
