"""Grafts: what a joint leaves of an inertia may be only rounding noise. No schedule takes that for inertia, with fused
multiply-add or without."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bunraku as bk
import closed_oracle
import oracle
from bunraku.compiler.targets import levels_here
from closed import closing_tie, described, random_closed
from oracle import close
from structures import random_rotation

BODY = {"mass": 1.3, "com": (0.1, 0.2, -0.1), "inertia": (0.1, 0.2, 0.15)}
ROD = {"mass": 0.5, "com": (0.0, 0.0, 0.3), "inertia": (0.1, 0.1, 0.0)}
NOTHING = {}
UNFUSED = "x86-64-v2"
FAR_TURNS = "evaluate/test_batches.py::test_a_wheel_that_has_turned_far_is_where_it_would_be_alone"


def compare(closed, rng, orders):
    """Batches and single states, closed inside and together, against the dense oracle."""
    q, v, tau = closed.motions(rng, 2)
    expected = np.array([closed_oracle.solve(closed, *state).a for state in zip(q, v, tau, strict=True)])
    for order, closing in itertools.product(orders, ("inside", "together")):
        schedule = bk.Schedule(closed.m, order=order, closing=closing)
        close(bk.forward_dynamics(closed.m, q, v, tau, schedule=schedule), expected, 1e-8)
        close(bk.forward_dynamics(closed.m, q[0], v[0], tau[0], schedule=schedule), expected[0], 1e-8)
    close(bk.forward_dynamics(closed.m, q, v, tau), expected, 1e-8)


def tied(links, ties, rng):
    """Links (name, parent, joint, solid) in a random pose, connected where they are by ties (a, b, kind)."""
    m = bk.Mechanism()
    for name, parent, joint, solid in links:
        m.add_link(name, parent, joint, position=0.3 * rng.normal(size=3), **solid)
    closed = described(m)
    closed.q = closed.state(rng)[0]
    at = oracle.motion(closed, closed.q, np.zeros(m.nv))
    number = {"ground": -1, **{name: k for k, (name, *_) in enumerate(links)}}
    for k, (a, b, kind) in enumerate(ties):
        closed.tie(*closing_tie(rng, at, f"tie{k}", number[a], number[b], kind))
    return closed


def all_orders(closed):
    return [list(order) for order in itertools.permutations([*closed.m.joint_names, *closed.m.connections])]


@pytest.mark.parametrize("seed", [19, 45, 51, 125, 129, 135])
def test_free_joints_that_are_grafted_pass_on_nothing(seed):
    rng = np.random.default_rng(seed)
    closed = random_closed(seed, passive=seed % 2 == 0, redundant=seed % 5 < 2, massless=seed % 3 == 0)
    names = [*closed.m.joint_names, *closed.m.connections]
    compare(closed, rng, [[str(name) for name in rng.permutation(names)] for _ in range(6)])


def joint_of(kind, rng):
    """A joint that leaves little of an inertia: no mass, a mass only, or nothing."""
    slides, hinges = ([joint(axis) for axis in random_rotation(rng)] for joint in (bk.Prismatic, bk.Revolute))
    if kind == "hinges":
        return bk.Compound(*(bk.Revolute(axis, at=0.3 * rng.normal(size=3)) for axis in rng.normal(size=(6, 3))))
    return bk.Free() if kind == "free" else bk.Compound(*{"slides": slides, "ball": hinges}.get(kind, slides + hinges))


@pytest.mark.parametrize("kind", ["slides", "ball", "slides and hinges", "hinges", "free"])
@pytest.mark.parametrize("seed", range(3))
def test_joints_that_pass_on_little_do_so_in_every_schedule(kind, seed):
    rng = np.random.default_rng(seed)
    links = [("base", "ground", bk.Revolute((0, 1, 0)), BODY), ("middle", "base", bk.Revolute((1, 0, 0)), BODY),
             ("tip", "middle", joint_of(kind, rng), BODY)]
    closed = tied(links, [("tip", "base", "spherical")], rng)
    compare(closed, rng, all_orders(closed))


@pytest.mark.parametrize(("links", "ties"), [
    ([("arm", "ground", bk.Revolute((0, 1, 0)), NOTHING), ("body", "arm", bk.Free(), BODY)],
     [("body", "ground", "spherical"), ("arm", "body", "revolute")]),
    ([("arm", "ground", bk.Spherical(), NOTHING), ("body", "arm", bk.Free(), BODY)], [("body", "arm", "fixed")]),
    ([("base", "ground", bk.Revolute((0, 1, 0)), BODY), ("middle", "base", bk.Revolute((1, 0, 0)), BODY),
      ("rod", "middle", bk.Spherical(), ROD)], [("rod", "base", "planar")]),
    ([("base", "ground", bk.Revolute((0, 1, 0)), BODY), ("middle", "base", bk.Revolute((1, 0, 0)), BODY),
      ("rod", "middle", bk.Spherical(), ROD)], [("rod", "base", "cylindrical")]),
], ids=["a hinge held by two loops", "a ball held by a loop beyond it", "a rod in a plane", "a rod on a line"])
def test_links_that_only_loops_hold_are_held_in_every_schedule(links, ties):
    rng = np.random.default_rng(1)
    closed = tied(links, ties, rng)
    compare(closed, rng, all_orders(closed))


@pytest.mark.skipif(UNFUSED not in [level.name for level in levels_here()], reason=f"needs a processor with {UNFUSED}")
def test_these_and_far_turns_are_right_on_a_processor_without_fused_multiply_add():
    environment, tests = {**os.environ, "BUNRAKU_LEVEL": UNFUSED, "BUNRAKU_LANE_WIDTH": ""}, Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", __file__,
                           str(tests / FAR_TURNS), "-k", "not processor"], cwd=tests.parent, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1000)
    assert done.returncode == 0, done.stdout[-3000:]
