"""An irregular convolution equals its kernels convolved one by one, and its zeros stay zero."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import correlate
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from epicortex.errors import GenomeError
from epicortex.families.layered.irregular import IrregularConv

CASES: dict[str, tuple[int, tuple[tuple[int, ...], ...], tuple[int, ...], tuple[int, ...]]] = {
    "1d": (2, ((3,), (7,), (1,), (5,)), (2,), (20,)),
    "2d": (3, ((3, 3), (5, 1), (1, 7), (1, 1)), (2, 1), (14, 15)),
    "3d": (2, ((3, 1, 1), (1, 3, 5), (3, 3, 3)), (1, 2, 1), (6, 7, 10)),
    "equal": (2, ((3, 5), (3, 5)), (1, 1), (8, 10)),
    "added": (10, ((1, 5), (5, 1), (1, 1), (3, 1)), (1, 1), (9, 10)),
    "split": (6, ((7, 7), (1, 1), (3, 1), (1, 1)) * 12, (2, 1), (14, 9)),
}


def irregular(case: str, seed: int = 1, dtype: torch.dtype = torch.float32) -> IrregularConv:
    channels, kernels, stride, _ = CASES[case]
    generator = torch.Generator().manual_seed(seed)
    extent = [max(sizes) for sizes in zip(*kernels, strict=True)]
    weight = torch.randn(len(kernels), channels, *extent, generator=generator, dtype=dtype)
    bias = torch.randn(len(kernels), generator=generator, dtype=dtype)
    return IrregularConv(channels, kernels, stride, weight=weight, bias=bias)


def batch(case: str, seed: int = 2, dtype: torch.dtype = torch.float32) -> Tensor:
    channels, _, _, spatial = CASES[case]
    return torch.randn(3, channels, *spatial, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def box(layer: IrregularConv, node: int) -> tuple[slice, ...]:
    """Where in the layer's weight a kernel's own entries are."""
    pairs = list(zip(layer.weight.shape[2:], layer.kernels[node], strict=True))
    return tuple(slice((whole - size) // 2, (whole - size) // 2 + size) for whole, size in pairs)


def entries_outside(layer: IrregularConv, tensor: Tensor) -> Tensor:
    """The entries around the kernels, found one by one."""
    inside = torch.zeros_like(tensor, dtype=torch.bool)
    for node in range(len(layer.kernels)):
        inside[node][(slice(None), *box(layer, node))] = True
    return tensor[~inside]


def one_by_one(layer: IrregularConv, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Every kernel as a convolution of its own, with padding of its own."""
    convolve: Any = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}[x.ndim - 2]
    responses = []
    for node, kernel in enumerate(layer.kernels):
        alone = weight[node][(slice(None), *box(layer, node))].unsqueeze(0)
        padding = tuple(size // 2 for size in kernel)
        responses.append(convolve(x, alone, bias[node : node + 1], stride=layer.stride, padding=padding))
    return torch.cat(responses, dim=1)


@pytest.mark.parametrize("case", CASES)
def test_the_result_is_that_of_separate_kernels(case: str) -> None:
    layer, x = irregular(case), batch(case)
    torch.testing.assert_close(layer(x), one_by_one(layer, x, layer.weight, layer.bias))


@pytest.mark.parametrize("case", CASES)
def test_the_result_is_that_of_a_plain_correlation(case: str) -> None:
    """Without torch: each kernel correlated with each channel, then every stride-th position."""
    layer, x = irregular(case), batch(case)
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    result = layer(x).detach().numpy()
    for sample, node in itertools.product(range(len(x)), range(len(layer.kernels))):
        kernel = weight[node][(slice(None), *box(layer, node))]
        channels = zip(x[sample].numpy().astype(np.float64), kernel.astype(np.float64), strict=True)
        whole = sum(correlate(plane, part, mode="same", method="direct") for plane, part in channels)
        steps = tuple(slice(None, None, step) for step in layer.stride)
        np.testing.assert_allclose(result[sample, node], whole[steps] + bias[node], atol=1e-4)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from([1, 3, 5]), st.sampled_from([1, 3, 5, 7])), min_size=1, max_size=6),
    st.tuples(st.integers(1, 5), st.integers(1, 7)),
    st.integers(1, 3),
)
def test_any_odd_shapes_and_strides_give_the_separate_kernels(
    kernels: list[tuple[int, int]], stride: tuple[int, int], channels: int
) -> None:
    generator = torch.Generator().manual_seed(1)
    extent = [max(sizes) for sizes in zip(*kernels, strict=True)]
    weight = torch.randn(len(kernels), channels, *extent, generator=generator)
    bias = torch.randn(len(kernels), generator=generator)
    layer = IrregularConv(channels, kernels, stride, weight=weight, bias=bias)
    x = torch.randn(2, channels, 10, 14, generator=generator).requires_grad_()
    result = layer(x)
    assert result.shape[2:] == (-(-10 // stride[0]), -(-14 // stride[1]))
    weight, bias, twin = (t.detach().clone().requires_grad_() for t in (weight, bias, x))
    expected = one_by_one(layer, twin, weight, bias)
    torch.testing.assert_close(result, expected)
    backward(result.square().sum())
    backward(expected.square().sum())
    for ours, theirs in ((layer.weight, weight), (layer.bias, bias), (x, twin)):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_separate_kernels_and_zero_around_them(case: str) -> None:
    layer, x = irregular(case, dtype=torch.float64), batch(case, dtype=torch.float64).requires_grad_()
    weight = layer.weight.detach().clone().requires_grad_()
    bias, twin = layer.bias.detach().clone().requires_grad_(), x.detach().clone().requires_grad_()
    layer(x).square().sum().backward()
    backward(one_by_one(layer, twin, weight, bias).square().sum())
    for ours, theirs in ((layer.weight, weight), (layer.bias, bias), (x, twin)):
        assert ours.grad is not None
        assert theirs.grad is not None
        torch.testing.assert_close(ours.grad, theirs.grad)
    assert layer.weight.grad is not None
    assert not entries_outside(layer, layer.weight.grad).any()


def backward(loss: Tensor) -> None:
    loss.backward()  # type: ignore[no-untyped-call]


OPTIMISERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, weight_decay=0.1, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.5),
    "Adadelta": lambda p: torch.optim.Adadelta(p, lr=1.0),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
}


