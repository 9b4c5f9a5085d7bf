"""A partition holds every kernel once, and none that could be had more cheaply is passed over by much."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicortex.families.layered.partition import Group, Partition, choose_partition, cost

SHAPES = st.tuples(st.sampled_from([1, 3, 5, 7]), st.sampled_from([1, 3, 5, 9]))
KERNELS = st.lists(SHAPES, min_size=1, max_size=40)
STRIDES = st.tuples(st.integers(1, 3), st.integers(1, 3))


def extent(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(max, zip(*shapes, strict=True)))


@given(KERNELS, st.integers(1, 70), STRIDES)
def test_every_kernel_is_in_one_group_that_is_no_larger_than_needed(
    kernels: list[tuple[int, int]], channels: int, stride: tuple[int, int]
) -> None:
    partition = choose_partition(kernels, channels, stride)
    places = [place for group in partition.groups for place in group.kernels]
    assert sorted(places) == list(range(len(kernels)))
    for group in partition.groups:
        assert group.extent == extent([kernels[place] for place in group.kernels])
    assert (partition.mode == "dense") == (len(partition.groups) == 1)


def partitions(items: list[tuple[int, int]]) -> Iterator[list[list[tuple[int, int]]]]:
    """All ways to put items into groups."""
    if not items:
        yield []
        return
    first, *rest = items
    for smaller in partitions(rest):
        for place, group in enumerate(smaller):
            yield [*smaller[:place], [first, *group], *smaller[place + 1 :]]
        yield [[first], *smaller]


def by_hand(groups: Sequence[Sequence[tuple[int, int]]], mode: str, channels: int, stride: int) -> float:
    """The cost in the words of the module: multiplications, sixteen kernels at a time, and passes."""
    nodes = sum(len(group) for group in groups)
    arithmetic = sum(
        math.prod(extent(group)) * channels * 16 * math.ceil((len(group) if mode == "split" else nodes) / 16)
        for group in groups
    )
    passes = {"dense": 0, "added": len(groups) - 1, "split": len(groups)}[mode]
    return arithmetic + passes * 40 * (channels * stride + nodes)


@given(
    st.lists(SHAPES, min_size=1, max_size=5, unique=True),
    st.integers(1, 20),
    st.integers(2, 64),
    st.integers(1, 3),
)
def test_it_is_nearly_the_cheapest_of_all(
    shapes: list[tuple[int, int]], repeats: int, channels: int, stride: int
) -> None:
    kernels = shapes * repeats
    chosen = choose_partition(kernels, channels, (stride, 1))
    groups = [[kernels[place] for place in group.kernels] for group in chosen.groups]
    paid = by_hand(groups, chosen.mode, channels, stride)
    assert paid == cost(chosen, channels, (stride, 1))
    assert paid <= by_hand([kernels], "dense", channels, stride)
    best = min(
        by_hand([group * repeats for group in candidate], mode, channels, stride)
        for candidate in partitions(shapes)
        for mode in (("added", "split") if len(candidate) > 1 else ("dense",))
    )
    assert paid <= 1.15 * best


@given(KERNELS, STRIDES)
def test_one_channel_is_convolved_at_once(kernels: list[tuple[int, int]], stride: tuple[int, int]) -> None:
    assert choose_partition(kernels, 1, stride).mode == "dense"


@pytest.mark.parametrize("shapes", [[(7,), (1,)] * 20, [(5, 5, 5), (1, 1, 1)] * 20])
def test_only_images_are_divided(shapes: list[tuple[int, ...]]) -> None:
    whole = Group(tuple(range(40)), shapes[0])
    assert choose_partition(shapes, 32, (1,) * len(shapes[0])) == Partition("dense", (whole,))
