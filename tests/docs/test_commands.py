"""Every command, option and setting that the documentation names exists, and takes the value shown.

Code blocks are run by `test_examples`; here are the blocks that cannot be run, and code within a sentence.
"""

from __future__ import annotations

import importlib
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from epicortex.cli import COMMANDS
from epicortex.cli.parsing import Parser, settings_given
from epicortex.config import Config, fields, resolving
from epicortex.errors import EpiCortexError
from tests.docs.blocks import blocks

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_PLACEHOLDER = re.compile(r"[A-Z]+|.*\|.*")
_SETTING = re.compile(rf"(?P<name>(?:{'|'.join(Config.model_fields)})\.[a-z_]+)(?P<value> = .+)?")


class Code(NamedTuple):
    """A piece of code, and where it stands."""

    page: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def _inline(page: Path) -> Iterator[Code]:
    text = page.read_text("utf-8")
    text = _FENCED.sub(lambda fence: "\n" * fence[0].count("\n"), text)
    for match in _INLINE.finditer(text):
        code = " ".join(match[1].replace(r"\|", "|").split())
        yield Code(page.name, text.count("\n", 0, match.start()) + 1, code)


def _typed(page: Path) -> Iterator[Code]:
    """The commands of the page's blocks, without those that are meant to fail."""
    for block in blocks(page):
        if block.language != "python" and not block.note.startswith("exit:"):
            prompt = "$ " if re.search(r"^\$ ", block.body, re.MULTILINE) else ""
            for number, line in enumerate(block.body.splitlines()):
                if line.startswith(prompt):
                    yield Code(page.name, block.line + number, line.removeprefix(prompt))


INLINE = [code for page in PAGES for code in _inline(page)]
OPTIONS = [code for code in INLINE if code.text.startswith("--")]
LINES = [code for code in INLINE if code.text.startswith("epicortex ")] + [
    code
    for page in PAGES
    for code in _typed(page)
    if re.search(r"(^|\s)epicortex [a-z-]", code.text.partition("#")[0])
]
SETTINGS = [code for code in INLINE if _SETTING.fullmatch(code.text) and not code.text.endswith(".py")]


def _parser(command: str) -> Parser:
    parser = Parser(prog=f"epicortex {command}")
    importlib.import_module(f"epicortex.cli.{command}").add_arguments(parser)
    return parser


def _check(command: str, words: list[str]) -> None:
    """Parse the words of a command, and check the settings among them."""
    changes, called = settings_given(_parser(command).parse(words))
    known = {name: value for name, value in changes.items() if not _PLACEHOLDER.fullmatch(str(value))}
    resolving.resolve(changes=known, called=called)


def _takes(command: str, words: list[str]) -> bool:
    if len(words) == 1:
        return words[0] in _parser(command)._option_string_actions
    try:
        _check(command, words)
    except EpiCortexError:
        return False
    return True


@pytest.mark.parametrize("code", LINES, ids=str)
def test_every_command_is_understood(code: Code) -> None:
    words = shlex.split(code.text, comments=True)
    _, command, *rest = words[words.index("epicortex") :]
    if command.startswith("--"):
        assert command in ("--help", "--version")
        return
    assert command in COMMANDS
    if rest and "--help-all" not in rest:
        _check(command, rest)


@pytest.mark.parametrize("code", OPTIONS, ids=str)
def test_every_option_belongs_to_a_command(code: Code) -> None:
    words = shlex.split(code.text)
    known = any(
        _takes(command, [*before, *words])
        for command in COMMANDS
        for before in ([], ["RUN"])
        if len(words) > 1 or not before
    )
    scripts = [*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "docs/pictures").glob("*.py")]
    assert known or any(f'"{words[0]}"' in script.read_text("utf-8") for script in scripts)


@pytest.mark.parametrize("code", SETTINGS, ids=str)
def test_every_setting_exists_and_takes_the_value_shown(code: Code) -> None:
    match = _SETTING.fullmatch(code.text)
    assert match
    name, value = match["name"], match["value"]
    assert name in fields.settings()
    if value:
        resolving.resolve(changes={name: tomllib.loads(f"value{value}")["value"]})


@pytest.mark.parametrize(
    "code", [code for code in INLINE if re.search(r"\bpython -m (benchmarks|tests)\b", code.text)], ids=str
)
def test_every_module_that_is_run_exists_and_has_the_options_shown(code: Code) -> None:
    words = shlex.split(code.text)
    module, *rest = words[words.index("-m") + 1 :]
    path = ROOT.joinpath(*module.split("."))
    file = path / "__main__.py" if path.is_dir() else path.with_suffix(".py")
    source = file.read_text("utf-8")
    assert [word for word in rest if word.startswith("--") and f'"{word}"' not in source] == []


@pytest.mark.parametrize("code", [code for code in INLINE if code.text.startswith("make ")], ids=str)
def test_every_target_of_make_exists(code: Code) -> None:
    target = code.text.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def test_the_checks_see_what_is_there() -> None:
    """A pattern that no longer finds anything would pass in silence."""
    for found, least in ((LINES, 40), (OPTIONS, 30), (SETTINGS, 25)):
        assert len(found) >= least


@pytest.mark.parametrize(
    "text",
    ["--evolution.max-network 3", "--evolution.max-networks 1", "--training.optimiser-arguments 0.1"],
)
def test_a_wrong_option_or_value_is_seen(text: str) -> None:
    assert not any(_takes(command, text.split()) for command in COMMANDS)
