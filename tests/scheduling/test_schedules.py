"""Schedules of mechanisms: chunks by name, results equal to the serial ones, refusals, costs."""

import contextlib
import json
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
from bunraku.scheduling import Costs
from closed import random_closed
from structures import random_tree


def close(a, b, tolerance=1e-10):
    assert np.abs(a - b).max() <= tolerance * max(1.0, np.abs(b).max())


def states(m, seed=0, count=3):
    rng = np.random.default_rng(seed)
    q = np.array([m.integrate(m.neutral(), 0.3 * rng.normal(size=m.nv)) for _ in range(count)])
    return q, 0.3 * rng.normal(size=(count, m.nv)), rng.normal(size=(count, m.nv))


def mobile():
    return bk.models.mobile(0.2, 0.3, 0.2, 1.0, 3, 5, 9, 3.0, 2.0)


MODELS = {"chain": lambda: bk.models.chain(20, axes=((0, 1, 0), (1, 0, 0))), "human": lambda: bk.models.human(48),
          "balls": lambda: bk.models.chain(32, "spherical"), "humanoid": bk.models.humanoid,
          "free chain": lambda: bk.models.chain(24, base="free")}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("workers", [2, 3, 8, 1000])
def test_results_are_those_of_one_worker(name, workers):
    m = MODELS[name]()
    q, v, tau = states(m)
    expected = bk.forward_dynamics(m, q, v, tau)
    for s in (bk.schedule(m, workers), bk.schedule(m, workers, exactly=True)):
        tolerance = 1e-10 if s.workers <= 8 else 1e-8  # fronts of single links; a batch is assembled by one worker
        close(bk.forward_dynamics(m, q, v, tau, schedule=s), expected, tolerance)
        close(bk.forward_dynamics(m, q[0], v[0], tau[0], schedule=s), expected[0])


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_random_trees_with_random_cuts(seed):
    rng = np.random.default_rng(seed)
    m = random_tree(seed).m
    joints = [link.joint_name for link in m.links]
    q, v, tau = states(m, seed, 1)
    expected = bk.forward_dynamics(m, q[0], v[0], tau[0])
    cuts = []
    for name in rng.permutation(joints)[:rng.integers(0, len(joints) + 1)]:
        with contextlib.suppress(bk.ModelError):  # Fixed joints, and links that cannot stand alone
            bk.Schedule(m, cuts=[str(name)])
            cuts.append(str(name))
    s = bk.Schedule(m, cuts=cuts)
    on_ground = {link.joint_name for link in m.links if is_ground(m, link.parent)}
    assert set(cuts) <= {*s.cuts, *on_ground}
    close(bk.forward_dynamics(m, q[0], v[0], tau[0], schedule=s), expected, 1e-8)


def is_ground(m, link):
    """Whether a link is the ground or fixed to it."""
    return link < 0 or (isinstance(m.links[link].joint, bk.Fixed) and is_ground(m, m.links[link].parent))


@given(st.integers(0, 10**6), st.sampled_from(["inside", "together"]))
@settings(max_examples=40)
def test_loops_across_chunks(seed, closing):
    closed = random_closed(seed)
    m, rng = closed.m, np.random.default_rng(seed)
    q, (v, tau) = closed.q, closed.motion(rng)
    expected = bk.forward_dynamics(m, q, v, tau)
    for workers in (2, 4, 100):
        s = bk.schedule(m, workers, exactly=True, closing=closing)
        close(bk.forward_dynamics(m, q, v, tau, schedule=s), expected, 1e-8)


@pytest.mark.parametrize("make", [bk.models.four_bar, bk.models.n_four_bar, bk.models.slider_crank,
                                  lambda: bk.models.chain_held(30)])
def test_linkages(make):
    m = make()
    q, v = bk.project(m, m.neutral(), 0.1 * np.random.default_rng(0).normal(size=m.nv))
    expected = bk.forward_dynamics(m, q, v)
    for workers in (2, 4, 40):
        close(bk.forward_dynamics(m, q, v, schedule=bk.schedule(m, workers, exactly=True)), expected)


@given(st.integers(0, 10**6), st.integers(1, 30), st.booleans())
@settings(max_examples=60)
def test_every_link_is_in_one_chunk(seed, workers, exactly):
    m = random_closed(seed).m if seed % 2 else random_tree(seed).m
    s = bk.schedule(m, workers, exactly=exactly)
    assert sorted(name for chunk in s.chunks for name in chunk) == sorted(m.link_names)
    assert sorted(s.order) == sorted([*(link.joint_name for link in m.links), *m.connections])
    assert len(s.chunks) == len(s.chunk_workers) == len(s.handles)
    assert set(s.chunk_workers) == set(range(s.workers))
    if not m.connections:
        assert max(s.handles) <= 2


