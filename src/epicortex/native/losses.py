"""How far off answers are, one by one: the same bits on every CPU, whoever computed the answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from epicortex.native.library import NativeError, check, instruction_set, library
from epicortex.native.program import CrossEntropy, Loss


def sample_losses(
    loss: Loss, answers: NDArray[np.float32], right: NDArray[Any], *, simd: str | None = None
) -> NDArray[np.float32]:
    """The loss of each of the answers [samples, outputs]; of several outputs the mean.

    `right` holds labels for cross-entropy, else targets [samples, outputs]. Labels are smoothed as in
    training; class weights are for training alone.

    >>> sample_losses(CrossEntropy(), np.zeros((2, 4), np.float32), np.array([0, 3])).tolist()
    [1.3862943649291992, 1.3862943649291992]
    """
    labelled = isinstance(loss, CrossEntropy)
    smoothing = loss.label_smoothing if isinstance(loss, CrossEntropy) else 0.0
    answers = np.ascontiguousarray(answers, np.float32)
    right = np.ascontiguousarray(right, np.int64 if labelled else np.float32)
    if answers.ndim != 2 or right.shape != (answers.shape[:1] if labelled else answers.shape):
        raise NativeError(f"answers of {answers.shape} do not fit what is right, {right.shape}")
    found = np.empty(len(answers), np.float32)
    check(
        library().epx_losses(
            (simd or instruction_set()).encode(),
            loss.number,
            smoothing,
            *answers.shape,
            answers.ctypes.data,
            right.ctypes.data if labelled else None,
            None if labelled else right.ctypes.data,
            found.ctypes.data,
        )
    )
    return found
