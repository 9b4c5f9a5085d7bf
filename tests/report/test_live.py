"""A run watched in a browser: the page follows it, pauses it, goes on with it and stops it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.report.browser import Page, chromium
from tests.report.world import pretended_run

_PATIENCE = 90.0
SMALL = ("--preset", "layered", "--engine", "serial", "--seed", "3", "--generations", "400")


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "epicortex", *map(str, words)]


@contextmanager
def watching(run: Path, *more: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a server that runs for a while."""
    words = command("watch", run, "--port", "0", *more)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[1], process
    finally:
        process.terminate()
        process.communicate()


def get(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=_PATIENCE) as answer:
        return answer.read().decode()


def refused(address: str, data: bytes | None = None) -> int:
    """The code with which a request is refused."""
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(address, data=data, timeout=_PATIENCE)
    with raised.value as error:
        return int(error.code)


def press(page: Page, name: str) -> None:
    """Press a button as soon as it is there."""
    button = f"document.getElementById('run-{name}')"
    page.wait(f"return {button}?.hidden === false && ({button}.click(), true)")


def wait_for(address: str, state: str) -> dict[str, str]:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        found: dict[str, str] = json.loads(get(f"{address}state"))
        if found["state"] == state:
            return found
        time.sleep(0.1)
    raise AssertionError(f"the run is {found}, not {state}")


def generations(run: Path) -> int:
    return len((run / "history.jsonl").read_text().splitlines())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pretended_run(tmp_path_factory.mktemp("runs") / "run", evolution__generations=3)


def test_only_who_knows_the_token_is_answered(finished: Path) -> None:
    with watching(finished) as (address, _):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", address)
        assert "<!doctype html>" in get(address)
        root = address.rsplit("/", 2)[0]
        for path in ("/", "/state", f"/{'x' * 32}/", f"/{'x' * 32}/state", "/../etc/passwd"):
            assert refused(root + path) == 404
        assert refused(f"{root}/{'x' * 32}/stop", b"") == 404
        found = json.loads(get(f"{address}state"))
        assert (found["state"], found["words"]) == ("ended", "The run has ended: 3 generations")


def test_what_is_no_run_is_refused_in_one_line(tmp_path: Path, finished: Path) -> None:
    done = subprocess.run(command("watch", tmp_path), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"epicortex: {tmp_path} is no run: it has no config.toml\n")
    words = command("watch", finished, "--port", "99999")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_a_run_of_another_program_is_not_touched(finished: Path, tmp_path: Path) -> None:
    """It may not end cleanly when it is asked to: who began it has to stop it."""
    program = tmp_path / "own.py"
    program.write_text(
        "import sys, time\nfrom pathlib import Path\nfrom epicortex.storage.lock import Lock\n"
        "held = Lock(Path(sys.stdin.readline().strip()))\nprint('held', flush=True)\ntime.sleep(60)\n"
    )
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    own = subprocess.Popen(
        [sys.executable, program.name], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert own.stdin is not None
        assert own.stdout is not None
        print(copy, file=own.stdin, flush=True)
        assert own.stdout.readline() == "held\n"
        with watching(copy) as (address, _):
            assert json.loads(get(f"{address}state"))["state"] == "running"
            with urllib.request.urlopen(f"{address}stop", data=b"", timeout=_PATIENCE) as answer:
                refusal = json.loads(answer.read())["refused"]
        assert refusal == f"the run was begun by a program (process {own.pid}): stop it there"
        assert own.poll() is None
    finally:
        own.kill()
        own.communicate()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with chromium(tmp_path / "profile") as opened:
        yield opened


@pytest.mark.slow
def test_a_run_is_followed_paused_continued_and_stopped_from_the_page(page: Page, tmp_path: Path) -> None:
    run = tmp_path / "run"
    evolving = subprocess.Popen(command("evolve", "digits", "--out", run, "--quiet", *SMALL))
    while not (run / "history.jsonl").exists() or generations(run) < 1:
        assert evolving.poll() is None
        time.sleep(0.1)
    with watching(run) as (address, server):
        page.driver.get(address)
        shown = "return document.querySelector('.watching')?.dataset.version"
        first = page.wait(shown)
        page.wait(f"{shown} && document.querySelector('.watching').dataset.version !== '{first}'")
        assert page.wait("return document.querySelector('#h-summary')?.textContent") == "Networks for digits"
        page.wait("return document.querySelector('#run-state')?.textContent.startsWith('Running')")
        press(page, "pause")
        assert evolving.wait(_PATIENCE) == 143  # as ever after SIGTERM
        wait_for(address, "paused")
        before = generations(run)
        page.wait("return document.querySelector('#run-state')?.textContent.startsWith('Paused')")
        press(page, "continue")
        wait_for(address, "running")
        end = time.monotonic() + _PATIENCE
        while generations(run) <= before and time.monotonic() < end:
            time.sleep(0.1)
        assert generations(run) > before
        press(page, "stop")
        assert server.wait(_PATIENCE) == 0
        page.wait("return document.querySelector('#run-state').textContent.startsWith('Stopped')")
    done = subprocess.run(command("show", run), capture_output=True, text=True, check=True)
    assert "resume" in done.stdout


@pytest.mark.slow
def test_evolve_watches_itself_and_the_server_ends_with_nobody_looking(tmp_path: Path) -> None:
    words = command("evolve", "digits", "--out", tmp_path / "run", "--watch", *SMALL[:-1], "2")
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    address = re.findall(r"watch +(http://\S+)", done.stderr + done.stdout)[0]
    found = wait_for(address, "ended")
    assert found["words"] == "The run has ended: 2 generations"
    assert "accuracy on the test set" in get(address)
