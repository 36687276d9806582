"""`bk.solve_ivp` as people use it: SciPy's fields, dense output, events, compiled functions, and what it refuses."""

import inspect
import math
import signal

import numba
import numpy as np
import pytest
import scipy.integrate

import bunraku as bk
from bunraku.integrate.methods import METHODS

MULTISTEP = ("gear", "bdf")


def oscillator(t, y):
    return [y[1], -y[0]]


def falling(t, y):
    return [y[1], -9.81]


def ground(t, y):
    return y[0]


def top(t, y):
    return y[1]


# -- what SciPy's users expect -------------------------------------------------------------------------------------


def test_the_signature_and_the_fields_are_those_of_scipy():
    theirs, mine = inspect.signature(scipy.integrate.solve_ivp), inspect.signature(bk.solve_ivp)
    shared = [name for name in mine.parameters if name in theirs.parameters]
    assert shared == [name for name in theirs.parameters if name in mine.parameters]  # in the same order
    reference = scipy.integrate.solve_ivp(oscillator, (0, 5), [1.0, 0.0])
    solution = bk.solve_ivp(oscillator, (0, 5), [1.0, 0.0])
    for name in reference:
        assert hasattr(solution, name), name
    assert solution.y.shape == (2, len(solution.t))
    assert solution.success
    assert solution.status == 0
    assert (solution.sol, solution.t_events, solution.y_events) == (None, None, None)
    assert solution.nfev > solution.steps > 0


@pytest.mark.parametrize("method", METHODS)
def test_all_methods_solve_forward_and_backward(method):
    tight = {"method": method, "rtol": 1e-6, "atol": 1e-8}
    there = bk.solve_ivp(oscillator, (0.0, 3.0), [1.0, 0.0], **tight)
    back = bk.solve_ivp(oscillator, (3.0, 0.0), there.y[:, -1], **tight)
    assert there.t[-1] == 3.0
    assert back.t[-1] == 0.0
    assert np.all(np.diff(back.t) < 0)
    np.testing.assert_allclose(there.y[:, -1], [math.cos(3.0), -math.sin(3.0)], atol=2e-4)
    np.testing.assert_allclose(back.y[:, -1], [1.0, 0.0], atol=4e-4)


@pytest.mark.parametrize("method", METHODS)
def test_wanted_times_and_dense_output_are_as_exact_as_the_steps(method):
    times = np.linspace(0.0, 6.0, 61)
    options = {"method": method, "rtol": 1e-7, "atol": 1e-9}
    every = bk.solve_ivp(oscillator, (0, 6), [1.0, 0.0], dense_output=True, **options)
    wanted = bk.solve_ivp(oscillator, (0, 6), [1.0, 0.0], t_eval=times, **options)
    np.testing.assert_array_equal(wanted.t, times)
    assert wanted.nfev == every.nfev  # they cost nothing
    at_steps = np.abs(every.y[0] - np.cos(every.t)).max()
    between = np.linspace(0.0, 6.0, 997)
    assert np.abs(every.sol(between)[0] - np.cos(between)).max() < 3 * at_steps + 1e-7
    np.testing.assert_allclose(every.sol(times), wanted.y, atol=1e-12)
    np.testing.assert_allclose(every.sol(every.t), every.y, atol=1e-12)
    assert every.sol(1.0).shape == (2,)
    assert (every.sol.t_min, every.sol.t_max) == (0.0, 6.0)


def test_dense_output_is_right_backward_in_time():
    solution = bk.solve_ivp(oscillator, (2.0, -2.0), [math.cos(2.0), -math.sin(2.0)], dense_output=True, rtol=1e-8)
    times = np.linspace(-2.0, 2.0, 101)
    np.testing.assert_allclose(solution.sol(times)[0], np.cos(times), atol=1e-5)


def test_arguments_and_tolerances_by_component_are_taken():
    solution = bk.solve_ivp(lambda t, y, a, b: [a * y[0], b], (0, 1), [1.0, 0.0], args=(-2.0, 3.0), rtol=[1e-9, 1e-9],
                            atol=[1e-12, 1.0])
    np.testing.assert_allclose(solution.y[:, -1], [math.exp(-2.0), 3.0], rtol=1e-7)


