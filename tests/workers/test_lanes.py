"""Like chunks of one mechanism in lanes give the accelerations of the plain sweep."""

import os
import subprocess
import sys

import numpy as np
import pytest

import bunraku as bk
from bunraku.entries.part_entries import lanes_one, repeat
from bunraku.plan import fields as f
from bunraku.plan import lane_plan, like
from bunraku.plan.lane_plan import in_lanes
from bunraku.runs.context import tree_one
from bunraku.spatial.lanes import WIDTH

TOLERANCE = 1e-10


@pytest.fixture(autouse=True)
def short_mechanisms_too(monkeypatch):
    """The mechanisms of these tests grow with the width of lanes; the fewest bodies worth lanes do not."""
    monkeypatch.setattr(like, "FEWEST", 8)


def accelerations(m, found, seed=0):
    """By the plain sweep and in lanes, at a random state."""
    rng = np.random.default_rng(seed)
    q, v = m.integrate(m.neutral(), 0.5 * rng.normal(size=m.nv)), rng.normal(size=m.nv)
    tau = rng.normal(size=m.nv)
    a, work = np.full(m.nv, np.nan), np.full(found.work_size + m.nv, np.nan)
    assert repeat.call(lanes_one.address, found.arrays, q, v, tau, a, work, 1) == 0
    return bk.forward_dynamics(m, q, v, tau), a


def agrees(m, **options):
    found = in_lanes(m.plan(), **options)
    assert found is not None
    for seed in range(2):
        expected, a = accelerations(m, found, seed)
        assert np.abs(a - expected).max() <= TOLERANCE * np.abs(expected).max()
    return found


def add_chain(m, parent, joints, n, name, mass=1.0, position=(0.0, 0.0, -0.2)):
    for i in range(n):
        m.add_link(f"{name}{i}", parent, joints[i % len(joints)], position=position, mass=mass, com=(0.02, 0.01, -0.1),
                   inertia=np.diag([0.02, 0.03, 0.01]))
        parent, position = f"{name}{i}", (0.0, 0.0, -0.2)
    return parent


MIXED = (bk.Revolute((0, 1, 0), armature=0.01), bk.Spherical(), bk.Prismatic((0, 0, 1)), bk.Cylindrical((1, 0, 0)),
         bk.Spherical(armature=0.02), bk.Compound(bk.Revolute((1, 0, 0)), bk.Revolute((0, 0, 1))))


@pytest.mark.parametrize("n", [8 * WIDTH, 8 * WIDTH + 5, 20 * WIDTH + 3])
@pytest.mark.parametrize("joint", ["revolute", "spherical"])
def test_chains(n, joint):
    found = agrees(bk.models.chain(n, joint))
    assert found.in_lanes >= n - WIDTH
    assert found.bundles == 1
    assert found.joins == WIDTH - 1


@pytest.mark.parametrize("joint", ["revolute", "spherical"])
def test_several_bundles(joint):
    assert agrees(bk.models.chain(25 * WIDTH, joint), longest=8).bundles == 3


@pytest.mark.parametrize("joint", ["revolute", "spherical"])
def test_forgetting_what_is_too_large_for_the_caches(joint, monkeypatch):
    kept = in_lanes(bk.models.chain(25 * WIDTH, joint).plan(), longest=8)
    monkeypatch.setattr(lane_plan, "LARGEST", 0)
    found = agrees(bk.models.chain(25 * WIDTH, joint), longest=8)
    assert found.work_size < kept.work_size
    agrees(bk.models.mobile(.2, .1, .2, .5, 3, 2, WIDTH + 1, 2.0, 2.0))


SPREADS = (1e-4, 1e-3, 1e-2, 0.1, 0.3, 1.0, 2.0)
"""[rad] of joint angles. Nearly straight chains are the difficult ones: along them all mass is felt, across them hardly
that of one link, and rounding errors of the first appear in the second."""
CHAINS = {"in a plane": ("revolute", ((0, 1, 0),)), "in space": ("revolute", ((0, 1, 0), (1, 0, 0))),
          "balls": ("spherical", ((0, 1, 0),))}


