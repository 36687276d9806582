"""Error messages for states without finite accelerations, torques or poses: the joint, and the remedy."""

from __future__ import annotations

import numpy as np

from bunraku.errors import StateError
from bunraku.plan import fields as f
from bunraku.tolerances import NOT_MOVABLE, OWN_INERTIA


def explain(plan, q, inputs: dict[str, np.ndarray]) -> str:
    """Error text for a state without a finite solution: the joint, and the remedy. `inputs` are other (nv,) arrays."""
    bad = np.flatnonzero(~np.isfinite(q))
    if bad.size:
        return (f"q[{bad[0]}] of joint {plan.names[plan.coordinate_link[bad[0]]][1]!r} is {q[bad[0]]}; "
                "it must be finite")
    for name, values in inputs.items():
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size and name == "external":
            return (f"the external force on link {plan.names[bad[0] // 6][0]!r} holds {values[bad[0]]}; "
                    "it must be finite")
        if bad.size:
            return (f"{name}[{bad[0]}] of joint {plan.names[plan.dof_link[bad[0]]][1]!r} is {values[bad[0]]}; "
                    "it must be finite")
    for row, link in zip(plan.body_i[:-1], plan.body_link, strict=True):
        if row[f.KIND] in (f.SPHERICAL, f.FREE):
            k = row[f.Q_INDEX] + (3 if row[f.KIND] == f.FREE else 0)
            if not np.sum(q[k:k + 4] ** 2) > 0.0:
                return (f"the quaternion of joint {plan.names[link][1]!r} (q[{k}:{k + 4}]) is zero; "
                        "use (1, 0, 0, 0) for zero rotation")
    if plan.nv <= 2000:
        from bunraku.entries.mass_matrix_entries import matrix_one

        matrix = np.empty((plan.nv, plan.nv))
        matrix_one.call(plan.arrays, q, matrix)
        if not np.isfinite(matrix).all():
            return "the numbers overflow; check for huge values"
        felt = np.abs(np.diag(matrix))  # where nothing is felt, rounding leaves a trace of the links' own inertia
        links_own = np.abs(plan.body_f[:-1, f.INERTIA:f.INERTIA + 6]).max(initial=0.0)
        scale = np.sqrt(np.maximum(felt, OWN_INERTIA * max(felt.max(), links_own) + 1e-300))
        values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
        if values[0] < NOT_MOVABLE:
            link, joint = plan.names[plan.dof_link[np.argmax(np.abs(vectors[:, 0]) / scale)]]
            return (f"joint {joint!r} has no inertia to move in this pose (link {link!r}); "
                    "give the link inertia about that axis, or the joint an armature")
    return "the numbers overflow or lose all digits; check for huge values or extreme ratios of mass"


def refuse_not_finite(plan, q, inputs: dict[str, np.ndarray]) -> None:
    """Raise the StateError of a state with NaN or infinity, or of all such states of a batch."""
    every = {"q": q, **inputs}
    if all(np.isfinite(values).all() for values in every.values()):
        return
    batch = max((len(x) for x in every.values() if x.ndim == 2), default=0)
    if not batch:
        refuse(plan, q, inputs)
    every = {name: np.broadcast_to(x, (batch, x.shape[-1])) for name, x in every.items()}
    bad = ~np.logical_and.reduce([np.isfinite(x).all(axis=1) for x in every.values()])
    refuse(plan, every.pop("q"), every, bad)


def refuse(plan, q, inputs, bad=None, result=None):
    """Raise the StateError of a failing state, or of all failing states of a batch."""
    if bad is None:
        raise StateError(explain(plan, q, inputs), result=result)
    raise StateError(f"{several(bad, lambda k: explain(plan, q[k], {n: x[k] for n, x in inputs.items()}))}",
                     states=np.flatnonzero(bad).tolist(), result=result)


def several(bad, reason, what: str = "have no finite solution") -> str:
    """Error text for the failed states of a batch: their number, and `reason(k)` of the first five. `bad`: a flag for
    each state."""
    states = np.flatnonzero(bad)
    listed = "\n  ".join(f"state {k}: {reason(k)}" for k in states[:5])
    more = f" (and {len(states) - 5} more)" if len(states) > 5 else ""
    return f"{len(states)} of {len(bad)} states {what}; the others are in `.result`\n  {listed}{more}"
