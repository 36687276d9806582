"""Solutions of M x = b with the sparsity of a tree: M = L^T D L, L with the pattern of the lower triangle of M.

Row by row from the tips to the root no entry appears between joints that M does not relate. Reference: Featherstone
(2005), "Efficient factorization of the joint-space inertia matrix for branched kinematic trees". Cost O(sum of squared
depths) once, O(sum of depths) for each right-hand side. Velocities as in `inverse_derivatives`: in the order of bodies,
`number` has their places in M and in b, `outward` the next one towards the root.
"""

from bunraku.jit import inline, inner
from bunraku.spatial.scalar import constant, load, minimum, store


@inner
def factorise(number, outward, M):
    """Replace the lower triangle of M (nv x nv, by rows) by L, and its diagonal by 1/D; returns the smallest D."""
    nv = number.shape[0]
    least = constant(M, 1e300)
    for back in range(nv):
        k = nv - 1 - back
        row = number[k] * nv
        least = minimum(least, load(M, row + number[k]))
        inverse = 1.0 / load(M, row + number[k])
        store(M, row + number[k], inverse)
        i = outward[k]
        while i >= 0:
            share = load(M, row + number[i]) * inverse
            j = i
            while j >= 0:
                at = number[i] * nv + number[j]
                store(M, at, load(M, at) - share * load(M, row + number[j]))
                j = outward[j]
            store(M, row + number[i], share)
            i = outward[i]
    return least


@inner
def solve(number, outward, L, b, first, count):
    """Replace columns first .. first + count - 1 of b (nv x nv, by rows) by those of M^-1 b."""
    nv = number.shape[0]
    for back in range(nv):  # L^T y = b, tips to root
        k = nv - 1 - back
        row, own = number[k] * nv, number[k] * nv + first
        i = outward[k]
        while i >= 0:
            subtract_row(load(L, row + number[i]), own, number[i] * nv + first, count, b)
            i = outward[i]
    for k in range(nv):  # D L x = y, root to tips
        row, own = number[k] * nv, number[k] * nv + first
        inverse = load(L, row + number[k])
        for c in range(count):
            store(b, own + c, load(b, own + c) * inverse)
        i = outward[k]
        while i >= 0:
            subtract_row(load(L, row + number[i]), number[i] * nv + first, own, count, b)
            i = outward[i]


@inline
def subtract_row(share, source, target, count, b):
    for c in range(count):
        store(b, target + c, load(b, target + c) - share * load(b, source + c))
