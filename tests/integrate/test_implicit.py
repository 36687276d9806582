"""Stiff mechanisms at O(N): order, stability, agreement, cost, and the approximate Jacobian of the iteration."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.algorithms.passive import joint_slopes, passive_torque
from bunraku.algorithms.states import coordinate_rates, tangent_rates
from bunraku.bench.bench_stiff import rod
from bunraku.bench.order import STEPS, UNTIL, error, fix, pendulum, problems
from bunraku.plan import fields as f


def four_bar(stiffness=0.0, damping=0.0, pin=0.0):
    """A four-bar linkage with spring and damper at the crank and a damper in the pin."""
    plain = bk.models.four_bar()
    m = bk.Mechanism(plain.gravity)
    names = [link.name for link in plain.links]
    for link in plain.links:
        acts = {"stiffness": stiffness, "damping": damping} if link.name == "crank" else {}
        m.add_link(link.name, "ground" if link.parent < 0 else names[link.parent], bk.Revolute(link.joint.axis, **acts),
                   position=link.position, rotation=link.rotation, mass=link.mass, com=link.com, inertia=link.inertia)
    c = plain.connections["pin"]
    m.connect(names[c.link_a], names[c.link_b], bk.Revolute(c.joint.axis, damping=pin), position_a=c.position_a,
              rotation_a=c.rotation_a, position_b=c.position_b, rotation_b=c.rotation_b)
    return m


# -- order -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stiff():
    return problems()


PROBLEMS = ("spherical pendulum", "rod of 8 hinges", "rod of 4 balls")


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("q", range(1, 6))
def test_the_order_is_kept_on_stiff_mechanisms(stiff, name, q):
    assert STEPS[-1] * stiff[name].fastest > 100  # explicit methods stop at 2
    errors, order = stiff[name].measure(q)
    assert order > q - 0.4, errors


# -- agreement, stability --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_the_error_follows_the_tolerance(stiff, name, rtol):
    problem = stiff[name]
    y = problem.sol(0.0)
    sim = bk.Simulation(problem.m, y[:problem.m.nq], y[problem.m.nq:], solver="implicit", rtol=rtol, atol=rtol)
    sim.run(UNTIL)
    assert error(problem.m, sim, problem.sol(UNTIL)) < 30 * rtol


def test_steps_of_a_thousand_times_the_explicit_limit_are_stable():
    m = rod(10)
    q = 0.01 * np.sin(np.arange(10.0))
    M = bk.mass_matrix(m, q)
    fastest = np.linalg.eigvals(np.linalg.solve(M, np.diag(m.plan().dof_f[f.DAMPING]))).real.max()
    h = 1000 * 2.0 / fastest
    for order in (1, 2):
        rows = np.vstack([np.concatenate([q, 0.1 * np.cos(np.arange(10.0))]), np.zeros((order, 20))])
        sim = bk.Simulation(m, q, rows[0, 10:], solver="implicit", rtol=1e9, atol=1e9)
        fix(sim._running.memory, order, h, rows)
        sim.run(3.0)
        assert sim.stats.steps == pytest.approx(3.0 / h, abs=1.5)
        assert np.abs(sim.v).max() < 1e-4  # and the rod has come to rest
        sag = bk.inverse_dynamics(m, sim.q, np.zeros(10), np.zeros(10))  # under its own weight
        assert np.abs(sag).max() < 1e-2 * np.abs(bk.inverse_dynamics(m, q, np.zeros(10), np.zeros(10))).max()


def test_the_number_of_steps_does_not_grow_with_the_stiffness():
    steps = []
    for damping in (1.0, 1e2, 1e4, 1e6):
        sim = bk.Simulation(pendulum(damping), v=[3.0, 1.0, 2.0], solver="implicit")
        sim.run(1.0)
        steps.append(sim.stats.steps)
    assert max(steps[1:]) < 1.5 * steps[0], steps


def test_undamped_motion_needs_no_more_steps_than_with_full_matrices():
    m = bk.models.chain(3, joint="spherical")
    q = m.integrate(m.neutral(), np.full(9, 0.3))
    full, mine = (bk.Simulation(m, q, solver=solver) for solver in ("bdf", "implicit"))
    full.run(1.0)
    mine.run(1.0)
    assert mine.stats.steps < 1.2 * full.stats.steps
    assert mine.stats.evaluations < full.stats.evaluations
    assert np.abs(m.difference(full.q, mine.q)).max() < 1e-4


def test_a_stiff_stop_is_met():
    m = bk.Mechanism()
    m.add_link("arm", joint=bk.Revolute((0, 1, 0), lower=-0.2, upper=0.2, limit_stiffness=1e6, limit_damping=1e4),
               mass=1.0, com=(0.3, 0, 0), inertia=(0.01, 0.01, 0.01))
    m.add_link("hand", "arm", bk.Spherical(upper=0.5, limit_stiffness=1e5, limit_damping=1e3), position=(0.3, 0, 0),
               mass=0.2, com=(0.1, 0, 0), inertia=(0.001, 0.001, 0.001))
    full, mine = (bk.Simulation(m, solver=solver, rtol=1e-7, atol=1e-9) for solver in ("bdf", "implicit"))
    full.run(1.0)
    mine.run(1.0)
    assert 0.2 < mine.q[0] < 0.2001
    assert np.abs(m.difference(full.q, mine.q)).max() < 1e-4
    assert mine.stats.evaluations < 2 * full.stats.evaluations


# -- cost ------------------------------------------------------------------------------------------------------------


def test_evaluations_of_a_step_do_not_depend_on_the_number_of_links_and_there_is_no_matrix(tmp_path):
    a_step, steps = [], []
    for n in (10, 100, 1000):
        sim = bk.Simulation(rod(n), solver="implicit", rtol=1e-5, atol=1e-6 / n)
        sim.run(0.5)
        a_step.append(sim.stats.evaluations / sim.stats.steps)
        steps.append(sim.stats.steps)
        with np.load(sim.save(tmp_path / "now")) as file:  # all that it keeps
            assert max(array.size for array in file.values()) < 4 * (steps[-1] + 1) * n
    assert max(a_step) < 1.5
    assert max(steps) < 1.5 * min(steps)


# -- loops -----------------------------------------------------------------------------------------------------------


def test_loops_with_a_stiff_spring_move_as_with_full_matrices():
    m = four_bar(1e5, 1e3)
    full, mine = (bk.Simulation(m, solver=solver, rtol=1e-7, atol=1e-9) for solver in ("bdf", "implicit"))
    full.run(1.0)
    mine.run(1.0)
    np.testing.assert_allclose(mine.q, full.q, atol=1e-6)
    assert mine.stats.steps < 1.3 * full.stats.steps
    assert np.abs(bk.constraints(m, mine.q).gap).max() < 1e-10


def test_a_stiff_damper_in_a_connection_costs_iterations_not_steps():
    """It is not in the diagonal: without what `remember` keeps this takes 18707 steps."""
    m = four_bar(damping=0.1, pin=1e4)
    full, mine = (bk.Simulation(m, solver=solver, rtol=1e-5, atol=1e-7) for solver in ("bdf", "implicit"))
    full.run(1.0)
    mine.run(1.0)
    np.testing.assert_allclose(mine.q, full.q, atol=1e-4)
    assert mine.stats.evaluations < 2 * full.stats.evaluations


def test_structure_can_change_during_a_stiff_run():
    m = rod(4)
    sim = bk.Simulation(m, solver="implicit")
    sim.run(0.1)
    sim.connect("link3", "ground", bk.Spherical())
    sim.run(0.2)
    sim.cut("link2")
    end = sim.run(0.3)
    assert len(end.segments) == 3
    assert sim.mechanism.nv == 9


# -- actuation -------------------------------------------------------------------------------------------------------


@bk.actuation
def hold(t, q, v, params, tau):
    """Every joint is drawn to a moving place."""
    for j in range(tau.shape[0]):
        tau[j] = -params[0] * (q[j] - 0.1 * np.sin(3.0 * t + j)) - params[1] * v[j]


def test_gains_of_the_actuation_are_found():
    m = bk.models.chain(8, axes=((0, 1, 0), (1, 0, 0)))
    reference = bk.Simulation(m, solver="gear", rtol=1e-10, atol=1e-12, actuation=hold, params=np.array([1e3, 50.0]))
    reference.run(0.5)
    soft = bk.Simulation(m, solver="implicit", actuation=hold, params=np.array([1e3, 50.0]))
    soft.run(0.5)
    assert np.abs(soft.q - reference.q).max() < 1e-5
    hard = bk.Simulation(m, solver="implicit", actuation=hold, params=np.array([1e7, 5e5]))
    hard.run(0.5)
    assert np.abs(hard.q - 0.1 * np.sin(1.5 + np.arange(8))).max() < 0.02
    assert hard.stats.evaluations < 2 * soft.stats.evaluations
    plain = bk.Simulation(m, solver="implicit",
                          actuation=lambda t, q, v: -1e7 * (q - 0.1 * np.sin(3.0 * t + np.arange(8))) - 5e5 * v)
    plain.run(0.5)
    np.testing.assert_allclose(plain.q, hard.q, atol=1e-6)


@bk.actuation
def hold_the_tip(t, q, v, params, tau):
    """The end of a chain in a plane is drawn to a place: what acts on a joint depends on all of them."""
    x = z = dx = dz = angle = rate = 0.0
    for j in range(q.shape[0]):
        angle += q[j]
        rate += v[j]
        x, z = x - 0.2 * np.sin(angle), z - 0.2 * np.cos(angle)
        dx, dz = dx - 0.2 * np.cos(angle) * rate, dz + 0.2 * np.sin(angle) * rate
    along, up = -params[0] * (x - 0.5 * np.sin(2.0 * t)) - params[1] * dx, -params[0] * (z + 1.7) - params[1] * dz
    at_x = at_z = angle = 0.0
    for j in range(q.shape[0]):
        tau[j] = along * (z - at_z) - up * (x - at_x)
        angle += q[j]
        at_x, at_z = at_x - 0.2 * np.sin(angle), at_z - 0.2 * np.cos(angle)


@pytest.mark.parametrize("stiffness", [1e2, 1e4])
def test_drives_that_look_at_other_joints_are_right_too(stiffness):
    m = bk.models.chain(10, damping=0.05)
    q = np.concatenate([[0.3, -0.6, 0.3], np.zeros(7)])
    options = {"actuation": hold_the_tip, "params": np.array([stiffness, 0.05 * stiffness])}
    reference = bk.Simulation(m, q, solver="bdf", rtol=1e-9, atol=1e-11, **options)
    reference.run(1.0)
    full, mine = (bk.Simulation(m, q, solver=solver, rtol=1e-6, atol=1e-8, **options) for solver in ("bdf", "implicit"))
    full.run(1.0)
    mine.run(1.0)
    assert np.abs(mine.q - reference.q).max() < 10 * np.abs(full.q - reference.q).max() + 1e-5
    assert mine.stats.evaluations < 5 * full.stats.evaluations


def test_an_actuation_that_fails_is_named():
    def broken(t, q, v):
        raise ValueError("no power")

    with pytest.raises(bk.SimulationError, match="no power"):
        bk.Simulation(rod(3), solver="implicit", actuation=broken).run(1.0)


# -- what the iteration knows ----------------------------------------------------------------------------------------


def test_slopes_of_passive_torques_are_their_derivatives():
    m = bk.Mechanism()
    m.add_link("a", joint=bk.Revolute((0, 1, 0), stiffness=3.0, damping=2.0, lower=-1.0, upper=0.5,
                                      limit_stiffness=50.0, limit_damping=4.0), mass=1.0, inertia=(1, 1, 1))
    m.add_link("b", "a", bk.Prismatic((1, 0, 0), stiffness=7.0, damping=0.5), mass=1.0, inertia=(1, 1, 1))
    m.add_link("c", "b", bk.Spherical(stiffness=5.0, damping=1.5, upper=0.3, limit_stiffness=20.0, limit_damping=2.0),
               mass=1.0, inertia=(1, 1, 1))
    m.add_link("d", joint=bk.Free(damping=0.7), mass=1.0, inertia=(1, 1, 1))
    plan = m.yielding_plan(driven=False)
    assert (plan.body_i[:-1, f.ELIMINATION] == f.COLUMNS).all()
    for move in (np.zeros(m.nv), np.array([0.8, 0.2, 0.4, 0.0, 0.0, *np.zeros(6)])):
        q, v = m.integrate(m.neutral(), move), np.full(m.nv, 0.1)
        slopes = np.empty((2, m.nv))
        joint_slopes(plan.body_i, plan.dof_f, q, np.ones((2, m.nv)), slopes)

        def torque(q, v):
            out = np.empty(m.nv)
            passive_torque(plan.body_i, plan.dof_f, q, v, np.zeros(m.nv), out)
            return out

        for j, e in enumerate(1e-6 * np.eye(m.nv)):
            by_rate = (torque(q, v - e) - torque(q, v + e))[j] / 2e-6
            by_place = (torque(m.integrate(q, -e), v) - torque(m.integrate(q, e), v))[j] / 2e-6
            assert slopes[0, j] - 1.0 == pytest.approx(by_rate, abs=1e-6)
            if j not in (3, 4):  # across the turn of a ball a limit pulls too; that part is left out
                assert slopes[1, j] - 1.0 == pytest.approx(by_place, abs=1e-5)


def test_rates_of_coordinates_lead_back_to_velocities():
    m = bk.Mechanism()
    m.add_link("a", joint=bk.Free(), mass=1.0, inertia=(1, 1, 1))
    m.add_link("b", "a", bk.Spherical(), mass=1.0, inertia=(1, 1, 1))
    m.add_link("c", "b", bk.Cylindrical((0, 0, 1)), mass=1.0, inertia=(1, 1, 1))
    rng = np.random.default_rng(1)
    q, v = m.integrate(m.neutral(), rng.normal(size=m.nv)), rng.normal(size=m.nv)
    rate, back = np.empty(m.nq), np.empty(m.nv)
    coordinate_rates(m.plan().body_i, q, v, rate)
    tangent_rates(m.plan().body_i, q, rate, back)
    np.testing.assert_allclose(back, v, atol=1e-14)


def test_only_joints_that_yield_are_taken_apart():
    m = bk.models.human(dof=48)
    plain = m.plan()
    assert m.yielding_plan(driven=False) is plain
    driven = m.yielding_plan(driven=True)
    kinds = driven.body_i[:-1, f.KIND], driven.body_i[:-1, f.ELIMINATION]
    assert (kinds[1][kinds[0] == f.SPHERICAL] == f.COLUMNS).all()
    assert (kinds[1][kinds[0] == f.FREE] == f.LOOSE).all()
    np.testing.assert_array_equal(plain.dof_f, driven.dof_f)


# -- bad input -------------------------------------------------------------------------------------------------------


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(bk.ModelError, match="is for bk"):
        bk.solve_ivp(lambda t, y: -y, (0, 1), [1.0], method="implicit")
    with pytest.raises(bk.ShapeError, match="from 1 to 5"):
        bk.Simulation(rod(2), solver="implicit", max_order=6)
    with pytest.raises(bk.ShapeError, match="rtol"):
        bk.Simulation(rod(2), solver="implicit", rtol=0.0)
    with pytest.raises(bk.SimulationError, match="cannot start"):
        bk.Simulation(rod(2), v=[np.nan, 0.0], solver="implicit")
