"""Forward and inverse dynamics and the forces in joints, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy import empty

from bunraku.errors import ModelError, NamingError, ShapeError
from bunraku.evaluate.kinematics import kinematics
from bunraku.mechanism import Mechanism
from bunraku.plan import fields as f
from bunraku.run import forward, inverse, reference
from bunraku.run.forward import forward_plain
from bunraku.run.states import as_array, as_floats

METHODS = ("auto", "aba", "unit_vector")


def forward_dynamics(mechanism: Mechanism, q, v, tau=None, *, external: Mapping | None = None,
                     prescribed: Mapping | None = None, passive: bool = True, method: str = "auto",
                     workers: int | None = None) -> np.ndarray:
    """Accelerations: the time derivative of v's components, of one state or a batch.

    external    {link: (fx, fy, fz, mx, my, mz)} at the link frame's origin in world axes, (6,) or (B, 6)
    prescribed  {joint: acceleration} in place of the joint's torque
    passive     springs, dampers, limits and armature act
    method      "auto", "aba" (articulated bodies, O(N)) or "unit_vector" (the O(N^3) reference)
    workers     threads for a batch; by default as many as there are cores
    """
    if external is None and prescribed is None and passive and (method == "auto" or method == "aba"):
        # One state of a plain mechanism: straight to compiled code, which refuses whatever is not simple
        plan = mechanism._plan
        if plan is None:
            plan = mechanism.plan()
        try:
            if q.ndim == 1 and not mechanism.springs:
                a = empty(plan.nv)
                if forward_plain.call(plan.body_i, plan.body_f, plan.dof_f, q, v,
                                      plan.zero_tau if tau is None else tau, a) == 0:
                    return a
        except (AttributeError, TypeError):
            pass
    if method not in METHODS:
        raise ModelError(f"method {method!r} is not one of {', '.join(METHODS)}")
    plan = mechanism.plan(None if passive else "bare")
    if prescribed:
        plan, tau = _prescribe(mechanism, plan, passive, tau, prescribed)
    pushed = _external(mechanism, external)
    if method == "unit_vector":
        if prescribed:
            raise ModelError("the unit-vector method takes torques only; use method='aba' with prescribed joints")
        return reference.forward_dynamics(mechanism, plan, q, v, tau, pushed, workers)
    return forward.forward_dynamics(mechanism, plan, q, v, tau, pushed, workers)


def inverse_dynamics(mechanism: Mechanism, q, v, a, *, external: Mapping | None = None, passive: bool = True,
                     workers: int | None = None) -> np.ndarray:
    """Torques that give the accelerations a; arguments as in `forward_dynamics`."""
    plan = mechanism.plan(None if passive else "bare")
    return inverse.inverse_dynamics(mechanism, plan, q, v, a, _external(mechanism, external), workers)


def joint_forces(mechanism: Mechanism, q, v, tau=None, *, external: Mapping | None = None) -> dict[str, np.ndarray]:
    """{joint: (force, moment)}: the total wrench each joint passes to its child link.

    Six numbers, or (B, 6), at the joint frame's origin in child-side axes, drive and passive forces included.
    """
    return dynamics(mechanism, q, v, tau, external=external).forces


@dataclass(frozen=True)
class Report:
    """About the loop constraints: how many, how many of them independent, and the condition of their solution."""

    constraints: int
    rank: int
    condition: float


@dataclass(frozen=True)
class Dynamics:
    """What one evaluation knows."""

    a: np.ndarray                     # accelerations
    forces: dict[str, np.ndarray]     # of every joint: see `joint_forces`
    links: dict[str, np.ndarray]      # of every link: acceleration of its frame (linear, angular), world axes
    report: Report


def dynamics(mechanism: Mechanism, q, v, tau=None, *, external: Mapping | None = None) -> Dynamics:
    """Accelerations, joint forces and link accelerations at once."""
    a = forward_dynamics(mechanism, q, v, tau, external=external)
    apart = mechanism.plan("apart")
    _, passed = inverse.inverse_dynamics(mechanism, apart, q, v, a, _external(mechanism, external), None, wrenches=True)
    moved = kinematics(mechanism, q, v, a)
    return Dynamics(a, _joint_wrenches(mechanism, apart, passed), moved.accelerations, Report(0, 0, 1.0))


def _joint_wrenches(mechanism, plan, passed) -> dict[str, np.ndarray]:
    """From wrenches at body origins in body axes to wrenches at link origins in link axes."""
    passed = passed.reshape(*passed.shape[:-1], plan.bodies, 6)
    wrenches = {}
    for k, link in enumerate(mechanism.links):
        body = plan.link_i[k, f.LINK_BODY]
        R = plan.link_f[k, f.LINK_ROTATION:f.LINK_ROTATION + 9].reshape(3, 3)
        offset = plan.link_f[k, f.LINK_OFFSET:f.LINK_OFFSET + 3]
        force, moment = passed[..., body, :3], passed[..., body, 3:]
        wrenches[link.joint_name] = np.concatenate([force @ R, (moment - np.cross(offset, force)) @ R], axis=-1)
    return wrenches


def _external(mechanism, external):
    """{link: wrench} as an array of 6 per link, with a leading axis if any is a batch; None for nothing."""
    if not external:
        if external is not None and not isinstance(external, Mapping):
            raise ShapeError("external must be a dictionary {link: (fx, fy, fz, mx, my, mz)}")
        return None
    if not isinstance(external, Mapping):
        raise ShapeError("external must be a dictionary {link: (fx, fy, fz, mx, my, mz)}")
    values = {}
    for name, wrench in external.items():
        link = mechanism._find_link(name, "external")
        if link < 0:
            raise NamingError("external: a force on the ground has no effect; name a link")
        array = as_array(f"external: the wrench on {name!r}", wrench)
        if array.ndim not in (1, 2) or array.shape[-1] != 6:
            raise ShapeError(f"external: the wrench on {name!r} has shape {array.shape}; it must be (6,) or (B, 6)")
        values[link] = array
    batches = {array.shape[0] for array in values.values() if array.ndim == 2}
    if len(batches) > 1:
        raise ShapeError(f"external: batches of different size: {sorted(batches)}")
    shape = (batches.pop(),) if batches else ()
    out = np.zeros((*shape, 6 * len(mechanism.links)))
    for link, array in values.items():
        out[..., 6 * link:6 * link + 6] = array
    return out


def _prescribe(mechanism, plan, passive, tau, prescribed):
    """A plan with the named joints driven by acceleration, and tau with the accelerations in their places."""
    if not isinstance(prescribed, Mapping):
        raise ShapeError("prescribed must be a dictionary {joint: acceleration}")
    tau = plan.zero_tau.copy() if tau is None else as_floats("tau", tau, plan.nv).copy()
    links = set()
    for name, value in prescribed.items():
        where = mechanism.v_slice(name)
        width = where.stop - where.start
        links.add(mechanism._find_joint(name))
        array = as_array(f"prescribed: the acceleration of {name!r}", value)
        if array.ndim == 0 and width == 1:
            array = array[None]
        if array.ndim == 1 and width == 1 and array.shape[0] != 1:
            array = array[:, None]
        if array.ndim not in (1, 2) or array.shape[-1] != width:
            raise ShapeError(f"prescribed: the acceleration of {name!r} has shape {array.shape}; "
                             f"it must be ({width},) or (B, {width})")
        if array.ndim == 2 and tau.ndim == 1:
            tau = np.tile(tau, (array.shape[0], 1))
        if array.ndim == 2 and array.shape[0] not in (1, tau.shape[0]):
            raise ShapeError(f"prescribed: {name!r} holds {array.shape[0]} states where the others hold {tau.shape[0]}")
        tau[..., where] = array
    key = ("locked", passive, frozenset(links))
    if key not in mechanism._variants:
        mechanism._variants[key] = plan.with_locked(links)
    return mechanism._variants[key], tau
