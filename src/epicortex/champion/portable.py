"""A champion that was exported to ONNX, used as `predict` uses any other: by onnxruntime, without torch.

All it needs is in the file's metadata, which says the same as a genome.json.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from epicortex.champion.file import Facts
from epicortex.champion.rows import raw_values
from epicortex.data import Scaling, read_image
from epicortex.data.readers.pictures import Item
from epicortex.errors import ConfigError, DataError, EpiCortexError, StorageError
from epicortex.evaluation.figures import probabilities
from epicortex.storage import strict

#: What the description of a champion says besides its facts.
_REST: Final = ("format", "family", "genome", "scaling", "preprocessing")


@dataclass(frozen=True, slots=True, eq=False)
class Portable:
    """An ONNX file of ours as a classifier."""

    session: Any
    facts: Facts
    scaling: Scaling
    input_shape: tuple[int, ...]

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the outputs."""
        return self.facts.classes

    def answer(self, x: Any) -> NDArray[np.float64]:
        """What it says of raw values [samples, outputs]: probabilities, or numbers in their units."""
        (wanted,) = self.session.get_inputs()
        values = np.asarray(raw_values(self.facts, x, self.input_shape), np.float32)
        if wanted.type == "tensor(uint8)":
            pixels = np.rint(values * np.float32(255 / self.scaling.divisor)).astype(np.uint8)
            values = np.moveaxis(pixels, 1, -1)
        outputs = np.asarray(self.session.run(None, {wanted.name: values})[0], np.float64)
        # numbers come in their units, and labels as probabilities
        return probabilities(outputs, self.facts.temperature) if self.facts.task == "classes" else outputs

    def predict_proba(self, x: Any) -> NDArray[np.float64]:
        """The probability of each class, or label [samples, classes], of raw values."""
        if self.facts.task == "regression":
            raise ConfigError("this champion predicts numbers, which have no probabilities")
        return self.answer(x)

    def read(self, *paths: Path | str | Item) -> NDArray[np.float32]:
        """Pictures from files as raw values, as `Classifier.read` does it."""
        channels, height, width = self.input_shape
        shape = (channels, height, width)
        pixels = np.stack([read_image(path, shape, bits=self.facts.bits) for path in paths])
        return pixels * np.float32(self.scaling.divisor / 255.0)


def load_onnx(path: Path) -> Portable:
    """An ONNX file that `export` wrote; any other is refused."""
    try:
        import onnxruntime  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise ConfigError(
            f"{path}: ONNX files need onnxruntime, which is not installed: pip install 'epicortex[onnx]'; or "
            "give the folder of the run"
        ) from None
    if not path.is_file():
        raise StorageError(f"{path} is not there")
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        about = session.get_modelmeta().custom_metadata_map
        values = json.loads(about["champion"])
        shape = tuple(map(int, json.loads(about["input_shape"])))
        scaling = Scaling.from_json(values["scaling"])
        facts = strict.build(Facts, {k: v for k, v in values.items() if k not in _REST}, str(path))
    except (EpiCortexError, DataError) as error:
        raise StorageError(f"{path} is no champion of EpiCortex: {error}") from None
    except Exception:  # onnxruntime raises kinds of its own
        raise StorageError(f"{path} is no ONNX file that epicortex export wrote, or is damaged") from None
    return Portable(session, facts, scaling, shape)
