"""Forward dynamics, inverse dynamics and one step as maps between arrays, with Jacobians by all coordinates.

Derivatives of bunraku are by small moves (nv), those of other libraries by coordinates (nq). With the velocity
v = T(q) dq/dt and dq/dt = E(q) v, a derivative by moves times T is one by coordinates, and E times a move of the
result is a change of its coordinates. The length of a quaternion does not matter: there the derivative is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bunraku.checks import as_positive
from bunraku.entries.moves import rates, velocities
from bunraku.errors import ModelError, SettingError
from bunraku.evaluate.derivatives import derivatives, inverse_derivatives
from bunraku.evaluate.dynamics import forward_dynamics, inverse_dynamics
from bunraku.evaluate.linear_models import step_derivatives
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism


class Map(NamedTuple):
    """A function of a batch: inputs (B, width) each to outputs (B, width)."""

    name: str
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    value: Callable[..., list]   # the outputs
    slopes: Callable[..., list]  # [[d output / d input, (B, width of output, width of input)] of each output]


class Functions(NamedTuple):
    """Functions of another library."""

    forward_dynamics: Callable  # (q, v, tau) -> a
    inverse_dynamics: Callable  # (q, v, a) -> tau
    step: Callable | None       # (q, v, tau) -> (q, v) after a step of "symplectic_euler", if a step is given


def functions_of(mechanism: Mechanism, step: float | None, make: Callable[[Map], Callable]) -> Functions:
    """What `make` makes of each map."""
    m = as_mechanism(mechanism)
    if m.plan().loops is not None:
        raise ModelError(f"{m.name} has connections, whose coordinates depend on each other; differentiable functions "
                         "are for trees")
    after = None if step is None else make(_step(m, as_positive("step", step, SettingError)))
    return Functions(make(_forward(m)), make(_inverse(m)), after)


def _forward(m):
    def slopes(q, v, tau):
        d = derivatives(m, q, v, tau)
        return [[d.da_dq @ to_velocities(m, q), d.da_dv, d.da_dtau]]
    return Map("forward_dynamics", (("q", m.nq), ("v", m.nv), ("tau", m.nv)), (("a", m.nv),),
               lambda q, v, tau: [forward_dynamics(m, q, v, tau)], slopes)


def _inverse(m):
    def slopes(q, v, a):
        d = inverse_derivatives(m, q, v, a)
        return [[d.dtau_dq @ to_velocities(m, q), d.dtau_dv, d.dtau_da]]
    return Map("inverse_dynamics", (("q", m.nq), ("v", m.nv), ("a", m.nv)), (("tau", m.nv),),
               lambda q, v, a: [inverse_dynamics(m, q, v, a)], slopes)


def _step(m, h):
    def value(q, v, tau):
        faster = v + h * forward_dynamics(m, q, v, tau)
        return [m.integrate(q, h * faster), faster]

    def slopes(q, v, tau):
        d = step_derivatives(m, q, v, tau, step=h)
        back, ahead, nv = to_velocities(m, q), to_rates(m, d.q), m.nv
        return [[ahead @ d.A[:, :nv, :nv] @ back, ahead @ d.A[:, :nv, nv:], ahead @ d.B[:, :nv]],
                [d.A[:, nv:, :nv] @ back, d.A[:, nv:, nv:], d.B[:, nv:]]]
    return Map("step", (("q", m.nq), ("v", m.nv), ("tau", m.nv)), (("q", m.nq), ("v", m.nv)), value, slopes)


def to_velocities(m: Mechanism, q) -> np.ndarray:
    """T (B, nv, nq): velocities of rates of coordinates."""
    return _columns(m, q, velocities, m.nq)


def to_rates(m: Mechanism, q) -> np.ndarray:
    """E (B, nq, nv): rates of coordinates of velocities."""
    return _columns(m, q, rates, m.nv)


def _columns(m, q, function, width):
    units = np.tile(np.eye(width), (len(q), 1))
    found = function(m.plan(), np.repeat(q, width, axis=0), units)
    return found.reshape(len(q), width, -1).swapaxes(1, 2)


def flat(arrays) -> tuple[tuple[int, ...], list[np.ndarray]]:
    """Leading axes of all arrays together, and the arrays as batches (B, width)."""
    arrays = [np.asarray(x, float) for x in arrays]
    lead = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    return lead, [np.ascontiguousarray(np.broadcast_to(x, (*lead, x.shape[-1])).reshape(-1, x.shape[-1]))
                  for x in arrays]
