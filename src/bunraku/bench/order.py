"""The order of the implicit method, measured on stiff mechanisms: fixed steps, fixed order, one iteration a step.

The motion starts after the initial transient, where it is smooth but the equation still stiff, from a history computed
by SciPy's Radau, which is also the reference for the error at the end.
"""

from __future__ import annotations

import numpy as np

import bunraku as bk
from bunraku.entries import moves
from bunraku.integrate import solver_memory as places
from bunraku.integrate.history import HIGHEST
from bunraku.plan import fields as f
from bunraku.simulation.simulation import running

START, UNTIL = 0.25, 0.75
STEPS = (1 / 32, 1 / 64, 1 / 128)


def pendulum(damping: float = 20.0) -> bk.Mechanism:
    """A bob on a ball joint with spring and damper; the fast mode decays at damping / inertia, thousands per second."""
    m = bk.Mechanism(name="pendulum")
    m.add_link("bob", joint=bk.Spherical(stiffness=40.0, damping=damping), mass=1.0, com=(0.05, 0.0, -0.1),
               inertia=(0.002, 0.003, 0.001))
    return m


def problems() -> dict[str, Smooth]:
    """Hinges, balls, one ball."""
    from bunraku.bench.bench_stiff import rod

    return {"spherical pendulum": Smooth(pendulum(), (0.8, -0.4, 0.5)),
            "rod of 8 hinges": Smooth(rod(8, bending=5.0), (0.05,) * 8),
            "rod of 4 balls": Smooth(rod(4, "spherical", bending=5.0, damping=0.1), (0.05, 0.1, 0.02) * 4)}


def rates(m: bk.Mechanism, y: np.ndarray) -> np.ndarray:
    """Derivatives of y = (q, v)."""
    q, v = y[:m.nq].copy(), y[m.nq:].copy()
    return np.concatenate([moves.rates(m.plan(), q[None], v[None])[0], bk.forward_dynamics(m, q, v)])


def error(m: bk.Mechanism, sim: bk.Simulation, y: np.ndarray) -> float:
    """Largest difference of the state to y."""
    q = m.integrate(y[:m.nq], np.zeros(m.nv))  # unit quaternions
    return float(np.abs(np.concatenate([m.difference(q, sim.q), sim.v - y[m.nq:]])).max())


def fix(memory: places.Memory, q: int, h: float, rows: np.ndarray) -> None:
    """Make a memory go on at order q with steps h from a Nordsieck array; tolerances must accept everything."""
    memory.rows[:HIGHEST + 1] = 0.0
    memory.rows[:q + 1] = rows
    memory.clock[[places.STEP, places.PENDING, places.GROWTH, places.RATE]] = h, 1.0, 1.0, 1e-30
    memory.tally[[places.STARTED, places.ORDER, places.NEXT_ORDER, places.WAIT]] = 1, q, q, 1 << 40
    memory.tally[[places.MATRIX_STEP, places.JACOBIAN_STEP]] = -1


class Smooth:
    """A stiff mechanism, and its motion by Radau on our accelerations."""

    def __init__(self, m: bk.Mechanism, move):
        from scipy.integrate import solve_ivp

        self.m = m
        y = np.concatenate([m.integrate(m.neutral(), np.array(move, float)), np.zeros(m.nv)])
        self.sol = solve_ivp(lambda t, y: rates(m, y), (0.0, UNTIL), y, method="Radau", rtol=1e-11, atol=1e-13,
                             dense_output=True).sol

    @property
    def fastest(self) -> float:
        """Rate of decay of the fastest motion [1/s]."""
        M = bk.mass_matrix(self.m, self.sol(START)[:self.m.nq])
        return float(np.linalg.eigvals(np.linalg.solve(M, np.diag(self.m.plan().dof_f[f.DAMPING]))).real.max())

    def history(self, q: int, h: float) -> np.ndarray:
        """Nordsieck array at the start, from the slopes at q points h apart."""
        states = self.sol(START - h * np.arange(q)).T
        slopes = np.array([rates(self.m, y) for y in states])
        derivatives = np.linalg.solve(np.vander(-np.arange(q, dtype=float), increasing=True), slopes)
        return np.vstack([states[:1], h * derivatives / np.arange(1, q + 1)[:, None]])

    def march(self, q: int, h: float) -> float:
        """Error at the end after steps h of order q."""
        rows = self.history(q, h)
        sim = bk.Simulation(self.m, rows[0, :self.m.nq], rows[0, self.m.nq:], solver="implicit", rtol=1e9, atol=1e9)
        memory = running(sim).memory
        fix(memory, q, h, rows)
        memory.clock[places.TIME] = START
        sim.run(UNTIL)
        assert sim.stats.evaluations == sim.stats.steps == round((UNTIL - START) / h)
        return error(self.m, sim, self.sol(UNTIL))

    def measure(self, q: int) -> tuple[list[float], float]:
        """Errors by step, and the order from the last two."""
        errors = [self.march(q, h) for h in STEPS]
        return errors, float(np.log2(errors[-2] / errors[-1]))
