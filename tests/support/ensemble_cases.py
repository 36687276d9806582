"""Functions of cases, where other processes find them."""

import os
import time

import numpy as np

import bunraku as bk


class Odd(Exception):
    """An exception whose __init__ wants more than a message."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def energy(case):
    """A small simulation."""
    m = bk.models.chain(2)
    path = bk.Simulation(m, q=[0.3, case], workers=1, progress=False).run(until=0.05)
    return {"q": path.q[-1], "steps": len(path.t), "energy": float(sum(m.energy(path.q[-1], path.v[-1])))}


def troubled(case):
    """Every seventh case fails, in several ways."""
    if case % 7 == 3:
        raise KeyError("shoulder") if case % 2 else bk.StateError(f"case of {case}")
    if case % 7 == 5:
        raise Odd(case, "more")
    return case**2, np.arange(case % 5)


def logged(case):
    """Say that it was computed, in a file beside the results."""
    number, log, seconds = case
    time.sleep(seconds)
    with open(log, "ab", buffering=0) as file:
        file.write(b"%d\n" % number)
    return {"number": number, "root": np.sqrt(np.arange(number, number + 40.0))}


def dies(case):
    if case == 5:
        os._exit(3)
    return case


@bk.actuation
def hold(t, q, v, params, tau):
    for j in range(len(tau)):
        tau[j] = -params[0] * q[j]
