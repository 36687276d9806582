"""Velocities after a connection as [YN99, sec. 4.3] writes them: dense formulas, nothing shared with the package."""

from __future__ import annotations

import numpy as np


def two_chains(A_1, A_2, J_1, J_2, J_n, rate_1, rate_2):
    """Changes of the generalised velocities of two chains that a new joint connects; J_n (6, p), p may be 0."""
    v = J_1 @ rate_1 - J_2 @ rate_2                                                            # [YN99, eq. 19]
    B = J_1 @ np.linalg.solve(A_1, J_1.T) + J_2 @ np.linalg.solve(A_2, J_2.T)                  # [YN99, eq. 17]
    F = np.linalg.solve(B, v - free_part(B, J_n) @ v)
    return -np.linalg.solve(A_1, J_1.T @ F), np.linalg.solve(A_2, J_2.T @ F)                   # [YN99, eqs. 15-16]


def one_chain(A, J_1, J_2, J_n, rate):
    """The same where both links are in one chain; [YN99, eq. 21] with (J_1 - J_2)^T in the place of J_1^T."""
    v = (J_1 - J_2) @ rate                                                                     # [YN99, eq. 24]
    B = (J_1 - J_2) @ np.linalg.solve(A, (J_1 - J_2).T)                                        # [YN99, eq. 22]
    return -np.linalg.solve(A, (J_1 - J_2).T @ np.linalg.solve(B, v - free_part(B, J_n) @ v))  # [YN99, eq. 21]


def free_part(B, J_n) -> np.ndarray:
    """C, zero for a rigid connection [YN99, eqs. 18, 23]."""
    if not J_n.shape[1]:
        return np.zeros_like(B)
    return J_n @ np.linalg.solve(J_n.T @ np.linalg.solve(B, J_n), np.linalg.solve(B, J_n).T)
