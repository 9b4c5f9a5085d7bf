"""The family as settings ask for it, and the protocol that it fulfils."""

from __future__ import annotations

import json

import numpy as np
import pytest

from epicortex.config import Config, changed
from epicortex.errors import ConfigError, GenomeError
from epicortex.families.family import Direction, Family
from epicortex.families.residual import Genome, Phenotype, ResidualFamily, ResidualOptions
from epicortex.families.residual.operators import Mutated
from epicortex.families.residual.options import MUTATIONS
from tests.families.residual.world import PROBLEMS, experienced, family


def test_it_fulfils_the_protocol() -> None:
    kin: Family[Phenotype] = family()
    assert kin.name == "residual"


def test_a_limit_of_parameters_comes_from_the_settings_of_evolution() -> None:
    config = Config()
    limited = config.model_copy(
        update={"evolution": config.evolution.model_copy(update={"max_parameters": 400})}
    )
    kin = ResidualFamily.from_config(limited, PROBLEMS["image"])
    assert kin.options.max_parameters == 400
    assert kin.parameters(kin.minimal(np.random.default_rng(1))) <= 400
    assert ResidualFamily.from_config(config, PROBLEMS["image"]).options == ResidualOptions()


def test_options_come_from_a_section_of_their_names() -> None:
    config = changed(Config(), residual={"mutations": ["width", "kernel"], "largest_kernel": 5})
    options = ResidualOptions.from_config(config)
    assert options == ResidualOptions(mutations=("width", "kernel"), largest_kernel=5)


def test_a_run_may_start_from_a_genome() -> None:
    start = experienced("image", 1).genome
    config = changed(Config(), evolution={"start_genome": json.dumps(start.to_dict())})
    kin, rng = ResidualFamily.from_config(config, PROBLEMS["image"]), np.random.default_rng(1)
    first, second = kin.minimal(rng), kin.minimal(rng)
    assert str(first.genome) == str(second.genome) == str(start)
    assert kin.similarity(first, second) == 0
    with pytest.raises(GenomeError, match="is expected"):
        ResidualFamily.from_config(config, PROBLEMS["table"])
    wrong = changed(Config(), evolution={"start_genome": "[1"})
    with pytest.raises(GenomeError, match="not a genome in JSON"):
        ResidualFamily.from_config(wrong, PROBLEMS["image"])


def test_an_operator_of_ones_own_comes_on_top() -> None:
    class Nothing:
        name, keeps = "nothing", True

        def possible(self, genome: Genome, direction: Direction) -> bool:
            return True

        def apply(self, phenotype: Phenotype, direction: Direction, rng: np.random.Generator) -> Mutated:
            return Mutated(phenotype)

    config = changed(Config(), evolution={"operators": [*Config().evolution.operators, "nothing"]})
    kin = ResidualFamily.from_config(config, PROBLEMS["image"], [Nothing()])
    assert [operator.name for operator in kin.operators] == [*MUTATIONS, "nothing"]
    with pytest.raises(ConfigError, match="no operator is called 'nothing'"):
        ResidualFamily.from_config(config, PROBLEMS["image"])


@pytest.mark.parametrize("kind", PROBLEMS)
def test_kernels_are_cut_out_of_their_layers(kind: str) -> None:
    phenotype = experienced(kind, 4, mutations=8)
    flat = [weight for part in family(kind).kernels(phenotype) for weight in part]
    layers = [(layer, genes) for layer, genes in phenotype.pairs() if layer.stride and layer.role != "out"]
    assert [weight.shape[1:] for weight in flat] == [shape for layer, _ in layers for shape in layer.kernels]
    whole = sum(float(np.square(genes.weight).sum()) for _, genes in layers)
    assert sum(float(np.square(weight).sum()) for weight in flat) == pytest.approx(whole, rel=1e-4)


@pytest.mark.parametrize(
    "wrong", [{"largest_kernel": 4}, {"kernel_mix": 2.0}, {"max_cost": 0}, {"mutations": ("wings",)}]
)
def test_options_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="residual"):
        ResidualOptions(**wrong)  # type: ignore[arg-type]


def test_a_family_needs_operators_of_different_names() -> None:
    with pytest.raises(ConfigError, match="names of their own"):
        ResidualFamily(PROBLEMS["image"], ResidualOptions(mutations=("width", "width")))
    with pytest.raises(ConfigError, match="at least one"):
        ResidualFamily(PROBLEMS["image"], ResidualOptions(mutations=()))


def test_a_clone_competes_unchanged() -> None:
    phenotype = experienced("image", 1)
    assert family().clone(phenotype, np.random.default_rng(1)).same_bits(phenotype)


def test_a_species_is_a_class_of_cost() -> None:
    kin, rng = family(), np.random.default_rng(1)
    phenotype = kin.minimal(rng)
    keys = set()
    for _ in range(40):
        low = int(kin.key(phenotype).removeprefix("cost 2^"))
        assert 2**low <= kin.cost(phenotype) < 2 ** (low + 1)
        keys.add(low)
        phenotype = kin.grow(phenotype, rng)
    assert len(keys) > 2
