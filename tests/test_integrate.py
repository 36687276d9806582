"""Integrators on their own: coefficients, measured order, and error against the tolerance."""

import contextlib
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import bunraku as bk
from bunraku.bench import detest, integrators
from bunraku.bench.order import fix
from bunraku.integrate import bdf, gear
from bunraku.integrate import memory as places
from bunraku.integrate.methods import METHODS, memory_for
from bunraku.run import ivp
from bunraku.run.callbacks import right_hand_side
from bunraku.simulation.ivp import _Events, _Record

POWERS = (1, 2, 3, 3, 4, 4, 4, 4)  # of the step, in the order conditions
PAIRS = {"iec": 2, "rki": 3, "rkg": 4, "rkf": 5, "tsit5": 5}  # and their orders

# -- coefficients --------------------------------------------------------------------------------------------------


def conditions(A, C, order):
    """Order conditions: rows r with r @ b = right side, up to order 5."""
    one = np.ones_like(C)
    trees = [(one, 1), (C, 2), (C**2, 3), (A @ C, 6), (C**3, 4), (C * (A @ C), 8), (A @ C**2, 12), (A @ A @ C, 24),
             (C**4, 5), (C**2 * (A @ C), 10), ((A @ C) ** 2, 20), (C * (A @ C**2), 15), (A @ C**3, 20),
             (C * (A @ A @ C), 30), (A @ (C * (A @ C)), 40), (A @ A @ C**2, 60), (A @ A @ A @ C, 120)]
    return trees[:[0, 1, 2, 4, 8, 17][order]]


@pytest.mark.parametrize(("name", "order"), PAIRS.items())
def test_pairs_satisfy_their_order_conditions(name, order):
    method = METHODS[name]
    np.testing.assert_allclose(method.A.sum(axis=1), method.C, atol=1e-14)
    assert np.all(np.triu(method.A) == 0)
    assert method.order == order
    for row, denominator in conditions(method.A, method.C, order):
        assert method.B @ row == pytest.approx(1 / denominator, abs=2e-14)
    if order < 5:
        assert max(abs(method.B @ r - 1 / d) for r, d in conditions(method.A, method.C, order + 1)) > 1e-4
    worst = [abs(method.E @ r) for r, _ in conditions(method.A, method.C, method.estimate)]
    vanishing = len(conditions(method.A, method.C, method.estimate - 1))
    assert max(worst[:vanishing]) < 1e-14
    assert max(worst[vanishing:]) > 1e-5  # the estimate is of this order and no smaller one: it says something


@pytest.mark.parametrize(("name", "order"), {"iec": 2, "rki": 3, "rkg": 4, "rkf": 4, "tsit5": 4}.items())
def test_polynomials_between_steps_satisfy_the_order_conditions_everywhere(name, order):
    method = METHODS[name]
    s, degree = len(method.B), method.P.shape[1]
    A = np.zeros((s + 1, s + 1))
    A[:s, :s], A[s, :s] = method.A, method.B
    C = A.sum(axis=1)
    powers = np.arange(1, degree + 1)
    for x in (0.2, 0.5, 0.77, 1.0):
        b = method.P @ x**powers
        for row, denominator, power in zip(*zip(*conditions(A, C, order), strict=True), POWERS, strict=False):
            assert b @ row == pytest.approx(x**power / denominator, abs=1e-12)
    last = np.zeros(s + 1)
    last[-2 if method.ends else -1] = 1.0
    np.testing.assert_allclose(method.P[:, 0], np.eye(s + 1)[0], atol=1e-13)      # starts along the derivative
    np.testing.assert_allclose(method.P @ powers, last, atol=1e-13)               # and ends along it
    np.testing.assert_allclose(method.P.sum(axis=1), np.append(method.B, 0.0), atol=2e-14)


def polynomial(coefficients, x):
    return sum(c * Fraction(x) ** j for j, c in enumerate(coefficients))


@pytest.mark.parametrize("q", range(1, 13))
def test_adams_vectors_come_from_their_generating_polynomial(q):
    l = gear.coefficients(q)
    assert l[1] == 1
    assert polynomial(l, -1) == 0
    slope = [j * c for j, c in enumerate(l)][1:]
    assert all(polynomial(slope, -i) == 0 for i in range(1, q))  # derivatives at the last q - 1 points stay
    np.testing.assert_array_equal(gear.METHOD.L[q, :q + 1], [float(x) for x in l])
    assert not gear.METHOD.L[q, q + 1:].any()


