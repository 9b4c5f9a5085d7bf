"""A network's ancestors, back to the founders."""

from __future__ import annotations

import pytest

from epicortex.ecosystem.state import Event
from epicortex.errors import StorageError
from epicortex.run.lineage import trace
from epicortex.storage import NetworkLine

GREW = Event("kernel", "grow", 1, "applied")
REFUSED = Event("node", "shrink", 2, "refused")


def line(
    generation: int, network: int, parents: tuple[int, ...] = (), birth: int = 0, *events: Event
) -> NetworkLine:
    return NetworkLine(
        generation=generation,
        id=network,
        parents=parents,
        birth=birth,
        species=1,
        genome="hash",
        fitness=generation / 100,
        fitness_before_training=None,
        f_r=0.5,
        c_r=0.5,
        age=0,
        parameters=10 * network,
        failed=None,
        events=events,
    )


#: 1, 2 and 3 are founders; 4 is a child of 1 and 2, 5 a clone of 4, 6 a child of 5 and 4.
LINES = [
    *(line(1, n) for n in (1, 2, 3)),
    *(line(2, 1, (), 0, GREW, REFUSED), line(2, 2), line(2, 3), line(2, 4, (1, 2), 1)),
    *(line(3, 1, (), 0, GREW), line(3, 4, (1, 2), 1, GREW), line(3, 5, (4,), 2)),
    *(line(4, 4, (1, 2), 1), line(4, 5, (4,), 2, GREW), line(4, 6, (5, 4), 3)),
]


def test_all_ancestors_are_found_the_youngest_first() -> None:
    found = trace(LINES, 6, until=4)
    assert [one.id for one in found] == [6, 5, 4, 2, 1]
    assert [one.id for one in found if not one.parents] == [2, 1]


def test_an_ancestor_counts_as_it_was_when_it_passed_on_its_genes() -> None:
    ancestors = {one.id: one for one in trace(LINES, 6, until=4)}
    assert ancestors[1].mutations == ()
    assert ancestors[1].fitness == 0.01
    assert ancestors[4].mutations == (GREW,)
    assert ancestors[4].until == 3
    assert ancestors[5].mutations == ()
    assert ancestors[6].fitness == 0.04


def test_a_network_is_told_as_it_was_in_the_generation_asked_about() -> None:
    (first, *_) = trace(LINES, 1, until=2)
    assert first.mutations == (GREW,)
    assert first.fitness == 0.02
    assert trace(LINES, 1, until=1)[0].mutations == ()


def test_a_clone_has_one_parent_even_if_it_is_named_twice() -> None:
    lines = [line(1, 1), line(2, 2, (1, 1), 1)]
    assert trace(lines, 2, until=2)[0].parents == (1,)


def test_lines_that_cannot_be_true_are_refused() -> None:
    with pytest.raises(StorageError, match="no line about network 2"):
        trace([line(1, 1), line(2, 3, (1, 2), 1)], 3, until=2)
    with pytest.raises(StorageError, match="network 1 descends from 1"):
        trace([line(1, 1, (1,), 0)], 1, until=1)
