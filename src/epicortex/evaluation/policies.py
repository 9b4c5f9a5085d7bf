"""A family's model as a policy: observations in, outputs out, whatever the model is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from epicortex.data import Scaling
from epicortex.families.family import Shape
from epicortex.tasks import Policy


def scaled(policy: Policy, scaling: Scaling) -> Policy:
    """The policy for observations as they are, where it evolved for scaled ones."""
    plain = scaling.divisor == 1.0 and not any(scaling.mean) and all(one == 1.0 for one in scaling.std)
    return policy if plain else _Scaled(policy, scaling)


class _Scaled:
    """Scales what a policy sees."""

    def __init__(self, policy: Policy, scaling: Scaling) -> None:
        self._policy, self._scaling = policy, scaling
        self.reset = policy.reset

    def act(self, observation: Sequence[float]) -> Sequence[float]:
        """The outputs for one observation."""
        one = self._scaling
        return self._policy.act(
            [
                (x / one.divisor - mean) / std
                for x, mean, std in zip(observation, one.mean, one.std, strict=True)
            ]
        )

    def __call__(self, x: Any) -> Any:
        """The outputs for many observations, one a row."""
        one, samples = self._scaling, np.asarray(x, np.float64)
        rows = samples.reshape(len(samples), -1)
        seen = (rows / one.divisor - np.array(one.mean)) / np.array(one.std)
        return self._policy(seen.reshape(samples.shape))  # type: ignore[operator]


def policy_of(model: Any, shape: Shape) -> Policy:
    """The model itself where it acts, as unstructured networks do; else samples of one observation each.

    >>> policy_of(lambda x: 2 * x, (2,)).act([1.0, 3.0])
    [2.0, 6.0]
    """
    if hasattr(model, "act") and hasattr(model, "reset"):
        policy: Policy = model
        return policy
    return _Forgetful(model, shape)


class _Forgetful:
    """A model without a memory, such as a module of torch."""

    def __init__(self, model: Any, shape: Shape) -> None:
        self._model = model
        self._shape = shape
        self._is_module = hasattr(model, "eval") and hasattr(model, "parameters")
        if self._is_module:
            model.eval()

    def __call__(self, x: Any) -> Any:
        """The model as its family built it."""
        return self._model(x)

    def reset(self) -> None:
        """There is nothing to forget."""

    def act(self, observation: Sequence[float]) -> list[float]:
        """The outputs for one observation."""
        sample = np.asarray(observation, np.float32).reshape(1, *self._shape)
        if not self._is_module:
            return [float(value) for value in np.asarray(self._model(sample)).reshape(-1)]
        import torch

        with torch.inference_mode():
            outputs: list[float] = self._model(torch.from_numpy(sample)).reshape(-1).tolist()
        return outputs
