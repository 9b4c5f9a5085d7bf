"""From words, tables and plots to one HTML page that needs nothing else.

Text is escaped by the template engine; figures and the plotting library travel packed, in letters that no
browser takes for markup; and a content security policy lets only our own scripts run and nothing be loaded.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from epicortex.report import figures, legend, sections
from epicortex.report.figures import Figure
from epicortex.report.narrative import Material


def render(material: Material) -> str:
    """The page about a run."""
    return page("report.html", sections.content(material), draw(material))


def page(template: str, content: Mapping[str, Any], plots: Mapping[str, Figure]) -> str:
    """A page from one of the templates; each plot is drawn where the template names it."""
    library, theme, script = _library(), _own("theme.js"), _own("page.js")
    scripts = {
        # Without `unsafe-inline`, a script that got into the page in spite of all would not run.
        "policy": Markup(" ".join(f"'sha256-{_digest(text)}'" for text in (library, theme, script))),
        "style": Markup(_style()),
        "theme_script": Markup(theme),
        "script": Markup(script),
        "library": Markup(_packed_library()),
        "figures": Markup(_packed(json.dumps(plots, separators=(",", ":"), allow_nan=False))),
    }
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_own), autoescape=True, undefined=jinja2.StrictUndefined
    )
    text: str = environment.get_template(template).render({**content, **scripts})
    return text


def draw(material: Material) -> dict[str, Figure]:
    """The plots that there is something to plot for, by name."""
    history, gathered, measure = material.history, material.gathered, material.measure
    if material.champion is None:
        return {}
    drawn = {
        "fitness": figures.fitness(history, gathered, measure),
        "species": figures.species(history, gathered) if gathered.species else None,
        "shapes": figures.shapes(gathered) if legend.common_shapes(gathered) else None,
        "attempts": figures.attempts(gathered) if gathered.attempts else None,
        "effects": figures.effects(gathered, measure) if gathered.attempts else None,
        "seconds": figures.seconds(history),
        # Last, as it has the most to draw.
        "sizes": figures.sizes(gathered, measure),
    }
    return {name: figure for name, figure in drawn.items() if figure is not None}


def _style() -> str:
    style = _own("page.css")
    for name in ("light", "dark"):
        style = style.replace(f"/* {name.upper()} */", _own(f"{name}.css"))
    return style


@cache
def _own(name: str) -> str:
    places = [("pages", "assets"), ("report", "templates"), ("paper", "templates")]
    files = (resources.files(f"epicortex.{room}").joinpath(folder, name) for room, folder in places)
    return next(file for file in files if file.is_file()).read_text("utf-8")


@cache
def _library() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


@cache
def _packed_library() -> str:
    return _packed(_library())


def _packed(text: str) -> str:
    # Without a time in it, so that equal runs give equal pages.
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
