"""Factors of small symmetric matrices in compiled functions: M = L L^T, in place, and triangular solutions.

Cost n^3 / 6. For user functions: plain Python that Numba may compile.
"""

import math

from numba.extending import register_jitable


@register_jitable
def factorise(M, least):
    """L in the lower triangle of M. A pivot below `least` of its diagonal entry counts as infinite: its direction is
    left out."""
    n = M.shape[0]
    for j in range(n):
        size = M[j, j]
        for k in range(j):
            size -= M[j, k] * M[j, k]
        if size <= least * M[j, j]:
            size = math.inf
        M[j, j] = math.sqrt(size)
        for i in range(j + 1, n):
            x = M[i, j]
            for k in range(j):
                x -= M[i, k] * M[j, k]
            M[i, j] = x / M[j, j]


@register_jitable
def forward_substitution(L, x):
    """x <- L^-1 x"""
    for i in range(x.shape[0]):
        y = x[i]
        for k in range(i):
            y -= L[i, k] * x[k]
        x[i] = y / L[i, i]


@register_jitable
def back_substitution(L, x):
    """x <- L^-T x"""
    n = x.shape[0]
    for back in range(n):
        i = n - 1 - back
        y = x[i]
        for k in range(i + 1, n):
            y -= L[k, i] * x[k]
        x[i] = y / L[i, i]
