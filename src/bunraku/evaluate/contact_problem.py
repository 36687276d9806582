"""One contact problem, given as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.contact import contact_fields as c
from bunraku.errors import ShapeError

STARTS = {"none": c.NONE, "forces": c.FORCES, "modes": c.MODES}
MODES = ("open", "sticking", "sliding")
STATUS = ("solved", "rough", "no solution")


@dataclass(frozen=True)
class ContactSolution:
    """Solution of a contact problem, with residual and iterations."""

    force: np.ndarray        # (K, 3): normal, two tangents
    velocity: np.ndarray     # (K, 3), u = theta f + b
    modes: tuple[str, ...]   # "open", "sticking" or "sliding", for each contact
    residual: float          # largest violation of the law in units of u, over the largest of |b| and |theta_ii f_i|
    iterations: int
    status: str              # "solved", "rough" (residual above 1e-10), "no solution" (of contacts with given slip)
    smallest: bool           # forces are the smallest of all with this motion, or the only ones


def solve_problem(theta, b, mu, *, slip=None, start="none", force=None, modes=None, smallest=False,
                  back=None) -> ContactSolution:
    """Solve the contact problem u = theta f + b with Signorini's condition and Coulomb friction.

    theta     (3K, 3K), symmetric and positive semidefinite; rows of a contact: normal, two tangents
    b         (3K,) contact velocities (or accelerations) without contact forces
    mu        one coefficient of friction, or K of them
    slip      (K, 2) unit vectors: directions of contacts that already slide; rows of NaN for the others
    start     "none"; "forces": from `force`, (K, 3); "modes": from `modes`, K names, and the directions of `force`
    smallest  replace indeterminate contact forces by their minimum-norm choice
    back      K numbers, 0 but for moments (`contact/moment_rows.py`): places since the contact that loads them
    """
    from bunraku.contact.contact_entries import problem_one

    b = _floats("b", b)
    count = b.size // 3
    if b.ndim != 1 or b.size % 3:
        raise ShapeError(f"b has the shape {b.shape}; it needs 3 numbers a contact: normal, two tangents")
    theta = _floats("theta", theta, (3 * count, 3 * count))
    kind, direction = np.full(count, c.DISC), np.zeros((count, 2))
    back = np.zeros(count, np.int64) if back is None else np.asarray(back, np.int64)
    moments = np.flatnonzero(back)
    loads = 3 * moments, 3 * (moments - back[moments])
    load, theta[loads] = theta[loads], 0.0
    if np.abs(theta - theta.T).max(initial=0.0) > 1e-9 * np.abs(theta).max(initial=0.0):
        raise ShapeError("theta is not symmetric")
    theta = 0.5 * (theta + theta.T)
    theta[loads] = load
    mu = _floats("mu", np.broadcast_to(mu, count) if np.ndim(mu) == 0 else mu, (count,))
    if (mu < 0.0).any():
        raise ShapeError(f"mu of contact {int(np.argmin(mu))} is negative")
    if slip is not None:
        slip = np.array(slip, float).reshape(-1, 2)
        if slip.shape != (count, 2):
            raise ShapeError(f"slip has the shape {slip.shape}; it needs {(count, 2)}")
        given = ~np.isnan(slip).any(axis=1)
        if (np.abs(np.linalg.norm(slip[given], axis=1) - 1.0) > 1e-9).any():
            raise ShapeError("slip needs unit vectors")
        kind[given], direction[given] = c.GIVEN, slip[given]
    kind += c.LOADED * back
    if start not in STARTS:
        raise ShapeError(f"start is {start!r}; it may be {', '.join(map(repr, STARTS))}")
    force = np.zeros(3 * count) if force is None else _floats("force", force, (count, 3)).reshape(-1)
    mode = np.zeros(count, np.int64)
    if start == "modes":
        if modes is None or len(modes) != count or not set(modes) <= set(MODES):
            raise ShapeError(f"modes is {modes!r}; it needs {count} of {', '.join(map(repr, MODES))}")
        mode[:] = [MODES.index(name) for name in modes]
    velocity, report = np.empty(3 * count), np.empty(4)
    problem_one.call(np.ascontiguousarray(theta).reshape(-1), b, mu, kind, direction.reshape(-1),
                     STARTS[start], int(smallest), force, velocity, mode, report)
    return ContactSolution(force.reshape(-1, 3), velocity.reshape(-1, 3), tuple(MODES[k] for k in mode),
                           float(report[0]), int(report[1]), STATUS[int(report[2])], bool(report[3]))


def _floats(name, value, shape=None) -> np.ndarray:
    array = np.array(value, float)
    if shape is not None and array.shape != shape:
        raise ShapeError(f"{name} has the shape {array.shape}; it needs {shape}")
    if not np.isfinite(array).all():
        raise ShapeError(f"{name} is not finite")
    return array
