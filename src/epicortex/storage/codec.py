"""An ecosystem's state, and the outcome of a job, as JSON values beside named float32 arrays.

How a phenotype is taken apart is left to its family, and which files the parts go to to `checkpoint`,
`journal` and `champion`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

from epicortex.ecosystem.jobs import Outcome
from epicortex.ecosystem.state import EcosystemState, Individual
from epicortex.errors import GenomeError, StorageError
from epicortex.families.family import Array, Arrays, Family
from epicortex.storage import strict

#: What goes into arrays, or is described by the family.
_PHENOTYPE: Final = frozenset({"phenotype", "losses"})
#: The array of per-sample losses; no family has one of this name.
_LOSSES: Final = "@losses"
_NETWORKS: Final = frozenset({"networks", "champion"})
#: What only some runs have.
_SELDOM: Final[dict[str, object]] = {"plan": None, "credit": {}, "sums": {}, "champion_sums": {}}


def restored(family: Family[Any], description: Any, arrays: Mapping[str, Array], where: str) -> Any:
    """A phenotype from a file; whatever does not fit together is a `StorageError`."""
    try:
        return family.decode(description, arrays)
    except GenomeError as error:
        raise StorageError(f"{where}: {error}") from None


def digest(description: Any) -> str:
    """The hash that stands for a genome in networks.jsonl: 32 hexadecimal digits."""
    return hashlib.sha256(strict.dump(description)).hexdigest()[:32]


def encode(state: EcosystemState, family: Family[Any]) -> tuple[dict[str, Any], Arrays]:
    """A state as JSON values and arrays; the arrays of network 7 are named `7/…`."""
    arrays: Arrays = {}

    def taken_apart(individual: Individual, name: str) -> dict[str, Any]:
        description, parts = family.encode(individual.phenotype)
        arrays.update({f"{name}/{part}": array for part, array in parts.items()})
        if individual.losses is not None:
            arrays[f"{name}/{_LOSSES}"] = individual.losses
        return {**_plain(individual), "phenotype": description}

    whole = strict.plain(state, leave_out=_NETWORKS | _unused(state, _SELDOM))
    whole["species"] = [
        strict.plain(species, leave_out=_unused(species, {"cost": None})) for species in state.species
    ]
    whole["networks"] = [taken_apart(individual, str(individual.id)) for individual in state.networks]
    whole["champion"] = taken_apart(state.champion, "champion") if state.champion else None
    return whole, arrays


def decode(whole: Any, arrays: Mapping[str, Array], where: str, family: Family[Any]) -> EcosystemState:
    """Back from `encode`; whatever breaks a rule of the state is a `StorageError` that names it."""
    if not isinstance(whole, dict) or not isinstance(whole.get("networks"), list):
        raise StorageError(f"{where} is not the state of an ecosystem")
    groups = _grouped(arrays)

    def put_together(value: Any, name: str | None = None) -> Individual:
        if not isinstance(value, dict) or "phenotype" not in value:
            raise StorageError(f"{where}: a network lacks its phenotype")
        name = name or str(value.get("id"))[:20]
        place = f"{where}, network {_quoted(name)}"
        parts = groups.pop(name, {})
        losses = parts.pop(_LOSSES, None)
        phenotype = restored(family, value["phenotype"], parts, place)
        return strict.build(Individual, value, place, given={"phenotype": phenotype, "losses": losses})

    champion = whole.get("champion")
    state = strict.build(
        EcosystemState,
        whole,
        where,
        given={
            "networks": tuple(put_together(value) for value in whole["networks"]),
            "champion": None if champion is None else put_together(champion, "champion"),
        },
    )
    if groups:
        raise StorageError(
            f"{where}: there are weights of network {_quoted(min(groups))}, which is not there"
        )
    _check(state, where)
    return state


def encode_outcome(outcome: Outcome, family: Family[Any]) -> tuple[dict[str, Any], Arrays]:
    """An outcome as JSON values and arrays."""
    description: Any = None
    arrays: Arrays = {}
    if outcome.phenotype is not None:
        description, arrays = family.encode(outcome.phenotype)
    if outcome.losses is not None:
        arrays = {**arrays, _LOSSES: outcome.losses}
    return {**_plain(outcome), "phenotype": description}, arrays


def decode_outcome(value: Any, arrays: Mapping[str, Array], where: str, family: Family[Any]) -> Outcome:
    """Back from `encode_outcome`."""
    description = value.get("phenotype") if isinstance(value, dict) else None
    parts = dict(arrays)
    losses = parts.pop(_LOSSES, None)
    phenotype = None if description is None else restored(family, description, parts, where)
    outcome = strict.build(Outcome, value, where, given={"phenotype": phenotype, "losses": losses})
    if (outcome.failed is None) != (phenotype is not None and outcome.fitness is not None):
        raise StorageError(f"{where}: an outcome has a fitness and weights, or the reason why it failed")
    return outcome


def _plain(value: Individual | Outcome) -> Any:
    """All but arrays."""
    return strict.plain(
        value, leave_out=_PHENOTYPE | _unused(value, {"measures": {}, "pace": 1.0, "sums": {}})
    )


def _unused(value: object, usual: Mapping[str, object]) -> frozenset[str]:
    """Fields that only some runs use are left out where they say nothing, as before there were any."""
    return frozenset(name for name, given in usual.items() if getattr(value, name, None) == given)


def _quoted(name: str) -> str:
    return strict.short(name).strip('"')


def _grouped(arrays: Mapping[str, Array]) -> dict[str, Arrays]:
    groups: dict[str, Arrays] = {}
    for name, array in arrays.items():
        owner, _, part = name.partition("/")
        groups.setdefault(owner, {})[part] = array
    return groups


def _check(state: EcosystemState, where: str) -> None:
    """What `evolution` takes for granted about ids."""
    networks = [individual.id for individual in state.networks]
    species = [each.id for each in state.species]
    if not _ascending(networks, state.next_network) or not _ascending(species, state.next_species):
        raise StorageError(f"{where}: the ids of networks and species must rise and stay below the next one")
    known = set(species) or {0}
    if any(individual.species not in known for individual in state.networks):
        raise StorageError(f"{where}: a network is of a species that there is not")


def _ascending(ids: Iterable[int], limit: int) -> bool:
    chain = [-1, *ids, limit]
    return all(low < high for low, high in pairwise(chain))
