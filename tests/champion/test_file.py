"""The champion's files: alone they suffice, and what is damaged or hostile in them is refused."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path

import pytest
import safetensors
import safetensors.numpy

from epicortex.champion import file as champion
from epicortex.champion.file import Champion, Facts
from epicortex.data import Scaling
from epicortex.errors import StorageError
from tests.storage.states import SMALL_FAMILY, THOROUGH, identity, offsets, refusal, small_phenotype

CHAMPION = Champion(
    small_phenotype(),
    SMALL_FAMILY,
    Scaling(255.0, (0.5,), (0.25,)),
    Facts(
        classes=("cat", "dög"),
        data="pets",
        network=7,
        generation=3,
        fitness=1 / 3,
        fitness_on="validation",
        test_accuracy=None,
        seed=1,
    ),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "champion").mkdir()
    champion.write(tmp_path / "champion", CHAMPION)
    return tmp_path


def test_it_comes_back_from_the_run_and_from_the_file_alone(folder: Path) -> None:
    for path in (folder, folder / "champion" / "model.safetensors"):
        back = champion.read(path)
        assert identity(back.phenotype) == identity(CHAMPION.phenotype)
        assert back.family.facts() == CHAMPION.family.facts()
        assert back.scaling == CHAMPION.scaling
        assert back.classes == ("cat", "dög")
        assert back.facts.fitness == CHAMPION.facts.fitness


def test_the_library_reads_the_model(folder: Path) -> None:
    arrays = safetensors.numpy.load_file(folder / "champion" / "model.safetensors")
    assert sorted(arrays) == ["1.bias", "1.weight", "2.bias", "2.weight", "3.bias", "3.weight"]


def test_genome_json_says_what_the_model_says(folder: Path) -> None:
    values = json.loads((folder / "champion" / "genome.json").read_text())
    with safetensors.safe_open(folder / "champion" / "model.safetensors", "numpy") as file:
        described = json.loads(file.metadata()["epicortex.champion"])
    assert {**values, "sha256": described["sha256"]} == described


def test_writing_it_twice_gives_the_same_bytes(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in (folder / "champion").iterdir()}
    champion.write(folder / "champion", CHAMPION)
    assert {path.name: path.read_bytes() for path in (folder / "champion").iterdir()} == before
    assert sorted(before) == ["card.md", "genome.json", "model.safetensors"]


def test_it_is_read_from_the_run_its_own_folder_or_the_file_alone(folder: Path) -> None:
    places = (folder, folder / "champion", folder / "champion" / "model.safetensors")
    assert all(identity(champion.read(place).phenotype) == identity(CHAMPION.phenotype) for place in places)


def test_truncated_anywhere_it_is_refused_in_one_line(folder: Path) -> None:
    path = folder / "champion" / "model.safetensors"
    whole = path.read_bytes()
    for length in offsets(len(whole)):
        path.write_bytes(whole[:length])
        error = refusal(lambda: champion.read(folder))
        assert error is not None
        assert "\n" not in error


def test_a_flipped_byte_is_refused_or_changes_nothing(folder: Path) -> None:
    path = folder / "champion" / "model.safetensors"
    whole = path.read_bytes()
    draw = random.Random(1)
    for _ in range(5000 if THOROUGH else 500):
        data = bytearray(whole)
        data[draw.randrange(len(data))] ^= draw.randrange(1, 256)
        path.write_bytes(data)
        error = refusal(lambda: champion.read(folder))
        if error is None:
            assert identity(champion.read(folder).phenotype) == identity(CHAMPION.phenotype)
        else:
            assert "\n" not in error


@pytest.mark.parametrize("data", [pickle.dumps([1]), b"PK\x03\x04", b"", b"{}", b"\0" * 100])
def test_what_is_no_champion_is_refused(folder: Path, data: bytes) -> None:
    (folder / "champion" / "model.safetensors").write_bytes(data)
    with pytest.raises(StorageError):
        champion.read(folder)


def test_a_model_of_somebody_else_is_refused(folder: Path) -> None:
    path = folder / "champion" / "model.safetensors"
    safetensors.numpy.save_file(safetensors.numpy.load_file(path), path)
    with pytest.raises(StorageError, match="not a champion of EpiCortex"):
        champion.read(path)


def test_a_run_without_a_champion_yet_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("")
    with pytest.raises(StorageError, match="no champion yet"):
        champion.read(tmp_path)
    (tmp_path / "champion").mkdir()
    with pytest.raises(StorageError, match="no champion yet"):
        champion.read(tmp_path)
