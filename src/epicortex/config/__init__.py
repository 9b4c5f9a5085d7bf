"""Every setting of a run: the models, the presets, and how text, files and overrides become a `Config`."""

from epicortex.config.ecosystem import (
    BudgetConfig,
    CullingConfig,
    EvolutionConfig,
    SelectionConfig,
    SpeciationConfig,
)
from epicortex.config.families import LayeredConfig, ResidualConfig, UnstructuredConfig
from epicortex.config.models import (
    FORMAT_VERSION,
    MAY_CHANGE_ON_RESUME,
    Config,
    DataConfig,
    EpisodesConfig,
    EsConfig,
    MpiConfig,
    RayConfig,
    TrainingConfig,
)
from epicortex.config.resolving import changed

__all__ = [
    "FORMAT_VERSION",
    "MAY_CHANGE_ON_RESUME",
    "BudgetConfig",
    "Config",
    "CullingConfig",
    "DataConfig",
    "EpisodesConfig",
    "EsConfig",
    "EvolutionConfig",
    "LayeredConfig",
    "MpiConfig",
    "RayConfig",
    "ResidualConfig",
    "SelectionConfig",
    "SpeciationConfig",
    "TrainingConfig",
    "UnstructuredConfig",
    "changed",
]
