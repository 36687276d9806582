"""Random mechanisms with coupled joints, with loops too, and a dense oracle of their dynamics."""

import numpy as np

import bunraku as bk
from loops import connect_here
from structures import random_rotation, random_tree


def random_couplings(rng, m, q, count):
    """Couple so many pairs of joints, as they are at q: distant ones, parents and children, chains. Changes m."""
    joints = [link.joint_name for link in m.links if link.joint.nv == 1]
    for joint in rng.permutation(joints)[:count].tolist() if len(joints) > 1 else ():
        to = str(rng.choice([name for name in joints if name != joint]))
        ratio = float(rng.choice([-1.0, 1.0]) * np.exp(rng.normal()))
        place, lead = (float(q[m.q_slice(name)][0]) for name in (joint, to))
        try:
            m.couple(joint, to, ratio, place - ratio * lead)
        except bk.ModelError:  # a cycle
            continue


def random_coupled(seed, connections=0, passive=False, links=9, couplings=3, **kinds):
    """A random mechanism with couplings and connections, and a state (q, v, tau) that they admit."""
    rng = np.random.default_rng(seed)
    tree = random_tree(seed, links=links, passive=passive, **kinds)
    m, (q, v, tau) = tree.m, tree.state(rng)
    names = ["ground", *m.link_names]
    for k in range(connections):
        a, b = rng.choice(len(names), 2, replace=False)
        connect_here(m, q, names[a], names[b], bk.Spherical() if k % 2 else bk.Cylindrical((0, 0, 1)), f"loop{k}",
                     rng.normal(size=3) * 0.3, random_rotation(rng))
    random_couplings(rng, m, q, couplings)
    return m, q, bk.impact(m, q, v), tau


def solve(m, q, v, tau):
    """(accelerations, multipliers) of the dense equations M a + h = tau + J' f, J a + bias = 0; J of the couplings is
    written here."""
    tree = m.copy()
    for joint in list(tree.couplings):
        tree.uncouple(joint)
    loops = bk.constraints(tree, q, v)
    for name in list(tree.connections):
        tree.cut(name)
    rows = []
    for c in m.couplings.values():
        row = np.zeros(m.nv)
        row[m.v_slice(c.joint)], row[m.v_slice(c.to)] = 1.0, -c.ratio
        rows.append(row)
    J = np.vstack([loops.jacobian, *rows])
    bias = np.concatenate([loops.bias, np.zeros(len(rows))])
    M, h = bk.mass_matrix(tree, q), bk.inverse_dynamics(tree, q, v, np.zeros(m.nv))
    free = np.linalg.solve(M, tau - h)
    Theta = J @ np.linalg.solve(M, J.T)
    f = np.linalg.lstsq(Theta, -(J @ free + bias), rcond=1e-11)[0]
    return free + np.linalg.solve(M, J.T @ f), f, J
