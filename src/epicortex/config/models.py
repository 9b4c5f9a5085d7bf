"""Every setting of a run, as frozen models: one field, one docstring, one allowed range.

The values written here, in `ecosystem` and in `families` are the preset `paper`; `presets/` holds all presets
as TOML. Reading presets, files and overrides, and saying what is wrong with them, is left to `resolving`.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from epicortex.config.ecosystem import (
    BudgetConfig,
    CullingConfig,
    EvolutionConfig,
    SelectionConfig,
    SpeciationConfig,
)
from epicortex.config.families import LayeredConfig, ResidualConfig, UnstructuredConfig
from epicortex.config.section import PartName, Scalar, Section, Side
from epicortex.measures import is_percent

FORMAT_VERSION = 2
#: In which section a run of format 1 has what now belongs to a part, and what it was called there.
MOVED = {
    "evolution.founders": "speciation.founders",
    "evolution.parents": "selection.parents",
    "evolution.parent_shares": "selection.parent_shares",
    "evolution.complexity": "selection.complexity",
    "evolution.spared": "culling.spared",
    "evolution.newborns": "budget.newborns",
    "evolution.learning_rate": "budget.learning_rate",
    "evolution.conv_activation": "layered.conv_activation",
    "evolution.full_activation": "layered.full_activation",
    "evolution.kernel_start": "layered.kernel_start",
    "evolution.layer_choice": "layered.layer_choice",
    "evolution.kernel_weight": "layered.kernel_weight",
    "evolution.mutation_choice": "layered.mutation_choice",
}


#: The usual label smoothing.
_SMOOTHING = 0.1

Augmentation: TypeAlias = Literal["auto", "harmless", "rotation", "scale", "colour", "noise", "cutout"]
#: Not changes of samples, but ways to find out which.
_FOUND_OUT = ("auto", "harmless")


def _augment(given: object) -> object:
    """A single name will do for a list, and `none` for an empty one."""
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list) else given
    return () if names == ("none",) else names


class EpisodesConfig(Section):
    """The evaluator `episodes`, for environments of gymnasium."""

    number: int = Field(3, ge=1, le=10_000)
    """How many episodes a network acts in."""
    normalise: Annotated[int, Field(ge=0, le=10_000)] | Literal["running"] = Field(
        0, json_schema_extra={"allowed": "a whole number from 0 to 10000, or running"}
    )
    """Observations are scaled by so many episodes of random actions, or by all seen so far (running)."""


class EsConfig(Section):
    """The evaluator `es`: weights by an evolution strategy, for any family."""

    steps: int = Field(10, ge=1, le=1_000_000)
    """The steps of a network in a generation."""
    pairs: int = Field(16, ge=1, le=100_000)
    """The mirrored pairs of candidates in a step."""
    deviation: float = Field(0.05, gt=0)
    """How far candidates are from the weights that they try to improve."""
    rate: float = Field(0.02, gt=0)
    """The rate of Adam's steps."""