def test_no_time_and_no_unknowns_are_solved():
    still = bk.solve_ivp(oscillator, (1.0, 1.0), [1.0, 2.0], dense_output=True)
    assert still.success
    np.testing.assert_array_equal(still.y, [[1.0], [2.0]])
    np.testing.assert_array_equal(still.sol(1.0), [1.0, 2.0])
    assert bk.solve_ivp(lambda t, y: [], (0, 1), []).success


def test_step_limits_are_kept():
    solution = bk.solve_ivp(oscillator, (0, 1), [1.0, 0.0], method="tsit5", max_step=0.01, first_step=0.004)
    assert solution.t[1] == pytest.approx(0.004)
    assert np.diff(solution.t).max() <= 0.01 * (1 + 1e-12)


@pytest.mark.parametrize("order", [1, 2, 5])
def test_the_order_can_be_limited(order):
    solution = bk.solve_ivp(oscillator, (0, 10), [1.0, 0.0], method="bdf", max_order=order)
    assert solution.order <= order
    assert solution.success


# -- stiff equations -----------------------------------------------------------------------------------------------


def test_bdf_needs_few_steps_where_explicit_methods_need_many():
    def stiff(t, y):
        return [-1e4 * (y[0] - math.cos(t))]

    implicit = bk.solve_ivp(stiff, (0, 10), [0.0], method="bdf")
    with pytest.warns(bk.SimulationWarning, match=r"stiff.*method='bdf'") as said:
        explicit = bk.solve_ivp(stiff, (0, 10), [0.0], method="tsit5")
    assert len(said) == 1
    for solution in (implicit, explicit):
        assert solution.y[0, -1] == pytest.approx(math.cos(10.0), abs=1e-3)
    assert implicit.nfev < explicit.nfev / 50
    assert 0 < implicit.njev <= implicit.nlu


def test_the_jacobian_of_a_large_system_is_made_rarely():
    n = 40
    A = 50.0 * (np.diag(np.full(n, -2.0)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1))
    solution = bk.solve_ivp(lambda t, y: A @ y, (0, 1), np.sin(np.arange(n)), method="bdf", rtol=1e-7, atol=1e-10)
    values, vectors = np.linalg.eigh(A)
    exact = vectors @ (np.exp(values) * (vectors.T @ np.sin(np.arange(n))))
    np.testing.assert_allclose(solution.y[:, -1], exact, atol=1e-6)
    assert solution.njev < solution.steps / 10


# -- events --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_events_are_located_in_time(method):
    def stop(t, y):
        return y[0]
    stop.terminal, stop.direction = True, -1
    solution = bk.solve_ivp(falling, (0, 100), [2.0, 3.0], method=method, events=[stop, top], dense_output=True)
    when = (3.0 + math.sqrt(9.0 + 4 * 9.81)) / 9.81
    assert solution.status == 1
    assert solution.success
    assert solution.t_events[0] == pytest.approx([when], abs=1e-6)
    assert solution.t_events[1] == pytest.approx([3.0 / 9.81], abs=1e-6)
    assert solution.t[-1] == solution.t_events[0][0]
    assert solution.y[0, -1] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_array_equal(solution.y_events[0][0], solution.y[:, -1])
    assert solution.sol.t_max == solution.t[-1]


def test_directions_and_counts_of_events_are_heeded():
    def up(t, y):
        return y[0]

    def down(t, y):
        return y[0]

    def third(t, y):
        return y[0]
    up.direction, down.direction, third.terminal = 1, -1, 3
    solution = bk.solve_ivp(oscillator, (0, 20), [1.0, 0.0], rtol=1e-9, atol=1e-11, events=[up, down, third],
                            t_eval=[0.0, 5.0, 10.0])
    np.testing.assert_allclose(solution.t_events[0], [1.5 * math.pi], atol=1e-6)
    np.testing.assert_allclose(solution.t_events[1], [0.5 * math.pi, 2.5 * math.pi], atol=1e-6)
    np.testing.assert_allclose(solution.t_events[2], (0.5 + np.arange(3)) * math.pi, atol=1e-6)
    np.testing.assert_array_equal(solution.t, [0.0, 5.0])  # the event came before 10


