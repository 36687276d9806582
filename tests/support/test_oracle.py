"""Tests of the test oracles: the oracle against textbook formulas, the generator against its specification."""

import numpy as np

import bunraku as bk
import oracle
from structures import KINDS, NO_PASSIVE, Part, Screw, Tree, random_tree


def single(kind, screws=(), passive=None, **body):
    """A tree of one link hung from the ground without offset."""
    tree = Tree(bk.Mechanism(gravity=(0, 0, -9.81)))
    rows = [passive or dict(NO_PASSIVE)] * {"spherical": 3, "free": 6}.get(kind, len(screws))
    joint = {"revolute": bk.Revolute((0, 1, 0)), "free": bk.Free()}[kind]
    tree.add(Part("body", "body", -1, kind, list(screws), rows, np.zeros(3), np.eye(3), **body), joint)
    return tree


def test_oracle_swings_a_physical_pendulum():
    mass, length, inertia = 2.0, 0.7, np.diag([0.1, 0.3, 0.25])
    hinge = Screw(np.array([0.0, 1.0, 0.0]), np.zeros(3), 1.0, 0.0)
    tree = single("revolute", [hinge], mass=mass, com=np.array([0.0, 0.0, -length]), inertia=inertia)
    angle, rate, tau = 0.4, 1.3, 0.5
    about_pivot = inertia[1, 1] + mass * length**2
    answer = oracle.solve(tree, np.array([angle]), np.array([rate]), np.array([tau]))
    assert np.isclose(answer.a[0], (tau - mass * 9.81 * length * np.sin(angle)) / about_pivot, rtol=1e-13)
    along = mass * (length * rate**2 + 9.81 * np.cos(angle))  # the force towards the pivot
    assert np.isclose(answer.forces["body"][2], along, rtol=1e-13)


def test_oracle_turns_a_free_body_by_euler_and_drops_it():
    I = np.array([0.2, 0.3, 0.4])
    tree = single("free", mass=1.5, com=np.zeros(3), inertia=np.diag(I))
    v = np.array([0.3, -0.2, 0.5, 1.0, 2.0, -1.5])
    answer = oracle.solve(tree, np.array([1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0]), v)
    w = v[3:]
    oracle.close(answer.a[3:], -np.cross(w, I * w) / I, 1e-13)
    oracle.close(answer.a[:3], np.array([0.0, 0.0, -9.81]) - np.cross(w, v[:3]), 1e-13)


def test_random_trees_hold_every_joint_and_every_awkward_arrangement():
    seen = set()
    for seed in range(60):
        parts = random_tree(seed).parts
        seen |= {part.kind for part in parts}
        for part in parts:
            above = parts[part.parent] if part.parent >= 0 else None
            seen |= {f"{part.kind} on {above.kind if above else 'ground'}"}
            if part.mass == 0.0:
                seen |= {f"massless {part.kind}"}
            if part.kind == "compound" and any(screw.at.any() for screw in part.screws):
                seen |= {"compound off its origin"}
        if sum(part.parent < 0 for part in parts) > 1:
            seen |= {"several roots"}
    assert seen >= {*KINDS, "fixed on fixed", "fixed on ground", "free on revolute", "massless revolute",
                    "massless fixed", "compound off its origin", "several roots"}
