"""Measured order: on a test equation, on spherical joints and with loops; and errors that follow the tolerance."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import bunraku as bk
from bunraku.bench.order import fix
from bunraku.integrate import solver_memory as places
from bunraku.integrate.methods import METHODS, memory_for
from bunraku.integrate.record import empty_record
from bunraku.ivp import ivp_entries as ivp
from bunraku.ivp.functions import right_hand_side

PAIRS = {"iec": 2, "rki": 3, "rkg": 4, "rkf": 5, "tsit5": 5}  # and their orders


# -- order on a test equation ----------------------------------------------------------------------------------------


def rms(errors):
    return math.sqrt(np.mean(np.square(errors)))


def test_pairs_have_their_order_on_a_test_equation():
    for name, order in PAIRS.items():
        errors = []
        for steps in (20, 40, 80):
            h = 2.0 / steps
            solution = bk.solve_ivp(lambda t, y: [y[1], -y[0] + 0.1 * t], (0.0, 2.0), [1.0, 0.0], method=name,
                                    rtol=1e9, atol=1e9, first_step=h, max_step=h)  # every step is accepted
            assert solution.steps == steps
            t = solution.t
            errors.append(rms(solution.y[0] - (np.cos(t) - 0.1 * np.sin(t) + 0.1 * t)))
        orders = np.log2(np.array(errors[:-1]) / errors[1:])
        assert orders[1] == pytest.approx(order, abs=0.35), (name, orders)


def march(name, q, f, rows, h, steps):
    """y after each of some fixed steps at a fixed order."""
    memory = memory_for(name, rows[0], 1e9, 1e9)
    fix(memory, q, h, rows)
    memory.clock[places.UNTIL] = steps * h
    function = right_hand_side(f, (), len(rows[0]))
    record = empty_record(steps + 1, len(rows[0]))
    assert ivp.solver_of(METHODS[name]).call(METHODS[name], function.address, memory, record) == places.REACHED
    assert memory.tally[places.STEPS] == steps
    assert memory.tally[places.REJECTED] == 0
    return record.y[:steps]


@pytest.mark.parametrize(("name", "q"), [("gear", q) for q in range(1, 13)] + [("bdf", q) for q in range(1, 6)])
def test_multistep_methods_have_their_order_on_a_test_equation(name, q):
    """y = cos a t, whose derivatives are known, so that every order can start by itself."""
    errors, a = [], 0.04 + 0.04 * q  # radians a step
    for steps, angle in ((40, a), (80, a / 2)):
        rows = np.array([[angle**j * math.cos(j * math.pi / 2) / math.factorial(j)] for j in range(q + 1)])
        y = march(name, q, lambda t, y, a=angle: [-a * math.sin(a * t)], rows, 1.0, steps)[:, 0]
        errors.append(rms(y - np.cos(angle * np.arange(1, steps + 1))))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(q, abs=0.3)


# -- order on spherical joints ---------------------------------------------------------------------------------------


class Pendulum:
    """A spherical pendulum, its motion at multiples of 1/512 s by SciPy's DOP853 on our accelerations."""

    until = 0.5

    def __init__(self):
        self.m = bk.models.chain(1, joint="spherical")
        self.q = self.m.integrate(self.m.neutral(), np.array([0.8, 0.3, 0.0]))
        self.v = np.array([3.0, 2.0, 5.0])
        self.t = np.arange(257) / 512
        self.y = solve_ivp(self.rates, (0, self.until), np.concatenate([self.q, self.v]), method="DOP853", rtol=1e-13,
                           atol=1e-13, t_eval=self.t).y.T

    def rates(self, t, y):
        a, b, c, d = y[:4]
        w = y[4:]
        turn = 0.5 * np.array([-b * w[0] - c * w[1] - d * w[2], a * w[0] + c * w[2] - d * w[1],
                               a * w[1] + d * w[0] - b * w[2], a * w[2] + b * w[1] - c * w[0]])
        return np.concatenate([turn, bk.forward_dynamics(self.m, y[:4].copy(), w.copy())])

    def history(self, q, h):
        """Time, and Nordsieck array there, from the derivatives at q points h apart."""
        stride = round(512 * h)
        states = self.y[:stride * (q - 1) + 1:stride][::-1]
        slopes = np.array([self.rates(0.0, y) for y in states])  # at s = 0, -1, ..., 1 - q
        derivatives = np.linalg.solve(np.vander(-np.arange(q, dtype=float), increasing=True), slopes)
        return (q - 1) * h, np.vstack([states[:1], h * derivatives / np.arange(1, q + 1)[:, None]])

    def error(self, sim):
        end = self.y[-1]
        return np.abs(np.concatenate([self.m.difference(end[:4] / np.linalg.norm(end[:4]), sim.q),
                                      sim.v - end[4:]])).max()


