"""Train and score one network on a data set; the only code of ours that runs inside a worker.

Who runs it, where and how often is the engines' affair; what becomes of the fitness is the ecosystem's.
"""

from epicortex.evaluation.backprop import Score, Stopped, Trainer
from epicortex.evaluation.checks import check_training
from epicortex.evaluation.fitness import FitnessFunction, find_fitness
from epicortex.evaluation.optimisers import OptimiserFactory

__all__ = [
    "FitnessFunction",
    "OptimiserFactory",
    "Score",
    "Stopped",
    "Trainer",
    "check_training",
    "find_fitness",
]
