"""The contact problem: hand-solved cases, random ones against the law itself, starts, Painleve, smallest forces."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from bunraku.check import attack_problems as check
from bunraku.contact import contact_fields as c
from bunraku.contact.contact_entries import problem_one
from bunraku.contact.least_norm import least_norm
from bunraku.errors import ShapeError
from bunraku.evaluate.contact_problem import solve_problem

G = 9.81


def box(x=0.2, y=0.1, height=0.1, mass=2.0, inertia=0.01):
    """Rows and mobility of a box on four points."""
    up = np.array([0.0, 0.0, 1.0])
    corners = [np.array([sx * x, sy * y, -height]) for sx in (-1, 1) for sy in (-1, 1)]
    J = check.point_rows(1, [(0, -1, up, corner, None) for corner in corners])
    return J, 1.0 / np.array([mass] * 3 + [inertia] * 3)


# -- hand-solved -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("angle", [0.0, 0.1, np.arctan(0.5) * 0.999, np.arctan(0.5) * 1.001, 0.9, 1.5])
def test_block_on_an_incline(angle):
    """Rest below the friction angle; above it g (sin - mu cos)."""
    mu, mass = 0.5, 3.0
    solution = solve_problem(np.eye(3) / mass, [-G * np.cos(angle), G * np.sin(angle), 0.0], mu)
    assert solution.status == "solved"
    sticks = np.tan(angle) <= mu
    assert solution.modes == ("sticking" if sticks else "sliding",)
    acceleration = 0.0 if sticks else G * (np.sin(angle) - mu * np.cos(angle))
    assert np.allclose(solution.velocity, [[0.0, acceleration, 0.0]], rtol=0, atol=1e-14)
    assert np.isclose(solution.force[0, 0], mass * G * np.cos(angle), rtol=1e-12)


@pytest.mark.parametrize(("mu", "speed"), [(0.1, 1.0), (2 / 7, 1.0), (0.5, 1.0), (0.0, 1.0), (0.1, 0.0)])
def test_sphere_that_strikes_the_ground(mu, speed):
    """Slides on if mu (v_n) < 2/7 of the speed of its contact point; otherwise rolls."""
    mass, down = 2.0, 1.0
    theta = np.diag([1.0, 3.5, 3.5]) / mass
    direction = np.array([0.6, 0.8])
    solution = solve_problem(theta, [-down, *(speed * direction)], mu)
    friction = min(mu * mass * down, speed * mass / 3.5)
    assert np.allclose(solution.force[0], [mass * down, *(-friction * direction)], rtol=0, atol=1e-13)
    assert np.allclose(solution.velocity[0], [0.0, *((speed - 3.5 * friction / mass) * direction)], rtol=0, atol=1e-13)


def test_a_rising_contact_is_open():
    solution = solve_problem(np.eye(3), [1.0, 5.0, 0.0], 0.7)
    assert solution.modes == ("open",)
    assert not solution.force.any()


@pytest.mark.parametrize("smallest", [False, True])
def test_box_at_rest_on_four_points_weighs_a_quarter_on_each(smallest):
    J, mobility = box()
    problem = check.from_jacobian(J, mobility, np.array([0.0, 0.0, -G, 0.0, 0.0, 0.0]), np.full(4, 0.5))
    solution = solve_problem(*problem, smallest=smallest)
    assert np.allclose(solution.force, [[2.0 * G / 4, 0.0, 0.0]] * 4, rtol=0, atol=1e-12)
    assert np.allclose(solution.velocity, 0.0, rtol=0, atol=1e-12)


def test_pushed_box_slides_flat_and_leans_on_its_leading_edge():
    """Normal forces of front and rear points: N/2 (1 +- mu h/x); friction mu N."""
    mu, x, h, mass = 0.5, 0.2, 0.1, 2.0
    J, mobility = box(x=x, height=h, mass=mass)
    problem = check.from_jacobian(J, mobility, np.array([20.0, 0.0, -G, 0.0, 0.0, 0.0]), np.full(4, mu))
    solution = solve_problem(*problem, smallest=True)
    assert set(solution.modes) == {"sliding"}
    weight = mass * G / 4
    rear, front = weight * (1 - mu * h / x), weight * (1 + mu * h / x)
    assert np.allclose(solution.force[:, 0], [rear, rear, front, front], rtol=1e-12)
    along = np.linalg.lstsq(J, solution.velocity.ravel(), rcond=None)[0]
    assert np.allclose(along, [20.0 - mu * G, 0, 0, 0, 0, 0], rtol=0, atol=1e-11)


def test_block_that_would_tip_lifts_its_rear_points():
    J, mobility = box(x=0.02, height=0.5)
    problem = check.from_jacobian(J, mobility, np.array([5.0, 0.0, -1.0, 0.0, 0.0, 0.0]), np.full(4, 1.0))
    solution = solve_problem(*problem)
    assert solution.modes[:2] == ("open", "open")
    assert check.violation(problem, solution.force) < 1e-12


# -- given slip --------------------------------------------------------------------------------------------------------

ROD = np.array([[1.0, -3.0, 0.0], [-3.0, 12.0, 0.0], [0.0, 0.0, 1.0]])  # a slanted rod's end


def test_given_slip_has_friction_against_it():
    """f_n = 1 / (W_nn + mu W_nt e), e against the slip."""
    solution = solve_problem(ROD, [-1.0, 0.0, 0.0], 0.2, slip=[(-1.0, 0.0)])
    assert np.allclose(solution.force, [[2.5, 0.5, 0.0]], rtol=1e-12)
    assert solution.modes == ("sliding",)
    assert abs(solution.velocity[0, 0]) < 1e-14


def test_painleve_has_no_solution():
    solution = solve_problem(ROD, [-1.0, 0.0, 0.0], 1.0, slip=[(-1.0, 0.0)])
    assert solution.status == "no solution"
    assert solution.residual > 0.1


def test_painleve_with_several_solutions_stays_open():
    solution = solve_problem(ROD, [1.0, 0.0, 0.0], 1.0, slip=[(-1.0, 0.0)])
    assert solution.status == "solved"
    assert not solution.force.any()


def test_the_rod_that_may_stick_has_a_solution():
    solution = solve_problem(ROD, [-1.0, 0.0, 0.0], 1.0)
    assert solution.status == "solved"
    assert solution.modes == ("sticking",)


def test_given_slip_has_a_solution_if_one_of_all_combinations_has():
    """A linear complementarity problem, solved by going through all sets of closed contacts."""
    rng = np.random.default_rng(5)
    outcomes = set()
    for _ in range(200):
        count = int(rng.integers(1, 5))
        J = rng.normal(size=(3 * count, 3 * count + 2))
        mu = rng.uniform(0.0, 3.0, count)
        angle = rng.uniform(0, 2 * np.pi, count)
        slip = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        theta, b = J @ J.T, 3.0 * rng.normal(size=3 * count) - 1.0
        pushes = np.zeros((3 * count, count))
        for k in range(count):
            pushes[3 * k:3 * k + 3, k] = [1.0, *(-mu[k] * slip[k])]
        N = (theta @ pushes)[::3]
        exists = False
        for choice in itertools.product([False, True], repeat=count):
            closed, f = np.array(choice), np.zeros(count)
            f[closed] = np.linalg.solve(N[np.ix_(closed, closed)], -b[::3][closed])
            exists |= bool((f >= 0.0).all() and (N @ f + b[::3] >= -1e-9).all())
        solution = solve_problem(theta, b, mu, slip=slip)
        assert solution.status == ("solved" if exists else "no solution")
        outcomes.add(solution.status)
        if exists:
            f, u = solution.force, solution.velocity
            assert np.allclose(f.ravel(), pushes @ f[:, 0], rtol=0, atol=1e-9)
            assert (f[:, 0] >= 0.0).all()
            assert (u[:, 0] >= -1e-9).all()
            assert (np.abs(u[:, 0] * f[:, 0]) <= 1e-9).all()
    assert outcomes == {"solved", "no solution"}


def test_given_and_other_contacts_together():
    rng = np.random.default_rng(3)
    for _ in range(50):
        problem = check.any_theta(rng)
        count = len(problem.mu)
        slip = np.full((count, 2), np.nan)
        angles = rng.uniform(0, 2 * np.pi, count)
        which = rng.random(count) < 0.5
        slip[which] = np.stack([np.cos(angles), np.sin(angles)], axis=1)[which]
        mu = 0.1 * problem.mu
        solution = solve_problem(problem.theta, problem.b, mu, slip=slip)
        if solution.status != "solved":
            assert solution.status == "no solution"
            continue
        f, u = solution.force, solution.velocity
        size = max(np.abs(problem.b).max(), np.abs(np.diag(problem.theta) * f.ravel()).max())
        assert np.allclose(f[which, 1:], -mu[which, None] * f[which, :1] * slip[which], rtol=0, atol=1e-12 * f.max())
        assert (u[:, 0] >= -1e-10 * size).all()
        assert (f[:, 0] >= 0.0).all()
        d = np.diag(problem.theta)[::3]
        assert (np.minimum(np.abs(u[:, 0]), d * f[:, 0]) <= 1e-10 * size).all()


# -- random ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("family", list(check.FAMILIES))
@pytest.mark.parametrize("seed", range(3))
def test_random_problems_obey_the_law(family, seed):
    rng = np.random.default_rng([seed, len(family)])
    for _ in range(25):
        problem = check.FAMILIES[family](rng)
        solution = solve_problem(*problem)
        assert solution.status == "solved"
        assert check.violation(problem, solution.force) <= 1e-10


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 5), st.integers(1, 18), st.integers(0, 2**32 - 1), st.floats(0, 3), st.sampled_from([0.0, 3.0]))
def test_any_semidefinite_theta(count, rank, seed, mu, spread):
    """Impacts of any system of masses have a solution; the answer obeys the law, or says that it does not."""
    rng = np.random.default_rng(seed)
    J = np.round(rng.normal(size=(3 * count, rank)), 1)  # zeros and repetitions
    mobility = 10.0 ** rng.uniform(-spread, spread, rank)
    problem = check.from_jacobian(J, mobility, np.round(rng.normal(size=rank), 1), np.full(count, mu))
    solution = solve_problem(*problem, smallest=True)
    residual = check.violation(problem, solution.force)
    assert solution.status in ("solved", "rough")
    if solution.status == "solved":
        assert residual <= 1e-9
    else:
        assert residual <= 10 * solution.residual


@pytest.mark.parametrize("seed", [0, 949])
def test_solutions_of_pinocchio_are_solutions_here(seed):
    """Seed 949: a contact at the border of its cone does not move; Newton's method left the solution."""
    pytest.importorskip("pinocchio")
    found = check.case(seed)
    assert found.worst["velocities beside pin"] < 1e-7
    assert sum(count for what, count in found.counts.items() if "solved by pin" in what) > 5


