"""Moving averages of fitness, and where a fitness stands in its own.

A rising fitness stands above its average, a stagnating one at it: that is what makes networks mutate, grow or
shrink. Who keeps an average (each network, each species) is left to the state.
"""

from __future__ import annotations

import math

from epicortex.ecosystem.state import MovingAverage


def follow(
    average: MovingAverage | None, value: float, *, rate: float, start: float | None = None
) -> MovingAverage:
    """The average after one more value; it starts at the first, with no variance, or where one says.

    >>> follow(MovingAverage(0.5), 0.7, rate=0.5)
    MovingAverage(mean=0.6, variance=0.009999999999999995)
    >>> follow(None, 0.7, rate=0.5), follow(None, 0.5, rate=0.5, start=0.0)
    (MovingAverage(mean=0.7, variance=0.0), MovingAverage(mean=0.25, variance=0.0625))
    """
    if average is None and start is None:
        return MovingAverage(value)
    average = average or MovingAverage(start or 0.0)
    distance = value - average.mean
    return MovingAverage(
        mean=average.mean + rate * distance,
        variance=(1 - rate) * (average.variance + rate * distance * distance),
    )


def standing(average: MovingAverage | None, value: float) -> float:
    """How many deviations the latest value stands above its average; 0 while there is no variance.

    >>> round(standing(follow(MovingAverage(0.5), 0.7, rate=0.5), 0.7), 6)
    1.0
    """
    if average is None or average.variance == 0:
        return 0.0
    return (value - average.mean) / math.sqrt(average.variance)
