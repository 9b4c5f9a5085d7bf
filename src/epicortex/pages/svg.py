"""The plots as pictures for pages that run no scripts, such as Markdown: lines, bands, dots, axes, a legend.

Takes the same figures as the HTML page, in its light colours. Knows only what our own figures use.
Plotly, which draws those, makes pictures only with a browser.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from typing import Any, Final

from epicortex.pages.plots import Figure

_WIDTH, _HEIGHT = 760, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 28, 40, 52
_TICKS: Final = 6
_DASHES: Final = {"solid": "", "dot": "2 5", "dash": "7 5"}
_FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"


@dataclass(frozen=True, slots=True)
class _Scale:
    """From values to places on the picture."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        part = (value - self.low) / (self.high - self.low)
        return round(self.start + (self.end - self.start) * part, 2)


def picture(figure: Figure, title: str) -> str:
    """A figure as SVG text."""
    traces, layout = figure["data"], figure["layout"]
    x = _scale(traces, "x", layout["xaxis"], _LEFT, _WIDTH - _RIGHT)
    y = _scale(traces, "y", layout["yaxis"], _HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" font-family="{_FONT}" font-size="13" role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="8" fill="{_colour("var(--card)")}"/>',
        *_horizontal(layout["yaxis"], y),
        *_vertical(layout["xaxis"], x),
        *(_drawn(traces, place, x, y) for place in range(len(traces))),
        *_legend(traces),
        "</svg>\n",
    ]
    return "\n".join(part for part in parts if part)


def ticks(low: float, high: float) -> list[float]:
    """Round values from about `low` to about `high`.

    >>> ticks(0, 100)
    [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    """
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 10) for number in range(first, math.floor(high / step + 1e-9) + 1)]


def _scale(traces: Sequence[Figure], key: str, axis: Mapping[str, Any], start: float, end: float) -> _Scale:
    if "range" in axis:
        low, high = axis["range"]
    else:
        values = [value for trace in traces for value in trace[key] if value is not None] or [0.0, 1.0]
        low, high = min(values), max(values)
        if axis.get("rangemode") == "tozero":
            low = min(0.0, low)
    if high == low:
        low, high = low - 0.5, high + 0.5
    if key == "y":
        high += 0.04 * (high - low)
    return _Scale(low, high, start, end)


def _marks(axis: Mapping[str, Any], scale: _Scale) -> list[tuple[float, str]]:
    """Where an axis has a tick, and what it says."""
    if "tickvals" in axis:
        return [(scale.place(at), text) for at, text in zip(axis["tickvals"], axis["ticktext"], strict=True)]
    return [(scale.place(value), f"{value:,.6g}") for value in ticks(scale.low, scale.high)]


def _horizontal(axis: Mapping[str, Any], scale: _Scale) -> list[str]:
    soft, grid = _colour("var(--soft)"), _colour("var(--grid)")
    parts = []
    for at, text in _marks(axis, scale):
        parts.append(f'<path d="M{_LEFT} {at}H{_WIDTH - _RIGHT}" stroke="{grid}"/>')
        parts.append(
            f'<text x="{_LEFT - 8}" y="{at + 4}" text-anchor="end" fill="{soft}">{escape(text)}</text>'
        )
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    title = escape(axis["title"]["text"])
    turned = f'<text transform="translate(16 {middle}) rotate(-90)" text-anchor="middle" fill="{soft}">'
    return [*parts, f"{turned}{title}</text>"]


def _vertical(axis: Mapping[str, Any], scale: _Scale) -> list[str]:
    soft, line = _colour("var(--soft)"), _colour("var(--line)")
    bottom = _HEIGHT - _BOTTOM
    parts = [f'<path d="M{_LEFT} {bottom}H{_WIDTH - _RIGHT}" stroke="{line}"/>']
    for at, text in _marks(axis, scale):
        parts.append(
            f'<text x="{at}" y="{bottom + 18}" text-anchor="middle" fill="{soft}">{escape(text)}</text>'
        )
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    title = escape(axis["title"]["text"])
    return [
        *parts,
        f'<text x="{middle}" y="{_HEIGHT - 12}" text-anchor="middle" fill="{soft}">{title}</text>',
    ]


def _drawn(traces: Sequence[Figure], place: int, x: _Scale, y: _Scale) -> str:
    trace = traces[place]
    if trace.get("fill") == "tonexty":
        above, below = _points(trace, x, y), _points(traces[place - 1], x, y)
        return f'<path d="{_path(above + below[::-1])}Z" {_paint("fill", trace["fillcolor"])}/>'
    parts = []
    line: dict[str, Any] = trace.get("line") or trace.get("marker") or {}
    if "lines" in trace["mode"] and line.get("width"):
        dash = _DASHES[line.get("dash", "solid")]
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        parts.append(
            f'<path d="{_pieces(trace, x, y)}" fill="none" {_paint("stroke", line["color"])} '
            f'stroke-width="{line["width"]}" stroke-linejoin="round"{dashes}/>'
        )
    if "markers" in trace["mode"]:
        paint = _paint("fill", (trace.get("marker") or line)["color"])
        parts += [f'<circle cx="{at}" cy="{up}" r="4.5" {paint}/>' for at, up in _points(trace, x, y)]
    return "\n".join(parts)


def _points(trace: Figure, x: _Scale, y: _Scale) -> list[tuple[float, float]]:
    return [
        (x.place(at), y.place(value))
        for at, value in zip(trace["x"], trace["y"], strict=True)
        if value is not None
    ]


def _pieces(trace: Figure, x: _Scale, y: _Scale) -> str:
    """A line that is broken where a value is missing."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for at, value in zip(trace["x"], trace["y"], strict=True):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append((x.place(at), y.place(value)))
    return "".join(_path(piece) for piece in pieces if piece)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x} {y}" for x, y in points) if points else ""


def _legend(traces: Sequence[Figure]) -> list[str]:
    parts, at = [], float(_LEFT)
    for trace in traces:
        if trace.get("showlegend") is False or not trace.get("name"):
            continue
        look = trace.get("line") or trace["marker"]
        dash = _DASHES[look.get("dash", "solid")]
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        parts.append(
            f'<path d="M{at} 22h22" {_paint("stroke", look["color"])} stroke-width="3"{dashes}/>'
            f'<text x="{at + 28}" y="26" fill="{_colour("var(--ink)")}">{escape(trace["name"])}</text>'
        )
        at += 42 + 6.6 * len(trace["name"])
    return parts


def _paint(what: str, role: str) -> str:
    """A colour, and how opaque it is: not every program that shows SVG knows rgba()."""
    colour = _colour(role)
    match = re.fullmatch(r"rgba\((\d+), (\d+), (\d+), ([\d.]+)\)", colour)
    if match is None:
        return f'{what}="{colour}"'
    return f'{what}="rgb({match[1]},{match[2]},{match[3]})" {what}-opacity="{match[4]}"'


def _colour(role: str) -> str:
    return _colours()[role.removeprefix("var(--").removesuffix(")")]


@cache
def _colours() -> Mapping[str, str]:
    sheet = resources.files("epicortex.pages").joinpath("assets", "light.css").read_text("utf-8")
    return dict(re.findall(r"--([\w-]+): ([^;]+);", sheet))
