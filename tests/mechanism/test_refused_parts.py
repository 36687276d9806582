"""Joints, bodies, springs and mechanisms that cannot be get an error that names the culprit."""

import numpy as np
import pytest

import bunraku as bk
from refusals import refused
from structures import BODY, arm

# -- joints ----------------------------------------------------------------------------------------------------------


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
    (lambda: bk.Revolute((0, 0, 1), fricton=1), "friction"),
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


# -- bodies ----------------------------------------------------------------------------------------------------------


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


# -- mechanisms ------------------------------------------------------------------------------------------------------


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