class TrainingConfig(Section):
    """How one network is trained and scored, and by whom."""

    portion: float = Field(0.1, gt=0, le=1)
    """The fresh random part of the training set that each network sees in a generation."""
    batch_size: int = Field(128, ge=1, le=1_000_000)
    """How many samples a training step takes; the last short batch is kept."""
    min_steps: int = Field(0, ge=0, le=1_000_000)
    """At least so many optimiser steps a generation: small portions are enlarged, then repeated."""
    shift: float = Field(0.0, ge=0, le=0.5)
    """Half of the training images are moved at random, in each dimension by up to this part of their size."""
    flip: bool | Literal["auto"] = False
    """Half of the training images are mirrored left to right; auto (planned runs): those of the classes in
    which that is harmless."""
    unflipped: tuple[int, ...] = ()
    """The classes, by their number from 0, whose images are never mirrored."""
    augment: Annotated[tuple[Augmentation, ...], BeforeValidator(_augment)] = Field(
        (),
        json_schema_extra={
            "allowed": "rotation, scale, colour, noise and cutout, with commas between, "
            "or harmless, or auto, or none"
        },
    )
    """How else training samples are changed. In planned runs harmless: where few images are seen often, by
    colour and cutout if networks know changed ones nearly as well; auto: by what is measured to help."""
    optimiser: str = Field(
        "Adadelta",
        pattern=r"^[A-Za-z][A-Za-z0-9_]*$",
        json_schema_extra={"allowed": "the name of an optimiser, such as Adadelta, Adam or SGD"},
    )
    """Any optimiser of torch.optim by its name, or OrthogonalSGD; created anew in each generation."""
    optimiser_arguments: dict[str, Scalar | tuple[float, ...]] = Field({})
    """What the optimiser is created with; torch's own values where nothing is given (Adadelta: lr 1.0)."""
    optimiser_state: Literal["fresh", "inherited"] = "fresh"
    """An optimiser begins afresh in each generation, or with what the genes remember (residual with SGD or
    OrthogonalSGD)."""
    decay: Literal["all", "weights"] = "all"
    """Whether weight_decay pulls at everything, or at weights only: not at norms and biases."""
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] | Literal["auto"] = Field(
        0.0, json_schema_extra={"allowed": "a number from 0 to below 1, or auto"}
    )
    """How much of the target is spread evenly over all classes while training; auto is 0.1, for tables 0."""
    fitness: str = Field(
        "accuracy",
        pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$",
        json_schema_extra={
            "allowed": "accuracy, balanced_accuracy, r2, mean_absolute_error, f1, f1_micro or the name of a "
            "registered function"
        },
    )
    """What is maximised: accuracy, balanced_accuracy (classes), r2, mean_absolute_error (regression), f1,
    f1_micro (multi-label), or the name of a registered function; accuracy stands for r2 and f1, too."""
    fitness_on: Literal["test", "validation"] = "test"
    """The samples that fitness is measured on; with validation the test set is used once, at the end."""
    validation_fraction: float = Field(0.1, gt=0, lt=1)
    """The stratified part of the training set that is kept for validation."""
    validation_most: int | None = Field(None, ge=1)
    """How many samples that is at most."""
    class_weights: Literal["none", "balanced"] = "none"
    """Whether the loss weighs classes by the inverse of their frequency."""
    losses: bool = False
    """Whether scoring keeps the loss as well: its mean, and that of every sample, for paired comparisons."""
    time_limit: float | None = Field(None, gt=0)
    """A network that trains longer than this many seconds fails."""
    hang_limit: float = Field(120.0, gt=0)
    """A worker silent for this many seconds is killed and its network tried again."""
    engine: str = Field(
        "processes",
        pattern=r"^[a-z][a-z0-9_-]*$",
        json_schema_extra={
            "allowed": "serial, processes, ray, mpi or the name of an engine that a package installs"
        },
    )
    """Who trains: serial, processes, ray, mpi, or an engine that a package installs."""
    workers: int | None = Field(None, ge=1, le=100_000)
    """How many networks train at the same time; by default one a core (ray: a place, mpi: a rank)."""
    backend: Literal["auto", "native", "torch"] = "auto"
    """The arithmetic: native (compiled, the same bits on every CPU), torch, or native wherever it can be."""
    device: str = Field(
        "cpu",
        pattern=r"^(cpu|mps|cuda(:\d{1,4})?)$",
        json_schema_extra={"allowed": "cpu, mps, cuda or cuda:N"},
    )
    """Where networks are trained."""

    @model_validator(mode="after")
    def _augments(self) -> TrainingConfig:
        if len(self.augment) > 1 and (way := next((one for one in _FOUND_OUT if one in self.augment), None)):
            raise ValueError(f"augment is {way} or names of what to use, not both")
        return self

    @property
    def measures_augment(self) -> bool:
        """Whether what samples are changed by is to be found out before the run."""
        return self.augment == ("auto",)

    @property
    def tries_augment(self) -> bool:
        """Whether what samples are changed by is to be found out on the way."""
        return self.augment == ("harmless",)

    @property
    def changes(self) -> tuple[str, ...]:
        """What samples are changed by, as far as the settings say."""
        return tuple(one for one in self.augment if one not in _FOUND_OUT)

    def smoothing(self, spatial: int) -> float:
        """The label smoothing for samples of so many spatial dimensions.

        Tables are small and their classes often overlap: there it costs a linear model more than it gives.

        >>> training = TrainingConfig(label_smoothing="auto")
        >>> training.smoothing(spatial=2), training.smoothing(spatial=0)
        (0.1, 0.0)
        """
        if self.label_smoothing == "auto":
            return _SMOOTHING if spatial else 0.0
        return self.label_smoothing

    def validation_part(self, samples: int) -> float:
        """The part of so many samples that is kept for validation.

        >>> TrainingConfig(validation_fraction=0.2, validation_most=5000).validation_part(50_000)
        0.1
        """
        most = self.validation_most
        return self.validation_fraction if most is None else min(self.validation_fraction, most / samples)


