"""Evaluations of small random trees as numbers, to compare with those of a process that is set up differently."""

import numpy as np

import bunraku as bk
from structures import random_tree

SEEDS = (3, 14, 15)


def alone_and_in_batches() -> np.ndarray:
    """A digest of evaluations of small trees, one state and a batch; run here compiled, and elsewhere without."""
    out = []
    for seed in SEEDS:
        tree = random_tree(seed, links=7, passive=True, springs=True)
        rng = np.random.default_rng(seed)
        q, v, tau = tree.states(rng, 9)
        push = tree.external(rng)
        for k in (0, ...):
            out += [bk.forward_dynamics(tree.m, q[k], v[k], tau[k]),
                    bk.forward_dynamics(tree.m, q[k], v[k], tau[k], external=push),
                    bk.inverse_dynamics(tree.m, q[k], v[k], tau[k], external=push), bk.mass_matrix(tree.m, q[k]),
                    bk.kinematics(tree.m, q[k], v[k]).momentum, *tree.m.energy(q[k], v[k]),
                    tree.m.difference(q[k], tree.m.integrate(q[k], v[k]))]
        out += [bk.kinematics(tree.m, q[0]).jacobian("link6"),
                bk.forward_dynamics(tree.m, q[:2], v[:2], tau[:2], method="unit_vector"), *bk.joint_forces(
                    tree.m, q[0], v[0], tau[0]).values()]
    return np.concatenate([np.ravel(x) for x in out])


def example():
    """A mechanism and a state of it, as arguments of forward_dynamics."""
    tree = random_tree(1)
    return tree.m, *tree.state(np.random.default_rng(1))


COUNTS = (2, 3, 5, 8, 13)  # of states: tiles that are full and not, of every width


def in_lanes() -> list[np.ndarray]:
    """Batches of every kind of kernel in lanes: accelerations, torques, mass matrices, rollouts."""
    out = []
    for seed, count in enumerate(COUNTS):
        tree = random_tree(seed, links=7, passive=True, springs=True)
        rng = np.random.default_rng(seed)
        q, v, tau = tree.states(rng, count)
        external = tree.external(rng, count)
        a = bk.forward_dynamics(tree.m, q, v, tau, external=external, workers=1)
        rolled = bk.rollout(tree.m, q, 0.1 * v, until=0.02, solver="symplectic_euler", step=0.002, workers=1)
        out += [a, bk.inverse_dynamics(tree.m, q, v, a, external=external, workers=1),
                bk.mass_matrix(tree.m, q, workers=1), rolled.q, rolled.v]
    return out
