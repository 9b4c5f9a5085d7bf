"""What all tests share: one torch thread, and hypothesis without a clock."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Before torch is imported anywhere: small networks gain nothing from threads, and tests run in parallel.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile(
    "epicortex",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "epicortex"))
