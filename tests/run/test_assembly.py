"""How what a program hands over gets into a run's settings."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import epicortex
from epicortex.run import assembly
from epicortex.run.assembly import Extensions


def calm(parameters: Any, lr: float = 0.05) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=lr)


@pytest.mark.parametrize(("given", "taken"), [({}, {}), ({"lr": 0.02}, {"lr": 0.02})], ids=["none", "a rate"])
def test_an_optimiser_of_a_program_gets_the_arguments_that_were_asked_for(
    given: dict[str, float], taken: dict[str, float]
) -> None:
    """And not those that the preset has for its own."""
    asked = epicortex.configure(changes={"training.optimiser_arguments": given} if given else {})
    named = assembly.named(asked, "digits", Extensions(optimiser=calm))
    assert named.training.optimiser == "calm"
    assert named.training.optimiser_arguments == taken
    assert named.training.optimiser_state == "fresh"
    assert assembly.named(named, "digits", Extensions(optimiser=calm)) == named
