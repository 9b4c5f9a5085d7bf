"""Logs: read line by line, whole lines only, and every line checked. TensorBoard shows the same figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from epicortex.ecosystem.history import Generation
from epicortex.errors import StorageError
from epicortex.storage.lines import history_line, network_lines, read_history, read_networks
from epicortex.storage.tensorboard import TAGS, Scalars
from tests.generations import generation
from tests.storage.states import SMALL_FAMILY, offsets, small_state


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"".join(history_line(generation(g)) for g in (1, 2, 3)))
    return path


def test_a_line_that_is_being_written_is_left_out(history: Path) -> None:
    whole = history.read_bytes()
    for length in (*offsets(len(whole)), len(whole)):
        history.write_bytes(whole[:length])
        assert len(read_history(history)) == whole[:length].count(b"\n")


@pytest.mark.parametrize(
    "change",
    [
        (b'"generation":2', b'"generation":3'),
        (b'"generation":2', b'"generation":"2"'),
        (b'"networks":8', b'"networks":8,"plugin":"os"'),
        (b'"networks":8,', b""),
        (b'"networks":8', b'"networks":NaN'),
        (b'{"generation":2', b"[" * 20_000),
    ],
)
def test_a_line_that_is_not_as_we_write_it_is_refused(history: Path, change: tuple[bytes, bytes]) -> None:
    whole = history.read_bytes()
    first, second, third = whole.splitlines(keepends=True)
    history.write_bytes(first + second.replace(*change) + third)
    with pytest.raises(StorageError, match=r"history.jsonl, line 2|line 2 is"):
        read_history(history)


def test_networks_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "networks.jsonl"
    path.write_bytes(network_lines(small_state(1), SMALL_FAMILY) + b'{"generation":2,"id"')
    lines = list(read_networks(path))
    assert [entry.id for entry in lines] == [1, 2]
    assert lines[0].species == 1
    assert lines[0].genome == small_state().networks[0].phenotype.genome.to_dict()
    path.write_bytes(network_lines(small_state(2), SMALL_FAMILY))
    assert all(isinstance(entry.genome, str) and len(entry.genome) == 32 for entry in read_networks(path))


def test_no_log_is_an_empty_log(tmp_path: Path) -> None:
    assert read_history(tmp_path / "history.jsonl") == []
    assert list(read_networks(tmp_path / "networks.jsonl")) == []


def test_tensorboard_shows_every_figure_once_also_after_a_resume(tmp_path: Path) -> None:
    scalars = Scalars(tmp_path, [])
    scalars.add(generation(1))
    scalars.add(generation(2))
    scalars.close()
    scalars = Scalars(tmp_path, [generation(1)])
    scalars.add(generation(2))
    scalars.close()
    seen = [(step, tag) for step, tag, _ in shown(tmp_path)]
    tags = [tag for name, tag in TAGS.items() if name != "offspring_fitness"]
    assert sorted(seen) == sorted((step, tag) for step in (1, 2) for tag in tags)


def test_tensorboard_shows_each_figure_under_its_own_tag(tmp_path: Path) -> None:
    counted = Generation(
        generation=7,
        networks=31,
        species=5,
        highest_fitness=0.875,
        average_fitness=0.5,
        offspring_fitness=0.25,
        offspring=12,
        mutations=9,
        mutations_refused=3,
        mutations_failed=1,
        species_founded=2,
        species_extinct=4,
        culled=11,
        failed=6,
        champion=40,
        champion_parameters=650,
        mean_parameters=700.5,
        train_seconds=1.5,
        evolve_seconds=0.125,
        seconds=1.625,
    )
    scalars = Scalars(tmp_path, [])
    scalars.add(counted)
    scalars.close()
    figures = {
        "fitness/highest": 0.875,
        "fitness/average": 0.5,
        "fitness/offspring before training": 0.25,
        "networks/networks": 31,
        "networks/species": 5,
        "networks/offspring": 12,
        "networks/species_founded": 2,
        "networks/species_extinct": 4,
        "networks/culled": 11,
        "networks/failed": 6,
        "mutations/mutations": 9,
        "mutations/mutations_refused": 3,
        "mutations/mutations_failed": 1,
        "parameters/champion_parameters": 650,
        "parameters/mean_parameters": 700.5,
        "time/train_seconds": 1.5,
        "time/evolve_seconds": 0.125,
        "time/seconds": 1.625,
    }
    assert len(set(figures.values())) == len(figures), "equal figures could be exchanged unseen"
    assert sorted(shown(tmp_path)) == sorted((7, tag, figure) for tag, figure in figures.items())


def shown(folder: Path) -> list[tuple[int, str, float]]:
    """What TensorBoard reads in the one event file: step, tag and figure."""
    (path,) = folder.iterdir()
    return [
        (event.step, value.tag, value.tensor.float_val[0])
        for event in EventFileLoader(str(path)).Load()
        for value in event.summary.value
    ]
