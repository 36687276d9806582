"""Coulomb friction and hard limits of joints: closed forms, other formulations of the same law, and energy."""

import numpy as np
import pytest
from scipy.optimize import brentq

import bunraku as bk
from bunraku.simulation.records.recorded_forces import refuse_unknown_forces

G = 9.81
EXACT = {"rtol": 1e-11, "atol": 1e-13}
STEPS = {"solver": "symplectic_euler", "step": 1e-3}


def slider(axis=(1, 0, 0), mass=2.0, **joint):
    m = bk.Mechanism()
    m.add_link("block", joint=bk.Prismatic(axis, **joint), mass=mass, inertia=(0.1, 0.1, 0.1))
    return m


def arm(n=3, seed=0, **joint):
    """A chain of hinges, a slider and a screw with friction everywhere."""
    rng, m, parent = np.random.default_rng(seed), bk.Mechanism(), "ground"
    for k in range(n):
        axis, own = rng.normal(size=3), {"friction": 0.3 + 0.2 * k, **joint}
        kind = (bk.Revolute(axis, **own), bk.Prismatic(axis, **own), bk.Helical(axis, 0.2, **own))[k % 3]
        m.add_link(f"l{k}", parent, kind, position=rng.normal(size=3), mass=1.0 + k, com=rng.normal(size=3),
                   inertia=(0.2, 0.3, 0.4))
        parent = f"l{k}"
    return m, rng


def without_laws(m):
    """The same mechanism without friction."""
    for link in m.links:
        m = m.with_joint(link.joint_name, friction=0.0, hard_limits=False, restitution=0.0)
    return m


# -- closed forms ------------------------------------------------------------------------------------------------------


def test_a_sliding_block_stops_where_its_kinetic_energy_is_spent():
    F, mass, v = 0.5, 2.0, 1.0
    sim = bk.Simulation(slider(friction=F), v=[v], **EXACT)
    tr = sim.run(6.0)
    assert abs(sim.q[0] - 0.5 * mass * v**2 / F) < 1e-8
    assert sim.v[0] == 0.0
    stops = [e.t for e in tr.events if e.text == "joint 'block' sticks"]
    assert len(stops) == 1
    assert abs(stops[0] - mass * v / F) < 1e-8
    errors = []
    for h in (4e-3, 2e-3):
        sim = bk.Simulation(slider(friction=F), v=[v], solver="symplectic_euler", step=h)
        sim.run(6.0)
        assert sim.v[0] == 0.0
        errors.append(abs(sim.q[0] - 0.5 * mass * v**2 / F))
    assert 1.8 < errors[0] / errors[1] < 2.2


def test_stick_slip_of_a_block_on_a_belt():
    """Held back by a spring it rides until k x = F, then swings about F / k with the amplitude V / w."""
    F, k, mass, V = 3.0, 50.0, 2.0, 0.4
    m = bk.Mechanism()
    m.add_link("belt", joint=bk.Prismatic((1, 0, 0)), mass=1.0)
    m.add_link("block", "belt", bk.Prismatic((1, 0, 0), friction=F), mass=mass, inertia=(0.1, 0.1, 0.1))
    m.add_spring("ground", "block", stiffness=k)
    slips, w = F / (k * V), np.sqrt(k / mass)
    for settings, error in ((EXACT, 1e-8), (STEPS, 5e-4)):
        sim = bk.Simulation(m, v=[V, 0.0], prescribed={"belt": lambda t: V * t}, **settings)
        sim.run(0.9 * slips)
        assert abs(sim.v[1]) < 1e-12
        assert abs(sim.q.sum() - V * sim.t) < 1e-9
        for t in (slips + 0.3, slips + 1.1):
            sim.run(t)
            assert abs(sim.q.sum() - F / k - V / w * np.sin(w * (t - slips))) < error


