"""Chains of at least fifty mutations and crossovers always end in a network that keeps every rule."""

from __future__ import annotations

from hypothesis import given, settings

from tests.families.layered.chains import CASES, STEPS, Tally, run_chain
from tests.strategies import seeds


@settings(max_examples=20)
@given(seeds)
def test_a_random_chain_keeps_every_rule(seed: int) -> None:
    tally = Tally()
    run_chain(seed, tally)
    assert tally.steps == STEPS >= 50


def test_chains_that_meet_each_other_come_upon_every_case() -> None:
    tally = Tally()
    for seed in range(24):
        run_chain(seed, tally)
    missing = {case for case in CASES if tally.counts[case] == 0}
    assert missing <= {"no kernel has room to grow"}  # the rarest
