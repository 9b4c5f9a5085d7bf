"""Reading a genome from plain JSON values. Whatever is not exactly a genome is a `GenomeError`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from reprlib import repr as short
from typing import Any, TypeGuard

from epicortex.errors import GenomeError
from epicortex.families.family import Shape
from epicortex.families.residual.genome import (
    FORMAT_VERSION,
    MAX_BLOCKS,
    MAX_ID,
    MAX_NODES,
    MAX_SPATIAL,
    MAX_STAGES,
    Block,
    Genome,
    Recipe,
    Stage,
)


def genome_from_dict(data: object) -> Genome:
    """Read what `Genome.to_dict` gave; anything else raises `GenomeError`.

    >>> stage = Stage(1, (), (2, 3), ((), ()))
    >>> genome = Genome((4,), (stage,), out=(6,))
    >>> genome_from_dict(genome.to_dict()) == genome
    True
    """
    names = {"format", "input_shape", "stages", "out", "pool", "recipe"}
    found = _object("genome", data, names, may=frozenset({"trunk"}))
    version = found["format"]
    if not _is_whole(version) or version != FORMAT_VERSION:
        raise GenomeError(
            f"genome format is {short(version)}, residual networks are read in format {FORMAT_VERSION}"
        )
    stages = _list("genome: stages", found["stages"], MAX_STAGES)
    return Genome(
        _wholes("genome: input_shape", found["input_shape"], 1 + MAX_SPATIAL),
        tuple(_stage(f"stage {number}", stage) for number, stage in enumerate(stages, 1)),
        _wholes("genome: out", found["out"], MAX_NODES),
        _whole("genome: pool", found["pool"]),
        _recipe(found["recipe"]),
        found.get("trunk", "relu"),
    )


def genome_from_json(text: str) -> Genome:
    """Read a genome from text; anything else raises `GenomeError`."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GenomeError(f"this is not a genome in JSON: {error}") from None
    return genome_from_dict(data)


def _stage(where: str, data: object) -> Stage:
    found = _object(where, data, {"id", "stride", "ids", "kernels", "blocks"})
    blocks = _list(f"{where}: blocks", found["blocks"], MAX_BLOCKS)
    return Stage(
        _whole(f"{where}: id", found["id"]),
        _wholes(f"{where}: stride", found["stride"], MAX_SPATIAL),
        _wholes(f"{where}: ids", found["ids"], MAX_NODES),
        _kernels(f"{where}: kernels", found["kernels"]),
        tuple(_block(f"{where}, block {number}", block) for number, block in enumerate(blocks, 1)),
    )


def _block(where: str, data: object) -> Block:
    found = _object(where, data, {"id", "ids", "inner", "outer"})
    return Block(
        _whole(f"{where}: id", found["id"]),
        _wholes(f"{where}: ids", found["ids"], MAX_NODES),
        _kernels(f"{where}: inner", found["inner"]),
        _kernels(f"{where}: outer", found["outer"]),
    )


def _recipe(data: object) -> Recipe:
    names = {field.name for field in fields(Recipe)}
    found = _object("recipe", data, names)
    for name, value in found.items():
        if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > MAX_ID:
            raise GenomeError(f"recipe: {name} must be a number, not {short(value)}")
    return Recipe(**{name: float(value) for name, value in found.items()})


def _kernels(what: str, data: object) -> tuple[Shape, ...]:
    return tuple(_wholes(what, kernel, MAX_SPATIAL) for kernel in _list(what, data, MAX_NODES))


def _object(
    where: str, data: object, names: set[str], may: frozenset[str] = frozenset()
) -> Mapping[str, Any]:
    if not isinstance(data, dict) or data.keys() - may != names:
        raise GenomeError(f"{where} must be a JSON object with {', '.join(sorted(names))}, not {short(data)}")
    return data


def _list(what: str, data: object, most: int) -> list[Any]:
    if not isinstance(data, list) or len(data) > most:
        raise GenomeError(f"{what} must be a list of at most {most}")
    return data


def _wholes(what: str, data: object, most: int) -> tuple[int, ...]:
    return tuple(_whole(what, value) for value in _list(what, data, most))


def _whole(what: str, value: object) -> int:
    if not _is_whole(value):
        raise GenomeError(f"{what} must hold whole numbers, not {short(value)}")
    return value


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_ID
