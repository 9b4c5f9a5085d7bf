"""A network is an ordinary module made from a phenotype; its plain twin needs nothing of EpiCortex."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor, nn
from torch.nn import functional

from epicortex.errors import ConfigError
from epicortex.families.activations import Activations
from epicortex.families.family import Array, Shape
from epicortex.families.layered import draw_phenotype
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome, Layer
from epicortex.families.layered.network import Network
from epicortex.families.layered.phenotype import Phenotype
from epicortex.families.modules import SmoothRectifier, activation
from tests.families.layered.reference import fingerprint
from tests.strategies import INPUT_SHAPES, SMALL_SHAPES, phenotypes

GENOMES: dict[str, Genome] = {
    "table": Genome((20,), (FullLayer(6), FullLayer(4)), 3),
    "signal": Genome((2, 40), (ConvLayer(((3,), (9,)), (2,)), ConvLayer(((5,),), (1,)), FullLayer(4)), 3),
    "image": Genome(
        (3, 12, 10),
        (ConvLayer(((3, 3), (5, 1), (1, 5)), (2, 1)), ConvLayer(((1, 1), (3, 3)), (1, 2)), FullLayer(6)),
        4,
    ),
    "volume": Genome((1, 6, 8, 6), (ConvLayer(((3, 1, 1), (1, 3, 3)), (1, 2, 2)),), 3),
    "minimal": Genome((1, 8, 8), (), 10),
}


def built(name: str, seed: int = 1, **options: Any) -> Network:
    return Network(draw_phenotype(GENOMES[name], rng=np.random.default_rng(seed)), **options)


def batch(shape: Shape, samples: int = 5) -> Tensor:
    return torch.randn(samples, *shape, generator=torch.Generator().manual_seed(3))


def step(network: nn.Module, x: Tensor) -> None:
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    backward(functional.cross_entropy(network(x), torch.zeros(len(x), dtype=torch.long)))
    optimiser.step()


def backward(loss: Tensor) -> None:
    loss.backward()  # type: ignore[no-untyped-call]


def by_hand(phenotype: Phenotype, x: Tensor) -> Tensor:
    """The network worked out node by node with one-kernel convolutions and dot products."""
    convolve: Any = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}.get(x.ndim - 2)
    for index, (layer, genes) in enumerate(zip(phenotype.genome.layers, phenotype.weights, strict=True), 1):
        w, b = torch.tensor(np.array(genes.weight)), torch.tensor(np.array(genes.bias))
        if isinstance(layer, ConvLayer):
            responses = []
            for node, kernel in enumerate(layer.kernels):
                centre = w[node]
                for axis, size in enumerate(kernel, 1):
                    centre = centre.narrow(axis, (centre.shape[axis] - size) // 2, size)
                padding = tuple(size // 2 for size in kernel)
                responses.append(convolve(x, centre[None], b[node : node + 1], layer.stride, padding))
            x = torch.cat(responses, 1)
            x = torch.maximum(x, 0.01 * x)
        else:
            flat = x.reshape(len(x), -1)
            x = torch.stack([(flat * row).sum(1) + shift for row, shift in zip(w, b, strict=True)], 1)
            if index < len(phenotype.genome.layers):
                x = ((x**2 + 4) ** 0.5 + x) / 2 - 1
    return x


@settings(max_examples=40)
@given(phenotypes(SMALL_SHAPES + INPUT_SHAPES))
def test_the_output_is_that_of_the_network_worked_out_by_hand(phenotype: Phenotype) -> None:
    x = batch(phenotype.genome.input_shape, samples=2)
    with torch.no_grad():
        logits = Network(phenotype)(x)
    assert logits.shape == (2, phenotype.genome.classes)
    torch.testing.assert_close(logits, by_hand(phenotype, x), atol=1e-5, rtol=1e-4)


@settings(max_examples=40)
@given(phenotypes(SMALL_SHAPES + INPUT_SHAPES))
def test_the_plain_twin_is_equal_and_of_stock_parts_only(phenotype: Phenotype) -> None:
    network = Network(phenotype)
    plain = network.plain()
    x = batch(phenotype.genome.input_shape, samples=2)
    with torch.no_grad():
        torch.testing.assert_close(plain(x), network(x), atol=1e-6, rtol=0)
    for module in plain.children():
        assert type(module).__module__.startswith("torch.nn.modules"), type(module)
    for node in plain.graph.nodes:
        if node.op == "call_function":
            assert (getattr(node.target, "__module__", None) or "").split(".")[0] in {"_operator", "torch"}
    assert list(plain.buffers()) == []


@settings(max_examples=60)
@given(phenotypes(SMALL_SHAPES + INPUT_SHAPES))
def test_closed_form_counts_equal_those_of_the_module(phenotype: Phenotype) -> None:
    network, genome = Network(phenotype), phenotype.genome
    assert network.parameter_count() == genome.parameters
    dense = sum(parameter.numel() for parameter in network.parameters())
    zeros = sum(
        count_zeros(genes.weight, layer)
        for layer, genes in zip(genome.layers, phenotype.weights, strict=True)
    )
    assert dense - zeros == genome.parameters
    shapes = [tuple(p.shape) for name, p in network.named_parameters() if name.endswith("weight")]
    assert shapes == [weights.weight.shape for weights in phenotype.weights]


def count_zeros(weight: Array, layer: Layer) -> int:
    """The entries around kernels, counted by what each kernel leaves of the largest."""
    if not isinstance(layer, ConvLayer):
        return 0
    _, channels, *extent = weight.shape
    return sum(channels * (math.prod(extent) - math.prod(kernel)) for kernel in layer.kernels)


def test_the_count_does_not_depend_on_the_precision() -> None:
    genome = Genome((1, 28, 28), (ConvLayer(((13, 13), (9, 7), (3, 1)), (1, 1)),), 2)
    network = Network(draw_phenotype(genome, rng=np.random.default_rng(1)))
    assert network.to(torch.bfloat16).parameter_count() == genome.parameters


@settings(max_examples=40)
@given(phenotypes(SMALL_SHAPES + INPUT_SHAPES))
def test_weights_come_out_as_they_went_in(phenotype: Phenotype) -> None:
    assert Network(phenotype).phenotype().same_bits(phenotype)


@pytest.mark.parametrize("name", GENOMES)
def test_training_leaves_the_phenotype_as_it_was(name: str) -> None:
    phenotype = draw_phenotype(GENOMES[name], rng=np.random.default_rng(1))
    before = fingerprint(phenotype)
    network = Network(phenotype)
    step(network, batch(network.genome.input_shape))
    trained = network.phenotype()
    assert fingerprint(phenotype) == before
    assert not trained.same_bits(phenotype)
    kept = fingerprint(trained)
    step(network, batch(network.genome.input_shape))
    assert fingerprint(trained) == kept, "a phenotype taken out must not follow the network"


@pytest.mark.parametrize("name", GENOMES)
def test_every_weight_learns(name: str) -> None:
    network = built(name)
    network(batch(network.genome.input_shape)).square().sum().backward()
    gradients = [parameter.grad for parameter in network.parameters()]
    learning = sum(int(torch.count_nonzero(grad)) for grad in gradients if grad is not None)
    assert learning == network.genome.parameters


@pytest.mark.parametrize("name", GENOMES)
def test_building_draws_from_no_global_generator(name: str) -> None:
    phenotype = draw_phenotype(GENOMES[name], rng=np.random.default_rng(1))
    torch_state, numpy_state = torch.random.get_rng_state(), np.random.get_state(legacy=False)  # noqa: NPY002
    before = pickle.dumps(numpy_state)
    network = Network(phenotype)
    network.plain()
    network.phenotype()
    copy.deepcopy(network)
    assert torch.equal(torch.random.get_rng_state(), torch_state)
    assert pickle.dumps(np.random.get_state(legacy=False)) == before  # noqa: NPY002


@pytest.mark.parametrize("name", GENOMES)
def test_it_is_an_ordinary_module(name: str) -> None:
    network, other = built(name), built(name, seed=2)
    x = batch(network.genome.input_shape)
    assert not torch.equal(network(x), other(x))
    other.load_state_dict(network.state_dict())
    assert torch.equal(network(x), other(x))
    assert torch.equal(network(x), copy.deepcopy(network)(x))
    assert set(network.state_dict()) == {
        f"layers.{i}.{n}" for i in range(len(network.layers)) for n in ("weight", "bias")
    }
    assert network.train().training
    assert not any(module.training for module in network.eval().modules())
    double = copy.deepcopy(network).to(torch.float64)
    assert double(x.double()).dtype == torch.float64
    torch.testing.assert_close(double(x.double()).float(), network(x))
    assert network.to("cpu") is network
    assert network.to("meta")(x.to("meta")).device.type == "meta"


def test_the_plain_twin_has_the_networks_precision_mode_and_own_weights() -> None:
    network = built("image").double().eval()
    plain = network.plain()
    x = batch(network.genome.input_shape).double()
    assert not plain.training
    assert built("image").train().plain().training
    before = plain(x)
    torch.testing.assert_close(before, network(x), atol=1e-12, rtol=0)
    step(network, x)
    assert torch.equal(plain(x), before)
    step(plain, x)
    assert not torch.equal(plain(x), before)


def test_what_was_written_around_kernels_leaves_no_trace_in_what_comes_out() -> None:
    network, clean = built("image"), built("image")
    with torch.no_grad():
        for layer in network.layers[:2]:
            assert isinstance(layer.weight, nn.Parameter)
            layer.weight.copy_(torch.where(layer.weight == 0, torch.nan, layer.weight))
    assert network.phenotype().same_bits(clean.phenotype())
    x = batch(network.genome.input_shape)
    assert torch.equal(network.plain()(x), clean.plain()(x))


ELSEWHERE = """
import pickle, sys, torch
if {blocked}:
    sys.modules["epicortex"] = None
