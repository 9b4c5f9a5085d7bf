"""A journal gives back every outcome it was given, whole, up to where it is sound."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epicortex.ecosystem.jobs import Outcome
from epicortex.families.layered import LayeredFamily
from epicortex.storage.journal import Heading, Journal, place, remove
from tests.storage.states import (
    SMALL_FAMILY,
    THOROUGH,
    identity,
    of_a_family,
    offsets,
    outcomes,
    small_phenotype,
)

HEADING = Heading(run="r", generation=3, state="0" * 64)
OUTCOMES = [
    Outcome(1, 3, small_phenotype(1), fitness=0.5, fitness_before=0.25, samples=10, train_seconds=0.1),
    Outcome(2, 3, failed="took longer than the limit of 5 s"),
    Outcome(3, 3, small_phenotype(3), fitness=0.75),
]


def write(path: Path, given: list[Outcome] = OUTCOMES, family: LayeredFamily = SMALL_FAMILY) -> bytes:
    journal = Journal(path, HEADING, family=family)
    for outcome in given:
        journal.append(outcome)
    journal.close()
    return path.read_bytes()


def read(
    path: Path, heading: Heading = HEADING, family: LayeredFamily = SMALL_FAMILY
) -> tuple[list[object], list[str]]:
    journal = Journal(path, heading, family=family)
    journal.close()
    return [identity(outcome) for outcome in journal.outcomes.values()], journal.problems


def several(family: LayeredFamily) -> st.SearchStrategy[list[Outcome]]:
    return st.lists(outcomes(family), max_size=4, unique_by=lambda outcome: outcome.network)


@settings(max_examples=40)
@given(drawn=of_a_family(several))
def test_outcomes_come_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[LayeredFamily, list[Outcome]]
) -> None:
    family, given_outcomes = drawn
    path = tmp_path_factory.mktemp("journal") / "j"
    write(path, given_outcomes, family)
    assert read(path, family=family) == ([identity(outcome) for outcome in given_outcomes], [])


def test_cut_off_anywhere_it_gives_the_outcomes_before_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "j"
    whole = write(path)
    seen = set()
    for length in (*offsets(len(whole)), len(whole)):
        path.write_bytes(whole[:length])
        found, problems = read(path)
        assert problems == []
        assert found == [identity(outcome) for outcome in OUTCOMES[: len(found)]]
        seen.add(len(found))
        write(path, OUTCOMES[len(found) :])
        assert path.read_bytes() == whole
    assert seen == {0, 1, 2, 3}


def test_a_flipped_byte_never_gives_an_outcome_that_was_not_there(tmp_path: Path) -> None:
    path = tmp_path / "j"
    whole = write(path)
    expected = [identity(outcome) for outcome in OUTCOMES]
    draw = random.Random(1)
    for _ in range(5000 if THOROUGH else 300):
        data = bytearray(whole)
        data[draw.randrange(len(data))] ^= draw.randrange(1, 256)
        path.write_bytes(data)
        found, problems = read(path)
        assert found == expected[: len(found)]
        assert len(found) < len(expected)
        assert all("\n" not in problem for problem in problems)


@pytest.mark.parametrize(
    "other",
    [Heading("s", 3, "0" * 64), Heading("r", 4, "0" * 64), Heading("r", 3, "1" * 64)],
)
def test_a_journal_of_another_state_is_not_replayed(tmp_path: Path, other: Heading) -> None:
    write(tmp_path / "j")
    found, problems = read(tmp_path / "j", other)
    assert found == []
    assert "does not continue this state" in problems[0]
    assert read(tmp_path / "j", other) == ([], [])


def test_a_pickle_in_its_place_is_not_replayed(tmp_path: Path) -> None:
    (tmp_path / "j").write_bytes(pickle.dumps(["x"] * 100))
    assert read(tmp_path / "j")[0] == []


def test_journals_go_up_to_the_durable_generation(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    for generation in (1, 2, 3):
        place(tmp_path, generation).write_bytes(b"x")
    remove(tmp_path, up_to=2)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["00000003.journal"]