def test_links_without_mass_stay_with_what_they_carry():
    m = bk.Mechanism()
    body = {"mass": 1.0, "com": (0, 0, -0.1), "inertia": (0.01, 0.01, 0.01)}
    m.add_link("arm", joint=bk.Revolute((0, 1, 0)), **body)
    m.add_link("cross", "arm", bk.Revolute((1, 0, 0)), position=(0, 0, -0.3))
    m.add_link("hand", "cross", bk.Revolute((0, 1, 0)), **body)
    m.add_link("finger", "hand", bk.Revolute((0, 1, 0)), position=(0, 0, -0.3), **body)
    m.add_link("nail", "finger", bk.Fixed(), **body)
    s = bk.schedule(m, 4, exactly=True)
    assert s.chunks == (("arm",), ("cross", "hand"), ("finger", "nail"))
    with pytest.raises(bk.ModelError, match=r"cuts: joint 'hand' hangs from a link that has no inertia"):
        bk.Schedule(m, cuts=["hand"])
    with pytest.raises(bk.ModelError, match=r"cuts: joint 'nail' of link 'nail' is Fixed"):
        bk.Schedule(m, cuts=["nail"])
    q, v, tau = states(m)
    close(bk.forward_dynamics(m, q, v, tau, schedule=s), bk.forward_dynamics(m, q, v, tau))


def test_links_fixed_to_the_ground_are_ground():
    m = bk.Mechanism()
    body = {"mass": 1.0, "com": (0, 0, -0.1), "inertia": (0.01, 0.01, 0.01)}
    m.add_link("base", **body)
    for side in ("left", "right"):
        m.add_link(side, "base", bk.Revolute((0, 1, 0)), **body)
    s = bk.schedule(m, 2, exactly=True)
    assert sorted(map(sorted, s.chunks)) in ([["base", "left"], ["right"]], [["base", "right"], ["left"]])
    assert s.cuts == ()


def test_nothing_that_moves():
    m = bk.Mechanism()
    assert bk.schedule(m, 4).chunks == ()
    m.add_link("base", mass=1.0)
    s = bk.schedule(m, 4)
    assert (s.chunks, s.workers, s.handles, s.chunk_workers, s.depth) == ((("base",),), 1, (0,), (0,), 0)
    assert s.what_if([1, 8]).speedup.tolist() == [1.0, 1.0]
    assert s.floats_per_edge == (0, 0, 0, 0)
    assert "1 worker" in repr(s)
    with pytest.raises(bk.ModelError, match="no moving links"):
        s.plot("nothing.png")


# -- asked for and used ------------------------------------------------------------------------------------------------


def test_fewer_workers_are_used_where_more_do_not_pay_and_repr_says_so():
    m = bk.models.human(34)
    s = bk.schedule(m, 8)
    assert s.workers == 1
    assert "1 worker (of 8 asked for: more are not predicted to be faster)" in repr(s)
    s = bk.schedule(m, 1000, exactly=True)
    assert s.workers == len(s.chunks) < 1000
    assert "asked for: it cannot be cut into more chunks)" in repr(s)
    assert "asked" not in repr(bk.schedule(bk.models.chain(1000), 2))


def test_repr_calls_predictions_predictions():
    assert "predicted" in repr(bk.schedule(bk.models.chain(100), 2))
    assert "3 joints" in repr(bk.Schedule(bk.models.chain(3), order=["link0", "link1", "link2"]))


def test_chunks_are_numbered_from_the_root():
    s = bk.schedule(bk.models.chain(1000), 4)
    assert s.chunk_workers == (0, 1, 2, 3)
    assert s.chunks[0][0] == "link0"
    assert s.cuts == tuple(chunk[0] for chunk in s.chunks[1:])
    assert s.handles == (2, 2, 2, 1)


def test_cuts_as_given():
    m = bk.models.chain(9)
    s = bk.Schedule(m, cuts=["link3", "link6"])
    assert s.chunks == tuple(tuple(f"link{i}" for i in range(k, k + 3)) for k in (0, 3, 6))
    assert s.workers == 3
    assert s.asked is None


