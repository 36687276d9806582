"""Measurements of experiments with several workers are short in tests.

The commands measure; tests claim what follows from the numbers, whatever they are. Beside other tests every message
between two threads waits until both have a core, up to milliseconds: 600 000 round trips, to find two cores idle once,
took a minute.
"""

import pytest

from bunraku.evaluate import measured_costs
from bunraku.reproduce import speedups


@pytest.fixture(autouse=True)
def short_measurements(monkeypatch):
    monkeypatch.setattr(speedups, "SLICE", speedups.SLICE / 1000)  # the fewest evaluations
    monkeypatch.setattr(speedups, "TRIES", 2)
    monkeypatch.setattr(measured_costs, "ROUND_TRIPS", 50)
