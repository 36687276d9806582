"""Chunks for workers: every link once, at most two boundary links; predictions that grow as they should."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunraku.scheduling import Costs, Partitions, cut_at, distribute, paper
from bunraku.scheduling.partition import EVERY, ladder
from shapes import SHAPES, binary, chain, children, forests, mobile, randomly

STATED = Costs()
CHEAP = Costs.from_dict({"latency": 0.0, "per_float": 0.0, "chunk": 0.0, "join": 1e-9, "join_far": 1e-9, "add": 0.0,
                         "split": 0.0})


def partitions(parents, costs=STATED, kind="revolute", **more):
    return Partitions(parents, np.tile(costs.of(kind), (len(parents), 1)), costs, **more)


def check_chunks(parents, p, part):
    """Every link is in one chunk; a chunk hangs from one link and carries others at one link; costs add up."""
    kids, chunks = children(parents), part.chunks
    member = p.weighed.members(chunks)
    assert set(member) == set(range(len(chunks)))
    for k in range(len(chunks)):
        inside = np.flatnonzero(member == k).tolist()
        above = {parents[i] for i in inside if parents[i] < 0 or member[parents[i]] != k}
        assert above == {int(chunks.above[k])}
        assert chunks.parent[k] == (member[chunks.above[k]] if chunks.above[k] >= 0 else -1)
        far = {i for i in inside if any(member[c] != k for c in kids[i])}
        assert far == {int(chunks.far[k])} - {-2}
        assert sorted(chunks.tops[k]) == [i for i in inside if parents[i] == chunks.above[k]]
        assert np.allclose(chunks.cost[k], p.cost[inside].sum(axis=0))
        if far:
            way, i = [], far.pop()
            while i != chunks.above[k]:
                way.append(i)
                i = parents[i]
            assert np.allclose(chunks.path[k], p.cost[way].sum(axis=0))


@given(forests(40), st.integers(1, 50), st.booleans())
@settings(max_examples=50)
def test_every_link_is_in_one_chunk_with_two_boundary_links(parents, workers, cheap):
    p = partitions(parents, CHEAP if cheap else STATED)
    for part in (p.best(min(workers, 8)), p.exactly(workers)):
        check_chunks(parents, p, part)
        assert part.workers <= min(workers, len(parents))
    assert p.exactly(workers).workers == min(workers, len(parents))


@given(forests(60), st.data())
@settings(max_examples=150)
def test_any_cuts_give_chunks_with_two_boundary_links(parents, data):
    cuts = data.draw(st.sets(st.integers(0, len(parents) - 1)))
    p = partitions(parents)
    part = p.evaluate(cut_at(p.tree, cuts))
    check_chunks(parents, p, part)
    member = p.weighed.members(part.chunks)
    assert all(parents[i] < 0 or member[i] != member[parents[i]] for i in cuts)


@pytest.mark.parametrize("shape", [*SHAPES, "mobile"])
def test_more_workers_are_never_predicted_to_be_slower(shape):
    p = partitions(mobile() if shape == "mobile" else SHAPES[shape](150), CHEAP if shape == "branching" else STATED)
    times = [p.best(workers).prediction.time for workers in (*range(1, EVERY + 1), 36, 45, 64, 100, 10**6)]
    assert all(two <= one for one, two in pairwise(times))


@given(forests(50), st.integers(2, 40))
@settings(max_examples=100)
def test_a_prediction_lies_between_its_bounds(parents, workers):
    """No worker is busy longer than the whole; all work is done; the critical path of velocities is a lower bound."""
    p = partitions(parents)
    part = p.exactly(workers)
    busy, time = part.prediction.busy, part.prediction.time
    work = p.cost[:, :3].sum()
    assert busy.max() <= time * (1 + 1e-12)
    assert busy.sum() >= work * (1 - 1e-12)
    assert time >= work / part.workers * (1 - 1e-12)


def test_a_far_handle_is_paid_for():
    """The upper half of a grounded chain costs more than the lower one and gets fewer links, as in [YN02, table 1]."""
    p = partitions(chain(1000))
    part = p.best(2)
    upper, lower = np.bincount(p.weighed.members(part.chunks))
    assert upper < 0.9 * lower
    assert p.serial().prediction.time / part.prediction.time < 2 / (1 + 0.21 / 2)


@pytest.mark.parametrize(("parents", "measured"), [(chain(1000), 1.42), (mobile(), 1.75), (randomly(1000), 1.78)],
                         ids=["chain", "mobile", "tree"])
def test_two_workers_are_predicted_as_sketches_measured_them(parents, measured):
    """Two threads on chunks, in sketches of the engine (16 November 2026); prediction within 20 %."""
    p = partitions(parents)
    assert p.serial().prediction.time / p.best(2).prediction.time == pytest.approx(measured, rel=0.2)


@pytest.mark.parametrize("shape", ["chain", "randomly", "binary", "caterpillar", "broom", "branching"])
def test_the_critical_path_is_logarithmic_on_enough_workers(shape):
    """With a worker for every 24 links, four times the links take a constant time longer."""
    times = []
    for n in (256, 1024, 4096, 16384):
        p = partitions(SHAPES[shape](n))
        times.append(p.exactly(n // 24).prediction.time)
    longer = np.diff(times)
    assert longer.max() < 12e-6, "two levels of joins and messages, thrice"
    assert longer[-1] < 1.5 * longer[0] + 1e-6


def test_no_less_than_the_distribution_of_jung():
    for parents in (mobile(), mobile(2, 3, 4), binary(127), randomly(200)):
        for costs, passes in ((STATED, 3), (paper(), 4)):
            p = partitions(parents, costs, passes=passes)
            for workers in (2, 3, 5, 8, 16, 20, 32, 81, 128):
                theirs = p.of_jung(workers)
                assert p.best(workers).prediction.time <= theirs.prediction.time * (1 + 1e-12)


def test_no_less_than_jung_himself_estimates_for_the_mobile_of_455_joints():
    costs = paper()
    p = partitions(mobile(), costs, passes=4)
    own = distribute(p.tree, p.total, costs.roitm, 81).durations
    for workers in (2, 4, 8, 16, 20, 32, 64, 81):
        assert p.best(workers).prediction.time <= own[workers - 1] * (1 + 1e-12)


def test_candidates_do_not_depend_on_the_number_asked_for():
    assert ladder(50) == [p for p in ladder(5000) if p <= 50]
    assert ladder(1) == []


def test_several_roots_need_no_joins_but_for_their_sums():
    p = partitions([-1] * 64, CHEAP)
    assert p.serial().prediction.time / p.best(8).prediction.time == pytest.approx(8, rel=0.01)


def test_no_links_at_all():
    part = Partitions(np.zeros(0, int), np.zeros((0, 4)), STATED).best(8)
    assert (len(part.chunks), part.workers, part.prediction.time) == (0, 1, 0.0)
