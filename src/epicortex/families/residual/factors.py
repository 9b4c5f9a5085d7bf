"""Mutation of the recipe: the factors on learning rate, weight decay and augmentation."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Final

import numpy as np

from epicortex.families.family import Direction
from epicortex.families.residual.genome import MAX_FACTOR, Genome, Recipe
from epicortex.families.residual.operators import Mutated, pick
from epicortex.families.residual.phenotype import Phenotype

_FACTORS: Final = (1.1, 1.25, 1.5)


class RecipeOperator:
    """Raises or lowers one factor of the recipe a little."""

    name = "recipe"
    keeps = True

    def possible(self, genome: Genome, direction: Direction) -> bool:
        """Some factor must be within its bounds after the largest change."""
        return bool(self._names(genome, direction))

    def apply(self, phenotype: Phenotype, direction: Direction, rng: np.random.Generator) -> Mutated:
        """Draw one of the factors and how far it goes."""
        genome = phenotype.genome
        name = pick(self._names(genome, direction), self.name, rng)
        factor = _FACTORS[int(rng.integers(len(_FACTORS)))]
        value = getattr(genome.recipe, name)
        changed = value * factor if direction == "grow" else value / factor
        recipe = replace(genome.recipe, **{name: changed})
        return Mutated(Phenotype(replace(genome, recipe=recipe), phenotype.genes))

    def _names(self, genome: Genome, direction: Direction) -> list[str]:
        most = MAX_FACTOR / max(_FACTORS)
        values = {field.name: getattr(genome.recipe, field.name) for field in fields(Recipe)}
        return [
            n for n, value in values.items() if (value <= most if direction == "grow" else value >= 1 / most)
        ]
