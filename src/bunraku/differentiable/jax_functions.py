"""Functions of JAX: values and Jacobians come from a callback, derivatives are linear in their tangents.

`jax.custom_jvp` with that linear rule gives forward and reverse mode; `jit` and `vmap` work, a vmap is one batch.
Second derivatives are not available. Without `jax.config.update("jax_enable_x64", True)` JAX rounds to single
precision.
"""

from __future__ import annotations

import numpy as np

from bunraku.differentiable.maps import Functions, Map, flat, functions_of
from bunraku.errors import MissingExtra
from bunraku.mechanism import Mechanism


def for_jax(mechanism: Mechanism, step: float | None = None) -> Functions:
    """Functions of a tree for JAX: `forward_dynamics`, `inverse_dynamics` and, with a step [s], `step`.

    Arguments are one state or have any leading axes. `pip install jax`.
    """
    try:
        import jax  # noqa: F401
    except ImportError:
        raise MissingExtra('functions for JAX need it: pip install "bunraku[jax]"') from None
    return functions_of(mechanism, step, _function)


def _function(map_: Map):
    import jax
    import jax.numpy as jnp

    single = len(map_.outputs) == 1

    def shapes(inputs):
        lead, kind = jnp.broadcast_shapes(*(x.shape[:-1] for x in inputs)), jnp.result_type(*inputs, jnp.float32)
        return lead, kind, tuple(jax.ShapeDtypeStruct((*lead, width), kind) for _, width in map_.outputs)

    def called(what, expected, inputs):
        def compute(*arrays):
            lead, rows = flat(arrays)
            return tuple(np.asarray(x, shape.dtype).reshape(*lead, *x.shape[1:])
                         for x, shape in zip(what(*rows), expected, strict=True))
        return jax.pure_callback(compute, expected, *inputs, vmap_method="broadcast_all")

    @jax.custom_jvp
    def function(*inputs):
        found = called(map_.value, shapes(inputs)[2], inputs)
        return found[0] if single else found

    def slopes(*rows):
        return [x for row in map_.slopes(*rows) for x in row]

    @function.defjvp
    def rule(inputs, tangents):
        lead, kind, _ = shapes(inputs)
        expected = tuple(jax.ShapeDtypeStruct((*lead, high, wide), kind) for _, high in map_.outputs
                         for _, wide in map_.inputs)
        by = called(slopes, expected, inputs)
        count = len(map_.inputs)
        changes = tuple(sum(jnp.einsum("...ij,...j->...i", by[k * count + i], tangents[i]) for i in range(count))
                        for k in range(len(map_.outputs)))
        return function(*inputs), changes[0] if single else changes

    def checked(*inputs):
        if len(inputs) != len(map_.inputs):
            raise TypeError(f"{map_.name} takes {', '.join(name for name, _ in map_.inputs)}")
        return function(*(jnp.asarray(x) for x in inputs))
    checked.__name__ = map_.name
    return checked
