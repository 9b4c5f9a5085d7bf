"""The networks of the paper's section II-B: the nine-node example, the parents and child of its crossover."""

from __future__ import annotations

import numpy as np

from epicortex.families.unstructured import Genome, Phenotype

#: Figure 2, and parent 1 of figure 3.
FIRST = {5: (7, 8), 6: (1, 3, 8, 9), 7: (1, 2, 3, 4), 8: (1,), 9: (2, 4)}
#: Parent 2 of figure 3.
SECOND = {5: (7,), 6: (8, 9), 7: (1, 3, 4), 8: (2, 3), 9: (1, 2, 4)}
#: The offspring of figure 3: what is black there, of the first parent, and what is red.
BLACK = {(5, 7), (5, 8), (6, 1), (6, 3), (7, 1), (7, 3), (8, 1), (9, 4)}
RED = {(6, 8), (6, 9), (7, 4), (8, 2), (9, 2)}


def parent(inward: dict[int, tuple[int, ...]], first_weight: float) -> Phenotype:
    """A network of four inputs and two outputs whose weights tell it from any other."""
    genome = Genome(4, 2, inward)
    count = len(genome.connections)
    return Phenotype(genome, (first_weight + np.arange(count) / 100).astype(np.float32))