@pytest.mark.parametrize("q", range(1, 6))
def test_bdf_vectors_come_from_their_generating_polynomial(q):
    l = bdf.coefficients(q)
    assert l[1] == 1
    assert all(polynomial(l, -i) == 0 for i in range(1, q + 1))  # values at the last q points stay
    assert l[0] == 1 / sum(Fraction(1, i) for i in range(1, q + 1))


def test_multistep_coefficients_are_the_published_ones():
    assert gear.coefficients(4) == [Fraction(3, 8), 1, Fraction(11, 12), Fraction(1, 3), Fraction(1, 24)]  # Gear 1971
    assert bdf.coefficients(3) == [Fraction(6, 11), 1, Fraction(6, 11), Fraction(1, 11)]
    assert [gear.coefficients(q)[0] for q in (5, 6)] == [Fraction(251, 720), Fraction(95, 288)]
    # error constants of Adams-Moulton: 1/2, 1/12, 1/24, 19/720, 3/160
    assert [gear.error_constant(q) for q in range(1, 6)] == [
        Fraction(1, 2), Fraction(1, 12), Fraction(1, 24), Fraction(19, 720), Fraction(3, 160)]


# -- order on a test equation --------------------------------------------------------------------------------------


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
    paper = _Record(0.0, rows[0], None, False, _Events(None, (), 0.0, rows[0])).paper()
    assert ivp.solver_of(METHODS[name]).call(METHODS[name], function.address, memory, paper) == places.REACHED
    assert memory.tally[places.STEPS] == steps
    assert memory.tally[places.REJECTED] == 0
    return paper.y[:steps]


@pytest.mark.parametrize(("name", "q"), [("gear", q) for q in range(1, 13)] + [("bdf", q) for q in range(1, 6)])
def test_multistep_methods_have_their_order_on_a_test_equation(name, q):
    """y = cos a t, whose derivatives are known, so that every order can start by itself."""
    errors, a = [], 0.04 + 0.04 * q  # radians a step
    for steps, angle in ((40, a), (80, a / 2)):
        rows = np.array([[angle**j * math.cos(j * math.pi / 2) / math.factorial(j)] for j in range(q + 1)])
        y = march(name, q, lambda t, y, a=angle: [-a * math.sin(a * t)], rows, 1.0, steps)[:, 0]
        errors.append(rms(y - np.cos(angle * np.arange(1, steps + 1))))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(q, abs=0.3)


# -- order on spherical joints -------------------------------------------------------------------------------------


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
        sim = bk.Simulation(pendulum.m, pendulum.q, pendulum.v, solver=name, rtol=1e9, atol=1e9, step=h, max_step=h)
        sim.run(pendulum.until)
        errors.append(pendulum.error(sim))
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders[1] > PAIRS[name] - 0.3, (errors, orders)


@pytest.mark.parametrize(("name", "q"), [(name, q) for name in ("gear", "bdf", "implicit") for q in range(1, 6)])
def test_multistep_methods_keep_their_order_on_a_spherical_pendulum(pendulum, name, q):
    errors = []
    for h in (1 / 128, 1 / 256, 1 / 512):
        t, rows = pendulum.history(q, h)
        sim = bk.Simulation(pendulum.m, rows[0, :4], rows[0, 4:], solver=name, rtol=1e9, atol=1e9)
        fix(sim._memory, q, h, rows)
        sim._memory.clock[places.TIME] = t
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


# -- quaternions and loops -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["gear", "bdf", "tsit5"])
def test_quaternions_stay_unit_and_energy_stays_over_a_long_run(solver):
    m = bk.models.chain(1, joint="spherical")
    sim = bk.Simulation(m, v=[2.0, 1.0, 3.0], solver=solver, rtol=1e-10, atol=1e-12)
    trajectory = sim.run(60.0)
    np.testing.assert_allclose(np.linalg.norm(trajectory.q, axis=1), 1.0, atol=1e-14)
    _, kinetic, potential = trajectory.energy()
    assert np.ptp(kinetic + potential) < {"gear": 1e-6, "bdf": 1e-5, "tsit5": 1e-6}[solver] * kinetic.max()


