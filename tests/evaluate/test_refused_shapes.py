"""Arguments of evaluations: wrong shapes and settings are refused, any form of the same numbers is taken."""

import numpy as np
import pytest

import bunraku as bk
from bunraku.entries.forward_entries import forward_one
from bunraku.entries.inverse_entries import inverse_one
from bunraku.entries.mass_matrix_entries import matrix_one
from oracle import close
from refusals import refused
from structures import arm, random_tree

# -- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("evaluate", [
    lambda m, z: bk.forward_dynamics(m, z, z, method="magic"), lambda m, z: bk.mass_matrix(m, z, method="magic")])
def test_an_unknown_method_is_refused(evaluate):
    with refused(bk.ModelError, "'magic'", "auto"):
        evaluate(arm(), np.zeros(3))


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "two"])
def test_workers_are_a_whole_number(workers):
    with refused(bk.ShapeError, "workers"):
        bk.forward_dynamics(arm(), np.zeros((40, 3)), np.zeros((40, 3)), workers=workers)


# -- shapes ----------------------------------------------------------------------------------------------------------

WRONG = (np.zeros(2), np.zeros((2, 2)), np.zeros((1, 2, 3)), 0.0, "abc", [[1, 2], [3]])


@pytest.mark.parametrize(("which", "bad"), [*((which, bad) for which in ("q", "v", "tau") for bad in WRONG),
                                            ("q", None), ("v", None)], ids=repr)
def test_wrong_shapes_are_named(which, bad):
    given = {"q": np.zeros(3), "v": np.zeros(3), "tau": np.zeros(3), which: bad}
    for method in ("auto", "unit_vector"):
        with refused(bk.ShapeError, which):
            bk.forward_dynamics(arm(), **given, method=method)
    with refused(bk.ShapeError, which):
        bk.forward_dynamics(arm(), **given, prescribed={"link0": 1.0})


@pytest.mark.parametrize("evaluate", [
    lambda m, z: bk.inverse_dynamics(m, z, z, np.zeros(2)), lambda m, z: bk.mass_matrix(m, np.zeros(4)),
    lambda m, z: bk.poses(m, np.zeros(4)), lambda m, z: m.integrate(z, np.zeros(2)),
    lambda m, z: m.difference(z, np.zeros(2)), lambda m, z: m.energy(z, np.zeros(2)),
    lambda m, z: bk.forward_dynamics(m, np.zeros((4, 3)), np.zeros((5, 3))),
    lambda m, z: bk.forward_dynamics(m, z, z, external={"link0": np.zeros(5)}),
    lambda m, z: bk.forward_dynamics(m, z, z, external=[0] * 6),
    lambda m, z: bk.forward_dynamics(m, np.zeros((4, 3)), z, external={"link0": np.zeros((5, 6))}),
    lambda m, z: bk.forward_dynamics(m, z, z, external={"link0": np.zeros((4, 6)), "link1": np.zeros((5, 6))}),
    lambda m, z: bk.forward_dynamics(m, z, z, external={"link0": "push"}),
    lambda m, z: bk.forward_dynamics(m, z, z, prescribed={"link0": np.zeros((2, 2))}),
    lambda m, z: bk.forward_dynamics(m, z, z, prescribed={"link0": "up"}),
    lambda m, z: bk.forward_dynamics(m, z, z, np.zeros((4, 3)), prescribed={"link0": np.zeros(5)}),
    lambda m, z: bk.forward_dynamics(m, z, z, prescribed={"link0": np.zeros(4), "link1": np.zeros(5)}),
    lambda m, z: bk.forward_dynamics(m, z, z, prescribed=[1.0]),
])
def test_shapes_that_do_not_fit_are_refused(evaluate):
    with pytest.raises(bk.ShapeError):
        evaluate(arm(), np.zeros(3))


def variants(x):
    """The same numbers in every form that is legal."""
    frozen = x.copy()
    frozen.flags.writeable = False
    spaced = np.repeat(x, 2, axis=-1)[..., ::2]
    yield from (x.tolist(), frozen, spaced, np.asfortranarray(x), x[..., ::-1][..., ::-1], x.astype(">f8"))


def test_any_form_of_the_same_numbers_gives_the_same_answer():
    tree = random_tree(8, links=5, passive=True)
    q, v, tau = tree.states(np.random.default_rng(8), 3)
    for given in ((q, v, tau), (q[0], v[0], tau[0])):
        a = bk.forward_dynamics(tree.m, *given)
        M, E = bk.mass_matrix(tree.m, given[0]), tree.m.energy(*given[:2])
        for one in zip(*map(variants, given), strict=True):
            assert np.array_equal(bk.forward_dynamics(tree.m, *one), a)
            close(bk.inverse_dynamics(tree.m, one[0], one[1], a), given[2])
            assert np.array_equal(bk.mass_matrix(tree.m, one[0]), M)
            assert np.array_equal(tree.m.energy(one[0], one[1]), E)
            tree.m.integrate(one[0], one[1])


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int64, bool])
def test_other_kinds_of_numbers_are_converted(kind):
    m = arm()
    q, v = np.array([1, 0, 1], kind), np.array([0, 1, 1], kind)
    assert np.array_equal(bk.forward_dynamics(m, q, v), bk.forward_dynamics(m, q.astype(float), v.astype(float)))
    assert np.array_equal(m.integrate(q, v), [1.0, 1.0, 2.0])


def test_complex_numbers_are_refused():
    with pytest.raises(bk.ShapeError):
        bk.forward_dynamics(arm(), np.zeros(3) + 1j, np.zeros(3))


@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics", "mass_matrix"])
def test_an_error_inside_compiled_code_is_not_taken_for_a_refused_argument(name, monkeypatch):
    """The fast paths convert arguments and try again only if an array is of another kind."""
    m = bk.models.chain(3, joint="revolute")
    entry = {"forward_dynamics": forward_one, "inverse_dynamics": inverse_one, "mass_matrix": matrix_one}[name]
    state = (m.neutral(), np.zeros(m.nv), np.zeros(m.nv))[:1 if name == "mass_matrix" else 3]
    expected = getattr(bk, name)(m, *state)
    assert np.array_equal(getattr(bk, name)(m, *map(list, state)), expected)

    def broken(*args):
        raise TypeError("a mistake of ours")

    monkeypatch.setattr(entry, "call", broken)
    with pytest.raises(TypeError, match="a mistake of ours"):
        getattr(bk, name)(m, *state)