def test_known_forces_or_modes_are_found_at_once():
    rng = np.random.default_rng(7)
    for _ in range(20):
        problem = check.on_feet(rng, "humanoid")
        solution = solve_problem(*problem)
        again = solve_problem(*problem, start="forces", force=solution.force)
        assert again.iterations <= 1
        modes = solve_problem(*problem, start="modes", modes=solution.modes, force=solution.force)
        assert modes.iterations <= 2
        assert modes.status == "solved"


@pytest.mark.parametrize("family", list(check.FAMILIES))
@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_forces_of_a_much_longer_or_shorter_step_are_a_start(family, factor):
    """Velocities and forces are proportional: a start that is far too large must not hide the solution."""
    rng = np.random.default_rng(len(family))
    for _ in range(10):
        problem = check.FAMILIES[family](rng)
        start = solve_problem(*problem).force
        scaled = problem._replace(b=factor * problem.b)
        solution = solve_problem(*scaled, start="forces", force=start)
        assert solution.status == "solved"
        assert check.violation(scaled, solution.force) <= 1e-10


def test_the_fallen_figure_in_a_step_of_rounding():
    """Ten contacts of `bunraku demo fall`: a last step of 3e-13 s, from the impulses of one of 2.5e-4 s."""
    with np.load(Path(__file__).with_name("far_start.npz")) as file:
        lower, b, mu, force = file["lower"], file["b"], file["mu"], file["force"]
    theta = np.zeros((b.size, b.size))
    theta[np.tril_indices(b.size)] = lower
    problem = check.Problem(theta + np.tril(theta, -1).T, b, mu)
    for start in ({}, {"start": "forces", "force": force}):
        solution = solve_problem(*problem, **start)
        assert solution.status == "solved"
        assert check.violation(problem, solution.force) <= 1e-10


