"""A champion in other people's hands: every file computes what the champion does and says what it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import epicortex
from epicortex.champion import file as champions
from epicortex.champion.exporting import export
from epicortex.champion.module import Classifier
from epicortex.cli import main
from epicortex.data import Scaling
from epicortex.ecosystem.state import EcosystemState
from epicortex.errors import ConfigError, DataError, StorageError
from epicortex.run.lifecycle import Result
from tests.champions import LAYERS, make_champion, raw_values

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

BATCHES = (1, 2, 7, 300)


def expected(champion: epicortex.Champion, x: np.ndarray) -> np.ndarray:
    """Scaled by numpy, computed by the evolved network itself."""
    with torch.no_grad():
        return np.asarray(champion.network()(torch.from_numpy(champion.scaling.apply(x))))


@pytest.fixture(scope="module")
def onnx_files(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, ...], Path]:
    """An export takes seconds: one for each shape serves all tests."""
    folder = tmp_path_factory.mktemp("onnx")
    return {
        shape: export(make_champion(shape), folder / f"{number}.onnx") for number, shape in enumerate(LAYERS)
    }


@pytest.mark.parametrize("shape", LAYERS)
def test_onnx_equals_the_champion_for_any_batch(
    shape: tuple[int, ...], onnx_files: dict[tuple[int, ...], Path]
) -> None:
    champion = make_champion(shape)
    session = onnxruntime.InferenceSession(onnx_files[shape])
    (argument,), (output,) = session.get_inputs(), session.get_outputs()
    assert (argument.name, argument.type, tuple(argument.shape[1:])) == ("x", "tensor(float)", shape)
    assert isinstance(argument.shape[0], str)
    assert (output.name, output.shape[1]) == ("logits", 3)
    for samples in BATCHES:
        x = raw_values(champion, samples)
        (logits,) = session.run(None, {"x": x})
        np.testing.assert_allclose(logits, expected(champion, x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", LAYERS)
def test_pt2_equals_the_champion_for_any_batch(shape: tuple[int, ...], tmp_path: Path) -> None:
    champion = make_champion(shape, full="gelu")
    program = torch.export.load(export(champion, tmp_path / "c.pt2")).module()
    for samples in BATCHES:
        x = raw_values(champion, samples)
        logits = program(torch.from_numpy(x)).numpy()
        np.testing.assert_allclose(logits, expected(champion, x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", LAYERS)
def test_safetensors_loads_as_the_same_module(shape: tuple[int, ...], tmp_path: Path) -> None:
    champion = make_champion(shape)
    module = epicortex.load(export(champion, tmp_path / "c.safetensors"))
    x = raw_values(champion, 5)
    with torch.no_grad():
        logits = module(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(logits, expected(champion, x), rtol=1e-5, atol=1e-6)
    genome = json.loads((tmp_path / "genome.json").read_text())
    assert genome["classes"] == ["cat", "dog", "Zürich"]
    assert genome["genome"] == champion.description
    assert Scaling.from_json(genome["scaling"]) == champion.scaling


def test_every_file_names_classes_scaling_and_size(
    tmp_path: Path, onnx_files: dict[tuple[int, ...], Path]
) -> None:
    champion = make_champion((3, 9, 7))
    session = onnxruntime.InferenceSession(onnx_files[3, 9, 7])
    onnx_says = session.get_modelmeta().custom_metadata_map
    extra = {"epicortex.json": ""}
    torch.export.load(export(champion, tmp_path / "c.pt2"), extra_files=extra)
    pt2_says = {name: json.dumps(value) for name, value in json.loads(extra["epicortex.json"]).items()}
    for says in (onnx_says, pt2_says):
        assert json.loads(says["classes"]) == ["cat", "dog", "Zürich"]
        assert json.loads(says["input_shape"]) == [3, 9, 7]
        assert Scaling.from_json(json.loads(says["scaling"])) == champion.scaling
        assert "0 (black) to 255 (white)" in says["input"]
        assert json.loads(says["champion"])["genome"] == champion.description
    module = epicortex.load(export(champion, tmp_path / "c.safetensors"))
    assert (module.classes, module.input_shape) == (champion.classes, (3, 9, 7))
    assert module.scaling == champion.scaling


def test_a_pt2_file_needs_nothing_of_epicortex(tmp_path: Path) -> None:
    champion = make_champion()
    export(champion, tmp_path / "c.pt2")
    program = """
