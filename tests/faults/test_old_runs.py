"""Runs of every format that was ever written are read, or refused clearly."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from epicortex.champion import file as champions
from epicortex.cli import main
from epicortex.config import FORMAT_VERSION
from epicortex.errors import EpiCortexError
from epicortex.families.layered.genome import Genome
from epicortex.run.lifecycle import resume
from epicortex.run.record import load_champion, read_run
from epicortex.storage import checkpoint, strict
from epicortex.storage.journal import Heading, Journal
from tests.faults.make_fixture import FAMILY, FIXTURES, SMALL, StopLate
from tests.faults.world import counted, same_bytes

FORMATS = sorted(FIXTURES.glob("run-format-*"))


class Notes(StopLate):
    """Keeps what a person should know."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Keep it."""
        self.notes.append(text)


@pytest.fixture(params=FORMATS, ids=lambda path: path.name)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copytree(request.param, tmp_path / "run"))


def test_there_is_a_run_of_the_first_format() -> None:
    assert FIXTURES / "run-format-1" in FORMATS


def test_an_old_run_is_shown(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(old), "--json"]) == 0
    story = json.loads(capsys.readouterr().out)
    assert [line["generation"] for line in story["history"]] == [1, 2]
    assert story["evaluations"] == 8
    assert story["run"]["data"] == "digits"
    assert story["config"]["evolution"]["seed"] == SMALL["evolution.seed"]


def test_the_champion_of_an_old_run_computes(old: Path) -> None:
    import numpy as np

    from epicortex.champion.module import load

    champion = load_champion(old)
    assert champion.facts.fitness == max(line.highest_fitness or 0.0 for line in read_run(old).history)
    assert load(old).predict(np.zeros((1, 1, 8, 8)))[0] in champion.classes


def test_an_old_run_is_resumed_from_its_checkpoint_and_journal(old: Path) -> None:
    """Its bits may be those of another torch; that it goes on where it stopped does not hang on that."""
    watcher = Notes()
    trained: list[int] = []
    journal = old / "checkpoints" / "00000003.journal"
    kept = journal.read_bytes()
    result = resume(old, watcher=watcher, on_generation=lambda line: trained.append(line.generation))
    assert trained == [3]
    assert result.stop_reason == "all 3 generations are done"
    assert not [note for note in watcher.notes if "the last bits may differ" not in note]
    heading = Heading(**json.loads(kept[40 : 40 + int.from_bytes(kept[:8], "little")]))
    journal.write_bytes(kept)
    replayed = Journal(journal, heading, family=FAMILY)
    replayed.close()
    assert len(replayed.outcomes) == 3
    fitness = {line.id: line.fitness for line in read_run(old).networks() if line.generation == 3}
    assert all(fitness[id] == outcome.fitness for id, outcome in replayed.outcomes.items())


def test_the_state_of_an_old_run_is_written_as_it_was(old: Path) -> None:
    """Or the journal of a first generation, whose state is not kept, would not be found to continue it."""
    found = checkpoint.read(old / "checkpoints", 2, family=FAMILY)
    assert checkpoint.take(found.state, FAMILY).digest == found.digest


def test_two_old_runs_resumed_end_the_same(old: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(old, tmp_path / "other"))
    for run in (old, other):
        resume(run, watcher=Notes())
    assert same_bytes(old) == same_bytes(other)


def newer_config(run: Path) -> None:
    path = run / "config.toml"
    text = (
        path.read_text()
        .rpartition("# sha256")[0]
        .replace("format = 1\n", f"format = {FORMAT_VERSION + 1}\n", 1)
    )
    path.write_text(f"{text}# sha256 {hashlib.sha256(text.encode()).hexdigest()}\n")


def newer_checkpoint(run: Path) -> None:
    for path in run.glob("checkpoints/*/manifest.json"):
        values = strict.unseal(path.read_bytes(), "here")
        path.write_bytes(strict.sealed({**values, "format": checkpoint.FORMAT + 1, "invented": "later"}))


def newer_champion(run: Path) -> None:
    path = run / "champion" / "model.safetensors"
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    about = strict.unseal(header["__metadata__"]["epicortex.champion"].encode(), "here")
    header["__metadata__"]["epicortex.champion"] = strict.sealed(
        {**about, "format": champions.FORMAT + 1}
    ).decode()
    text = strict.dump(header)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])


def test_a_newer_format_is_refused_clearly(tmp_path: Path) -> None:
    cases: list[tuple[str, Callable[[Path], object], Callable[[Path], object]]] = [
        ("config.toml, to be shown", newer_config, read_run),
        ("config.toml, to be resumed", newer_config, resume),
        ("checkpoint", newer_checkpoint, resume),
        ("champion", newer_champion, load_champion),
        ("genome", lambda run: None, lambda run: Genome.from_dict({"format": 2})),
    ]
    with counted("files of a newer format") as tally:
        for number, (name, change, read) in enumerate(cases):
            run = Path(shutil.copytree(FIXTURES / "run-format-1", tmp_path / f"run-{number}"))
            change(run)
            with tally.case(name):
                with pytest.raises(EpiCortexError, match="newer EpiCortex") as caught:
                    read(run)
                assert "\n" not in str(caught.value)
                assert "this version reads" in str(caught.value)
