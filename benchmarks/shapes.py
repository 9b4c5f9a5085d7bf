"""Do kernels of individual shape pay? One network, trained for the whole time, with kernels of several kinds.

All have the depth of the middle founder of ours, and widths at which they cost as much as it does: small
kernels make a network wider. So they are compared at equal time and at equal entries of their kernels.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from epicortex.config import Config
from epicortex.ecosystem.challengers import ChallengerSelection
from epicortex.ecosystem.plan import Plan
from epicortex.ecosystem.planned import rate
from epicortex.ecosystem.state import EcosystemState
from epicortex.ecosystem.strategies import Register, Selected
from epicortex.families.family import Array, Family, Shape
from epicortex.families.residual.genome import Block, Genome, Stage
from epicortex.families.residual.phenotype import Phenotype
from epicortex.families.residual.surgery import refit
from epicortex.randomness import generator

_SQUARE: Final = (3, 3)
#: The kernels that each arm draws from, evenly.
KERNELS: Final[dict[str, tuple[Shape, ...]]] = {
    "shape-square": (_SQUARE,),
    "shape-narrow": (_SQUARE, (1, 3), (3, 1)),
    "shape-long": (_SQUARE, (1, 5), (5, 1)),
    "shape-shrunk": (_SQUARE,),
}
#: When kernels shrink, of the whole time, and what is left of the cost then.
SHRINK_AT: Final = 0.4
LEFT: Final = 5 / 9
_WIDEST: Final = 8.0


def structure(arm: str, like: Genome, seed: int) -> Genome:
    """The structure of an arm: as deep as another network and at most as dear, unless it is to shrink."""
    most = like.cost / LEFT if arm == "shape-shrunk" else like.cost
    low, high = 0.0, _WIDEST
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if _scaled(like, middle, arm, seed).cost <= most else (low, middle)
    return _scaled(like, low, arm, seed)


def _scaled(like: Genome, factor: float, arm: str, seed: int) -> Genome:
    rng = generator(seed, arm)

    def drawn(count: int) -> tuple[Shape, ...]:
        choice = KERNELS[arm]
        return tuple(choice[place] for place in rng.integers(len(choice), size=count).tolist())

    stages = []
    for index, stage in enumerate(like.stages):
        ids = tuple(range(max(1, round(factor * stage.width))))
        entry, many = drawn(len(ids)), len(ids)
        blocks = tuple(Block(place, ids, drawn(many), drawn(many)) for place in range(len(stage.blocks)))
        stages.append(Stage(index, stage.stride, ids, entry, blocks))
    return replace(like, stages=tuple(stages), out=tuple(range(like.outputs)))


class Shrinking(ChallengerSelection):
    """Polish as ever; once, the kernels of all siblings lose the borders that carry least."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._seed = config.evolution.seed

    def select(
        self, state: EcosystemState, *, generation: int, family: Family[Any], register: Register
    ) -> Selected:
        """What siblings have in common after averaging shrinks in all of them alike."""
        done = super().select(state, generation=generation, family=family, register=register)
        if state.plan is None or not due(state.plan, state.networks[0].phenotype.genome):
            return done
        rng = generator(self._seed, "shrinking")
        first = done.state.networks[0].phenotype
        smaller = shrunk(first, round(LEFT * first.genome.cost), rng)
        networks = tuple(replace(one, phenotype=smaller) for one in done.state.networks)
        return replace(done, state=replace(done.state, networks=networks))


def due(plan: Plan, genome: Genome) -> bool:
    """Whether the time has come, as the falling rate says, and the kernels are still square."""
    square = all(kernel == _SQUARE for layer in genome.layers[:-1] for kernel in layer.kernels)
    most = min(2, plan.siblings)  # what a rate is raised to where siblings are averaged
    return square and plan.rates[1] < plan.rates[0] and plan.rates[1] <= most * rate(SHRINK_AT)


def shrunk(phenotype: Phenotype, cost: int, rng: np.random.Generator) -> Phenotype:
    """Kernels 1×3 and 3×1 in the place of square ones, those first that lose least, down to a cost."""
    genome = phenotype.genome
    losses: list[tuple[float, int, int, Shape]] = []
    for index, (layer, genes) in enumerate(list(phenotype.pairs())[:-1]):
        for node in range(layer.nodes):
            lost, shape = _least(genes.weight[node])
            losses.append((lost, index, node, shape))
    for _, index, node, shape in sorted(losses):
        if genome.cost <= cost:
            break
        layer = genome.layers[index]
        kernels = [*layer.kernels[:node], shape, *layer.kernels[node + 1 :]]
        genome = genome.replace_kernels(layer, kernels)
    return refit(phenotype, genome, rng)


def _least(weight: Array) -> tuple[float, Shape]:
    """The share of a 3×3 kernel [channels, 3, 3] that is lost with two of its borders, and what is left."""
    energy = np.square(weight, dtype=np.float64).sum(axis=0)
    whole = max(float(energy.sum()), 1e-30)
    rows, columns = 1 - float(energy[1].sum()) / whole, 1 - float(energy[:, 1].sum()) / whole
    return (rows, (1, 3)) if rows <= columns else (columns, (3, 1))


PARTS: Final = {"selection": Shrinking}
