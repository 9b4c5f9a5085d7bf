"""`evolve` and `resume`, as the real command in real processes, terminals and signals."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import SMALL, Command, Here, run_command, words
from tests.contracts.world import PATIENCE

Finished = tuple[Path, "subprocess.CompletedProcess[str]"]


def same_bytes(one: Path, other: Path) -> None:
    """Equal in all that does not come from the clock."""
    for name in ("networks.jsonl", "champion/genome.json", "champion/model.safetensors"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    assert without_clock(one) == without_clock(other)


def without_clock(run: Path) -> list[dict[str, object]]:
    lines = (json.loads(line) for line in (run / "history.jsonl").read_text().splitlines())
    return [{name: value for name, value in line.items() if not name.endswith("seconds")} for line in lines]


def wait_for(path: Path, lines: int, process: subprocess.Popen[str]) -> None:
    """Until a file has as many lines; the process must be running still."""
    end = time.monotonic() + PATIENCE
    while not (path.exists() and len(path.read_text().splitlines()) >= lines):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_run_in_a_log_is_a_line_a_generation_and_what_to_do_next(finished: Finished) -> None:
    run, done = finished
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    for number, line in enumerate(lines[:5], 1):
        assert re.match(
            rf"generation {number}/5  best \d+\.\d\d %  mean .*  offspring .*  \d+ networks", line
        )
    rest = "\n".join(lines[5:])
    assert re.search(
        r"champion  accuracy \d+\.\d\d % on the validation set, \d+\.\d\d % on the test set", rest
    )
    assert "ended     all 5 generations are done" in rest
    assert "results   runs/digits-1" in rest
    assert "next      epicortex show runs/digits-1" in rest
    assert "\x1b" not in done.stdout
    assert (run / "config.toml").exists()


def test_quiet_prints_the_result_only_and_a_fresh_folder_is_found(here: Here, tmp_path: Path) -> None:
    (tmp_path / "runs" / "digits-1").mkdir(parents=True)
    first, second, third = here("evolve", "digits", *SMALL, "--generations", "1", "--quiet").splitlines()
    assert re.match(r"champion  accuracy \d+\.\d\d % on the test set$", first)
    assert "parameters" in second
    assert third == "results   runs/digits-2"


def test_the_command_is_recorded_with_the_run(finished: Finished) -> None:
    run, _ = finished
    assert 'command = "epicortex evolve digits --engine serial' in (run / "config.toml").read_text()


def test_a_run_starts_from_another_runs_champion(finished: Finished, here: Here, tmp_path: Path) -> None:
    run, _ = finished
    here("evolve", "digits", *SMALL, "--generations", "1", "--from", str(run), "--out", "grown")
    genome = json.loads((run / "champion" / "genome.json").read_text())["genome"]
    first = json.loads((tmp_path / "grown" / "networks.jsonl").read_text().splitlines()[0])
    assert first["genome"] == genome


def test_short_options_set_what_they_name(here: Here, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('preset = "paper"\n[training]\nportion = 0.3\n')
    said = here(
        *("evolve", "--preset", "mine.toml", "--seed", "7", "--generations", "3", "--target", "1%"),
        *("--engine=serial", "--max-parameters", "5000", "--no-speciation", "digits", "--out", "run"),
        *("--evolution.initial_networks", "3", "--evolution.max-networks=4"),
        *("--minutes", "5", "--workers", "1"),
    )
    assert "the target of 1 % is reached" in said
    text = (tmp_path / "run" / "config.toml").read_text()
    for line in (
        *("seed = 7", "generations = 3", "target = 0.01", "max_parameters = 5000", 'speciation = "none"'),
        *("initial_networks = 3", "max_networks = 4", "minutes = 5.0", "workers = 1", 'engine = "serial"'),
        *("portion = 0.3", 'fitness_on = "test"', 'source = "digits"'),
    ):
        assert f"\n{line}\n" in text
    assert len((tmp_path / "run" / "history.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize("option", ["--from nowhere", "--training.optimiser Adm", "--training.fitness best"])
def test_a_refused_run_leaves_no_folder_behind(option: str, here: Here, tmp_path: Path) -> None:
    here("evolve", "digits", "--engine", "serial", *option.split(), code=2)
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_after_a_checkpoint_and_resume_ends_with_the_same_bytes(
    number: signal.Signals, code: int, finished: Finished, tmp_path: Path
) -> None:
    whole, _ = finished
    process = subprocess.Popen(
        words("evolve", "digits", *SMALL, "--generations", "5", "--training.fitness-on", "validation"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    run = tmp_path / "runs" / "digits-1"
    wait_for(run / "history.jsonl", 1, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert "stopped; this goes on:  epicortex resume runs/digits-1" in out
    assert err == "epicortex: stopping after a checkpoint; Ctrl-C again ends at once\n"
    assert len((run / "history.jsonl").read_text().splitlines()) < 5
    done = run_command(("resume", "runs/digits-1", "--quiet"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "results   runs/digits-1" in done.stdout
    same_bytes(run, whole)


def test_a_run_under_nohup_outlives_its_terminal(finished: Finished, tmp_path: Path) -> None:
    whole, _ = finished
    more = ("evolve", "digits", *SMALL, "--generations", "5", "--training.fitness-on", "validation")
    with (tmp_path / "out").open("w") as out:
        process = subprocess.Popen(["nohup", *words(*more)], cwd=tmp_path, stdout=out, stderr=out, text=True)
    run = tmp_path / "runs" / "digits-1"
    wait_for(run / "history.jsonl", 1, process)
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=PATIENCE) == 0
    same_bytes(run, whole)


def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    # A long training in the engine's own thread is not finished first.
    args = ("--preset", "layered", "--engine", "serial", "--training.min-steps", "1000000")
    process = subprocess.Popen(
        words("evolve", "digits", *args, "--out", "run"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    journal = tmp_path / "run" / "config.toml"
    wait_for(journal, 1, process)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert "Ctrl-C again ends at once" in process.stderr.readline()  # two at once would count as one
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Traceback" not in err


def test_resume_extends_a_run_to_the_same_bytes_and_refuses_other_settings(
    finished: Finished, here: Here, tmp_path: Path
) -> None:
    whole, _ = finished
    validation = ("--training.fitness-on", "validation")
    here("evolve", "digits", *SMALL, "--generations", "2", "--out", "run", *validation)
    for option in ("--seed", "--evolution.seed"):
        said = here("resume", "run", option, "5", code=2)
        assert "evolution.seed is 1 in this run and cannot become 5" in said
    said = here("resume", "run", "--generations", "0", code=2)
    assert "evolution.generations is 0; it must be a whole number" in said
    said = here("resume", "run", "--generations", "5")
    assert [line.split()[1] for line in said.splitlines()[:3]] == ["3/5", "4/5", "5/5"]
    same_bytes(tmp_path / "run", whole)
    assert "all 5 generations are done" in here("resume", "run")


def screen(command: list[str], folder: Path, *, interrupt_when: str) -> tuple[int, str]:
    """Run a command in a terminal of 80 × 24 and type Ctrl-C; give its exit code and all that it wrote."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.environ["TERM"] = "xterm-256color"
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    written, typed = b"", False
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                written += os.read(terminal, 65536)
            except OSError:  # the other end is closed
                break
        if not typed and re.search(interrupt_when.encode(), written):
            os.write(terminal, b"\x03")
            typed = True
    else:
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), written.decode()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_in_a_terminal_the_display_is_live_and_ctrl_c_stops_the_run(tmp_path: Path) -> None:
    code, text = screen(
        words("evolve", "digits", *SMALL, "--generations", "5000"),
        tmp_path,
        interrupt_when=r"generation ([3-9]|\d\d+) of 5000",
    )
    assert code == 130
    for part in (
        "EpiCortex · digits · runs/digits-1",
        "before training",
        "┤",
        "left",
    ):
        assert part in text
    assert "stopped; this goes on:  epicortex resume runs/digits-1" in text
    assert "Traceback" not in text
    assert text.rstrip().endswith("runs/digits-1")
    assert "\x1b[?25h" in text, "the cursor must be visible again"


def test_a_run_lives_with_emoji_in_its_path_and_that_of_its_data(epicortex: Command, tmp_path: Path) -> None:
    data, run = tmp_path / "data 🧠.npz", tmp_path / "run 😀"
    rng = np.random.default_rng(1)
    np.savez(data, x=rng.random((60, 6, 6), dtype=np.float32), y=np.arange(60) % 3)
    done = epicortex("evolve", str(data), *SMALL, "--generations", "1", "--out", str(run))
    assert done.returncode == 0, done.stderr
    done = epicortex("resume", str(run), "--generations", "2")
    assert done.returncode == 0, done.stderr
    assert epicortex("show", str(run)).returncode == 0
