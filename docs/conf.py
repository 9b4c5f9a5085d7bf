"""The documentation site: `python -m sphinx -W -b html docs docs/_build/html`."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # notebook_pages

project = "EpiCortex"
author = "The EpiCortex developers"
copyright = "the EpiCortex developers"
release = version = installed("epicortex")

extensions = [
    "myst_parser",
    "notebook_pages",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build", "pictures"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_default_options = {"members": True}
autodoc_inherit_docstrings = False
napoleon_google_docstring = False

html_theme = "furo"
html_title = "EpiCortex"
html_static_path = ["static"]


def _from_markdown(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Our docstrings have code in single backticks and plain asterisks, as in Markdown."""
    example = False
    for number, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            parts = re.split(r"(`+[^`]+`+)", line)
            parts[::2] = [part.replace("*", r"\*") for part in parts[::2]]
            lines[number] = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", "".join(parts))


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", _from_markdown)
