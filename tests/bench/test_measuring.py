"""Tools of the benchmarks: counted operations, interleaved timing, and verdicts on targets."""

from bunraku.bench.flops import forward_dynamics_flops
from bunraku.bench.timing import Contestant, race, speedup


def test_operations_are_counted_and_grow_with_the_model():
    counts = forward_dynamics_flops(["humanoid", "human"])
    assert 400 < counts["humanoid"] / 34 < 900
    assert counts["human"] > 0


def test_race_times_every_contestant():
    slow = Contestant("slow", lambda: sum(range(20_000)), 1)
    fast = Contestant("fast", lambda: sum(range(1_000)), 1)
    race([slow, fast], 0.02)
    assert len(slow.times) == len(fast.times) >= 7
    assert speedup(slow, fast)[0] > 5.0
