"""EpiCortex evolves convolutional neural networks: structure by evolution, weights by backpropagation.

Everything public is here. Names are imported when they are first used, so that `import epicortex` is quick
and needs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from epicortex.champion import Classifier, load
    from epicortex.config import Config, DataConfig, EvolutionConfig, MpiConfig, RayConfig, TrainingConfig
    from epicortex.data import DataOptions, DataSet, Scaling, read_image
    from epicortex.data import load as load_data
    from epicortex.ecosystem.state import EcosystemState, Event, Individual, Tally
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
    from epicortex.evolution import Evolution, Step, stop_reason
    from epicortex.exporting import export
    from epicortex.family import Family, Mutation
    from epicortex.genome import ConvLayer, FullLayer, Genome
    from epicortex.jobs import Job, Outcome
    from epicortex.network import Activations, IrregularConv, Network
    from epicortex.phenotype import LayerWeights, Phenotype
    from epicortex.run import Result, Watcher, evolve, resume
    from epicortex.settings import resolve as configure
    from epicortex.sklearn import EvolvedClassifier
    from epicortex.storage import Champion, Facts, RunRecord, load_champion, read_run
    from epicortex.training import Trainer
    from epicortex.variation import OPERATORS, LayeredFamily, Mutated, Operator, Rules, draw_phenotype

    __version__: str

_HOMES: Final[dict[str, tuple[str, ...]]] = {
    "champion": ("Classifier", "load"),
    "config": ("Config", "DataConfig", "EvolutionConfig", "MpiConfig", "RayConfig", "TrainingConfig"),
    "data": ("DataOptions", "DataSet", "Scaling", "read_image"),
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
    "evolution": ("Evolution", "Step", "stop_reason"),
    "exporting": ("export",),
    "family": ("Family", "Mutation"),
    "genome": ("ConvLayer", "FullLayer", "Genome"),
    "jobs": ("Job", "Outcome"),
    "network": ("Activations", "IrregularConv", "Network"),
    "phenotype": ("LayerWeights", "Phenotype"),
    "run": ("Result", "Watcher", "evolve", "resume"),
    "sklearn": ("EvolvedClassifier",),
    "storage": ("Champion", "Facts", "RunRecord", "load_champion", "read_run"),
    "training": ("Trainer",),
    "variation": ("OPERATORS", "LayeredFamily", "Mutated", "Operator", "Rules", "draw_phenotype"),
}
_PLACES: Final[dict[str, tuple[str, str]]] = {
    **{name: (module, name) for module, names in _HOMES.items() for name in names},
    "configure": ("settings", "resolve"),
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
    "Event",
    "Evolution",
    "EvolutionConfig",
    "EvolvedClassifier",
    "Facts",
    "Family",
    "FullLayer",
    "Genome",
    "GenomeError",
    "Individual",
    "IrregularConv",
    "Job",
    "LayerWeights",
    "LayeredFamily",
    "MpiConfig",
    "Mutated",
    "Mutation",
    "Network",
    "Operator",
    "Outcome",
    "Phenotype",
    "RayConfig",
    "Result",
    "Rules",
    "RunError",
    "RunRecord",
    "Scaling",
    "Step",
    "StorageError",
    "Tally",
    "Trainer",
    "TrainingConfig",
    "UnwritableError",
    "VariationError",
    "Watcher",
    "__version__",
    "configure",
    "draw_phenotype",
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
