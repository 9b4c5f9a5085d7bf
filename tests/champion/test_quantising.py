"""A champion with 8 bits: an ONNX file that any runtime reads, whose answers are close to the champion's."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from epicortex.champion.exporting import export
from epicortex.champion.file import Champion
from epicortex.champion.module import Classifier
from epicortex.cli import main
from epicortex.errors import ConfigError
from epicortex.run.record import load_champion
from tests.champions import make_champion, make_residual, raw_values
from tests.report.world import pretended_run

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")


@pytest.mark.parametrize("champion", [make_champion(), make_residual((3, 9, 7))], ids=["layered", "residual"])
def test_eight_bits_answer_nearly_as_the_champion(champion: Champion, tmp_path: Path) -> None:
    x = raw_values(champion, 200)
    path = export(champion, tmp_path / "a.onnx", int8=x.astype(np.uint8))
    weights = [one for one in onnx.load(path).graph.initializer if one.data_type == onnx.TensorProto.INT8]
    stored = sum(int(np.prod(one.dims)) for one in weights)
    assert stored >= 0.9 * (champion.outline.parameters - 2 * sum(p.nodes for p in champion.outline.parts))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {"x": x})
    with torch.no_grad():
        expected = Classifier(champion)(torch.from_numpy(x)).numpy()
    assert np.abs(logits - expected).max() < 0.1 * np.ptp(expected)
    says = session.get_modelmeta().custom_metadata_map
    assert json.loads(says["classes"]) == list(champion.classes)


def test_only_onnx_has_eight_bits_and_ranges_need_samples(tmp_path: Path) -> None:
    champion = make_champion()
    with pytest.raises(ConfigError, match=r"8 bits are for ONNX files, and a\.pt2 is none"):
        export(champion, tmp_path / "a.pt2", int8=raw_values(champion, 3))
    with pytest.raises(ConfigError, match="there are none"):
        export(champion, tmp_path / "a.onnx", int8=raw_values(champion, 0))
    assert not list(tmp_path.iterdir())


def test_the_command_shows_the_accuracy_before_and_after(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = pretended_run(tmp_path / "run", evolution__generations=1)
    assert main(["export", str(run), "--to", str(tmp_path / "a.onnx"), "--int8"]) == 0
    said = capsys.readouterr().out
    tested = load_champion(run).facts.test_accuracy
    assert tested is not None
    assert f"accuracy  {100 * tested:.2f} % with 32 bits, " in said.replace("\xa0", " ")
    assert "with 8 bits, on 596 test samples" in said
    assert main(["export", str(run / "champion/model.safetensors"), "--to", "b.onnx", "--int8"]) == 2
    assert "--int8 needs the data of the run" in capsys.readouterr().err
