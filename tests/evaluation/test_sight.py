"""Running normalisation: what networks saw scales what they see next, and stays with the champion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import epicortex
from epicortex.config.resolving import resolve
from epicortex.ecosystem.jobs import Job
from epicortex.ecosystem.outcomes import summed
from epicortex.errors import ConfigError
from epicortex.evaluation.episodes import Episodes
from epicortex.evaluation.sight import NAME, Sight, Watched, scaling_of, seen, sums_of
from epicortex.families.unstructured import UnstructuredFamily
from epicortex.run import assembly
from epicortex.storage import checkpoint
from epicortex.tasks.own import OwnTask
from tests.tasks.reach import Warm

values = st.floats(-1e3, 1e3, allow_nan=False)
rows = st.lists(st.tuples(values, values), min_size=2, max_size=20)
SMALL: dict[str, Any] = {
    "evolution.initial_networks": 12,
    "evolution.max_networks": 12,
    "episodes.normalise": "running",
    "evolution.target": None,
}


class Echo:
    """Answers with what it sees."""

    def reset(self) -> None:
        pass

    def act(self, observation: Any) -> list[float]:
        return list(observation)

    def __call__(self, x: Any) -> Any:
        return x


@given(rows, rows)
def test_sums_give_the_mean_and_deviation_of_all_that_was_seen(
    one: list[tuple[float, float]], two: list[tuple[float, float]]
) -> None:
    sums = summed([{NAME: sums_of(np.array(one))}, {NAME: sums_of(np.array(two))}])
    scaling, together = scaling_of(sums[NAME]), np.array([*one, *two])
    np.testing.assert_allclose(scaling.mean, together.mean(0), atol=1e-9)
    np.testing.assert_allclose(scaling.std, np.maximum(together.std(0), 1e-3), rtol=1e-3, atol=1e-3)


def test_a_watched_policy_sees_scaled_and_remembers_unscaled() -> None:
    sight = Sight(start=sums_of(np.array([[8.0], [12.0]])))
    policy = sight.watched(Echo(), {})
    assert isinstance(policy, Watched)
    assert policy.act([14.0]) == [2.0]
    assert policy(np.array([[10.0], [6.0]])).tolist() == [[0.0], [-2.0]]
    assert seen(policy) == {NAME: (3.0, 30.0, 14.0**2 + 10.0**2 + 6.0**2)}
    later = sight.after(seen(policy))
    assert later.mean == (10.0,)
    assert later.std == pytest.approx((np.std([8, 12, 14, 10, 6]),))
    assert seen(Sight().watched(Echo(), {})) == {}


def test_networks_of_a_generation_see_with_the_sums_of_those_before() -> None:
    config, task = resolve("task", SMALL), OwnTask("warm", Warm())
    family = UnstructuredFamily(task.problem)
    recipe = Episodes.from_config(
        config, family, {"task": task, "sight": assembly.of_task(task, config).sight}
    )
    network = family.minimal(np.random.default_rng(1))
    first = recipe.open(None).run(Job(1, 1, 1, network))
    again = recipe.open(None).run(Job(1, 1, 1, network, sums=first.sums))
    assert first.sums[NAME][0] == Warm.hours
    assert first.fitness != again.fitness
    assert first.sums == again.sums  # what is seen does not depend on how


def test_a_run_ends_with_the_same_bytes_and_its_champion_has_the_scaling_it_was_chosen_with(
    tmp_path: Path,
) -> None:
    def run(name: str, generations: int, engine: str) -> epicortex.Result:
        changes = {
            **SMALL,
            "evolution.generations": generations,
            "training.engine": engine,
            "training.workers": 2,
        }
        return epicortex.evolve(
            "warm", epicortex.configure("task", changes), out=tmp_path / name, parts={"task": {"warm": Warm}}
        )

    whole = run("whole", 6, "serial")
    run("parts", 3, "processes")
    epicortex.resume(tmp_path / "parts", {"evolution.generations": 6}, parts={"task": {"warm": Warm}})
    for file in ("networks.jsonl", "champion/model.safetensors", "champion/genome.json"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "parts" / file).read_bytes()
    champion = epicortex.load_champion(tmp_path / "whole")
    assert 900 < champion.scaling.mean[0] < 1100
    assert 50 < champion.scaling.std[0] < 500
    state = checkpoint.take(whole.state, champion.family)
    assert b'"champion_sums"' in state.text
    assert whole.state.sums[NAME][0] == 6 * 12 * Warm.hours


@pytest.mark.parametrize(
    ("task", "normalise", "why"),
    [("pole", "running", "is scaled already"), (Warm(), 5, "takes running")],
)
def test_what_cannot_be_scaled_so_is_refused(task: Any, normalise: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        assembly.subject(task, resolve("task", {"episodes.normalise": normalise}))