def test_an_event_that_a_run_starts_from_is_not_met_again():
    """A bouncing ball, restarted at every hit: heights follow the coefficient of restitution."""
    def hit(t, y):
        return y[0]
    hit.terminal, hit.direction = True, -1
    t, y, times = 0.0, np.array([1.0, 0.0]), []
    for _ in range(5):
        solution = bk.solve_ivp(falling, (t, 10.0), y, events=hit, rtol=1e-9, atol=1e-12)
        t, y = solution.t[-1], solution.y[:, -1] * [0.0, -0.8]
        times.append(t)
    fall = math.sqrt(2 / 9.81)
    np.testing.assert_allclose(times, fall + 2 * fall * np.cumsum([0, 0.8, 0.64, 0.512, 0.4096]), atol=1e-7)


def test_events_that_are_true_or_false_happen_when_they_turn():
    """g that leaves 0, or comes to it, has changed its sign there: SciPy's rule."""
    def below(t, y):
        return y[0] < 1.0

    def depth(t, y):
        return max(0.0, 1.0 - y[0])

    def above(t, y):
        return y[0] > 1.0

    def late(t, y):
        return t > 0.25
    above.direction = -1
    late.terminal = True
    solution = bk.solve_ivp(falling, (0, 1), [1.2, 0.0], events=[below, depth, above])
    when = math.sqrt(0.4 / 9.81)
    for found in solution.t_events:
        np.testing.assert_allclose(found, [when], atol=1e-9)
    assert bk.solve_ivp(falling, (0, 1), [1.2, 0.0], events=late).t[-1] == pytest.approx(0.25, abs=1e-14)


def test_an_event_that_stays_zero_for_a_while_happens_where_it_comes_and_goes():
    def flat(t, y):
        return max(0.0, abs(t - 1.0) - 0.5)
    solution = bk.solve_ivp(lambda t, y: [1.0], (0, 2), [0.0], events=flat, max_step=0.1)
    np.testing.assert_allclose(solution.t_events[0], [0.5, 1.5], atol=1e-12)


def test_hundreds_of_events_in_one_run_are_all_found():
    solution = bk.solve_ivp(oscillator, (0, 1000), [0.0, 1.0], rtol=1e-8, atol=1e-10, events=ground)
    np.testing.assert_allclose(solution.t_events[0], math.pi * np.arange(1, 319), atol=1e-3)


# -- functions -----------------------------------------------------------------------------------------------------


def spring(t, y, k):
    return np.array([y[1], -k * y[0]])


def spring_in_place(t, y, k, rates):
    rates[0], rates[1] = y[1], -k * y[0]


@pytest.mark.parametrize("function", [spring, spring_in_place])
@pytest.mark.parametrize("compiled", [False, True])
def test_compiled_functions_give_the_same_as_plain_ones(function, compiled):
    f = numba.njit(function) if compiled else function
    solution = bk.solve_ivp(f, (0, 5), [1.0, 0.0], args=(4.0,))
    reference = bk.solve_ivp(lambda t, y: [y[1], -4.0 * y[0]], (0, 5), [1.0, 0.0])
    np.testing.assert_allclose(solution.y[:, -1], reference.y[:, -1], rtol=1e-6)
    assert solution.nfev == pytest.approx(reference.nfev, abs=5)


def test_what_a_function_raises_comes_out_with_the_time():
    def fails(t, y):
        if t > 0.5:
            raise ZeroDivisionError("no such rate")
        return [1.0]

    with pytest.raises(ZeroDivisionError, match="no such rate") as caught:
        bk.solve_ivp(fails, (0, 1), [0.0])
    assert "solve_ivp was at t = 0." in caught.value.__notes__[0]


