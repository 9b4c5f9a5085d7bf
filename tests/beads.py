"""A small family that has nothing to do with layers: strings of beads. It is also a plug-in file.

That everything runs on them as they are (the ecosystem, engines, files, resume, show and report) shows that
another family can stand beside the layered one. The evaluator `brightness` is a plain function of the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from epicortex.errors import GenomeError
from epicortex.families.family import Array, Arrays, Mutation, Outline, Part, Problem

Rng = np.random.Generator
_COLOURS = frozenset("oab")


@dataclass(frozen=True, slots=True, eq=False)
class Beads:
    """Beads on a string: their colours make the species, their sizes are free within it."""

    colours: str
    sizes: tuple[int, ...]
    tag: str = ""


@dataclass(slots=True)
class BeadFamily:
    """Strings of beads. A model is a function that answers how bright the string is."""

    colours: str = "ab"
    problem: Problem = field(default_factory=lambda: Problem((1,), 1))
    name = "beads"

    @classmethod
    def from_config(cls, config: Any, problem: Problem, operators: Sequence[Any] = ()) -> Self:
        del config, operators
        return cls(problem=problem)

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        shape, outputs = facts.get("input_shape"), facts.get("outputs")
        if not isinstance(shape, list) or not all(type(size) is int for size in [*shape, outputs]):
            raise GenomeError("beads need an input shape and outputs")
        return cls(problem=Problem(tuple(shape), facts["outputs"]))

    def facts(self) -> dict[str, Any]:
        return {"input_shape": list(self.problem.input_shape), "outputs": self.problem.outputs}

    def minimal(self, rng: Rng) -> Beads:
        return Beads("o", (int(rng.integers(1, 4)),))

    def grow(self, phenotype: Beads, rng: Rng) -> Beads:
        if rng.random() < 0.5:
            return self._resized(phenotype, 1, rng)
        colour = self.colours[rng.integers(len(self.colours))] if self.colours else ""
        if not colour:
            return phenotype
        return Beads(phenotype.colours + colour, (*phenotype.sizes, 1))

    def redraw(self, phenotype: Beads, rng: Rng) -> Beads:
        return Beads(phenotype.colours, tuple(int(rng.integers(1, 9)) for _ in phenotype.sizes))

    def mutate(self, phenotype: Beads, *, grow: float, relative_fitness: float, rng: Rng) -> Mutation[Beads]:
        larger = rng.random() < grow
        place = len(phenotype.sizes)
        if rng.random() < 0.5:
            if larger:
                colour = self.colours[rng.integers(len(self.colours))]
                changed = Beads(phenotype.colours + colour, (*phenotype.sizes, 1))
                return Mutation(changed, "bead", "grow", place + 1)
            if place == 1:
                return Mutation(None, "bead", "shrink")
            return Mutation(Beads(phenotype.colours[:-1], phenotype.sizes[:-1]), "bead", "shrink", place)
        changed = self._resized(phenotype, 1 if larger else -1, rng)
        done = None if changed.sizes == phenotype.sizes else changed
        return Mutation(done, "size", "grow" if larger else "shrink", place)

    def cross(self, one: Beads, other: Beads, *, share: float, rng: Rng) -> Beads:
        pairs = zip(one.sizes, other.sizes, strict=False)
        sizes = [mine if rng.random() < share else yours for mine, yours in pairs]
        return Beads(one.colours, (*sizes, *one.sizes[len(sizes) :]))

    def clone(self, phenotype: Beads, rng: Rng) -> Beads:
        return self._resized(phenotype, 1, rng)

    def key(self, phenotype: Beads) -> str:
        return phenotype.colours

    def similarity(self, one: Beads, other: Beads) -> float:
        same = sum(a == b for a, b in zip(one.colours, other.colours, strict=False))
        return same / max(len(one.colours), len(other.colours))

    def parameters(self, phenotype: Beads) -> int:
        return sum(phenotype.sizes)

    def cost(self, phenotype: Beads) -> int:
        return len(phenotype.sizes)

    def build(self, phenotype: Beads) -> Any:
        pairs = list(zip(phenotype.colours, phenotype.sizes, strict=True))
        return lambda _=None: sum(size * (3 if colour == "a" else 1) for colour, size in pairs)

    def learned(self, phenotype: Beads, model: Any) -> Beads:
        del model
        return phenotype

    def encode(self, phenotype: Beads) -> tuple[Any, Arrays]:
        description = {
            **self.facts(),
            "colours": phenotype.colours,
            "sizes": list(phenotype.sizes),
            "tag": phenotype.tag,
        }
        return description, {"light": np.ones(sum(phenotype.sizes), np.float32)}

    def decode(self, description: Any, arrays: Mapping[str, Array]) -> Beads:
        beads = self._read(description)
        if set(arrays) != {"light"} or arrays["light"].shape != (sum(beads.sizes),):
            raise GenomeError("beads need their light, and nothing else")
        return beads

    def outline(self, description: Any) -> Outline:
        beads = self._read(description)
        return Outline(
            key=beads.colours,
            text="-".join(beads.colours),
            input_shape=self.problem.input_shape,
            outputs=self.problem.outputs,
            parameters=sum(beads.sizes),
            cost=len(beads.sizes),
            parts=tuple(
                Part("bead", f"{colour} bead", colour, (self.problem.outputs,), size, 1)
                for colour, size in zip(beads.colours, beads.sizes, strict=True)
            ),
            facts={"string": "beads"},
        )

    def kernels(self, phenotype: Beads) -> tuple[tuple[Array, ...], ...]:
        return tuple(() for _ in phenotype.colours)

    def _read(self, description: Any) -> Beads:
        given = description if isinstance(description, dict) else {}
        colours, sizes = given.get("colours"), given.get("sizes")
        if not isinstance(colours, str) or not colours or not set(colours) <= _COLOURS:
            raise GenomeError("beads need colours")
        if (
            not isinstance(sizes, list)
            or len(sizes) != len(colours)
            or not all(type(n) is int for n in sizes)
        ):
            raise GenomeError("every bead needs a size")
        if any(given.get(name) != fact for name, fact in self.facts().items()):
            raise GenomeError("these beads are for another problem")
        return Beads(colours, tuple(sizes), given.get("tag", ""))

    def _resized(self, phenotype: Beads, step: int, rng: Rng) -> Beads:
        sizes = list(phenotype.sizes)
        place = int(rng.integers(len(sizes)))
        sizes[place] = max(1, sizes[place] + step)
        return replace(phenotype, sizes=tuple(sizes))


def brightness(model: Any, rng: Rng) -> float:
    """How bright a string is, from 0 to 1, seen through a little noise."""
    value = float(model()) + float(rng.normal(0.0, 0.1))
    return 1 - 1 / (1 + max(0.0, value))


family = {"beads": BeadFamily}
evaluator = {"brightness": brightness}
