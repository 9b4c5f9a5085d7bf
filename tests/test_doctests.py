"""Every example in a docstring of the package runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import inspect
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType

import pytest

import epicortex
from epicortex import native

PACKAGE = Path(epicortex.__file__).parent
PROMPT = ">>> "


def _prompts(file: Path) -> int:
    return sum(line.lstrip().startswith(PROMPT) for line in file.read_text("utf-8").splitlines())


#: Modules without an example need not be imported: some of them need Ray or MPI.
FILES = [file for file in sorted(PACKAGE.rglob("*.py")) if _prompts(file)]


def _name(file: Path) -> str:
    parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _examples(module: ModuleType) -> Iterator[doctest.DocTest]:
    finder = doctest.DocTestFinder()
    found = finder.find(module)
    yield from found
    known = {test.name for test in found}
    for name, owner in inspect.getmembers(module, inspect.isclass):
        if owner.__module__ == module.__name__:
            for key, value in vars(owner).items():
                full = f"{module.__name__}.{name}.{key}"
                if isinstance(value, cached_property) and full not in known:  # older doctests pass them by
                    yield from finder.find(value.func, full, module)


def test_there_are_examples_to_run() -> None:
    assert sum(map(_prompts, FILES)) > 100


@pytest.mark.parametrize("file", FILES, ids=_name)
def test_the_examples_of_a_module_hold(file: Path) -> None:
    module = importlib.import_module(_name(file))
    if module.__name__.startswith("epicortex.native") and not native.available():
        pytest.skip(str(native.why_not()))
    assert Path(module.__file__ or "") == file
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    said: list[str] = []
    seen = 0
    for test in _examples(module):
        seen += len(test.examples)
        runner.run(test, out=said.append)
    assert not said, "".join(said)
    assert seen == _prompts(file), f"{file.name}: an example stands where doctest does not look"
