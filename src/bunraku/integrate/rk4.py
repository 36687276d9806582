"""RK4: the classical Runge-Kutta method, order 4, with steps of fixed size: there is no estimate of its error.

Reference: Kutta, Z. Math. Phys. 46 (1901).
"""

from bunraku.integrate.runge_kutta import with_cubic

METHOD = with_cubic(A=[[0, 0, 0, 0], [1 / 2, 0, 0, 0], [0, 1 / 2, 0, 0], [0, 0, 1, 0]], B=[1 / 6, 1 / 3, 1 / 3, 1 / 6],
                    E=[0, 0, 0, 0], order=4, estimate=5)