def round_trip(m, spread, torques="of accelerations", speed=1.0):
    """What inverse dynamics makes of forward dynamics: largest difference of torques; the largest torque or bias; and
    the difference that rounding of the accelerations alone may make."""
    rng = np.random.default_rng(0)
    q, v = m.integrate(m.neutral(), spread * rng.normal(size=m.nv)), speed * rng.normal(size=m.nv)
    bias = bk.inverse_dynamics(m, q, v, np.zeros(m.nv))
    tau = rng.normal(size=m.nv)
    if torques == "of accelerations":
        tau = bk.inverse_dynamics(m, q, v, tau)
    a = bk.forward_dynamics(m, q, v, tau)
    error = np.abs(bk.inverse_dynamics(m, q, v, a) - tau).max()
    rounding = 2.0**-53 * np.abs(bk.inverse_dynamics(m, q, v, a * rng.uniform(-1.0, 1.0, m.nv)) - bias).max()
    return error, max(np.abs(tau).max(), np.abs(bias).max()), rounding


def torques_return(m, spreads=SPREADS):
    for spread in spreads:
        for speed in (0.0, 1.0):
            error, largest, _ = round_trip(m, spread, speed=speed)
            assert error <= 1e-12 * largest, (spread, speed)


@pytest.mark.parametrize("n", [200, 600, 1000, 3000, 8000])
@pytest.mark.parametrize("kind", CHAINS)
def test_inverse_dynamics_returns_the_torques(n, kind):
    """As after the plain sweep, whose only error is rounding."""
    m = bk.models.chain(n, CHAINS[kind][0], axes=CHAINS[kind][1])
    assert WIDTH < 8 or m.plan().lanes is not None
    torques_return(m)


@pytest.mark.parametrize("kind", CHAINS)
def test_inverse_dynamics_returns_the_torques_of_what_is_too_large_for_the_caches(kind, monkeypatch):
    monkeypatch.setattr(lane_plan, "LARGEST", 0)
    m = bk.models.chain(5000, CHAINS[kind][0], axes=CHAINS[kind][1])
    assert WIDTH < 8 or m.plan().lanes is not None
    torques_return(m, (1e-3, 0.1, 2.0))


@pytest.mark.parametrize("kind", CHAINS)
def test_inverse_dynamics_returns_small_torques(kind):
    """A billionth of what such a chain carries: as exactly as accelerations that are floats allow."""
    m = bk.models.chain(1000, CHAINS[kind][0], axes=CHAINS[kind][1])
    for spread in SPREADS:
        error, largest, rounding = round_trip(m, spread, torques="random")
        assert error <= 1e-12 * largest + 50.0 * rounding, spread


def test_inverse_dynamics_returns_the_torques_of_trees():
    torques_return(bk.models.mobile(.2, .1, .2, .5, 3, 3, WIDTH + 1, 2.0, 2.0))
    m, hinge = bk.Mechanism(), (bk.Revolute((0, 1, 0)), bk.Revolute((1, 0, 0)))
    end = add_chain(m, "ground", hinge, 16 * WIDTH, "trunk")
    for i in range(3):
        add_chain(m, end, hinge, 16 * WIDTH, f"branch{i}-", position=(0.1 * i, 0.0, -0.2))
    assert WIDTH < 8 or m.plan().lanes is not None
    torques_return(m)


def test_inverse_dynamics_returns_the_torques_of_mixed_joints():
    m = bk.Mechanism()
    add_chain(m, "ground", MIXED, 200 * WIDTH, "link")
    assert WIDTH < 8 or m.plan().lanes is not None
    torques_return(m)


def test_chains_that_float():
    found = agrees(bk.models.chain(10 * WIDTH, base="free"))
    assert found.in_lanes < 10 * WIDTH  # the first is not like the others


def test_mixed_joints_that_repeat():
    m = bk.Mechanism()
    add_chain(m, "ground", MIXED, 12 * WIDTH + 7, "link")
    assert agrees(m).in_lanes >= 12 * WIDTH


def test_passive_joints():
    spring = bk.Revolute((0, 1, 0), stiffness=3.0, damping=0.2, rest=0.1, lower=-0.3, upper=0.3, limit_stiffness=50.0)
    m = bk.Mechanism()
    add_chain(m, "ground", (spring, bk.Spherical(stiffness=2.0, damping=0.1)), 8 * WIDTH + 1, "link")
    agrees(m)


