"""Plain plotly figures: the type, and the axes that our plots have in common.

Colours are roles such as `var(--best)`, which a page fills in for light and dark, and `svg` for light alone.
"""

from __future__ import annotations

import html
from typing import Any, TypeAlias

from epicortex.pages.units import Unit
from epicortex.text import one_line

Figure: TypeAlias = dict[str, Any]


def axis(title: str) -> Figure:
    """An axis with its title.

    >>> axis("seconds")
    {'title': {'text': 'seconds'}}
    """
    return {"title": {"text": title}}


def generation_axis() -> Figure:
    """The axis of plots whose hover text names the generation once for all series."""
    return {**axis("generation"), "unifiedhovertitle": {"text": "generation %{x}"}}


def fitness_axis(unit: Unit) -> Figure:
    """The axis of fitness."""
    return axis(f"{unit.name}, %" if unit.percent else label(unit.name))


def label(text: str) -> str:
    """A text from a file for a plot, which would take `<` for markup.

    >>> label("<b>bold</b>")
    '&lt;b&gt;bold&lt;/b&gt;'
    """
    return html.escape(one_line(text), quote=False)
