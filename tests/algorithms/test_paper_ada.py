"""Assembly and disassembly as [YN02] writes it agrees with the kernels and with the dense solution, in any order."""

import numpy as np
import pytest

import bunraku as bk
import closed_oracle
import oracle
import paper_ada
from closed import random_closed, random_planar
from oracle import close, close_forces
from paper_dense import Dense
from paper_terms import paper_terms, random_schedule
from structures import KINDS


def solved(closed, links, joints, schedule):
    """Joint accelerations and {joint or connection: force on its child side}, by the paper's algebra."""
    F, qdd = paper_ada.forward_dynamics(links, joints, schedule)
    names = [*(part.joint_name for part in closed.parts), *(tie.name for tie in closed.ties)]
    return (np.concatenate([qdd[i] for i in range(len(closed.parts))]),
            {name: F[i] for i, name in enumerate(names)})


def case(seed, **options):
    closed = random_closed(seed, massless=False, **options)
    rng = np.random.default_rng(seed)
    v, tau = closed.motion(rng)
    return closed, v, tau, rng, *paper_terms(closed, closed.q, v, tau)


@pytest.mark.parametrize("seed", range(12))
def test_any_joints_in_any_order_give_the_motion_and_every_force(seed):
    closed, v, tau, rng, links, joints = case(seed)
    dense = closed_oracle.solve(closed, closed.q, v, tau)
    a = bk.forward_dynamics(closed.m, closed.q, v, tau)
    for _ in range(3):
        qdd, forces = solved(closed, links, joints, random_schedule(rng, joints))
        close(qdd, dense.a, 1e-9)
        close(qdd, a, 1e-9)
        close_forces(forces, dense.forces, 1e-9)
        close_forces(forces, bk.joint_forces(closed.m, closed.q, v, tau), 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_one_kind_of_joint_throughout(kind):
    closed, v, tau, rng, links, joints = case(3, kinds=(kind, "free"), links=6)
    qdd, forces = solved(closed, links, joints, random_schedule(rng, joints))
    dense = closed_oracle.solve(closed, closed.q, v, tau)
    close(qdd, dense.a, 1e-9)
    close_forces(forces, dense.forces, 1e-9)


def test_both_ways_to_close_a_loop_agree():
    """[YN02, sec. 4.3]: a joint within one subchain, and several joints at once between two."""
    closed, v, tau, _, links, joints = case(5, links=6, ties=2, chain=True)
    one_by_one = [[i] for i in range(len(joints))]
    last = len(closed.parts) - 1
    within = {i for i, joint in enumerate(joints) if last not in (joint.p, joint.c)}
    together = [[i] for i in sorted(within)] + [[i for i in range(len(joints)) if i not in within]]
    first, second = (solved(closed, links, joints, order) for order in (one_by_one, together))
    close(first[0], second[0], 1e-9)
    close_forces(first[1], second[1], 1e-9)


def test_indeterminate_forces_leave_the_motion_alone():
    closed = random_planar(2)
    v, tau = closed.motion(np.random.default_rng(0))
    links, joints = paper_terms(closed, closed.q, v, tau)
    for seed in range(3):
        qdd, _ = solved(closed, links, joints, random_schedule(np.random.default_rng(seed), joints))
        close(qdd, bk.forward_dynamics(closed.m, closed.q, v, tau), 1e-7)


def test_contradicting_constraints_are_an_error():
    closed = random_planar(2)
    v, tau = closed.motion(np.random.default_rng(0))
    links, joints = paper_terms(closed, closed.q, v, tau)
    joints[-1] = joints[-1]._replace(h=joints[-1].h + 1.0)  # out of the plane
    with pytest.raises(ValueError, match="inconsistent"):
        paper_ada.forward_dynamics(links, joints, [[i] for i in range(len(joints))])


@pytest.mark.parametrize("seed", range(4))
def test_the_stacked_equations_give_the_same_forces(seed):
    """[YN02, sec. 3.3]: one linear system for the whole chain; tree joints hold no constraint twice here."""
    closed, _, _, rng, links, joints = case(seed)
    dense = Dense(range(len(links)), range(len(joints)), links, joints)
    F, _ = paper_ada.forward_dynamics(links, joints, random_schedule(rng, joints))
    apart = np.split(dense.forces(), np.cumsum([len(joint.K_C) for joint in joints])[:-1])
    expected = {i: joints[i].K_C.T @ f + joints[i].K_J.T @ joints[i].tau for i, f in enumerate(apart)}
    close_forces(dict(sorted(F.items())), expected, 1e-9)
    theta = dense.accelerations()
    close(dense.H @ theta, -dense.h, 1e-9)                                          # [YN02, eqs. 6, 13, 24-26, 28, 55]
    answer = closed_oracle.solve(closed, closed.q, *case(seed)[1:3])
    at = oracle.motion(closed, closed.q, case(seed)[1])
    for k, where in dense.place.items():                                            # of the link frames' origins
        spin, w = theta[where][3:], at.velocity[k, 3:]
        v_O = at.velocity[k, :3] - np.cross(w, at.x[k])
        linear = theta[where][:3] + np.cross(spin, at.x[k]) + np.cross(w, v_O + np.cross(w, at.x[k]))
        close(np.concatenate([linear, spin]), answer.links[k], 1e-8)                # [YN02, eq. 37]


def test_lambda_is_phi_seen_from_the_handles():
    """Lambda of an assembled subchain, and the blocks of Phi before and after a joint."""
    _, _, _, _, links, joints = case(7, links=7, ties=1, kinds=("revolute", "spherical"), chain=True, grounded=False)
    tree = [i for i in range(1, 7) if joints[i].p >= 0]
    joint = tree[3]
    below = {joints[joint].c}
    for i in tree:                                                                   # parents come first
        below |= {joints[i].c} if joints[i].p in below else set()
    members = {"A": sorted(set(range(7)) - below), "B": sorted(below)}
    inside = {name: [i for i in tree if {joints[i].p, joints[i].c} <= set(part)] for name, part in members.items()}
    A, B = (Dense(members[name], inside[name], links, joints) for name in "AB")
    C = Dense([*members["A"], *members["B"]], [*inside["A"], *inside["B"], joint], links, joints)
    K_C, J = joints[joint].K_C, joints[joint].J
    H_A, H_B = np.zeros((len(K_C), len(A.M))), np.zeros((len(K_C), len(B.M)))
    H_A[:, A.place[joints[joint].p]], H_B[:, B.place[joints[joint].c]] = -K_C @ J, K_C @ J
    Gamma = H_A @ A.Phi @ H_A.T + H_B @ B.Phi @ H_B.T
    S_A, S_B = A.H @ A.M_inverse @ H_A.T, B.H @ B.M_inverse @ H_B.T
    S_i = H_A @ A.M_inverse @ H_A.T + H_B @ B.M_inverse @ H_B.T
    zero = np.zeros((len(A.S), len(B.S)))
    close(C.S, np.block([[A.S, zero, S_A], [zero.T, B.S, S_B], [S_A.T, S_B.T, S_i]]), 1e-12)   # [YN02, eq. 42]
    inverse, A_i, B_i = np.linalg.inv(Gamma), np.linalg.solve(A.S, S_A), np.linalg.solve(B.S, S_B)
    close(np.linalg.inv(C.S), np.block([                                             # [YN02, eq. 43]
        [np.linalg.inv(A.S) + A_i @ inverse @ A_i.T, A_i @ inverse @ B_i.T, -A_i @ inverse],
        [B_i @ inverse @ A_i.T, np.linalg.inv(B.S) + B_i @ inverse @ B_i.T, -B_i @ inverse],
        [-inverse @ A_i.T, -inverse @ B_i.T, inverse]]), 1e-9)
    blocks = np.block([[A.Phi - A.Phi @ H_A.T @ np.linalg.solve(Gamma, H_A @ A.Phi),    # [YN02, eq. 45]
                        -A.Phi @ H_A.T @ np.linalg.solve(Gamma, H_B @ B.Phi)],          # [YN02, eq. 46]
                       [-B.Phi @ H_B.T @ np.linalg.solve(Gamma, H_A @ A.Phi),
                        B.Phi - B.Phi @ H_B.T @ np.linalg.solve(Gamma, H_B @ B.Phi)]])  # [YN02, eq. 47]
    close(blocks, C.Phi, 1e-10)                                                      # [YN02, eq. 44]
    steps = [[i] for i in (*inside["B"], *inside["A"], joint)]
    (chain,) = [x for x in paper_ada.assembled(links, joints, steps) if x.last and joint in x.last.added]
    seen = [(joints[i].J, C.place[joints[i].p if side == paper_ada.PARENT else joints[i].c])
            for i, side in chain.handles]
    close(chain.Lambda, np.block([[J_m @ C.Phi[m, n] @ J_n.T for J_n, n in seen] for J_m, m in seen]),
          1e-10)                                                                     # [YN02, eqs. 39, 48-49]
