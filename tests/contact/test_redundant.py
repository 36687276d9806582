"""Contacts of the same two bodies in time steps: gaps that differ must not ask for friction forces that cancel."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import bunraku as bk
from bunraku.bench.contact_figures import crowd

STEP = 0.002


def test_figures_that_fall_on_each_other_need_few_iterations():
    m, q, v = crowd(6, seed=3)
    sim = bk.Simulation(m, q, v, solver="symplectic_euler", step=STEP, record=None, max_contacts=1200)
    sim.advance(0.3)
    assert sim.stats.contact_problems > 500
    assert sim.stats.contact_iterations < 8 * sim.stats.contact_problems
    assert sim.stats.contact_residual < 1e-10


@pytest.mark.parametrize("below", ["plane", "box"])
def test_a_rod_that_rolls_over_its_ends_has_no_friction_that_cancels(below):
    """Two contacts under a tilted rod on its way down: friction along the rod is a multiple of what slows it."""
    m = bk.Mechanism()
    if below == "plane":
        m.add_plane(friction=0.8)
    else:
        m.add_shape("ground", bk.Box(4.0, 4.0, 1.0), position=(0, 0, -0.5), friction=0.8)
    m.add_link("rod", joint=bk.Free(), mass=1.0, inertia=(0.03, 0.03, 0.001))
    m.add_shape("rod", bk.Box(0.05, 0.05, 0.6), friction=0.8)
    q, v = m.neutral(), np.zeros(6)
    turn = Rotation.from_euler("y", 0.5 * np.pi - 2e-3) * Rotation.from_euler("z", 1e-3)
    q[:3], q[3:] = (0, 0, 0.0257), turn.as_quat()[[3, 0, 1, 2]]
    sim = bk.Simulation(m, q, v, solver="symplectic_euler", step=STEP, max_contacts=64)
    trajectory = sim.run(until=0.1)
    assert sim.stats.contact_residual < 1e-10
    assert sim.stats.contact_iterations < 10 * sim.stats.contact_problems
    for t in trajectory.t[5::5]:
        contacts = trajectory.contacts(t)
        normal, force = contacts.normal, contacts.force
        across = force - np.einsum("kr,kr->k", force, normal)[:, None] * normal
        assert np.linalg.norm(across, axis=1).sum() < 2.0 * np.linalg.norm(across.sum(axis=0)) + 0.2 * 9.81


@pytest.mark.parametrize("ratio", [1e8, 1e12])
def test_forces_that_nearly_cancel_are_judged_by_the_motion_they_leave(ratio):
    """A light box under a heavy one: its contact forces are `ratio` times its weight, and rounding leaves no digit of
    its acceleration from about 1e11 on."""
    m = bk.Mechanism()
    m.add_plane(friction=0.5)
    for name, mass in (("light", 1.0), ("heavy", ratio)):
        m.add_link(name, joint=bk.Free(), mass=mass, inertia=(0.01 * mass,) * 3)
        m.add_shape(name, bk.Box(0.2, 0.2, 0.2), friction=0.5)
    q = m.neutral()
    q[2], q[9] = 0.1, 0.3
    if ratio > 1e11:
        with pytest.raises(bk.ContactError, match="masses of extremely different size"):
            bk.dynamics(m, q, np.zeros(m.nv))
    else:
        assert np.abs(bk.dynamics(m, q, np.zeros(m.nv)).a).max() < 1e-4


@pytest.mark.parametrize("settings", [{}, {"solver": "symplectic_euler", "step": STEP}], ids=["events", "steps"])
def test_what_two_fingers_pinch_does_not_creep(settings):
    """A capsule between two pads that press far harder than its weight asks for, by four contacts."""
    m, radius = bk.Mechanism(), 0.004
    for name, side in (("left", -1.0), ("right", 1.0)):
        m.add_link(name, joint=bk.Prismatic((-side, 0, 0), damping=5.0), mass=0.1, inertia=(1e-5,) * 3)
        m.add_shape(name, bk.Box(0.01, 0.03, 0.03), position=(side * (radius + 0.005), 0, 0), friction=0.7)
    m.add_link("held", joint=bk.Free(), mass=0.045, inertia=(5e-6, 4e-7, 5e-6))
    m.add_shape("held", bk.Capsule(radius, 0.03), rotation=Rotation.from_rotvec((0.5 * np.pi, 0, 0)).as_matrix(),
                friction=0.7)
    q = m.neutral()
    press = np.zeros(m.nv)
    press[:2] = 30.0
    sim = bk.Simulation(m, q, actuation=lambda t, q, v: press, record=None, **settings)
    sim.advance(1.0)
    assert np.abs(sim.q - q).max() < 1e-10
    assert set(sim.contacts.mode) == {"sticking"}
