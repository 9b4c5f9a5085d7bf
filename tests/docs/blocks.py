"""The code blocks of a Markdown page, and how to run them one after another in one folder.

A block with a `:caption:` is a file. Commands follow a `$`, and what they print follows them; without any `$`
every line is a command. A comment before a block says what is special about it: `<!-- no-run: why -->`, or
`<!-- exit: 2 -->` for a command that is meant to fail.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epicortex.cli import main
from epicortex.config import Config, changed

_FENCE = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*?) -->\n)?"
    r"^(?P<ticks>`{3,})(?:\{code-block\} )?(?P<language>\w+)[^\n]*\n(?P<body>.*?)^(?P=ticks)$",
    re.MULTILINE | re.DOTALL,
)
_CAPTION = re.compile(r"\A:caption: (?P<name>\S+)\n(?:\n)?")
_MAKEFILE = Path(__file__).resolve().parents[2] / "Makefile"
_RUN = ("python", "console")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    line: int
    language: str
    body: str
    file: str | None
    note: str

    @property
    def skipped(self) -> bool:
        """Whether the page says that it is not to be run."""
        return self.note.startswith("no-run")


def blocks(page: Path) -> Iterator[Block]:
    """All blocks of code of a page, in order."""
    text = page.read_text("utf-8")
    for match in _FENCE.finditer(text):
        body, note = match["body"], match["note"] or ""
        caption = _CAPTION.match(body)
        if match["language"] in _RUN or caption:
            line = text.count("\n", 0, match.start("body")) + 1
            content = body[caption.end() :] if caption else body
            yield Block(line, match["language"], content, caption["name"] if caption else None, note)


class Page:
    """Runs the blocks of one page in the current folder; Python blocks share their names."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def run(self, block: Block) -> None:
        """Run one block, or write it if it is a file."""
        if block.file is not None:
            Path(block.file).write_text(block.body, "utf-8")
        elif block.language == "python":
            # As many lines before it as on the page, so that a traceback names the right one.
            code = compile("\n" * (block.line - 1) + block.body, str(self.path), "exec")
            exec(code, self.names)
        else:
            self._console(block)

    def _console(self, block: Block) -> None:
        code = int(block.note.removeprefix("exit:")) if block.note.startswith("exit:") else 0
        said: list[str] = []
        prompt = "$ " if re.search(r"^\$ ", block.body, re.MULTILINE) else ""
        for line in block.body.splitlines():
            if line.startswith(prompt):
                said = self._command(line.removeprefix(prompt), code)
            elif line.strip("… "):
                pattern = ".*".join(map(re.escape, line.split("…")))
                while said and not re.fullmatch(pattern, said[0].rstrip()):
                    said.pop(0)
                assert said, f"{self.path.name}: no further line of the output is like {line!r}"
                said.pop(0)

    def _command(self, line: str, code: int) -> list[str]:
        words = shlex.split(line, comments=True)
        if words[0] == "make":
            # Running it is what CI does; here it only has to be there.
            assert re.search(rf"^{words[1]}:", _MAKEFILE.read_text("utf-8"), re.MULTILINE), line
            return []
        if words[0] == "epicortex":
            output = io.StringIO()
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                result = main(_few_more(words[1:]))
            text = output.getvalue()
        else:
            words = [sys.executable if words[0] == "python" else words[0], *words[1:]]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            result, text = done.returncode, done.stdout + done.stderr
        assert result == code, f"{self.path.name}: {line} ended with {result}: {text}"
        return text.splitlines()


def _few_more(words: list[str]) -> list[str]:
    """A `resume` that goes on for a few generations only."""
    if words[0] != "resume" or "--generations" not in words:
        return words
    place = words.index("--generations") + 1
    return [*words[:place], str(min(int(words[place]), 5)), *words[place + 1 :]]


def small(resolve: Callable[..., Config]) -> Callable[..., Config]:
    """What gives configs, for runs of seconds: what people would wait minutes for is made small."""

    def resolve_small(*args: Any, **kwargs: Any) -> Config:
        config = resolve(*args, **kwargs)
        return changed(
            config,
            evolution={
                "generations": min(config.evolution.generations, 4),
                "initial_networks": 6,
                "max_networks": 8,
                "initial_species": 2,
                "max_species": 4,
            },
            budget={"steps": min(config.budget.steps, 10)},
            training={"min_steps": 10, "engine": "serial"},
        )

    return resolve_small
