"""The ready-made linkages, against equations one writes on paper, the oracle and Pinocchio."""

import numpy as np
import pytest

import bunraku as bk
import by_hand
import closed_oracle
import oracle
from closed import Closed, closing_tie, described
from oracle import close, close_forces
from pinocchio_trees import pinocchio_model, pinocchio_orders

METHODS = ("auto", "ada", "unit_vector")
BUILDERS = {
    "four-bar": bk.models.four_bar,
    "2-four-bar": bk.models.n_four_bar,
    "20-four-bar": lambda: bk.models.n_four_bar(20),
    "Bricard": bk.models.bricard,
    "slider-crank": lambda: bk.models.slider_crank(offset=0.1),
    "held chain": lambda: bk.models.chain_held(12),
    "held planar chain": lambda: bk.models.chain_held(7, "revolute"),
}
FREEDOM = {"four-bar": 1, "2-four-bar": 1, "20-four-bar": 1, "Bricard": 1, "slider-crank": 1, "held chain": 33,
           "held planar chain": 5}
TOO_MANY = {"four-bar": 3, "2-four-bar": 6, "20-four-bar": 60, "Bricard": 1, "slider-crank": 3, "held chain": 0,
            "held planar chain": 3}


@pytest.mark.parametrize("name", BUILDERS)
def test_neutral_closes_every_loop_and_the_report_counts_what_is_too_much(name):
    m = BUILDERS[name]()
    closed = described(m)
    assert np.abs(closed_oracle.loops(closed, closed.q, np.zeros(m.nv)).gap).max() < 1e-12
    report = bk.dynamics(m, m.neutral(), np.zeros(m.nv)).report
    assert m.nv - report.rank == FREEDOM[name]
    assert report.constraints - report.rank == TOO_MANY[name]
    assert bool(report.indeterminate and any(report.indeterminate.values())) == bool(TOO_MANY[name])


@pytest.mark.parametrize("name", BUILDERS)
def test_motion_and_forces_equal_the_oracle(name):
    m = BUILDERS[name]()
    closed = described(m)
    rng = np.random.default_rng(0)
    for _ in range(3):
        v, tau = closed.motion(rng)
        expected = closed_oracle.solve(closed, closed.q, v, tau)
        result = bk.dynamics(m, closed.q, v, tau)
        close(result.a, expected.a, 1e-8)
        close_forces(result.forces, expected.forces, 1e-8)
        for method in METHODS:
            close(bk.forward_dynamics(m, closed.q, v, tau, method=method), expected.a, 1e-8)


@pytest.mark.parametrize("lengths", [(1.2, 0.5, 1.0, 0.9), (1.0, 1.0, 1.0, 1.0), (2.0, 0.7, 1.6, 1.1)])
@pytest.mark.parametrize("angle", [0.9, 1.6, 2.4])
def test_a_four_bar_linkage_accelerates_as_by_hand(lengths, angle):
    m = bk.models.four_bar(lengths, angle)
    q, rate, torque = m.neutral(), 2.3, 0.7
    v = rate * direction(m, q)
    a = bk.forward_dynamics(m, q, v, np.array([torque, 0, 0]))
    close(a[0], by_hand.acceleration(by_hand.four_bar(lengths), angle, rate, torque), 1e-10)


@pytest.mark.parametrize("offset", [0.0, 0.15])
@pytest.mark.parametrize("angle", [0.4, 1.6, 2.9, 4.5])
def test_a_slider_crank_accelerates_as_by_hand(offset, angle):
    m = bk.models.slider_crank(0.3, 1.0, angle, offset=offset, slider_mass=2.0)
    q, rate, torque = m.neutral(), -3.1, 0.4
    v = rate * direction(m, q)
    a = bk.forward_dynamics(m, q, v, np.array([torque, 0, 0]))
    rods = by_hand.slider_crank(0.3, 1.0, offset, slider_mass=2.0)
    close(a[0], by_hand.acceleration(rods, angle, rate, torque), 1e-10)
    slides = rods(angle)[2][1]
    close(bk.poses(m, q)["slider"][1], np.array([slides[0], 0.0, slides[1]]), 1e-13)


def direction(m, q):
    """The velocity that keeps loops closed, with rate 1 of the first joint."""
    v = closed_oracle.consistent(described(m, q), q, np.eye(m.nv)[0])
    return v / v[0]


