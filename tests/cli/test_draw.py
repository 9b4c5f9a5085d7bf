"""Curves in a terminal: in the frame, named, and where their values say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epicortex.cli.draw import Curve, plot


def lines(curves: list[Curve], width: int = 60, height: int = 8) -> list[str]:
    return ["".join(text for text, _ in line) for line in plot(curves, width=width, height=height)]


def dots(line: str) -> int:
    return sum(0x2800 < ord(letter) < 0x2900 for letter in line)


@given(
    st.lists(st.lists(st.none() | st.floats(0, 1), max_size=300), max_size=4),
    st.integers(20, 200),
    st.integers(1, 30),
)
def test_every_plot_stays_in_its_frame(values: list[list[float | None]], width: int, height: int) -> None:
    drawn = lines([Curve(one, f"curve {index}") for index, one in enumerate(values)], width, height)
    assert len(drawn) == height
    if height >= len(values):
        assert max(map(len, drawn)) <= max(width, 30)


def test_a_rising_curve_begins_at_the_bottom_and_ends_at_the_top() -> None:
    drawn = lines([Curve([0.1, 0.9], "best")])
    top, bottom = drawn[0], drawn[-1]
    assert top.endswith(" best")
    assert top.lstrip().startswith("90 ┤")
    assert bottom.lstrip().startswith("10 ┤")
    assert dots(top[: len(top) // 2]) == 0
    assert dots(bottom[len(bottom) // 2 :]) == 0
    assert all(dots(line) for line in drawn)


def test_every_curve_has_its_name_on_a_row_of_its_own_in_the_order_of_their_ends() -> None:
    drawn = lines([Curve([0.5, 0.901], "low"), Curve([0.5, 0.9], "lowest"), Curve([0.5, 0.902], "high")])
    rows = {
        name: next(i for i, line in enumerate(drawn) if line.endswith(f" {name}")) for name in ("high", "low")
    }
    lowest = next(i for i, line in enumerate(drawn) if line.endswith(" lowest"))
    assert rows["high"] < rows["low"] < lowest


def test_a_gap_is_left_where_there_is_no_value() -> None:
    whole, gap = lines([Curve([0.5] * 9, "x")]), lines([Curve([0.5] * 3 + [None] * 3 + [0.5] * 3, "x")])
    assert sum(map(dots, gap)) < sum(map(dots, whole))


@pytest.mark.parametrize("values", [[], [None], [0.5], [0.5, 0.5]])
def test_little_data_is_no_error(values: list[float | None]) -> None:
    assert len(lines([Curve(values, "x")])) == 8
