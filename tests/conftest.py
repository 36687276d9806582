import os

# The oracle's matrices are small: threads would only wait for each other, for seconds on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import HealthCheck, settings

# The same cases on every run: a failure is then a change, never luck.
settings.register_profile("bunraku", deadline=None, derandomize=True, database=None, print_blob=False,
                          suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors])
settings.load_profile("bunraku")