def test_a_coulomb_pendulum_comes_to_rest_after_the_swings_of_its_energy_balance():
    """From turning point to turning point m g l (cos b - cos a) = F (a - b); it rests where m g l |sin| <= F."""
    F, mass, length = 0.4, 1.5, 0.6
    m = bk.Mechanism()
    m.add_link("bob", joint=bk.Revolute((0, 1, 0), friction=F), mass=mass, com=(0, 0, -length))
    at, side, weight = 1.2, 1.0, mass * G * length
    while weight * abs(np.sin(at)) > F:
        start, side = at, -side  # it moves towards `side`
        top = start + side * 1e-9
        balance = lambda b: weight * (np.cos(b) - np.cos(start)) - F * abs(start - b)  # noqa: E731, B023
        rest = np.arcsin(F / weight)
        lowest = -side * rest  # where the speed is largest
        at = brentq(balance, lowest if balance(lowest) > 0 else top, side * abs(start), xtol=1e-14)
    sim = bk.Simulation(m, q=[1.2], **EXACT)
    tr = sim.run(20.0)
    assert abs(sim.q[0] - at) < 1e-8
    assert tr.events[-1].text == "joint 'bob' sticks"
    sim = bk.Simulation(m, q=[1.2], **STEPS)
    sim.run(20.0)
    assert abs(sim.q[0] - at) < 5e-3


def test_a_hard_limit_with_restitution_bounces_as_a_ball_does():
    e, height = 0.6, 1.0
    m = slider((0, 0, 1), lower=0.0, hard_limits=True, restitution=e)
    first = np.sqrt(2 * height / G)
    speed, lands, rebounds = G * first, first, []
    for _ in range(6):
        rebounds.append(lands)
        speed *= e
        lands += 2 * speed / G
    tr = bk.Simulation(m, q=[height], **EXACT).run(2.5)
    impacts = [event.t for event in tr.events if event.text.startswith("impact of joint 'block' at its lower limit")]
    assert np.abs(np.array(impacts[:6]) - rebounds).max() < 1e-8
    assert "joint 'block' rests at its lower limit" in [event.text for event in tr.events]
    assert abs(tr.q[-1, 0]) < 1e-10
    assert tr.q.min() > -1e-8
    errors = []
    for h in (2e-3, 2.5e-4):
        sim = bk.Simulation(m, q=[height], solver="symplectic_euler", step=h)
        sim.run(0.7)
        t = 0.7 - first
        errors.append(abs(sim.q[0] - (e * G * first * t - 0.5 * G * t * t)))
    assert errors[1] < 0.25 * errors[0]
    assert errors[0] < 1e-2


def test_an_impact_at_a_limit_conserves_what_it_must():
    """A double pendulum whose elbow meets its upper limit: energy is conserved with restitution 1, and the joint above
    feels no impulse of its own."""
    m = bk.Mechanism(gravity=(0, 0, 0))
    m.add_link("upper", joint=bk.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -0.3), inertia=(0.1, 0.1, 0.1))
    m.add_link("lower", "upper", bk.Revolute((0, 1, 0), upper=0.5, hard_limits=True, restitution=1.0),
               position=(0, 0, -0.6), mass=1.0, com=(0, 0, -0.3), inertia=(0.1, 0.1, 0.1))
    sim = bk.Simulation(m, v=[0.3, 2.0], **EXACT)
    energy = m.energy(sim.q, sim.v)[0]
    tr = sim.run(0.5)
    assert sum(event.text.startswith("impact") for event in tr.events) == 1
    assert abs(m.energy(sim.q, sim.v)[0] - energy) < 1e-9
    momenta = [(bk.mass_matrix(m, q) @ v)[0] for q, v in zip(tr.q, tr.v, strict=True)]
    assert np.ptp(momenta) < 1e-9
    assert sim.v[1] < 0.0


# -- the same law by other means ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_sliding_friction_is_a_torque_against_the_velocity(seed):
    m, rng = arm(4, seed)
    q, v, tau = rng.normal(size=4), rng.normal(size=4), rng.normal(size=4)
    r = bk.dynamics(m, q, v, tau)
    assert np.abs(r.resistance + m.coulomb_friction() * np.sign(v)).max() < 1e-9
    expected = bk.dynamics(without_laws(m), q, v, tau + r.resistance)
    assert np.abs(r.a - expected.a).max() < 1e-9 * np.abs(r.a).max()
    for name, wrench in expected.forces.items():
        assert np.abs(r.forces[name] - wrench).max() < 1e-8 * (1.0 + np.abs(wrench).max())


def test_sticking_friction_is_a_joint_held():
    m, rng = arm(4, 5)
    q, tau = rng.normal(size=4), rng.normal(size=4)
    m = m.with_joint("l1", friction=1e4).with_joint("l2", friction=1e4)
    v = np.array([0.4, 0.0, 0.0, -0.3])
    a = bk.forward_dynamics(m, q, v, tau)
    free = without_laws(m)
    held = bk.forward_dynamics(free, q, v, tau - m.coulomb_friction() * np.sign(v), prescribed={"l1": 0.0, "l2": 0.0})
    assert np.abs(a - held).max() < 1e-8 * np.abs(held).max()
    assert np.abs(a[1:3]).max() < 1e-10 * np.abs(held).max()


