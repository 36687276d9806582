"""Checks of functions for JAX, in a process of their own: JAX warns of every later fork of the process it is in."""

import jax
import numpy as np
from jax.test_util import check_grads

import bunraku as bk
from bunraku.differentiable import for_jax
from structures import random_tree

STEP = 0.01


def main():
    jax.config.update("jax_enable_x64", True)
    m = random_tree(4, kinds=("revolute", "spherical", "free"), links=4).m
    rng = np.random.default_rng(0)
    at = m.integrate(m.neutral(), rng.normal(size=m.nv)), rng.normal(size=m.nv), rng.normal(size=m.nv)
    f = for_jax(m, STEP)
    assert np.allclose(f.forward_dynamics(*at), bk.forward_dynamics(m, *at))
    for function in f:
        check_grads(function, at, order=1, modes=("fwd", "rev"), atol=1e-5, rtol=1e-5, eps=1e-6)
    many = np.stack([at[2], 2 * at[2], 0 * at[2]])
    slopes = jax.jit(jax.vmap(jax.grad(lambda tau: f.step(at[0], at[1], tau)[1].sum())))(many)
    assert slopes.shape == many.shape
    assert np.allclose(slopes[0], bk.step_derivatives(m, *at, step=STEP).B[m.nv:].sum(axis=0))


if __name__ == "__main__":
    main()
