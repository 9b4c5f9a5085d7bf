"""Train and score one network on a data set; the only code of ours that runs inside a worker.

Who runs it, where and how often is the engines' affair; what becomes of the fitness is the ecosystem's.
"""

from epicortex.training.checks import check_training
from epicortex.training.fitness import FitnessFunction, find_fitness
from epicortex.training.optimisers import OptimiserFactory
from epicortex.training.trainer import Score, Stopped, Trainer

__all__ = [
    "FitnessFunction",
    "OptimiserFactory",
    "Score",
    "Stopped",
    "Trainer",
    "check_training",
    "find_fitness",
]
