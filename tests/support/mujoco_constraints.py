"""MuJoCo's accelerations where its equality constraints are hard, beside those of the same file here."""

from __future__ import annotations

import warnings

import numpy as np

import bunraku as bk
from bunraku import convert
from bunraku.io.mjcf import load_mjcf

IMPEDANCE = 0.9999
"""MuJoCo's largest impedance d: constraints yield by (1 - d) / d times an approximate inverse inertia per force."""
SOFTER = (1e-4, 2e-4, 4e-4)
"""Factors on MuJoCo's approximate inverse inertias; accelerations are extrapolated to 0, hard constraints."""


def load_quietly(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_mjcf(path)


def oracle(path):
    """MuJoCo's model."""
    import mujoco

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mujoco.MjSpec.from_file(str(path)).compile()


def hard_accelerations(path, qpos, qvel, force) -> np.ndarray:
    """MuJoCo's qacc with equality constraints alone, extrapolated to infinite impedance."""
    import mujoco

    model = oracle(path)
    flags = mujoco.mjtDisableBit
    model.opt.disableflags |= int(flags.mjDSBL_CONTACT | flags.mjDSBL_LIMIT | flags.mjDSBL_FRICTIONLOSS
                                  | flags.mjDSBL_ACTUATION)
    model.opt.density = model.opt.viscosity = 0
    model.opt.tolerance, model.opt.iterations, model.opt.solver = 0.0, 50, mujoco.mjtSolver.mjSOL_NEWTON
    model.eq_solimp[:] = (IMPEDANCE, IMPEDANCE, 0.001, 0.5, 2.0)
    inverse = [model.body_invweight0, model.dof_invweight0, model.tendon_invweight0]
    own, data, found = [x.copy() for x in inverse], mujoco.MjData(model), []
    for factor in SOFTER:
        for x, x_own in zip(inverse, own, strict=True):
            x[:] = factor * x_own
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = qpos, qvel, force
        mujoco.mj_forward(model, data)
        found.append(data.qacc.copy())
    weights = [np.prod([x / (x - y) for x in SOFTER if x != y]) for y in SOFTER]
    return np.tensordot(weights, found, 1)


def compare(path, moving: bool, seed=0) -> float:
    """Largest relative difference of accelerations at random states; MuJoCo has no term for turning directions, so
    with connections at rest."""
    m = load_quietly(path)
    conv, rng, worst = convert.to(m, "mujoco", oracle(path)), np.random.default_rng(seed), 0.0
    for _ in range(3):
        q, v = bk.project(m, m.integrate(m.neutral(), 0.3 * rng.normal(size=m.nv)), rng.normal(size=m.nv))
        v = v if moving else np.zeros(m.nv)
        tau = rng.normal(size=m.nv)
        theirs = hard_accelerations(path, conv.q(q), conv.v(q, v), conv.tau(q, tau))
        ours = conv.a(q, v, bk.forward_dynamics(m, q, v, tau))
        worst = max(worst, np.abs(ours - theirs).max() / np.abs(theirs).max())
    return worst
