"""Native runs do without torch, which would cost every process of theirs a second and 150 MB."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from epicortex import load_data, native
from epicortex.config import Config, TrainingConfig
from epicortex.config.resolving import changed, resolve
from epicortex.ecosystem.jobs import Job
from epicortex.engines import serving
from epicortex.engines.setup import WorkerSetup, needed_module
from epicortex.evaluation.backprop import Backprop
from epicortex.evaluation.compiled import is_sound
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily
from epicortex.families.residual import ResidualFamily

_WORK = """
import json, pickle, sys
from pathlib import Path
from epicortex.engines import serving

setup, job = (Path(name).read_bytes() for name in sys.argv[1:])
outcome = serving.make_ready(setup).perform(pickle.loads(job))
print(json.dumps([outcome.failed, outcome.fitness, "torch" in sys.modules]))
"""


@pytest.mark.skipif(not native.available(), reason=str(native.why_not()))
@pytest.mark.parametrize("preset", ["default", "paper"])
def test_a_native_job_is_done_without_torch(tmp_path: Path, preset: str) -> None:
    data = load_data("digits")
    config = resolve(preset, {"training.backend": "native", "residual.start_cost": 20_000})
    kind = ResidualFamily if config.family == "residual" else LayeredFamily
    family = kind.from_config(config, Problem(data.x_train.shape[1:], len(data.classes)))
    setup = WorkerSetup(recipe=Backprop(family, config.training, 1), family=family, data=data)
    job = Job(1, 1, 1, family.minimal(np.random.default_rng(1)))
    (tmp_path / "setup").write_bytes(setup.packed())
    (tmp_path / "job").write_bytes(pickle.dumps(serving.outward(job, family)))
    words = [sys.executable, "-c", _WORK, str(tmp_path / "setup"), str(tmp_path / "job")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    failed, fitness, has_torch = json.loads(done.stdout)
    assert (failed, has_torch) == (None, False)
    assert fitness is not None


@pytest.mark.skipif(not native.available(), reason=str(native.why_not()))
def test_a_native_run_is_done_without_torch(tmp_path: Path) -> None:
    code = (
        "import sys; from epicortex.cli import main; "
        "words = ['evolve', 'digits', '--generations', '2', '--engine', 'serial', '--budget.steps', '2']; "
        "print([main([*words, '--out', sys.argv[1], '--quiet']), 'torch' in sys.modules])"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[0, False]"


_OPEN = """
import pickle, sys
from epicortex.config import TrainingConfig
from epicortex.engines.setup import WorkerSetup

recipe, data = pickle.loads(sys.stdin.buffer.read())
before = "torch" in sys.modules
recipe.open(data)
print(before, "torch" in sys.modules)
"""


@pytest.mark.skipif(not native.available(), reason=str(native.why_not()))
@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ({}, False),
        ({"augment": ("noise", "cutout")}, False),
        ({"augment": ("rotation",)}, True),
        ({"optimiser": "RMSprop"}, True),
    ],
)
def test_what_takes_torch_has_it_before_the_first_network_and_its_time_limit(
    settings: dict[str, Any], needed: bool
) -> None:
    data = load_data("digits")
    family = LayeredFamily(Problem(data.x_train.shape[1:], len(data.classes)))
    recipe = Backprop(family, TrainingConfig(backend="native", **settings), 1)
    done = subprocess.run(
        [sys.executable, "-c", _OPEN], input=pickle.dumps((recipe, data)), capture_output=True, check=True
    )
    assert done.stdout.decode().split() == ["False", str(needed)]


@pytest.mark.parametrize(
    ("optimiser", "arguments", "sound"),
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}, True),
        ("SGD", {"lr": 0.1, "nesterov": True}, False),
        ("SGD", {"lr": -0.1}, False),
        ("SGD", {"lr": 0.1, "maximize": True}, False),
        ("SGD", {"lr": 10**400}, False),
        ("SGD", {"lr": 0.1, "momentum": True}, False),
        ("AdamW", {"betas": [0.9, 0.99]}, True),
        ("Adam", {"betas": [0.9, 1.0]}, False),
        ("Adam", {"betas": 0.9}, False),
        ("Adadelta", {"rho": 1.5}, False),
        ("OrthogonalSGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "matrix_rate": 0.5}, True),
        ("OrthogonalSGD", {"lr": 0.1, "nesterov": True}, False),
        ("OrthogonalSGD", {"lr": 0.1, "nesterov": "yes"}, False),
        ("OrthogonalSGD", {"lr": 0.1, "matrix_rate": -1.0}, False),
        ("OrthogonalSGD", {"lr": 1e39}, False),
        ("OrthogonalSGD", {"lr": 0.1, "dampening": 0.1}, False),
        ("LBFGS", {}, False),
    ],
)
def test_what_may_be_wrong_is_left_to_torch_to_judge(
    optimiser: str, arguments: dict[str, Any], sound: bool
) -> None:
    assert is_sound(TrainingConfig(optimiser=optimiser, optimiser_arguments=arguments)) is sound


def test_workers_import_ahead_what_they_will_need() -> None:
    by_torch = changed(Config(), training={"backend": "torch"})
    assert needed_module(by_torch) == "epicortex.evaluation.trainer"
    assert needed_module(Config(evaluator="episodes")) is None
