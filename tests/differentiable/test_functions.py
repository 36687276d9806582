"""Dynamics inside JAX, PyTorch and CasADi: their own checks of gradients, and an optimisation of each kind."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import bunraku as bk
from differences import columns
from structures import random_tree

STEP = 0.01


def tree():
    """With quaternions, springs and dampers."""
    m = random_tree(4, kinds=("revolute", "spherical", "free"), links=4).m
    rng = np.random.default_rng(0)
    q = m.integrate(m.neutral(), rng.normal(size=m.nv))
    return m, (q, rng.normal(size=m.nv), rng.normal(size=m.nv))


def by_coordinates(function, at):
    """Differences by every coordinate of every argument, quaternions' own included."""
    return [columns(lambda x, k=k: function(*at[:k], at[k] + x, *at[k + 1:]), len(at[k])) for k in range(3)]


def test_jacobians_by_coordinates_are_those_of_differences():
    from bunraku.differentiable.maps import functions_of

    m, at = tree()
    maps = functions_of(m, STEP, lambda map_: map_)
    for map_ in maps:
        found = map_.slopes(*(x[None] for x in at))
        for k, row in enumerate(found):
            expected = by_coordinates(lambda *x, k=k, map_=map_: map_.value(*(y[None] for y in x))[k][0], at)
            for one, other in zip(row, expected, strict=True):
                assert np.abs(one[0] - other).max() < 1e-7 * (1 + np.abs(other).max())


def test_a_step_is_that_of_a_rollout():
    from bunraku.differentiable.maps import functions_of

    m, (q, v, tau) = tree()
    w = bk.Worlds(m, 1, step=STEP, q=q, v=v)
    w.step(tau)
    found = functions_of(m, STEP, lambda map_: map_).step.value(q[None], v[None], tau[None])
    assert np.abs(found[0][0] - w.q[0]).max() < 1e-12
    assert np.abs(found[1][0] - w.v[0]).max() < 1e-11


def test_jax_differentiates_forwards_backwards_and_in_batches():
    if find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    script = Path(__file__).parents[1] / "support" / "jax_checks.py"
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_torch_passes_its_gradient_check():
    torch = pytest.importorskip("torch")
    from bunraku.differentiable import for_torch

    m, at = tree()
    f = for_torch(m, STEP)
    tensors = [torch.tensor(np.stack([x, x]), requires_grad=True) for x in at[:2]]
    shared = torch.tensor(at[2], requires_grad=True)  # one for both states
    for function in f:
        assert torch.autograd.gradcheck(function, (*tensors, shared), eps=1e-6, atol=1e-5, rtol=1e-5)


def test_casadi_differentiates_and_solves_with_the_callback():
    casadi = pytest.importorskip("casadi")
    from bunraku.differentiable import for_casadi

    m, at = tree()
    f = for_casadi(m, STEP)
    x = [casadi.MX.sym(name, len(value)) for name, value in zip("qvt", at, strict=True)]
    J = casadi.Function("J", x, [casadi.jacobian(f.inverse_dynamics(*x), casadi.vertcat(*x))])
    expected = np.hstack(by_coordinates(lambda *x: bk.inverse_dynamics(m, *x), at))
    assert np.abs(J(*at).full() - expected).max() < 1e-6 * (1 + np.abs(expected).max())
    solve = casadi.rootfinder("solve", "newton", {"x": x[2], "p": casadi.vertcat(*x[:2]),
                                                  "g": f.forward_dynamics(*x)}, {"print_iteration": False})
    tau = solve(x0=np.zeros(m.nv), p=np.concatenate(at[:2]))["x"].full().ravel()
    assert np.allclose(tau, bk.inverse_dynamics(m, at[0], at[1], np.zeros(m.nv)), atol=1e-8)


def test_connections_are_refused():
    torch = pytest.importorskip("torch")
    from bunraku.differentiable import for_torch

    m = bk.models.n_four_bar(1)
    with pytest.raises(bk.ModelError, match="trees"):
        for_torch(m)
    assert torch.__version__