class DataConfig(Section):
    """The data set and how it is read; most of it concerns data of one's own."""

    source: str | None = None
    """A built-in name (digits, mnist, fashion-mnist, svhn, cifar10) or a path."""
    directory: str | None = None
    """Where the built-in data sets are; by default EPICORTEX_DATA, else the user's cache folder."""
    image_size: tuple[Side, Side] | None = None
    """Height and width that all images are brought to; by default the most common size."""
    channels: Literal["auto", "gray", "rgb"] = "auto"
    """Whether images are read as gray or colour; auto: gray only if every image is."""
    layout: Literal["auto", "channels_first", "channels_last"] = "auto"
    """Where arrays have their channels."""
    task: Literal["auto", "classes", "regression", "multilabel"] = "auto"
    """What is predicted: one class, numbers, or sets of labels; auto finds out from the labels."""
    label_column: str | None = None
    """The column of a table that holds the class; by default one named label, class, target or y."""
    image_column: str | None = None
    """The column of a CSV file that names pictures; by default one whose cells end like pictures."""
    group_column: str | None = None
    """The column of a CSV file that says what must not be in two parts, such as a patient or a plate."""
    group_level: int | None = Field(None, ge=1, le=16)
    """The same for folders: how many levels below the folder of the class the folder of a group is."""
    unreadable: Literal["skip", "refuse"] = "refuse"
    """What happens where a picture does not open: the data is refused, or the picture is skipped."""
    test_fraction: float = Field(0.2, ge=0, lt=1)
    """The stratified part kept for testing where the data has no test part of its own."""
    min_per_class: int = Field(2, ge=1)
    """A class with fewer training samples than this is refused."""
    max_side: int | None = Field(None, ge=1)
    """The longest side that images get without `image_size`; by default 64 to 224, by `total_pixels`."""
    total_pixels: int | None = Field(None, ge=1)
    """How many pixels all training pictures may have together; planned runs set it by their minutes."""
    max_pixels: int = Field(50_000_000, ge=1)
    """A picture that claims more pixels than this is refused before it is decoded."""
    max_bytes: int = Field(4 * 2**30, ge=1)
    """Data that would be larger than this when prepared is refused."""
    decode_workers: int | None = Field(None, ge=1, le=1024)
    """How many threads decode pictures; by default one a core."""


class RayConfig(Section):
    """The engine `ray` (pip install 'epicortex[ray]')."""

    address: str | None = None
    """The cluster to join; by default RAY_ADDRESS, else a Ray is started on this machine."""
    num_cpus: float = Field(1.0, gt=0)
    """Processors a network occupies."""
    num_gpus: float = Field(0.0, ge=0)
    """Graphics processors a network occupies; fractions are fine."""


class MpiConfig(Section):
    """The engine `mpi` (pip install 'epicortex[mpi]')."""

    chunk: int = Field(1, ge=1)
    """How many networks are sent to a rank at a time; their outcomes come back together."""


class Config(Section):
    """All settings of a run."""

    family: PartName = Field(
        "layered",
        json_schema_extra={"allowed": "layered, residual, unstructured or the name of a family of your own"},
    )
    """The kind of network that evolves."""
    evaluator: PartName = Field(
        "backprop",
        json_schema_extra={"allowed": "backprop, episodes, es or the name of an evaluator of your own"},
    )
    """How a network gets its fitness: trained and scored on a data set, or in a way of your own."""
    evolution: EvolutionConfig = EvolutionConfig()
    """The ecosystem."""
    speciation: SpeciationConfig = SpeciationConfig()
    """How founders are spread over species."""
    selection: SelectionConfig = SelectionConfig()
    """Who mates with whom."""
    culling: CullingConfig = CullingConfig()
    """Who is removed."""
    budget: BudgetConfig = BudgetConfig()
    """How much networks are trained."""
    layered: LayeredConfig = LayeredConfig()
    """The family `layered`."""
    residual: ResidualConfig = ResidualConfig()
    """The family `residual`."""
    unstructured: UnstructuredConfig = UnstructuredConfig()
    """The family `unstructured`."""
    episodes: EpisodesConfig = EpisodesConfig()
    """The evaluator `episodes`."""
    es: EsConfig = EsConfig()
    """The evaluator `es`."""
    training: TrainingConfig = TrainingConfig()
    """Training and scoring."""
    data: DataConfig = DataConfig()
    """The data set."""
    ray: RayConfig = RayConfig()
    """The engine `ray`."""
    mpi: MpiConfig = MpiConfig()
    """The engine `mpi`."""

    @property
    def is_accuracy(self) -> bool:
        """Whether fitness is an accuracy, a fraction from 0 to 1 that people read as percent."""
        return is_percent(self.fitness_name)

    @property
    def fitness_name(self) -> str:
        """What fitness is: `training.fitness` where networks learn from data, else a reward."""
        return self.training.fitness if self.evaluator in ("backprop", "es") else "reward"


#: Fields that may differ between a run and its continuation, since they change no result of a generation.
MAY_CHANGE_ON_RESUME = frozenset(
    {
        "evolution.generations",
        "evolution.minutes",
        "evolution.target",
        "evolution.plateau",
        "evolution.keep_checkpoints",
        "training.time_limit",
        "training.hang_limit",
        "training.engine",
        "training.workers",
        "data.directory",
        "data.source",
        "ray.address",
        "ray.num_cpus",
        "ray.num_gpus",
        "mpi.chunk",
    }
)
