"""A solver in plain Python (NUMBA_DISABLE_JIT=1): by one worker, and by two threads with half of the state each.

The equation is a pair of oscillators that do not know each other, so that workers have nothing to tell but their sums.
"""

import threading

import numpy as np

from bunraku.integrate import implicit, nordsieck, runge_kutta
from bunraku.integrate import solver_memory as m
from bunraku.integrate.advance import advance
from bunraku.integrate.history import Family
from bunraku.integrate.methods import memory_for, method_of
from bunraku.integrate.sums import add_up, alone

FREQUENCY, DAMPING = np.array([1.0, 7.0]), np.array([0.1, 30.0])
START = np.array([1.0, 0.0, 0.3, 2.0])   # position and velocity of each
STOPS = 0.6, 0.601, 2.0
WRONG = 37                               # every so many evaluations the second oscillator fails

scalar_control = nordsieck.control


def control(method, memory, *rest):
    """As it is, of scalars only."""
    return scalar_control(method, memory._replace(rows=None, tolerance=None, matrix=None, sums=None), *rest)


nordsieck.control = control


class Oscillators:
    """Those that a worker has, and the other workers."""

    def __init__(self, which, fails, team=None):
        self.which, self.fails, self.team, self.evaluations, self.agreements = which, fails, team, 0, 0

    def rates(self, t, y, dy):
        """The right-hand side; its status."""
        self.evaluations += 1
        for k, j in enumerate(self.which):
            x, v = y[2 * k:2 * k + 2]
            dy[2 * k:2 * k + 2] = v, np.sin(t) - DAMPING[j] * v - FREQUENCY[j]**2 * (x + x**3)
        failed = self.fails and 1 in self.which and self.evaluations % WRONG == 0
        if failed:
            dy[-2:] = np.nan
        return m.STATE_FAILED if failed else 0

    def improve(self, t, gamma, y, slope):
        """Newton's iteration that knows of half the damping only."""
        dy = np.empty_like(slope)
        status = self.rates(t, y, dy)
        known = np.array([[0.0, 0.5 * DAMPING[j]] for j in self.which]).ravel()
        slope += (dy - slope) / (1.0 + gamma * known)
        return status

    def agree(self, memory, status):
        self.agreements += 1
        return alone(self, memory, status) if self.team is None else self.team.agree(self.which[0], memory, status)


class Team:
    """Two workers that wait for each other."""

    def __init__(self):
        self.sums, self.status, self.barrier = [None, None], [0, 0], threading.Barrier(2, timeout=20.0)

    def agree(self, worker, memory, status):
        self.sums[worker], self.status[worker] = memory.sums.copy(), status
        self.barrier.wait()
        add_up(np.vstack(self.sums), memory.totals)
        agreed = max(self.status)
        self.barrier.wait()
        return agreed


def run(solver, which, fails=False, team=None, **changes):
    """(memory, ends of steps and their orders, problem, how each stretch ended), as the worker has them that has the
    oscillators `which`."""
    columns = np.ravel([[2 * j, 2 * j + 1] for j in which])
    memory = memory_for(solver, START[columns], 1e-6, 1e-8)
    spans = np.array([[2 * k, 2 * k + 2] for k in range(len(which))])
    memory = memory._replace(spans=spans, sums=np.full((len(spans), m.PLACES), np.nan))
    memory.clock[m.SIZE] = len(START)
    if solver == "rk4":
        memory.clock[[m.STEP, m.MIN_STEP, m.MAX_STEP]] = 0.01
    problem, method, notes = Oscillators(which, fails, team), method_of(solver), []
    if isinstance(method, Family):
        parts = nordsieck
        if solver == "implicit":
            def correct(rhs, agree, context, method, memory, t, h):
                return implicit.solve(Oscillators.improve, agree, context, method, memory, t, h)
        else:
            correct = nordsieck.correct

        def attempt(rhs, agree, context, method, memory):
            return nordsieck.step(correct, rhs, agree, context, method, memory)
    else:
        parts, attempt, method = runge_kutta, runge_kutta.attempt, method._replace(**changes)

    def note(polynomial, context, method, memory, notes):
        notes.append((float(memory.clock[m.TIME]), int(memory.tally[m.ORDER])))
        return 0

    ends = []
    for memory.clock[m.UNTIL] in STOPS:
        ends.append(int(advance(parts.prepare, attempt, parts.complete, parts.polynomial, parts.go_on,
                                Oscillators.rates, Oscillators.agree, lambda *_: 0.0, note, problem, method, memory,
                                notes, 1)))
    return memory, notes, problem, ends


def shared(solver, fails=False, **changes):
    """What `run` returns for each of two workers."""
    team, results = Team(), [None, None]

    def work(j):
        results[j] = run(solver, [j], fails, team, **changes)

    threads = [threading.Thread(target=work, args=(j,)) for j in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def compare(solver, fails=False, **changes):
    """Assert that two workers do as one does, to the last bit; what one has counted: (steps, rejected, evaluations,
    agreements)."""
    whole, notes, problem, ends = run(solver, [0, 1], fails, **changes)
    halves = shared(solver, fails, **changes)
    assert ends == [m.REACHED] * len(STOPS), ends
    for memory, theirs, others, their_ends in halves:
        assert (theirs, their_ends) == (notes, ends)
        assert (others.evaluations, others.agreements) == (problem.evaluations, problem.agreements)
        np.testing.assert_array_equal(memory.clock, whole.clock)
        np.testing.assert_array_equal(memory.tally, whole.tally)
    np.testing.assert_array_equal(np.hstack([half[0].rows[0] for half in halves]), whole.rows[0])
    return (*(int(x) for x in whole.tally[[m.STEPS, m.REJECTED]]), problem.evaluations, problem.agreements)
