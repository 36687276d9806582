"""Settings of a run: solver, tolerances, steps; the same for `Simulation` and `rollout`, checked in one place."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bunraku.checks import as_count, as_positive, as_size, hint
from bunraku.errors import ModelError, ShapeError
from bunraku.integrate import solver_memory as m
from bunraku.integrate.history import Family
from bunraku.integrate.methods import FIXED_STEP, METHODS, STRUCTURED, check_order, memory_for, method_of
from bunraku.integrate.runge_kutta import Tableau
from bunraku.runs.implicit_run import run_implicit
from bunraku.runs.multistep_run import run_multistep
from bunraku.runs.runge_kutta_run import run_runge_kutta
from bunraku.runs.symplectic_euler_run import run_symplectic_euler

WITH_STEP = (*FIXED_STEP, "symplectic_euler")
SHORTEST = 1e-12  # [s] of a fixed step
SOLVERS = (*METHODS, *STRUCTURED, *WITH_STEP)
CONTACT_STEP = 1e-3  # [s] of time steps that replace crowded contact events, unless said otherwise
SIMULTANEOUS, SEQUENTIAL = IMPACTS = "simultaneous", "sequential"  # laws of impacts at several contacts at once


@dataclass(frozen=True)
class Settings:
    """Settings of the integration. `Settings.of` checks the user's arguments."""

    solver: str | Tableau
    rtol: float
    atol: float
    max_order: int | None
    step: float       # [s] of solvers with a fixed step; 0: the solver chooses it
    min_step: float   # [s]
    max_step: float   # [s]
    hold: float       # [1/s] rate of Baumgarte's stabilisation; 0: loops are closed after every step
    max_contacts: int | None = None  # at the same time; None: as for `Touching`
    impacts: str = SIMULTANEOUS
    contact_step: float | None = CONTACT_STEP  # [s] of steps that replace crowded contact events; None: none do

    @classmethod
    def of(cls, solver, rtol, atol, *, step=None, max_step=math.inf, min_step=0.0, max_order=None,
           baumgarte=None, max_contacts=None, impacts=SIMULTANEOUS, contact_step=CONTACT_STEP) -> Settings:
        if not isinstance(solver, Tableau) and solver not in SOLVERS:
            raise ModelError(f"solver {solver!r} is not one of {', '.join(SOLVERS)}{hint(solver, SOLVERS, close=True)}")
        check_order(solver, max_order)
        rtol, atol = as_positive("rtol", rtol, ShapeError), as_positive("atol", atol, ShapeError)
        first, shortest, longest = _steps(solver, step, min_step, max_step)
        hold = 0.0 if baumgarte is None else as_positive("baumgarte [1/s]", baumgarte, ShapeError)
        most = None if max_contacts is None else as_count("max_contacts", max_contacts)
        if impacts not in IMPACTS:
            raise ModelError(f"impacts must be one of {', '.join(map(repr, IMPACTS))}, not {impacts!r}")
        crowded = None if contact_step is None else as_positive("contact_step [s]", contact_step, ShapeError)
        return cls(solver, rtol, atol, max_order, first, shortest, longest, hold, most, impacts, crowded)

    @property
    def long_steps(self) -> bool:
        """Whether steps are too long for interpolation through neighbouring states: adaptive Runge-Kutta methods."""
        return isinstance(method_of(self.solver), Tableau) and not self.fixed_step

    @property
    def fixed_step(self) -> bool:
        return self.solver in WITH_STEP

    @property
    def structured(self) -> bool:
        """Whether the solver needs a plan with variable armature (`Mechanism.yielding_plan`)."""
        return isinstance(self.solver, str) and self.solver in STRUCTURED

    @property
    def explicit(self) -> bool:
        """Whether the method is explicit, so that stiffness limits the step."""
        family = method_of(self.solver)
        return not self.structured and not (isinstance(family, Family) and family.newton)

    def memory(self, y):
        """Memory of an integration from y."""
        memory = memory_for(self.solver, y, self.rtol, self.atol, self.max_order)
        memory.clock[[m.STEP, m.MIN_STEP, m.MAX_STEP]] = self.step, self.min_step, self.max_step
        return memory

    def entry(self):
        """The compiled run, and the coefficients of the method in a tuple."""
        method = method_of(self.solver)
        if method is None:
            return run_symplectic_euler, ()
        if self.structured:
            return run_implicit, (method,)
        return run_multistep if isinstance(method, Family) else run_runge_kutta, (method,)

    def plan(self, mechanism, driven: bool):
        """The plan of the mechanism for the solver."""
        return mechanism.yielding_plan(driven) if self.structured else mechanism.plan()


def _steps(solver, step, min_step, max_step) -> tuple[float, float, float]:
    longest = as_positive("max_step [s]", max_step, ShapeError, infinite=True)
    shortest = as_size("min_step [s]", min_step, ShapeError)
    if shortest > longest:
        raise ShapeError(f"min_step = {min_step:g} s must not be longer than max_step = {max_step:g} s")
    fixed = 0.0 if step is None else as_positive("step [s]", step, ShapeError)
    if solver not in WITH_STEP:
        if step is not None:
            name = solver if isinstance(solver, str) else "this Runge-Kutta method"
            raise ShapeError(f"{name} chooses its steps by their error, so step={step:g} has no meaning: max_step "
                             f"limits them; {' and '.join(map(repr, WITH_STEP))} are solvers with a fixed step")
        return 0.0, shortest, longest
    if step is None:
        raise ShapeError(f"{solver} has a fixed step: give it, as in step=0.002")
    if fixed < SHORTEST:
        raise ShapeError(f"step = {fixed:g} s is too short: at least {SHORTEST:g} s, or rounding stops the time")
    return fixed, fixed, fixed
