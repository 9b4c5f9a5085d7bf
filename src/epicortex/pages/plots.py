"""Plain plotly figures: the type, and the axes that our plots have in common.

Colours are roles such as `var(--best)`, which a page fills in for light and dark, and `svg` for light alone.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from epicortex.pages.units import Unit
from epicortex.text import one_line

Figure: TypeAlias = dict[str, Any]
#: Up to how many generations each has a tick.
_FEW: Final = 8


def axis(title: str) -> Figure:
    """An axis with its title.

    >>> axis("seconds")
    {'title': {'text': 'seconds'}}
    """
    return {"title": {"text": title}}


def whole(values: Sequence[int]) -> Figure:
    """Ticks at whole numbers, where plotly would put some between them.

    >>> whole([1, 3]), whole([1, 90])
    ({'dtick': 1}, {})
    """
    return {"dtick": 1} if values and max(values) - min(values) <= _FEW else {}


def generation_axis(generations: Sequence[int] = ()) -> Figure:
    """The axis of plots over generations; where hover text names one for all series, it says what it is."""
    return {**axis("generation"), **whole(generations), "unifiedhovertitle": {"text": "generation %{x}"}}


def fitness_axis(unit: Unit) -> Figure:
    """The axis of fitness."""
    return axis(f"{unit.name}, %" if unit.percent else label(unit.name))


def label(text: str) -> str:
    """A text from a file for a plot, which would take `<` for markup.

    >>> label("<b>bold</b>")
    '&lt;b&gt;bold&lt;/b&gt;'
    """
    return html.escape(one_line(text), quote=False)
