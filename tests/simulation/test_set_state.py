"""The state of a simulation is read-only and changed by `set_state`, which leaves an event and a new segment."""

import pickle

import numpy as np
import pytest

import bunraku as bk
from moving import double


def write(place, key, value):
    place[key] = value


def test_writing_to_q_or_v_is_refused_with_the_call_that_does_it():
    sim = bk.Simulation(double(), [0.1, 0.2])
    for do in (lambda: write(sim.q, 0, 1.0), lambda: write(sim.v, slice(None), 0.0), lambda: write(sim.q[1:], 0, 1.0),
               lambda: sim.v.__iadd__(1.0), lambda: sim.q.fill(0.0), lambda: setattr(sim, "q", [0.0, 0.0])):
        with pytest.raises(bk.ReadOnlyError, match=r"sim\.set_state"):
            do()
    assert sim.q.tolist() == [0.1, 0.2]
    assert not sim.q.flags.writeable


def test_what_is_computed_from_q_and_v_can_be_written_to():
    sim = bk.Simulation(double(), [0.1, 0.2])
    for array in (sim.q.copy(), sim.q + 1.0, np.array(sim.q), 2.0 * sim.q[:1], pickle.loads(pickle.dumps(sim.q))):
        assert type(array) is np.ndarray
        array[0] = 5.0
    both = np.concatenate([sim.q, sim.v])
    both[:2] *= 2.0
    both[0] = 7.0
    assert both.tolist() == [7.0, 0.4, 0.0, 0.0]
    assert isinstance(sim.q.sum(), float)
    a = bk.forward_dynamics(sim.mechanism, sim.q, sim.v)  # and compiled code takes it as it is
    assert (a == bk.forward_dynamics(sim.mechanism, sim.q.copy(), sim.v.copy())).all()


def test_settings_of_a_run_that_would_have_no_effect_are_refused():
    sim = bk.Simulation(double())
    for name, value in (("solver", "bdf"), ("rtol", 1e-9), ("actuation", None), ("t", 1.0), ("stats", None),
                        ("mechanism", double())):
        with pytest.raises(bk.ReadOnlyError, match=f"sim.{name} is read-only"):
            setattr(sim, name, value)
    sim.params = [1, 2]  # made an array, as compiled code wants it
    assert sim.params.dtype == float


def test_set_state_is_an_event_and_a_new_segment():
    sim = bk.Simulation(double(), [0.1, 0.2])
    sim.run(until=0.1)
    sim.set_state([1.0, -1.0], [0.5, 0.0])
    sim.set_state(v=[0.0, 0.3])
    trajectory = sim.run(until=0.2)
    assert [event.text for event in trajectory.events] == ["set_state", "set_state"]
    assert [event.t for event in trajectory.events] == [0.1, 0.1]
    first, second = trajectory.segments
    assert (second.q[0].tolist(), second.v[0].tolist()) == ([1.0, -1.0], [0.0, 0.3])
    assert first.t[-1] == second.t[0] == 0.1
    alone = bk.Simulation(double(), [1.0, -1.0], [0.0, 0.3], t=0.1)
    alone.run(until=0.2)
    assert (alone.q == sim.q).all()


def test_a_simulation_can_start_and_go_on_at_any_time():
    @bk.actuation
    def pulse(t, q, v, params, tau):
        tau[0] = 1.0 if t > 5.0 else 0.0

    sim = bk.Simulation(double(), t=5.0, actuation=pulse)
    assert sim.trajectory.t.tolist() == [5.0]
    sim.run(until=5.1)
    assert sim.q[0] != 0.0
    sim.set_state(t=7.0)
    assert sim.run(until=7.1).t[-1] == 7.1
    sim.set_state([0.0, 0.0], [0.0, 0.0], t=0.0)  # earlier: a record of its own
    trajectory = sim.run(until=0.1)
    assert (trajectory.t[0], sim.t, sim.q[0]) == (0.0, 0.1, 0.0)
    assert (np.diff(trajectory.t) > 0).all()
    with pytest.raises(bk.ShapeError, match="t "):
        bk.Simulation(double(), t=np.nan)


def test_an_action_may_set_the_state_and_the_time():
    sim = bk.Simulation(double(), [0.5, 0.0])
    sim.when(lambda t, q, v: t - 0.1, lambda s: s.set_state([0.0, 0.0], [0.0, 0.0], t=0.3))
    sim.run(until=0.2)
    assert (sim.t, sim.q.tolist(), sim.v.tolist()) == (0.3, [0.0, 0.0], [0.0, 0.0])
    assert [event.text for event in sim.trajectory.events] == ["condition 0", "set_state: from t = 0.1 s"]


def test_a_refused_state_changes_nothing():
    sim = bk.Simulation(bk.models.four_bar())
    sim.run(until=0.1)
    before = sim.q.copy(), sim.v.copy(), len(sim.trajectory.events)
    for q, v, error, words in ((sim.q + 0.1, sim.v, bk.SimulationError, "bk.project"),
                               (sim.q, sim.v + 1.0, bk.SimulationError, "bk.project"),
                               (sim.q[:2], sim.v, bk.ShapeError, "shape"),
                               (sim.q * np.nan, sim.v, bk.SimulationError, "set_state: .* nan")):
        with pytest.raises(error, match=words):
            sim.set_state(q, v)
    assert (sim.q == before[0]).all()
    assert (sim.v == before[1]).all()
    assert len(sim.trajectory.events) == before[2]
