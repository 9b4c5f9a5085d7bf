"""Names that would steer a terminal, readers and terminals that go away, limits of the system: one line."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from epicortex.champion import file as champions
from epicortex.cli import main
from epicortex.cli.progress import signals
from epicortex.errors import ConfigError
from tests.champions import make_champion
from tests.cli.conftest import SMALL, words
from tests.contracts.world import PATIENCE, until

Finished = tuple[Path, "subprocess.CompletedProcess[str]"]
#: An escape sequence, the same as a single C1 character, a line of its own, a formula, and markup.
NAMES = ("=cmd|'/c calc'!A1", "a\x1b[31mred\x9b31m", "line\nepicortex: rm -rf ~", "<img src=x>|`*b*`")


def quiet(text: str) -> bool:
    """Whether a terminal shows a text as it is."""
    return all(letter.isprintable() or letter == "\n" for letter in text)


@pytest.fixture
def named(tmp_path: Path) -> Path:
    champion = make_champion((1, 8, 8), ("one", "two", "three", "four"))
    facts = replace(champion.facts, classes=NAMES, data="data\x1b]0;x\x07`<b>")
    folder = tmp_path / "champion"
    folder.mkdir()
    champions.write(folder, replace(champion, facts=facts))
    Image.new("L", (8, 8)).save(tmp_path / "=1+1.png")
    return folder


def test_names_reach_no_output_as_commands_formulas_or_markup(
    named: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    card = (named / "card.md").read_text()
    assert quiet(card)
    assert "<img" not in card
    assert "\nepicortex: rm" not in card
    model = str(named / "model.safetensors")
    assert main(["predict", model, "=1+1.png", "--csv"]) == 0
    text = capsys.readouterr().out
    assert quiet(text)
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["file"] == "'=1+1.png"
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row.values())
    assert main(["predict", model, "=1+1.png", "--json"]) == 0
    text = capsys.readouterr().out
    assert quiet(text)
    assert tuple(json.loads(text)["classes"]) == NAMES


def test_a_folder_with_a_strange_name_is_shown_and_its_command_can_be_copied(
    finished: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = finished[0]
    strange = tmp_path / "x; echo \x1b[2J 'owned'\n"
    strange.symlink_to(run.parent)
    folder = strange / run.name
    assert main(["show", str(folder)]) == 0
    assert quiet(capsys.readouterr().out)
    from epicortex.config import Config
    from epicortex.run.consent import resume_command

    command = resume_command(folder, Config())
    assert quiet(command)
    said = subprocess.run(["bash", "-c", f"printf '%s|' {command}"], capture_output=True, check=True)
    assert said.stdout.decode().split("|") == ["epicortex", "resume", str(folder), ""]


@pytest.mark.parametrize("command", ["show", "data"])
def test_a_reader_that_leaves_early_is_141(command: str, finished: Finished, tmp_path: Path) -> None:
    more = [str(finished[0])] if command == "show" else []
    process = subprocess.Popen(words(command, *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(PATIENCE) == 141
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_terminal_that_is_closed_is_129_and_the_run_goes_on_later(tmp_path: Path) -> None:
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        os.environ["TERM"] = "xterm-256color"
        more = ("evolve", "digits", *SMALL, "--training.min-steps", "300", "--generations", "50")
        os.execvp(sys.executable, words(*more, "--out", "run"))
    os.set_blocking(terminal, False)

    def drained() -> bool:
        with suppress(BlockingIOError):
            os.read(terminal, 65536)
        return (tmp_path / "run" / "checkpoints" / "00000001").exists()

    assert until(drained)
    os.close(terminal)
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 129


IMPATIENT = """
import os, signal, sys
from epicortex.__main__ import main
sys.argv = ["epicortex", "evolve", "nowhere"]
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))  # Ctrl-C to the millisecond
signal.setitimer(signal.ITIMER_REAL, float(os.environ["DELAY"]))
sys.exit(main())
"""


def test_ctrl_c_while_the_command_is_still_being_imported_is_one_line() -> None:
    said = set()
    for delay in (0.003, 0.006, 0.01, 0.015, 0.02, 0.03, 0.05, 0.08):
        done = subprocess.run(
            [sys.executable, "-c", IMPATIENT],
            env={**os.environ, "DELAY": str(delay)},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode in (2, 130), done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        said.add(done.stderr)
    assert "epicortex: stopped\n" in said


class _Panic(BaseException):
    """What a Rust extension raises whose import is interrupted."""


@pytest.mark.parametrize("running", [False, True], ids=["at first", "while a run begins"])
@pytest.mark.parametrize("error", [ImportError, _Panic, ConfigError, OSError])
def test_what_an_import_makes_of_ctrl_c_is_still_a_stop(
    error: type[BaseException],
    running: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(_: object) -> int:
        with signals() if running else nullcontext():
            if running:
                signal.raise_signal(signal.SIGINT)  # a request; the next one is meant
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise error("datetime") from None
        return 0

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("epicortex.cli.show.run", interrupted)
    try:
        assert main(["show", "run"], impatient=True) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "epicortex: stopped\n"


def test_a_path_that_is_too_long_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = tmp_path
    while len(str(deep)) < 3900:
        deep /= "d" * 200
    for line in (
        ["evolve", "digits", "--out", str(deep / ("e" * 150))],
        ["export", "x", "--to", str(deep) * 2],
    ):
        assert main(line) == 2
        err = capsys.readouterr().err
        assert "this is a bug" not in err
        assert err.count("\n") == 1


THREADS = """
import resource, sys, threading
from pathlib import Path
import epicortex.run, epicortex.evaluation, epicortex.cli.evolve, epicortex.engines.serial
from epicortex.cli import main
held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + 2**29, resource.RLIM_INFINITY))
threading.stack_size(2**30)
sys.exit(main(["evolve", "digits", "--engine", "serial", "--generations", "1"]))
"""


def test_no_more_threads_is_one_line(tmp_path: Path) -> None:
    """There is no room for the stack of another; a limit on processes would not hold for root."""
    done = subprocess.run(
        [sys.executable, "-c", THREADS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    assert done.stderr == "epicortex: no more threads can be started here; raise the limit (ulimit -u)\n"


FULL = """
import resource, sys
import numpy as np
import epicortex
from epicortex.config import changed
from epicortex.errors import EpiCortexError
x, y = np.zeros((4000, 1, 20, 20), np.float32), np.arange(4000) % 2
config = changed(epicortex.Config(), training={"engine": sys.argv[1], "fitness_on": "validation"})
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    epicortex.evolve((x, y), config, out=sys.argv[3])
except EpiCortexError as error:
    print(type(error).__name__, error)
