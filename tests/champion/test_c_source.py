"""A champion in C: compiled without a warning, it answers as the champion does, in the memory it names."""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from epicortex.champion.c_source import source
from epicortex.champion.exporting import export
from epicortex.champion.file import Champion
from epicortex.champion.module import Classifier
from epicortex.champion.steps import Step, memory, steps
from epicortex.cli import main
from epicortex.errors import ConfigError, StorageError
from epicortex.families.activations import NAMES, Activations
from epicortex.families.family import Problem
from epicortex.families.layered import LayeredFamily
from tests.champions import make_champion, make_residual, raw_values

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no C compiler")
STRICT = ("gcc", "-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")
MAKERS: dict[str, Callable[..., Champion]] = {"layered": make_champion, "residual": make_residual}


def compiled(champion: Champion, folder: Path) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    """The function that gives logits, of a library made of the exported file."""
    code = export(champion, folder / "model.c")
    subprocess.run([*STRICT, "-shared", "-fPIC", code, "-lm", "-o", folder / "model.so"], check=True)
    library = ctypes.CDLL(str(folder / "model.so"))

    def logits(x: NDArray[np.float32]) -> NDArray[np.float32]:
        result = np.zeros((len(x), len(champion.classes)), np.float32)
        for sample, row in zip(np.ascontiguousarray(x, np.float32), result, strict=True):
            library.model_logits(sample.ctypes.data_as(ctypes.c_void_p), row.ctypes.data_as(ctypes.c_void_p))
        return result

    return logits


@pytest.mark.parametrize("family", MAKERS)
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 9, 7), (2, 16), (4,)])
def test_c_answers_as_the_champion(family: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    champion = MAKERS[family](shape)
    x = raw_values(champion, 50)
    with torch.no_grad():
        expected = Classifier(champion)(torch.from_numpy(x)).numpy()
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(compiled(champion, tmp_path)(x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_activation_is_that_of_the_champion(name: str, tmp_path: Path) -> None:
    champion = make_champion(full=name)
    family = LayeredFamily(Problem((1, 8, 8), 3), activations=Activations(name, name))
    champion = replace(champion, family=family)
    x = raw_values(champion, 20)
    with torch.no_grad():
        expected = Classifier(champion)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(compiled(champion, tmp_path)(x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("family", MAKERS)
def test_as_a_program_it_names_the_classes_of_its_input(family: str, tmp_path: Path) -> None:
    """Under the sanitizers: reading or writing beyond an array ends the program."""
    champion = MAKERS[family]((1, 8, 8))
    code, program = export(champion, tmp_path / "my model-2.c"), tmp_path / "program"
    checks = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DMY_MODEL_2_MAIN")
    subprocess.run([*STRICT, *checks, code, "-lm", "-o", program], check=True)
    x = raw_values(champion, 9)
    text = " ".join(map(str, x.reshape(-1).tolist()))
    said = subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout
    model = Classifier(champion)
    assert [line.split()[0] for line in said.splitlines()] == model.predict(x)
    sure = [float(line.split()[1]) for line in said.splitlines()]
    np.testing.assert_allclose(sure, model.predict_proba(x).max(1), rtol=1e-3, atol=1e-4)
    refused = subprocess.run([program], input="1 2 3", capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr) == (2, "a sample has 64 numbers\n")


@pytest.mark.parametrize("family", MAKERS)
def test_the_header_says_what_the_compiled_file_takes(family: str, tmp_path: Path) -> None:
    champion = MAKERS[family]((3, 9, 7))
    code = export(champion, tmp_path / "model.c")
    subprocess.run([*STRICT, "-c", code, "-o", tmp_path / "model.o"], check=True)
    listed = subprocess.run(
        ["nm", "-S", "--defined-only", tmp_path / "model.o"], capture_output=True, text=True, check=True
    ).stdout
    sizes: dict[str, int] = {}
    for _, size, kind, _ in (line.split() for line in listed.splitlines() if len(line.split()) == 4):
        sizes[kind.lower()] = sizes.get(kind.lower(), 0) + int(size, 16)
    says = {
        name: int(re.findall(rf"{name} +([\d,]+)", code.read_text())[0].replace(",", ""))
        for name in ("Flash", "RAM", "Multiplications")
    }
    assert says["RAM"] == sizes["b"]
    names = sum(len(name.encode()) + 1 for name in champion.classes)
    assert says["Flash"] == sizes["r"] + names
    assert says["Multiplications"] == champion.outline.cost
    assert (tmp_path / "model.h").read_text().startswith(code.read_text().split("*/")[0])


def test_kernels_are_stored_without_the_zeros_around_them() -> None:
    champion = make_residual((3, 9, 7))
    stored = sum(len(step.weight) for step in steps(champion))
    assert stored == sum(layer.connections for layer in champion.phenotype.genome.layers)
    dense = sum(math.prod(layer.weight_shape) for layer in champion.phenotype.genome.layers)
    assert stored < dense


@pytest.mark.parametrize("parameters", [500, 3_000, 60_000])
def test_no_slot_is_overwritten_before_it_was_last_read(parameters: int) -> None:
    made = steps(make_residual((3, 16, 16), parameters=parameters))
    plan = memory(made)
    holder = np.full(plan.size, -1)
    for number, step in enumerate(made):
        for slot in {step.source, step.add} - {None}:
            assert slot is not None
            shape = made[slot - 1].output if slot else made[0].below
            place = plan.offsets[slot]
            if number == 0:
                continue
            assert (holder[place : place + math.prod(shape)] == slot).all()
        if number < len(made) - 1:
            _write(holder, plan.offsets[number + 1], step, number + 1)
    largest = max(math.prod(step.below) + math.prod(step.output) for step in made)
    assert plan.size <= 1.5 * largest


def _write(holder: NDArray[np.int64], place: int, step: Step, slot: int) -> None:
    source_is_spared = holder[place : place + math.prod(step.output)] != step.source
    assert step.source == 0 or source_is_spared.all()
    holder[place : place + math.prod(step.output)] = slot


def test_hostile_names_stay_text() -> None:
    names = ('"; system("x"); "', "*/ int x; /*", "??/", "a\\", "line\nbreak")
    champion = make_champion(classes=names)
    champion = replace(champion, facts=replace(champion.facts, data="*/ #include <evil.h> \\"))
    text = source(champion, "model").code
    assert text.count("*/ int") == 0
    assert "*/ #include" not in text
    assert '"; system' not in text
    with pytest.raises(ConfigError, match="cannot be the name of a file of C"):
        source(champion, 'a"b')


def test_what_cannot_be_written_in_c_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"volumes cannot be written as plain C .* export to \.onnx"):
        export(make_champion((1, 6, 6, 6)), tmp_path / "model.c")
    (tmp_path / "taken.h").mkdir()
    with pytest.raises(StorageError, match="it is a folder"):
        export(make_champion(), tmp_path / "taken.c")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.h"]


def test_the_command_says_what_the_device_must_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = export(make_champion(), tmp_path / "model.safetensors")
    assert main(["export", str(model), "--to", str(tmp_path / "model.c")]) == 0
    said = capsys.readouterr().out
    assert f"with {tmp_path / 'model.h'}" in said
    assert "flash   1,456 bytes of constants" in said
    assert "RAM     512 bytes" in said