def steps(layer: IrregularConv, optimiser: torch.optim.Optimizer, case: str, count: int = 4) -> None:
    """Train on random targets, and check after each step that kernels moved and zeros did not."""
    for step in range(count):
        before = layer.weight.detach().clone()
        optimiser.zero_grad()
        result = layer(batch(case, seed=step))
        backward((result - torch.ones_like(result)).square().mean())
        optimiser.step()
        bits = entries_outside(layer, layer.weight.detach()).view(torch.int32)
        assert not bits.any(), "an entry around a kernel is not exactly 0.0"
        moved = before != layer.weight.detach()
        assert moved.sum() == moved.numel() - bits.numel(), "an entry of a kernel did not learn"


def with_garbage_around(layer: IrregularConv) -> dict[str, Tensor]:
    state = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    inside = torch.zeros_like(state["weight"], dtype=torch.bool)
    for node in range(len(layer.kernels)):
        inside[node][(slice(None), *box(layer, node))] = True
    state["weight"][~inside] = torch.nan
    return state


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("case", ["1d", "2d", "3d"])
def test_zeros_stay_exactly_zero_under_any_optimiser(case: str, name: str) -> None:
    layer = irregular(case)
    steps(layer, OPTIMISERS[name](layer.parameters()), case, count=12)


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("way", ["deepcopy", "pickle", "load", "assign", "load garbage", "assign garbage"])
def test_zeros_stay_zero_after_copying_and_loading_and_more_steps(way: str, name: str) -> None:
    case = "2d"
    layer = irregular(case)
    optimiser = OPTIMISERS[name](layer.parameters())
    steps(layer, optimiser, case)
    if way == "deepcopy":
        again = copy.deepcopy(layer)
    elif way == "pickle":
        again = pickle.loads(pickle.dumps(layer))
    else:
        again = irregular(case, seed=9)
        state = with_garbage_around(layer) if "garbage" in way else copy.deepcopy(layer.state_dict())
        given = {key: tensor.clone() for key, tensor in state.items()}
        again.load_state_dict(state, assign="assign" in way)
        assert all(torch.equal(state[key].nan_to_num(7), given[key].nan_to_num(7)) for key in state)
    torch.testing.assert_close(again(batch(case)), layer(batch(case)), rtol=0, atol=0)
    steps(again, OPTIMISERS[name](again.parameters()), case)
    steps(layer, optimiser, case)


@pytest.mark.parametrize("garbage", [False, True])
def test_an_optimiser_made_before_loading_goes_on_training_the_layer(garbage: bool) -> None:
    layer, other = irregular("2d"), irregular("2d", seed=5)
    optimiser = OPTIMISERS["AdamW"](layer.parameters())
    steps(layer, optimiser, "2d")
    layer.load_state_dict(with_garbage_around(other) if garbage else other.state_dict())
    assert torch.equal(layer.weight, other.weight)
    steps(layer, optimiser, "2d")