torch.set_num_threads(1)
module, x = pickle.load(sys.stdin.buffer)
logits = module(x)
logits.square().sum().backward()
with torch.no_grad():
    for parameter in module.parameters():
        parameter -= 0.1 * parameter.grad
        parameter.grad = None
assert {blocked} or "epicortex.families.layered.network" in sys.modules
pickle.dump((logits.detach(), module), sys.stdout.buffer)
"""


def run_elsewhere(module: nn.Module, x: Tensor, *, blocked: bool) -> tuple[Tensor, Any]:
    """Send a module to a fresh process, use and train it there, and get it back."""
    run = subprocess.run(
        [sys.executable, "-c", ELSEWHERE.format(blocked=blocked)],
        input=pickle.dumps((module, x)),
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr.decode()
    logits, again = pickle.loads(run.stdout)
    return logits, again


def test_a_network_is_pickled_to_another_process_and_back() -> None:
    network = built("image")
    x = batch(network.genome.input_shape)
    logits, again = run_elsewhere(network, x, blocked=False)
    torch.testing.assert_close(logits, network(x).detach(), atol=1e-6, rtol=0)
    assert again.genome == network.genome
    trained = again.phenotype()
    assert not trained.same_bits(network.phenotype())
    for layer in again.layers[:2]:
        assert torch.equal(layer.weight == 0, layer.kernel_weight() == 0)


def test_the_plain_twin_is_unpickled_where_epicortex_cannot_be_imported() -> None:
    network = built("image")
    x = batch(network.genome.input_shape)
    logits, _ = run_elsewhere(network.plain(), x, blocked=True)
    torch.testing.assert_close(logits, network(x).detach(), atol=1e-6, rtol=0)


def test_the_smooth_rectifier_is_the_papers() -> None:
    x = torch.linspace(-50, 50, 1001, dtype=torch.float64)
    expected = [0.5 * ((value * value + 4) ** 0.5 + value) - 1 for value in x.tolist()]
    torch.testing.assert_close(SmoothRectifier()(x), torch.tensor(expected, dtype=torch.float64))
    assert SmoothRectifier()(torch.tensor(0.0)).item() == 0


@pytest.mark.parametrize("name", ["leaky_relu", "relu", "elu", "gelu", "silu", "tanh", "smooth"])
def test_every_activation_can_be_used_in_both_kinds_of_layers(name: str) -> None:
    network = built("image", activations=Activations(conv=name, full=name))
    x = batch(network.genome.input_shape)
    with torch.no_grad():
        hidden = x
        for layer in network.layers[:2]:
            hidden = activation(name)(layer(hidden))
        expected = network.layers[3](activation(name)(network.layers[2](hidden.flatten(1))))
        torch.testing.assert_close(network(x), expected)
        torch.testing.assert_close(network.plain()(x), expected, atol=1e-6, rtol=0)


def test_the_leaky_slope_is_a_hundredth() -> None:
    assert activation("leaky_relu")(torch.tensor(-3.0)).item() == pytest.approx(-0.03)


def test_an_unknown_activation_is_refused_with_a_guess() -> None:
    with pytest.raises(ConfigError, match=r"'reluu'.*'relu'"):
        built("image", activations=Activations(conv="reluu"))
