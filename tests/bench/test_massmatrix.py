"""`bunraku bench massmatrix`: the same matrices as Pinocchio's, in less time."""

import json

import pytest

from bunraku import cli
from robots import needs_robots


@needs_robots
def test_mass_matrices_are_pinocchios_and_take_less_time(capsys):
    pytest.importorskip("pinocchio")
    assert cli.main(["bench", "massmatrix", "--quick", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["robot"]["dof"] == 38
    assert result["robot"]["agreement"] < 1e-11
    assert all(chain["agreement"] < 1e-11 for chain in result["chains"])
    assert result["chains"][-1]["speedup"] > 1.5  # 128 degrees of freedom
