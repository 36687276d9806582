"""Torques that are constant over periods: a given sequence, and sampled controllers; controllers that read sensors.

Torques jump at the ends of periods. A solver with a fixed step that divides the period is exact; "symplectic_euler"
calls the controller once in each step, at its beginning. Sampled controllers have a memory in their parameters (the
last torques), so that they are for that solver alone, and every copy of a batch has parameters of its own.
"""

from __future__ import annotations

import math

import numpy as np

from bunraku.checks import as_array, as_count, as_positive, as_size
from bunraku.control.controller import Controller, as_controller, callable_part, chosen, gains
from bunraku.control.joint_control import OTHER
from bunraku.control.references import vector_coordinates
from bunraku.errors import ModelError, ShapeError
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.sensors.noise import normal

ROUNDING = 1e-9  # of a period: a time that falls short of the next one by less is in it
EMPTY = -1.0     # number of a sample that there is not


def hold(mechanism, commands, period: float, joints=None) -> Controller:
    """Zero-order hold of a sequence: row k of `commands` (n, number of the joints' velocities) is applied from k period
    to (k + 1) period; the last row afterwards. Every copy of a batch its own: `controller.batch(count, commands=...)`.

    joints      names, whose velocities are the columns in the order of v; by default all that are actuated
    """
    m = as_mechanism(mechanism)
    period = as_positive("hold: period [s]", period, ShapeError)
    places = np.flatnonzero(chosen(m, joints, "hold"))
    rows, nv, width = as_array("hold: commands", commands), m.nv, len(places)
    if rows.ndim != 2 or len(rows) == 0 or rows.shape[1] != width or not np.isfinite(rows).all():
        raise ShapeError(f"hold: commands must be finite numbers of shape (n, {width}), a column for each velocity of "
                         f"the joints, not {rows.shape}")
    count = len(rows)

    def hold(t, q, v, params, tau, model):
        if model.nv != nv or params.shape[0] != count * width:
            raise ValueError(OTHER)
        k = min(max(math.floor(t / period + ROUNDING), 0), count - 1)
        for i in range(width):
            tau[places[i]] = params[k * width + i]
    return Controller(hold, {"commands": rows})


def sampled(mechanism, controller, period: float, delay: float = 0.0) -> Controller:
    """A controller that is called at the times 0, period, 2 period, ... and whose torques are applied `delay` later,
    for one period; before the first ones there are none.

    For solver="symplectic_euler" with a step that divides the period. Where events shift the steps, it is called at the
    beginning of the first step from a sampling time on. Each copy of a batch needs parameters of its own:
    params=controller.batch(count).
    """
    part, m = as_controller(controller), as_mechanism(mechanism)
    period = as_positive("sampled: period [s]", period, ShapeError)
    delay = as_size("sampled: delay [s]", delay, ShapeError)
    called, own, width = callable_part(part.function), len(part.params), m.nv + m.nc
    kept = math.ceil(delay / period - ROUNDING) + 1  # samples that are on their way, and the one applied
    if part.memory or part.period:
        raise ModelError("sampled: the controller is sampled already")

    def sampled(t, q, v, params, tau, model):
        if tau.shape[0] != width or params.shape[0] != own + kept * (1 + width):
            raise ValueError(OTHER)
        now, applied = math.floor(t / period + ROUNDING), math.floor((t - delay) / period + ROUNDING)
        at = own + (now % kept) * (1 + width)
        if params[at] != now:
            params[at] = now
            torques = np.zeros(width)
            called(t, q, v, params[:own], torques, model)
            params[at + 1:at + 1 + width] = torques
        at = own + (applied % kept) * (1 + width)
        if applied >= 0 and params[at] == applied:
            tau[:] = params[at + 1:at + 1 + width]
    memory = np.zeros((kept, 1 + width))
    memory[:, 0] = EMPTY
    return Controller(sampled, {**{name: part[name] for name in part.names}, "memory": memory}, [part], shared=False,
                      period=period, entries=part.entries)


def measured(mechanism, controller, period: float, q_noise=0.0, v_noise=0.0, resolution: float = 0.0,
             seed: int = 0) -> Controller:
    """A controller that receives measured coordinates and velocities: with noise of these standard deviations, drawn
    anew every `period` [s], and coordinates rounded to `resolution` (encoders). Errors depend only on the seed and the
    number of the sample, not on trial steps; `controller["seed"]`, or `batch(count, seed=...)`, sets the seed.

    q_noise, v_noise    a number, or one for each velocity; quaternions are measured exactly
    """
    part, m = as_controller(controller), as_mechanism(mechanism)
    period = as_positive("measured: period [s]", period, ShapeError)
    step = as_size("measured: resolution", resolution, ShapeError)
    called, own, vector, nv = callable_part(part.function), len(part.params), vector_coordinates(m), m.nv
    size = own + 2 * nv + 1
    everything = np.ones(nv)

    def measured(t, q, v, params, tau, model):
        if model.nv != nv or params.shape[0] != size:
            raise ValueError(OTHER)
        k, seed = math.floor(t / period + ROUNDING), params[size - 1]
        q_read, v_read = q.copy(), v.copy()
        for j in range(nv):
            v_read[j] += params[own + nv + j] * normal(seed, k, nv + j)
            if vector[j] >= 0:
                x = q_read[vector[j]] + params[own + j] * normal(seed, k, j)
                q_read[vector[j]] = step * math.floor(x / step + 0.5) if step > 0.0 else x
        called(t, q_read, v_read, params[:own], tau, model)
    return Controller(measured, {**{name: part[name] for name in part.names},
                                 "q_noise": gains("measured: q_noise", q_noise, everything),
                                 "v_noise": gains("measured: v_noise", v_noise, everything),
                                 "seed": np.array(float(as_count("seed", seed, 0)))},
                      [part], shared=not part.memory, period=part.period, entries=part.entries)
