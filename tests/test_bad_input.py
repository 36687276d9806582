"""What cannot be: every mistake gets an error of its own kind that names the culprit; nothing gives a silent NaN."""

import re

import numpy as np
import pytest

import bunraku as bk
from oracle import close
from structures import KINDS, arm, random_tree

BODY = {"mass": 1.0, "inertia": (1.0, 1.0, 1.0)}


def refused(kind, *words):
    """The block raises exactly this kind of error, and the message holds all the words."""
    return pytest.raises(kind, match="".join(f"(?s:(?=.*{re.escape(word)}))" for word in words))


# -- names ---------------------------------------------------------------------------------------------------------


def test_an_unknown_parent_is_named_with_a_hint():
    with refused(bk.NamingError, "'elbow'", "'linc1'", "did you mean 'link1'?"):
        arm().add_link("elbow", "linc1", **BODY)


@pytest.mark.parametrize("ask", [lambda m: m.q_slice("link_1"), lambda m: m.v_slice("link_1"),
                                 lambda m: m.joint("link_1"), lambda m: m.link("link_1")])
def test_an_unknown_joint_is_named_with_a_hint(ask):
    with refused(bk.NamingError, "'link_1'", "did you mean 'link1'?"):
        ask(arm())


def test_names_without_a_likeness_list_what_there_is():
    with refused(bk.NamingError, "'xyz'", "'link0', 'link1'"):
        arm().q_slice("xyz")


@pytest.mark.parametrize("name", ["link1", "ground"])
def test_a_link_name_can_be_used_once(name):
    with refused(bk.NamingError, f"{name!r}", "another name"):
        arm().add_link(name, joint=bk.Free(), **BODY)


def test_a_joint_name_can_be_used_once():
    with refused(bk.NamingError, "'hand'", "'link1'", "joint_name"):
        arm().add_link("hand", joint=bk.Free(), joint_name="link1", **BODY)


@pytest.mark.parametrize("name", ["", 3, None])
def test_a_name_is_text(name):
    with refused(bk.NamingError, "name must be text", repr(name)):
        bk.Mechanism().add_link(name)


def test_a_refused_link_leaves_the_mechanism_as_it_was():
    m = arm()
    with pytest.raises(bk.InertiaError):
        m.add_link("bad", joint=bk.Revolute((0, 0, 1)), mass=-1.0)
    assert m.link_names == ["link0", "link1", "link2"]
    assert (m.nq, m.nv) == (3, 3)
    m.add_link("bad", joint=bk.Revolute((0, 0, 1)), **BODY)


@pytest.mark.parametrize(("options", "culprit"), [({"external": {"link9": np.zeros(6)}}, "'link9'"),
                                                  ({"prescribed": {"link9": 1.0}}, "'link9'"),
                                                  ({"external": {"ground": np.zeros(6)}}, "ground")])
def test_evaluations_name_what_they_do_not_know(options, culprit):
    m = arm()
    with refused(bk.NamingError, culprit):
        bk.forward_dynamics(m, np.zeros(3), np.zeros(3), **options)


def test_a_jacobian_of_an_unknown_link_is_refused():
    with refused(bk.NamingError, "'hand'"):
        bk.kinematics(arm(), np.zeros(3)).jacobian("hand")


def named():
    """A link "hand" on a joint "wrist"."""
    m = arm(1)
    m.add_link("hand", "link0", bk.Revolute((0, 1, 0)), "wrist", position=(0, 0, -1), **BODY)
    return m


@pytest.mark.parametrize("ask", [
    lambda m: m.link("wrist"), lambda m: m.add_link("finger", "wrist", **BODY), lambda m: m.connect("ground", "wrist"),
    lambda m: bk.poses(m, np.zeros(2))["wrist"], lambda m: bk.kinematics(m, np.zeros(2)).jacobian("wrist"),
    lambda m: bk.kinematics(m, np.zeros(2)).velocities["wrist"],
    lambda m: bk.forward_dynamics(m, np.zeros(2), np.zeros(2), external={"wrist": np.zeros(6)}),
    lambda m: bk.Simulation(m).connect("ground", "wrist"),
    lambda m: bk.Simulation(m).when(bk.points_meet("ground", "wrist", 1.0), print)])
