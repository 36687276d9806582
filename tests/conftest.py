import faulthandler
import os
import signal

# The oracle's matrices are small: threads would only wait for each other, for seconds on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

# The same cases on every run: a failure is then a change, never luck.
settings.register_profile("bunraku", deadline=None, derandomize=True, database=None, print_blob=False,
                          suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors])
settings.register_profile("random", settings.get_profile("bunraku"), derandomize=False, print_blob=True)
settings.load_profile("bunraku")  # the other one: pytest --hypothesis-profile=random, and --hypothesis-seed=N


# -- long tests first: no worker of pytest-xdist waits for another one's last test -----------------------------------

LONG = ("test_site.py", "test_time_limit_of_tests.py", "test_wheel.py", "test_grafts.py", "test_ranks.py",
        "evaluate/test_batches.py", "test_mobile.py", "reproduce/test_workers.py", "bench/test_contact.py")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONG))


# -- a time limit for every test -------------------------------------------------------------------------------------

LIMIT = float(os.environ.get("BUNRAKU_TEST_LIMIT", "300"))  # [s] of the processor: the machine may be busy
PATIENCE = 4 * LIMIT                                        # [s] on the clock, for tests that only wait
HAS_TIMER = hasattr(signal, "setitimer")


def pytest_configure(config):
    config.bunraku_stderr = os.dup(2)  # pytest puts another file there while a test runs
    if HAS_TIMER:
        faulthandler.register(signal.SIGPROF, file=config.bunraku_stderr, chain=True)  # then it ends the process


def pytest_unconfigure(config):
    if HAS_TIMER:
        faulthandler.unregister(signal.SIGPROF)
    os.close(config.bunraku_stderr)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Print where a test hangs and end the process, without help of Python, which compiled code keeps from running.
    With workers that test then has failed, and another worker goes on with the rest."""
    faulthandler.dump_traceback_later(PATIENCE, exit=True, file=item.config.bunraku_stderr)
    if HAS_TIMER:
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        if HAS_TIMER:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
