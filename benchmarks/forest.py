"""What people try first on a small table or on few images: a random forest."""

from __future__ import annotations

import time
from typing import Any, Final

from sklearn.ensemble import RandomForestClassifier

from epicortex.data import DataSet

TREES: Final = 500


def run(data: DataSet, *, seed: int, cores: int, began: float) -> dict[str, Any]:
    """A forest on raw pixels. It selects nothing, so that it learns from all training samples."""
    forest = RandomForestClassifier(TREES, n_jobs=cores, random_state=seed)
    forest.fit(data.x_train.reshape(len(data.x_train), -1), data.y_train)
    test = forest.score(data.x_test.reshape(len(data.x_test), -1), data.y_test)
    return {
        "test": float(test),
        "validation": None,
        "parameters": None,
        "multiplications": None,
        "seconds": round(time.monotonic() - began, 2),
        "curve": [],
    }
