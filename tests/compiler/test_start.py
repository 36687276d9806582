"""Start-up time: cost of a process before its first result when machine code is on disk."""

from processes import run

CLOCK = "import time{}\nstart = time.process_time()\n{}\nprint(time.process_time() - start)"


def best_of_three(*code):
    """Seconds of the processor, not of the clock on the wall: the machine may be busy."""
    return min(float(run(CLOCK.format(*code))[0]) for _ in range(3))


def test_importing_takes_little_more_than_importing_numba():
    assert best_of_three("\nimport numba", "import bunraku") < 0.2


FIRST = """
import numpy, bunraku
m = bunraku.models.human(dof=16)
bunraku.forward_dynamics(m, m.neutral(), numpy.ones(m.nv))
"""


def test_the_first_answer_takes_less_than_importing_numba_twice():
    """From disk nothing is compiled. The machine may be slow: both are measured here."""
    run(FIRST)  # so that it is on disk
    assert best_of_three("", FIRST) < 2.0 * best_of_three("", "import numba, numba.np.arraymath, scipy.linalg")
