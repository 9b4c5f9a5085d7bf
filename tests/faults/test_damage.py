"""Every file of a run, cut off at every place and with bytes flipped: the state before, or one clear line."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from epicortex.errors import StorageError
from epicortex.run.lifecycle import resume
from epicortex.run.record import load_champion, read_run
from epicortex.run.recorder import Recorder
from epicortex.storage import checkpoint
from epicortex.storage.folder import RunFolder
from tests.faults.make_fixture import FAMILY, FIXTURES, make
from tests.faults.test_old_runs import Notes
from tests.faults.world import THOROUGH, Nursery, counted, same_bytes
from tests.storage.states import identity

OLD = FIXTURES / "run-format-1"
FILES = sorted(str(path.relative_to(OLD)) for path in OLD.rglob("*") if path.is_file())
LOGS = ("history.jsonl", "networks.jsonl")


def beginning(run: Path) -> dict[str, Any]:
    """What a resume would go on from: everything it reads, and what it says about it."""
    with closing(RunFolder.open(run)) as folder:
        start, problems = checkpoint.read_latest(run, run=folder.info.id, family=FAMILY)
        with closing(Recorder(folder, start, family=FAMILY)) as recorder:
            generation = start.state.generation if start else 0
            with closing(recorder.journal(generation + 1, start.digest if start else "")) as journal:
                return {
                    "generation": generation,
                    "state": identity(start.state) if start else None,
                    "logs": {name: (run / name).read_bytes() for name in LOGS},
                    "outcomes": {id: identity(outcome) for id, outcome in journal.outcomes.items()},
                    "notes": problems + journal.problems,
                }


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Any]]:
    """What is right to go on from, by generation; without its newest checkpoint too."""
    run = Path(shutil.copytree(OLD, tmp_path_factory.mktemp("truth") / "run"))
    newest = beginning(run)
    shutil.rmtree(run / "checkpoints" / "00000002")
    return {2: newest, 1: beginning(run)}


def check_beginning(run: Path, truth: dict[int, dict[str, Any]]) -> str:
    """What becomes of a damaged run: as it was, an earlier state with a note, or refused in one line."""
    try:
        found = beginning(run)
    except StorageError as error:
        one_line(error)
        return "refused"
    right = truth[found["generation"]]
    assert found["state"] == right["state"]
    assert found["logs"] == right["logs"]
    assert found["outcomes"].items() <= right["outcomes"].items()
    assert all("\n" not in note for note in found["notes"])
    if found["generation"] < 2:
        assert found["notes"], "an earlier state was used without a word"
        return "earlier"
    return "as it was"


def check_reading(run: Path) -> None:
    """What only looks at a run gives what is true, or one line."""
    for read, right in ((lambda: list(read_run(run).networks()), NETWORKS), (champion(run), CHAMPION)):
        try:
            assert read() == right
        except StorageError as error:
            one_line(error)


def one_line(error: StorageError) -> None:
    assert "\n" not in str(error)
    assert len(str(error)) < 2000


def champion(run: Path) -> Callable[[], object]:
    return lambda: identity(load_champion(run).phenotype)


NETWORKS = list(read_run(OLD).networks())
CHAMPION = champion(OLD)()


def damages(whole: bytes, draw: random.Random, flips: int, most_cuts: int) -> Iterator[tuple[str, bytes]]:
    step = max(1, len(whole) // most_cuts)
    for length in range(0, len(whole), step):
        yield f"cut to {length}", whole[:length]
    for _ in range(flips):
        place, change = draw.randrange(len(whole)), draw.randrange(1, 256)
        yield f"byte {place} ^ {change}", whole[:place] + bytes([whole[place] ^ change]) + whole[place + 1 :]


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_gives_the_state_before_or_one_line(
    name: str, truth: dict[int, dict[str, Any]], memory: Path
) -> None:
    whole = (OLD / name).read_bytes()
    draw = random.Random(name)
    flips, cuts = (600, 4000) if THOROUGH else (12, 12)
    run = memory / "run"
    with counted(f"{name}: cut off and with bytes flipped") as tally:
        for what, data in damages(whole, draw, flips, cuts):
            shutil.copytree(OLD, run)
            (run / name).write_bytes(data)
            with tally.case(what):
                check_reading(run)
                became = check_beginning(run, truth)
                if name.startswith("checkpoints/00000002/"):
                    assert became == "earlier"
            shutil.rmtree(run)


def test_a_file_that_is_gone_gives_the_state_before_or_one_line(
    truth: dict[int, dict[str, Any]], tmp_path: Path
) -> None:
    """Logs that are gone are another matter: the run is shown and goes on without them (test_killed)."""
    with counted("files of a run removed") as tally:
        for name in (name for name in FILES if name not in ("history.jsonl", "networks.jsonl")):
            run = Path(shutil.copytree(OLD, tmp_path / name.replace("/", "-")))
            (run / name).unlink()
            with tally.case(name):
                check_reading(run)
                check_beginning(run, truth)


def test_a_damaged_run_that_is_resumed_ends_as_it_should_or_is_refused(memory: Path) -> None:
    """The whole way: if `resume` takes a damaged run at all, it ends with the bytes of the sound one.

    The run is made here and now: to go back a generation trains anew what another machine trained for OLD.
    """
    whole = make(memory / "whole")
    assert sorted(str(path.relative_to(whole)) for path in whole.rglob("*") if path.is_file()) == FILES
    sound = Path(shutil.copytree(whole, memory / "sound"))
    resume(sound, watcher=Notes())
    right = same_bytes(sound)
    draw = random.Random(1)
    run = memory / "run"
    with counted("damaged runs resumed to the end") as tally:
        for number in range(300 if THOROUGH else 12):
            name = draw.choice(FILES)
            what, data = draw.choice(list(damages((whole / name).read_bytes(), draw, 20, 20)))
            shutil.copytree(whole, run)
            (run / name).write_bytes(data)
            with tally.case(f"{number}, {name}: {what}"):
                watcher = Notes()
                try:
                    resume(run, watcher=watcher)
                except StorageError as error:
                    one_line(error)
                else:
                    assert same_bytes(run) == right
                    spoke = [note for note in watcher.notes if "last bits" not in note]
                    if name.startswith("checkpoints/00000002/"):
                        assert any("going back to generation 1" in note for note in spoke)
            shutil.rmtree(run)


def test_the_command_says_one_line_for_a_damaged_run(nursery: Nursery, tmp_path: Path) -> None:
    every = list(itertools.product(("show", "resume"), FILES))
    with counted("damaged runs shown and resumed by the command") as tally:
        for command, name in every if THOROUGH else random.Random(5).sample(every, 10):
            run = Path(shutil.copytree(OLD, tmp_path / f"{command}-{name.replace('/', '-')}"))
            data = bytearray((OLD / name).read_bytes())
            data[len(data) // 2] ^= 0x55
            (run / name).write_bytes(data)
            with tally.case(f"{command}, {name}"):
                ended = nursery.run(command, run)
                assert ended.code in (0, 2), ended
                assert "Traceback" not in ended.err
                assert ended.code == 0 or ended.refusal
