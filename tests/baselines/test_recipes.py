"""The benchmark of recipes: one network, equal work, every figure kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks import recipes

from epicortex import native

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))
OPTIONS = ["digits", "--widths", "4", "6", "--blocks", "0", "1"]


def test_optimisers_train_one_network_at_equal_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "recipes.jsonl"
    short = ["--generations", "3", "--steps", "20", "--out", str(kept)]
    assert recipes.main([*OPTIONS, *short]) == 0
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    assert [line["optimiser"] for line in lines] == ["SGD", "OrthogonalSGD"]
    assert {line["structure"] for line in lines} == {
        "conv 4 (3×3) → conv 6/2×2 (3×3) → block 6 (3×3) → out 10"
    }
    assert {line["steps"] for line in lines} == {40}
    assert all(0.2 < line["test"] <= 1 for line in lines)
    before = kept.read_bytes()
    assert recipes.main([*OPTIONS, *short]) == 0
    assert kept.read_bytes() == before
    assert capsys.readouterr().out.count("done already") == 2


def test_a_step_has_a_price(capsys: pytest.CaptureFixture[str]) -> None:
    assert recipes.main([*OPTIONS, "--steps-only"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert min(found.values()) > 0
    assert found["ratio"] == pytest.approx(found["OrthogonalSGD"] / found["SGD"])


def test_data_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert recipes.main(["nowhere.npz"]) == 2
    assert capsys.readouterr().err.startswith("recipes: ")
