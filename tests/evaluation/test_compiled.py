"""Training on native arithmetic: beside torch, on every instruction set, and as a recorded choice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import epicortex
from epicortex import native
from epicortex.config import TrainingConfig
from epicortex.data import DataSet
from epicortex.ecosystem.jobs import Job, Outcome
from epicortex.errors import ConfigError
from epicortex.evaluation.compiled import NativeTrainer, why_torch
from epicortex.evaluation.trainer import Trainer
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily, draw_phenotype
from epicortex.families.layered.genome import ConvLayer, FullLayer, Genome
from epicortex.families.residual import ResidualFamily
from epicortex.run.record import read_run
from tests.beads import BeadFamily
from tests.contracts.world import network, small_data
from tests.strategies import genomes

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))
DATA = small_data()
PROBLEM = Problem(DATA.input_shape, len(DATA.classes))
SMALL = {
    "evolution.initial_networks": 4,
    "evolution.max_networks": 6,
    "evolution.initial_species": 2,
    "evolution.generations": 2,
    "training.engine": "serial",
}


def both(job: Job, data: DataSet = DATA, **changes: Any) -> tuple[Outcome, Outcome]:
    """What torch and what native arithmetic make of one job."""
    training = TrainingConfig(**{"portion": 0.5, "batch_size": 32, **changes})
    family = LayeredFamily(Problem(data.input_shape, len(data.classes)))
    trainers = (Trainer(data, family, training, seed=1), NativeTrainer(data, family, training, seed=1))
    one, other = (trainer.run(job) for trainer in trainers)
    assert one.failed is None
    assert other.failed is None
    return one, other


def distance(one: Outcome, other: Outcome) -> float:
    """How far the weights of two outcomes are apart, relative to how far they moved."""
    assert one.phenotype is not None
    assert other.phenotype is not None
    pairs = zip(one.phenotype.weights, other.phenotype.weights, strict=True)
    return max(
        float(np.abs(mine[name] - yours[name]).max() / max(1e-3, np.abs(mine[name]).max()))
        for mine, yours in pairs
        for name in mine
    )


@pytest.mark.parametrize(
    ("optimiser", "arguments"),
    [
        ("Adadelta", {}),
        ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 5e-4}),
        ("OrthogonalSGD", {"lr": 0.02, "momentum": 0.9, "nesterov": True, "weight_decay": 5e-4}),
        ("Adam", {"lr": 0.001}),
        ("AdamW", {"lr": 0.001, "betas": (0.9, 0.99)}),
        ("RMSprop", {"lr": 0.001}),
        ("Adam", {"lr": 0.001, "amsgrad": True}),
    ],
)
def test_every_optimiser_learns_what_it_learns_with_torch(optimiser: str, arguments: dict[str, Any]) -> None:
    """The last two run as torch's own, on the same vector."""
    one, other = both(Job(1, 1, 1, network()), optimiser=optimiser, optimiser_arguments=arguments)
    assert one.samples == other.samples
    assert distance(one, other) < 1e-3


def test_smoothed_labels_flips_and_decay_of_weights_alone_are_as_with_torch() -> None:
    sgd = {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.1}
    more: dict[str, Any] = {"label_smoothing": 0.1, "flip": True, "decay": "weights", "losses": True}
    one, other = both(Job(1, 1, 1, network()), optimiser="SGD", optimiser_arguments=sgd, **more)
    assert distance(one, other) < 1e-3
    assert one.losses is not None
    assert other.losses is not None
    assert np.allclose(one.losses, other.losses, rtol=1e-3, atol=1e-4)
    assert other.measures["loss"] == pytest.approx(float(other.losses.mean()), rel=1e-5)


@pytest.mark.parametrize("optimiser", ["SGD", "OrthogonalSGD"])
def test_momentum_is_inherited_as_with_torch(optimiser: str) -> None:
    """Two generations, the second with the momentum of the first."""
    sgd: dict[str, Any] = {"optimiser": optimiser, "optimiser_arguments": {"lr": 0.02, "momentum": 0.9}}
    training = TrainingConfig(**{"portion": 0.5, "batch_size": 32, "optimiser_state": "inherited", **sgd})
    family = ResidualFamily(PROBLEM)
    founder = family.minimal(np.random.default_rng(1))
    ends: list[Any] = []
    for trainer in (Trainer(DATA, family, training, seed=1), NativeTrainer(DATA, family, training, seed=1)):
        first: Any = trainer.run(Job(1, 1, 1, founder)).phenotype
        assert first.states == ("momentum",)
        ends.append(trainer.run(Job(1, 2, 1, first)).phenotype)
    for mine, yours in zip(ends[0].genes, ends[1].genes, strict=True):
        for name in mine:
            # Rectifiers and norms make the smallest differences grow: near, but not to the last digits.
            assert np.linalg.norm(mine[name] - yours[name]) < 0.1 * np.linalg.norm(mine[name]) + 1e-3, name


