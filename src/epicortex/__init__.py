"""EpiCortex evolves convolutional neural networks: structure by evolution, weights by backpropagation.

Everything public is here. Names are imported when they are first used, so that `import epicortex` is quick
and needs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from epicortex.champion.evaluating import Evaluation, evaluate
    from epicortex.champion.exporting import export
    from epicortex.champion.file import Champion, Facts
    from epicortex.champion.judging import Labelling, Quantities
    from epicortex.champion.module import Classifier, load
    from epicortex.config import Config, DataConfig, EvolutionConfig, MpiConfig, RayConfig, TrainingConfig
    from epicortex.config.resolving import resolve as configure
    from epicortex.data import DataOptions, DataSet, Scaling, read_image
    from epicortex.data import load as load_data
    from epicortex.ecosystem.history import Generation
    from epicortex.ecosystem.jobs import Job, Outcome
    from epicortex.ecosystem.state import EcosystemState, Event, Individual, Tally
    from epicortex.ecosystem.strategies import Strategies
    from epicortex.engines import Engine
    from epicortex.errors import (
        ConfigError,
        DataError,
        EngineError,
        EpiCortexError,
        GenomeError,
        RunError,
        StorageError,
        UnwritableError,
        VariationError,
    )
    from epicortex.evaluation.evaluator import Evaluator, Recipe
    from epicortex.evaluation.trainer import Trainer
    from epicortex.evolution import Evolution, Step, stop_reason
    from epicortex.families.activations import Activations
    from epicortex.families.family import Family, Mutation, Outline, Part, Problem
    from epicortex.families.genes import Genes
    from epicortex.families.layered import OPERATORS, LayeredFamily, Mutated, Operator, Rules, draw_phenotype
    from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
    from epicortex.families.layered.irregular import IrregularConv
    from epicortex.families.layered.network import Network
    from epicortex.families.layered.phenotype import Phenotype
    from epicortex.families.residual import ResidualFamily
    from epicortex.run.lifecycle import Result, Watcher, evolve, resume
    from epicortex.run.record import RunRecord, load_champion, read_run
    from epicortex.sklearn import EvolvedClassifier, EvolvedRegressor

    __version__: str

_HOMES: Final[dict[str, tuple[str, ...]]] = {
    "champion.evaluating": ("Evaluation", "evaluate"),
    "champion.exporting": ("export",),
    "champion.judging": ("Labelling", "Quantities"),
    "champion.file": ("Champion", "Facts"),
    "champion.module": ("Classifier", "load"),
    "config": ("Config", "DataConfig", "EvolutionConfig", "MpiConfig", "RayConfig", "TrainingConfig"),
    "data": ("DataOptions", "DataSet", "Scaling", "read_image"),
    "ecosystem.history": ("Generation",),
    "ecosystem.jobs": ("Job", "Outcome"),
    "ecosystem.strategies": ("Strategies",),
    "ecosystem.state": ("EcosystemState", "Event", "Individual", "Tally"),
    "engines": ("Engine",),
    "errors": (
        "ConfigError",
        "DataError",
        "EngineError",
        "EpiCortexError",
        "GenomeError",
        "RunError",
        "StorageError",
        "UnwritableError",
        "VariationError",
    ),
    "evaluation.trainer": ("Trainer",),
    "evaluation.evaluator": ("Evaluator", "Recipe"),
    "evolution": ("Evolution", "Step", "stop_reason"),
    "families.activations": ("Activations",),
    "families.family": ("Family", "Mutation", "Outline", "Part", "Problem"),
    "families.genes": ("Genes",),
    "families.layered": ("OPERATORS", "LayeredFamily", "Mutated", "Operator", "Rules", "draw_phenotype"),
    "families.layered.genome": ("ConvLayer", "FullLayer", "Genome"),
    "families.layered.irregular": ("IrregularConv",),
    "families.layered.network": ("Network",),
    "families.layered.phenotype": ("Phenotype",),
    "families.residual": ("ResidualFamily",),
    "run.lifecycle": ("Result", "Watcher", "evolve", "resume"),
    "run.record": ("RunRecord", "load_champion", "read_run"),
    "sklearn": ("EvolvedClassifier", "EvolvedRegressor"),
}
_PLACES: Final[dict[str, tuple[str, str]]] = {
    **{name: (module, name) for module, names in _HOMES.items() for name in names},
    "configure": ("config.resolving", "resolve"),
    "load_data": ("data", "load"),
}

__all__ = [
    "OPERATORS",
    "Activations",
    "Champion",
    "Classifier",
    "Config",
    "ConfigError",
    "ConvLayer",
    "DataConfig",
    "DataError",
    "DataOptions",
    "DataSet",
    "EcosystemState",
    "Engine",
    "EngineError",
    "EpiCortexError",
    "Evaluation",
    "Evaluator",
    "Event",
    "Evolution",
    "EvolutionConfig",
    "EvolvedClassifier",
    "EvolvedRegressor",
    "Facts",
    "Family",
    "FullLayer",
    "Generation",
    "Genes",
    "Genome",
    "GenomeError",
    "Individual",
    "IrregularConv",
    "Job",
    "Labelling",
    "LayeredFamily",
    "MpiConfig",
    "Mutated",
    "Mutation",
    "Network",
    "Operator",
    "Outcome",
    "Outline",
    "Part",
    "Phenotype",
    "Problem",
    "Quantities",
    "RayConfig",
    "Recipe",
    "ResidualFamily",
    "Result",
    "Rules",
    "RunError",
    "RunRecord",
    "Scaling",
    "Step",
    "StorageError",
    "Strategies",
    "Tally",
    "Trainer",
    "TrainingConfig",
    "UnwritableError",
    "VariationError",
    "Watcher",
    "__version__",
    "configure",
    "draw_phenotype",
    "evaluate",
    "evolve",
    "export",
    "load",
    "load_champion",
    "load_data",
    "read_image",
    "read_run",
    "resume",
    "stop_reason",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("epicortex")
    elif name in _PLACES:
        module, attribute = _PLACES[name]
        value = getattr(importlib.import_module(f"epicortex.{module}"), attribute)
    else:
        raise AttributeError(f"module 'epicortex' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
