"""Contact problems in lanes: Coulomb's law, whatever the neighbours have; rollouts of robots that walk and stand."""

import math

import numpy as np
import pytest

import bunraku as bk
from bunraku.contact.lane_problem import lane_problem, solve_in_lanes
from bunraku.entries.signatures import lane_array
from bunraku.spatial.lanes import WIDTH
from bunraku.tolerances import LAW_CLOSE

STEPPING = {"solver": "symplectic_euler", "step": 2e-3}


def problem(rng, bodies, points):
    """Theta, b and mu of flat feet: points in a plane, redundant from the third on, on bodies of random inertia."""
    size = 6 * bodies
    inertia = rng.normal(size=(size, size))
    inertia = inertia @ inertia.T + 0.1 * size * np.eye(size)
    rows = np.zeros((3 * bodies * points, size))
    for i in range(bodies * points):
        first, x = 6 * (i // points), np.array([*rng.uniform(-1.0, 1.0, 2), 0.3])
        for r, e in enumerate(np.eye(3)[[2, 0, 1]]):
            rows[3 * i + r, first:first + 6] = [*np.cross(x, e), *e]
    theta = rows @ np.linalg.solve(inertia, rows.T)
    motion = rng.normal(size=size) - np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 3.0], bodies)
    return theta, rows @ motion, rng.uniform(0.1, 1.0, len(rows) // 3)


def solved(problems):
    """(forces, residuals) of problems of the same size, each in its lane; None: a lane without numbers."""
    count = len(next(p for p in problems if p)[2])
    p, theta, wanted = lane_problem(count), lane_array(9 * count * count), [float(x is not None) for x in problems]
    for array in (*(x for x in p if x.ndim == 2), theta):
        array[:] = np.nan
    p.wanted[0] = wanted
    for w, given in enumerate(problems):
        if given:
            theta[:, w], p.b[:, w], p.mu[:, w], p.force[:, w] = given[0].ravel(), given[1], given[2], 0.0
    solve_in_lanes(p, theta, count)
    return p.force.T.copy(), p.residual[0].copy()


def violation(theta, b, mu, force):
    """Largest violation of Signorini's and Coulomb's law, in velocities, as part of the problem's size."""
    u, mobility = (theta @ force + b).reshape(-1, 3), np.diag(theta).reshape(-1, 3)
    f = force.reshape(-1, 3)
    friction, slip = np.linalg.norm(f[:, 1:], axis=1), np.linalg.norm(u[:, 1:], axis=1)
    cone = mu * f[:, 0] - friction
    law = [-u[:, 0], -f[:, 0] * mobility[:, 0], np.minimum(u[:, 0], f[:, 0] * mobility[:, 0]),
           -cone * mobility[:, 1], np.minimum(cone * mobility[:, 1], slip),
           np.linalg.norm(f[:, 1:] * slip[:, None] + mu[:, None] * f[:, :1] * u[:, 1:], axis=1) / (1.0 + friction)]
    return max(x.max() for x in law) / max(np.abs(b).max(), (mobility * np.abs(f)).max())


@pytest.mark.parametrize(("bodies", "points"), [(1, 1), (2, 1), (1, 4), (2, 4)])
def test_what_is_solved_in_lanes_obeys_coulombs_law(bodies, points):
    rng, good = np.random.default_rng(bodies + 10 * points), 0
    for _ in range(40):
        problems = [problem(rng, bodies, points) for _ in range(WIDTH)]
        forces, residuals = solved(problems)
        for given, force, residual in zip(problems, forces, residuals, strict=True):
            if residual <= LAW_CLOSE:
                good += 1
                assert violation(*given, force) < 1e-10
    assert good > 0.5 * 40 * WIDTH


def test_neighbours_change_no_bit_of_a_solution():
    rng = np.random.default_rng(5)
    for _ in range(20):
        first, *others = (problem(rng, 2, 4) for _ in range(WIDTH))
        together, residual = solved([first, *others])
        alone, same = solved([first] + [None] * (WIDTH - 1))
        assert np.array_equal(alone[0], together[0])
        assert same[0] == residual[0]


def quadruped():
    """A trunk on four legs with springs, on balls; and its posture."""
    m = bk.Mechanism()
    m.add_link("trunk", joint=bk.Free(), mass=12.0, inertia=(0.1, 0.4, 0.45))
    for leg, (x, y) in {"lf": (0.3, 0.15), "rf": (0.3, -0.15), "lh": (-0.3, 0.15), "rh": (-0.3, -0.15)}.items():
        m.add_link(f"{leg} thigh", "trunk", bk.Revolute((0, 1, 0), stiffness=300.0, damping=1.5, rest=0.6),
                   f"{leg} hip", position=(x, y, 0.0), mass=1.0, com=(0, 0, -0.12), inertia=(0.01, 0.01, 0.002))
        m.add_link(f"{leg} shank", f"{leg} thigh", bk.Revolute((0, 1, 0), stiffness=300.0, damping=1.5, rest=-1.2),
                   f"{leg} knee", position=(0, 0, -0.25), mass=0.3, com=(0, 0, -0.12), inertia=(0.003, 0.003, 0.001))
        m.add_shape(f"{leg} shank", bk.Sphere(0.02), position=(0, 0, -0.25), friction=0.7, group=2, meets=1)
    m.add_plane(friction=0.7)
    q = m.neutral()
    for name in m.joint_names:
        if "hip" in name or "knee" in name:
            q[m.q_slice(name)] = 0.6 if "hip" in name else -1.2
    q[2] = 0.5 * math.cos(0.6) + 0.02
    return m, q


@bk.actuation
def trot(t, q, v, params, tau):
    """Torques that lift the feet of one diagonal, then those of the other."""
    turn = math.sin(2.0 * math.pi * t / 0.3)
    for leg in range(4):
        lift = max(0.0, turn if leg in (0, 3) else -turn)
        tau[6 + 2 * leg] = params[0] * lift
        tau[7 + 2 * leg] = -2.0 * params[0] * lift


def test_a_trot_in_lanes_is_that_of_simulations_and_of_each_state_alone():
    """States lift and put down their feet at different times: to rounding, and beside neighbours without a change."""
    m, q = quadruped()
    count, rng = WIDTH + 3, np.random.default_rng(3)
    Q, V, P = np.tile(q, (count, 1)), 0.3 * rng.normal(size=(count, m.nv)), rng.uniform(15.0, 40.0, (count, 1))
    together = bk.rollout(m, Q, V, 0.4, actuation=trot, params=P, **STEPPING)
    lifted = 0
    for k in range(count):
        twice = [k, k]
        alone = bk.rollout(m, Q[twice], V[twice], 0.4, actuation=trot, params=P[twice], **STEPPING)
        assert np.array_equal(alone.q[0], together.q[k])
        assert np.array_equal(alone.v[0], together.v[k])
        sim = bk.Simulation(m, Q[k], V[k], actuation=trot, params=P[k], **STEPPING)
        sim.run(0.4)
        np.testing.assert_allclose(together.q[k, -1], sim.q, atol=1e-8)
        np.testing.assert_allclose(together.v[k, -1], sim.v, atol=1e-6)
        gaps = bk.contacts(m, sim.q, margin=1.0).gap
        lifted += (gaps > 1e-4).any()
        assert gaps.min() > -1e-5
    assert lifted > 2