def test_moved_images_and_class_weights_are_the_same_as_with_torch() -> None:
    one, other = both(Job(1, 1, 1, network()), shift=0.25, class_weights="balanced")
    assert distance(one, other) < 1e-3


def test_a_part_of_the_learning_rate_and_the_score_of_a_newborn_are_the_same_too() -> None:
    job = Job(3, 2, 1, network(), newborn=True, rate=0.25)
    one, other = both(job)
    assert one.fitness_before == other.fitness_before
    assert distance(one, other) < 1e-3
    scored, again = both(replace(job, train=False))
    assert scored.fitness == again.fitness
    assert again.phenotype is job.phenotype


@settings(max_examples=25, deadline=None)
@given(genomes([(1, 6, 6), (2, 9), (5,)]), st.integers(0, 2**31))
def test_networks_of_any_structure_answer_as_with_torch(genome: Genome, seed: int) -> None:
    rng = np.random.default_rng(seed)
    family = LayeredFamily(Problem(genome.input_shape, genome.classes))
    phenotype = draw_phenotype(genome, rng=rng)
    x = rng.normal(size=(37, *genome.input_shape)).astype(np.float32)
    program = native.Program(genome.input_shape, family.operations(phenotype))
    tensors, _ = family.tensors(phenotype)
    answers = native.Network(program, program.flatten(tensors)).score(x)
    import torch

    with torch.inference_mode():
        expected = family.build(phenotype)(torch.from_numpy(x)).numpy()
    assert np.allclose(answers, expected, rtol=1e-4, atol=1e-5)
    back = family.with_tensors(phenotype, program.unflatten(program.flatten(tensors)), None)
    assert back.same_bits(phenotype)


def test_auto_takes_it_where_it_can_and_says_why_where_it_cannot() -> None:
    family, training = LayeredFamily(PROBLEM), TrainingConfig()
    assert why_torch(training, family, PROBLEM, DATA, None) is None
    cases: dict[str, tuple[Any, ...]] = {
        "beads has no native form": (training, BeadFamily(), PROBLEM, DATA, None),
        "no data set": (training, family, PROBLEM, None, None),
        "3 spatial dimensions": (training, family, Problem((1, 4, 4, 4), 2), DATA, None),
        "training.device is mps": (TrainingConfig(device="mps"), family, PROBLEM, DATA, None),
        "LBFGS does not work on one vector": (
            TrainingConfig(optimiser="LBFGS"),
            family,
            PROBLEM,
            DATA,
            None,
        ),
    }
    for reason, arguments in cases.items():
        assert reason in str(why_torch(*arguments))


def test_a_run_records_its_arithmetic_once_and_for_all(tmp_path: Path) -> None:
    epicortex.evolve("digits", epicortex.configure("layered", SMALL), out=tmp_path / "run")
    assert read_run(tmp_path / "run").config.training.backend == "native"
    with pytest.raises(ConfigError, match=r"training\.backend is native in this run"):
        epicortex.resume(tmp_path / "run", {"training.backend": "torch"})
    own = {**SMALL, "training.backend": "torch"}
    epicortex.evolve("digits", epicortex.configure("layered", own), out=tmp_path / "torch")
    assert read_run(tmp_path / "torch").config.training.backend == "torch"


def test_without_the_library_auto_is_torch_and_a_native_run_is_refused(tmp_path: Path) -> None:
    epicortex.evolve("digits", epicortex.configure("layered", SMALL), out=tmp_path / "run")
    lacking = {**os.environ, "EPICORTEX_NATIVE_LIBRARY": str(tmp_path / "nowhere.so")}
    command = [sys.executable, "-m", "epicortex"]
    words = [word for name, value in SMALL.items() for word in (f"--{name.replace('_', '-')}", str(value))]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *more], env=lacking, capture_output=True, text=True, check=False)

    refused = run("resume", str(tmp_path / "run"), "--generations", "3", "--quiet")
    assert refused.returncode == 2
    assert "training.backend is native, but this run cannot have it" in refused.stderr
    done = run("evolve", "digits", "--out", str(tmp_path / "torch"), "--quiet", *words)
    assert done.returncode == 0, done.stderr
    assert "networks train on torch, which takes several times as long: the native library" in done.stderr
    assert read_run(tmp_path / "torch").config.training.backend == "torch"


