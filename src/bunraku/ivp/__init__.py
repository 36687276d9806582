"""`solve_ivp`: the integrators for any ordinary differential equation; nothing here knows of mechanisms."""

from bunraku.ivp.solve import DenseSolution, IvpResult, solve_ivp

__all__ = ["DenseSolution", "IvpResult", "solve_ivp"]
