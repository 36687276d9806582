"""Loops stay closed while a simulation runs, in position and velocity, by every solver."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.entries.closed_solution import gaps, velocity_gaps

FIXED = {"rk4": 2e-3, "symplectic_euler": 1e-3}
LINKAGES = {"three four-bars": lambda: bk.models.n_four_bar(3), "Bricard": bk.models.bricard,
            "slider-crank": bk.models.slider_crank, "chain of balls": lambda: bk.models.chain_held(6)}


@pytest.mark.parametrize("solver", ["gear", "bdf", "rkf", "tsit5", "implicit", *FIXED])
@pytest.mark.parametrize("name", LINKAGES)
def test_loops_stay_closed_to_rounding(name, solver):
    m = LINKAGES[name]()
    q, v = bk.project(m, m.neutral(), np.cos(np.arange(m.nv)))
    sim = bk.Simulation(m, q, v, solver=solver, step=FIXED.get(solver))
    stays_closed(m, sim.run(until=0.3))


def stays_closed(m, trajectory):
    plan, v = m.plan(), trajectory.v
    some = range(0, len(trajectory.t), 1 + len(trajectory.t) // 50)
    speed = max(1.0, np.abs(v).max())
    assert max(gaps(plan, trajectory.q[k])[0].max() for k in some) < 2e-12
    assert max(velocity_gaps(plan, trajectory.q[k], v[k]).max() for k in some) < 1e-12 * speed


def held(dof, *limbs):
    """A figure in an easy pose, both sides of these limbs held fast to the ground."""
    m = bk.models.human(dof)
    q = m.integrate(m.neutral(), 0.3 * np.cos(np.arange(m.nv)))
    place = bk.poses(m, q)
    for link in (f"{side}_{limb}" for side in ("left", "right") for limb in limbs):
        rotation, position = place[link]
        m.connect("ground", link, bk.Fixed(), f"{link} held", position_a=position, rotation_a=rotation)
    return m, q


@pytest.mark.parametrize("solver", FIXED)
@pytest.mark.parametrize(("dof", "limbs"), [(34, ["foot"]), (34, ["foot", "hand"]), (16, ["hand"])])
def test_fixed_steps_do_not_drift_in_seconds_of_a_figure_held_by_feet_and_hands(dof, limbs, solver):
    """Without closing, symplectic Euler leaves a millimetre in a second."""
    m, q = held(dof, *limbs)
    q, v = bk.project(m, q, np.cos(np.arange(m.nv)))
    damping = 10.0 * np.diag(bk.mass_matrix(m, q)) * (np.arange(m.nv) >= 6)
    sim = bk.Simulation(m, q, v, solver, step=FIXED[solver], actuation=lambda t, q, v: -damping * v)
    trajectory = sim.run(until=2.0)
    assert sim.stats.loop_drift > 1e-10  # steps that do leave loops open, before they are closed
    assert np.abs(m.difference(q, sim.q)).max() > 1.0
    stays_closed(m, trajectory)


@pytest.mark.parametrize("name", LINKAGES)
def test_fixed_steps_do_not_drift_in_seconds(name):
    m = LINKAGES[name]()
    q, v = bk.project(m, m.neutral(), np.cos(np.arange(m.nv)))
    for solver, step in FIXED.items():
        stays_closed(m, bk.Simulation(m, q, v, solver, step=step).run(until=5.0))


@pytest.mark.parametrize("solver", ["gear", "rkf", "tsit5"])
@pytest.mark.parametrize("rtol", [1e-3, 1e-6, 1e-9])
def test_velocities_stay_closed_at_any_tolerance(solver, rtol):
    m = bk.models.four_bar()
    q, v = bk.project(m, m.neutral(), np.ones(m.nv))
    sim = bk.Simulation(m, q, v, solver=solver, rtol=rtol, atol=1e-2 * rtol)
    tr = sim.run(until=1.0)
    _, kinetic, potential = tr.energy()
    assert np.abs(kinetic + potential - kinetic[0] - potential[0]).max() < 30 * rtol * kinetic.max()
    assert max(velocity_gaps(m.plan(), x, y).max() for x, y in zip(tr.q, tr.v, strict=True)) < 1e-12
    assert sim.stats.loop_error < 1e-12


@pytest.mark.parametrize("solver", ["gear", "bdf", "rkf", "tsit5", "rk4"])
def test_a_hinge_and_a_slide_in_one_connection_stay_closed(solver):
    """Its constrained directions have no basis that is continuous, and rounding chooses one at every evaluation."""
    hinge, slide = np.array([0.3, 0.5, 0.8]), np.array([0.6, -0.2, 0.7])
    m = bk.Mechanism()
    m.add_link("body", joint=bk.Free(), mass=2.0, com=(0.1, -0.2, -0.4), inertia=(0.3, 0.2, 0.1))
    m.connect("ground", "body", bk.Compound(bk.Revolute(hinge), bk.Prismatic(slide)), "hinge and slide")
    q, v = bk.project(m, m.neutral(), np.cos(np.arange(6)))
    tr = bk.Simulation(m, q, v, solver=solver, **({"step": 1e-2} if solver == "rk4" else {})).run(until=1.0)
    for q, v in zip(tr.q, tr.v, strict=True):
        (R, x), motion = bk.poses(m, q)["body"], bk.kinematics(m, q, v).velocities["body"]
        velocity, turning = motion[:3], motion[3:]
        size = np.abs(v).max()
        assert np.abs(np.cross(turning, hinge)).max() < 1e-12 * size
        assert np.abs(np.cross(x, R @ slide)).max() < 1e-12
        assert np.abs(np.cross(velocity - np.cross(turning, x), R @ slide)).max() < 1e-12 * size


def test_a_linkage_may_come_to_rest_within_a_step():
    """What closing corrects is then as large as what is left of the step; it is small beside the move before."""
    m, h = bk.models.four_bar(), 0.01
    q, v = bk.project(m, m.integrate(m.neutral(), np.array([0.4, 0.0, 0.0])), np.array([2.0, 0.0, 0.0]))
    tau = bk.inverse_dynamics(m, q, v, bk.closed_chain(m, q, v).consistent(-v / h))
    sim = bk.Simulation(m, q, v, solver="symplectic_euler", step=h, actuation=lambda t, q, v: tau)
    sim.advance(h)
    assert np.abs(sim.v).max() < 1e-2
    assert sim.stats.loop_drift > 1e-6
    assert sim.stats.loop_error < 1e-12
