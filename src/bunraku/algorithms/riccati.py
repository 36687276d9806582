"""Backward pass of iterative LQR: changes of controls and feedback gains, from the last step to the first.

With x' = A x + B u + gap for small changes and a cost that is quadratic in them, the cost to go stays quadratic,
1/2 x.V x + s.x, and the best change of the controls within their limits is ahead + gain x:

    Q_x = l_x + A^T s,    Q_u = l_u + B^T s,    with s + V gap in the place of s                                   (1)
    Q_xx = l_xx + A^T V A,    Q_ux = B^T V A,    Q_uu = l_uu + B^T V B                                              (2)
    ahead = argmin 1/2 u.(Q_uu + damping) u + Q_u.u  within limits;   gain = -(Q_uu + damping)^-1 Q_ux of free ones  (3)
    s <- Q_x + gain^T (Q_uu ahead + Q_u) + Q_ux^T ahead                                                             (4)
    V <- Q_xx + gain^T Q_uu gain + gain^T Q_ux + Q_ux^T gain                                                        (5)

References: Tassa, Mansard, Todorov (2014), "Control-limited differential dynamic programming", for (3), whose quadratic
program is solved by projected Newton steps; gaps as in Mastalli et al. (2020). Cost O(n^2 (n + m) + m^3) a step.
"""

import math

import numpy as np

from bunraku.jit import inline, inner

NEWTON_STEPS = 50     # of the quadratic program
SHORTEST = 1e-10      # part of a Newton step that is tried last
SUFFICIENT = 0.1      # part of the decrease that the slope promises
SMALL_SLOPE = 1e-11   # of the slope at the start: solved


@inner
def multiply(A, B, C):
    """C = A B, four rows of B at a time."""
    rows, inner_size, columns = A.shape[0], A.shape[1], B.shape[1]
    for i in range(rows):
        for j in range(columns):
            C[i, j] = 0.0
        k = 0
        while k + 4 <= inner_size:
            a, b, c, d = A[i, k], A[i, k + 1], A[i, k + 2], A[i, k + 3]
            for j in range(columns):
                C[i, j] += a * B[k, j] + b * B[k + 1, j] + c * B[k + 2, j] + d * B[k + 3, j]
            k += 4
        while k < inner_size:
            a = A[i, k]
            for j in range(columns):
                C[i, j] += a * B[k, j]
            k += 1


@inner
def add_transposed_product(A, B, C):
    """C += A^T B."""
    rows, columns, width = A.shape[0], B.shape[1], A.shape[1]
    for i in range(width):
        k = 0
        while k + 4 <= rows:
            a, b, c, d = A[k, i], A[k + 1, i], A[k + 2, i], A[k + 3, i]
            for j in range(columns):
                C[i, j] += a * B[k, j] + b * B[k + 1, j] + c * B[k + 2, j] + d * B[k + 3, j]
            k += 4
        while k < rows:
            a = A[k, i]
            for j in range(columns):
                C[i, j] += a * B[k, j]
            k += 1


@inline
def add_transposed_vector(A, x, y):
    """y += A^T x."""
    for k in range(A.shape[0]):
        a = x[k]
        for j in range(A.shape[1]):
            y[j] += a * A[k, j]


@inner
def factorise_free(H, free, count, L):
    """Cholesky factor of the rows and columns `free` of H; whether it is positive definite."""
    for i in range(count):
        for j in range(i + 1):
            total = H[free[i], free[j]]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j:
                if not total > 0.0:
                    return False
                L[i, i] = math.sqrt(total)
            else:
                L[i, j] = total / L[j, j]
    return True


@inner
def solve_free(L, count, X):
    """X <- (L L^T)^-1 X, for the first `count` rows of X."""
    columns = X.shape[1]
    for i in range(count):
        for k in range(i):
            a = L[i, k]
            for j in range(columns):
                X[i, j] -= a * X[k, j]
        a = 1.0 / L[i, i]
        for j in range(columns):
            X[i, j] *= a
    for back in range(count):
        i = count - 1 - back
        for k in range(i + 1, count):
            a = L[k, i]
            for j in range(columns):
                X[i, j] -= a * X[k, j]
        a = 1.0 / L[i, i]
        for j in range(columns):
            X[i, j] *= a