def test_a_joint_where_a_link_is_meant_is_said_to_be_one(ask):
    with refused(bk.NamingError, "'wrist' is a joint where a link is meant", "'hand'"):
        ask(named())


@pytest.mark.parametrize("ask", [
    lambda m: bk.joint_forces(m, np.zeros(2), np.zeros(2))["hand"],
    lambda m: bk.dynamics(m, np.zeros(2), np.zeros(2)).forces["hand"],
    lambda m: bk.Simulation(m).when(bk.force_above("hand", 1.0), print)])
def test_a_link_where_a_joint_is_meant_is_said_to_be_one(ask):
    with refused(bk.NamingError, "'hand' is a link where a joint is meant", "'wrist'"):
        ask(named())


def test_a_connection_where_a_link_is_meant_is_said_to_be_one():
    m = bk.models.four_bar()
    with refused(bk.NamingError, "'pin' is a connection where a link is meant", "'coupler'", "'rocker'"):
        m.link("pin")


@pytest.mark.parametrize("ask", [
    lambda m, x: bk.forward_dynamics(x, m, x), lambda m, x: bk.forward_dynamics(x, m, x, method="unit_vector"),
    lambda m, x: bk.inverse_dynamics(x, m, x, x), lambda m, x: bk.mass_matrix(x, m), lambda m, x: bk.poses(x, m),
    lambda m, x: bk.mass_matrix(x, m, method="vneb"), lambda m, x: bk.dynamics(x, m, x),
    lambda m, x: bk.joint_forces(x, m, x), lambda m, x: bk.impact(x, m, x), lambda m, x: bk.project(x, m),
    lambda m, x: bk.coordinates(x, "link0", m), lambda m, x: bk.constraints(x, m), lambda m, x: bk.closed_chain(x, m),
    lambda m, x: bk.kinematics(x, m), lambda m, x: bk.schedule(x), lambda m, x: bk.Simulation(x, m),
    lambda m, x: bk.rollout(x, m, until=1.0), lambda m, x: bk.convert.to(x, "mujoco")])
def test_swapped_arguments_are_said_to_be(ask):
    with refused(bk.ModelError, "the first argument must be a bk.Mechanism, not an array of shape (3,)",
                 "(mechanism, q, v, ...)"):
        ask(arm(), np.zeros(3))


# -- joints --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [bk.Revolute, bk.Prismatic, bk.Cylindrical, bk.Planar, lambda a: bk.Helical(a, 0.1)],
                         ids=["Revolute", "Prismatic", "Cylindrical", "Planar", "Helical"])
@pytest.mark.parametrize("axis", [(0, 0, 0), (1, 2), (np.nan, 0, 1), (np.inf, 0, 0), "x", None])
def test_an_axis_is_three_finite_numbers_not_all_zero(make, axis):
    with refused(bk.ModelError, "axis"):
        make(axis)


@pytest.mark.parametrize(("make", "word"), [
    (lambda: bk.Revolute((0, 0, 1), damping=-1), "damping"),
    (lambda: bk.Revolute((0, 0, 1), stiffness=np.nan), "stiffness"),
    (lambda: bk.Revolute((0, 0, 1), lower=1, upper=0), "lower"),
    (lambda: bk.Revolute((0, 0, 1), upper=np.nan), "upper"),
    (lambda: bk.Revolute((0, 0, 1), friction=1), "friction"),
    (lambda: bk.Revolute((0, 0, 1), armature=[1, 2]), "armature"),
    (lambda: bk.Revolute((0, 0, 1), at=(1, 2)), "at"),
    (lambda: bk.Revolute((0, 0, 1), at="here"), "at"),
    (lambda: bk.Helical((0, 0, 1), np.inf), "pitch"),
    (lambda: bk.Spherical(stiffness=[1, 2, 3]), "stiffness"),
    (lambda: bk.Free(stiffness=1), "add_spring"),
    (lambda: bk.Compound(), "Fixed"),
    (lambda: bk.Compound(bk.Spherical()), "Spherical"),
], ids=lambda x: x if isinstance(x, str) else "")
def test_a_joint_that_makes_no_sense_is_refused(make, word):
    with refused(bk.ModelError, word):
        make()


