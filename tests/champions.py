"""Champions with drawn weights, for tests that need no evolution."""

from __future__ import annotations

import numpy as np

from epicortex.champion.file import Champion, Facts
from epicortex.data import Scaling
from epicortex.families.activations import Activations
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily, draw_phenotype
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
from epicortex.families.residual import Phenotype, ResidualFamily, sized_founder

LAYERS: dict[tuple[int, ...], tuple[ConvLayer | FullLayer, ...]] = {
    (1, 8, 8): (ConvLayer(((3, 3), (1, 3)), (2, 1)), FullLayer(5)),
    (3, 9, 7): (ConvLayer(((3, 1), (1, 1)), (1, 1)),),
    (4,): (FullLayer(3),),
    (2, 16): (ConvLayer(((3,), (5,)), (1,)),),
    (1, 6, 6, 6): (ConvLayer(((3, 1, 3), (1, 3, 3)), (1, 2, 1)), FullLayer(4)),
}


def make_champion(
    shape: tuple[int, ...] = (1, 8, 8),
    classes: tuple[str, ...] = ("cat", "dog", "Zürich"),
    *,
    divisor: float = 255.0,
    full: str = "smooth",
) -> Champion:
    """A champion for samples of this shape."""
    genome = Genome(shape, LAYERS[shape], len(classes))
    means = tuple(0.3 + 0.1 * channel for channel in range(shape[0]))
    return Champion(
        draw_phenotype(genome, rng=np.random.default_rng(1)),
        LayeredFamily(Problem(shape, len(classes)), activations=Activations("leaky_relu", full)),
        Scaling(divisor, means, (0.25,) * shape[0]),
        Facts(classes, "drawn", 7, 3, 0.5, "validation", None, 1),
    )


def make_residual(
    shape: tuple[int, ...] = (1, 8, 8),
    classes: tuple[str, ...] = ("cat", "dog", "Zürich"),
    *,
    divisor: float = 255.0,
    parameters: int = 3_000,
) -> Champion:
    """A residual champion whose norms have seen something."""
    rng = np.random.default_rng(2)
    founder = sized_founder(Problem(shape, len(classes)), rng, max_parameters=parameters, kernel_mix=0.7)
    genes = [
        own.replace(
            **{
                name: own[name] + rng.uniform(0, 0.5, own[name].shape).astype(np.float32)
                for name in own
                if name != "weight"
            }
        )
        for own in founder.genes
    ]
    return Champion(
        Phenotype(founder.genome, tuple(genes)),
        ResidualFamily(Problem(shape, len(classes))),
        Scaling(divisor, (0.4,) * shape[0], (0.3,) * shape[0]),
        Facts(classes, "drawn", 7, 3, 0.5, "validation", None, 1),
    )


def raw_values(champion: Champion, samples: int) -> np.ndarray:
    """Raw values such as this champion takes."""
    rng = np.random.default_rng(samples)
    pixels = rng.integers(0, 256, (samples, *champion.outline.input_shape))
    return (pixels * champion.scaling.divisor / 255).astype(np.float32)
