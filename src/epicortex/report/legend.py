"""What is shown of many: the largest species, the most frequent shapes and mutations, and their names.

Plots, tables and the family tree choose alike, so that a colour or a name means the same wherever it appears.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from epicortex.families.family import Outline, Part, Shape
from epicortex.report.summary import Attempts, RunSummary
from epicortex.text import directed, times

MOST_SPECIES: Final = 16
MOST_SHAPES: Final = 12
MOST_ATTEMPTS: Final = 20
REST: Final = "var(--rest)"
"""The colour of what has none of its own."""
_COLOURS: Final = 16
_LONGEST_LINE: Final = 64
_MOST_LINES: Final = 14


def colour(place: int) -> str:
    """One of the page's colours for things without an order.

    >>> colour(0), colour(16)
    ('var(--c1)', 'var(--c1)')
    """
    return f"var(--c{place % _COLOURS + 1})"


def largest_species(summary: RunSummary) -> list[int]:
    """The species with most networks over all generations, in the order they arose."""
    totals: Counter[int] = Counter()
    for generation in summary.generations:
        totals.update(generation.species)
    ranked = sorted(totals, key=lambda id: (-totals[id], id))
    return sorted(ranked[:MOST_SPECIES])


def species_colour(id: int | None, shown: Sequence[int]) -> str:
    """The colour of a species wherever it appears."""
    return colour(shown.index(id)) if id in shown else REST


def common_shapes(summary: RunSummary) -> list[Shape]:
    """The most frequent kernel shapes of all generations together, the most frequent first."""
    totals: Counter[Shape] = Counter()
    for generation in summary.generations:
        totals.update(generation.kernels)
    return sorted(totals, key=lambda shape: (-totals[shape], shape))[:MOST_SHAPES]


def last_shapes(summary: RunSummary) -> list[Shape]:
    """The three most frequent kernel shapes of the last generation."""
    last = summary.generations[-1].kernels
    return sorted(last, key=lambda shape: (-last[shape], shape))[:3]


def common_attempts(summary: RunSummary) -> list[Attempts]:
    """The types of mutation, the most tried first."""
    ranked = sorted(summary.attempts.values(), key=lambda row: (-row.tried, row.type, row.direction))
    return ranked[:MOST_ATTEMPTS]


def attempt_name(row: Attempts) -> str:
    """A type and direction.

    >>> attempt_name(Attempts("kernel", "grow"))
    'kernel +'
    """
    return directed(row.type, row.direction)


def structure_lines(outline: Outline) -> list[str]:
    """A structure in short: a line a part, kernels counted by shape."""
    lines = [
        f"{part.kind} {part.nodes}" + (f": {kernel_words(part)}" if part.kernels else "")
        for part in outline.parts
    ]
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 2], f"… {len(lines) - _MOST_LINES + 1} more …", lines[-1]]
    return lines


def kernel_words(part: Part, longest: int = _LONGEST_LINE) -> str:
    """The kernels of a part and its stride; of very many shapes the most frequent.

    >>> kernel_words(Part("conv", "convolution", "", (3, 4, 4), 30, 3, (2, 2), ((3, 3), (1, 3), (3, 3))))
    '2 of 3×3, 1 of 1×3; stride 2×2'
    """
    if not part.kernels:
        return ""
    groups = sorted(Counter(part.kernels).items(), key=lambda item: (-item[1], item[0]))
    words = [f"{number} of {times(shape)}" for shape, number in groups]
    text = ", ".join(words)
    while len(text) > longest and len(words) > 1:
        words.pop()
        text = ", ".join(words) + f", {sum(number for _, number in groups[len(words) :])} others"
    return text + (f"; stride {times(part.stride)}" if set(part.stride) - {1} else "")
