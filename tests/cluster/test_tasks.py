"""Tasks on clusters: the same bytes as in one process, and workers that never import torch."""

from __future__ import annotations

from pathlib import Path

import pytest

import epicortex
from tests.cluster.world import run
from tests.contracts.cluster import mpiexec, needs_mpi, needs_ray
from tests.tasks import reach

SMALL = (
    "--evolution.initial-networks",
    "12",
    "--evolution.max-networks",
    "12",
    "--target",
    "none",
    "--quiet",
)
FILES = ("networks.jsonl", "champion/genome.json", "champion/model.safetensors")
ENGINES = [
    pytest.param(["--engine", "ray", "--workers", "2"], [], marks=needs_ray, id="ray"),
    pytest.param(["--engine", "mpi"], mpiexec(3), marks=needs_mpi, id="mpi"),
]


def evolve(folder: Path, task: str, engine: list[str], before: list[str]) -> None:
    words = ("evolve", task, "--plugin", reach.__file__, "--generations", "3", *SMALL, *engine)
    code, _, err = run(*words, "--out", folder, before=before)
    assert code == 0, err


@pytest.mark.parametrize(("engine", "before"), ENGINES)
def test_a_task_of_ones_own_gives_the_same_bytes(
    engine: list[str], before: list[str], tmp_path: Path
) -> None:
    evolve(tmp_path / "serial", "sum", ["--engine", "serial"], [])
    evolve(tmp_path / "cluster", "sum", engine, before)
    for file in FILES:
        assert (tmp_path / "serial" / file).read_bytes() == (tmp_path / "cluster" / file).read_bytes()


@pytest.mark.parametrize(("engine", "before"), ENGINES)
def test_workers_do_without_torch(engine: list[str], before: list[str], tmp_path: Path) -> None:
    """The task looks for it among the modules of its process, and gives 1 where it is not there."""
    evolve(tmp_path / "run", "torchless", engine, before)
    assert epicortex.load_champion(tmp_path / "run").facts.fitness == 1.0
