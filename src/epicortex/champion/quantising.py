"""A champion's ONNX file with weights and activations of 8 bits, for devices that compute with those.

Ranges of activations are taken from samples, which the caller brings. How much accuracy that costs is for the
caller to measure; `answers` runs either file.
"""

from __future__ import annotations

import importlib
import logging
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from epicortex.errors import ConfigError

#: Of more samples the ranges get no better.
ENOUGH: Final = 512
_BATCH: Final = 64
#: What is computed with 8 bits: layers with weights, and the additions between them.
_OPERATORS: Final = ("Conv", "Gemm", "MatMul", "Add", "Relu", "GlobalAveragePool")


def quantised(model: bytes, samples: NDArray[np.generic]) -> bytes:
    """An ONNX model with 8 bits; `samples` are raw values such as it will get."""
    quantization, shapes = _library()
    if not len(samples):
        raise ConfigError("ranges for 8 bits are taken from samples, and there are none")
    chosen = samples[np.linspace(0, len(samples) - 1, min(ENOUGH, len(samples))).astype(int)]
    before = logging.root.level
    with tempfile.TemporaryDirectory(prefix="epicortex-") as folder:
        whole, folded, small = (Path(folder, name) for name in ("whole.onnx", "folded.onnx", "small.onnx"))
        whole.write_bytes(model)
        logging.root.setLevel(logging.ERROR)  # the library advises its own developers
        try:
            # Norms are folded into the convolutions before these are quantised.
            shapes.quant_pre_process(str(whole), str(folded), skip_symbolic_shape=True)
            quantization.quantize_static(
                str(folded),
                str(small),
                _Reader(np.asarray(chosen, np.float32)),
                quant_format=quantization.QuantFormat.QDQ,
                op_types_to_quantize=list(_OPERATORS),
                per_channel=True,
                weight_type=quantization.QuantType.QInt8,
                activation_type=quantization.QuantType.QUInt8,
            )
        finally:
            logging.root.setLevel(before)
        return _with_metadata(small.read_bytes(), model)


def answers(model: bytes, x: NDArray[np.generic]) -> NDArray[np.float32]:
    """What it gives for each sample [samples, outputs]."""
    runtime = importlib.import_module("onnxruntime")
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    found = [
        session.run(None, {"x": np.asarray(x[start : start + _BATCH], np.float32)})[0]
        for start in range(0, len(x), _BATCH)
    ]
    return np.concatenate(found)


class _Reader:
    """Samples in batches, as the quantiser asks for them."""

    def __init__(self, samples: NDArray[np.float32]) -> None:
        self._samples = samples
        self._batches = self._fresh()

    def get_next(self) -> dict[str, NDArray[np.float32]] | None:
        return next(self._batches, None)

    def rewind(self) -> None:
        self._batches = self._fresh()

    def __len__(self) -> int:
        return math.ceil(len(self._samples) / _BATCH)

    def set_range(self, start_index: int, end_index: int) -> None:
        self._batches = self._fresh(start_index, end_index)

    def _fresh(self, first: int = 0, end: int | None = None) -> Iterator[dict[str, NDArray[np.float32]]]:
        numbers = range(len(self))[first:end]
        return ({"x": self._samples[_BATCH * at : _BATCH * (at + 1)]} for at in numbers)


def _with_metadata(small: bytes, model: bytes) -> bytes:
    """What the whole model says about itself, said by the small one."""
    import onnx

    made, whole = onnx.load_from_string(small), onnx.load_from_string(model)
    made.producer_name, made.doc_string = whole.producer_name, f"{whole.doc_string} Quantised to 8 bits."
    del made.metadata_props[:]
    made.metadata_props.extend(whole.metadata_props)
    data: bytes = made.SerializeToString()
    return data


def _library() -> tuple[Any, Any]:
    try:
        quantization = importlib.import_module("onnxruntime.quantization")
        shapes = importlib.import_module("onnxruntime.quantization.shape_inference")
    except ImportError:
        raise ConfigError(
            "8 bits need onnxruntime, which is not installed: pip install 'epicortex[onnx]'"
        ) from None
    return quantization, shapes