@inline
def quadratic(H, g, x):
    """1/2 x.H x + g.x"""
    total = 0.0
    for i in range(x.shape[0]):
        row = 0.0
        for j in range(x.shape[0]):
            row += H[i, j] * x[j]
        total += x[i] * (0.5 * row + g[i])
    return total


@inner
def bounded_minimum(H, g, lower, upper, x, slope, trial, column, free, L):
    """x = argmin 1/2 x.H x + g.x within limits, from the x given, by projected Newton steps. Returns how many entries
    are free, whose numbers are in `free` and whose factor is in L; -1 if H is not positive definite there."""
    m = x.shape[0]
    for i in range(m):
        x[i] = min(max(x[i], lower[i]), upper[i])
    count, first = 0, 0.0
    for number in range(NEWTON_STEPS):
        count, size = 0, 0.0
        for i in range(m):
            slope[i] = g[i]
            for j in range(m):
                slope[i] += H[i, j] * x[j]
            if not ((x[i] <= lower[i] and slope[i] > 0.0) or (x[i] >= upper[i] and slope[i] < 0.0)):
                free[count] = i
                size = max(size, abs(slope[i]))
                count += 1
        if not factorise_free(H, free, count, L):
            return -1
        if number == 0:
            first = size
        if size <= SMALL_SLOPE * first:
            return count
        for i in range(count):
            column[i, 0] = -slope[free[i]]
        solve_free(L, count, column)
        before, length = quadratic(H, g, x), 1.0
        while length > SHORTEST:
            along = 0.0
            for i in range(m):
                trial[i] = x[i]
            for i in range(count):
                k = free[i]
                trial[k] = min(max(x[k] + length * column[i, 0], lower[k]), upper[k])
                along += slope[k] * (trial[k] - x[k])
            if quadratic(H, g, trial) <= before + SUFFICIENT * along:
                break
            length *= 0.5
        if length <= SHORTEST:
            return count
        for i in range(m):
            x[i] = trial[i]
    return count


@inline
def scratch_of_pass(n, m):
    """Floats that `backward` needs."""
    return 3 * n * n + 4 * n * m + 3 * m * m + 2 * n + 6 * m