def test_springs_may_differ():
    """Passive torques are not computed in lanes."""
    m = bk.Mechanism()
    add_chain(m, "ground", [bk.Revolute((0, 1, 0), stiffness=1.0 + i) for i in range(8 * WIDTH)], 8 * WIDTH, "link")
    agrees(m)


def test_a_link_that_differs():
    """A stretch on either side of it."""
    m = bk.Mechanism()
    end = add_chain(m, "ground", (bk.Revolute((0, 1, 0)),), 9 * WIDTH, "a")
    end = add_chain(m, end, (bk.Revolute((1, 0, 0)),), 1, "b", mass=2.0)
    add_chain(m, end, (bk.Revolute((0, 1, 0)),), 9 * WIDTH, "c")
    found = agrees(m)
    assert found.bundles == 2
    assert found.bodies - WIDTH < found.in_lanes + 3


def test_chains_that_do_not_repeat():
    m = bk.Mechanism()
    rng = np.random.default_rng(0)
    end = "ground"
    for i in range(10 * WIDTH):
        end = add_chain(m, end, (bk.Revolute((0, 1, 0)),), 1, f"link{i}-", mass=rng.uniform(1.0, 2.0))
    assert in_lanes(m.plan()) is None


@pytest.mark.parametrize(("stages", "length"), [(2, 4), (3, 2), (3, 3)])
def test_branches_of_mobiles(stages, length):
    found = agrees(bk.models.mobile(.2, .1, .2, .5, stages, length, WIDTH + 1, 2.0, 2.0))
    assert found.joins == 0
    assert found.in_lanes > (found.bodies / 2 if WIDTH > 2 else 0)  # three branches: two of them in lanes


def test_branches_on_the_ground():
    m = bk.Mechanism()
    for i in range(2 * WIDTH + 1):
        add_chain(m, "ground", (bk.Spherical(), bk.Revolute((0, 1, 0))), 4, f"branch{i}-", position=(0.3 * i, 0.0, 0.0))
    assert agrees(m).bundles == 2


def test_chain_with_branches_behind_and_beside_it():
    """A trunk with a side branch, a series, then unlike and like branches."""
    hinge = (bk.Revolute((0, 1, 0)),)
    m = bk.Mechanism()
    end = add_chain(m, "ground", hinge, 2, "trunk", mass=3.0)
    add_chain(m, "trunk0", hinge, 3, "side", mass=2.0)
    end = add_chain(m, end, hinge, 8 * WIDTH, "series")
    for i in range(2):
        add_chain(m, end, hinge, 2 + i, f"unlike{i}-", mass=4.0)
    for i in range(WIDTH):
        add_chain(m, end, hinge, 13, f"like{i}-", position=(0.1 * i, 0.0, -0.2))
    long = add_chain(m, end, hinge, 1, "other", mass=5.0)
    add_chain(m, long, hinge, 8 * WIDTH, "tail", position=(0.1, 0.1, 0.0))
    found = agrees(m)
    assert found.bundles == 3
    assert found.in_lanes == 8 * WIDTH + 13 * WIDTH + 8 * WIDTH


def test_light_links_are_not_cut_off():
    """A link without inertia stays with the one that it carries."""
    m = bk.Mechanism()
    parent = "ground"
    for i in range(16 * WIDTH):
        inertia = {"mass": 0.0} if i % 2 == 0 else {"mass": 1.0, "com": (0, 0, -0.1), "inertia": np.eye(3) * 0.01}
        m.add_link(f"link{i}", parent, bk.Revolute((i % 2, 1 - i % 2, 0)), position=(0, 0, -0.1), **inertia)
        parent = f"link{i}"
    agrees(m)


def test_mechanisms_that_lanes_cannot_do():
    m = bk.models.chain(8 * WIDTH)
    assert in_lanes(m.plan().with_locked([3])) is None
    m.add_spring("link3", "ground", stiffness=1.0)
    assert in_lanes(m.plan()) is None
    assert in_lanes(bk.models.human().plan()) is None


