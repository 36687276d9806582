"""Plans: after changes of structure they are those of a mechanism built that way."""

import dataclasses
import json
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bunraku as bk
from bunraku.entries.forward_entries import forward_dynamics
from bunraku.mechanism.describe import describe, rebuild
from bunraku.plan.build import Plan, lay_out_records, mark_slots
from moving import figure
from oracle import close
from structures import random_tree, some_joint


def same_plan(a: Plan, b: Plan):
    for field in dataclasses.fields(Plan):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if isinstance(x, np.ndarray):
            assert x.dtype == y.dtype, field.name
            np.testing.assert_array_equal(x, y, err_msg=field.name)
        else:
            assert x == y, field.name


@settings(max_examples=60)
@example(2736)
@given(st.integers(0, 10**6))
def test_the_plan_after_cuts_is_the_plan_of_a_mechanism_built_that_way(seed):
    tree = random_tree(seed, passive=seed % 2 == 0, springs=seed % 3 == 0)
    m, rng = tree.m, np.random.default_rng(seed)
    m.plan(), m.plan("apart")
    for _ in range(3):
        name = some_joint(m, rng)
        if name:
            m.cut(name)
        fresh = rebuild(json.loads(json.dumps(describe(m))))
        for variant in (None, "bare", "apart", "tree"):
            try:
                plan = m.plan(variant)
            except bk.ModelError as error:  # a massless part has no plan
                with pytest.raises(bk.ModelError, match=re.escape(str(error))):
                    fresh.plan(variant)
            else:
                same_plan(plan, fresh.plan(variant))
        np.testing.assert_array_equal(m.neutral(), fresh.neutral())
        assert [m.q_slice(n) for n in m.joint_names] == [fresh.q_slice(n) for n in m.joint_names]


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_bodies_may_keep_a_slot_of_their_own(seed):
    """Where passes leave their results makes no difference to them."""
    tree = random_tree(seed, links=12)
    m, rng = tree.m, np.random.default_rng(seed)
    q, v, tau = tree.state(rng)
    a = bk.forward_dynamics(m, q, v, tau)
    body_i = m.plan().body_i.copy()
    mark_slots(body_i, rng.random(m.plan().bodies) < 0.3)
    lay_out_records(body_i)
    plan = dataclasses.replace(m.plan(), body_i=body_i)
    close(forward_dynamics(plan, q, v, tau, None, 1), a, 1e-10)
    mark_slots(body_i)
    lay_out_records(body_i)
    np.testing.assert_array_equal(body_i, m.plan("tree").body_i)


def test_connections_leave_the_plan_of_the_tree_alone():
    m = figure()
    plan = m.plan("tree")
    m.connect("torso", "right_hand", name="pocket")
    m.cut("left_grip")
    m.cut("pocket")
    assert m.plan("tree") is plan
    assert m.plan() is plan