def test_nothing_to_do():
    assert solve_problem(np.zeros((0, 0)), [], 0.5).status == "solved"
    still = solve_problem(np.eye(3), np.zeros(3), 0.5)
    assert still.status == "solved"
    assert not still.force.any()


def test_a_contact_that_nothing_can_move_is_rough_and_not_a_crash():
    solution = solve_problem(np.zeros((3, 3)), [-1.0, 0.0, 0.0], 0.5)
    assert solution.status == "rough"
    assert np.isfinite(solution.force).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_end_rough(wrong):
    for where in ("theta", "b", "force"):
        given = {"theta": np.eye(6).ravel(), "b": -np.ones(6), "force": np.ones(6)}
        given[where][0] = wrong
        report = np.zeros(4)
        problem_one.call(given["theta"], given["b"], np.full(2, 0.5), np.zeros(2, np.int64), np.zeros(4), c.FORCES, 0,
                         given["force"], np.empty(6), np.zeros(2, np.int64), report)
        assert report[2] == (c.SOLVED if where == "force" else c.ROUGH)


# -- smallest forces ---------------------------------------------------------------------------------------------------

def test_smallest_forces_are_those_of_a_quadratic_program():
    rng = np.random.default_rng(11)
    compared = 0
    for _ in range(12):
        J, mobility = box(*rng.uniform(0.05, 0.3, 3))
        v = np.array([*rng.normal(size=2) * 2, -2.0, *rng.normal(size=3)])
        problem = check.from_jacobian(J, mobility, v, np.full(4, rng.uniform(0.2, 1.0)))
        start = {"start": "forces", "force": rng.normal(size=(4, 3)) + np.array([3.0, 0.0, 0.0])}
        solution = solve_problem(*problem, **start)
        small = solve_problem(*problem, **start, smallest=True)
        assert small.smallest
        assert np.allclose(small.velocity, solution.velocity, rtol=0, atol=1e-10)
        assert small.modes == solution.modes
        expected = smallest_by_scipy(problem, solution)
        compared += np.linalg.norm(solution.force) > np.linalg.norm(small.force) * (1 + 1e-6)
        assert np.linalg.norm(small.force) <= np.linalg.norm(expected) * (1 + 1e-7)
        assert check.violation(problem, small.force) <= 1e-10
    assert compared > 0