@pytest.mark.parametrize("n", [1, 2, 40])
def test_n_four_bars_accelerate_as_by_hand(n):
    m = bk.models.n_four_bar(n)
    v = np.concatenate([-np.ones(n + 1), np.ones(n)])
    a = bk.forward_dynamics(m, m.neutral(), v)
    expected = by_hand.acceleration(by_hand.n_four_bar(n), 0.0, 1.0)
    close(a, np.concatenate([-expected * np.ones(n + 1), expected * np.ones(n)]), 1e-9)
    close(bk.impact(m, m.neutral(), v), v, 1e-12)


def runge_kutta(m, q, v, duration, steps):
    """Classical, by the group; every state is brought to the loops before it is used."""
    h = duration / steps

    def rates(dq, dv):
        at, moving = bk.project(m, m.integrate(q, dq), v + dv)
        return moving, bk.forward_dynamics(m, at, moving)

    for _ in range(steps):
        v1, a1 = rates(0 * v, 0 * v)
        v2, a2 = rates(0.5 * h * v1, 0.5 * h * a1)
        v3, a3 = rates(0.5 * h * v2, 0.5 * h * a2)
        v4, a4 = rates(h * v3, h * a3)
        q, v = bk.project(m, m.integrate(q, h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)),
                          v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4))
    return q, v


@pytest.mark.parametrize(("name", "speed", "duration"), [("2-four-bar", -1.0, 0.6), ("four-bar", 2.0, 0.5),
                                                         ("Bricard", 1.0, 0.25), ("slider-crank", 4.0, 0.3)])
def test_energy_is_kept_along_a_motion(name, speed, duration):
    m = BUILDERS[name]()
    q = m.neutral()
    v = speed * direction(m, q)
    before = sum(m.energy(q, v))
    q1, v1 = runge_kutta(m, q, v, duration, 60)
    moved = abs(m.energy(q1, v1)[1] - m.energy(q, v)[1])
    assert moved > 0.01
    assert abs(sum(m.energy(q1, v1)) - before) < 1e-6 * (abs(before) + moved)
    assert np.abs(closed_oracle.loops(described(m, q1), q1, v1).gap).max() < 1e-9


def test_energy_of_the_benchmark_falls_as_the_angle_says():
    """The 2-four-bar linkage from upright at 1 m/s: its rate at any angle follows from energy alone."""
    m = bk.models.n_four_bar(2)
    v = np.array([-1.0, -1.0, -1.0, 1.0, 1.0])
    q, v = runge_kutta(m, m.neutral(), v, 0.5, 80)
    close(q[:3], np.full(3, q[0]), 1e-9)
    rods = by_hand.n_four_bar(2)
    fallen = by_hand.potential(rods, 0.0) - by_hand.potential(rods, -q[0])
    gained = 0.5 * by_hand.inertia(rods, -q[0]) * v[0]**2 - 0.5 * by_hand.inertia(rods, 0.0)
    assert fallen > 1.0
    assert abs(gained - fallen) < 1e-7 * fallen


def test_bricard_moves_far_with_its_one_freedom():
    m = bk.models.bricard()
    q, v = m.neutral(), direction(m, m.neutral())
    for _ in range(20):
        q, v = bk.project(m, m.integrate(q, 0.05 * v / np.linalg.norm(v)), v)
        report = bk.dynamics(m, q, v).report
        assert (report.constraints, report.rank, m.nv) == (5, 4, 5)
    assert np.abs(q).max() > 0.3


@pytest.mark.parametrize("joint", ["revolute", "spherical"])
@pytest.mark.parametrize(("n", "span"), [(2, 0.3), (7, 0.9), (12, 2.0)])
def test_a_held_chain_hangs_at_rest_and_its_ends_carry_half_of_it_each(n, span, joint):
    m = bk.models.chain_held(n, joint, span=span)
    result = bk.dynamics(m, m.neutral(), np.zeros(m.nv))
    assert np.abs(result.a).max() < 1e-7
    p = bk.poses(m, m.neutral())
    weight = 9.81 * m.mass
    start = p["link0"][0] @ result.forces["link0"][:3]
    end = p[f"link{n - 1}"][0] @ result.forces["end"][:3]
    close(start[2], weight / 2, 1e-9)
    close(end[2], weight / 2, 1e-9)
    close(start[0], -end[0], 1e-9)
    for i in range(n):
        force = p[f"link{i}"][0] @ result.forces[f"link{i}"][:3]
        close(force[0], start[0], 1e-8)
        close(force[2], weight * (0.5 - i / n), 1e-8)
        middle = force - [0.0, 0.0, weight / (2 * n)]  # at a link's middle the force is along the link
        assert np.abs(np.cross(middle, p[f"link{i}"][0][:, 0])).max() < 1e-8 * weight