def test_inverse_dynamics_overcomes_friction():
    m, rng = arm(5, 2)
    q, v, a = rng.normal(size=(3, 4, 5))
    v[:, 2] = 0.0
    a[2:, 2] = 0.0
    tau = bk.inverse_dynamics(m, q, v, a)
    assert np.abs(bk.forward_dynamics(m, q, v, tau) - a).max() < 1e-8
    assert np.abs(bk.inverse_dynamics(m, q, v, a, passive=False)
                  - bk.inverse_dynamics(without_laws(m), q, v, a)).max() < 1e-12


def test_derivatives_with_friction():
    m, rng = arm(3, 3)
    q, v, tau = rng.normal(size=(3, 3))
    d, h = bk.derivatives(m, q, v, tau), 1e-6
    for j in range(3):
        e = h * np.eye(3)[j]
        for name, there, back in (("da_dq", (q + e, v), (q - e, v)), ("da_dv", (q, v + e), (q, v - e))):
            slope = (bk.forward_dynamics(m, *there, tau) - bk.forward_dynamics(m, *back, tau)) / (2 * h)
            assert np.abs(getattr(d, name)[:, j] - slope).max() < 1e-5 * (1.0 + np.abs(slope).max())
    stuck = bk.derivatives(m.with_joint("l1", friction=1e4), q, v * [1, 0, 1], tau)
    assert np.abs(stuck.da_dtau[1]).max() < 1e-9
    assert np.abs(stuck.da_dtau[:, 1]).max() < 1e-9


def test_copies_that_step_together():
    m = finger()
    w = bk.Worlds(m, 5, step=1e-3)
    w.reset(np.ones(5, bool), np.tile([0.2, 0.1], (5, 1)), np.tile([1.0, 0.5], (5, 1)))
    sim = bk.Simulation(m, [0.2, 0.1], [1.0, 0.5], **STEPS)
    for _ in range(300):
        w.step(np.zeros((5, 2)))
    sim.run(0.3)
    assert np.abs(w.q - sim.q).max() < 1e-8


def test_a_loop_with_friction():
    """A four-bar: the same accelerations by torques against the velocities."""
    m = bk.Mechanism()
    hinge = bk.Revolute((0, 1, 0), friction=0.5)
    m.add_link("a", joint=hinge, mass=1.0, com=(0, 0, 0.25), inertia=(0.1, 0.1, 0.1))
    m.add_link("b", "a", hinge, position=(0, 0, 0.5), mass=1.0, com=(0.25, 0, 0), inertia=(0.1, 0.1, 0.1))
    m.add_link("c", joint=hinge, position=(0.5, 0, 0), mass=1.0, com=(0, 0, 0.25), inertia=(0.1, 0.1, 0.1))
    m.connect("b", "c", bk.Revolute((0, 1, 0)), position_a=(0.5, 0, 0), position_b=(0, 0, 0.5))
    q, v = np.zeros(3), np.array([1.0, -1.0, 1.0])
    a = bk.forward_dynamics(m, q, v)
    assert np.abs(a - bk.forward_dynamics(without_laws(m), q, v, -0.5 * np.sign(v))).max() < 1e-9
    r = bk.dynamics(m, q, v)
    assert np.abs(r.a - a).max() < 1e-9
    for settings in ({}, STEPS):
        sim = bk.Simulation(m, q=q, v=v, **settings)
        energy = [sum(m.energy(*state)) for tr in [sim.run(1.0)] for state in zip(tr.q, tr.v, strict=True)]
        assert np.diff(energy).max() < 1e-6
        assert sim.stats.loop_error < 1e-6


# -- energy, stiction --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{"rtol": 1e-9, "atol": 1e-11}, STEPS], ids=["events", "steps"])
def test_friction_and_limits_never_add_energy(settings):
    for seed in range(3):
        m, rng = arm(3, seed, lower=-0.8, upper=0.8, hard_limits=True, restitution=0.5)
        m.gravity = (0, 0, 0)
        sim = bk.Simulation(m, v=rng.normal(size=3), **settings)
        tr = sim.run(2.0)
        energy = np.array([m.energy(q, v)[0] for q, v in zip(tr.q, tr.v, strict=True)])
        assert np.diff(energy).max() < (1e-7 if settings is not STEPS else 2e-3 * energy[0])
        assert energy[-1] < 0.9 * energy[0]
        assert np.abs(tr.q).max() < 0.8 + (1e-7 if settings is not STEPS else 1e-2)


