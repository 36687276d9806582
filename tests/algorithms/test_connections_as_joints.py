"""A floating body on a connection moves as on a joint of that kind."""

import numpy as np
import pytest

import bunraku as bk
import closed_oracle
from oracle import close, quaternion_matrix
from structures import KINDS, make_joint, random_inertia, random_joint, random_rotation


def hung(kind, seed):
    """A body hung from another one by a joint with everything, and the same with a connection to a floating body."""
    rng = np.random.default_rng(seed)
    _, screws, rows = random_joint(rng, kind, True)
    for row in rows:
        row["armature"] = 0.0
    joint = make_joint(kind, screws, rows)
    place = {"position": rng.normal(size=3), "rotation": random_rotation(rng)}
    body = {"mass": 1.3, "com": rng.normal(size=3) * 0.2, "inertia": random_inertia(rng, 1.3)}
    carrier = {"mass": 2.0, "com": rng.normal(size=3) * 0.2, "inertia": random_inertia(rng, 2.0)}
    tree, twin = bk.Mechanism(), bk.Mechanism()
    for m in (tree, twin):
        m.add_link("carrier", joint=bk.Spherical(), **carrier)
    tree.add_link("body", "carrier", joint, joint_name="joint", **place, **body)
    twin.add_link("body", joint=bk.Free(), joint_name="float", **body)
    twin.connect("carrier", "body", joint=joint, name="joint", position_a=place["position"],
                 rotation_a=place["rotation"])
    q = tree.integrate(tree.neutral(), rng.uniform(-1.0, 1.0, tree.nv) * 0.8)
    v, tau = rng.normal(size=tree.nv), rng.normal(size=tree.nv)
    at = bk.kinematics(tree, q, v)
    R, x = at.poses["body"]
    q_twin = np.concatenate([q[:4], x, closed_oracle.quaternion(R)])
    v_twin = np.concatenate([v[:3], R.T @ at.velocities["body"][:3], R.T @ at.velocities["body"][3:]])
    return tree, (q, v, tau), twin, (q_twin, v_twin, np.concatenate([tau[:3], np.zeros(6), tau[3:]]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_floating_body_on_a_connection_moves_as_on_that_joint(kind, seed):
    tree, state, twin, twin_state = hung(kind, seed)
    expected, result = bk.dynamics(tree, *state), bk.dynamics(twin, *twin_state)
    for name in ("carrier", "body"):
        close(result.links[name], expected.links[name], 1e-9)
    for name in ("carrier", "joint"):
        close(result.forces[name], expected.forces[name], 1e-9)
    close(result.forces["float"], np.zeros(6), 1e-9)
    assert (result.report.constraints, result.report.rank) == (6 - state[1].size + 3,) * 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_coordinates_of_a_connection_are_those_of_that_joint(kind, seed):
    tree, (q, v, _), twin, (q_twin, v_twin, _) = hung(kind, seed)
    expected, rates = q[tree.q_slice("joint")], v[tree.v_slice("joint")]
    ours, our_rates = bk.coordinates(twin, "joint", q_twin, v_twin)
    if kind in ("spherical", "free"):
        close(quaternion_matrix(ours[-4:]), quaternion_matrix(expected[-4:]), 1e-10)
        expected = np.concatenate([expected[:-4], ours[-4:]])
    close(ours, expected, 1e-10)
    close(our_rates, rates, 1e-10)
    close(bk.coordinates(twin, "joint", q_twin), ours, 0.0)
    close(bk.coordinates(tree, "joint", q), q[tree.q_slice("joint")], 0.0)
    own, own_rates = bk.coordinates(tree, "carrier", q, v)
    close(own, q[:4], 0.0)
    close(own_rates, v[:3], 0.0)
    many, many_rates = bk.coordinates(twin, "joint", np.tile(q_twin, (3, 1)), np.tile(v_twin, (3, 1)))
    close(many, np.tile(ours, (3, 1)), 1e-12)
    close(many_rates, np.tile(our_rates, (3, 1)), 1e-12)