@pytest.mark.parametrize(("make", "words"), [
    (lambda: bk.Spherical(lower=-1), ("lower", "`upper` is the largest turn")),
    (lambda: bk.Free(lower=-1), ("Free", "lower", "add_spring")),
    (lambda: bk.Free(upper=[1.0] * 6), ("Free", "upper")),
    (lambda: bk.Free(rest=1.0), ("Free", "rest")),
    (lambda: bk.Fixed(damping=1.0), ("Fixed", "damping")),
])
def test_parameters_that_would_do_nothing_are_refused(make, words):
    with refused(bk.ModelError, *words):
        make()


def test_something_else_than_a_joint_is_refused():
    with refused(bk.ModelError, "'hand'", "bk.Revolute"):
        bk.Mechanism().add_link("hand", joint="revolute", **BODY)


# -- bodies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("body", "word"), [
    ({"mass": -1.0}, "mass"),
    ({"mass": np.nan}, "mass"),
    ({"mass": np.inf}, "mass"),
    ({"mass": "heavy"}, "mass"),
    ({"mass": 1.0, "inertia": (1, 1, 3)}, "triangle"),
    ({"mass": 1.0, "inertia": (1, 1, -0.5)}, "negative"),
    ({"mass": 1.0, "inertia": [[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]}, "symmetric"),
    ({"mass": 1.0, "inertia": np.eye(2)}, "3x3"),
    ({"mass": 1.0, "inertia": "round"}, "inertia"),
    ({"mass": 1.0, "inertia": np.full((3, 3), np.nan)}, "finite"),
    ({"mass": 0.0, "inertia": (1, 1, 1)}, "mass"),
], ids=lambda x: x if isinstance(x, str) else "")
def test_a_body_that_cannot_exist_is_refused(body, word):
    with refused(bk.InertiaError, "'stone'", word):
        bk.Mechanism().add_link("stone", joint=bk.Free(), **body)


@pytest.mark.parametrize("inertia", [(1, 1, 3), (1, 1, -0.5)])
def test_an_inertia_that_no_body_has_names_the_way_to_take_it_all_the_same(inertia):
    with refused(bk.InertiaError, "'stone'", "physical=False"):
        bk.Mechanism().add_link("stone", joint=bk.Free(), mass=1.0, inertia=inertia)
    bk.Mechanism().add_link("stone", joint=bk.Free(), mass=1.0, inertia=inertia, physical=False)


@pytest.mark.parametrize(("options", "words"), [
    ({"height": 175}, ("height", "0.3 to 3 m", "175 cm are height=1.75")),
    ({"height": 1750}, ("height", "1750 mm are height=1.75")),
    ({"mass": 70000}, ("mass", "70000 g are mass=70")),
    ({"height": 0.01}, ("height", "0.3 to 3 m"))])
def test_a_figure_of_another_size_than_people_have_is_refused(options, words):
    with refused(bk.ModelError, *words):
        bk.models.human(**options)


@pytest.mark.parametrize(("placed", "word"), [
    ({"rotation": 2 * np.eye(3)}, "rotation"),
    ({"rotation": np.diag([1, 1, -1])}, "rotation"),
    ({"rotation": np.eye(2)}, "rotation"),
    ({"rotation": np.full((3, 3), np.nan)}, "rotation"),
    ({"position": (1, 2)}, "position"),
    ({"position": (np.nan, 0, 0)}, "position"),
    ({"com": (0, 0, np.inf)}, "com"),
], ids=lambda x: x if isinstance(x, str) else "")
def test_a_place_that_is_none_is_refused(placed, word):
    with refused(bk.ModelError, "'stone'", word):
        bk.Mechanism().add_link("stone", joint=bk.Free(), **{**BODY, **placed})


