"""Assembly and disassembly in the symbols of [YN02]: short and slow, nothing shared with the package.

A subchain is known by the accelerations of its handles, the places where joints that are not yet added will act on it:

    r'' = b + Lambda F          F: forces on the handles                                    [YN02, eqs. 38-39]

Forces and accelerations are spatial (linear, angular). J takes those of a link to the frame of a joint on its child
side. A joint's force F acts on its child side, -F on its parent side; so D takes handles to differences, child side
less parent side, where [YN02, sec. 3.2] reverses the parent's motion and adds. K_C S = 0 and K_J S = 1 for the joint's
free directions S. The ground is a link with Lambda = 0. Gamma may be singular [YN02, sec. 4.3]: forces along its null
space are indeterminate and left at zero; accelerations wanted there are an error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

GROUND, PARENT, CHILD = -1, -1, 1
RANK = 1e-10  # eigenvalues of Gamma below this part of the largest are zero


class Link(NamedTuple):
    M: np.ndarray     # (6, 6)
    c: np.ndarray     # (6,) velocity products less weight: M theta'' + c = forces [YN02, eq. 3], [YN-HRP, eq. 4]


class Joint(NamedTuple):
    p: int            # link on the parent side, or GROUND
    c: int            # link on the child side, or GROUND
    J: np.ndarray     # (6, 6) motion of either link in the joint's frame [YN02, eq. 4], [YN-HRP, eq. 3]
    K_C: np.ndarray   # (N_C, 6) [YN02, eq. 1], [YN-HRP, eq. 1]
    K_J: np.ndarray   # (N_F, 6) [YN02, eq. 2], [YN-HRP, eq. 2]
    h: np.ndarray     # (6,) relative acceleration at q'' = 0 [YN02, eq. 5]
    tau: np.ndarray   # (N_F,)


class Subchain(NamedTuple):
    handles: list               # (joint, PARENT or CHILD)
    Lambda: np.ndarray          # (6n, 6n)
    b: np.ndarray               # (6n,)
    last: Step | None = None    # how it was assembled; None: a link


class Step(NamedTuple):
    """Joints added at once, and what disassembly needs of the subchains they were added to."""

    added: list[int]
    before: list[Subchain]
    Lambda: np.ndarray
    b: np.ndarray
    D: np.ndarray
    rest: np.ndarray            # components of b that belong to other joints
    P: np.ndarray
    K_C: np.ndarray
    K_J: np.ndarray
    h: np.ndarray
    tau: np.ndarray

    def force(self, b) -> np.ndarray:
        """On the child sides, if the handles have the accelerations b without these joints."""
        Gamma = self.K_C @ self.P @ self.K_C.T                                # [YN02, eqs. 36, 58]
        demand = self.K_C @ (self.h - self.D @ b - self.P @ (self.K_J.T @ self.tau))
        f = pseudo_inverse(Gamma) @ demand          # [YN02, eq. 36], [YN-HRP, eq. 7]; [YN02, eq. 57] with its sign
        if np.abs(Gamma @ f - demand).max(initial=0.0) > 1e-7 * max(1.0, np.abs(demand).max(initial=0.0)):
            raise ValueError("inconsistent constraints")                      # [YN02, sec. 4.3]
        return self.K_C.T @ f + self.K_J.T @ self.tau                         # [YN02, eq. 3], [YN-HRP, eqs. 5-6]


def pseudo_inverse(Gamma) -> np.ndarray:
    return np.linalg.pinv(Gamma, RANK, hermitian=True)


def free_link(k: int, links: list[Link], joints: list[Joint]) -> Subchain:
    handles = [(i, side) for i, joint in enumerate(joints) for side in (PARENT, CHILD)
               if (joint.p if side == PARENT else joint.c) == k]
    J = np.vstack([np.empty((0, 6)), *(joints[i].J for i, _ in handles)])
    if k == GROUND:
        return Subchain(handles, np.zeros((len(J), len(J))), np.zeros(len(J)))
    Phi = np.linalg.inv(links[k].M)
    return Subchain(handles, J @ Phi @ J.T, -J @ Phi @ links[k].c)            # [YN02, eqs. 14-15]; eqs. 39, 49


def assemble(added: list[int], before: list[Subchain], joints: list[Joint]) -> Subchain:
    """Add joints: one or several at once between two subchains, or within one [YN02, secs. 4.1, 4.3]."""
    handles = [handle for part in before for handle in part.handles]
    Lambda = block_diag(*(part.Lambda for part in before))                    # zero between A and B
    b = np.concatenate([part.b for part in before])
    D = np.zeros((6 * len(added), len(b)))                                    # [YN02, eqs. 16-17, 56]
    for n, (i, side) in enumerate(handles):
        if i in added:
            D[6 * added.index(i):][:6, 6 * n:6 * n + 6] = side * np.eye(6)
    rest = np.repeat([i not in added for i, _ in handles], 6)
    K_C, K_J = (block_diag(*(getattr(joints[i], name) for i in added)) for name in ("K_C", "K_J"))
    h, tau = (np.concatenate([getattr(joints[i], name) for i in added]) for name in ("h", "tau"))
    P = D @ Lambda @ D.T                                  # Lambda_A + Lambda_B; within one subchain [YN02, eqs. 59-60]
    step = Step(added, before, Lambda, b, D, rest, P, K_C, K_J, h, tau)
    W = K_C.T @ pseudo_inverse(K_C @ P @ K_C.T) @ K_C
    E = Lambda[rest] @ D.T                                                    # of handles that stay, to joint i
    return Subchain([handle for handle in handles if handle[0] not in added],
                    Lambda[rest][:, rest] - E @ W @ E.T,                      # [YN02, eq. 50]
                    b[rest] + E @ step.force(b), step)                        # [YN02, eq. 38]


def disassemble(chain: Subchain, F_handles: np.ndarray, joints: list[Joint], F: dict, qdd: dict) -> None:
    """Forces and accelerations of all joints of a subchain, given the final forces on its handles."""
    s = chain.last
    if s is None:
        return
    forces = s.force(s.b + s.Lambda[:, s.rest] @ F_handles)                   # [YN02, eq. 51]
    on_handles = s.D.T @ forces
    on_handles[s.rest] = F_handles
    r = s.b + s.Lambda @ on_handles                                           # [YN02, eq. 52]
    rates = s.K_J @ (s.D @ r - s.h)                                           # [YN02, eq. 53]
    F |= zip(s.added, forces.reshape(-1, 6), strict=True)
    qdd |= zip(s.added, np.split(rates, np.cumsum([len(joints[i].K_J) for i in s.added])[:-1]), strict=True)
    ends = np.cumsum([len(part.b) for part in s.before])[:-1]
    for part, share in zip(s.before, np.split(on_handles, ends), strict=True):
        disassemble(part, share, joints, F, qdd)


def forward_dynamics(links: list[Link], joints: list[Joint], schedule: list[list[int]]) -> tuple[dict, dict]:
    """{joint: force on its child side}, {joint: q''}; `schedule` lists the joints that each step adds at once."""
    F: dict = {}
    qdd: dict = {}
    for chain in assembled(links, joints, schedule):
        disassemble(chain, np.zeros(len(chain.b)), joints, F, qdd)
    return F, qdd


def assembled(links: list[Link], joints: list[Joint], schedule: list[list[int]]) -> list[Subchain]:
    chains = {k: free_link(k, links, joints) for k in range(GROUND, len(links))}  # by one of their links
    owner = {k: k for k in chains}
    for added in schedule:
        ends = sorted({owner[k] for i in added for k in (joints[i].p, joints[i].c)})
        chains[ends[0]] = assemble(added, [chains.pop(k) for k in ends], joints)
        owner = {k: ends[0] if own in ends else own for k, own in owner.items()}
    return list(chains.values())
