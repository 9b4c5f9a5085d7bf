"""From words, tables and plots to one HTML page that needs nothing else.

Text is escaped by the template engine; figures and the plotting library travel packed, in letters that no
browser takes for markup; and a content security policy lets only our own scripts run and nothing be loaded.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from epicortex.pages.plots import Figure


def page(
    room: str,
    template: str,
    content: Mapping[str, Any],
    plots: Mapping[str, Figure],
    *,
    packed: Mapping[str, Any] | None = None,
    scripts: Sequence[str] = (),
    live: bool = False,
) -> str:
    """A page from a template of a package, such as `epicortex.report`; it names where each plot is drawn.

    `packed` are values for scripts, by the ids of their elements; `scripts` are further ones of ours. A
    `live` page may ask the server that it came from, and nobody else.
    """
    library, theme = _library(), _asset("theme.js")
    own = [_asset(name) for name in ("page.js", *scripts)]
    filled = {
        # Without `unsafe-inline`, a script that got into the page in spite of all would not run.
        "policy": Markup(" ".join(f"'sha256-{_digest(text)}'" for text in (library, theme, *own))),
        "live": live,
        "style": Markup(_style()),
        "theme_script": Markup(theme),
        "scripts": [Markup(text) for text in own],
        "packed": {name: Markup(_packed(_json(value))) for name, value in (packed or {}).items()},
        "library": Markup(_packed_library()),
        "figures": Markup(_packed(_json(plots))),
    }
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset), autoescape=True, undefined=jinja2.StrictUndefined
    )
    source = _read(room, "templates", template)
    text: str = environment.from_string(source).render({**content, **filled})
    return text


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _style() -> str:
    style = _asset("page.css")
    for name in ("light", "dark"):
        style = style.replace(f"/* {name.upper()} */", _asset(f"{name}.css"))
    return style


def _asset(name: str) -> str:
    return _read("epicortex.pages", "assets", name)


@cache
def _read(room: str, folder: str, name: str) -> str:
    return resources.files(room).joinpath(folder, name).read_text("utf-8")


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