def test_gravity_is_a_finite_vector():
    with refused(bk.ModelError, "gravity"):
        bk.Mechanism(gravity=-9.81)
    with refused(bk.ModelError, "gravity"):
        arm().gravity = (0, 0, np.nan)


@pytest.mark.parametrize(("ends", "options", "word"), [
    (("link0", "link0"), {}, "both ends"), (("link0", "link1"), {"stiffness": -1}, "stiffness"),
    (("link0", "link1"), {"damping": np.nan}, "damping"), (("link0", "link1"), {"position_a": (1,)}, "position_a"),
    (("link0", "linkk1"), {}, "link1")], ids=lambda x: x if isinstance(x, str) else "")
def test_a_spring_that_makes_no_sense_is_refused(ends, options, word):
    with refused(bk.ModelError, "'cord'", word):
        arm().add_spring(*ends, name="cord", **options)


# -- mechanisms ----------------------------------------------------------------------------------------------------


def test_a_mechanism_with_nothing_to_move_is_refused():
    for m in (bk.Mechanism(name="rock"), bk.Mechanism(name="rock")):
        m.add_link("stone", **BODY)
        with refused(bk.ModelError, "rock", "nothing to move"):
            bk.forward_dynamics(m, np.zeros(0), np.zeros(0))


@pytest.mark.parametrize("joint", [bk.Revolute((0, 0, 1)), bk.Spherical(), bk.Free(), bk.Cylindrical((0, 0, 1))],
                         ids=repr)
def test_a_massless_end_is_refused_by_name(joint):
    m = arm()
    m.add_link("feather", "link2", joint, joint_name="quill")
    with refused(bk.ModelError, "'quill'", "'feather'", "massless"):
        bk.forward_dynamics(m, m.neutral(), np.zeros(m.nv))


def test_a_massless_end_with_armature_is_fine():
    m = bk.Mechanism()
    m.add_link("rotor", joint=bk.Revolute((0, 0, 1), armature=0.5))
    assert np.allclose(bk.forward_dynamics(m, np.zeros(1), np.zeros(1), np.ones(1)), 2.0)


def rod(joint, com=(0.0, 0.0, 0.5)):
    m = bk.Mechanism()
    m.add_link("rod", joint=joint, joint_name="pin", mass=1.0, com=com, inertia=(0.1, 0.1, 0.0))
    return m


@pytest.mark.parametrize("joint", [bk.Revolute((0, 0, 1)), bk.Spherical(), bk.Free(),
                                   bk.Compound(bk.Revolute((1, 0, 0)), bk.Revolute((0, 0, 1)))], ids=repr)
@pytest.mark.parametrize("method", ["aba", "unit_vector"])
def test_a_rod_free_to_spin_about_its_own_axis_is_refused(joint, method):
    m = rod(joint)
    rng = np.random.default_rng(0)
    for _ in range(20):
        q = m.integrate(m.neutral(), rng.normal(size=m.nv))
        with refused(bk.StateError, "'pin'", "'rod'", "armature"):
            bk.forward_dynamics(m, q, rng.normal(size=m.nv), method=method)
        with refused(bk.StateError, "'pin'", "'rod'", "armature"):
            bk.forward_dynamics(m, q[None], rng.normal(size=(1, m.nv)), method=method)


def test_a_rod_with_a_distant_centre_of_mass_is_refused_as_well():
    m = rod(bk.Free(), com=(3.0, 40.0, 50.0))
    rng = np.random.default_rng(0)
    for _ in range(20):
        q = m.integrate(m.neutral(), rng.normal(size=6))
        with refused(bk.StateError, "'pin'"):
            bk.forward_dynamics(m, q, np.zeros(6), rng.normal(size=6))


@pytest.mark.parametrize("evaluate", [
    lambda m, z: bk.forward_dynamics(m, z, z, method="magic"), lambda m, z: bk.mass_matrix(m, z, method="magic")])