@pytest.fixture(scope="module")
def pendulum():
    return Pendulum()


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_keep_their_order_on_a_spherical_pendulum(pendulum, name):
    errors = []
    for h in (1 / 64, 1 / 128, 1 / 256):
        sim = bk.Simulation(pendulum.m, pendulum.q, pendulum.v, solver=name, rtol=1e9, atol=1e9, min_step=h, max_step=h)
        sim.run(pendulum.until)
        errors.append(pendulum.error(sim))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders[1] > PAIRS[name] - 0.3, (errors, orders)


@pytest.mark.parametrize(("name", "q"), [(name, q) for name in ("gear", "bdf", "implicit") for q in range(1, 6)])
def test_multistep_methods_keep_their_order_on_a_spherical_pendulum(pendulum, name, q):
    errors = []
    for h in (1 / 128, 1 / 256, 1 / 512):
        t, rows = pendulum.history(q, h)
        sim = bk.Simulation(pendulum.m, rows[0, :4], rows[0, 4:], solver=name, rtol=1e9, atol=1e9, t=t)
        fix(sim._running.memory, q, h, rows)  # no setting fixes the order
        sim.run(pendulum.until)
        errors.append(pendulum.error(sim))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders[1] > q - 0.4, (errors, orders)


def spinning_top():
    """A ball joint with a fast, unsymmetrical top on it: everything about quaternions matters."""
    m = bk.Mechanism()
    m.add_link("top", joint=bk.Spherical(), mass=1.0, com=(0.05, 0.0, 0.3), inertia=(0.02, 0.03, 0.012))
    m.add_link("arm", "top", joint=bk.Revolute((0, 1, 0)), position=(0, 0, 0.3), mass=0.4, com=(0.1, 0, 0),
               inertia=(0.001, 0.002, 0.002))
    return m, np.array([1.0, 0.3, 0.0, 0.0, 0.4]), np.array([1.0, -0.5, 4.0, 0.5])


@pytest.fixture(scope="module")
def reference():
    """The same motion by SciPy's DOP853 on our accelerations, tightly."""
    m, q, v = spinning_top()
    q = m.integrate(q, np.zeros(m.nv))

    def rates(t, y):
        w, (a, b, c, d) = y[5:8], y[:4]
        turn = 0.5 * np.array([-b * w[0] - c * w[1] - d * w[2], a * w[0] + c * w[2] - d * w[1],
                               a * w[1] + d * w[0] - b * w[2], a * w[2] + b * w[1] - c * w[0]])
        return np.concatenate([turn, y[8:9], bk.forward_dynamics(m, y[:5].copy(), y[5:].copy())])

    y = solve_ivp(rates, (0, 0.5), np.concatenate([q, v]), method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    y[:4] /= np.linalg.norm(y[:4])
    return m, q, v, y


def error_at_the_end(reference, **options):
    m, q, v, expected = reference
    sim = bk.Simulation(m, q, v, **options)
    sim.run(0.5)
    return np.abs(np.concatenate([m.difference(expected[:5], sim.q), sim.v - expected[5:]])).max()


def test_symplectic_euler_has_order_1_on_a_spherical_joint(reference):
    errors = [error_at_the_end(reference, solver="symplectic_euler", step=h) for h in (1e-3, 5e-4, 2.5e-4)]
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx([1, 1], abs=0.1)


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8, 1e-10])
@pytest.mark.parametrize("solver", ["gear", "bdf", "implicit", "tsit5", "rkf", "rkg"])
def test_the_error_follows_the_tolerance(reference, solver, rtol):
    # errors of the steps add up over the motion
    assert error_at_the_end(reference, solver=solver, rtol=rtol, atol=rtol) < 2000 * rtol


def test_symplectic_euler_keeps_energy_bounded_where_explicit_euler_gains():
    m = bk.Mechanism()
    m.add_link("bob", joint=bk.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -1), inertia=(0.01, 0.01, 0.01))
    sim = bk.Simulation(m, [1.0], solver="symplectic_euler", step=0.01)
    _, kinetic, potential = sim.run(200.0).energy()
    energy = kinetic + potential
    first, last = np.ptp(energy[:2000]), np.ptp(energy[-2000:])
    assert last < 1.05 * first  # over thirty times as long it swings no wider
    assert abs(energy[-2000:].mean() - energy[:2000].mean()) < 0.02 * first


# -- order with loops ------------------------------------------------------------------------------------------------


def test_the_classical_method_keeps_its_order_with_redundant_loops():
    """Stages lie off the loops, where the Bricard linkage could not move at all: they are closed."""
    m = bk.models.bricard()
    q, v = bk.project(m, m.neutral(), np.ones(5))
    exact = bk.Simulation(m, q, v, rtol=1e-11, atol=1e-13)
    exact.run(1.0)
    errors = []
    for step in (0.05, 0.025, 0.0125):
        sim = bk.Simulation(m, q, v, solver="rk4", step=step)
        errors.append(np.abs(sim.run(1.0).q[-1] - exact.q).max())
        assert sim.stats.loop_error < 1e-12
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (orders > 3.5).all()  # measured 4.8
