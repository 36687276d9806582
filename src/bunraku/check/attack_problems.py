"""Contact problems: random impacts, each solution checked against the contact law and compared with Pinocchio's
ADMM."""

from __future__ import annotations

import functools
import importlib.util
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import bunraku as bk
from bunraku.bench import model_files as files
from bunraku.check import Case
from bunraku.errors import LoadError
from bunraku.evaluate.contact_problem import solve_problem

TITLE = "random impacts with friction (robots on 8 foot points, stacks, any Theta): the law holds; beside pin's ADMM"
UNIT = "contact problems"
SEEDS, SHORT, LIMIT = 1000, 40, 300.0
PROBLEMS = 10          # in a case
TOLERANCE = 1e-10      # residual
FAR = 1e-9             # part of b in the same problem solved from the forces of the whole: a much shorter step
AGREE = 1e-7           # of the size of the problem: velocities that differ by more belong to another solution, which
                       # should be one here too, with Pinocchio's forces to start from
PIN_SOLVED = 1e-10     # residual up to which Pinocchio's velocities are compared
ADMM_TOLERANCE = 1e-10
ADMM_ITERATIONS = 5000
REPEATS = 3            # of what is timed


class Problem(NamedTuple):
    """u = theta f + b; normal, two tangents for each contact."""

    theta: np.ndarray
    b: np.ndarray
    mu: np.ndarray


def violation(problem: Problem, force) -> float:
    """Violation of the contact law by forces (3K,), in units of u over the size of the problem: for each condition the
    smaller of the change of velocity and of force (times the diagonal of theta) that would meet it."""
    theta, b, mu = problem
    f = np.asarray(force, float).reshape(-1, 3)
    u = (theta @ f.ravel() + b).reshape(-1, 3)
    d = np.diag(theta).reshape(-1, 3)
    size = max(np.abs(b).max(initial=0.0), np.abs(d * f).max(initial=0.0))
    along, across = d[:, 0], 0.5 * (d[:, 1] + d[:, 2])
    slip, friction = np.linalg.norm(u[:, 1:], axis=1), np.linalg.norm(f[:, 1:], axis=1)
    limit = mu * f[:, 0]
    with np.errstate(invalid="ignore", divide="ignore"):
        opposite = np.linalg.norm(u[:, 1:] / slip[:, None] + f[:, 1:] / friction[:, None], axis=1)
    conditions = (-u[:, 0], -along * f[:, 0], np.minimum(np.abs(u[:, 0]), along * np.abs(f[:, 0])),  # Signorini
                  across * (friction - limit),                                                       # disc
                  np.minimum(slip, across * (limit - friction)),                                     # slip: its border
                  np.minimum(slip, across * friction) * np.nan_to_num(opposite))                     # against the slip
    return float(np.max(conditions, initial=0.0) / size) if size > 0.0 else 0.0


def leaves_motion_open(problem: Problem, solution) -> bool:
    """Whether velocities can change without any change of modes: redundant contacts that slide in several directions
    share the normal force in many ways, and friction follows. Null space of the linearised law."""
    theta, mu = problem.theta, problem.mu
    n = theta.shape[0]
    law, f, u = np.zeros((n, n)), solution.force, solution.velocity
    touching = u[:, 0] <= 1e-9 * np.abs(u).max()  # also without force
    for k, mode in enumerate(solution.modes):
        i = 3 * k
        if not touching[k]:
            law[i:i + 3, i:i + 3] = np.eye(3)
        elif mode == "sticking":
            law[i:i + 3] = theta[i:i + 3]
        else:
            slip = np.linalg.norm(u[k, 1:])
            law[i] = theta[i]
            law[i + 1:i + 3, i + 1:i + 3] = np.eye(2)
            if slip > 0.0:
                e = u[k, 1:] / slip
                law[i + 1:i + 3, i] += mu[k] * e
                law[i + 1:i + 3] += mu[k] * f[k, 0] / slip * (np.eye(2) - np.outer(e, e)) @ theta[i + 1:i + 3]
    d = np.sqrt(np.maximum(np.diag(theta), 1e-300))
    _, sizes, rows = np.linalg.svd(d[:, None] * law / np.maximum(np.abs(law).max(axis=1), 1e-300)[:, None] / d)
    free = rows[sizes < 1e-9 * sizes[0]] / d
    return bool(free.size) and bool((np.abs(free @ theta) / d).max() > 1e-6)


