"""Runs programs on several ranks, with the MPI of the wheels that the [dev] extra installs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bunraku.errors import MissingExtra
from bunraku.simulation.crew.mpi_ranks import mpiexec as launcher


def mpiexec(ranks: int, *arguments, timeout: float = 900.0, check: bool = True,
            **variables: str) -> subprocess.CompletedProcess:
    """`mpiexec -n ranks python arguments`: more ranks than cores are allowed, and give way to each other."""
    return subprocess.run(command(ranks, *arguments), env={**environment(), **variables}, capture_output=True,
                          text=True, timeout=timeout, check=check)


def command(ranks: int, *arguments) -> list[str]:
    try:
        return launcher(ranks, *arguments)[0]
    except MissingExtra as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


def environment() -> dict[str, str]:
    return {**os.environ, "BUNRAKU_QUIET": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PMIX_MCA_gds": "hash", "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
