"""RKI: a Runge-Kutta method of order 3 with Heun's of order 2 embedded [J, table II]. 3 evaluations a step.

Reference: Engeln-Muellges, Uhlig: Numerical Algorithms with C (1996), sec. 17.3 (embedding formula of orders 2 and 3).
[J] only says "order 3, embedded"; its counts are multiples of 3, as here.
"""

from bunraku.integrate.runge_kutta import with_cubic

METHOD = with_cubic(A=[[0, 0, 0], [1, 0, 0], [1 / 4, 1 / 4, 0]], B=[1 / 6, 1 / 6, 2 / 3],
                    E=[1 / 6 - 1 / 2, 1 / 6 - 1 / 2, 2 / 3], order=3, estimate=3)
