"""Small tables and curves as HTML, for notebooks: what `_repr_html_` is made of. All text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final

_WIDTH, _HEIGHT = 420, 120
#: Colours that can be seen on white and on black.
_COLOURS: Final = ("#d9622b", "#2f83c5", "#2b9a72")


def table(rows: Iterable[Sequence[object]], head: Sequence[str] = (), caption: str = "") -> str:
    """A table; the first cell of a row names it.

    >>> table([("<a>", 1)])
    '<table><tbody><tr><th scope="row" style="text-align:left">&lt;a&gt;</th><td>1</td></tr></tbody></table>'
    """
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row" style="text-align:left">{escape(str(first))}</th>'
        + "".join(f"<td>{escape(str(cell))}</td>" for cell in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return f"<table>{title}{f'<thead><tr>{top}</tr></thead>' if top else ''}<tbody>{body}</tbody></table>"


def curves(series: Mapping[str, Sequence[float | None]]) -> str:
    """Lines over the same steps, with their names; nothing where there are fewer than two steps.

    >>> curves({"best": [0.5]})
    ''
    >>> curves({"best": [0.5, 0.75, None, 1.0]}).count("<path")
    1
    """
    known = [value for values in series.values() for value in values if value is not None]
    if max(map(len, series.values()), default=0) < 2 or not known:
        return ""
    low, high = min(known), max(known)
    scale = (_HEIGHT - 8) / ((high - low) or 1.0)
    parts, names = [], []
    for (name, values), colour in zip(series.items(), _COLOURS, strict=False):
        step = (_WIDTH - 8) / (len(values) - 1)
        points = [
            f"{4 + step * place:.1f} {_HEIGHT - 4 - scale * (value - low):.1f}"
            for place, value in enumerate(values)
            if value is not None
        ]
        parts.append(f'<path d="M{"L".join(points)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        names.append(f'<span style="color:{colour}">{escape(name)}</span>')
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    about = escape(f"{', '.join(series)} over the generations")
    drawn = f'<svg {size} role="img" aria-label="{about}">{"".join(parts)}</svg>'
    return f"<div>{drawn}<br>{' · '.join(names)}</div>"
