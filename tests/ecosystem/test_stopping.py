"""A run ends by one rule, whether it is asked of a state that evolves or of what its files say."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicortex.config import Config, EvolutionConfig, changed
from epicortex.ecosystem.history import Generation
from epicortex.ecosystem.stopping import Progress, limit_reached, reason
from epicortex.evolution import Evolution, stop_reason
from tests.ecosystem.world import BeadFamily, outcome
from tests.generations import generation

SMALL = {"initial_networks": 3, "initial_species": 1, "max_networks": 6}


@given(st.lists(st.sampled_from([0.25, 0.5, 0.75]), min_size=1, max_size=12))
def test_a_live_state_and_its_history_have_come_equally_far(highest: list[float]) -> None:
    config = changed(Config(), evolution=SMALL)
    evolution = Evolution(config, BeadFamily())
    state = evolution.start()
    history: list[Generation] = []
    for fitness in highest:
        state = evolution.tell(state, [outcome(job, fitness) for job in evolution.ask(state)]).state
        assert state.tally is not None
        history.append(Generation.timed(state.tally, train_seconds=20, seconds=30))
    found = Progress.of_history(history, config)
    assert found == Progress.of_state(state, trainings=found.trainings, minutes=len(highest) / 2)
    assert found.highest == max(highest)
    assert found.last_rise == highest.index(max(highest)) + 1, "a tie is no rise"
    for plateau in (1, 2, 5):
        own = changed(config, evolution={"plateau": plateau}).evolution
        assert reason(found, own) == stop_reason(state, own, 0.0)


@pytest.mark.parametrize(
    ("progress", "changes", "limit"),
    [
        (Progress(0, None, 0), {"target": 0.1, "plateau": 1}, None),
        (Progress(5, 0.5, 5), {"target": 0.5}, "target"),
        (Progress(5, 0.499, 5), {"target": 0.5}, None),
        (Progress(9, 0.5, 9), {"generations": 9}, "generations"),
        (Progress(9, 0.5, 9), {"generations": 9, "target": 0.5}, "target"),
        (Progress(5, 0.5, 5, trainings=30), {"trainings": 30}, "trainings"),
        (Progress(5, 0.5, 5, trainings=29), {"trainings": 30}, None),
        (Progress(5, 0.5, 2), {"plateau": 3}, "plateau"),
        (Progress(5, 0.5, 3), {"plateau": 3}, None),
        (Progress(5, 0.5, 5, minutes=2.0), {"minutes": 2}, "minutes"),
        (Progress(5, 0.5, 5, minutes=1.99), {"minutes": 2}, None),
    ],
)
def test_each_limit_ends_a_run_when_it_is_reached_and_not_before(
    progress: Progress, changes: dict[str, Any], limit: str | None
) -> None:
    settings = EvolutionConfig.model_validate(changes)
    assert limit_reached(progress, settings) == limit
    assert (reason(progress, settings) is None) == (limit is None)


def test_a_history_without_any_fitness_has_none() -> None:
    history = [generation(1, highest_fitness=None), generation(2, highest_fitness=-3.0)]
    settings = changed(Config(), evolution={"generations": 50, "target": 0.5})
    assert Progress.of_history(history[:1], settings).highest is None
    assert Progress.of_history(history, settings).highest == -3.0
    assert math.isclose(Progress.of_history(history, settings).minutes, 3.5 / 60)
