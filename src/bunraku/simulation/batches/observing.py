"""Observations of the copies of a batch: a compiled function (t, q, v, params, out[, model]) fills a row of an array
for each, on all threads.

The model is that of a copy's own numbers: several mechanisms bind the function once each.
"""

from __future__ import annotations

import functools
import inspect

import numpy as np

from bunraku.entries.pool import spread
from bunraku.errors import ModelError, ShapeError, SimulationError
from bunraku.runs.actuation import Actuation
from bunraku.runs.observed_states import observe_states
from bunraku.simulation.actuating import address_of, as_actuation, takes_model
from bunraku.simulation.batches.group import Group

SMALLEST = 256  # copies for which a thread is worth its start


class Observer:
    """The function of `Worlds(observe=...)`, for each mechanism of a group."""

    def __init__(self, group: Group, function, size: int):
        self.group, self.size = group, size
        made = _compiled(function)
        self.functions = [as_actuation(made, mechanism) for mechanism in group.mechanisms]
        self.addresses = [address_of(one) for one in self.functions]

    def fill(self, t: np.ndarray, out: np.ndarray, workers: int) -> None:
        group = self.group

        def work(start, stop):
            for block in range(start // group.block, -(-stop // group.block)):
                first, last = max(start, block * group.block), min(stop, (block + 1) * group.block)
                bad = observe_states.call(self.addresses[block], t, group.y, group.nq, group.params, out, first, last)
                if bad >= 0:
                    raise self._failure(int(bad), float(t[bad]))

        spread(work, len(t), 1, min(workers, max(1, len(t) // SMALLEST)), SMALLEST)

    def _failure(self, k: int, t: float) -> SimulationError:
        group, own = self.group, self.functions[k // self.group.block]
        cause = own.raised(t, group.y[k, :group.nq], group.y[k, group.nq:], group.params[k], self.size)
        error = SimulationError(f"observe: the function failed for copy {k} at t = {t:.6g} s: "
                                f"{type(cause).__name__}: {cause}", states=[k])
        error.__cause__ = cause
        return error

    def array(self, out) -> np.ndarray:
        """The array to be filled: a new one, or the given one, checked."""
        shape = len(self.group.y), self.size
        if out is None:
            return np.empty(shape)
        if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != float:
            what = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
            raise ShapeError(f"observe: out must be an array of float64 {shape}, not {what}")
        if not out.flags.c_contiguous or not out.flags.writeable:
            raise ShapeError("observe: out must be contiguous and writable, as np.empty makes it")
        return out


@functools.lru_cache(maxsize=64)
def _compiled(function) -> Observation:
    """Compiled once, however many worlds use it."""
    try:
        with_model = takes_model(function, 5)
        inspect.signature(function).bind(0.0, *[None] * (5 if with_model else 4))
    except TypeError as error:
        raise ModelError("observe must be a function (t, q, v, params, out) or (t, q, v, params, out, model) that "
                         f"writes numbers into out, not {getattr(function, '__name__', function)!r}: {error}") from None
    return Observation(function, with_model)


class Observation(Actuation):
    """A compiled observation; compiled code calls it as an actuation, with `out` in place of tau."""

    def _returns(self, kind) -> ModelError:
        return ModelError(f"observe: {self.function.__name__!r} returns a value ({kind}), which nothing would use: "
                          "write the numbers into out, and return nothing")
