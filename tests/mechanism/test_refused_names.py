"""Names: an unknown, doubled or misplaced one gets an error that names it and what may be meant."""

import numpy as np
import pytest

import bunraku as bk
from refusals import refused
from structures import BODY, arm


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
