"""`bunraku bench integrators` reports every solver and meets its targets."""

import json

import pytest

from bunraku import cli


def test_bench_integrators_reports_every_solver(capsys):
    pytest.importorskip("sksundae")
    assert cli.main(["bench", "integrators", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [part["set"] for part in report["sets"]] == ["not stiff"] * 3 + ["stiff"] * 3
    assert {"gear", "cvode", "lsoda", "tsit5"} <= set(report["sets"][0]["totals"])
    assert all(target["met"] for target in report["targets"])
