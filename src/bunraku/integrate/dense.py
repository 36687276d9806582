"""Linear equations with a full matrix: Gaussian elimination by rows with partial pivoting."""

from bunraku.jit import inner


@inner
def factor(A, pivots):
    """A <- its factors L U with rows exchanged; False if it is singular."""
    n = A.shape[0]
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(A[i, k]) > abs(A[best, k]):
                best = i
        pivots[k] = best
        if not abs(A[best, k]) > 0.0:
            return False
        if best != k:
            for j in range(n):
                A[k, j], A[best, j] = A[best, j], A[k, j]
        for i in range(k + 1, n):
            if A[i, k] != 0.0:
                m = A[i, k] / A[k, k]
                A[i, k] = m
                for j in range(k + 1, n):
                    A[i, j] -= m * A[k, j]
    return True


@inner
def solve(A, pivots, x):
    """x <- A^-1 x from the factors of A."""
    n = A.shape[0]
    for k in range(n):
        x[k], x[pivots[k]] = x[pivots[k]], x[k]
    for i in range(n):
        total = x[i]
        for j in range(i):
            total -= A[i, j] * x[j]
        x[i] = total
    for i in range(n - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, n):
            total -= A[i, j] * x[j]
        x[i] = total / A[i, i]