def test_a_part_with_three_boundary_links_is_cut_once_more():
    m = bk.Mechanism()
    body = {"mass": 1.0, "com": (0, 0, -0.1), "inertia": (0.01, 0.01, 0.01)}
    for name, parent in (("a", "ground"), ("b", "a"), ("c", "b"), ("d", "c"), ("on b", "b"), ("on d", "d")):
        m.add_link(name, parent, bk.Revolute((0, 1, 0)), **body)
    s = bk.Schedule(m, cuts=["on b", "on d"])
    assert set(s.cuts) == {"c", "on b", "on d"}
    assert s.workers == 3
    assert ("c", "d") in s.chunks


def test_all_joints_cut_give_the_assembly_tree_of_single_links():
    """[YN02, fig. 4]: three steps for eight links, and one to the ground."""
    m = bk.models.chain(8)
    s = bk.Schedule(m, cuts=[link.joint_name for link in m.links])
    assert s.depth == 4
    assert set(s.order[:4]) == {"link1", "link3", "link5", "link7"}
    assert set(s.order[4:6]) == {"link2", "link6"}
    assert s.order[6:] == ("link4", "link0")


def test_depth_counts_the_links_of_a_chunk():
    m = bk.models.chain(8)
    assert bk.Schedule(m).depth == 8
    assert bk.Schedule(m, cuts=["link4"], far=False).depth == 8, "a chunk waits for what it carries"
    assert bk.Schedule(m, cuts=["link4"]).depth == 5, "with a far handle it does not"
    assert bk.Schedule(bk.models.chain(1000), cuts=["link500"]).depth == 501
    assert bk.Schedule(m, order=[link.joint_name for link in reversed(m.links)]).depth == 8


def test_messages_do_not_grow_with_the_number_of_links():
    tree = {bk.schedule(mobile(), p, exactly=True).floats_per_edge for p in (2, 4, 7)}
    assert tree == {(6, 27, 6, 7)}
    many = {bk.schedule(bk.models.chain(n), 8, exactly=True).floats_per_edge for n in (64, 512, 4096)}
    assert many == {(18, 90, 12, 7)}
    assert bk.schedule(bk.models.chain(64)).floats_per_edge == (0, 0, 0, 0)


# -- predictions -------------------------------------------------------------------------------------------------------


def test_what_if_to_a_million_workers():
    s = bk.schedule(mobile(), 2)
    w = s.what_if([1, 2, 8, 100, 10**6])
    assert (np.diff(w.time) <= 0).all()
    assert (w.used <= w.workers).all()
    assert w.speedup[0] == 1.0
    assert w.time[1] == s.predicted_time
    assert w.speedup[1] == s.predicted_speedup
    assert s.what_if(8).time.shape == (1,)


def test_twenty_thousand_links_are_scheduled_in_a_fifth_of_a_second():
    m = bk.models.chain(20_000)
    m.plan()
    start = time.process_time()
    s = bk.schedule(m, workers=8)
    assert time.process_time() - start < 0.8, "0.2 s, and the machine may be busy"  # 0.7 s for 100 000
    assert s.workers == 8


def test_costs_are_json():
    stated = Costs()
    assert Costs.from_dict(json.loads(json.dumps(stated.to_dict()))).to_dict() == stated.to_dict()
    assert stated.assumed == ("row",)
    assert stated.source == "stated"


def test_costs_can_be_measured():
    m = bk.models.chain(200)
    s = bk.schedule(m, 2, costs="measured")
    costs = s.costs
    assert costs is bk.schedule(m, 2, costs="measured").costs, "once per process"
    assert costs.source == "measured"
    assert all(1e-9 < x < 1e-5 for kind, passes in costs.bodies.items() for x in passes if kind != "fixed")
    assert sum(costs.of("free")[:3]) > sum(costs.of("revolute")[:3])


def test_one_worker_is_predicted_as_measured():
    """By the costs of this machine; minima of many tries, as the machine may be busy."""
    m = bk.models.chain(600, axes=((0, 1, 0), (1, 0, 0)))
    q, v, tau = (x[0] for x in states(m))
    best = np.inf
    for _ in range(300):
        start = time.perf_counter()
        bk.forward_dynamics(m, q, v, tau, workers=1)
        best = min(best, time.perf_counter() - start)
    assert bk.schedule(m, costs="measured").predicted_time == pytest.approx(best, rel=0.6)


