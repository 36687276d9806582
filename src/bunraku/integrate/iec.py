"""IEC: the improved Euler-Cauchy (midpoint) method, order 2, step doubling [J, table II]. 5 evaluations a step."""

from bunraku.integrate.runge_kutta import doubled

METHOD = doubled(A=[[0, 0], [1 / 2, 0]], B=[0, 1], order=2)