@pytest.mark.parametrize("settings", [{}, {**STEPS, "step": 5e-3}], ids=["events", "steps"])
def test_a_joint_held_by_stiction_does_not_creep(settings):
    """An arm held out at 95 % of its friction, for a minute."""
    m = bk.Mechanism()
    m.add_link("arm", joint=bk.Revolute((0, 1, 0), friction=G * 0.5 / 0.95), mass=1.0, com=(0.5, 0, 0))
    m.add_link("hand", "arm", bk.Revolute((0, 1, 0), friction=1.0), position=(1, 0, 0), mass=1e-6, com=(0.1, 0, 0))
    sim = bk.Simulation(m, q=[0.0, 0.3], **settings)
    sim.run(60.0)
    assert (sim.q == [0.0, 0.3]).all()
    assert (sim.v == 0.0).all()


# -- with contact, in lanes, in files ----------------------------------------------------------------------------------


def finger():
    """A finger of two hinges with friction over a floor, which its tip meets."""
    m = bk.Mechanism()
    m.add_link("one", joint=bk.Revolute((0, 1, 0), friction=0.1, lower=-1.0, upper=1.9, hard_limits=True),
               position=(0, 0, 0.5), mass=1.0, com=(0.2, 0, 0), inertia=(0.01, 0.01, 0.01))
    m.add_link("two", "one", bk.Revolute((0, 1, 0), friction=0.05), position=(0.4, 0, 0), mass=0.5, com=(0.2, 0, 0),
               inertia=(0.01, 0.01, 0.01))
    m.add_shape("two", bk.Sphere(0.05), position=(0.4, 0, 0), friction=0.4)
    m.add_plane(friction=0.4)
    return m


def test_friction_of_joints_and_contact_of_shapes_are_one_problem():
    m = finger()
    for settings in ({}, STEPS):
        sim = bk.Simulation(m, q=[0.2, 0.1], **settings)
        sim.run(3.0)
        assert sim.contacts[0].gap < 1e-6
        assert np.abs(sim.v).max() < 1e-9
        q = sim.q.copy()
        force = sim.contacts.force[0]
        sim.run(5.0)
        assert np.abs(sim.q - q).max() < 1e-9
        assert force[2] > 0.0
        r = sim.dynamics()
        assert np.abs(r.a).max() < 1e-7
        pushed = m.copy()
        tau = bk.inverse_dynamics(without_laws(pushed), sim.q, np.zeros(2), np.zeros(2),
                                  external={"two": wrench_at_origin(m, sim.q, r.contacts[0])})
        assert np.abs(tau - r.resistance).max() < 1e-7


def wrench_at_origin(m, q, contact):
    arm = contact.point - bk.poses(m, q)["two"][1]
    return np.concatenate([contact.force, np.cross(arm, contact.force)])


def test_shapes_are_parted_whatever_the_joints():
    m, q = finger(), np.array([0.6, 0.4])
    moved = bk.part(m, q)
    assert bk.contacts(m, moved)[0].gap > -1e-9
    assert np.abs(moved - bk.part(without_laws(m), q)).max() < 1e-12


def test_states_in_lanes_move_as_one_by_one():
    for m in (finger(), arm(3, 1, lower=-0.5, upper=0.5, hard_limits=True, restitution=0.3)[0]):
        rng = np.random.default_rng(4)
        q, v = 0.2 + 0.1 * rng.normal(size=(11, m.nv)), rng.normal(size=(11, m.nv))
        together = bk.rollout(m, q, v, until=0.6, **STEPS)
        for k in range(0, 11, 3):
            sim = bk.Simulation(m, q[k], v[k], **STEPS)
            sim.run(0.6)
            assert np.abs(together.q[k, -1] - sim.q).max() < 1e-7
        alone = bk.rollout(m, q[:2], v[:2], until=0.6)
        assert np.isfinite(alone.q).all()