def test_own_costs():
    m = bk.models.chain(1000)
    free = bk.schedule(m, 4, costs={"latency": 0.0, "per_float": 0.0, "join": 0.0, "join_far": 0.0, "split": 0.0})
    dear = bk.schedule(m, 4, costs={"latency": 1e-3})
    assert free.predicted_speedup > bk.schedule(m, 4).predicted_speedup
    assert dear.workers == 1
    assert bk.schedule(m, 4, costs=Costs()).predicted_time == bk.schedule(m, 4).predicted_time


# -- changes of structure ----------------------------------------------------------------------------------------------


def test_a_schedule_is_rebuilt_after_connect_and_cut():
    m = bk.models.chain(40, axes=((0, 1, 0), (1, 0, 0)))
    old = bk.schedule(m, 3, exactly=True)
    carry = m.cut("link20")
    q, v = carry(m.neutral()[:40], np.zeros(40))
    with pytest.raises(bk.ModelError, match="another structure"):
        bk.forward_dynamics(m, q, v, schedule=old)
    new = old.rebuilt(m)
    assert (new.asked, new.workers) == (3, 3)
    close(bk.forward_dynamics(m, q, v, schedule=new), bk.forward_dynamics(m, q, v))
    m.connect("link19", "link20", bk.Spherical(), position_a=(0, 0, -0.2), name="grip")
    with pytest.raises(bk.ModelError, match="another structure"):
        bk.forward_dynamics(m, q, v, schedule=new)
    newer = new.rebuilt(m)
    assert "grip" in newer.order
    close(bk.forward_dynamics(m, q, v, schedule=newer), bk.forward_dynamics(m, q, v))


def test_cuts_are_rebuilt_too():
    m = bk.models.chain(9)
    s = bk.Schedule(m, cuts=["link3"])
    m.add_link("tail", "link8", bk.Revolute((0, 1, 0)), mass=1.0, inertia=(0.1, 0.1, 0.1))
    assert s.rebuilt(m).chunks[1][-1] == "tail"


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, -1, True, 2.5, "2", None])
def test_workers_that_are_no_number(workers):
    m = bk.models.chain(3)
    with pytest.raises(bk.ModelError, match="workers must be a whole number"):
        bk.schedule(m, workers=workers)
    with pytest.raises(bk.ModelError, match="workers must be a whole number"):
        bk.schedule(m).what_if([1, workers])


@pytest.mark.parametrize(("call", "words"), [
    (lambda m: bk.Schedule(m, cuts=["link7"]), "cuts: there is no joint or link 'link7'"),
    (lambda m: bk.Schedule(m, cuts=["link1", "link2", "link1"]), "cuts: joint 'link1' is there twice"),
    (lambda m: bk.Schedule(m, cuts="link1"), "cuts must be a list of joint names"),
    (lambda m: bk.Schedule(m, cuts=[3]), "cuts: there is no joint or link 3"),
    (lambda m: bk.Schedule(m, order=["link0"], cuts=["link1"]), "not both"),
    (lambda m: bk.schedule(m, costs="guessed"), "costs must be None, 'measured'"),
    (lambda m: bk.schedule(m, costs={"latancy": 1.0}), "'latancy' is not one of"),
    (lambda m: bk.schedule(m, costs={"latency": -1.0}), "latency must not be negative"),
    (lambda m: bk.schedule(m, costs={"bodies": {"revolute": (1.0,)}}), "revolute must have 4 times"),
    (lambda m: bk.Schedule(m, order=["link0", "link1", "link2"]).predicted_time, "order of joints"),
    (lambda m: bk.forward_dynamics(m, m.neutral(), np.zeros(3), schedule=bk.schedule(bk.models.chain(4), 2)),
     "another structure"),
    (lambda m: bk.forward_dynamics(m, m.neutral(), np.zeros(3), schedule=["link1"]), "schedule must be made by"),
])
def test_refused_by_name(call, words):
    with pytest.raises(bk.ModelError, match=words):
        call(bk.models.chain(3))


def test_a_connection_is_no_cut():
    m = bk.models.four_bar()
    with pytest.raises(bk.NamingError, match="is a connection"):
        bk.Schedule(m, cuts=[next(iter(m.connections))])


def test_a_picture_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    for s in (bk.schedule(mobile(), 8), bk.schedule(bk.models.human(34)),
              bk.schedule(bk.models.chain(3000), 600, exactly=True)):
        path = s.plot(tmp_path / "schedule.png")
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size > 10_000
