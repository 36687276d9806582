"""Worlds under random and extreme actions: a closed-chain leg, a quadruped, a climber whose hands grab and let go.
States stay finite, loops stay closed, and copies move with the same bits however the work is cut.

The leg takes 10^7 steps in all seeds together. A copy that stops with a reason, which is counted and must be rare,
begins anew. Actions are those that a policy gives before it has learned: noise, the largest torque to and fro, constant
extremes, zeros, each for a random number of steps. The same actions again, with another number of threads, resets in
another order and a detour from a snapshot, lead to the same bits.
"""

from __future__ import annotations

import pickle

import numpy as np

import bunraku as bk
from bunraku.check import Case
from bunraku.envs.tasks import Task, task

TITLE = "worlds under extreme actions: states stay finite, loops closed, and the same bits after any detour"
UNIT = "steps"
SEEDS, SHORT, LIMIT = 100, 2, 300.0

COPIES, STEPS = 16, 625    # of the leg, of 10 steps of the solver each: 10^5 for each seed
OPEN = 1e-6                # [m] of loops
STOPS = 2                  # of copies, in the steps of a seed
OTHERS = ("quadruped", "monkey-bars", "hopping-leg")
BITS = 60                  # steps that are repeated with a detour


def extreme_actions(rng, own: Task, copies: int, steps: int) -> np.ndarray:
    """(steps, copies, nu)"""
    low, high = own.low, own.high
    actions = np.empty((steps, copies, len(low)))
    for k in range(copies):
        at = 0
        while at < steps:
            kind, until = rng.integers(5), min(steps, at + int(rng.integers(1, 80)))
            noise = rng.uniform(low, high, (until - at, len(low)))
            if kind == 1:    # to and fro
                noise = np.where(rng.integers(0, 2, noise.shape), low, high)
            elif kind == 2:  # held
                noise[:] = np.where(rng.integers(0, 2, len(low)), low, high)
            elif kind == 3:
                noise[:] = 0.0
            elif kind == 4:  # slow waves at full strength
                phase = np.arange(at, until)[:, None] * rng.uniform(0.02, 0.5) + rng.uniform(0, 6.3, len(low))
                noise = np.where(np.sin(phase) > 0.0, low, high)
            actions[at:until, k], at = noise, until
    return actions


def steps_of_a_leg(rng) -> tuple[dict[str, float], int]:
    """10^5 steps of the closed-chain leg: largest numbers, and how many copies have stopped."""
    own = task("hopping-leg")
    w = own.worlds(COPIES, seed=int(rng.integers(1 << 30)), workers=1)
    own.begin(w)
    fastest = highest = gap = 0.0
    stopped = 0
    for number, action in enumerate(extreme_actions(rng, own, COPIES, STEPS)):
        own.move(w, action)
        if not (np.isfinite(w.q).all() and np.isfinite(w.v).all()):
            raise AssertionError(f"step {number}: a state is not finite")
        if lost := list(w.failed):
            stopped += len(lost)
            if stopped > STOPS:
                raise AssertionError(f"step {number}: {stopped} copies have stopped, the last: {w.failed[lost[-1]]}")
            own.begin(w, lost)
        fastest, highest = max(fastest, float(np.abs(w.v[:, 2:]).max())), max(highest, float(w.q[:, 1].max()))
        if rng.integers(100) == 0:
            w.reset([int(rng.integers(COPIES))])
    for q in w.q:
        gap = max(gap, float(np.abs(bk.constraints(own.mechanism, q).gap).max()))
    if not gap < OPEN:
        raise AssertionError(f"a loop is open by {gap:.2g} m")
    return {"open loop [m]": gap, "fastest joint [rad/s]": fastest, "highest jump [m]": highest}, stopped


def same_bits(rng, own: Task) -> None:
    """The same motion twice, the second time with a detour."""
    copies, seed, ends = int(rng.integers(9, 20)), int(rng.integers(1 << 30)), []
    actions = extreme_actions(rng, own, copies, BITS)
    detour, back = sorted(rng.integers(1, BITS, 2).tolist())
    again = rng.permutation(copies)[:int(rng.integers(1, copies))]
    for other in (False, True):
        w = own.worlds(copies, seed=seed, workers=1 + other)
        own.begin(w)
        for number, action in enumerate(actions):
            if other and number == detour:
                kept = pickle.loads(pickle.dumps(w.snapshot()))
                for _ in range(3):
                    own.move(w, action[::-1])
                w.reset()
                w.restore(kept)
            if number == back:
                for part in np.split(again, [len(again) // 2]) if other else [np.sort(again)]:
                    if len(part):
                        own.begin(w, part)
            own.move(w, action)
        ends.append((w.q.copy(), w.v.copy(), w.params.copy(), w.running))
    for one, two in zip(*ends, strict=True):
        if not np.array_equal(one, two):
            bad = np.flatnonzero((one != two).reshape(copies, -1).any(axis=1)).tolist()
            raise AssertionError(f"{own.name}: other bits in copies {bad} with a detour at {detour}, resets at {back}")


def case(seed: int) -> Case:
    """A leg for 10^5 steps, and a detour of one of the tasks."""
    rng = np.random.default_rng([31, seed])
    worst, stopped = steps_of_a_leg(rng)
    same_bits(rng, task(OTHERS[seed % len(OTHERS)]))
    return Case(10 * COPIES * STEPS, worst, counts={"copies that stopped": stopped})