import sys
sys.modules["epicortex"] = None
import torch
print(torch.export.load("c.pt2").module()(torch.zeros(3, 1, 8, 8)).shape)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "torch.Size([3, 3])\n"


def test_a_module_trained_further_is_exported_with_its_new_weights(tmp_path: Path) -> None:
    module = Classifier(make_champion())
    x = torch.from_numpy(raw_values(make_champion(), 32))
    y = torch.arange(32) % 3
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01)
    before = torch.nn.functional.cross_entropy(module(x), y)
    for _ in range(30):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    assert loss < before / 2
    again = epicortex.load(export(module, tmp_path / "c.safetensors"))
    assert torch.equal(again(x), module(x))
    program = torch.export.load(export(module, tmp_path / "c.pt2")).module()
    torch.testing.assert_close(program(x), module(x).detach(), rtol=1e-5, atol=1e-5)


def test_predict_gives_names_and_probabilities_add_up() -> None:
    champion = make_champion()
    module = Classifier(champion)
    x = raw_values(champion, 700)
    probabilities = module.predict_proba(x)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)
    likeliest = expected(champion, x).argmax(axis=1)
    assert module.predict(x) == [champion.classes[index] for index in likeliest]
    assert module.predict(x.astype(np.uint8)) == module.predict(np.trunc(x))
    with pytest.raises(DataError, match=r"shape \(8, 8\); \(samples, 1, 8, 8\) is needed"):
        module.predict(np.zeros((8, 8)))


@pytest.mark.parametrize("name", ["c", "c.h5", "c.onnx.gz", "c.pt"])
def test_an_ending_that_says_nothing_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"must end in \.onnx, \.pt2, \.safetensors, \.c"):
        export(make_champion(), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"there is no folder .*gone"):
        export(make_champion(), tmp_path / "gone" / "c.onnx")
    (tmp_path / "c.pt2").mkdir()
    with pytest.raises(StorageError, match="it is a folder"):
        export(make_champion(), tmp_path / "c.pt2")


@pytest.mark.parametrize("ending", ["onnx", "pt2", "safetensors"])
def test_an_export_that_fails_leaves_the_old_file(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / f"c.{ending}"
    old.write_bytes(b"as it was")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(StorageError, match="the disk is full"):
        export(make_champion(), old)
    assert old.read_bytes() == b"as it was"
    assert [path.name for path in tmp_path.iterdir()] == [old.name]


def test_a_missing_extra_is_one_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ConfigError, match=r"onnxscript.* not installed: pip install 'epicortex\[onnx\]'"):
        export(make_champion(), tmp_path / "c.onnx")


def test_a_result_is_exported_as_its_champion(tmp_path: Path) -> None:
    state = EcosystemState(0, (), (), 1, 1)
    result = Result(make_champion(), [], state, "all generations are done", None, None)
    module = epicortex.load(export(result, tmp_path / "c.safetensors"))
    x = torch.from_numpy(raw_values(make_champion(), 5))
    assert torch.equal(module(x), result.module(x))
    with pytest.raises(ConfigError, match="cannot be taken from Result"):
        export(replace(result, champion=None), tmp_path / "c.safetensors")


def test_what_is_no_champion_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be taken from int"):
        export(3, tmp_path / "c.onnx")  # type: ignore[arg-type]


def test_the_command_writes_and_says_what_the_file_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model.safetensors"
    model.write_bytes(b"".join(champions.model_file(make_champion())))
    assert main(["export", str(model), "--to", str(tmp_path / "c.pt2")]) == 0
    said = capsys.readouterr().out
    assert f"wrote {tmp_path / 'c.pt2'} " in said
    assert "float32 [batch, 1, 8, 8], raw values from 0 to 255" in said
    assert "logits [batch, 3] of 3 classes" in said
    assert main(["export", str(model), "--to", str(tmp_path / "d" / "c.pt2")]) == 2
    assert "there is no folder" in capsys.readouterr().err
    assert main(["export", str(model)]) == 2
    assert "--to FILE is missing" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "nothing"), "--to", str(tmp_path / "c.pt2")]) == 2
    assert "there is no such file" in capsys.readouterr().err
