"""States between the steps are as good as the steps: loops closed, no jumps, no ringing."""

import numpy as np
import pytest

import bunraku as bk
from moving import linkage, pendulum, tumbling


def test_states_between_the_recorded_ones_are_close_to_the_motion():
    sim = bk.Simulation(bk.models.human(34), v=np.random.default_rng(3).normal(size=34), rtol=1e-6, atol=1e-8)
    coarse = sim.run(0.2)
    times = np.linspace(0.013, 0.187, 7)
    for t, (m, q, _) in zip(times, coarse.sample(times), strict=True):
        exact = bk.Simulation(m, coarse.q[0], coarse.v[0], rtol=1e-10, atol=1e-11)
        exact.run(t)
        assert np.abs(m.difference(exact.q, q)).max() < 1e-4


@pytest.mark.parametrize(("solver", "rtol", "dense"), [
    ("gear", 1e-10, False), ("gear", 1e-10, True), ("gear", 1e-6, False), ("gear", 1e-6, True), ("bdf", 1e-6, False),
    ("bdf", 1e-6, True), ("tsit5", 1e-8, True), ("rkg", 1e-8, True), ("rk4", 0, False), ("rk4", 0, True)])
@pytest.mark.parametrize("build", [tumbling, linkage])
def test_samples_are_as_good_as_the_steps(build, solver, rtol, dense):
    m, q, v = build()
    settings = {"step": 0.005} if solver == "rk4" else {"rtol": rtol, "atol": 1e-2 * rtol}
    tr = bk.Simulation(m, q, v, solver=solver, dense=dense, **settings).run(1.0)
    k = np.linspace(3, len(tr.t) - 2, 15).astype(int)
    middle = 0.37 * tr.t[k] + 0.63 * tr.t[k + 1]
    times = np.unique(np.concatenate([tr.t[k], middle]))
    exact = bk.rollout(m, q, v, times=times, rtol=1e-13, atol=1e-14)

    def worst(at, states):
        out = 0.0
        for t, (q, v) in zip(at, states, strict=True):
            n = int(np.flatnonzero(times == t)[0])
            out = max(out, np.abs(m.difference(exact.q[n], q)).max(), np.abs(exact.v[n] - v).max())
        return out
    steps = worst(tr.t[k], zip(tr.q[k], tr.v[k], strict=True))
    between = worst(middle, [(q, v) for _, q, v in tr.sample(middle)])
    assert between < 10 * steps + 1e-11


@pytest.mark.parametrize(("solver", "rtol"), [("gear", 1e-10), ("gear", 1e-6), ("bdf", 1e-6), ("implicit", 1e-6),
                                              ("tsit5", 1e-8), ("rk4", 0)])
def test_samples_are_as_good_as_the_steps_by_default_in_every_step(solver, rtol):
    """Also where the step changes its length, and where a derivative of v passes through zero."""
    m, start = pendulum(), [1.2]
    settings = {"step": 0.005} if solver == "rk4" else {"rtol": rtol, "atol": 1e-2 * rtol}
    sim = bk.Simulation(m, start, solver=solver, **settings)
    sim.when(lambda t, q, v: t - 0.4, lambda s: None)
    tr = sim.run(1.0)
    middle = np.concatenate([tr.t[:-1] + share * np.diff(tr.t) for share in (0.2, 0.5, 0.8)])
    times = np.unique(np.concatenate([middle, tr.t]))
    exact = bk.rollout(m, start, times=times, rtol=1e-13, atol=1e-14)
    states = tr.sample(times)
    error = np.array([[abs(q[0] - x[0]), abs(v[0] - w[0])]
                      for (_, q, v), x, w in zip(states, exact.q, exact.v, strict=True)])
    at_steps = np.isin(times, tr.t)
    times_worse = 10 if solver == "tsit5" else 5  # its polynomial is of order 4
    assert (error[~at_steps].max(axis=0) < times_worse * error[at_steps].max(axis=0) + 1e-12).all()


def test_samples_around_a_cut_are_as_good_as_the_steps():
    """Nothing of the motion after it is used before it, nor the other way round."""
    m = bk.models.chain(2)
    sim = bk.Simulation(m, [0.7, 0.4], rtol=1e-9, atol=1e-11)
    sim.run(0.3)
    sim.cut(sim.mechanism.links[-1].name)
    tr = sim.run(0.6)
    assert len(tr.segments) == 2
    for segment in tr.segments:
        times = np.unique(np.concatenate([segment.t[:-1] + share * np.diff(segment.t) for share in (0.3, 0.6)]))
        exact = bk.rollout(segment.mechanism, segment.q[0], segment.v[0], times=times - segment.t[0], rtol=1e-13,
                           atol=1e-14)
        for t, w in zip(times, exact.v, strict=True):
            assert np.abs(segment.at(t)[1] - w).max() < 1e-6


