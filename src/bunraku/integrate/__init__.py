"""Integrators, one method per file. They see a right-hand side and a state space, nothing else.

A right-hand side is a compiled function `rhs(context, t, y, dy) -> status` (0 if all went well); a state space is a
compiled function `settle(context, y)` that puts y back on it (unit quaternions) after a step.
"""