def test_a_state_dict_of_another_shape_is_refused_as_by_any_module() -> None:
    with pytest.raises(RuntimeError, match="size mismatch"):
        irregular("2d").load_state_dict({"weight": torch.zeros(2, 3, 5, 7), "bias": torch.zeros(4)})
    with pytest.raises(RuntimeError, match="Missing key"):
        irregular("2d").load_state_dict({"bias": torch.zeros(4)})


def test_loading_works_inside_a_larger_module() -> None:
    layer = irregular("2d")
    pair = nn.Sequential(layer, nn.Flatten())
    pair.load_state_dict({f"0.{k}": v for k, v in with_garbage_around(irregular("2d", seed=3)).items()})
    assert torch.equal(layer.weight, irregular("2d", seed=3).weight)


def test_weights_given_around_a_kernel_are_dropped() -> None:
    assert not entries_outside(irregular("2d"), irregular("2d").weight).any()


def test_what_is_written_around_a_kernel_changes_nothing() -> None:
    layer, twin = irregular("2d"), irregular("2d")
    with torch.no_grad():
        layer.weight.copy_(torch.where(twin.weight == 0, 5.0, twin.weight))
    torch.testing.assert_close(layer(batch("2d")), twin(batch("2d")), rtol=0, atol=0)
    assert torch.equal(layer.kernel_weight(), twin.weight)


def test_the_state_is_weight_and_bias_as_in_a_plain_convolution() -> None:
    assert list(irregular("2d").state_dict()) == ["weight", "bias"]
    assert [name for name, _ in irregular("2d").named_parameters()] == ["weight", "bias"]


def test_weights_of_another_shape_are_refused() -> None:
    with pytest.raises(GenomeError, match="expected"):
        IrregularConv(1, [(3, 3)], (1, 1), weight=torch.zeros(1, 1, 5, 3), bias=torch.zeros(1))


class _Calls(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts everything torch is asked to do."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0
        self.convolutions: list[tuple[list[int], list[int]]] = []
        """The kernel's size and the stride of each."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        if func is torch.ops.aten.convolution.default:
            self.convolutions.append((list(args[1].shape[2:]), list(args[3])))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("stride", [(2,), (1, 2), (3, 3), (2, 1, 2)])
@pytest.mark.parametrize("channels", [1, 2, 5])
def test_torch_never_gets_a_strided_convolution_of_size_one(stride: tuple[int, ...], channels: int) -> None:
    """Over images in channels_last it would write out of bounds (torch 2.13)."""
    kernels = [(1,) * len(stride)] * 3
    weight = torch.ones(3, channels, *kernels[0])
    layer = IrregularConv(channels, kernels, stride, weight=weight, bias=torch.zeros(3))
    x = torch.randn(2, channels, *[7] * len(stride), generator=torch.Generator().manual_seed(1))
    mode = _Calls()
    with mode:
        result = layer(x)
    assert mode.convolutions == [([1] * len(stride), [1] * len(stride))]
    torch.testing.assert_close(result, one_by_one(layer, x, weight, torch.zeros(3)))


def calls(kernels: int) -> int:
    shapes = [[(1, 1), (3, 5), (7, 1)][index % 3] for index in range(kernels)]
    layer = IrregularConv(2, shapes, (1, 1), weight=torch.ones(kernels, 2, 7, 5), bias=torch.zeros(kernels))
    x = torch.zeros(1, 2, 16, 16)
    mode = _Calls()
    with mode:
        layer(x).sum().backward()
    return mode.count


def test_the_work_asked_of_torch_does_not_depend_on_the_number_of_kernels() -> None:
    assert calls(3) < 30
    assert calls(48) == calls(480) < 60


@pytest.mark.parametrize("case", ["2d", "equal", "added", "split"])
def test_the_cases_are_computed_in_every_way_there_is(case: str) -> None:
    expected = {"2d": "added", "equal": "dense", "added": "added", "split": "split"}
    assert irregular(case).partition.mode == expected[case]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_it_moves_to_another_precision(dtype: torch.dtype) -> None:
    layer = irregular("2d").to(dtype)
    result = layer(batch("2d").to(dtype))
    assert result.dtype == dtype
    torch.testing.assert_close(result.float(), irregular("2d")(batch("2d")), atol=0.3, rtol=0.1)


def test_it_prints_its_kernels() -> None:
    assert repr(irregular("2d")) == "IrregularConv(conv[3×3 5×1 1×7 1×1]/2×1)"
