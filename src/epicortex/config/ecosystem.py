"""The settings of the ecosystem: its size and limits, and each of the rules that it lives by."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from epicortex.config.section import PartName, Rate, Section

#: What people, and runs of format 1, may say instead of a name.
_SPECIATION: Final = {
    **dict.fromkeys(("true", "yes", "on"), "key"),
    **dict.fromkeys(("false", "no", "off", "none"), "none"),
}


def _speciation(given: object) -> object:
    return _SPECIATION.get(str(given).lower(), given)


class EvolutionConfig(Section):
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


class SpeciationConfig(Section):
    """How founders are spread over the first species."""

    founders: Literal["varied", "alike"] = "varied"
    """Founders are varied, or all have the structure to start from, each with new weights of its own."""
    grown_from: Literal["minimal", "previous"] = "minimal"
    """Each further initial species grows from the minimal one, or from the one before (published code)."""
    refused: Literal["founding", "structural", "nothing"] = "founding"
    """At the limit founding a species is refused, or all change of structure (published code), or nothing."""
    classes: tuple[Annotated[float, Field(gt=0, le=1)], ...] = Field((1.0, 0.5, 0.25), min_length=1)
    """The speciation `cost`: the classes, as parts of the cost of the largest founder."""


class SelectionConfig(Section):
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


class CullingConfig(Section):
    """The culling `paper`."""

    spared: Literal["species", "ecosystem"] = "species"
    """Culling spares the champion of every species, or only the ecosystem's (published code)."""
    classes: bool = True
    """The culling `beaten`: whether a class of cost ends once a dearer one is clearly better."""


class BudgetConfig(Section):
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
