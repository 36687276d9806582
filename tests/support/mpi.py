"""Runs programs on several ranks, with the MPI of the wheels that the [dev] extra installs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def mpiexec(ranks: int, *arguments, timeout: float = 120.0, check: bool = True) -> subprocess.CompletedProcess:
    """`mpiexec -n ranks python arguments`: more ranks than cores are allowed, and give way to each other."""
    return subprocess.run(command(ranks, *arguments), env=environment(), capture_output=True, text=True,
                          timeout=timeout, check=check)


def command(ranks: int, *arguments) -> list[str]:
    found = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("mpiexec is missing: pip install bunraku[mpi]")
        pytest.skip('several ranks need MPI: pip install "bunraku[mpi]"')
    return [found, "-n", str(ranks), "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", sys.executable, *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "BUNRAKU_QUIET": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PMIX_MCA_gds": "hash", "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