def test_what_an_event_raises_comes_out_too():
    def fails(t, y):
        return 1 / 0 if t > 0 else 1.0

    with pytest.raises(ZeroDivisionError):
        bk.solve_ivp(oscillator, (0, 1), [1.0, 0.0], events=fails)


# -- failures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["gear", "bdf", "tsit5", "rki"])
def test_a_rate_that_is_not_a_number_ends_the_run_and_keeps_what_was_computed(method):
    def root(t, y):
        return [math.sqrt(0.5 - t) if t <= 0.5 else math.nan]

    solution = bk.solve_ivp(root, (0, 1), [1.0], method=method)
    assert (solution.status, solution.success) == (-1, False)
    assert "t = 0.5" in solution.message
    assert "component 0" in solution.message
    assert solution.t[-1] == pytest.approx(0.5, abs=1e-6)
    np.testing.assert_allclose(solution.y[0], 1 + (0.5**1.5 - (0.5 - solution.t) ** 1.5) * 2 / 3, atol=1e-4)


@pytest.mark.parametrize("method", ["gear", "bdf", "tsit5"])
def test_a_singularity_stops_at_its_time(method):
    solution = bk.solve_ivp(lambda t, y: y * y, (0, 2), [1.0], method=method)
    assert not solution.success
    assert "too small at t = " in solution.message
    assert solution.t[-1] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("method", ["gear", "bdf", "tsit5"])
def test_a_step_below_its_minimum_is_said(method):
    solution = bk.solve_ivp(lambda t, y: [math.cos(50 * t)], (0, 2), [0.0], method=method, min_step=0.2, rtol=1e-9)
    assert solution.status == -1
    assert "too small at t = " in solution.message
    assert "min_step = 0.2" in solution.message


def test_ctrl_c_is_not_lost_while_python_is_called():
    def slow(t, y):
        calls.append(t)
        if len(calls) == 50:
            signal.raise_signal(signal.SIGINT)
        return [math.cos(50 * t)]

    calls: list[float] = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore Ctrl-C
    try:
        with pytest.raises(KeyboardInterrupt):
            bk.solve_ivp(slow, (0, 1e6), [0.0])
        assert len(calls) < 1000
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_start_that_is_not_finite_is_refused():
    with pytest.raises(bk.StateError, match="component 1 of it is nan"):
        bk.solve_ivp(lambda t, y: [1.0, math.nan], (0, 1), [0.0, 0.0])


@pytest.mark.parametrize(("change", "words"), [
    ({"t_span": (0, np.nan)}, "t_span"), ({"t_span": 3}, "t_span"), ({"y0": [[1.0, 0.0]]}, "y0"),
    ({"y0": [1j, 0.0]}, "y0"), ({"y0": ["a", "b"]}, "y0"), ({"y0": [np.nan, 0.0]}, r"y0\[0\]"),
    ({"y0": [1.0, 0.0, 0.0]}, r"shape \(2,\).*\(3,\)"), ({"method": "magic"}, "magic"), ({"rtol": [1e-3]}, "rtol"),
    ({"rtol": -1.0}, "rtol"), ({"atol": 0.0}, "atol"), ({"max_step": 0.0}, "max_step"), ({"min_step": -1}, "min_step"),
    ({"first_step": 100.0}, "first_step"), ({"t_eval": [0.0, 3.0]}, "t_eval"), ({"t_eval": [0.5, 0.2]}, "t_eval"),
    ({"max_order": 13}, "max_order"), ({"method": "rkf", "max_order": 3}, "max_order"), ({"fun": 3}, "fun"),
    ({"events": 3}, "events"), ({"events": [3]}, "events"), ({"rtol": "tight"}, "rtol"),
    ({"max_step": "1"}, "max_step"),
    ({"min_step": 0.2, "max_step": 0.1}, "min_step"), ({"method": "geer"}, "did you mean 'gear'")])
def test_bad_input_is_refused_in_words(change, words):
    options = {"fun": oscillator, "t_span": (0, 1), "y0": [1.0, 0.0], **change}
    with pytest.raises(bk.BunrakuError, match=words):
        bk.solve_ivp(**options)
