"""Ten generations of evolution give the bits they have always given.

Fitness is made up from hashes, so nothing is trained and torch is not needed. Where a digest changes, the
same seed no longer gives the same run: that is a change of behaviour, never a matter of style.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import epicortex
from epicortex import EcosystemState, Evolution, Individual, Job, Outcome

GENERATIONS = 10
#: A digest for each preset, with and without speciation.
GOLDEN = {
    ("paper", True): "0ca7e9e0cb4ce8a3380838d86477330491cc81dbc8c7ca68fa112d7e922bb55e",
    ("paper", False): "4f5f9b30040387b63a45090f89d32d4b04cb5ea456fff64468f8c9240a8dae3a",
    ("published", True): "7db080855953e84a07e11d0a0b81d8d9d3c5bcee7f8a0ceb54c6a04d1c503d32",
    ("published", False): "9d0f03b77cd757e721a8804c68d1d9fab3e8f31ea0381a83f0caf1418b0b7c1a",
    ("layered", True): "68040da6f51b06aed3c853244c59f42ad00f96ccd28ff672117e10d9123b2f21",
    ("layered", False): "ec993c369ec8ea6d10bc33c55379b1c2dda0a9e6bc583311591ea4ff314e4511",
}
_INDIVIDUAL = (
    *("id", "parents", "birth", "species", "age", "fitness", "fitness_before"),
    *("relative_fitness", "relative_complexity", "failed"),
)
_EVENT = ("type", "direction", "layer", "outcome")
_SPECIES = ("id", "key", "founded")
_STATE = ("generation", "next_network", "next_species", "champion_generation", "last_rise")
_TALLY = (
    *("generation", "networks", "species", "highest_fitness", "average_fitness", "offspring_fitness"),
    *("offspring", "mutations", "mutations_refused", "mutations_failed", "species_founded"),
    *("species_extinct", "culled", "failed", "champion", "champion_parameters", "mean_parameters"),
)


def _evolution(preset: str, speciation: bool) -> Evolution:
    """The rules of a preset for a small ecosystem: the one place that knows how they are put together."""
    config = epicortex.configure(
        preset,
        {
            "evolution.seed": 5,
            "evolution.speciation": speciation,
            "evolution.initial_networks": 20,
            "evolution.max_networks": 28,
            "evolution.initial_species": 5,
            "evolution.max_species": 5,
        },
    )
    problem = epicortex.Problem((1, 16, 16), 10)
    return Evolution(config, epicortex.LayeredFamily.from_config(config, problem))


def _arrays(phenotype: Any) -> Iterator[bytes]:
    """Every weight of a network, layer by layer."""
    for layer in phenotype.weights:
        for array in layer.values():
            yield f"{array.dtype} {array.shape}".encode() + array.tobytes()


def _chance(*words: object) -> float:
    """A number in [0, 1) that follows from the words alone, on every machine the same."""
    digest = hashlib.sha256(" ".join(map(str, words)).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def _outcome(job: Job) -> Outcome:
    """One network in forty fails; the others owe their fitness to luck and to their structure alike."""
    luck = _chance("luck", job.network, job.generation)
    if luck < 1 / 40:
        return Outcome(job.network, job.generation, failed="bad luck")
    before = _chance("before", job.network, job.generation) / 2 if job.newborn else None
    fitness = (luck + _chance(job.phenotype.genome.to_json())) / 2
    return Outcome(job.network, job.generation, job.phenotype, fitness, before)


def _plain(value: Any, names: Iterable[str]) -> list[Any]:
    found = (getattr(value, name) for name in names)
    return [one.hex() if isinstance(one, float) else one for one in found]


def _average(value: Any) -> list[Any] | None:
    return _plain(value, ("mean", "variance")) if value else None


def _network(network: Individual, births: int = -1) -> list[Any]:
    weights = hashlib.sha256(b"".join(_arrays(network.phenotype))).hexdigest()
    # What was changed in a clone was not noted when the digests were taken.
    noted = () if network.birth == births else network.events
    events = [_plain(event, _EVENT) for event in noted]
    genome = network.phenotype.genome.to_json()
    return [*_plain(network, _INDIVIDUAL), _average(network.average), events, genome, weights]


def _whole(state: EcosystemState, births: int = -1) -> bytes:
    """All that a state holds, as text; without the events of those that were born in a generation."""
    whole = [
        _plain(state, _STATE),
        _average(state.average),
        [[*_plain(species, _SPECIES), _average(species.average)] for species in state.species],
        [_network(network, births) for network in state.networks],
        _network(state.champion, births) if state.champion else None,
        _plain(state.tally, _TALLY) if state.tally else None,
    ]
    return json.dumps(whole).encode()


def digest(preset: str, speciation: bool) -> str:
    """A digest over every state of ten generations, before and after evolution."""
    evolution = _evolution(preset, speciation)
    state = evolution.start()
    sum_ = hashlib.sha256(_whole(state))
    for _ in range(GENERATIONS):
        step = evolution.tell(state, [_outcome(job) for job in evolution.ask(state)])
        state = step.state
        sum_.update(_whole(step.evaluated, state.generation - 1))
        sum_.update(_whole(state, state.generation))
    return sum_.hexdigest()


@pytest.mark.parametrize("speciation", [True, False], ids=["species", "no species"])
@pytest.mark.parametrize("preset", ["paper", "published", "layered"])
def test_ten_generations_give_the_same_bits_as_ever(preset: str, speciation: bool) -> None:
    assert digest(preset, speciation) == GOLDEN[preset, speciation]


@pytest.mark.parametrize("preset", ["paper", "layered"])
def test_a_clone_that_differs_from_its_parent_says_in_what(preset: str) -> None:
    evolution = _evolution(preset, True)
    state, clones = evolution.start(), 0
    for _ in range(GENERATIONS):
        before = {network.id: network for network in state.networks}
        state = evolution.tell(state, [_outcome(job) for job in evolution.ask(state)]).state
        for network in state.networks:
            if network.birth != state.generation or len(network.parents) != 1:
                continue
            clones += 1
            old, new = before[network.parents[0]].phenotype.genome, network.phenotype.genome
            changed = [place for place in range(len(new.layers)) if old.layers[place] != new.layers[place]]
            says = [(event.type, event.layer, event.outcome) for event in network.events]
            assert says == [("kernel", changed[0] + 1, "applied")] if changed else says == []
            if changed:
                grew = new.layers[changed[0]].connections((1, 9, 9)) > old.layers[changed[0]].connections(
                    (1, 9, 9)
                )
                assert network.events[0].direction == ("grow" if grew else "shrink")
    assert clones > 3


def test_evolution_needs_no_torch() -> None:
    code = (
        "import sys; from tests.test_golden import digest; print(digest('paper', True));"
        "sys.exit('torch' in sys.modules)"
    )
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr or "torch was imported"
    assert done.stdout.strip() == GOLDEN["paper", True]
