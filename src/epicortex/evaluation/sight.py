"""What networks see of a task's observations: as they are, or scaled by their means and deviations.

The scaling may be fixed before the run begins, or follow all that networks have seen so far. Then every
evaluation adds up its observations, and all of a generation see with the sums of those before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from epicortex.data import Scaling
from epicortex.ecosystem.jobs import Sums
from epicortex.evaluation.policies import scaled
from epicortex.tasks import Policy

#: The name of the sums: how many observations there were, the sum of each number, and that of its square.
NAME: Final = "observations"
#: An observation that hardly ever changes is not blown up.
_LEAST_DEVIATION: Final = 1e-3
PLAIN: Final = Scaling(1.0, (0.0,), (1.0,))


@dataclass(frozen=True, slots=True)
class Sight:
    """How observations are scaled; `start` are the sums that a running scaling begins with."""

    scaling: Scaling = PLAIN
    start: tuple[float, ...] | None = None

    def after(self, sums: Sums) -> Scaling:
        """The scaling where all evaluations so far have added up to `sums`."""
        if self.start is None:
            return self.scaling
        return scaling_of(np.add(self.start, sums.get(NAME, np.zeros(len(self.start)))))

    def policy(self, policy: Policy, sums: Sums) -> Policy:
        """A network that sees with the scaling after `sums`."""
        return scaled(policy, self.after(sums))

    def watched(self, policy: Policy, sums: Sums) -> Watched | Policy:
        """The same, and where the scaling is a running one, what it sees is kept for `seen`."""
        inner = self.policy(policy, sums)
        return inner if self.start is None else Watched(inner)


class Watched:
    """A policy with a memory of all that it saw."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._seen: list[Sequence[float]] = []
        self.reset = policy.reset

    def act(self, observation: Sequence[float]) -> Sequence[float]:
        """The outputs for one observation."""
        self._seen.append(observation)
        return self._policy.act(observation)

    def __call__(self, x: Any) -> Any:
        """The outputs for many."""
        samples = np.asarray(x, np.float64)
        self._seen.extend(samples.reshape(len(samples), -1).tolist())
        return self._policy(x)  # type: ignore[operator]

    @property
    def sums(self) -> Mapping[str, tuple[float, ...]]:
        """What an outcome adds to the sums of all."""
        return {NAME: sums_of(np.array(self._seen, np.float64))} if self._seen else {}


def seen(policy: Policy) -> Sums:
    """What a policy saw, if it was watched."""
    return policy.sums if isinstance(policy, Watched) else {}


def sums_of(observations: NDArray[np.float64]) -> tuple[float, ...]:
    """The sums of observations [number, size].

    >>> sums_of(np.array([[1.0, 2.0], [3.0, 2.0]]))
    (2.0, 4.0, 4.0, 10.0, 8.0)
    """
    return (
        float(len(observations)),
        *observations.sum(0).tolist(),
        *np.square(observations).sum(0).tolist(),
    )


def scaling_of(sums: Sequence[float] | NDArray[np.float64]) -> Scaling:
    """The mean and deviation that sums stand for.

    >>> scaling_of((2.0, 4.0, 4.0, 10.0, 8.0))
    Scaling(divisor=1.0, mean=(2.0, 2.0), std=(1.0, 0.001))
    """
    count, *rest = (float(value) for value in sums)
    totals, squares = np.array(rest[: len(rest) // 2]), np.array(rest[len(rest) // 2 :])
    mean = totals / count
    deviation = np.sqrt(np.maximum(squares / count - mean**2, _LEAST_DEVIATION**2))
    return Scaling(1.0, tuple(mean.tolist()), tuple(deviation.tolist()))
