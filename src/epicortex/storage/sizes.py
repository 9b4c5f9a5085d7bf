"""Sizes that the header of a file claims, looked at before anything is made of them.

Shared by our two readers of the safetensors layout, which say why they are not the library's.
"""

from __future__ import annotations

import math
from typing import Any, TypeGuard


def counts(value: Any, most: int) -> TypeGuard[list[int]]:
    """Whether a value is a short list of whole numbers that a file can have.

    >>> counts([3, 0, 28], 8), counts([3, -1], 8), counts([True], 8), counts([1, 2, 3], 2)
    (True, False, False, False)
    """
    return (
        isinstance(value, list)
        and len(value) <= most
        and all(type(number) is int and 0 <= number < 2**62 for number in value)
    )


def is_shape(value: Any) -> TypeGuard[list[int]]:
    """Whether a value is a shape that numpy can make: not one with sides beyond counting, even if empty.

    >>> is_shape([10, 1, 3, 3]), is_shape([0, 2**40, 2**40])
    (True, False)
    """
    return counts(value, 8) and math.prod(max(1, side) for side in value) < 2**58
