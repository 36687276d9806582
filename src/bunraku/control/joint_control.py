"""Controllers in joint coordinates: gravity compensation, PD control, computed torque.

With e = the difference from q to the reference (of quaternions a rotation vector),

    pd:              tau = g(q) + kp e + kd (v_ref - v)                                                             (1)
    computed torque: tau = ID(q, v, a_ref + kp e + kd (v_ref - v)),  so that  e'' + kd e' + kp e = 0                (2)

Torques of joints that are not chosen are zero. Reference: Siciliano et al., Robotics (2009), sec. 8.5. Cost: one
evaluation of inverse dynamics.
"""

from __future__ import annotations

import numpy as np

from bunraku.control.controller import Controller, chosen, gains
from bunraku.control.references import followed, goal_parameters, vector_coordinates
from bunraku.mechanism.mechanism import as_mechanism

OTHER = "the controller was made for a mechanism with another number of velocities"


def gravity_compensation(mechanism, joints=None) -> Controller:
    """Torques of the joints (by default the actuated ones) that hold the mechanism against gravity."""
    on = chosen(mechanism, joints, "gravity_compensation")
    nv = len(on)

    def gravity_compensation(t, q, v, params, tau, model):
        if model.nv != nv:
            raise ValueError(OTHER)
        model.gravity(q, tau)
        for j in range(nv):
            tau[j] *= on[j]
    return Controller(gravity_compensation, {})


def pd(mechanism, kp, kd, goal=None, table=None, joints=None, gravity: bool = True) -> Controller:
    """PD control of joints with gravity compensation, eq. (1).

    kp, kd      a number, or one for each velocity [N m/rad, N m s/rad]; changed by controller["kp"], controller["kd"]
    goal        coordinates, the neutral ones by default; changed by controller["goal"]
    table       (times, coordinates) to follow instead
    joints      names; by default all that are actuated
    gravity     whether gravity is compensated
    """
    m = as_mechanism(mechanism)
    on = chosen(m, joints, "pd")
    reference, rows = goal_parameters(m, goal, table, on, "pd")
    vector, nv, nq = vector_coordinates(m), m.nv, m.nq

    def pd(t, q, v, params, tau, model):
        if model.nv != nv or params.shape[0] < 2 * nv + nq:
            raise ValueError(OTHER)
        q_ref, v_ref, e = np.empty(nq), np.empty(nv), np.empty(nv)
        followed(t, params[2 * nv:], rows, vector, q_ref, v_ref, e)
        model.difference(q, q_ref, e)
        if gravity:
            model.gravity(q, tau)
        for j in range(nv):
            tau[j] = on[j] * tau[j] + params[j] * e[j] + params[nv + j] * (v_ref[j] - v[j])
    return Controller(pd, {"kp": gains("pd: kp", kp, on), "kd": gains("pd: kd", kd, on), **reference})


def computed_torque(mechanism, kp, kd, goal=None, table=None, joints=None) -> Controller:
    """Computed torque, eq. (2): errors decay like those of a unit mass on a spring kp [1/s^2] with a damper kd [1/s].

    Arguments as in `pd`. Joints that are not chosen are assumed to keep their velocities: for joints that nothing else
    drives to do so, such as the base of a floating robot, the law is an approximation.
    """
    m = as_mechanism(mechanism)
    on = chosen(m, joints, "computed_torque")
    reference, rows = goal_parameters(m, goal, table, on, "computed_torque")
    vector, nv, nq = vector_coordinates(m), m.nv, m.nq

    def computed_torque(t, q, v, params, tau, model):
        if model.nv != nv or params.shape[0] < 2 * nv + nq:
            raise ValueError(OTHER)
        q_ref, v_ref, a, e = np.empty(nq), np.empty(nv), np.empty(nv), np.empty(nv)
        followed(t, params[2 * nv:], rows, vector, q_ref, v_ref, a)
        model.difference(q, q_ref, e)
        for j in range(nv):
            a[j] = on[j] * a[j] + params[j] * e[j] + params[nv + j] * (v_ref[j] - v[j])
        model.inverse_dynamics(q, v, a, tau)
        for j in range(nv):
            tau[j] *= on[j]
    return Controller(computed_torque, {"kp": gains("computed_torque: kp", kp, on),
                                        "kd": gains("computed_torque: kd", kd, on), **reference})
