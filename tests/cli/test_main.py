"""The command line says what is wrong in one line, with an exit code to go by."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from epicortex import cli
from epicortex.cli import COMMANDS, main
from epicortex.errors import EngineError, RunError, StorageError
from tests.cli.conftest import Command, words
from tests.contracts.world import PATIENCE


def refusal(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """What a refused command says: one line on standard error, exit code 2, nothing on standard output."""
    assert main(args) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("epicortex: ")
    return lines[0]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("evolv digits", ["no command 'evolv'", "did you mean evolve?"]),
        ("foo", ["no command 'foo'", "epicortex --help"]),
        ("--foo", ["no option '--foo'"]),
        ("--versoin", ["did you mean --version?"]),
        ("evolve", ["DATA is missing", "epicortex evolve digits"]),
        ("evolve digits mnist", ["mnist"]),
        ("evolve digits --generatons 3", ["did you mean --generations?", "epicortex evolve --help"]),
        ("evolve --generatons 3 digits", ["did you mean --generations?"]),
        ("evolve digits --generations", ["--generations needs a value"]),
        (
            "evolve digits --generations 0",
            ["evolution.generations (--generations) is 0", "from 1 to 1000000"],
        ),
        ("evolve digits --generations many", ['is "many"', "a whole number from 1 to 1000000"]),
        ("evolve digits --generations 1.5", ['is "1.5"', "a whole number"]),
        ("evolve digits --seed -1", ["evolution.seed (--seed) is -1", "at least 0"]),
        ("evolve digits --target 97", ["evolution.target (--target) is 97.0", "above 0 and at most 1"]),
        ("evolve digits --target 101%", ["evolution.target (--target) is 1.01"]),
        ("evolve digits --minutes 0", ["evolution.minutes (--minutes) is 0.0", "above 0"]),
        ("evolve digits --minutes -5", ["evolution.minutes (--minutes) is -5.0"]),
        ("evolve digits --minutes nan", ["is NaN"]),
        ("evolve digits --workers 0", ["training.workers (--workers) is 0", "from 1 to 100000"]),
        ("evolve digits --device gpu", ["training.device (--device)", "cpu, mps, cuda or cuda:N"]),
        ("evolve digits --engine proceses", ["training.engine", "did you mean 'processes'?"]),
        ("evolve digits --max-parameters 0", ["evolution.max_parameters (--max-parameters) is 0"]),
        ("evolve digits --no-speciation=5", ["--no-speciation"]),
        ("evolve digits --preset papr", ["no preset", "did you mean paper?"]),
        ("evolve digits --preset nope.toml", ["nope.toml", "No such file"]),
        ("evolve digits --evolution.max-networkz 3", ["did you mean --evolution.max-networks?"]),
        ("evolve digits --evolution.max-networks 1", ["evolution.max_networks is 1", "from 2 to 1000000"]),
        ("evolve digits --evolution.initial-species 99", ["initial_species is 99", "at most 16"]),
        ("evolve digits --budget.newborns maybe", ["one of trained, scored"]),
        ("evolve digits --evolution.speciation perhaps", ["no speciation is called 'perhaps'", "key, none"]),
        ("evolve digits --evolution.evolve perhaps", ["true or false"]),
        ("evolve digits --evolution.newborns scored", ["did you mean --budget.newborns?"]),
        ("evolve digits --training.portion 0", ["training.portion is 0.0", "above 0 and at most 1"]),
        ("evolve digits --training.optimiser-arguments 0.1", ["pairs of name and value"]),
        ('evolve digits --training.optimiser-arguments {"lr":', ["pairs of name and value", "JSON object"]),
        ("evolve digits --training.fitness-on tset", ["did you mean test?"]),
        ("evolve digits --data.image-size 0x4", ["data.image_size is [0, 4]", "from 1 to 4096"]),
        ("evolve digts", ["digts", "did you mean digits?"]),
        ("evolve /nowhere/at/all", ["/nowhere/at/all"]),
        ("evolve digits --plugin nowhere.py", ["nowhere.py", "Python file"]),
        ("evolve digits --from nowhere", ["nowhere"]),
        ("evolve digits --out /proc/nowhere/run", ["/proc/nowhere"]),
        ("evolve mnist --data-dir /nowhere", ["/nowhere", "epicortex data get mnist"]),
        ("resume", ["RUN is missing"]),
        ("resume nowhere", ["nowhere is not a run folder"]),
        ("resume / --generations 0", ["is not a run folder"]),
        ("resume nowhere --sede 3", ["no option '--sede'"]),
        ("show", ["RUN is missing"]),
        ("show nowhere", ["nowhere is not a run folder"]),
        ("show nowhere --jsn", ["did you mean --json?"]),
        ("show a b", ["b"]),
        ("data lst", ["no action 'lst'", "did you mean list?"]),
        ("data get", ["needs the name of a data set"]),
        ("data get nope", ["no built-in data set 'nope'", "mnist"]),
        ("data check nope", ["no built-in data set 'nope'"]),
        ("data --mirror", ["--mirror needs a value"]),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(
    line: str,
    parts: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    said = refusal(capsys, *line.split())
    for part in parts:
        assert part in said
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StorageError("no run here"), 2),
        (RunError("all networks failed"), 4),
        (EngineError("no worker starts"), 4),
    ],
)
def test_the_exit_code_says_what_kind_of_trouble_it_is(
    error: Exception, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr(cli, "_dispatch", fail)
    assert main([]) == code
    assert capsys.readouterr().err == f"epicortex: {error}\n"


def test_a_full_disk_behind_a_storage_error_has_its_own_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> int:
        try:
            Path("/dev/full").write_text("x")
        except OSError:
            raise StorageError("run/history.jsonl cannot be written: the disk is full") from None
        return 0

    monkeypatch.setattr(cli, "_dispatch", fail)
    assert main([]) == 3
    assert "the disk is full" in capsys.readouterr().err


def test_too_little_memory_is_no_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for make in (lambda: np.zeros(2**58, np.uint8), lambda: torch.zeros(2**58, dtype=torch.uint8)):
        monkeypatch.setattr(cli, "_dispatch", lambda *_, make=make: make())
        assert main([]) == 4
        assert capsys.readouterr().err.startswith("epicortex: there is too little memory for this: ")


def test_a_bug_is_one_line_and_a_file_with_the_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(*_: object) -> int:
        raise KeyError("an unknown\n thing")

    monkeypatch.setattr(cli, "_dispatch", fail)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delenv("EPICORTEX_DEBUG", raising=False)
    assert main([]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "this is a bug" in said
    (file,) = tmp_path.iterdir()
    assert str(file) in said
    assert "Traceback" in file.read_text()
    monkeypatch.setenv("EPICORTEX_DEBUG", "1")
    assert main([]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_what_a_message_quotes_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "\x1b[2Jgone\nfor good"]) == 2
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert said.count("\n") == 1


def test_help_lists_every_command_and_imports_none_of_the_heavy_libraries() -> None:
    code = (
        "import sys; from epicortex.cli import main; code = main(['--help']); "
        "heavy = {'torch', 'numpy', 'pydantic', 'rich', 'sklearn'} & set(sys.modules); "
        "sys.exit(f'imported {heavy}' if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name, summary in COMMANDS.items():
        assert name in done.stdout
        assert summary in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_without_torch(name: str) -> None:
    code = (
        f"import sys; from epicortex.cli import main; code = main(['{name}', '--help']); "
        "sys.exit('torch was imported' if 'torch' in sys.modules else code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"usage: epicortex {name}" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 110


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_module_of_its_own(name: str) -> None:
    module = importlib.import_module(f"epicortex.cli.{name}")
    assert callable(module.add_arguments)
    assert callable(module.run)


def test_help_all_lists_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    from epicortex.config import fields

    assert main(["evolve", "--help"]) == 0
    short = capsys.readouterr().out
    assert main(["evolve", "--help-all"]) == 0
    full = capsys.readouterr().out
    for setting in fields.settings().values():
        assert setting.option in full
        about = full.rsplit(f"  {setting.option} ", 1)[-1].split("\n  --")[0]
        assert not setting.section or setting.default in (None, "", {}, [], ()) or "default" in about, about
        # What stands in no section has no shorter name.
        assert (setting.option in short) == (not setting.section)
    for option in ("--preset", "--out", "--seed", "--from", "--quiet", "--no-speciation", "--help-all"):
        assert option in short


def test_help_of_resume_lists_only_what_may_change(capsys: pytest.CaptureFixture[str]) -> None:
    from epicortex.config import MAY_CHANGE_ON_RESUME

    assert main(["resume", "--help-all"]) == 0
    text = capsys.readouterr().out
    for name in MAY_CHANGE_ON_RESUME:
        assert "--" + name.replace("_", "-") in text
    assert "--evolution.max-networks" not in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    name, version, *arithmetic = capsys.readouterr().out.split()
    assert name == "epicortex"
    assert version[0].isdigit()
    assert arithmetic[0] in ("(native", "(torch;")


def test_a_reader_that_goes_away_ends_the_command_quietly() -> None:
    process = subprocess.Popen(
        words("data"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(PATIENCE) == 141
    assert process.stderr.read() == ""
    process.stderr.close()


def test_an_output_that_is_full_is_said_in_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words("data"), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == "epicortex: cannot write: No space left on device\n"


def test_a_terminal_without_the_characters_is_no_error(epicortex: Command) -> None:
    done = epicortex("data", "list", "digits", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "digits" in done.stdout


@pytest.mark.parametrize("command", ["report RUN --out PIPE", "export RUN --to PIPE"])
def test_a_pipe_is_not_replaced_by_a_file(
    command: str, finished: tuple[Path, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe.safetensors"
    os.mkfifo(pipe)
    places = {"RUN": str(finished[0]), "PIPE": str(pipe)}
    said = refusal(capsys, *(places.get(word, word) for word in command.split()))
    assert "it is a device, a pipe or a socket" in said
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]
