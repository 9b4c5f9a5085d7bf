"""What a run finds out about changes of its samples: what helps is used, what breaks labels is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import epicortex
from epicortex.run.record import read_run
from epicortex.storage import plans
from tests.e2e.test_residual import contents

SETTINGS = {
    "training.augment": "auto",
    "training.engine": "serial",
    "training.batch_size": 32,
    "evolution.generations": 2,
    "budget.steps": 40,
    "residual.start_cost": 400_000,
    "residual.start_parameters": 4000,
}


def found(data: Any, out: Path, **changes: Any) -> tuple[tuple[str, ...], str]:
    """What a run decided to use, and what it told."""
    with pytest.warns(RuntimeWarning) as warned:
        epicortex.evolve(data, epicortex.configure(changes={**SETTINGS, **changes}), out=out)
    (told,) = (str(one.message) for one in warned if "change of the validation loss" in str(one.message))
    return tuple(read_run(out).config.training.augment), told


def test_colour_is_used_where_what_is_to_come_is_darker_or_brighter(tmp_path: Path) -> None:
    digits, rng = load_digits(), np.random.default_rng(1)
    contrast, light = rng.uniform(0.5, 1.5, (1000, 1, 1)), rng.uniform(-4, 4, (1000, 1, 1))
    seen, target = digits.images[:700], digits.target
    changed = contrast * digits.images[700:1700] + light
    data = {"x_train": seen, "y_train": target[:700], "x_val": changed, "y_val": target[700:1700]}
    used, told = found(data, tmp_path / "run", **{"evolution.seed": 3})
    assert "colour" in used
    assert "colour -0." in told
    assert "will be used" in told


def test_what_takes_the_label_away_is_not_used(tmp_path: Path) -> None:
    rng, kinds = np.random.default_rng(2), np.arange(600) % 4
    images = 60 + 4 * kinds[:, None, None] + rng.normal(0, 4, (600, 12, 12))
    used, told = found((np.round(images).astype(np.uint8), kinds), tmp_path / "run")
    assert "colour" not in used
    assert "colour +" in told


def test_the_same_seed_finds_the_same_whatever_the_workers(tmp_path: Path) -> None:
    digits = load_digits()
    data, few = (digits.images[:400], digits.target[:400]), {"budget.steps": 5}
    one = found(data, tmp_path / "one", **few)
    two = found(data, tmp_path / "two", **few, **{"training.engine": "processes", "training.workers": 2})
    assert one == two
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.filterwarnings("ignore:there is no test part:RuntimeWarning")
def test_too_few_minutes_are_said_to_be_too_few(tmp_path: Path) -> None:
    digits, short = load_digits(), {"evolution.minutes": 0.05}
    config = epicortex.configure(changes={**SETTINGS, **short})
    with pytest.warns(RuntimeWarning, match=r"0\.05 minutes are too short to find out what helps"):
        result = epicortex.evolve((digits.images, digits.target), config, out=tmp_path / "run")
    assert result.test is not None
    assert read_run(tmp_path / "run").config.training.augment == ()


@pytest.mark.filterwarnings("ignore:there is no test part:RuntimeWarning")
@pytest.mark.parametrize(
    ("by_brightness", "shares"),
    [(True, (50, 50, 50, 50)), (False, (50, 50, 50, 50)), (True, (230, 70, 0, 0))],
    ids=["brightness", "shape", "brightness of a few"],
)
def test_colours_of_few_images_are_changed_on_the_way_unless_they_are_the_class(
    by_brightness: bool, shares: tuple[int, ...], tmp_path: Path
) -> None:
    rng, kinds = np.random.default_rng(2), np.repeat(np.arange(4), shares)
    images = rng.normal(60, 4, (len(kinds), 12, 12))
    for kind in range(4):
        images[kinds == kind, :, slice(None) if by_brightness else slice(3 * kind, 3 * kind + 3)] += (
            2 * kind + 2
        )
    settings = {**SETTINGS, "training.augment": "harmless", "evolution.generations": 16}
    data = np.round(images).clip(0, 255).astype(np.uint8), kinds
    result = epicortex.evolve(data, epicortex.configure(changes=settings), out=tmp_path / "run")
    assert result.test is not None
    assert result.test > 0.9
    assert plans.read(tmp_path / "run")[2].changed == ("colour", "cutout")
    assert ("colour" in plans.read(tmp_path / "run")[16].augment) is not by_brightness