# -- problems ----------------------------------------------------------------------------------------------------------

def from_jacobian(J, mobility, v, mu) -> Problem:
    """Bodies with velocities v before the impact and a diagonal or full inverse of the mass matrix."""
    theta = (J * mobility) @ J.T if mobility.ndim == 1 else J @ mobility @ J.T
    return Problem(0.5 * (theta + theta.T), J @ v, mu)


@functools.cache
def robot(name: str) -> tuple[bk.Mechanism, tuple[str, str]]:
    """A robot and its feet; the built-in humanoid if the package example-robot-data is not installed."""
    if name == "talos":
        try:
            return files.read(files.find("talos_reduced.urdf"))[0], ("leg_left_6_link", "leg_right_6_link")
        except LoadError:
            pass
    return bk.models.humanoid(), ("left_ankle_roll", "right_ankle_roll")


def on_feet(rng, name: str) -> Problem:
    """A robot in a random state that lands on four points of each foot; soles are level as far as the state has it."""
    m, feet = robot(name)
    q = m.neutral()
    q[7:] += 0.3 * rng.normal(size=m.nq - 7)
    v = 0.5 * rng.normal(size=m.nv)
    v[2] -= rng.uniform(0.0, 2.0)
    at = bk.kinematics(m, q)
    points = [(x, y, -0.1) for x in (-0.1, 0.1) for y in (-0.06, 0.06)]
    J = np.concatenate([at.jacobian(foot, point)[[2, 0, 1]] for foot in feet for point in points])
    return from_jacobian(J, np.linalg.inv(bk.mass_matrix(m, q)), v, np.full(8, rng.uniform(0.0, 2.0)))


def cross(p) -> np.ndarray:
    return np.array([[0.0, -p[2], p[1]], [p[2], 0.0, -p[0]], [-p[1], p[0], 0.0]])


def point_rows(bodies: int, contacts) -> np.ndarray:
    """Rows of contacts (body above, body below or -1, normal, point of each) of free bodies."""
    rows = []
    for above, below, normal, on_above, on_below in contacts:
        J = np.zeros((3, 6 * bodies))
        for body, point, sign in ((above, on_above, 1.0), (below, on_below, -1.0)):
            if body >= 0:
                J[:, 6 * body:6 * body + 3] = sign * np.eye(3)
                J[:, 6 * body + 3:6 * body + 6] = -sign * cross(point)
        first = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
        first /= np.linalg.norm(first)
        rows.append(np.stack([normal, first, np.cross(normal, first)]) @ J)
    return np.concatenate(rows)


