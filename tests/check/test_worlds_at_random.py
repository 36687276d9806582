"""Random actions: a closed-chain leg stays whole, and worlds move with the same bits after any detour. `bunraku check
worlds` goes on for 10^7 steps."""

import numpy as np
import pytest

from bunraku.check import attack_worlds as attack
from bunraku.envs.tasks import task


def test_a_closed_chain_leg_withstands_extreme_actions(monkeypatch):
    monkeypatch.setattr(attack, "STEPS", 50)
    worst, _ = attack.steps_of_a_leg(np.random.default_rng(0))
    assert worst["open loop [m]"] < 1e-9
    assert worst["fastest joint [rad/s]"] > 10.0  # they are extreme


@pytest.mark.parametrize("name", attack.OTHERS)
@pytest.mark.parametrize("seed", range(2))
def test_threads_resets_and_snapshots_leave_the_same_bits(name, seed, monkeypatch):
    monkeypatch.setattr(attack, "BITS", 25)
    attack.same_bits(np.random.default_rng(seed), task(name))
