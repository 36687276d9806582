"""Run a script on the ranks of MPI: `mpiexec -n 4 python -m bunraku.mpi SCRIPT [ARGUMENTS]`.

Rank 0 runs the script; every `bk.Simulation` in it is shared among all ranks, each of which holds its part.
"""

from __future__ import annotations

import runpy
import sys

from bunraku.simulation.crew.rank_server import take_part


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("usage: mpiexec -n 4 python -m bunraku.mpi SCRIPT [ARGUMENTS]")
    take_part()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
