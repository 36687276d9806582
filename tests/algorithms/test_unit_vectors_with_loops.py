"""The unit-vector method with loops agrees with assembly."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.entries import reference
from loops import connect_here, forward, random_loops, unit_vectors, without_connections
from oracle import close
from structures import arm


@pytest.mark.parametrize("seed", range(16))
def test_unit_vectors_agree_with_assembly(seed):
    m, q, v, tau = random_loops(seed, connections=1 + seed % 4, passive=bool(seed % 2))
    drives = np.random.default_rng(seed).normal(size=m.nc)
    a, multipliers = reference.closed_forward_dynamics(m.plan(), q, v, np.concatenate([tau, drives]), None, 1)
    close(a, unit_vectors(m, q, v, tau, drives), 1e-15)
    close(a, forward(m, q, v, tau, drives), 1e-7)
    found = bk.constraints(m, q, v)
    close(found.jacobian @ a + found.bias, np.zeros(len(found.bias)), 1e-8 * max(1.0, np.abs(a).max()))
    needed = bk.inverse_dynamics(without_connections(m), q, v, a)
    chain = bk.closed_chain(m, q, v)
    close(needed, tau + chain.found.own + chain.found.ways @ drives + found.jacobian.T @ multipliers, 1e-8)


def test_unit_vectors_take_external_forces_and_batches():
    m, q, v, tau = random_loops(3)
    external = {m.link_names[k]: np.random.default_rng(k).normal(size=6) for k in (1, 4)}
    a = unit_vectors(m, q, v, tau, external=external)
    close(a, bk.forward_dynamics(m, q, v, tau, external=external), 1e-8)
    many = unit_vectors(m, np.array([q] * 3), np.array([v] * 3), tau, external=external)
    close(many, np.array([a] * 3), 1e-14)


def test_unit_vectors_tell_constraints_that_contradict_each_other():
    m, q = arm(2), np.array([0.3, 0.5])
    connect_here(m, q, "ground", "link1", bk.Fixed(), "weld")
    close(unit_vectors(m, q, np.zeros(2), np.ones(2)), np.zeros(2))
    with pytest.raises(bk.ConstraintError, match="'weld'"):
        unit_vectors(m, q, np.ones(2), np.ones(2))  # moves, though nothing can
    with pytest.raises(bk.ConstraintError, match="1 of 2 states"):
        unit_vectors(m, q, np.array([np.zeros(2), np.ones(2)]), np.ones(2))
