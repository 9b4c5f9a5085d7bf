"""What all tests share: one torch thread, signals that arrive, and hypothesis without a clock."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile

from hypothesis import HealthCheck, settings

# Before torch is imported anywhere: small networks gain nothing from threads, and tests run in parallel.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The key that runs are sealed with is the tests' own.
os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="epicortex-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_DATA_HOME"], ignore_errors=True)

# Where the tests run in the background, a shell has some signals ignored, and commands keep them so.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

settings.register_profile(
    "epicortex",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "epicortex"))