def test_samples_pass_through_the_recorded_states_without_a_jump():
    for build in (tumbling, linkage):
        m, q, v = build()
        tr = bk.Simulation(m, q, v, rtol=1e-4, atol=1e-5, dense=True).run(1.0)
        for k in (5, len(tr.t) // 2, len(tr.t) - 1):
            for t in (np.nextafter(tr.t[k], 0.0), tr.t[k], np.nextafter(tr.t[k], tr.t[-1])):
                _, q, v = tr.sample(t)[0]
                assert np.abs(m.difference(tr.q[k], q)).max() < 1e-12
                assert np.abs(tr.v[k] - v).max() < 1e-11


def test_loops_are_closed_between_the_steps():
    m, q, v = linkage()
    for dense in (False, True):
        tr = bk.Simulation(m, q, v, rtol=1e-3, atol=1e-4, dense=dense).run(1.0)
        for _, q, v in tr.sample(np.linspace(0.0, 1.0, 41)):
            c = bk.constraints(m, q, v)
            assert np.abs(c.gap).max() < 1e-9
            assert np.abs(c.rates).max() < 1e-8


def test_a_file_keeps_what_was_between_the_steps(tmp_path):
    m, q, v = tumbling()
    sim = bk.Simulation(m, q, v, rtol=1e-9, atol=1e-10, dense=True)
    sim.when(lambda t, q, v: t - 0.4, lambda s: None)
    tr = sim.run(1.0)
    times = np.linspace(0.0, 1.0, 57)
    again = bk.load_trajectory(tr.save(tmp_path / "dense.npz"))
    for (_, q, v), (_, q_again, v_again) in zip(tr.sample(times), again.sample(times), strict=True):
        np.testing.assert_array_equal(q, q_again)
        np.testing.assert_array_equal(v, v_again)


def test_a_kink_between_steps_does_not_ring():
    """Without the solver's polynomials, states come from those around; a torque that switches must not disturb that."""
    @bk.actuation
    def switch(t, q, v, params, tau):
        tau[0] = 5.0 if t > 0.5 else 0.0

    tr = bk.Simulation(pendulum(), [0.3], actuation=switch, rtol=1e-8, atol=1e-10).run(1.0)
    times = np.linspace(0.4, 0.6, 101)
    first = bk.rollout(pendulum(), [0.3], times=[*times[times < 0.5], 0.5], rtol=1e-12, atol=1e-13)
    second = bk.rollout(pendulum(), first.q[-1], first.v[-1], times=times[times > 0.5] - 0.5, rtol=1e-12, atol=1e-13,
                        actuation=lambda t, q, v: [5.0])
    exact = np.concatenate([first.q, second.q]), np.concatenate([first.v, second.v])
    times = np.concatenate([first.t, second.t + 0.5])
    for q, v, (_, q_sampled, v_sampled) in zip(*exact, tr.sample(times), strict=True):
        np.testing.assert_allclose(q_sampled, q, atol=1e-7)
        np.testing.assert_allclose(v_sampled, v, atol=3e-5)


@pytest.mark.parametrize("steps", [2, 3, 4, 5])
@pytest.mark.parametrize("build", [tumbling, lambda: (pendulum(), np.array([1.2]), np.zeros(1))])
def test_a_few_steps_of_order_4_are_sampled_with_order_4(build, steps):
    m, q, v = build()
    errors = []
    for h in (0.02, 0.01):
        tr = bk.Simulation(m, q, v, solver="rk4", step=h).run(steps * h)
        times = h * (np.arange(steps)[:, None] + [0.21, 0.5, 0.83]).ravel()
        exact = bk.rollout(m, q, v, times=times, rtol=1e-13, atol=1e-14)
        errors.append(max(max(np.abs(m.difference(x, a)).max(), np.abs(w - b).max())
                          for x, w, (_, a, b) in zip(exact.q, exact.v, tr.sample(times), strict=True)))
    assert errors[1] < 1e-6
    assert errors[0] / errors[1] > 2**3.7


def test_times_in_a_gap_of_the_record_are_refused():
    sim = bk.Simulation(pendulum(), [1.0])
    sim.run(0.5)
    sim.set_state(t=1.0)
    trajectory = sim.run(1.5)
    with pytest.raises(bk.ShapeError, match="gap of the recorded motion"):
        trajectory.sample(0.75)
    for times in ("a", [[0.1, 0.2]], None):
        with pytest.raises(bk.ShapeError):
            trajectory.sample(times)