def stack(rng) -> Problem:
    """Boxes on each other, four points each, or spheres on and beside each other; masses differ by up to 10^6."""
    bodies = int(rng.integers(1, 4))
    mass = 10.0 ** rng.uniform(-3.0, 3.0, bodies)
    up = np.array([0.0, 0.0, 1.0])
    if rng.random() < 0.6:
        inertia = np.outer(mass, np.array([0.05, 0.05, 0.08]) / 12.0)
        corners = [np.array([x, y, 0.0]) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
        half = 0.05 * up
        contacts = [(i, i - 1, up, corner - half, corner + half) for i in range(bodies) for corner in corners]
    else:
        inertia = np.outer(mass, np.full(3, 0.4 * 0.1**2))
        contacts = []
        for i in range(bodies):
            for below in {-1, i - 1, int(rng.integers(-1, i)) if i else -1}:
                normal = up if below < 0 else rng.normal(size=3) * 0.5 + up
                normal = normal / np.linalg.norm(normal)
                contacts.append((i, below, normal, -0.1 * normal, 0.1 * normal))
    mobility = (1.0 / np.concatenate([np.repeat(mass, 3).reshape(-1, 3), inertia], axis=1)).ravel()
    v = rng.choice([0.0, 0.1, 1.0]) * rng.normal(size=6 * bodies)
    v[2::6] -= 0.1
    v[0::6] += rng.choice([0.0, 2.0]) * rng.normal()
    mu = np.full(len(contacts), rng.uniform(0.0, 2.0)) if rng.random() < 0.5 else rng.uniform(0.0, 2.0, len(contacts))
    return from_jacobian(point_rows(bodies, contacts), mobility, v, mu)


def any_theta(rng) -> Problem:
    """Random rows of any rank; masses differ by up to 10^6, and a tenth of the contacts is without friction."""
    count = int(rng.integers(1, 9))
    size = int(rng.integers(1, 3 * count + 4))
    mass = 10.0 ** rng.uniform(-3.0, 3.0, size)
    mu = rng.uniform(0.0, 2.0, count) * (rng.random(count) < 0.9)
    return from_jacobian(rng.normal(size=(3 * count, size)), 1.0 / mass, rng.normal(size=size) / np.sqrt(mass), mu)


FAMILIES: dict[str, Callable[[np.random.Generator], Problem]] = {
    "talos": functools.partial(on_feet, name="talos"), "humanoid": functools.partial(on_feet, name="humanoid"),
    "stacks": stack, "any Theta": any_theta}


# -- Pinocchio ---------------------------------------------------------------------------------------------------------

class Admm:
    """`pin.ADMMConstraintSolver` for one problem, without what can be prepared."""

    def __init__(self, problem: Problem):
        import pinocchio as pin

        self.order = np.arange(len(problem.b)).reshape(-1, 3)[:, [1, 2, 0]].ravel()  # tangents first there
        model = pin.Model()
        model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "body")
        self.models, self.data = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
        for mu in problem.mu:
            contact = pin.PointContactConstraintModel(model, 1, pin.SE3.Identity())
            contact.setFriction(float(mu))
            constraint = pin.ConstraintModel(contact)
            self.models.append(constraint)
            self.data.append(constraint.createData())
        self.theta = np.asfortranarray(problem.theta[np.ix_(self.order, self.order)])
        self.b = problem.b[self.order].copy()
        self.settings = pin.ADMMSolverSettings()
        for name in ("absolute_feasibility_tol", "absolute_complementarity_tol", "relative_feasibility_tol",
                     "relative_complementarity_tol"):
            setattr(self.settings, name, ADMM_TOLERANCE)
        self.settings.max_iterations = ADMM_ITERATIONS
        self.solver = pin.ADMMConstraintSolver()

    def solve(self) -> tuple[np.ndarray, int, float]:
        """Forces, iterations, seconds: the best of some, each from a cold start."""
        import pinocchio as pin

        seconds = np.inf
        for _ in range(REPEATS):
            theta, result = pin.DelassusOperatorDense(self.theta), pin.ADMMSolverResult()
            began = time.perf_counter()
            self.solver.solve(theta, self.b, self.models, self.data, self.settings, result)
            seconds = min(seconds, time.perf_counter() - began)
        force = np.empty(len(self.b))
        force[self.order] = result.retrieveConstraintImpulses()
        return force, result.iterations, seconds


