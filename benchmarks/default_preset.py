"""What moving half of the training images gains: one network of ten kernels on digits, with and without.

Run it with `python -m benchmarks.default_preset`; it takes about a minute of processor time.
"""

from __future__ import annotations

import numpy as np

from epicortex.config import TrainingConfig
from epicortex.data import DataSet, load
from epicortex.ecosystem.jobs import Job
from epicortex.evaluation import scoring
from epicortex.evaluation.trainer import Trainer
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily, draw_phenotype
from epicortex.families.layered.genome import ConvLayer, Genome

KERNELS = ((1, 1), (3, 3), (1, 3), (3, 1), (3, 3), (1, 1), (3, 3), (1, 3), (3, 3), (3, 1))
GENERATIONS = 20
FAMILY = LayeredFamily(Problem((1, 8, 8), 10))


def accuracy(data: DataSet, trainer: Trainer, seed: int) -> float:
    """The test accuracy after twenty generations of one network."""
    genome = Genome((1, 8, 8), (ConvLayer(KERNELS, (1, 1)),), 10)
    phenotype = draw_phenotype(genome, rng=np.random.default_rng(seed))
    for generation in range(1, GENERATIONS + 1):
        trained = trainer.run(Job(seed, generation, 1, phenotype)).phenotype
        assert trained is not None
        phenotype = trained
    return scoring.score(phenotype, FAMILY, data).accuracy


if __name__ == "__main__":
    data = load("digits")
    for shift in (0.0, 0.125):
        settings = TrainingConfig(min_steps=50, fitness_on="validation", validation_fraction=0.2, shift=shift)
        trainer = Trainer(data, FAMILY, settings, seed=1)
        print(f"shift {shift}:", ", ".join(f"{accuracy(data, trainer, seed):.1%}" for seed in range(1, 6)))
