"""What a person who evolves from Python is told: warnings, progress, figures under their names."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import epicortex
from epicortex.champion import words
from epicortex.errors import ConfigError
from epicortex.evaluation.figures import counted
from epicortex.run.loop import Watcher
from epicortex.run.telling import Told

SMALL: dict[str, Any] = {
    "evolution.generations": 2,
    "evolution.initial_networks": 4,
    "evolution.max_networks": 6,
    "training.engine": "serial",
}


def small(**changes: Any) -> epicortex.Config:
    return epicortex.configure("layered", {**SMALL, **changes})


class Notes(Watcher):
    """Keeps what is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def uneven() -> tuple[np.ndarray, np.ndarray]:
    """Many zeros and few eights."""
    digits = load_digits()
    rows = np.concatenate([np.flatnonzero(digits.target == 0)[:150], np.flatnonzero(digits.target == 8)[:25]])
    return digits.images[rows], digits.target[rows]


def test_why_an_operator_failed_reaches_who_evolves_in_python() -> None:
    class Broken:
        name = "broken"

        def possible(self, *_: Any) -> bool:
            return True

        def weight(self, *_: Any) -> float:
            return 1000.0

        def apply(self, *_: Any, **__: Any) -> Any:
            raise ValueError("it is broken")

    notes = Notes()
    epicortex.evolve(uneven(), small(), operators=[Broken()], watcher=notes)
    told = [note for note in notes.notes if "it is broken" in note]
    assert told
    assert re.match(r"generation \d: operator broken failed", told[0])


def test_the_warning_about_culling_reaches_python_and_names_the_generation_once() -> None:
    notes = Notes()
    epicortex.evolve(
        uneven(), small(**{"evolution.initial_networks": 12, "evolution.max_networks": 2}), watcher=notes
    )
    told = [note for note in notes.notes if "more than max_networks (2)" in note]
    assert told
    assert all(note.count("generation") == 1 for note in told)


def test_each_figure_stands_under_its_name_and_both_are_tested() -> None:
    config = small(**{"training.fitness": "balanced_accuracy"})
    notes = Notes()
    result = epicortex.evolve(uneven(), config, watcher=notes)
    assert any("--training.class-weights balanced makes them count alike" in note for note in notes.notes)
    assert result.champion is not None
    facts, data = result.champion.facts, epicortex.load_data(uneven())
    answers = result.module.predict(data.x_test)
    own = counted(
        [data.classes.index(str(one)) for one in answers],
        data.y_test,
        len(data.classes),
        facts.test.fitness if facts.test else None,
    )
    assert facts.test == own
    recalls = [value for value in own.recall() if value is not None]
    assert own.fitness == pytest.approx(np.mean(recalls))
    assert facts.test_accuracy == result.test == own.accuracy
    line = words.headline(facts)
    assert line.startswith("balanced accuracy ")
    assert f"{100 * np.mean(recalls):.2f} % on the test set" in line
    text = "\n".join(words.details(facts))
    assert f"accuracy {100 * own.accuracy:.2f} %" in text
    assert f"always answering 0: {100 * own.baseline:.2f} %" in text
    assert facts.label_kind == "integer"


def test_a_model_that_always_says_the_same_is_called_no_better() -> None:
    test = counted([0] * 108, [0] * 100 + [1] * 8, 2)
    lines = words.warnings(test, ("cats", "dogs"))
    assert lines[0] == "this is no better than always answering cats"
    assert "never recognised: dogs; --training.class-weights balanced" in lines[1]
    fair = counted([0] * 60 + [1] * 40 + [1] * 8, [0] * 100 + [1] * 8, 2)
    (line,) = words.warnings(fair, ("cats", "dogs"))
    assert line.startswith("always answering cats would be right at least as often; but the mean recall")
    assert line.replace("\xa0", " ").endswith("is 80.00 %, where one answer alone reaches 50.00 %")
    few = counted([0] * 11 + [1], [0] * 10 + [1, 1], 2)
    assert "12 samples are too few to tell this" in words.warnings(few, ("cats", "dogs"))[0]


def test_a_config_may_be_a_dict_and_anything_else_is_refused(tmp_path: Path) -> None:
    sections = {"evolution": {"generations": 1}, "training.engine": "serial", "budget.steps": 2}
    result = epicortex.evolve(uneven(), sections, out=tmp_path / "run", watcher=Notes())
    assert len(result.history) == 1
    assert len(repr(result)) < 400
    assert "accuracy" in repr(result)
    with pytest.raises(ConfigError, match="config is of the type str"):
        epicortex.evolve(uneven(), "paper")  # type: ignore[arg-type]
    model = json.loads((tmp_path / "run" / "champion" / "genome.json").read_text())
    assert model["preprocessing"]["size"] == [8, 8]


def test_a_nameless_function_can_be_the_fitness_and_progress_is_a_line_a_generation() -> None:
    stream = io.StringIO()

    class Quiet(Told):
        def note(self, text: str) -> None:
            """Leave warnings out."""

    result = epicortex.evolve(
        uneven(),
        small(),
        fitness=lambda logits, labels: float((logits.argmax(1) == labels).double().mean()) / 2,
        watcher=Quiet(2, stream),
    )
    lines = stream.getvalue().splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == ["generation 1/2", "generation 2/2"]
    assert result.champion is not None
    assert result.champion.facts.fitness_name == "lambda"
    assert result.champion.facts.fitness <= 0.5


def test_a_single_network_is_told_to_have_no_mate() -> None:
    notes = Notes()
    epicortex.evolve(uneven(), small(**{"evolution.initial_networks": 1}), watcher=notes)
    assert any("a single network has no mate" in note for note in notes.notes)


@pytest.mark.parametrize("preset", ["layered", "default"])
def test_a_champion_is_where_other_classes_start_from(preset: str, tmp_path: Path) -> None:
    digits = load_digits()
    settings = {**SMALL, "evolution.generations": 1, "budget.steps": 3}
    if preset == "default":
        del settings["evolution.initial_networks"], settings["evolution.max_networks"]
    config = epicortex.configure(preset, settings)
    names = np.array([f"digit {number}" for number in range(10)])[digits.target]
    few, many = digits.target < 3, digits.target < 5
    first = epicortex.evolve((digits.images[few], names[few]), config, watcher=Notes())
    notes = Notes()
    second = epicortex.evolve(
        (digits.images[many], names[many]),
        config,
        ancestor=first.champion,
        watcher=notes,
        out=tmp_path / "run",
    )
    assert any("the outputs of 3 classes; 2 outputs are new" in note for note in notes.notes)
    assert second.module.classes == tuple(f"digit {number}" for number in range(5))
    assert epicortex.resume(tmp_path / "run", data=(digits.images[many], names[many])).champion is not None
