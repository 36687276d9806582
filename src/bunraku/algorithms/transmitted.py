"""Forward dynamics of a tree that also gives the wrench each joint transmits, out of the disassembly.

Idea: `aba` in three passes; pass 1 keeps the inertia of each body and the force it needs at zero joint acceleration, so
that pass 3, which has the accelerations, has the force each body needs: f = I a + p. Summed from the tips to the root
it is what the joints transmit, "for free" in [YN02]. Cost: O(bodies), about a third more than `aba`. On a plan
with a body for every link, Fixed joints included.
"""

from bunraku.algorithms.aba import deliver, inward, not_finite
from bunraku.algorithms.outward_pass import outward_over
from bunraku.algorithms.tree import (
    COMPUTE,
    ground_acceleration,
    is_anchor,
    joint_part_size,
    load_pose,
    row3,
    row9,
    store_state,
    unit9,
    zero3,
)
from bunraku.jit import inline, inner
from bunraku.plan import fields as f
from bunraku.spatial.algebra import (
    accumulate3,
    add,
    cross,
    load3,
    load6,
    matTvec,
    scale,
    store3,
    store6,
    store9,
    sub,
    symvec,
)
from bunraku.spatial.scalar import clear, constant, load, store

# Notes of a body: its rotation and position in its group; then inertia, moment, mass and force as in its record
NOTE_POSE, NOTE_INERTIA, NOTE_MOMENT, NOTE_MASS, NOTE_FORCE, NOTES = 0, 12, 18, 21, 22, 28


@inner
def aba_with_wrenches(body_i, body_f, dof_f, link_i, link_f, q, v, tau, wrench, acceleration, joint_wrench, work,
                      notes):
    """As `aba`; `joint_wrench`: 6 per link, the force and moment that its joint passes to it, at the link's origin in
    link axes. `notes`: scratch, NOTES per body."""
    n = body_i.shape[0] - 1
    residue = constant(q, 0.0)
    store_state(work, f.SLOT_STATE, unit9(q), zero3(q), zero3(q), zero3(q), zero3(q), ground_acceleration(body_f, q))
    for i in range(n):  # Pass 1, root to tips
        outward_over(COMPUTE, i, i + 1, body_i, body_f, q, v, tau, wrench, work)
        note(i, body_i, q, work, notes)
    clear(work[:body_i[n, f.HEAD_SLOTS] * f.SLOT_SIZE])
    margin = inward(False, n - 1, 0, body_i, dof_f, tau, work)
    for i in range(n):  # Pass 3, root to tips
        residue = residue + deliver(i, body_i, tau, acceleration, work)
        need(i, body_i, work, notes)
    for back in range(n):  # Pass 4, tips to root: forces summed
        i = n - 1 - back
        transmit(i, body_i, work, notes)
    for k in range(link_i.shape[0]):
        R, r, o = row9(link_f, k, f.LINK_ROTATION), row3(link_f, k, f.LINK_OFFSET), NOTES * link_i[k, f.LINK_BODY]
        turn, x = load_pose(notes, o)
        force, moment = load3(notes, o + NOTE_FORCE + 3), load3(notes, o + NOTE_FORCE)
        moment, force = matTvec(turn, sub(moment, cross(x, force))), matTvec(turn, force)
        moment = sub(moment, cross(r, force))
        store3(joint_wrench, 6 * k, matTvec(R, force))
        store3(joint_wrench, 6 * k + 3, matTvec(R, moment))
        residue = residue + (not_finite(force) + not_finite(moment))
    return margin, residue


@inline
def note(i, body_i, q, work, notes):
    """Copy what the passes after this one overwrite."""
    to, record = NOTES * i, body_i[i, f.BODY_RECORD]
    R, x = load_pose(work, body_i[i, f.OWN_SLOT])
    store9(notes, to + NOTE_POSE, R)
    store3(notes, to + NOTE_POSE + 9, x)
    store6(notes, to + NOTE_INERTIA, load6(work, record + f.REC_INERTIA))
    store3(notes, to + NOTE_MOMENT, load3(work, record + f.REC_MOMENT))
    store(notes, to + NOTE_MASS, load(work, record + f.REC_MASS))
    store6(notes, to + NOTE_FORCE, load6(work, record + f.REC_FORCE))


@inline
def need(i, body_i, work, notes):
    """Add I a to the force that body i needs at zero joint acceleration; both about the group's origin."""
    to, own = NOTES * i, body_i[i, f.OWN_SLOT]
    alpha, a = load3(work, own), load3(work, own + 3)
    h, m = load3(notes, to + NOTE_MOMENT), load(notes, to + NOTE_MASS)
    accumulate3(notes, to + NOTE_FORCE, add(symvec(load6(notes, to + NOTE_INERTIA), alpha), cross(h, a)))
    accumulate3(notes, to + NOTE_FORCE + 3, sub(scale(a, m), cross(h, alpha)))


@inline
def transmit(i, body_i, work, notes):
    """Pass the force that body i and all beyond it need on to its parent, about the origin of the parent's group."""
    parent, o = body_i[i, f.PARENT], NOTES * i + NOTE_FORCE
    if parent >= 0:
        moment, force = load3(notes, o), load3(notes, o + 3)
        if is_anchor(body_i, i):
            part = joint_part_size(body_i[i, f.ELIMINATION], body_i[i, f.DOF])
            moment = add(moment, cross(load3(work, body_i[i, f.BODY_RECORD] + f.REC_JOINT + part), force))
        accumulate3(notes, NOTES * parent + NOTE_FORCE, moment)
        accumulate3(notes, NOTES * parent + NOTE_FORCE + 3, force)
