"""Whole numbers and shapes as files give them, and what no sane genome exceeds."""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import repr as short
from typing import Any, Final, TypeGuard

from epicortex.errors import GenomeError
from epicortex.families.family import Shape

MAX_SPATIAL_DIMENSIONS: Final = 3
#: What no sane layer exceeds; a file that claims more is refused before anything is allocated.
MAX_NODES: Final = 1_000_000


def shape_in(what: str, value: object) -> Shape:
    """A shape from JSON."""
    few = isinstance(value, list) and len(value) <= 1 + MAX_SPATIAL_DIMENSIONS
    if not isinstance(value, list) or not few or not all(map(is_whole, value)):
        raise GenomeError(f"{what} must be a short list of whole numbers, not {short(value)}")
    return tuple(value)


def whole_in(data: Mapping[str, Any], name: str, where: str) -> int:
    """A whole number from JSON."""
    value = data.get(name)
    if not is_whole(value):
        raise GenomeError(f"{where}: {name} must be a whole number, not {short(value)}")
    return value


def is_whole(value: object) -> TypeGuard[int]:
    """Whether this is a whole number of a sane size."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31


def check_nodes(where: str, nodes: int) -> None:
    """Refuse a layer without nodes, or with more than anybody needs."""
    if not is_whole(nodes) or not 1 <= nodes <= MAX_NODES:
        raise GenomeError(f"{where}: needs 1 to {MAX_NODES} nodes, has {nodes}")