def test_solvers_take_it_as_a_tree():
    """Sizes that solvers read are those of the whole mechanism; the work array may start anywhere."""
    m = bk.models.chain(8 * WIDTH + 2, damping=0.1)
    plan, found = m.plan(), in_lanes(m.plan())
    arrays = found.arrays
    assert arrays.body_i[-1, f.HEAD_NQ] == m.nq
    assert arrays.dof_f.shape[1] == m.nv
    assert len(arrays.chunk_i) == 0  # no team
    rng = np.random.default_rng(3)
    q, v, tau = rng.normal(size=(3, m.nv))
    expected, a = np.empty(m.nv), np.empty(m.nv)
    repeat.call(tree_one.address, plan.arrays, q, v, tau, expected, np.empty(plan.work_size + m.nv), 1)
    memory = np.full(int(arrays.body_i[-1, f.HEAD_WORK]) + m.nv + 8, np.nan)
    for skip in range(8):
        assert repeat.call(lanes_one.address, arrays, q, v, tau, a, memory[skip:memory.size - 8 + skip], 1) == 0
        assert np.abs(a - expected).max() <= TOLERANCE * np.abs(expected).max()


def test_forward_dynamics_and_simulations_in_lanes():
    """Without `workers`, a long chain is computed in lanes."""
    m = bk.models.chain(200, damping=0.01)
    assert WIDTH < 8 or m.plan().lanes is not None
    q, v = np.random.default_rng(0).normal(size=m.nq), np.zeros(m.nv)
    close = bk.forward_dynamics(m, q, v, workers=1)
    assert np.abs(bk.forward_dynamics(m, q, v) - close).max() <= TOLERANCE * np.abs(close).max()
    for solver in ("tsit5", "gear", "implicit"):  # the last does without lanes
        expected = bk.Simulation(m, q, solver=solver, workers=1).run(0.02)
        found = bk.Simulation(m, q, solver=solver).run(0.02)
        assert np.abs(found.q[-1] - expected.q[-1]).max() < 1e-8
    with pytest.raises(bk.BunrakuError, match="link3"):
        bk.forward_dynamics(m, np.where(np.arange(200) == 3, np.nan, q), v)
    with pytest.raises(bk.ShapeError):
        bk.forward_dynamics(m, q[:-1], v)


def test_failures_are_told():
    m = bk.models.chain(8 * WIDTH)
    found, q = in_lanes(m.plan()), np.zeros(m.nv)
    q[5] = np.nan
    work, a = np.empty(found.work_size), np.empty(m.nv)
    assert repeat.call(lanes_one.address, found.arrays, q, 0 * a, 0 * a, a, work, 1) == 1


def test_prediction():
    short, long = (in_lanes(bk.models.chain(n).plan()).predicted for n in (8 * WIDTH, 100 * WIDTH))
    assert short < long
    if WIDTH == 8:
        assert in_lanes(bk.models.chain(1000).plan()).worthwhile


@pytest.mark.parametrize("width", [2, 4, 8])
def test_other_widths(width):
    if width == WIDTH:
        pytest.skip("the other tests are about it")
    code = """
import numpy as np, bunraku as bk
from bunraku.entries.part_entries import lanes_one, repeat
from bunraku.plan.lane_plan import in_lanes
from bunraku.spatial.lanes import WIDTH
for m in (bk.models.chain(16 * WIDTH + 3), bk.models.chain(16 * WIDTH, "spherical"),
          bk.models.mobile(.2, .1, .2, .5, 2, 24 // WIDTH, WIDTH + 1, 2.0, 2.0)):
    found = in_lanes(m.plan())
    rng = np.random.default_rng(0)
    q, v = m.integrate(m.neutral(), 0.5 * rng.normal(size=m.nv)), rng.normal(size=m.nv)
    tau, a = rng.normal(size=m.nv), np.full(m.nv, np.nan)
    assert repeat.call(lanes_one.address, found.arrays, q, v, tau, a, np.full(found.work_size + m.nv, np.nan), 1) == 0
    expected = bk.forward_dynamics(m, q, v, tau)
    assert np.abs(a - expected).max() <= 1e-10 * np.abs(expected).max()
"""
    environment = {**os.environ, "BUNRAKU_LANE_WIDTH": str(width), "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