@pytest.mark.parametrize("settings", [{}, STEPS], ids=["events", "steps"])
def test_a_run_continues_from_a_file_bit_by_bit(settings, tmp_path):
    for m in (finger(), slider(friction=0.5, upper=0.9, hard_limits=True, restitution=0.4)):
        sim = bk.Simulation(m, v=0.7 + np.zeros(m.nv), **settings)
        sim.run(0.31)
        sim.save(tmp_path / "run")
        sim.run(1.7)
        again = bk.Simulation.load(tmp_path / "run")
        again.run(1.7)
        assert (again.q == sim.q).all()
        assert (again.v == sim.v).all()
        assert again.mechanism.joint(m.links[0].joint_name).friction == m.links[0].joint.friction
        assert repr(again.mechanism) == repr(sim.mechanism)


def test_forces_of_a_recorded_motion():
    m = slider(friction=0.5)
    tr = bk.Simulation(m, v=[1.0], **STEPS).run(1.0)
    refuse_unknown_forces(tr)


def test_parameters_of_a_joint():
    joint = bk.Revolute((0, 0, 1), friction=0.3, lower=-1, upper=1, hard_limits=True, restitution=0.5)
    assert (joint.friction, joint.hard_limits, joint.restitution) == (0.3, True, 0.5)
    assert repr(joint) == ("Revolute((0, 0, 1), lower=-1.0, upper=1.0, friction=0.3, hard_limits=True, "
                           "restitution=0.5)")
    assert joint.changed(friction=0.4).restitution == 0.5
    assert not joint.changed(hard_limits=False, restitution=0.0).hard_limits
    both = bk.Compound(bk.Revolute((1, 0, 0), friction=0.1), bk.Prismatic((0, 1, 0)))
    assert both.friction.tolist() == [0.1, 0.0]
    assert both.changed(friction=[0.2, 0.3]).friction.tolist() == [0.2, 0.3]
    m = bk.Mechanism()
    m.add_link("a", joint=both, mass=1.0, inertia=(0.1, 0.1, 0.1))
    assert bk.forward_dynamics(m, np.zeros(2), np.zeros(2), [0.05, 0.05])[0] == 0.0
    assert m.with_joint("a", friction=0.5).coulomb_friction().tolist() == [0.5, 0.5]


@pytest.mark.parametrize(("make", "says"), [
    (lambda: bk.Revolute((0, 0, 1), friction=-1.0), "friction must be finite and not negative"),
    (lambda: bk.Revolute((0, 0, 1), friction=np.nan), "friction must be finite"),
    (lambda: bk.Revolute((0, 0, 1), hard_limits=True), "needs limits"),
    (lambda: bk.Revolute((0, 0, 1), hard_limits=3, upper=1.0), "True or False"),
    (lambda: bk.Revolute((0, 0, 1), restitution=0.5), "hard_limits=True"),
    (lambda: bk.Revolute((0, 0, 1), upper=1.0, hard_limits=True, restitution=2.0), "restitution must be 0"),
    (lambda: bk.Revolute((0, 0, 1), upper=1.0, hard_limits=True, limit_stiffness=5.0), "either hard"),
    (lambda: bk.Spherical(friction=0.1), "one degree of freedom"),
    (lambda: bk.Free(hard_limits=True), "one degree of freedom"),
])
def test_joints_that_make_no_sense_are_refused(make, says):
    with pytest.raises(bk.ModelError, match=says):
        make()


def test_what_has_no_solution_is_refused():
    m = slider(upper=0.5, hard_limits=True)
    with pytest.raises(bk.ContactError, match=r"joint 'block' is at 0\.7 m, beyond its hard upper limit of 0\.5 m"):
        bk.Simulation(m, q=[0.7])
    with pytest.raises(bk.ContactError, match="beyond its hard upper limit"):
        bk.forward_dynamics(m, [0.7], [0.0])
    with pytest.raises(bk.ContactError, match="joint 'block' at its upper limit moves on towards it"):
        bk.forward_dynamics(m, [0.5], [1.0])
    with pytest.raises(bk.ModelError, match="joint 'block' has hard limits"):
        bk.Simulation(m, solver="rk4", step=1e-3)
    with pytest.raises(bk.ModelError, match="joint 'block' has hard limits"):
        bk.Simulation(m, workers=2)
    with pytest.raises(bk.ModelError, match="a connection has no friction"):
        slider().connect("block", "ground", bk.Revolute((0, 0, 1), friction=1.0))
