"""Soft contacts: a spring and a damper along the normal, integrated implicitly in a time step.

With the stiffness k and the damping d of a pair, a contact that overlaps by delta pushes with the force k delta + d
d(delta)/dt, and never pulls. At the end of a step of length h [implicit Euler], with the impulse p of the step and the
gap g at its beginning,

    g < 0:   p = h max(0, -k (g + h u) - d u)
    g >= 0:  p = h max(0, -(k + d / h) (g + h u))           the overlap begins within the step

So the law of the normal becomes 0 <= p, 0 <= u + eps p + s, p (u + eps p + s) = 0 with

    eps = 1 / (h (h k + d)),    s = g k / (h k + d)  or, with a gap,  g / h

which is that of a rigid contact with eps added to the diagonal of Theta: as k grows, eps vanishes and s becomes g / h.
Friction is Coulomb's, with the normal force f, exactly: a contact that sticks does not creep. The step is stable for
any k, d and h; its error is that of order 1, which damps vibrations of a period near h.

Soft contacts have no restitution, and their overlap stays. Shapes are in series: 1/k = 1/k_a + 1/k_b, likewise d; a
rigid shape takes no part.
"""

from bunraku.contact import contact_fields as c
from bunraku.jit import inline, inner
from bunraku.spatial.scalar import load, store


def in_series(k_a, d_a, k_b, d_b):
    """Stiffness and damping of two shapes in contact; stiffness 0: rigid."""
    if k_a == 0.0:
        return k_b, d_b
    if k_b == 0.0:
        return k_a, d_a
    return k_a * k_b / (k_a + k_b), d_a * d_b / (d_a + d_b) if d_a + d_b > 0.0 else 0.0


@inline
def is_soft(k, touch):
    """Whether contact k is soft."""
    return touch.contact_f[k, c.STIFFNESS] > 0.0


@inline
def part_of_overlap(k, touch, h):
    """[1/s] k / (h k + d): the speed with which an overlap without load would vanish, per overlap; 0: rigid."""
    stiffness = touch.contact_f[k, c.STIFFNESS]
    return stiffness / (h * stiffness + touch.contact_f[k, c.DAMPING]) if stiffness > 0.0 else 0.0


@inline
def compliance(k, touch, h):
    """eps of contact k in a step of length h; 0: rigid."""
    stiff = h * (h * touch.contact_f[k, c.STIFFNESS] + touch.contact_f[k, c.DAMPING])
    return 1.0 / stiff if is_soft(k, touch) else 0.0


@inner
def soften(touch, first, count, h, theta):
    """Add the compliances of `count` contacts from place `first` on to the diagonal of Theta."""
    for i in range(count):
        k = touch.active[first + i]
        if is_soft(k, touch):
            at = 3 * i * (3 * count + 1)
            store(theta, at, load(theta, at) + compliance(k, touch, h))