@pytest.mark.parametrize("solver", ["gear", "bdf"])
@pytest.mark.parametrize("rtol", [1e-6, 1e-9])
def test_multistep_methods_keep_loops_closed_without_taking_more_steps(solver, rtol):
    m = bk.models.four_bar()
    q, v = bk.project(m, m.neutral(), np.array([3.0, 0.0, 0.0]))
    sim = bk.Simulation(m, q, v, solver=solver, rtol=rtol, atol=1e-2 * rtol)
    _, kinetic, potential = sim.run(5.0).energy()
    assert np.ptp(kinetic + potential) < 300 * rtol * kinetic.max()
    assert sim.stats.loop_drift < 30 * rtol  # what single steps leave open before it is closed
    assert sim.stats.loop_error < 1e-11
    assert np.abs(bk.constraints(m, sim.q).gap).max() < 1e-10
    left_open = bk.solve_ivp(lambda t, y: np.concatenate([y[3:], bk.forward_dynamics(m, y[:3].copy(), y[3:].copy())]),
                             (0.0, 5.0), np.concatenate([q, v]), method=solver, rtol=rtol, atol=1e-2 * rtol)
    assert sim.stats.steps < 1.1 * left_open.steps  # history and error estimate are not disturbed


# -- problem sets --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rtol", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize(("name", "problems", "method", "theirs"), [s[:4] for s in integrators.SETS])
def test_problem_sets_are_solved_to_the_order_of_the_tolerance_as_cheaply_as_by_cvode(name, problems, method, theirs,
                                                                                     rtol):
    mine = integrators.measure(problems, lambda *p: integrators.ours(method, *p), rtol)
    errors = [row["error"] for row in mine]
    assert np.median(errors) < 30
    assert max(errors) < 5000  # the orbits multiply what comes early
    pytest.importorskip("sksundae")
    other = integrators.measure(problems, lambda *p: integrators.cvode(theirs, *p), rtol)
    ratio = sum(row["evaluations"] for row in mine) / sum(row["evaluations"] for row in other)
    assert ratio < integrators.MOST
    typical = [np.exp(np.mean(np.log([row["error"] + 0.01 for row in rows]))) for rows in (mine, other)]
    assert typical[0] < 4 * typical[1]  # and not by being careless


@pytest.mark.parametrize("method", PAIRS)
def test_explicit_methods_solve_the_problem_set_too(method):
    rtol = 1e-3 if method in ("iec", "rki") else 1e-6
    errors = [row["error"] for row in integrators.measure(detest.NON_STIFF, lambda *p: integrators.ours(method, *p),
                                                          rtol)]
    assert np.median(errors) < 30
    assert max(errors) < 5000


def test_baumgarte_closes_an_open_loop_at_its_rate():
    """Four-bar opened by a displacement of its coupler: the gap decays like (1 + c t) exp(-c t)."""
    m = bk.models.four_bar()
    m.gravity = (0, 0, 0)
    q, _ = bk.project(m, m.neutral(), np.zeros(3))
    rate = 20.0
    sim = bk.Simulation(m, q, solver="gear", rtol=1e-9, atol=1e-11, baumgarte=rate)
    sim._memory.rows[0, 2] += 1e-6
    first = np.abs(bk.constraints(m, sim.q).gap).max()
    assert first > 1e-7
    sim.run(0.2)
    expected = (1 + rate * 0.2) * np.exp(-rate * 0.2)
    assert np.abs(bk.constraints(m, sim.q).gap).max() == pytest.approx(expected * first, rel=0.02)
    with pytest.raises(bk.ShapeError, match="baumgarte"):
        bk.Simulation(m, q, baumgarte=-1.0)


def test_coordinates_follow_velocities():
    """A chain that swings needs fewer evaluations in a simulation than the same equation as any other."""
    m = bk.models.mobile(0.2, 0.3, 0.2, 10 / 6, 1, 6, None, None, 2.0)
    n, q = m.nv, m.neutral()
    q[0] = 0.8

    def rates(t, y):
        return np.concatenate([y[n:], bk.forward_dynamics(m, y[:n].copy(), y[n:].copy())])

    exact = bk.Simulation(m, q, rtol=1e-12, atol=1e-12).run(until=4.0).q[-1]
    for tolerance in (1e-4, 1e-6, 1e-8, 1e-10):
        sim = bk.Simulation(m, q, solver="gear", rtol=tolerance, atol=tolerance)
        end = sim.run(until=4.0).q[-1]
        plain = bk.solve_ivp(rates, (0.0, 4.0), np.concatenate([q, np.zeros(n)]), method="gear", rtol=tolerance,
                             atol=tolerance)
        assert sim.stats.evaluations < 0.85 * plain.nfev
        assert np.abs(end - exact).max() < 2 * np.abs(plain.y[:n, -1] - exact).max()


