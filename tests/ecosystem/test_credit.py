"""Types of mutations earn by the fitness of those who bear them, and are drawn by what they earned."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.special import expit
from scipy.stats import zscore

from epicortex.config import resolving as settings
from epicortex.ecosystem.credit import CreditSelection, followed, rewards
from epicortex.ecosystem.state import Event
from epicortex.errors import ConfigError
from epicortex.run.lifecycle import evolve, resume
from epicortex.run.record import read_run
from tests.ecosystem import world
from tests.ecosystem.world import BeadFamily, network, state

SIZES = {
    "evolution.initial_networks": 6,
    "evolution.max_networks": 9,
    "evolution.initial_species": 2,
    "evolution.max_species": 4,
    "evolution.selection": "credit",
    "training.engine": "serial",
}


def test_a_type_earns_the_mean_standing_of_those_it_changed() -> None:
    grown, kernel = Event("node", "grow", 1, "applied"), Event("kernel", "shrink", 1, "applied")
    refused = Event("layer", "grow", 1, "refused")
    fitness = {1: 0.9, 2: 0.5, 3: 0.4, 4: 0.2}
    events = {1: (grown, kernel), 2: (grown,), 3: (refused,), 4: ()}
    networks = [network(id, fitness=own, events=events[id]) for id, own in fitness.items()]
    failed = replace(network(5), fitness=None, failed="NaN", events=(kernel,))
    standing = dict(zip(fitness, expit(zscore(list(fitness.values()))), strict=True))
    assert rewards(state([*networks, failed])) == pytest.approx(
        {"node grow": (standing[1] + standing[2]) / 2, "kernel shrink": standing[1] / 2}
    )


def test_credit_follows_what_is_earned_and_waits_where_nothing_is() -> None:
    credit: dict[str, float] = {}
    for earned in (0.9, 0.9, 0.1):
        credit = followed(credit, {"node grow": earned}, rate=0.5)
    assert credit == {"node grow": pytest.approx(((0.5 + 0.9) / 2 + 0.9) / 4 + 0.05)}
    assert followed(credit, {}, rate=0.5) == credit


def test_calibration_is_the_papers_and_keeps_the_credit_in_the_state() -> None:
    own = world.settings(selection="credit")
    networks = [
        network(id, fitness=id / 10, events=(Event("node", "grow", 1, "applied"),)) for id in range(1, 4)
    ]
    after = CreditSelection(own).calibrate(state(networks), family=BeadFamily())
    assert after.credit == {"node grow": pytest.approx(0.5)}
    again = CreditSelection(own).calibrate(replace(after, networks=after.networks[2:]), family=BeadFamily())
    assert again.credit["node grow"] == pytest.approx(0.5)


def test_a_family_that_knows_no_credit_is_refused_in_one_line() -> None:
    own = world.settings(selection="credit")
    before = state([network(1), network(2)])
    register = world.register(before, generation=8, settings=own)
    with pytest.raises(ConfigError, match=r"beads.*cannot be drawn by credit"):
        CreditSelection(own).select(before, generation=8, family=BeadFamily(), register=register)


def test_a_run_with_credit_resumes_to_the_same_credit_and_history(tmp_path: Path) -> None:
    config = settings.resolve("paper", {**SIZES, "evolution.generations": 4})
    whole = evolve("digits", config, out=tmp_path / "whole")
    short = settings.resolve("paper", {**SIZES, "evolution.generations": 2})
    evolve("digits", short, out=tmp_path / "broken")
    resumed = resume(tmp_path / "broken", {"evolution.generations": 4})
    assert whole.state.credit
    assert all(0 <= value <= 1 and math.isfinite(value) for value in whole.state.credit.values())
    assert resumed.state.credit == whole.state.credit
    one, other = (read_run(tmp_path / name).history for name in ("whole", "broken"))
    assert [line.mean_parameters for line in one] == [line.mean_parameters for line in other]
