"""The engines that the suite runs over, each really started.

`mpi` needs the suite to be a rank itself: `test_mpi.py` runs it again under `mpiexec`, with `ranks.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from epicortex.ecosystem.jobs import Outcome
from tests.contracts import cluster
from tests.contracts.world import jobs, settings, setup

IN_RANKS = "EPICORTEX_TEST_RANKS" in os.environ


#: Engines whose workers can be killed, and are replaced. Ranks cannot: MPI ends the whole job.
REPLACING: list[Any] = ["processes", pytest.param("ray", marks=cluster.needs_ray)]
ENGINES = ["mpi"] if IN_RANKS else ["serial", *REPLACING]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`name` is every engine; `replacing` those that replace their workers."""
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", ENGINES, indirect=True, scope="module")
    if "replacing" in metafunc.fixturenames:
        metafunc.parametrize("replacing", REPLACING, indirect=True, scope="module")


@pytest.fixture(scope="session")
def ray_nodes() -> Iterator[cluster.Nodes]:
    """A Ray cluster of three node processes, two of which work; engines find it through RAY_ADDRESS."""
    with cluster.started(2) as nodes:
        yield nodes


@pytest.fixture(scope="session")
def expected() -> list[Outcome]:
    """What twelve jobs give without any engine."""
    evaluator = setup(settings()).evaluator()
    return [evaluator.run(job) for job in jobs(12, newborn=True)]


def _engine(request: pytest.FixtureRequest) -> str:
    if request.param == "ray":
        request.getfixturevalue("ray_nodes")
    return str(request.param)


@pytest.fixture(scope="module")
def name(request: pytest.FixtureRequest) -> str:
    """An engine's name."""
    return _engine(request)


@pytest.fixture(scope="module")
def replacing(request: pytest.FixtureRequest) -> str:
    """The name of an engine that replaces its workers."""
    return _engine(request)
