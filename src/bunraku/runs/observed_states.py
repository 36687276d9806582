"""Observations of many states by a user function, which writes a row of each into one array."""

from __future__ import annotations

from numba import types

from bunraku.entries.signatures import floats, int64, table
from bunraku.integrate.callbacks import call_function
from bunraku.jit import entry


@entry("observations", int64(int64, floats, table, int64, table, table, types.int64, types.int64), seconds=1)
def observe_states(address, t, y, nq, params, out, start, stop):
    """out[k] by the C function at `address` for states start .. stop of y (B, nq + nv), with their times and
    parameters. Returns the first one whose call failed, or -1."""
    for k in range(start, stop):
        row = out[k]
        row[:] = 0.0
        if call_function(address, t[k], y[k, :nq], y[k, nq:], params[k], row) != 0:
            return k
    return -1
