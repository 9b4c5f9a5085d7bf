"""Notebooks as pages: each `.ipynb` is run when the site is built, and its page has what its cells show.

nbclient runs them and MyST reads the text; so little is left to do that no further extension is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from nbclient import NotebookClient

#: A cell that takes longer than this breaks the build.
_SECONDS = 1800


class NotebookParser(MystParser):
    """Runs a notebook, and reads it as the Markdown page that it amounts to."""

    supported = ("ipynb",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        super().parse(page(inputstring), document)


def page(text: str) -> str:
    """A notebook's cells with their output, as Markdown; a cell that fails is an error."""
    notebook = nbformat.reads(text, as_version=4)
    with TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=_SECONDS, resources=resources).execute()
    return "\n\n".join(part for cell in notebook.cells for part in _parts(cell))


def _parts(cell: Any) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield cell.source
        return
    yield _fenced("python", cell.source)
    for output in cell.outputs:
        if output.output_type == "stream":
            if output.name == "stdout":
                yield _fenced("text", output.text)
        elif "text/html" in (data := output.get("data", {})):
            yield _fenced("{raw} html", f'<div class="notebook-output">{data["text/html"]}</div>')
        elif "text/plain" in data:
            yield _fenced("text", data["text/plain"])


def _fenced(kind: str, text: str) -> str:
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{ticks}{kind}\n{text.strip(chr(10))}\n{ticks}"


def setup(app: Any) -> dict[str, Any]:
    app.add_source_suffix(".ipynb", "ipynb")
    app.add_source_parser(NotebookParser)
    app.add_css_file("notebooks.css")
    return {"parallel_read_safe": True, "version": Path(__file__).name}