def smallest_by_scipy(problem, solution):
    """Forces of least norm with the same motion, by SLSQP; for sliding contacts in terms of the normal force."""
    basis = []
    for k, mode in enumerate(solution.modes):
        if mode == "sticking":
            basis += [np.eye(12)[3 * k + j] for j in range(3)]
        elif mode == "sliding":
            e = solution.velocity[k, 1:] / np.linalg.norm(solution.velocity[k, 1:])
            column = np.zeros(12)
            column[3 * k:3 * k + 3] = [1.0, *(-problem.mu[k] * e)]
            basis.append(column)
    if not basis:
        return np.zeros(12)
    B = np.array(basis).T
    start = np.linalg.lstsq(B, solution.force.ravel(), rcond=None)[0]
    left, sizes, right = np.linalg.svd(problem.theta @ B)
    free = right[np.sum(sizes > 1e-9 * sizes[0]):].T
    if not free.size:
        return B @ start

    def inside(z):
        f = (B @ (start + free @ z)).reshape(-1, 3)
        stick = [k for k, mode in enumerate(solution.modes) if mode == "sticking"]
        return np.concatenate([f[:, 0], (problem.mu * f[:, 0])[stick] - np.linalg.norm(f[stick, 1:], axis=1)])

    found = minimize(lambda z: 0.5 * np.sum((B @ (start + free @ z))**2), np.zeros(free.shape[1]), method="SLSQP",
                     constraints={"type": "ineq", "fun": inside}, options={"ftol": 1e-14, "maxiter": 500})
    return B @ (start + free @ found.x) if inside(found.x).min() > -1e-9 else B @ start


# -- linear algebra ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("n", "rank"), [(1, 1), (1, 0), (3, 2), (6, 6), (12, 7), (24, 12), (24, 24), (9, 0)])
def test_least_norm_is_the_pseudoinverse(n, rank):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, n))
    b = A @ rng.normal(size=n)
    work = np.concatenate([A.T.ravel(), b, np.full(n * n + 3 * n, np.nan)])
    assert least_norm(n, 0, n * n, n * n + n, 1e-12, work) == rank
    assert np.allclose(work[n * n:n * n + n], np.linalg.pinv(A, rcond=1e-10) @ b, rtol=1e-9, atol=1e-9)


# -- errors ------------------------------------------------------------------------------------------------------------

ONE = {"theta": np.eye(3), "b": np.zeros(3), "mu": 0.5}


@pytest.mark.parametrize(("change", "message"), [
    ({"b": [0.0, 1.0]}, "3 numbers a contact"),
    ({"theta": np.eye(4)}, "theta has the shape"),
    ({"theta": np.triu(np.ones((3, 3)))}, "not symmetric"),
    ({"mu": -0.5}, "mu of contact 0 is negative"),
    ({"b": [np.nan, 0.0, 0.0]}, "b is not finite"),
    ({"slip": [(1.0, 1.0)]}, "unit vectors"),
    ({"start": "warm"}, "start is 'warm'"),
    ({"start": "modes"}, "modes is None"),
])
def test_wrong_calls(change, message):
    with pytest.raises(ShapeError, match=message):
        solve_problem(**(ONE | change))