def test_a_worker_without_the_library_ends_the_run_with_the_reason(tmp_path: Path) -> None:
    """As on a machine of a cluster where it was not built: never a silent fallback."""
    code = (
        "import os, sys; from epicortex import native; from epicortex.cli import main\n"
        "assert native.available(); os.environ['EPICORTEX_NATIVE_LIBRARY'] = sys.argv[1]\n"
        "words = '--preset layered --engine processes --workers 1 --generations 1 --quiet'.split()\n"
        "sys.exit(main(['evolve', 'digits', *words, '--out', sys.argv[2]]))"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "nowhere.so"), str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 4, done.stderr
    (line,) = (line for line in done.stderr.splitlines() if "native arithmetic" in line)
    assert "this run trains on native arithmetic, which is not there (the native library" in line


#: As little work as there is: portable code is slow where fused multiply-adds are emulated.
_RUNS = {
    "layered": "--preset layered --evolution.initial-networks 4 --evolution.max-networks 6 "
    "--evolution.initial-species 2",
    "planned": "--budget.steps 2 --residual.start-cost 20000 --residual.start-parameters 800",
}
_MODEL = ("model.safetensors", "genome.json", "card.md")
_COMMANDS = """
import json, sys
from epicortex.cli import main
sys.exit(max(main([*words, "--quiet"]) for words in json.loads(sys.argv[1])))
"""


def _with(simd: str, *commands: list[str]) -> None:
    """Commands in one process that has this instruction set, torch as well: as on another machine."""
    torch_has = {"avx512": "avx512", "avx2": "avx2"}.get(simd, "default")
    if commands:
        done = subprocess.run(
            [sys.executable, "-c", _COMMANDS, json.dumps(commands)],
            env={**os.environ, "EPICORTEX_SIMD": simd, "ATEN_CPU_CAPABILITY": torch_has},
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr


def _measures(run: Path) -> str:
    """What structures are compared by, of all networks in the newest checkpoint."""
    newest = max((run / "checkpoints").glob("*/state.json"))
    return str([network.get("measures") for network in json.loads(newest.read_text())["state"]["networks"]])


def test_runs_give_the_same_bytes_on_every_instruction_set(tmp_path: Path) -> None:
    """Begun with one, resumed with another."""
    sets = native.instruction_sets()
    for first in sets:
        begun = ("--engine", "serial", "--generations", "1")
        _with(
            first,
            *(
                ["evolve", "digits", "--out", str(tmp_path / name / first), *options.split(), *begun]
                for name, options in _RUNS.items()
            ),
        )
    for simd, others in ((sets[-1], sets[:1]), (sets[0], sets[1:])):
        folders = [tmp_path / name / first for name in _RUNS for first in others]
        _with(simd, *(["resume", str(folder), "--generations", "3"] for folder in folders))
    for name in _RUNS:
        for file in ("networks.jsonl", *(f"champion/{part}" for part in _MODEL)):
            assert len({(tmp_path / name / first / file).read_bytes() for first in sets}) == 1, file
        assert len({_measures(tmp_path / name / first) for first in sets}) == 1


def test_nan_fails_the_network_with_the_reason_torch_gives() -> None:
    wild = {"optimiser": "SGD", "optimiser_arguments": {"lr": 1e30}}
    training = TrainingConfig(**{"portion": 1.0, "batch_size": 16, **wild})
    genome = Genome(DATA.input_shape, (ConvLayer(((3, 3),), (1, 1)), FullLayer(3)), len(DATA.classes))
    phenotype = draw_phenotype(genome, rng=np.random.default_rng(1))
    outcome = NativeTrainer(DATA, LayeredFamily(PROBLEM), training, seed=1).run(Job(1, 1, 1, phenotype))
    assert outcome.phenotype is None
    assert "training step" in str(outcome.failed) or "not finite" in str(outcome.failed)
