"""A phenotype is a genome with weights that fit, which nobody can write into."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicortex.errors import GenomeError
from epicortex.families.genes import Genes
from epicortex.families.layered import draw_phenotype
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
from epicortex.families.layered.phenotype import Phenotype
from epicortex.families.layered.placing import kernel_mask
from tests.families.layered.reference import fingerprint, weights_around_kernels
from tests.strategies import phenotypes

GENOME = Genome((1, 8, 8), (ConvLayer(((3, 3), (1, 3)), (1, 1)), FullLayer(4)), 3)


def arrays(phenotype: Phenotype) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    return [array for genes in phenotype.weights for array in genes.values()]


@pytest.mark.parametrize("change", ["weight", "bias", "dtype", "missing", "surplus"])
def test_weights_that_do_not_fit_are_refused_by_naming_the_layer(change: str) -> None:
    good = draw_phenotype(GENOME, rng=np.random.default_rng(1)).weights
    weight, bias = good[1].values()
    bad = {
        "weight": (good[0], Genes(weight[:, :-1], bias), good[2]),
        "bias": (good[0], Genes(weight, bias[:-1]), good[2]),
        "dtype": (good[0], Genes(weight.astype(np.float64), bias), good[2]),
        "missing": good[:2],
        "surplus": (*good, good[2]),
    }[change]
    with pytest.raises(GenomeError, match=r"3 layers" if len(bad) != 3 else r"layer 2 \(full\)") as error:
        Phenotype(GENOME, bad)
    assert "\n" not in str(error.value)


def test_weights_around_a_kernel_are_refused_by_naming_it() -> None:
    good = draw_phenotype(GENOME, rng=np.random.default_rng(1)).weights
    for value in (1.0, np.nan, 1e-45):
        weight = np.array(good[0].weight)
        weight[1, 0, 0, 2] = value
        with pytest.raises(GenomeError, match=r"layer 1 \(conv\), kernel 2"):
            Phenotype(GENOME, (Genes(weight, good[0].bias), *good[1:]))


@given(phenotypes())
def test_nobody_writes_into_a_phenotype_nor_into_its_copies(phenotype: Phenotype) -> None:
    before = fingerprint(phenotype)
    for each in (
        phenotype,
        copy.deepcopy(phenotype),
        copy.copy(phenotype),
        pickle.loads(pickle.dumps(phenotype)),
    ):
        assert each.same_bits(phenotype)
        assert fingerprint(each) == before
        for array in arrays(each):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 1


@given(phenotypes())
def test_drawn_weights_fit_and_are_zero_around_kernels(phenotype: Phenotype) -> None:
    assert weights_around_kernels(phenotype) == 0
    assert all(array.dtype == np.float32 for array in arrays(phenotype))
    assert phenotype.parameters == phenotype.genome.parameters


def test_new_weights_and_biases_are_normal_with_a_deviation_of_a_tenth() -> None:
    genome = Genome((1, 28, 28), (ConvLayer(((5, 5),) * 40, (1, 1)), FullLayer(10)), 10)
    drawn = draw_phenotype(genome, rng=np.random.default_rng(4))
    for array in (*arrays(drawn), np.concatenate([a.ravel() for a in arrays(drawn)])):
        spread = 5 / np.sqrt(array.size)
        assert abs(array.mean()) < 0.1 * spread
        assert array.std() == pytest.approx(0.1, rel=spread)
    whole = np.sort(np.concatenate([a.ravel() for a in arrays(drawn)]))
    for share, quantile in ((0.0228, -0.2), (0.1587, -0.1), (0.8413, 0.1), (0.9772, 0.2)):
        assert whole[int(share * whole.size)] == pytest.approx(quantile, abs=0.002)


def test_same_bits_sees_one_bit() -> None:
    one = draw_phenotype(GENOME, rng=np.random.default_rng(1))
    weight = np.array(one.weights[2].weight)
    weight.view(np.uint32)[0, 0] ^= 1
    other = Phenotype(GENOME, (*one.weights[:2], Genes(weight, one.weights[2].bias)))
    assert one.same_bits(draw_phenotype(GENOME, rng=np.random.default_rng(1)))
    assert not one.same_bits(other)
    shape = Genome((1, 8, 8), (ConvLayer(((3, 3), (3, 3)), (1, 1)), FullLayer(4)), 3)
    assert not one.same_bits(Phenotype(shape, one.weights))


@given(
    st.integers(1, 3).flatmap(lambda n: st.lists(st.tuples(*[st.sampled_from([1, 3, 5, 7])] * n), min_size=1))
)
def test_the_mask_is_each_kernel_on_the_centre(kernels: list[tuple[int, ...]]) -> None:
    mask = kernel_mask(kernels)
    extent = tuple(max(sizes) for sizes in zip(*kernels, strict=True))
    assert mask.shape == (len(kernels), 1, *extent)
    for node, kernel in enumerate(kernels):
        for at in itertools.product(*map(range, extent)):
            inside = all(
                (whole - size) // 2 <= x < (whole + size) // 2
                for x, whole, size in zip(at, extent, kernel, strict=True)
            )
            assert mask[(node, 0, *at)] == inside