def test_an_unknown_method_is_refused(evaluate):
    with refused(bk.ModelError, "'magic'", "auto"):
        evaluate(arm(), np.zeros(3))


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "two"])
def test_workers_are_a_whole_number(workers):
    with refused(bk.ShapeError, "workers"):
        bk.forward_dynamics(arm(), np.zeros((40, 3)), np.zeros((40, 3)), workers=workers)


# -- shapes --------------------------------------------------------------------------------------------------------


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
    lambda m, z: bk.kinematics(m, np.zeros((4, 3))).jacobian("link0"),
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


# -- states --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def everything():
    """A tree with a joint of every kind, and a state of it."""
    trees = (random_tree(seed, links=14) for seed in range(1000))
    tree = next(tree for tree in trees if {part.kind for part in tree.parts} == set(KINDS))
    return tree, *tree.state(np.random.default_rng(0))


def owner(tree, index, width):
    """The joint that owns an entry of q or v."""
    for part in tree.parts:
        index -= getattr(part, width)
        if index < 0:
            return part.joint_name
    raise IndexError


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("which", ["q", "v", "tau"])
def test_a_number_that_is_none_is_refused_wherever_it_is(everything, which, bad):
    tree, q, v, tau = everything
    for k in range(len({"q": q, "v": v, "tau": tau}[which])):
        given = {"q": q.copy(), "v": v.copy(), "tau": tau.copy()}
        given[which][k] = bad
        words = f"{which}[{k}]", repr(owner(tree, k, "nq" if which == "q" else "nv"))
        for method in ("auto", "unit_vector"):
            with refused(bk.StateError, *words):
                bk.forward_dynamics(tree.m, **given, method=method)
        as_acceleration = [word.replace("tau[", "a[") for word in words]
        with refused(bk.StateError, *as_acceleration):
            bk.inverse_dynamics(tree.m, given["q"], given["v"], given["tau"])
        with refused(bk.StateError, *as_acceleration):
            bk.kinematics(tree.m, given["q"], given["v"], given["tau"])
        if which == "q":
            with refused(bk.StateError, *words):
                bk.poses(tree.m, given["q"])
            with refused(bk.StateError, *words):
                bk.mass_matrix(tree.m, given["q"])
            with refused(bk.StateError, words[1]):
                tree.m.integrate(given["q"], v)


def evaluations(m, q, v, tau):
    """Every way to evaluate a batch."""
    yield lambda: bk.forward_dynamics(m, q, v, tau), lambda k: bk.forward_dynamics(m, q[k], v[k], tau[k])
    yield (lambda: bk.forward_dynamics(m, q, v, tau, method="unit_vector"),
           lambda k: bk.forward_dynamics(m, q[k], v[k], tau[k]))
    yield lambda: bk.inverse_dynamics(m, q, v, tau), lambda k: bk.inverse_dynamics(m, q[k], v[k], tau[k])
    yield lambda: m.integrate(q, v), lambda k: m.integrate(q[k], v[k])


@pytest.mark.parametrize("workers", [1, 2])
def test_all_failing_states_of_a_batch_are_named_and_the_others_computed(everything, workers):
    tree = everything[0]
    q, v, tau = tree.states(np.random.default_rng(1), 37)
    q[3, 0], v[8, 1], q[36, -1], v[20, 0], v[21, 2] = np.nan, np.inf, -np.inf, np.nan, np.nan
    failing = (3, 8, 20, 21, 36)
    for evaluate, alone in evaluations(tree.m, q, v, tau):
        with refused(bk.StateError, "5 of 37", *(f"state {k}" for k in failing)) as caught:
            evaluate()
        assert caught.value.states == failing
        for k in set(range(37)) - set(failing):
            close(caught.value.result[k], alone(k))


def test_failing_states_of_mass_matrices_are_named_too(everything):
    tree = everything[0]
    q, _, _ = tree.states(np.random.default_rng(1), 9)
    q[4, -1] = np.nan
    with refused(bk.StateError, "state 4") as caught:
        bk.mass_matrix(tree.m, q)
    assert caught.value.states == (4,)
    close(caught.value.result[5], bk.mass_matrix(tree.m, q[5]))


