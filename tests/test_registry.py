"""Operators and functions from a Python file that a person names on the command line."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from epicortex import registry as plugins
from epicortex.cli import main
from epicortex.errors import ConfigError

PLUGIN = """
import torch
from epicortex.families.layered import KernelOperator

class Kernels(KernelOperator):
    name = "kernels_again"

def top_two(logits, labels):
    return float((logits.topk(2).indices == labels[:, None]).any(1).float().mean())

def sgd(parameters, lr=0.05):
    return torch.optim.SGD(parameters, lr=lr)

operators = [Kernels()]
fitness = {"top_two": top_two}
optimisers = {"Sgd": sgd}
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN)
    return path


def test_a_file_gives_what_it_defines(plugin: Path) -> None:
    found = plugins.load([plugin])
    assert [operator.name for operator in found.operators] == ["kernels_again"]
    assert list(found.fitness) == ["top_two"]
    assert list(found.optimisers) == ["Sgd"]
    assert found.fitness["top_two"].__name__ == "top_two"


def test_its_functions_reach_a_process_that_has_never_seen_the_file(plugin: Path, tmp_path: Path) -> None:
    function = plugins.load([plugin]).fitness["top_two"]
    (tmp_path / "function").write_bytes(pickle.dumps(function))
    code = (
        "import pickle, pathlib, torch; f = pickle.loads(pathlib.Path('function').read_bytes()); "
        "print(f(torch.tensor([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]]), torch.tensor([1, 0])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "0.5", done.stderr


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("1 / 0", "failed: ZeroDivisionError"),
        ("this is no Python", "failed: SyntaxError"),
        ("x = 1", "defines none of operators, fitness, optimisers, family, evaluator, task, speciation, "),
        ("operators = [3]", "operators must be a list of objects with name"),
        ("fitness = [1]", "fitness must be a dict"),
        ("optimisers = {'a': 1}", "optimisers must be a dict"),
    ],
)
def test_a_file_that_will_not_do_is_refused(text: str, part: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text)
    with pytest.raises(ConfigError, match=part):
        plugins.load([path])


def test_what_is_no_python_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere.py", Path("/dev/null")):
        with pytest.raises(ConfigError, match="must be a Python file"):
            plugins.load([path])


def test_a_run_uses_them_in_worker_processes_and_can_be_resumed(
    plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small = (
        *("--evolution.initial-networks", "3", "--evolution.max-networks", "4"),
        *("--preset", "paper", "--workers", "1", "--quiet", "--out", "run", "--plugin", plugin.name),
        *("--evolution.initial-species", "1", "--training.fitness", "top_two", "--training.optimiser", "Sgd"),
    )
    assert main(["evolve", "digits", "--generations", "1", *small]) == 0
    text = (tmp_path / "run" / "config.toml").read_text()
    for line in (
        'operators = ["layer", "node", "stride", "kernel", "kernels_again"]',
        'fitness = "top_two"',
        'optimiser = "Sgd"',
    ):
        assert line in text
    assert main(["resume", "run", "--generations", "2", "--engine", "serial"]) == 2
    assert "kernels_again" in capsys.readouterr().err
    again = ["resume", "run", "--generations", "2", "--engine", "serial", "--plugin", plugin.name]
    assert main(again) == 0


def test_a_long_name_is_quoted_in_part() -> None:
    with pytest.raises(ConfigError) as refused:
        plugins.find(plugins.SHELVES["family"], "x" * 100_000)
    assert len(str(refused.value)) < 400
