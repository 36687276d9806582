"""Assembly and disassembly as [YN02] writes it agrees with the kernels and with the dense solution, in any order."""

import numpy as np
import pytest

import bunraku as bk
import closed_oracle
import paper_ada
from closed import random_closed, random_planar
from oracle import close, close_forces
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


def dense_phi(chain_links, links, joints, inside):
    """Phi of a subchain and its links' places [YN02, eqs. 40-41]."""
    M = np.zeros((6 * len(chain_links),) * 2)
    place = {k: slice(6 * n, 6 * n + 6) for n, k in enumerate(chain_links)}
    for k, where in place.items():
        M[where, where] = links[k].M
    H = np.zeros((sum(len(joints[i].K_C) for i in inside), len(M)))
    row = 0
    for i in inside:  # [YN02, eqs. 7, 34]
        rows, row = slice(row, row + len(joints[i].K_C)), row + len(joints[i].K_C)
        H[rows, place[joints[i].c]] = joints[i].K_C @ joints[i].J
        H[rows, place[joints[i].p]] = -joints[i].K_C @ joints[i].J
    inverse = np.linalg.inv(M)
    return inverse - inverse @ H.T @ np.linalg.solve(H @ inverse @ H.T, H @ inverse), place


def test_lambda_is_phi_seen_from_the_handles():
    """[YN02, eqs. 39-50]: Lambda of an assembled subchain, and the blocks of Phi before and after a joint."""
    _, _, _, _, links, joints = case(7, links=7, ties=1, kinds=("revolute", "spherical"), chain=True, grounded=False)
    tree = [i for i in range(1, 7) if joints[i].p >= 0]
    joint = tree[3]
    below = {joints[joint].c}
    while True:
        more = {joints[i].c for i in tree if joints[i].p in below} - below
        if not more:
            break
        below |= more
    B, A = sorted(below), sorted(set(range(7)) - below)
    inside = {name: [i for i in tree if {joints[i].p, joints[i].c} <= set(part)] for name, part in (("A", A), ("B", B))}
    Phi_A, at_A = dense_phi(A, links, joints, inside["A"])
    Phi_B, at_B = dense_phi(B, links, joints, inside["B"])
    Phi_C, at_C = dense_phi([*A, *B], links, joints, tree)
    K_C, J = joints[joint].K_C, joints[joint].J
    H_A, H_B = np.zeros((len(K_C), len(Phi_A))), np.zeros((len(K_C), len(Phi_B)))
    H_A[:, at_A[joints[joint].p]], H_B[:, at_B[joints[joint].c]] = -K_C @ J, K_C @ J
    Gamma = H_A @ Phi_A @ H_A.T + H_B @ Phi_B @ H_B.T
    blocks = np.block([[Phi_A - Phi_A @ H_A.T @ np.linalg.solve(Gamma, H_A @ Phi_A),    # [YN02, eq. 45]
                        -Phi_A @ H_A.T @ np.linalg.solve(Gamma, H_B @ Phi_B)],          # [YN02, eq. 46]
                       [-Phi_B @ H_B.T @ np.linalg.solve(Gamma, H_A @ Phi_A),
                        Phi_B - Phi_B @ H_B.T @ np.linalg.solve(Gamma, H_B @ Phi_B)]])  # [YN02, eq. 47]
    close(blocks, Phi_C, 1e-10)                                                          # [YN02, eq. 44]
    steps = [[i] for i in (*inside["B"], *inside["A"], joint)]
    (chain,) = [x for x in paper_ada.assembled(links, joints, steps) if x.last and joint in x.last.added]
    seen = [(joints[i].J, at_C[joints[i].p if side == paper_ada.PARENT else joints[i].c]) for i, side in chain.handles]
    expected = np.block([[J_m @ Phi_C[m, n] @ J_n.T for J_n, n in seen] for J_m, m in seen])  # [YN02, eqs. 48-49]
    close(chain.Lambda, expected, 1e-10)
