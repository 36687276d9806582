"""bk.part: overlapping shapes moved apart by the smallest move in the mass metric."""

import numpy as np
import pytest
from scipy.optimize import minimize

import bunraku as bk

TOLERANCE = 1e-10


def overlap(m, q):
    return max(0.0, -bk.contacts(m, q, margin=1.0).gap.min(initial=0.0))


def distance(m, q0, q):
    """Length of a move in the mass metric of its start."""
    x = m.difference(q0, q)
    return np.sqrt(x @ bk.mass_matrix(m, q0) @ x)


def balls(places, masses, radius=0.1, floor=True):
    m = bk.Mechanism()
    if floor:
        m.add_plane()
    q = []
    for k, (place, mass) in enumerate(zip(places, masses, strict=True)):
        m.add_link(f"{k}", joint=bk.Free(), mass=mass, inertia=(0.004 * mass,) * 3)
        m.add_shape(f"{k}", bk.Sphere(radius))
        q += [*place, 1, 0, 0, 0]
    return m, np.array(q, float)


def smallest_by_slsqp(m, q, gaps, start=None):
    """The same minimum by a general solver, from gaps in closed form."""
    M = bk.mass_matrix(m, q)
    scale = 1.0 / np.sqrt(np.trace(M))
    found = minimize(lambda x: 0.5 * x @ M @ x * scale**-2 * 1e-2, np.zeros(m.nv) if start is None else start,
                     jac=lambda x: M @ x * scale**-2 * 1e-2, method="SLSQP",
                     constraints={"type": "ineq", "fun": lambda x: gaps(m.integrate(q, x))},
                     options={"maxiter": 1000, "ftol": 1e-14})
    assert found.success, found.message
    return m.integrate(q, found.x)


def gaps_of_balls(q, radius=0.1):
    x = q.reshape(-1, 7)[:, :3]
    i, j = np.triu_indices(len(x), 1)
    return np.concatenate([x[:, 2] - radius, np.linalg.norm(x[i] - x[j], axis=1) - 2 * radius])


def test_two_balls_part_by_the_inverse_of_their_masses():
    m, q = balls([(0, 0, 1.0), (0.15, 0, 1.0)], [1.0, 3.0])
    parted = bk.part(m, q).reshape(2, 7)
    assert np.abs(parted[:, 0] - [-0.05 * 3 / 4, 0.15 + 0.05 / 4]).max() < 1e-9
    assert np.abs(parted[:, 1:3] - [(0, 1.0), (0, 1.0)]).max() < 1e-12


def test_a_state_without_overlap_stays_to_the_last_bit():
    m, q = balls([(0, 0, 0.1), (0.2, 0, 0.1)], [1.0, 3.0])
    assert np.array_equal(bk.part(m, q), q)


@pytest.mark.parametrize("seed", range(4))
def test_the_move_is_the_smallest(seed):
    """Against SLSQP with closed-form gaps: balls in and above a floor, masses of 1 to 10."""
    rng = np.random.default_rng(seed)
    m, q = balls(rng.uniform(0.05, 0.35, (4, 3)), rng.uniform(1.0, 10.0, 4))
    parted = bk.part(m, q)
    assert overlap(m, parted) <= TOLERANCE
    other = smallest_by_slsqp(m, q, gaps_of_balls, m.difference(q, parted))
    assert distance(m, q, parted) < distance(m, q, other) * (1 + 1e-6) + 1e-12
    assert distance(m, parted, other) < 1e-3 * distance(m, q, other)


def test_a_tilted_box_in_the_floor_turns_as_it_rises():
    """Against SLSQP with the heights of its corners; lifting alone would be a longer move."""
    m = bk.Mechanism()
    m.add_plane()
    m.add_link("box", joint=bk.Free(), mass=2.0, inertia=(0.02, 0.03, 0.04))
    m.add_shape("box", bk.Box(0.4, 0.2, 0.1))
    q = m.integrate(m.neutral(), np.array([0, 0, 0.05, 0.1, 0.25, 0.3]))
    corners = np.array([(x, y, z) for x in (-0.2, 0.2) for y in (-0.1, 0.1) for z in (-0.05, 0.05)])

    def gaps(q):
        R, x = bk.poses(m, q)["box"]
        return (corners @ R.T + x)[:, 2]

    parted = bk.part(m, q)
    assert abs(gaps(parted).min()) <= TOLERANCE
    other = smallest_by_slsqp(m, q, gaps)
    assert distance(m, q, parted) < distance(m, q, other) * (1 + 1e-6)
    assert distance(m, parted, other) < 1e-4
    lifted = q.copy()
    lifted[2] -= gaps(q).min()
    assert distance(m, q, parted) < 0.95 * distance(m, q, lifted)


def test_a_pendulum_that_is_in_a_wall_swings_out():
    m = bk.Mechanism()
    m.add_plane(point=(0.1, 0, 0), normal=(-1, 0, 0))
    for k, parent in enumerate(["ground", "a0", "a1"]):
        m.add_link(f"a{k}", parent, bk.Revolute((0, 1, 0)), position=(0, 0, -0.3 * (k > 0)), mass=1.0 + k,
                   com=(0, 0, -0.15), inertia=(0.01, 0.01, 0.001))
    m.add_shape("a2", bk.Sphere(0.05), position=(0, 0, -0.3))
    q = np.array([-0.4, -0.3, -0.2])

    def gaps(q):
        return np.array([0.05 - (-0.3 * np.sin(np.cumsum(q))).sum()])

    parted = bk.part(m, q)
    assert abs(gaps(parted)[0]) <= TOLERANCE
    other = smallest_by_slsqp(m, q, gaps)
    assert distance(m, parted, other) < 1e-5


