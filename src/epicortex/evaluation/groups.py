"""A network's parameters as an optimiser takes them, and what it remembers of each, back and forth.

Which of them decay is decided here; what an optimiser does with them is left to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from epicortex.evaluation.flat import flattened, pieces
from epicortex.families.family import Memory


class ParameterGroups:
    """All parameters of a network; or the weights in one group, norms and biases in one without decay.

    >>> linear = nn.Linear(3, 2)
    >>> groups = ParameterGroups(linear, flat=False, exempt=True)
    >>> [(len(group["params"]), group.get("weight_decay")) for group in groups.parameters()]
    [(1, None), (1, 0.0)]
    """

    def __init__(self, network: nn.Module, *, flat: bool, exempt: bool) -> None:
        """`flat`: a group is one parameter; `exempt`: what has one dimension does not decay."""
        every = list(network.parameters())
        parts = [every]
        if exempt:
            parts = [[one for one in every if one.ndim > 1], [one for one in every if one.ndim <= 1]]
        self._exempt = exempt
        self._parts = parts
        self._flats = [flattened(part) if flat and part else None for part in parts]

    def parameters(self) -> list[Any]:
        """What an optimiser is created with."""
        groups = [
            part if flat is None else [flat] for part, flat in zip(self._parts, self._flats, strict=True)
        ]
        if not self._exempt:
            return list(groups[0])
        weights, others = groups
        return [{"params": weights}, {"params": others, "weight_decay": 0.0}]

    def memory(self, optimiser: torch.optim.Optimizer) -> Memory:
        """What the optimiser remembers of each parameter, number by number."""
        found: dict[Tensor, Mapping[str, Tensor]] = {}
        for part, flat in zip(self._parts, self._flats, strict=True):
            if flat is None:
                found.update({one: optimiser.state.get(one, {}) for one in part})
                continue
            state = {
                name: pieces(value, part)
                for name, value in optimiser.state.get(flat, {}).items()
                if isinstance(value, Tensor) and value.shape == flat.shape
            }
            for place, one in enumerate(part):
                found[one] = {name: values[place] for name, values in state.items()}
        return found

    def remind(self, optimiser: torch.optim.Optimizer, memory: Memory) -> None:
        """Have a new optimiser go on with what `memory` gave."""
        for part, flat in zip(self._parts, self._flats, strict=True):
            if flat is None:
                for one in part:
                    optimiser.state[one].update({name: v.clone() for name, v in memory.get(one, {}).items()})
                continue
            for place, one in enumerate(part):
                for name, value in memory.get(one, {}).items():
                    whole = optimiser.state[flat].setdefault(name, torch.zeros_like(flat))
                    pieces(whole, part)[place].copy_(value)
