"""Scratch memory of a contact problem: one array of scalars, with Theta, a matrix, vectors and scalars of contacts.

All in scaled units (`problem_scaling.py`), K contacts, n = 3 K:

    0                     Theta, n x n
    matrix_at(K)          a matrix by columns: the linear problem of a step
    scratch_at(K)         scratch of `least_norm`
    vector_at(K, WHICH)   vectors of n scalars
    contact_at(K, k)      scalars of contact k
    contact_at(K, K)      the factor of `rescale`
"""

from bunraku.contact.least_norm import least_norm_size
from bunraku.jit import inline

# Vectors
SIDE = 0      # right-hand side of the linear problem, and its solution
BIAS = 1      # b
FORCE = 2     # f
VELOCITY = 3  # u = Theta f + b, with compliance Theta + epsilon
STEP = 4      # change of FORCE
CHANGE = 5    # change of VELOCITY with it
SCALE = 6     # units of velocities; inverse units of forces
BASE = 7      # forces relative to which contacts are compliant
BEST = 8      # forces of the smallest residual of all attempts
KEPT = 9      # the same of one run of Newton's method; projected forces of `convex_steps.py`
COLUMN = 10   # scratch
VECTORS = 11

# Scalars of a contact
FRICTION = 0  # coefficient in scaled units
TOWARDS = 1   # direction of the friction force of a sliding contact, 2
SIGMA = 3     # |t_t| / (mu t_n) - 1 of a sliding contact; -1: no row across its friction
FIRST = 4     # first row of the linear problem
CONTACT = 5


@inline
def problem_size(count):
    """Scalars of `work`."""
    n = 3 * count
    return 2 * n * n + least_norm_size(n) + VECTORS * n + CONTACT * count + 1


@inline
def matrix_at(count):
    return 9 * count * count


@inline
def scratch_at(count):
    return 18 * count * count


@inline
def vector_at(count, which):
    return 18 * count * count + least_norm_size(3 * count) + 3 * count * which


@inline
def contact_at(count, k):
    return vector_at(count, VECTORS) + CONTACT * k