def test_random_heaps_lie_apart():
    rng = np.random.default_rng(7)
    m, states = bk.Mechanism(), []
    m.add_plane()
    kinds = bk.Sphere(0.1), bk.Box(0.2, 0.15, 0.1), bk.Capsule(0.05, 0.2), bk.Cylinder(0.08, 0.15)
    for k in range(8):
        m.add_link(f"{k}", joint=bk.Free(), mass=rng.uniform(0.5, 5.0), inertia=(0.01, 0.02, 0.015))
        m.add_shape(f"{k}", kinds[k % 4])
    for _ in range(4):
        x = rng.normal(size=(8, 7))
        x[:, :3] *= 0.2
        states.append(m.integrate(x.ravel(), np.zeros(m.nv)))
    parted = bk.part(m, np.array(states))
    assert parted.shape == (4, m.nq)
    for before, after in zip(states, parted, strict=True):
        assert overlap(m, before) > 0.02
        assert overlap(m, after) <= TOLERANCE
        assert np.array_equal(after, bk.part(m, before))


def test_a_figure_sunk_into_the_floor_stands_on_it():
    m = bk.models.human(dof=34)
    m.add_plane(friction=0.8)
    q = m.neutral()
    q[2] -= 0.07
    parted = bk.part(m, q)
    assert -TOLERANCE <= bk.contacts(m, parted).gap.min() < 1e-9
    straight = q.copy()
    straight[2] += 0.07
    assert distance(m, q, parted) <= distance(m, q, straight) * (1 + 1e-9)
    bk.Simulation(m, parted, solver="symplectic_euler", step=0.002).run(0.01)


def test_loops_stay_closed_and_limits_hold():
    """Two legs joined above a floor: only the hinge angles give way; a limit keeps one of them."""
    def table(**limits):
        m = bk.Mechanism()
        m.add_link("base", joint=bk.Prismatic((0, 0, 1)), mass=1.0, inertia=(0.1,) * 3)
        for name, x in (("left", -0.1), ("right", 0.1)):
            m.add_link(name, "base", bk.Revolute((0, 1, 0), **limits), position=(x, 0, 0), mass=0.2, com=(0, 0, 0.1),
                       inertia=(1e-3,) * 3)
        m.add_link("top", "left", bk.Revolute((0, 1, 0)), position=(0, 0, 0.2), mass=0.3, com=(0.1, 0, 0),
                   inertia=(1e-3,) * 3)
        m.connect("right", "top", bk.Revolute((0, 1, 0)), "hinge", position_a=(0, 0, 0.2), position_b=(0.2, 0, 0))
        m.add_plane(point=(0, 0, 0.45), normal=(0, 0, -1))
        m.add_shape("top", bk.Capsule(0.02, 0.2), position=(0.1, 0, 0),
                    rotation=np.array([[0, 0, 1.0], [0, 1, 0], [-1, 0, 0]]))
        q = m.neutral()
        q[m.q_slice("base")] = 0.3
        q[m.q_slice("left")], q[m.q_slice("right")], q[m.q_slice("top")] = 0.3, 0.3, -0.3
        return m, q

    m, q = table()
    parted = bk.part(m, q)
    assert overlap(m, q) > 0.05
    assert overlap(m, parted) <= TOLERANCE
    closed = bk.project(m, parted)
    assert np.abs(m.difference(parted, closed)).max() < 1e-9
    assert parted[m.q_slice("left")][0] > 0.31
    m, q = table(upper=0.3)
    held = bk.part(m, q)
    assert overlap(m, held) <= TOLERANCE
    assert held[m.q_slice("left")][0] <= 0.3 + 1e-12
    assert distance(m, q, held) > distance(m, q, parted)


def test_what_cannot_be_parted_is_named():
    m = bk.Mechanism()
    m.add_link("slider", joint=bk.Prismatic((1, 0, 0)), mass=1.0, inertia=(0.1,) * 3)
    m.add_shape("slider", bk.Sphere(0.1))
    m.add_plane(name="floor")
    with pytest.raises(bk.ContactError, match=r"'slider' and 'floor' overlap by 0\.1 m.*no small motion of the joints"):
        bk.part(m, m.neutral())
    m, q = balls([(0, 0, 0.1)], [1.0])
    m.add_plane(point=(0, 0, 0.15), normal=(0, 0, -1), name="ceiling")
    with pytest.raises(bk.ContactError, match=r"'0' and 'ceiling'.*'0' and 'ground' are in the way|"
                                              r"'0' and 'ground'.*'0' and 'ceiling' are in the way"):
        bk.part(m, q)
    m, q = balls([(0, 0, 0.05)], [1.0])
    states = np.array([q, q])
    fixed = bk.Mechanism()
    fixed.add_link("lift", joint=bk.Prismatic((0, 0, 1), upper=0.12), mass=1.0, inertia=(0.1,) * 3)
    fixed.add_shape("lift", bk.Sphere(0.1))
    fixed.add_plane(point=(0, 0, 0.05))
    with pytest.raises(bk.ContactError, match=r"(?s)2 of 2 states cannot be parted.*by 0\.05 m.*the limits of 'lift'"
                       ) as told:
        bk.part(fixed, [[0.1], [0.05]])
    assert told.value.states == (0, 1)
    assert overlap(m, bk.part(m, states)[1]) == 0.0


def test_an_overlapping_start_names_the_remedy():
    m, q = balls([(0, 0, 0.05)], [1.0])
    for start in (lambda: bk.Simulation(m, q), lambda: bk.dynamics(m, q, np.zeros(m.nv))):
        with pytest.raises(bk.ContactError, match=r"bk\.part\(m, q\)"):
            start()
    bk.Simulation(m, bk.part(m, q)).run(0.05)