"""


def test_thirty_thousand_classes_are_only_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing takes a time, or makes a list, that grows with every pair of classes."""
    many = 30_000
    x = np.arange(4 * many, dtype=np.float32).reshape(-1, 2)
    y = np.array([f"c{number % many}" for number in range(len(x))])
    np.savez(tmp_path / "many.npz", x_train=x, y_train=y, x_test=x[:200], y_test=y[:200])
    (tmp_path / "few.csv").write_text("v,w,label\n1,2,c5\n3,4,c29999\n")
    run, few = str(tmp_path / "run"), str(tmp_path / "few.csv")
    small = (
        "--evolution.initial-networks",
        "2",
        "--evolution.max-networks",
        "2",
        "--training.portion",
        "0.01",
    )
    how = (*("--preset", "layered", "--engine", "serial", "--generations", "1"), *small)
    to = ("--out", run, "--quiet", "--training.fitness-on", "test", "--data.min-per-class", "1")
    assert main(["evolve", str(tmp_path / "many.npz"), *how, *to]) == 0
    onnx = ["export", run, "--to", str(tmp_path / "many.onnx")]
    began = time.process_time()
    for command in (["show", run], ["report", run], ["predict", run, few], ["evaluate", run, few], onnx):
        assert main(command) == 0
    assert "too large to be drawn" in (Path(run) / "report.html").read_text()
    capsys.readouterr()
    assert main(["evaluate", run, few, "--json"]) == 0
    assert time.process_time() - began < 40  # a table by class took minutes
    told = json.loads(capsys.readouterr().out)
    assert (told["samples"], len(told["classes"]), told["confusion"]) == (2, many, None)


@pytest.mark.parametrize(
    ("engine", "limit", "kind"), [("serial", 2_000, "UnwritableError"), ("processes", 100_000, "EngineError")]
)
def test_a_full_disk_is_an_error_of_ours_in_python_too(
    engine: str, limit: int, kind: str, tmp_path: Path
) -> None:
    """With a limit on the size of files, which answers as a full disk does."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, engine, str(limit), str(tmp_path / "run")],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == kind, done.stdout


def test_an_export_leaves_nothing_but_its_file(tmp_path: Path, named: Path) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    more = ("export", str(named / "model.safetensors"), "--to", str(tmp_path / "model.pt2"))
    done = subprocess.run(
        words(*more), env={**os.environ, "TMPDIR": str(place)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert list(place.iterdir()) == []
