"""A network is an ordinary module made from a phenotype; its plain twin needs nothing of EpiCortex."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from epicortex.errors import GenomeError
from epicortex.families.residual import Genome, Phenotype
from epicortex.families.residual.drawing import draw_phenotype
from epicortex.families.residual.genome import POOLING_GAIN
from epicortex.families.residual.layers import kernel_mask
from epicortex.families.residual.momentum import momentum, with_momentum
from epicortex.families.residual.network import Network
from tests.families.residual.world import PROBLEMS, batch, experienced, outputs, sgd, trained
from tests.strategies import seeds

kinds = st.sampled_from(sorted(PROBLEMS))


def by_hand(phenotype: Phenotype, x: Tensor) -> Tensor:
    """The network in evaluation mode, node by node, with one-kernel convolutions and sums."""
    genome = phenotype.genome
    genes = iter(phenotype.pairs())

    def unit(maps: Tensor) -> Tensor:
        layer, found = next(genes)
        if not layer.sources:
            of = {name: torch.tensor(array) for name, array in found.items()}
            return (maps - of["mean"]) / (of["var"] + 1e-5).sqrt() * of["gamma"] + of["bias"]
        convolve: Any = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}.get(genome.spatial)
        nodes = []
        for node, kernel in enumerate(layer.kernels):
            weight = torch.tensor(found.weight[node])
            for axis, size in enumerate(kernel, 1):
                weight = weight.narrow(axis, (weight.shape[axis] - size) // 2, size)
            half = tuple(size // 2 for size in kernel)
            y = convolve(maps, weight[None], None, layer.stride, half)[:, 0] if kernel else maps @ weight
            gamma, shift, mean, var = (float(found[name][node]) for name in ("gamma", "bias", "mean", "var"))
            nodes.append((y - mean) / (var + 1e-5) ** 0.5 * gamma + shift)
        return torch.stack(nodes, 1)

    lowest = 0.0 if genome.trunk == "relu" else -torch.inf
    for stage in genome.stages:
        x = unit(x).clamp(min=lowest)
        for _ in stage.blocks:
            x = (x + unit(unit(x).clamp(min=0))).clamp(min=lowest)
    _, out = next(genes)
    if genome.spatial:
        x = POOLING_GAIN * x.flatten(2).mean(2)
    return x @ torch.tensor(out.weight).reshape(genome.outputs, -1).T + torch.tensor(out.bias)


@given(seeds, kinds)
@settings(max_examples=30)
def test_a_network_computes_what_its_genes_say(seed: int, kind: str) -> None:
    phenotype, x = experienced(kind, seed % 1000), batch(kind, seed=seed)
    found = outputs(phenotype, x, training=False)
    torch.testing.assert_close(found, by_hand(phenotype, x), rtol=1e-3, atol=1e-4)


@given(seeds, kinds)
@settings(max_examples=30)
def test_zeros_around_kernels_stay_zeros_through_training(seed: int, kind: str) -> None:
    network = Network(experienced(kind, seed % 1000))
    before = network.phenotype()
    optimiser = trained(network, batch(kind), steps=3)
    for layer, unit in zip(network.genome.layers, network.units, strict=False):
        if not layer.sources:
            continue
        outside = torch.from_numpy(~kernel_mask(layer.kernels)).expand(layer.weight_shape)
        assert isinstance(unit.weight, nn.Parameter)
        for tensor in (unit.weight, optimiser.state[unit.weight]["momentum_buffer"]):
            assert not tensor[outside].any()
    assert not network.phenotype().same_bits(before)


@given(seeds, kinds)
@settings(max_examples=20)
def test_the_plain_twin_computes_the_same_of_stock_layers(seed: int, kind: str) -> None:
    network = Network(experienced(kind, seed % 1000)).eval()
    plain, x = network.plain(), batch(kind, seed=seed)
    torch.testing.assert_close(plain(x), network(x), rtol=1e-4, atol=1e-5)
    names = {type(module).__module__ for module in plain.modules()}
    assert not {name for name in names if name.startswith("epicortex")}
    torch.testing.assert_close(plain.train()(x), network.train()(x), rtol=1e-4, atol=1e-5)


def test_the_plain_twin_is_unpickled_without_epicortex(tmp_path: Path) -> None:
    network, x = Network(experienced("image", 3)).eval(), batch()
    (tmp_path / "plain.pickle").write_bytes(pickle.dumps((network.plain(), x, network(x).detach())))
    script = (
        "import pickle, sys, torch\n"
        "sys.modules['epicortex'] = None\n"
        "plain, x, expected = pickle.load(open('plain.pickle', 'rb'))\n"
        "torch.testing.assert_close(plain(x), expected, rtol=1e-4, atol=1e-5)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)


def pooled(phenotype: Phenotype, pool: int) -> Phenotype:
    genome: Genome = replace(phenotype.genome, pool=pool)
    return draw_phenotype(genome, np.random.default_rng(1))


@pytest.mark.parametrize("kind", ["image", "grey image", "signal", "table", "rectified table"])
@pytest.mark.parametrize("pool", [1, 2])
def test_onnx_and_torch_export_give_the_same_outputs(kind: str, pool: int, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    phenotype = experienced(kind, 5)
    if pool > 1:
        if "table" in kind:
            pytest.skip("a table has no maps to pool")
        phenotype = pooled(phenotype, pool)
    network, x = Network(phenotype).eval(), batch(kind)
    plain = network.plain().requires_grad_(False)
    expected = network(x).detach()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.export.export(
            plain, (x[:2],), dynamic_shapes=({0: torch.export.Dim("batch")},), strict=False
        )
        program = torch.onnx.export(exported, dynamo=True, optimize=True, verbose=False)
    assert program is not None
    torch.testing.assert_close(exported.module()(x), expected, rtol=1e-4, atol=1e-5)
    program.save(tmp_path / "network.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "network.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-3, atol=1e-4)


def test_pooling_to_a_map_keeps_places_apart() -> None:
    phenotype = pooled(experienced("image", 2), 2)
    network, x = Network(phenotype).eval(), batch()
    assert network.out.in_features == 4 * phenotype.genome.stages[-1].width
    assert phenotype.genome.parameters == network.parameter_count()
    torch.testing.assert_close(network.plain()(x), network(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [(5, 5), (20, 20), (31, 17)])
def test_a_network_takes_images_of_any_size(size: tuple[int, int]) -> None:
    network = Network(experienced("image", 1)).eval()
    x = torch.randn(3, 3, *size, generator=torch.Generator().manual_seed(1))
    assert network(x).shape == (3, 4)
    torch.testing.assert_close(network.plain()(x), network(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", sorted(PROBLEMS))
def test_one_sample_alone_can_be_trained_on(kind: str) -> None:
    phenotype = experienced(kind, 4)
    x = batch(kind, 1) if "table" in kind else batch(kind, 1)[..., :1]
    assert torch.isfinite(outputs(phenotype, x, training=True)).all()


def test_making_networks_leaves_the_global_generator_alone() -> None:
    phenotype = experienced("image", 1)
    before = torch.get_rng_state()
    Network(phenotype).plain()
    assert torch.equal(torch.get_rng_state(), before)


def test_training_a_network_leaves_its_phenotype_as_it_was() -> None:
    phenotype = experienced("image", 1)
    before = phenotype.genes[0].weight.tobytes()
    network = Network(phenotype)
    assert network.phenotype().same_bits(phenotype)
    trained(network, batch())
    assert phenotype.genes[0].weight.tobytes() == before


@pytest.mark.parametrize("kind", sorted(PROBLEMS))
def test_training_goes_on_with_the_momentum_that_was_inherited(kind: str) -> None:
    x, start = batch(kind), experienced(kind, 1)
    straight, first = Network(start), Network(start)
    trained(straight, x, steps=2)
    half = with_momentum(first, trained(first, x, steps=1).state)

    second, forgetful = Network(half), Network(half)
    optimiser = sgd(second)
    optimiser.state.update(momentum(half, second))
    trained(second, x, 1, optimiser)
    trained(forgetful, x, 1)

    assert _distance(second, straight) < 1e-6
    assert _distance(forgetful, straight) > 1e-4
    with pytest.raises(GenomeError, match="same genome"):
        momentum(half, Network(experienced(kind, 2)))


def _distance(one: Network, other: Network) -> float:
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    return max(float((a - b).detach().abs().max()) for a, b in pairs)