def test_many_failing_states_do_not_flood_the_message():
    q = np.full((1000, 3), np.nan)
    with refused(bk.StateError, "1000 of 1000") as caught:
        bk.forward_dynamics(arm(), q, np.zeros((1000, 3)))
    assert len(caught.value.states) == 1000
    assert len(str(caught.value)) < 10_000


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("evaluate", [bk.forward_dynamics, bk.inverse_dynamics, bk.joint_forces,
                                      lambda *x, **o: bk.forward_dynamics(*x, **o, method="unit_vector")],
                         ids=["forward", "inverse", "forces", "unit_vector"])
def test_an_external_force_that_is_none_is_refused_by_name(evaluate, bad):
    push = np.zeros(6)
    push[4] = bad
    with refused(bk.StateError, "external", "'link1'"):
        evaluate(arm(), np.zeros(3), np.zeros(3), np.zeros(3), external={"link1": push})


@pytest.mark.parametrize("evaluate", [bk.forward_dynamics, bk.inverse_dynamics], ids=["forward", "inverse"])
def test_external_forces_that_are_none_fail_their_states_only(evaluate):
    q, v, a = np.random.default_rng(0).normal(size=(3, 9, 3))
    push = np.ones((9, 6))
    push[2, 1], push[7, 5] = np.nan, np.inf
    with refused(bk.StateError, "2 of 9", "state 2", "state 7", "'link1'") as caught:
        evaluate(arm(), q, v, a, external={"link1": push})
    assert caught.value.states == (2, 7)
    close(caught.value.result[3], evaluate(arm(), q[3], v[3], a[3], external={"link1": np.ones(6)}))


def test_a_bad_force_on_a_link_welded_to_the_ground_is_refused():
    m = arm()
    m.add_link("base", **BODY)
    with refused(bk.StateError, "'base'"):
        bk.joint_forces(m, np.zeros(3), np.zeros(3), external={"base": np.full(6, np.nan)})


def test_a_prescribed_acceleration_that_is_none_is_refused():
    with refused(bk.StateError, "'link1'", "prescribed"):
        bk.forward_dynamics(arm(), np.zeros(3), np.zeros(3), prescribed={"link1": np.nan})


@pytest.mark.parametrize("joint", [bk.Spherical(), bk.Free()], ids=repr)
@pytest.mark.parametrize("scale", [0.0, 1e-200])
def test_a_quaternion_of_no_length_is_refused_by_name(joint, scale):
    m = arm()
    m.add_link("hand", "link2", joint, joint_name="wrist", **BODY)
    q, v = scale * m.neutral(), np.zeros(m.nv)
    for given in ((q, v), (np.tile(q, (3, 1)), np.tile(v, (3, 1)))):
        for evaluate in (bk.forward_dynamics, lambda m, q, v: bk.inverse_dynamics(m, q, v, v), bk.kinematics,
                         lambda m, q, v: bk.mass_matrix(m, q), lambda m, q, v: m.integrate(q, v),
                         lambda m, q, v: m.difference(q, q)):
            with refused(bk.StateError, "quaternion", "'wrist'"):
                evaluate(m, *given)


@pytest.mark.parametrize("evaluate", [bk.forward_dynamics, lambda m, q, v: bk.mass_matrix(m, q),
                                      lambda m, q, v: bk.inverse_dynamics(m, q, v, v), bk.kinematics],
                         ids=["forward", "mass matrix", "inverse", "kinematics"])
def test_numbers_too_large_to_compute_with_are_refused(evaluate):
    m = bk.Mechanism()
    m.add_link("arm", joint=bk.Revolute((0, 0, 1)), **BODY)
    m.add_link("slide", "arm", bk.Prismatic((1, 0, 0)), **BODY)
    with refused(bk.StateError, "huge"):
        evaluate(m, np.array([0.0, 1e200]), np.array([1.0, 1.0]))
