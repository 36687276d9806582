"""The mass matrix, by any method, and the operation counts of the methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy import empty

from bunraku.checks import aligned
from bunraku.entries import mass_matrix_entries as matrix
from bunraku.entries.explain import refuse
from bunraku.entries.mass_matrix_entries import matrix_one
from bunraku.errors import ModelError
from bunraku.jit import ArrayMismatch
from bunraku.mechanism import Mechanism
from bunraku.mechanism.mechanism import as_mechanism
from bunraku.plan import fields as f

if TYPE_CHECKING:
    from bunraku.massmatrix import Chain, Count
    from bunraku.massmatrix.array import Step

FAMILY = ("oke", "vke", "oneb", "vneb", "ocrb", "vcrb")
METHODS = ("auto", *FAMILY)
PARALLEL = ("vneb", "vcrb")
PROCESSORS = (1, "n", "n^2")


def mass_matrix(mechanism: Mechanism, q, *, method: str = "auto", workers: int | None = None,
                out: np.ndarray | None = None) -> np.ndarray:
    """M(q), armature included: (nv, nv), or (B, nv, nv) for a batch.

    "auto" (composite rigid bodies, compiled) applies to every mechanism. "oke", "vke", "oneb", "vneb", "ocrb", "vcrb"
    are the methods that [F] compares, in plain Python, for serial chains of revolute and prismatic joints.

    `out` receives the result of "auto": allocating a large batch takes longer than computing it.
    """
    if method == "auto":
        try:
            plan = mechanism.ready_plan
        except AttributeError:
            as_mechanism(mechanism)
            raise
        if plan is None:
            plan = mechanism.plan_for(matrix_one)
        if out is None or (isinstance(out, np.ndarray) and out.flags.writeable):
            result = empty(plan.matrix_shape) if out is None else out
            try:  # straight to compiled code, which refuses whatever is not one state in plain arrays
                if matrix_one.call(plan.arrays, q, result) == 0:
                    return result
            except ArrayMismatch:
                pass
        return matrix.mass_matrix(plan, q, workers, out)
    if method not in METHODS:
        raise ModelError(f"mass matrix method {method!r} is not one of {', '.join(METHODS)}")
    if out is not None:
        raise ModelError("out is for method='auto'")
    from bunraku.massmatrix import mass_matrix as by_method

    chain, q = _chain(mechanism, method), _states(mechanism, q)
    with np.errstate(invalid="ignore"):
        return _with_armature(mechanism, q, by_method(chain, q, method))


@dataclass
class ProcessorArray:
    """Result of a simulated processor array, with its steps and operations."""

    matrix: np.ndarray            # M, armature included
    operations: Count             # (multiplications, additions) one after the other
    messages: dict[str, int]      # steps of communication: "exchange" network, "neighbour" links alone
    steps: list[Step]             # one after the other: label, operations of the busiest processor, messages
    processors: int


def processor_array(mechanism: Mechanism, q, *, method: str = "vneb", processors: str = "n^2") -> ProcessorArray:
    """M(q) of one state as a parallel computer would form it: a step-accurate simulation of [F]'s processor arrays.

    processors="n^2": n (n + 1) / 2 of them, O(log n) steps; "n": n of them, O(n) steps. Chains of revolute joints.
    """
    _check_parallel(method, processors)
    from bunraku.massmatrix import Counter, counted, simulate
    from bunraku.massmatrix.by_method import to_array

    chain, q = _chain(mechanism, method), _states(mechanism, q)
    if q.ndim != 1:
        raise ModelError("processor_array takes one state; for a batch use mass_matrix")
    if any(chain.prismatic):
        name = mechanism.links[mechanism.plan().body_link[chain.prismatic.index(True)]].joint_name
        raise ModelError(f"the parallel algorithms are for revolute joints, but joint {name!r} is prismatic; "
                         f"mass_matrix with method={method!r} takes it")
    counter = Counter()
    run = simulate(method, processors, *counted(chain, chain.turns(q), counter), counter)
    M = to_array(chain, [[float(x) for x in row] for row in run.matrix])
    return ProcessorArray(_with_armature(mechanism, q, M), run.operations, run.messages, run.steps, run.processors)


def operation_count(method: str, n: int, processors: int | str = 1, *, projection: str = "fixed") -> Count:
    """(multiplications, additions) that a method needs for a chain of n revolute joints: by running it and counting.

    processors  1, or "n" and "n^2" (n (n + 1) / 2) for the parallel algorithms of "vneb" and "vcrb": operations
                one after the other
    projection  "fixed", or "body" for the naive choice of frames ("vneb" and "vcrb" on one processor)

    Sines, cosines and negations are not counted.
    """
    if method not in FAMILY:
        raise ModelError(f"operations are counted for {', '.join(FAMILY)}, not for {method!r}")
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ModelError(f"a chain has a whole number of joints, at least 1, not {n!r}")
    if projection not in ("fixed", "body") or (projection == "body" and (method not in PARALLEL or processors != 1)):
        raise ModelError(f"projection is 'fixed', or 'body' for {' and '.join(PARALLEL)} on 1 processor, "
                         f"not {projection!r} for {method!r} on {processors!r}")
    from bunraku.massmatrix import count, parallel_run

    if processors == 1:
        return count(method, n, projection)
    _check_parallel(method, processors)
    return parallel_run(method, n, str(processors)).operations


def _check_parallel(method, processors):
    if processors not in PROCESSORS[1:]:
        raise ModelError(f"processors is one of {', '.join(map(repr, PROCESSORS))}, not {processors!r}")
    if method not in PARALLEL:
        raise ModelError(f"the parallel algorithms are for {' and '.join(PARALLEL)}, not for {method!r}")


def _states(mechanism, q):
    _, (q,) = aligned(("q", q, mechanism.nq))
    if q.ndim == 1 and not np.isfinite(q).all():
        refuse(mechanism.plan(), q, {})
    return q


def _chain(mechanism: Mechanism, method: str) -> Chain:
    """The mechanism as a serial chain; an error with the remedy if it is not one."""
    from bunraku.massmatrix.serial_chain import Unsuitable, chain_of

    plan = as_mechanism(mechanism).plan()
    try:
        return chain_of(plan)
    except Unsuitable as error:
        link = mechanism.links[plan.body_link[error.body]]
        what = f"link {link.name!r}" if error.branches else f"joint {link.joint_name!r} ({type(link.joint).__name__})"
        raise ModelError(f"method {method!r} is for serial chains of revolute and prismatic joints, but {what} "
                         f"{error}; method='auto' works for all mechanisms") from None


def _with_armature(mechanism, q, M):
    # M does not depend on the angle of the first joint, so q is checked too
    finite = np.isfinite(M).all(axis=(-2, -1)) & np.isfinite(q).all(axis=-1)
    diagonal = np.arange(mechanism.nv)
    M[..., diagonal, diagonal] += mechanism.plan().dof_f[f.ARMATURE]
    if not finite.all():
        if q.ndim == 1:
            refuse(mechanism.plan(), q, {})
        refuse(mechanism.plan(), q, {}, ~finite, M)
    return M