def case(seed: int) -> Case:
    """Some problems of one family."""
    rng = np.random.default_rng([29, seed])
    family = list(FAMILIES)[seed % len(FAMILIES)]
    beside = importlib.util.find_spec("pinocchio") is not None
    worst = {"residual": 0.0, "velocities beside pin": 0.0, "smallest forces: velocities": 0.0}
    measured: dict[str, list[float]] = {}
    counts = {f"{family}: problems": PROBLEMS}
    for number in range(PROBLEMS):
        problem = FAMILIES[family](rng)
        solution = solve_problem(*problem)
        residual = violation(problem, solution.force)
        _count(counts, f"{family}: not solved, and said so", solution.status == "rough")
        if solution.status == "rough":
            continue
        _require(residual <= TOLERANCE, f"problem {number} ({family}, {len(problem.mu)} contacts) is {solution.status} "
                                        f"with a residual of {residual:.2g}, by the solver {solution.residual:.2g}")
        worst["residual"] = max(worst["residual"], residual)
        size = max(np.abs(problem.b).max(), (np.diag(problem.theta) * np.abs(solution.force.ravel())).max())
        small = solve_problem(*problem, smallest=True)
        change = float(np.abs(small.velocity - solution.velocity).max() / size)
        _require(change <= TOLERANCE, f"problem {number} ({family}): smaller forces change velocities by {change:.2g}")
        _require(np.linalg.norm(small.force) <= np.linalg.norm(solution.force) * (1 + 1e-9),
                 f"problem {number} ({family}): smallest forces are larger than others")
        worst["smallest forces: velocities"] = max(worst["smallest forces: velocities"], change)
        far = solve_problem(problem.theta, FAR * problem.b, problem.mu, start="forces", force=solution.force)
        _count(counts, f"{family}: not solved from forces {1.0 / FAR:g} times too large", far.status == "rough")
        _add(measured, f"{family}: iterations", solution.iterations)
        _add(measured, f"{family}: residual", residual)
        _add(measured, f"{family}: us", 1e6 * _seconds(problem))
        _count(counts, f"{family}: smallest forces found", small.smallest)
        if beside:
            force, iterations, seconds = Admm(problem).solve()
            theirs = violation(problem, force)
            for bar in (PIN_SOLVED, 10.0 * PIN_SOLVED):
                _count(counts, f"{family}: solved by pin to {bar:g}", theirs <= bar)
            _add(measured, f"{family}: pin iterations", iterations)
            _add(measured, f"{family}: pin residual", theirs)
            _add(measured, f"{family}: pin us", 1e6 * seconds)
            if theirs <= PIN_SOLVED:
                velocity = (problem.theta @ force + problem.b).reshape(-1, 3)
                other = np.abs(velocity - solution.velocity).max() > AGREE * size
                _count(counts, f"{family}: another solution of pin", other)
                _count(counts, f"{family}: of these, motion left open by the law",
                       other and leaves_motion_open(problem, solution))
                again = solve_problem(*problem, start="forces", force=force.reshape(-1, 3)) if other else solution
                differ = float(np.abs(velocity - again.velocity).max() / size)
                _count(counts, f"{family}: of these, left again from pin's forces on", differ > AGREE)
                if differ <= AGREE:
                    worst["velocities beside pin"] = max(worst["velocities beside pin"], differ)
    return Case(PROBLEMS, worst, measured, counts)


def _seconds(problem: Problem) -> float:
    """Time of one solution, from the minimum-norm sticking forces: the best of some [s]."""
    from bunraku.contact.contact_entries import problem_one

    count = len(problem.mu)
    force, velocity, report = np.empty(3 * count), np.empty(3 * count), np.empty(4)
    theta, slip = problem.theta.ravel(), np.zeros(2 * count)
    kind, mode = np.zeros(count, np.int64), np.zeros(count, np.int64)
    best = np.inf
    for _ in range(REPEATS):
        force[:] = 0.0
        began = time.perf_counter()
        problem_one.call(theta, problem.b, problem.mu, kind, slip, 0, 0, force, velocity, mode, report)
        best = min(best, time.perf_counter() - began)
    return best


def _add(measured, what, value) -> None:
    measured.setdefault(what, []).append(float(value))


def _count(counts, what, holds) -> None:
    counts[what] = counts.get(what, 0) + int(holds)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)
