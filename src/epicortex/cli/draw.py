"""Curves in a terminal, drawn with braille dots: readable in 80 columns and without colour.

Every curve is named at its right end, so that colour is only an aid. Nothing here knows what is plotted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

_BLANK: Final = 0x2800
#: The bit of each dot of a braille character, by row and column.
_DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_ROWS, _COLUMNS = 4, 2


@dataclass(frozen=True, slots=True)
class Curve:
    """Values over generations, None where there is none, and what stands at its right end."""

    values: Sequence[float | None]
    label: str


Piece: TypeAlias = tuple[str, int | None]
"""Some characters, and the curve they belong to."""


def plot(curves: Sequence[Curve], *, width: int, height: int, unit: float = 0.01) -> list[list[Piece]]:
    """Lines of pieces: an axis in the unit (percent) on the left, the curves, their labels on the right.

    >>> lines = plot([Curve([0.1, 0.5, 0.9], "best")], width=30, height=3)
    >>> for line in lines: print("".join(text for text, _ in line).rstrip())
       90 ┤            ⣀⣀⡤⠴⠒⠋ best
       50 ┤      ⣀⣠⠤⠖⠚⠉⠁
       10 ┤⣀⡤⠴⠒⠋⠉⠁
    """
    known = [value for curve in curves for value in curve.values if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if high - low < unit:
        low, high = low - unit / 2, low + unit / 2
    labels = max((len(curve.label) for curve in curves), default=0)
    axis = [_axis(row, height, low, high, unit) for row in range(height)]
    columns = max(4, width - len(axis[0]) - labels - 1)
    canvas = _Canvas(columns, height)
    for index, curve in enumerate(curves):
        canvas.draw(index, [_scaled(value, low, high) for value in curve.values])
    named = _label_rows(curves, height, low, high)
    return [
        [(axis[row], None), *canvas.pieces(row), *((f" {curves[i].label}", i) for i in named.get(row, ()))]
        for row in range(height)
    ]


class _Canvas:
    """Dots, and which curve drew each character last."""

    def __init__(self, columns: int, rows: int) -> None:
        self.width, self.height = columns * _COLUMNS, rows * _ROWS
        self.bits = [[0] * columns for _ in range(rows)]
        self.owner: list[list[int | None]] = [[None] * columns for _ in range(rows)]

    def draw(self, index: int, values: Sequence[float | None]) -> None:
        """A curve of values from 0 to 1, its points joined; a gap where a value is missing."""
        before: int | None = None
        for x in range(self.width):
            place = x * (len(values) - 1) / (self.width - 1)
            value = _between(values, place)
            if value is None:
                before = None
                continue
            y = round((1 - value) * (self.height - 1))
            last = y if before is None else before
            # Steep parts are filled in, so that the curve has no holes.
            for dot in range(min(y, last), max(y, last) + 1):
                self._set(index, x, dot)
            before = y

    def _set(self, index: int, x: int, y: int) -> None:
        self.bits[y // _ROWS][x // _COLUMNS] |= _DOTS[y % _ROWS][x % _COLUMNS]
        self.owner[y // _ROWS][x // _COLUMNS] = index

    def pieces(self, row: int) -> list[Piece]:
        """One line, neighbours of one curve together."""
        pieces: list[Piece] = []
        for bits, owner in zip(self.bits[row], self.owner[row], strict=True):
            # A blank braille character is drawn as eight small circles in some fonts.
            character = chr(_BLANK + bits) if bits else " "
            if pieces and pieces[-1][1] == owner:
                pieces[-1] = (pieces[-1][0] + character, owner)
            else:
                pieces.append((character, owner))
        return pieces


def _between(values: Sequence[float | None], place: float) -> float | None:
    """The value at a place between two points; next to a gap, that of the known one at most half way."""
    if not values:
        return None
    left = int(place)
    one, two = values[left], values[min(left + 1, len(values) - 1)]
    share = place - left
    if one is None or two is None:
        return one if share < 0.5 else two
    return one + share * (two - one)


def _scaled(value: float | None, low: float, high: float) -> float | None:
    return None if value is None else (value - low) / (high - low)


def _axis(row: int, height: int, low: float, high: float, unit: float) -> str:
    if row in (0, height // 2, height - 1) or height < 3:
        value = high - (high - low) * row / max(1, height - 1)
        digits = 0 if high - low >= 10 * unit else 1
        return f"{_short(value / unit, digits):>5} ┤"
    return "      │"


def _short(value: float, digits: int) -> str:
    """A number in five characters, if it can be: rewards may be large."""
    return f"{value:.{digits}f}" if abs(value) < 10_000 else f"{value / 1000:.0f}k"


def _label_rows(curves: Sequence[Curve], height: int, low: float, high: float) -> dict[int, list[int]]:
    """A row of its own for each label, as near as can be to where its curve ends."""
    ends = []
    for index, curve in enumerate(curves):
        known = [value for value in curve.values if value is not None]
        if known:
            ends.append((known[-1], index))
    rows: dict[int, list[int]] = {}
    lowest = height
    for position, (value, index) in enumerate(sorted(ends)):
        wanted = round((1 - (value - low) / (high - low)) * (height - 1))
        left = len(ends) - position - 1
        lowest = max(min(wanted, lowest - 1), min(left, height - 1))
        rows.setdefault(lowest, []).append(index)
    return rows