@pytest.mark.parametrize("names", [("fixed",), ("spherical",), ("fixed", "spherical"), ("spherical", "fixed", "fixed")])
@pytest.mark.parametrize("figure", ["human 34", "humanoid"])
def test_pinocchio_agrees_on_welds_and_pins_of_figures(figure, names):
    pin = pytest.importorskip("pinocchio")
    m = bk.models.humanoid() if figure == "humanoid" else bk.models.human(34)
    rng = np.random.default_rng(1)
    q = m.integrate(m.neutral(), 0.3 * rng.normal(size=m.nv))
    closed = Closed(m, described(m).parts, q=q)
    foot, hand = ("ankle_roll", "wrist_roll") if figure == "humanoid" else ("foot", "hand")
    ends = [(-1, f"left_{foot}"), (m.link_names.index(f"left_{hand}"), f"right_{hand}"), (-1, f"right_{foot}")]
    for (a, b), kind in zip(ends, names, strict=False):
        closed.tie(*closing_tie(rng, oracle.motion(closed, q, np.zeros(m.nv)), f"{kind} {b}", a,
                                m.link_names.index(b), kind))
    v, tau = closed.motion(rng)
    tau = tau[:m.nv]
    theirs, wrenches = constraint_dynamics(pin, closed, q, v, tau)
    result = bk.dynamics(m, q, v, tau)
    close(result.a, theirs, 1e-8)
    close_forces({tie.name: result.forces[tie.name] for tie in closed.ties}, wrenches, 1e-8)


def constraint_dynamics(pin, closed, q, v, tau):
    """Pinocchio's accelerations and forces with welds and pins."""
    model = pinocchio_model(pin, closed)
    data = model.createData()
    order_q, order_v = pinocchio_orders(model, closed)
    their_q, their_v, their_tau = np.empty(model.nq), np.empty(model.nv), np.empty(model.nv)
    their_q[order_q], their_v[order_v], their_tau[order_v] = q, v, tau
    ties, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    carrier = {k: joint_of(pin, model, closed, k) for k in range(-1, len(closed.parts))}
    for tie in closed.ties:
        kind = pin.ContactType.CONTACT_6D if tie.kind == "fixed" else pin.ContactType.CONTACT_3D
        (joint_b, at_b), (joint_a, at_a) = carrier[tie.b], carrier[tie.a]
        ties.append(pin.RigidConstraintModel(kind, model, joint_b, at_b * pin.SE3(tie.rotation_b, tie.position_b),
                                             joint_a, at_a * pin.SE3(tie.rotation_a, tie.position_a),
                                             pin.ReferenceFrame.LOCAL))
        datas.append(ties[len(ties) - 1].createData())
    try:
        pin.initConstraintDynamics(model, data, ties, datas)
    except TypeError:  # before version 4
        pin.initConstraintDynamics(model, data, ties)
    settings = pin.ProximalSettings(1e-12, 0.0, 1)
    a = pin.constraintDynamics(model, data, their_q, their_v, their_tau, ties, datas, settings)
    return a[order_v], {tie.name: d.contact_force.vector.copy() for tie, d in zip(closed.ties, datas, strict=True)}


def joint_of(pin, model, closed, link):
    """The moving joint that carries a link, and where the link is on it: Fixed joints have none of their own."""
    place = pin.SE3.Identity()
    while link >= 0 and closed.parts[link].kind == "fixed":
        place = pin.SE3(closed.parts[link].rotation, closed.parts[link].position) * place
        link = closed.parts[link].parent
    return (0 if link < 0 else model.getJointId(f"joint{link}")), place


@pytest.mark.parametrize("call", [
    lambda: bk.models.four_bar((1, 1, 1)), lambda: bk.models.four_bar((5, 1, 1, 1)),
    lambda: bk.models.four_bar((1, 1, 0, 1)), lambda: bk.models.n_four_bar(0), lambda: bk.models.n_four_bar(2.5),
    lambda: bk.models.slider_crank(1.0, 0.5), lambda: bk.models.bricard(length=-1.0),
    lambda: bk.models.chain_held(1), lambda: bk.models.chain_held(5, "rubber"),
    lambda: bk.models.chain_held(5, span=1.0), lambda: bk.models.chain_held(5, span=0.1),
])
def test_linkages_that_cannot_be_are_refused(call):
    with pytest.raises(bk.ModelError):
        call()
