"""Champions for numbers and for sets of labels: their files, their modules, and their C."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from epicortex.champion import words
from epicortex.champion.exporting import export
from epicortex.champion.file import Champion, card
from epicortex.champion.judging import given_labels, judged
from epicortex.champion.module import Classifier, load
from epicortex.champion.steps import steps
from epicortex.data import Scaling
from epicortex.data.columns import Column, Columns
from epicortex.errors import StorageError
from epicortex.evaluation.tallies import labelled, regressed
from tests.champions import make_champion, make_residual, raw_values

STRICT = ("gcc", "-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")
MAKERS: dict[str, Callable[..., Champion]] = {"layered": make_champion, "residual": make_residual}
TARGETS = Scaling(1.0, (100.0, -3.0, 0.25), (20.0, 0.5, 4.0))


def with_task(champion: Champion, task: str) -> Champion:
    """The same network for numbers, or for sets of labels."""
    changes: dict[str, Any] = {"task": task, "targets": TARGETS if task == "regression" else None}
    return replace(champion, facts=replace(champion.facts, **changes))


def answered(champion: Champion, x: np.ndarray) -> np.ndarray:
    return np.asarray(Classifier(champion).answer(x))


@pytest.mark.parametrize("task", ["regression", "multilabel"])
@pytest.mark.parametrize("family", MAKERS)
@pytest.mark.parametrize("shape", [(1, 8, 8), (4,)])
def test_c_says_what_the_champion_says(
    family: str, shape: tuple[int, ...], task: str, tmp_path: Path
) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("there is no C compiler")
    champion = with_task(MAKERS[family](shape), task)
    x = raw_values(champion, 20)
    code = export(champion, tmp_path / "model.c")
    subprocess.run([*STRICT, "-shared", "-fPIC", code, "-lm", "-o", tmp_path / "model.so"], check=True)
    library, found = ctypes.CDLL(str(tmp_path / "model.so")), np.zeros((20, 3), np.float32)
    call = library.model_predict if task == "regression" else library.model_logits
    for sample, row in zip(np.ascontiguousarray(x, np.float32), found, strict=True):
        place = row.ctypes.data_as(ctypes.c_void_p)
        call(sample.ctypes.data_as(ctypes.c_void_p), place)
        if task == "multilabel":
            library.model_sigmoid(place)
    expected = answered(champion, x)
    assert np.ptp(expected, axis=0).min() > 0.001
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_numbers_are_outputs_in_their_units() -> None:
    plain = make_champion((4,))
    x = raw_values(plain, 6)
    with torch.no_grad():
        outputs = Classifier(plain)(torch.from_numpy(x)).numpy()
    champion = with_task(plain, "regression")
    np.testing.assert_allclose(answered(champion, x), outputs * TARGETS.std + TARGETS.mean, rtol=1e-5)
    assert Classifier(champion).predict(x).shape == (6, 3)
    assert len(steps(champion)) == len(steps(plain))
    chances = answered(with_task(plain, "multilabel"), x)
    np.testing.assert_allclose(chances, 1 / (1 + np.exp(-outputs.astype(float))), rtol=1e-5)
    sets = Classifier(with_task(plain, "multilabel")).predict(x)
    assert [set(one) for one in sets] == [set(given_labels(row.tolist(), plain.classes)) for row in chances]


@pytest.mark.parametrize("task", ["regression", "multilabel"])
def test_a_model_file_keeps_all_of_it(task: str, tmp_path: Path) -> None:
    champion = with_task(make_champion((4,)), task)
    rng = np.random.default_rng(1)
    y = rng.normal(size=(30, 3))
    own = {"regression": regressed(y + 0.1, y, y.mean(0))} if task == "regression" else {}
    own = own or {"labels": labelled(y > 0, y > 0.1)}  # type: ignore[dict-item]
    table = Columns((Column("a", fill=0.5), Column("b", "text", categories=("x", "y"), missing=True)))
    facts = replace(champion.facts, table=table, columns=table.inputs, test_accuracy=0.5, **own)  # type: ignore[arg-type]
    again = load(export(replace(champion, facts=facts), tmp_path / "m.safetensors"))
    assert replace(again.facts, weights_sha256="") == facts
    text = card(again.champion())
    assert words.KINDS[facts.task] in text
    assert (own.get("regression") and "mean absolute error" in text) or "macro F1" in text


@pytest.mark.parametrize(
    "changes",
    [
        {"task": "regression", "targets": None},
        {"task": "classes", "targets": TARGETS},
        {"task": "regression", "targets": Scaling(1.0, (1.0,), (1.0,))},
        {"task": "multilabel", "regression": regressed(np.eye(3), np.eye(3), np.zeros(3)), "targets": None},
        {"task": "multilabel", "labels": labelled(np.ones((4, 2)), np.ones((4, 2)))},
        {"table": Columns((Column("other"),)), "columns": ("a",)},
    ],
)
def test_facts_that_do_not_fit_are_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    champion = make_champion((4,))
    broken = replace(champion, facts=replace(champion.facts, **changes))
    with pytest.raises(StorageError, match="do not fit"):
        load(export(broken, tmp_path / "m.safetensors"))


def test_the_worst_come_first() -> None:
    champion = with_task(make_champion((4,)), "regression")
    right = np.array([[1.0, 1, 1], [2, 2, 2], [3, 3, 3]])
    found = right + np.array([[0.1, 0, 0], [0, 0, 9], [0, 0, 0]])
    own = judged(champion.facts, ["a", "b", "c"], right, found)
    assert own.worst() == [1, 0, 2]
    chances = np.array([[0.9, 0.1, 0.1], [0.4, 0.6, 0.1]])
    sets = judged(
        with_task(champion, "multilabel").facts, ["a", "b"], np.array([[1, 0, 0], [1, 1, 0]]), chances
    )
    assert sets.worst() == [1]
