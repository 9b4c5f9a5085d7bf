"""The family as settings ask for it, and the protocol that it fulfils."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from epicortex.config import Config
from epicortex.errors import ConfigError
from epicortex.families.family import Family
from epicortex.families.residual import Phenotype, ResidualFamily, ResidualOptions
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
    section = SimpleNamespace(mutations=["width", "kernel"], largest_kernel=5, unrelated=1)
    options = ResidualOptions.from_section(section)
    assert options == ResidualOptions(mutations=("width", "kernel"), largest_kernel=5)


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
