"""RKG: the Runge-Kutta-Gill method, order 4, step doubling [J, table II]. 11 evaluations a step.

Reference: Gill, Proc. Cambridge Phil. Soc. 47 (1951).
"""

import math

from bunraku.integrate.runge_kutta import doubled

R = math.sqrt(0.5)
METHOD = doubled(A=[[0, 0, 0, 0], [1 / 2, 0, 0, 0], [R - 1 / 2, 1 - R, 0, 0], [0, -R, 1 + R, 0]],
                 B=[1 / 6, (1 - R) / 3, (1 + R) / 3, 1 / 6], order=4)
