"""Layout of the scratch of `problem.py`: two matrices, the scratch of `least_norm.py`, vectors, scalars of contacts."""

from bunraku.contact.least_norm import least_norm_size
from bunraku.jit import inline

# Vectors in `work`, 3 K scalars each
SIDE, BIAS, FORCE, VELOCITY, STEP, CHANGE, SCALE, BASE, BEST, KEPT, COLUMN, VECTORS = range(12)
# Scalars of a contact in `work`; after all contacts, the factor of `balance`
FRICTION, TOWARDS, SIGMA, FIRST, CONTACT = 0, 1, 3, 4, 5


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
