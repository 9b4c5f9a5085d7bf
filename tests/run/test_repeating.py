"""What a run that repeats another one takes from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import epicortex
from epicortex.config import resolving as settings
from epicortex.run import sizing
from epicortex.run.repeating import repeated
from epicortex.run.subject import Subject
from tests.faults.test_fuzz import sealed_config


@pytest.mark.filterwarnings("ignore:there is no test part:RuntimeWarning")
def test_pictures_are_prepared_as_they_were_although_their_size_hangs_on_the_minutes(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for name in ("dark", "light"):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for number in range(30):
            level = rng.integers(0, 120, (160, 160, 3)) + (120 if name == "light" else 0)
            Image.fromarray(level.astype(np.uint8)).save(tmp_path / "pictures" / name / f"{number}.png")
    pictures = str(tmp_path / "pictures")
    first = tmp_path / "first"
    counted = {"evolution.generations": 2, "budget.steps": 2, "training.engine": "serial"}
    epicortex.evolve(pictures, epicortex.configure(changes=counted), out=first)
    epicortex.resume(first, {"evolution.minutes": 0.05})
    repeats = repeated(first)
    again = settings.resolve("default", {**repeats.settings, "training.engine": "serial"})
    assert again.evolution.minutes == 0.05
    epicortex.evolve(pictures, again, out=tmp_path / "again", repeats=repeats)


def test_what_a_run_of_before_did_not_settle_is_not_settled_anew(tmp_path: Path) -> None:
    few = {"evolution.generations": 4, "budget.steps": 1, "training.engine": "serial"}
    epicortex.evolve("digits", epicortex.configure(changes=few), out=tmp_path / "run")
    file = tmp_path / "run" / "config.toml"
    assert b"start_decay = 1.0\n" in file.read_bytes()
    file.write_bytes(sealed_config(file.read_bytes().replace(b"start_decay = 1.0\n", b"")))
    often = {**repeated(tmp_path / "run").settings, "evolution.generations": 4000}
    digits = Subject.of(epicortex.load_data("digits"))
    assert sizing.counted(settings.resolve("default", often), digits).residual.start_decay == 1.0