@pytest.mark.parametrize("damping", [2.5, 10.0])
def test_where_the_iteration_limits_steps_few_fail(damping):
    m = bk.models.mobile(0.2, 0.3, 0.2, 1.0, 1, 4, None, None, 2.0, damping=damping)
    q = m.neutral()
    q[0] = 0.8
    sim = bk.Simulation(m, q, solver="gear", rtol=1e-3, atol=1e-3)
    sim.run(until=2.0)
    assert sim.stats.rejected < 0.1 * sim.stats.steps


def test_a_tableau_of_ones_own_with_the_error_per_unit_of_time():
    """Shorter steps, since they are shorter than a second, and so a smaller error at the end."""
    m, q = bk.models.chain(2), np.array([0.8, 0.0])
    exact = bk.Simulation(m, q, solver="gear", rtol=1e-11, atol=1e-11)
    exact.run(until=2.0)
    runs = [bk.Simulation(m, q, solver=METHODS["rkf"]._replace(per_unit=unit, largest=unit), rtol=1e-4, atol=1e-4)
            for unit in (False, True)]
    errors = [np.abs(sim.run(until=2.0).q[-1] - exact.q).max() for sim in runs]
    assert runs[1].stats.steps > runs[0].stats.steps
    assert errors[1] < errors[0]
    assert "a tableau of order 5" in repr(runs[0])


@pytest.mark.parametrize(("rtol", "drift", "steps"), [(1e-6, 1e-3, 1500), (1e-9, 1e-6, 2500)])
def test_gear_passes_by_configurations_with_more_freedom(rtol, drift, steps):
    """Four-bars go round through the flat position, where they could fold the other way, some forty times."""
    m = bk.models.n_four_bar(2)
    q, v = bk.project(m, m.neutral(), np.array([-1.0, -1.0, -1.0, 1.0, 1.0]))
    sim = bk.Simulation(m, q, v, rtol=rtol, atol=1e-2 * rtol)
    trajectory = sim.run(20.0)
    assert abs(trajectory.q[-1, 0]) > 12 * np.pi
    _, kinetic, potential = trajectory.energy()
    assert np.ptp(kinetic + potential) < drift * kinetic.max()
    assert sim.stats.loop_error < 1e-9
    assert sim.stats.steps < steps


def test_gear_passes_by_them_at_a_tight_tolerance_wherever_steps_end():
    """Some 2000 passages in 20 motions of a minute, of which some steps end within 1e-4 rad of the flat position."""
    m = bk.models.n_four_bar(3)
    round_and_round = np.array([-1.0 if name.startswith("post") else 1.0 for name in m.joint_names])
    for speed in np.linspace(1.0, 2.0, 20):
        q, v = bk.project(m, m.neutral(), speed * round_and_round)
        sim = bk.Simulation(m, q, v, rtol=1e-9, atol=1e-11)
        trajectory = sim.run(60.0)
        _, kinetic, potential = trajectory.energy()
        assert abs(trajectory.q[-1, 0]) > 30 * np.pi
        assert np.ptp(kinetic + potential) < 1e-6 * kinetic.max()
        assert sim.stats.loop_error < 1e-9
        assert sim.stats.steps < 6000


@pytest.mark.parametrize("make", [lambda: bk.models.n_four_bar(3), bk.models.bricard], ids=["four-bars", "Bricard"])
def test_linkages_keep_energy_and_loops_at_a_tight_tolerance(make):
    """The four-bars swing below their posts' feet; `bunraku bench conservation` has a minute of them going round."""
    m = make()
    start = np.array([(2.4 if name.startswith("post") else -2.4) for name in m.joint_names])
    q = m.neutral() + start if m.joint_names[0] == "post0" else m.neutral()
    q, v = bk.project(m, q, np.where(start > 0, -1.0, 1.0))
    sim = bk.Simulation(m, q, v, rtol=1e-9, atol=1e-11)
    _, kinetic, potential = sim.run(20.0).energy()
    assert kinetic.max() > 1.0
    assert np.ptp(kinetic + potential) < 1e-6 * kinetic.max()
    assert sim.stats.loop_error < 1e-9


@pytest.mark.parametrize(("solver", "rtol"), [("tsit5", 1e-6), ("tsit5", 1e-9), ("rkf", 1e-6), ("rkf", 1e-9),
                                              ("rkg", 1e-7), ("rki", 1e-7)])
