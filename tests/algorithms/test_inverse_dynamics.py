"""Inverse dynamics: the torques are those of the oracle, and undo forward dynamics."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
import oracle
from oracle import close
from structures import random_tree

SEEDS = st.integers(0, 10**6)


@given(SEEDS, st.booleans())
@settings(max_examples=80)
def test_torques_equal_the_oracle(seed, passive):
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, passive=True, springs=seed % 2 == 0)
    q, v, a = tree.states(rng, 2)
    external = tree.external(rng)
    expected = np.array([oracle.solve(tree, *state[:2], a=state[2], external=external, passive=passive).tau
                         for state in zip(q, v, a, strict=True)])
    close(bk.inverse_dynamics(tree.m, q, v, a, external=external, passive=passive), expected)
    close(bk.inverse_dynamics(tree.m, q[0], v[0], a[0], external=external, passive=passive), expected[0])


@given(SEEDS, st.booleans())
@settings(max_examples=60)
def test_forward_undoes_inverse(seed, passive):
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, passive=True, springs=seed % 2 == 0)
    q, v, a = tree.states(rng, 3)
    common = {"external": tree.external(rng, 3), "passive": passive}
    tau = bk.inverse_dynamics(tree.m, q, v, a, **common)
    close(bk.forward_dynamics(tree.m, q, v, tau, **common), a)


@given(SEEDS, st.booleans())
@settings(max_examples=60)
def test_inverse_undoes_forward(seed, passive):
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, passive=True, springs=seed % 2 == 0)
    q, v, tau = tree.state(rng)
    common = {"external": tree.external(rng), "passive": passive}
    a = bk.forward_dynamics(tree.m, q, v, tau, **common)
    close(bk.inverse_dynamics(tree.m, q, v, a, **common), tau)


def test_holding_still_takes_the_weight():
    m = bk.Mechanism(gravity=(0, 0, -10))
    m.add_link("lift", joint=bk.Prismatic((0, 0, 1)), mass=3.0)
    m.add_link("arm", "lift", bk.Revolute((0, -1, 0)), mass=2.0, com=(0.5, 0, 0))
    assert np.allclose(bk.inverse_dynamics(m, np.zeros(2), np.zeros(2), np.zeros(2)), [50.0, 10.0], rtol=1e-13)


def test_ten_thousand_links_give_their_torques_back():
    """Relative to the torques that hold the chain: rounding `a` to doubles alone moves tau by 1e-12 of those."""
    rng = np.random.default_rng(0)
    n = 10_000
    m = bk.Mechanism()
    for i in range(n):
        m.add_link(f"link{i}", f"link{i - 1}" if i else "ground", bk.Revolute(np.eye(3)[i % 3]), position=(0.1, 0, 0),
                   mass=1.0, com=(0.05, 0, 0), inertia=(0.001, 0.002, 0.002))
    q, v, tau = 0.1 * rng.normal(size=n), 0.01 * rng.normal(size=n), rng.normal(size=n)
    a = bk.forward_dynamics(m, q, v, tau)
    error = np.abs(bk.inverse_dynamics(m, q, v, a) - tau).max()
    assert error < 1e-9 * np.abs(bk.inverse_dynamics(m, q, v, np.zeros(n))).max()
