"""Integrators, one method per file. They depend only on a right-hand side and a state space.

A right-hand side is a compiled function `rhs(context, t, y, dy) -> status`, 0 for success; any other
status ends the run if smaller steps do not help. A state space is a compiled function `settle(context, rows, count,
h) -> gap` that projects the state rows[0] to its manifold (unit quaternions, closed loops) after a step, and
corrects the history rows[1:count] (rows[1] is h times the derivative) along with it. A third, `agree(context, memory,
status) -> status`, combines the sums and status of all workers (`sums.py`).

Two cores, each with the functions of a method (`advance.py`): `runge_kutta.py` for every explicit pair, which is a
`Tableau`; `nordsieck.py` for multistep methods, which are `Family`s of coefficients. All memory is in the arrays of a
`Memory`, so a run can stop anywhere and go on.
"""