def test_runge_kutta_methods_pass_by_configurations_with_more_freedom(solver, rtol):
    """A slider-crank whose crank is as long as its rod: at right angles the slider could stay and both turn on."""
    for length, angle, speed in ((0.5, np.pi / 3, 1.0), (0.4, 0.9, 2.0), (0.7, 0.5, 4.0)):
        m = bk.models.slider_crank(length, length, angle)
        q, v = bk.project(m, m.neutral(), np.full(3, speed))
        sim = bk.Simulation(m, q, v, solver=solver, rtol=rtol, atol=1e-2 * rtol)
        trajectory = sim.run(6.0)
        _, kinetic, potential = trajectory.energy()
        assert np.ptp(kinetic + potential) < 300 * rtol * kinetic.max()
        assert np.ptp(trajectory.q[:, 0]) > np.pi  # it passed by, more than once
        assert sim.stats.loop_error < 1e-11


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


def test_redundant_loops_do_not_shorten_runge_kutta_steps():
    m = bk.models.bricard()
    q, v = bk.project(m, m.neutral(), np.ones(5))
    sim = bk.Simulation(m, q, v, solver="tsit5")
    _, kinetic, potential = sim.run(5.0).energy()
    assert np.ptp(kinetic + potential) < 1e-4 * kinetic.max()
    assert sim.stats.steps < 200  # 1652, and as many in vain, when stages were open


# -- loops that do not close ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "solver", "step", "speed"), [
    (bk.models.slider_crank, "symplectic_euler", 0.5, 1.0),
    (bk.models.slider_crank, "symplectic_euler", 0.1, 3.0),
    (lambda: bk.models.n_four_bar(3), "rk4", 0.5, 20.0),
    (bk.models.four_bar, "rk4", 0.5, 20.0),
    (bk.models.bricard, "rk4", 0.4, 10.0)])
def test_a_step_that_leaves_loops_open_ends_the_run_with_all_that_was_closed(make, solver, step, speed):
    m = make()
    q, v = bk.project(m, m.neutral(), np.array([(-1.0) ** (k // 2) for k in range(m.nv)]))
    v *= speed / np.abs(v).max()
    sim = bk.Simulation(m, q, v, solver=solver, step=step)
    with pytest.raises(bk.SimulationError, match=r"closed .* connection '.*' open by .*small") as caught:
        sim.run(30.0)
    trajectory = caught.value.trajectory
    assert trajectory.t[-1] == sim.t < 30.0
    assert len(trajectory.t) == sim.stats.steps + 1
    for at, moving in zip(trajectory.q, trajectory.v, strict=True):
        assert np.abs(bk.constraints(m, at).gap).max() < 1e-9
        assert np.abs(bk.constraints(m, at, moving).rates).max() < 1e-9 * max(1.0, np.abs(moving).max())


@pytest.mark.parametrize("solver", ["gear", "bdf", "implicit", "tsit5", "rk4", "symplectic_euler"])
def test_a_loop_that_is_driven_apart_ends_with_its_last_closed_state(solver):
    """Torques that grow with the speed, without bound: never a failure to look at what is not a number."""
    m = bk.models.four_bar()
    q, v = bk.project(m, m.neutral(), np.ones(3))
    sim = bk.Simulation(m, q, v, solver, actuation=lambda t, q, v: 1e3 * np.arctan(v) * v**2,
                        step=0.002 if solver in ("rk4", "symplectic_euler") else None)
    with pytest.raises(bk.SimulationError, match=r"cannot|too small") as caught:
        sim.run(1.0)
    trajectory = caught.value.trajectory
    assert trajectory.t[-1] == sim.t < 1.0
    assert np.isfinite(trajectory.v).all()
    assert np.abs(bk.constraints(m, sim.q).gap).max() < 1e-9


@pytest.mark.parametrize("rtol", [2e-4, 1e-3])
def test_steps_that_coast_stay_on_the_loops(rtol):
    """A step of the Bricard linkage at a loose tolerance may be predicted to end far off its loops."""
    m = bk.models.bricard()
    for speed in (1.0, 2.0, 3.5, 5.0, 7.0):
        q, v = bk.project(m, m.neutral(), np.full(5, speed))
        sim = bk.Simulation(m, q, v, rtol=rtol, atol=rtol)
        with contextlib.suppress(bk.SimulationError):
            sim.run(3.0)
        assert max(np.abs(bk.constraints(m, at).gap).max() for at in sim.trajectory.q) < 2e-9
