"""Every setting of a run, as frozen models: one field, one docstring, one allowed range.

The values written here are the preset `paper`; `presets/` holds all presets as TOML. Reading presets, files
and overrides, and saying what is wrong with them, is left to `settings`.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

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

Scalar: TypeAlias = bool | int | float | str
PartName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,99}$")]
"""The name of a replaceable part: ours, an installed package's, or one's own."""
Rate: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Side: TypeAlias = Annotated[int, Field(ge=1, le=4096)]


#: What people, and runs of format 1, may say instead of a name.
_SPECIATION: Final = {
    **dict.fromkeys(("true", "yes", "on"), "key"),
    **dict.fromkeys(("false", "no", "off", "none"), "none"),
}


def _speciation(given: object) -> object:
    return _SPECIATION.get(str(given).lower(), given)


Augmentation: TypeAlias = Literal["auto", "rotation", "scale", "colour", "noise", "cutout"]


def _augment(given: object) -> object:
    """A single name will do for a list, and `none` for an empty one."""
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list) else given
    return () if names == ("none",) else names


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class EvolutionConfig(_Section):
    """The ecosystem: its size, its limits, when it stops, and how the paper is read."""

    seed: int = Field(1, ge=0, lt=2**63)
    """Every random choice of the run follows from this number."""
    generations: int = Field(100, ge=1, le=1_000_000)
    """How many generations to evolve."""
    minutes: float | None = Field(None, gt=0)
    """Stop after this many minutes, at the end of a generation."""
    target: float | None = None
    """Stop as soon as a network reaches this fitness: a fraction from 0 to 1, or a reward."""
    plateau: int | None = Field(None, ge=1)
    """Stop when the highest fitness has not risen for this many generations."""
    trainings: int | None = Field(None, ge=1)
    """Stop after so many trainings of a network in all; in the last generation the others are only scored."""
    speciation: Annotated[PartName, BeforeValidator(_speciation)] = Field(
        "key", json_schema_extra={"allowed": "key, none, cost or the name of a rule of your own"}
    )
    """What makes a species: the family's key, a class of cost, or none, so that any two networks may mate."""
    selection: PartName = Field(
        "paper",
        json_schema_extra={
            "allowed": "paper, credit, challengers, generational or the name of a rule of your own"
        },
    )
    """Who mates, who mutates and who rests."""
    culling: PartName = Field(
        "paper",
        json_schema_extra={"allowed": "paper, improvement, age, beaten or the name of a rule of your own"},
    )
    """Who is removed when there are too many."""
    budget: PartName = Field(
        "paper", json_schema_extra={"allowed": "paper, planned or the name of a rule of your own"}
    )
    """Who is trained in a generation, and how much."""
    initial_networks: int = Field(64, ge=1, le=1_000_000)
    """How many networks there are at the start."""
    max_networks: int = Field(111, ge=2, le=1_000_000)
    """Culling brings the ecosystem back to this size, from a larger start too."""
    initial_species: int = Field(8, ge=1, le=1_000_000)
    """How many species there are at the start."""
    max_species: int = Field(16, ge=1, le=1_000_000)
    """A mutation that would found one species more is refused (in force is at most max_networks / 2)."""
    max_parameters: int | None = Field(None, ge=1)
    """A mutation or crossover that would give a larger network is refused."""
    start_genome: str | None = None
    """A genome (JSON) to start from instead of the minimal one."""
    evolve: bool = True
    """Networks mate and mutate; without it the founders are only trained, generation after generation."""
    operators: tuple[str, ...] = ("layer", "node", "stride", "kernel")
    """The mutation operators in use, by name."""
    weight_deviation: float = Field(0.1, gt=0)
    """The standard deviation of new weights and biases."""
    average_rate: float = Field(0.5, gt=0, lt=1)
    """How fast the moving averages of fitness follow (the paper's α)."""
    kernel_temperature: float = Field(1.0, gt=0)
    """Divides the exponent from which the shapes of new kernels are drawn; higher means larger kernels."""
    stride_temperature: float = Field(1.0, gt=0)
    """Divides the exponent from which the strides of new layers are drawn."""
    keep_checkpoints: int = Field(2, ge=1, le=1000)
    """How many of the last checkpoints stay on disk."""

    @model_validator(mode="after")
    def _consistent(self) -> EvolutionConfig:
        if self.has_species and self.initial_species > self.species_limit:
            raise ValueError(
                f"initial_species is {self.initial_species}; it must be at most {self.species_limit}, the "
                f"smaller of max_species ({self.max_species}) and half of max_networks ({self.max_networks})"
            )
        if self.has_species and self.initial_species > self.initial_networks:
            raise ValueError(
                f"initial_species is {self.initial_species}; it must be at most initial_networks, "
                f"which is {self.initial_networks}"
            )
        return self

    @property
    def has_species(self) -> bool:
        """Whether there are species at all."""
        return self.speciation != "none"

    @property
    def species_limit(self) -> int:
        """The limit in force: the smaller of `max_species` and half of `max_networks`."""
        return max(1, min(self.max_species, self.max_networks // 2))


class SpeciationConfig(_Section):
    """How founders are spread over the first species."""

    founders: Literal["varied", "alike"] = "varied"
    """Founders are varied, or all have the structure to start from, each with new weights of its own."""
    grown_from: Literal["minimal", "previous"] = "minimal"
    """Each further initial species grows from the minimal one, or from the one before (published code)."""
    refused: Literal["founding", "structural", "nothing"] = "founding"
    """At the limit founding a species is refused, or all change of structure (published code), or nothing."""
    classes: tuple[Annotated[float, Field(gt=0, le=1)], ...] = Field((1.0, 0.5, 0.25), min_length=1)
    """The speciation `cost`: the classes, as parts of the cost of the largest founder."""


class SelectionConfig(_Section):
    """The selection `paper`: who mates with whom, and what the child gets."""

    parents: Literal["fitness", "even", "alone"] = "fitness"
    """Who mates with whom is drawn by fitness, or evenly, or each mates with itself: only clones are born."""
    parent_shares: Literal["fitness", "pair", "fixed", "even"] = "fitness"
    """Genes come as f_r1 : f_r2, as .731 : .269 (pair: equals share evenly, published code), or evenly."""
    complexity: Literal["falls", "rises"] = "falls"
    """Whether the relative complexity c_r falls or rises with the number of parameters."""
    deviation: Literal["population", "running"] = "population"
    """f_r and c_r divide by the standard deviation, or by what the published code takes for it."""
    clones: Literal["resized", "exact"] = "resized"
    """A network that drew itself gives a clone with one kernel resized, or an exact one (published code)."""
    mating: Literal["crowding", "proportional"] = "crowding"
    """Mating gets rarer with every birth (published code), or each network is a parent with chance f_r."""
    champions: Literal["spared", "mutated"] = "spared"
    """The champions of the ecosystem and of species with others are not mutated, or are (published code)."""
    average_start: Literal["first", "zero"] = "first"
    """Moving averages start at the first fitness, or at 0, so that the first z is 1 (published code)."""
    averaging: bool = True
    """The selection `challengers`: whether relatives are averaged."""
    survivors: float = Field(0.2, gt=0, le=1)
    """The selection `generational`: the fittest part of a species, which has all its children."""
    crossover: Rate = 0.5
    """The part of children that have two parents."""
    mutation: Rate = 1.0
    """The part of children of two parents that are mutated, too; those of one always are."""
    patience: int | None = Field(None, ge=1)
    """All begin anew where the same network has been the best for more generations than this."""
    growth: Rate = 0.5
    """How likely a mutation that has a direction grows a network."""


class CullingConfig(_Section):
    """The culling `paper`."""

    spared: Literal["species", "ecosystem"] = "species"
    """Culling spares the champion of every species, or only the ecosystem's (published code)."""
    classes: bool = True
    """The culling `beaten`: whether a class of cost ends once a dearer one is clearly better."""


class BudgetConfig(_Section):
    """The budget `paper`: how much a network is trained in a generation."""

    newborns: Literal["trained", "scored"] = "trained"
    """Newborns are trained in their first generation, or only scored (published code)."""
    founders: Literal["trained", "scored"] = "trained"
    """Founders are trained in the first generation, or only scored (published code)."""
    learning_rate: Literal["constant", "aging"] = "constant"
    """The learning rate is the optimiser's own, or that times (1 − f_r)/(age + 1) (published code)."""
    search: float = Field(0.35, ge=0, lt=1)
    """The budget `planned`: the part of the time in which structures compete."""
    small_images: float = Field(0.35, ge=0, le=1)
    """The part of the time in which images are smaller."""
    small_size: float = Field(0.625, gt=0, le=1)
    """How large they are then, as a part of their height and width."""
    passes: float = Field(10.0, gt=0)
    """How often the largest founder sees all samples in ten minutes; the size of founders follows from it."""
    steps: int = Field(50, ge=1)
    """The training steps of a generation where a run has no minutes."""
    siblings: int | None = Field(None, ge=1, le=64)
    """How many copies of a network polish trains side by side; by default one a worker, without minutes 2."""
    speed: float | None = Field(None, gt=0)
    """Multiplications a second by all workers; measured when a run with minutes begins."""
    reserve: float | None = Field(None, ge=0)
    """The seconds kept for the champion's test; estimated when a run with minutes begins."""


class LayeredConfig(_Section):
    """The family `layered`: its activations, and how its layers and kernels are drawn."""

    conv_activation: Literal["leaky_relu", "relu", "elu", "gelu", "silu", "tanh", "smooth"] = "leaky_relu"
    """The activation of convolutional layers."""
    full_activation: Literal["smooth", "leaky_relu", "relu", "elu", "gelu", "silu", "tanh"] = "smooth"
    """The activation of fully connected layers; smooth is ½(√(x²+4)+x)−1."""
    kernel_start: Literal["area", "perimeter"] = "area"
    """New shapes are drawn with weight exp(−w·h) (area) or exp(−(w + h)) (perimeter, published code)."""
    targets: Literal["even", "size"] = "even"
    """Which kernel or stride changes is drawn evenly, or by size (published code)."""
    similarity: Literal["nodes", "strides"] = "nodes"
    """Genomes overlap in all aligned layers, or only in those of equal stride (published code)."""
    layer_choice: Literal["parameters", "type"] = "parameters"
    """A new layer is drawn among its candidates by inverse parameters, or its type first, evenly."""
    kernel_weight: Literal["kernels", "nodes"] = "kernels"
    """The kernel mutation's weight uses the mean number of kernels per layer, or of all nodes per layer."""
    mutation_choice: Literal["weights", "fitness_first", "fitness", "even"] = "weights"
    """The type follows eqs 3 to 6, is kernel with probability f_r (first: published code), or is even."""


class ResidualConfig(_Section):
    """The family `residual`: how its networks start and what may change in them."""

    mutations: tuple[
        Literal["width", "inner", "block", "stage", "kernel", "reshape", "stride", "recipe"], ...
    ] = ("width", "inner", "block", "stage", "kernel", "reshape", "stride", "recipe")
    """The mutation types in use, each as likely as another."""
    largest_kernel: int = Field(7, ge=1, le=31)
    """How long kernels get in a dimension; odd."""
    kernel_mix: float = Field(0.1, ge=0, le=1)
    """The share of a founder's kernels that is drawn narrow, such as 1×3, instead of 3×3."""
    start_cost: int | None = Field(None, ge=1)
    """The most multiplications that a founder takes for one sample; planned runs find their own."""
    start_parameters: int | None = Field(None, ge=1)
    """The most parameters of a founder; planned runs find their own."""
    max_cost: int | None = Field(None, ge=1)
    """A mutation that would take more multiplications for one sample is refused."""


NodeActivation: TypeAlias = Literal["linear", "tanh", "sigmoid", "relu", "sine", "gauss"]


class UnstructuredConfig(_Section):
    """The family `unstructured`: how its networks start, compute and change."""

    recurrent: bool = False
    """Connections may run in any direction, so that a network remembers."""
    steps: int = Field(1, ge=1, le=100)
    """How often all nodes are computed for one input."""
    bias: bool = True
    """There is a node that is always 1, which any node may hear."""
    activations: tuple[NodeActivation, ...] = Field(("tanh",), min_length=1)
    """What hidden nodes may have: linear, tanh, sigmoid, relu, sine or gauss."""
    output_activation: NodeActivation = "tanh"
    """What the outputs have."""
    node_start: Literal["full", "split"] = "full"
    """A new node hears all inputs and speaks to all outputs, or it splits a connection to an output."""
    node_rate: Rate = 0.03
    """The part of mutations that adds or removes a node."""
    connection_rate: Rate = 0.05
    """The part of mutations that adds or removes a connection."""
    redraw_rate: Rate = 0.05
    """The part of mutations that draws a weight anew."""
    activation_rate: Rate = 0.02
    """The part of mutations that changes a node's activation, where there is a choice."""
    perturb_share: Rate = 0.8
    """How likely each weight is moved when weights are perturbed, which is what all other mutations do."""
    perturb_deviation: float = Field(0.5, gt=0)
    """How far weights are moved then."""
    perturb_tail: Literal["normal", "cauchy"] = "normal"
    """How that is drawn: normal, or mostly less and now and then much more (cauchy)."""
    weight_limit: float = Field(30.0, gt=0)
    """No weight gets larger than this."""
    max_nodes: int = Field(10_000, ge=2, le=100_000)
    """A mutation that would add a node more is refused."""


class EpisodesConfig(_Section):
    """The evaluator `episodes`, for environments of gymnasium."""

    number: int = Field(3, ge=1, le=10_000)
    """How many episodes a network acts in."""
    normalise: int = Field(0, ge=0, le=10_000)
    """Observations are scaled by what so many episodes of random actions show; 0: they are not."""


class EsConfig(_Section):
    """The evaluator `es`: weights by an evolution strategy, for any family."""

    steps: int = Field(10, ge=1, le=1_000_000)
    """The steps of a network in a generation."""
    pairs: int = Field(16, ge=1, le=100_000)
    """The mirrored pairs of candidates in a step."""
    deviation: float = Field(0.05, gt=0)
    """How far candidates are from the weights that they try to improve."""
    rate: float = Field(0.02, gt=0)
    """The rate of Adam's steps."""


class TrainingConfig(_Section):
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
    """Half of the training images are mirrored left to right; auto (planned runs): if that is harmless."""
    augment: Annotated[tuple[Augmentation, ...], BeforeValidator(_augment)] = Field(
        (),
        json_schema_extra={
            "allowed": "rotation, scale, colour, noise and cutout, with commas between, or auto, or none"
        },
    )
    """How else training samples are changed; auto (planned runs): by what is measured to help."""
    optimiser: str = Field(
        "Adadelta",
        pattern=r"^[A-Za-z][A-Za-z0-9_]*$",
        json_schema_extra={"allowed": "the name of an optimiser, such as Adadelta, Adam or SGD"},
    )
    """Any optimiser of torch.optim, by its name; created anew in each generation."""
    optimiser_arguments: dict[str, Scalar | tuple[float, ...]] = {}
    """What the optimiser is created with; torch's own values where nothing is given (Adadelta: lr 1.0)."""
    optimiser_state: Literal["fresh", "inherited"] = "fresh"
    """An optimiser begins afresh in each generation, or with what the genes remember (residual with SGD)."""
    decay: Literal["all", "weights"] = "all"
    """Whether weight_decay pulls at everything, or at weights only: not at norms and biases."""
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    """How much of the target is spread evenly over all classes while training."""
    fitness: str = Field(
        "accuracy",
        pattern=r"^[A-Za-z][A-Za-z0-9_.-]*$",
        json_schema_extra={"allowed": "accuracy, balanced_accuracy or the name of a registered function"},
    )
    """What is maximised: accuracy, balanced_accuracy, or the name of a registered function."""
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
        if "auto" in self.augment and len(self.augment) > 1:
            raise ValueError("augment is auto or names of what to use, not both")
        return self

    @property
    def measures_augment(self) -> bool:
        """Whether what samples are changed by is still to be found out."""
        return self.augment == ("auto",)

    def validation_part(self, samples: int) -> float:
        """The part of so many samples that is kept for validation.

        >>> TrainingConfig(validation_fraction=0.2, validation_most=5000).validation_part(50_000)
        0.1
        """
        most = self.validation_most
        return self.validation_fraction if most is None else min(self.validation_fraction, most / samples)


class DataConfig(_Section):
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


class RayConfig(_Section):
    """The engine `ray` (pip install 'epicortex[ray]')."""

    address: str | None = None
    """The cluster to join; by default RAY_ADDRESS, else a Ray is started on this machine."""
    num_cpus: float = Field(1.0, gt=0)
    """Processors a network occupies."""
    num_gpus: float = Field(0.0, ge=0)
    """Graphics processors a network occupies; fractions are fine."""


class MpiConfig(_Section):
    """The engine `mpi` (pip install 'epicortex[mpi]')."""

    chunk: int = Field(1, ge=1)
    """How many networks are sent to a rank at a time; their outcomes come back together."""


class Config(_Section):
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
        learns = self.evaluator in ("backprop", "es")
        return learns and self.training.fitness in ("accuracy", "balanced_accuracy")


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
