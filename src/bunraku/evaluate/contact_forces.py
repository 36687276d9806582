"""Accelerations with contact, and the forces of contacts, at given states."""

from __future__ import annotations

import threading
import weakref

import numpy as np

from bunraku.checks import aligned
from bunraku.contact import fields as c
from bunraku.contact.fields import NO_SOLUTION
from bunraku.contact.memory import ACTIVE, FULL, ROW, ROWS, STATUS, WORST
from bunraku.entries import closed
from bunraku.entries.explain import refuse
from bunraku.entries.signatures import FINE
from bunraku.errors import ContactError, ModelError
from bunraku.evaluate.contacts import MARGIN, Contacts
from bunraku.evaluate.touching import SLOW, TOO_DEEP, Touching
from bunraku.mechanism import Mechanism
from bunraku.simulate.contact_motion import APPROACHING, DIRECT, contact_solve

IMPACT = 1e-3
"""[m/s] Closed contacts that approach faster are an impact: forces are no answer to it."""
LIMITS = np.array([TOO_DEEP, SLOW, IMPACT])

_known: weakref.WeakKeyDictionary[Mechanism, threading.local] = weakref.WeakKeyDictionary()


def touching_of(mechanism: Mechanism, locked=frozenset()) -> Touching:
    """The memory of contact of a mechanism in this thread."""
    known = _known.setdefault(mechanism, threading.local()).__dict__
    made = known.get(locked)
    if made is None or made.plan is not mechanism.touching_plan(locked):
        made = known[locked] = Touching(mechanism, locked)
    return made


def contact_forces(mechanism: Mechanism, q, v, tau, external, prescribed):
    """(accelerations, contacts with forces) of one state, or (B, nv) and a list of a batch."""
    from bunraku.evaluate.dynamics import _prescribe, external_forces

    plan, locked = mechanism.plan(), frozenset()
    if prescribed:
        if any(name in mechanism.connections for name in prescribed):
            raise ModelError("prescribed connections and contact do not go together; prescribe joints")
        _, tau = _prescribe(mechanism, plan, True, tau, prescribed)
        locked = frozenset(mechanism._find_joint(name, "prescribed: ") for name in prescribed)
    pushed = external_forces(mechanism, external)
    if plan.loops is not None:
        tau, drives = closed.split(plan, tau)
        batch, (q, v, tau, drives, pushed) = closed.aligned_states(plan, q, v, tau, drives, pushed)
    else:
        drives = None
        given = [("q", q, plan.nq), ("v", v, plan.nv), ("tau", plan.zero_tau if tau is None else tau, plan.nv)]
        if pushed is not None:
            given.append(("external", pushed, 6 * plan.links))
        batch, found = aligned(*given)
        q, v, tau = found[:3]
        pushed = found[3] if pushed is not None else None
    touching = touching_of(mechanism, locked)
    if batch is None:
        return _one(touching, q, v, tau, drives, pushed)
    parts = [_one(touching, q[k], v[k], tau[k], None if drives is None else drives[k],
                  None if pushed is None else pushed[k]) for k in range(batch)]
    return np.array([a for a, _ in parts]), [contacts for _, contacts in parts]


def _one(touching: Touching, q, v, tau, drives, pushed) -> tuple[np.ndarray, Contacts]:
    touch, plan, a = touching.touch, touching.plan, np.empty(touching.plan.nv)
    q, v, tau = (np.ascontiguousarray(x) for x in (q, v, tau))
    touch.residual[0] = 0.0
    status = contact_solve.call(DIRECT, touching.structure, q, v, tau, plan.nothing if drives is None else drives,
                                plan.nothing if pushed is None else pushed, LIMITS, a, touching.work)
    if status == APPROACHING:
        raise ContactError(f"shapes {touching.pair(int(touch.count[WORST]))} touch and approach each other: an impact, "
                           "which changes velocities at once; bk.Simulation resolves it")
    if touch.count[STATUS] == FULL:
        raise ContactError(touching.full())
    if status != FINE:
        refuse(plan, q, {"v": v, "tau": tau})
    found = touch.found.reshape(-1, c.FOUND)
    deep = int(np.argmin(found[:, c.FOUND_GAP])) if len(found) else 0
    if len(found) and found[deep, c.FOUND_GAP] < -TOO_DEEP:
        touching.refuse_overlap(q, "contact")
    n = int(touch.count[ACTIVE])
    if n and touch.count[STATUS] == NO_SOLUTION:
        raise ContactError(touching.jammed_by(touch.active[:n]))
    forces = np.zeros((len(found), 3))
    axes = touch.rows[:ROWS * n].reshape(n, 3, ROW)[:, :, 3:6]
    forces[touch.active[:n]] = np.einsum("nr,nrx->nx", touch.force[:3 * n].reshape(n, 3), axes)
    return a, Contacts(touching.mechanism, q, found.copy(), MARGIN, forces, touch.modes.copy(),
                       float(touch.residual[0]) if n else 0.0)
