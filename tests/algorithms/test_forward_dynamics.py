"""Forward dynamics: the accelerations are those of the dense oracle, whatever the mechanism and whatever acts."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import bunraku as bk
import oracle
from oracle import close
from structures import random_tree

SEEDS = st.integers(0, 10**6)


def accelerations(tree, q, v, tau, external=None, **options):
    """The oracle's, of every state of a batch."""
    pushed = [{name: w[k] for name, w in (external or {}).items()} for k in range(len(q))]
    return np.array([oracle.solve(tree, *state, external=push, **options).a
                     for *state, push in zip(q, v, tau, pushed, strict=True)])


@given(SEEDS)
@settings(max_examples=80)
def test_one_state_equals_the_oracle(seed):
    tree = random_tree(seed)
    q, v, tau = tree.state(np.random.default_rng(seed))
    close(bk.forward_dynamics(tree.m, q, v, tau), oracle.solve(tree, q, v, tau).a)


@given(SEEDS)
@settings(max_examples=80)
def test_one_state_with_all_forces_equals_the_oracle(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, passive=True, springs=seed % 2 == 0)
    q, v, tau = tree.state(rng)
    external = tree.external(rng)
    close(bk.forward_dynamics(tree.m, q, v, tau, external=external),
          oracle.solve(tree, q, v, tau, external=external).a)


@given(SEEDS)
@settings(max_examples=40)
def test_a_batch_with_all_forces_equals_the_oracle(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, passive=True, springs=seed % 2 == 0)
    q, v, tau = tree.states(rng, 3)
    external = tree.external(rng, 3)
    close(bk.forward_dynamics(tree.m, q, v, tau, external=external), accelerations(tree, q, v, tau, external))


@given(SEEDS)
@settings(max_examples=30)
def test_passive_false_takes_every_passive_force_away(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, passive=True, springs=True)
    q, v, tau = tree.states(rng, 2)
    expected = accelerations(tree, q, v, tau, passive=False)
    close(bk.forward_dynamics(tree.m, q, v, tau, passive=False), expected)
    close(bk.forward_dynamics(tree.m, q[0], v[0], tau[0], passive=False), expected[0])


@given(SEEDS)
@settings(max_examples=40)
def test_prescribed_joints_move_as_told_and_the_others_follow(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, links=6, passive=seed % 2 == 0, springs=seed % 3 == 0)
    q, v, tau = tree.states(rng, 2)
    movable = [part.joint_name for part in tree.parts if part.nv]
    told = {name: rng.normal(size=tree.m.joint(name).nv) for name in movable if rng.random() < 0.4}
    indices = {j: float(x) for name, value in told.items()
               for j, x in zip(range(*tree.m.v_slice(name).indices(tree.m.nv)), value, strict=True)}
    expected = accelerations(tree, q, v, tau, prescribed=indices)
    close(bk.forward_dynamics(tree.m, q, v, tau, prescribed=told), expected)
    close(bk.forward_dynamics(tree.m, q[0], v[0], tau[0], prescribed=told), expected[0])


def test_prescribed_accelerations_may_differ_between_states():
    tree = random_tree(3, links=5, kinds=("revolute", "spherical"))
    q, v, tau = tree.states(np.random.default_rng(3), 4)
    hinge = next(part.joint_name for part in tree.parts if part.kind == "revolute")
    told = np.array([1.0, -2.0, 0.0, 5.0])
    a = bk.forward_dynamics(tree.m, q, v, tau, prescribed={hinge: told})
    j = tree.m.v_slice(hinge).start
    expected = [oracle.solve(tree, *state, prescribed={j: x}).a for *state, x in zip(q, v, tau, told, strict=True)]
    close(a, np.array(expected))


@given(SEEDS)
@settings(max_examples=40)
def test_the_unit_vector_method_agrees(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, passive=True, springs=seed % 2 == 0)
    q, v, tau = tree.states(rng, 3)
    external = tree.external(rng, 3)
    expected = bk.forward_dynamics(tree.m, q, v, tau, external=external)
    close(bk.forward_dynamics(tree.m, q, v, tau, external=external, method="unit_vector"), expected)
    one = {name: w[0] for name, w in external.items()}
    close(bk.forward_dynamics(tree.m, q[0], v[0], tau[0], external=one, method="unit_vector"), expected[0])


@given(SEEDS)
@settings(max_examples=6)
def test_deep_trees_equal_the_oracle(seed):
    tree = random_tree(seed, links=40, chain=True)
    q, v, tau = tree.state(np.random.default_rng(seed))
    close(bk.forward_dynamics(tree.m, q, v, tau), oracle.solve(tree, q, v, tau).a)
    close(bk.forward_dynamics(tree.m, q[None], v[None], tau[None])[0], oracle.solve(tree, q, v, tau).a)


def test_small_links_far_from_the_root_keep_their_digits():
    """A 1 cm, 1 g gripper whose position is 10 km of slides away: its accelerations do not know the distance."""
    def gripper(distance):
        m = bk.Mechanism()
        m.add_link("slide", joint=bk.Prismatic((1, 0, 0)), mass=10.0)
        m.add_link("swing", "slide", bk.Revolute((0, 0, 1)), position=(distance, 0, 0), mass=1.0, inertia=(1, 1, 1))
        m.add_link("finger", "swing", bk.Revolute((0, 1, 0)), mass=1e-3, com=(0.01, 0, 0), inertia=(1e-7,) * 3)
        return bk.forward_dynamics(m, np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 1e-5]))

    close(gripper(1e4), gripper(0.0))


def test_torques_default_to_zero():
    tree = random_tree(11, passive=True)
    q, v, tau = tree.states(np.random.default_rng(0), 5)
    assert np.array_equal(bk.forward_dynamics(tree.m, q, v), bk.forward_dynamics(tree.m, q, v, 0 * tau))
    assert np.array_equal(bk.forward_dynamics(tree.m, q[0], v[0]), bk.forward_dynamics(tree.m, q[0], v[0], 0 * tau[0]))


@given(SEEDS)
@settings(max_examples=20)
def test_the_length_of_a_quaternion_does_not_matter(seed):
    tree = random_tree(seed, kinds=("spherical", "free", "revolute"), passive=True)
    q, v, tau = tree.state(np.random.default_rng(seed))
    longer = q.copy()
    for part in tree.parts:
        if part.kind in ("spherical", "free"):
            longer[tree.m.q_slice(part.joint_name)][-4:] *= -3.7
    close(bk.forward_dynamics(tree.m, longer, v, tau), bk.forward_dynamics(tree.m, q, v, tau))


def test_a_fixed_joint_changes_nothing_but_the_name():
    """One body, or the same body in two pieces welded together."""
    whole, welded = bk.Mechanism(), bk.Mechanism()
    whole.add_link("arm", joint=bk.Revolute((0, 1, 0)), mass=3.0, com=(0, 0, -2 / 3), inertia=(2 / 3, 2 / 3, 0.0))
    welded.add_link("arm", joint=bk.Revolute((0, 1, 0)), mass=2.0, com=(0, 0, -1.0))
    welded.add_link("hand", "arm", position=(0, 0, -1.0), mass=1.0, com=(0, 0, 1.0))
    state = np.array([0.3]), np.array([0.4]), np.array([0.5])
    close(bk.forward_dynamics(welded, *state), bk.forward_dynamics(whole, *state), 1e-14)