@inner
def backward(A, B, gap, l_x, l_xx, l_u, l_uu, lower, upper, damping, ahead, gain, free, work):
    """Fill ahead (T, m), whose values are the first guess of the quadratic program, and gain (T, m, n). Returns the
    step at which Q_uu + damping is not positive definite; -1 if there is none."""
    steps, n, m = B.shape[0], B.shape[1], B.shape[2]
    at = 0
    V, VA, Q_xx = (work[:n * n].reshape(n, n), work[n * n:2 * n * n].reshape(n, n),
                   work[2 * n * n:3 * n * n].reshape(n, n))
    at = 3 * n * n
    VB, Q_ux, X, Y = (work[at:at + n * m].reshape(n, m), work[at + n * m:at + 2 * n * m].reshape(m, n),
                      work[at + 2 * n * m:at + 3 * n * m].reshape(m, n),
                      work[at + 3 * n * m:at + 4 * n * m].reshape(m, n))
    at += 4 * n * m
    Q_uu, H, L = (work[at:at + m * m].reshape(m, m), work[at + m * m:at + 2 * m * m].reshape(m, m),
                  work[at + 2 * m * m:at + 3 * m * m].reshape(m, m))
    at += 3 * m * m
    s, Q_x = work[at:at + n], work[at + n:at + 2 * n]
    at += 2 * n
    Q_u, slope, trial, left, column = (work[at:at + m], work[at + m:at + 2 * m], work[at + 2 * m:at + 3 * m],
                                       work[at + 3 * m:at + 4 * m], work[at + 4 * m:at + 5 * m].reshape(m, 1))
    for i in range(n):
        s[i] = l_x[steps, i]
        for j in range(n):
            V[i, j] = l_xx[steps, i, j]
    for back in range(steps):
        k = steps - 1 - back
        for i in range(n):  # (1)
            g = gap[k, i]
            if g != 0.0:
                for j in range(n):
                    s[j] += V[i, j] * g
            Q_x[i] = l_x[k, i]
            for j in range(n):
                Q_xx[i, j] = l_xx[k, i, j]
        for i in range(m):
            Q_u[i] = l_u[k, i]
            for j in range(m):
                Q_uu[i, j] = 0.0
            Q_uu[i, i] = l_uu[i]
            for j in range(n):
                Q_ux[i, j] = 0.0
        add_transposed_vector(A[k], s, Q_x)
        add_transposed_vector(B[k], s, Q_u)
        multiply(V, A[k], VA)  # (2)
        multiply(V, B[k], VB)
        add_transposed_product(A[k], VA, Q_xx)
        add_transposed_product(B[k], VA, Q_ux)
        add_transposed_product(B[k], VB, Q_uu)
        for i in range(m):  # (3)
            for j in range(m):
                H[i, j] = Q_uu[i, j]
            H[i, i] += damping
        count = bounded_minimum(H, Q_u, lower[k], upper[k], ahead[k], slope, trial, column, free, L)
        if count < 0:
            return k
        for i in range(m):
            for j in range(n):
                gain[k, i, j] = 0.0
        for i in range(count):
            for j in range(n):
                X[i, j] = -Q_ux[free[i], j]
        solve_free(L, count, X)
        for i in range(count):
            for j in range(n):
                gain[k, free[i], j] = X[i, j]
        for i in range(m):  # (4)
            left[i] = Q_u[i]
            for j in range(m):
                left[i] += Q_uu[i, j] * ahead[k, j]
        for i in range(n):
            s[i] = Q_x[i]
        add_transposed_vector(gain[k], left, s)
        add_transposed_vector(Q_ux, ahead[k], s)
        multiply(Q_uu, gain[k], Y)  # (5): gain^T (Q_uu gain + Q_ux) + Q_ux^T gain
        for i in range(m):
            for j in range(n):
                Y[i, j] += Q_ux[i, j]
        add_transposed_product(gain[k], Y, Q_xx)
        add_transposed_product(Q_ux, gain[k], Q_xx)
        for i in range(n):
            for j in range(n):
                V[i, j] = 0.5 * (Q_xx[i, j] + Q_xx[j, i])
    return -1


@inner
def predicted(A, B, gap, l_x, l_xx, l_u, l_uu, ahead, gain, x, u, onward):
    """(first, second): the cost of the linear model changes by length first + length^2 / 2 second if `ahead` and gaps
    are taken length-fold."""
    steps, n, m = B.shape[0], B.shape[1], B.shape[2]
    first = second = 0.0
    for i in range(n):
        x[i] = 0.0
    for k in range(steps + 1):
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += l_xx[k, i, j] * x[j]
            first += l_x[k, i] * x[i]
            second += x[i] * total
        if k == steps:
            break
        for i in range(m):
            u[i] = ahead[k, i]
            for j in range(n):
                u[i] += gain[k, i, j] * x[j]
            first += l_u[k, i] * u[i]
            second += l_uu[i] * u[i] * u[i]
        for i in range(n):
            onward[i] = gap[k, i]
            for j in range(n):
                onward[i] += A[k, i, j] * x[j]
            for j in range(m):
                onward[i] += B[k, i, j] * u[j]
        for i in range(n):
            x[i] = onward[i]
    return first, second


@inline
def controls_at(ahead, gain, x, length, base, lower, upper, u):
    """u = base + length ahead + gain x, within limits."""
    for i in range(u.shape[0]):
        total = base[i] + length * ahead[i]
        for j in range(x.shape[0]):
            total += gain[i, j] * x[j]
        u[i] = min(max(total, np.float64(lower[i])), np.float64(upper[i]))
