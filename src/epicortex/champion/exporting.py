"""A champion as a file for others: ONNX, torch.export (.pt2), safetensors, C.

Each carries the class names, the scaling and the input's shape, so that a consumer needs nothing else. What
ONNX, .pt2 and C compute takes raw values and scales them inside. Files are written whole or not at all.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from epicortex.champion import c_source, quantising
from epicortex.champion import file as champions
from epicortex.champion.file import Champion
from epicortex.errors import ConfigError, StorageError
from epicortex.storage.atomic import refuse_irregular, replace_file, replace_text

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from epicortex.champion.module import Classifier
    from epicortex.run.lifecycle import Result

ENDINGS: Final = (".onnx", ".pt2", ".safetensors", ".c")
METADATA: Final = "epicortex.json"
"""The name of what a .pt2 file says about itself, among its `extra_files`."""
OUTPUT: Final = {"classes": "logits", "regression": "values", "multilabel": "probabilities"}
"""The name of what an ONNX file gives, by what it predicts."""
_OPSET: Final = 18
#: Where torch puts what it compiles, and makes a folder even if that is nothing.
_CACHE: Final = "TORCHINDUCTOR_CACHE_DIR"
_ONNX_LIMIT: Final = 2**31 - 2**20


def export(
    source: Path | str | Champion | Classifier | Result,
    to: Path | str,
    *,
    pixels: bool = False,
    int8: NDArray[Any] | None = None,
) -> Path:
    """Write a champion to a file; its ending says how: .onnx, .pt2, .safetensors or .c.

    Beside a .safetensors file goes a genome.json, beside a .c file its header.

    The source is a run folder, a .safetensors file, the result of a run, or a module that `load` gave. With
    `pixels`, an ONNX or .pt2 file takes uint8 [batch, height, width, channels], as pictures come. With
    `int8`, raw values such as those of the training set, an ONNX file computes with 8 bits.
    """
    to = Path(to)
    check_target(to)
    if int8 is not None and to.suffix != ".onnx":
        raise ConfigError(f"8 bits are for ONNX files, and {to.name} is none")
    champion = _champion(source)
    if pixels and not champions.is_picture(champion.outline.input_shape):
        raise ConfigError("this champion takes no pictures, so that a file of it cannot take pixels")
    if to.suffix == ".onnx":
        model = onnx_model(champion, pixels)
        replace_file(to, [model if int8 is None else quantising.quantised(model, int8)])
    elif to.suffix == ".pt2":
        replace_file(to, [_pt2(champion, pixels)])
    elif to.suffix == ".c":
        text = c_source.source(champion, to.stem)
        replace_text(to.with_suffix(".h"), text.header)
        replace_text(to, text.code)
    else:
        replace_file(to, champions.model_file(champion))
        replace_file(to.with_name("genome.json"), [champions.genome_file(champion)])
    return to


def check_target(to: Path) -> None:
    """Refuse an ending that says nothing, a folder that is not there, and a library that is missing."""
    if to.suffix not in ENDINGS:
        raise ConfigError(f"{to} does not say what to write: its name must end in {', '.join(ENDINGS)}")
    if not to.parent.is_dir():
        raise StorageError(f"{to} cannot be written: there is no folder {to.parent}")
    refuse_irregular(to)
    if to.suffix == ".c":
        refuse_irregular(to.with_suffix(".h"))
    if to.suffix == ".onnx":
        for name in ("onnx", "onnxscript"):
            try:
                importlib.import_module(name)
            except ImportError:
                raise ConfigError(
                    f"ONNX needs {name}, which is not installed: pip install 'epicortex[onnx]'"
                ) from None


def describe(champion: Champion, *, raw: bool = False) -> dict[str, Any]:
    """What ONNX and .pt2 files say about themselves, as plain JSON values."""
    shape, white = champion.outline.input_shape, champion.scaling.divisor
    if raw:
        channels, height, width = shape
        size = f"{height}, {width}, {channels}"
        wanted = f"uint8 [batch, {size}]: pixels from 0 (black) to 255 (white). They are scaled inside."
    pixels = f"; pixels from 0 (black) to {white:g} (white)" if len(shape) == 3 else ""
    return {
        "classes": list(champion.classes),
        "input_shape": list(shape),
        "scaling": champion.scaling.to_json(),
        "input": wanted
        if raw
        else f"float32 [batch, {', '.join(map(str, shape))}]: raw values as in the data "
        f"set{pixels}. They are scaled inside.",
        "output": _output(champion),
        "task": champion.facts.task,
        **({"table": table.to_json()} if (table := champion.facts.table) else {}),
        **({"preprocessing": champions.preprocessing(champion)} if champions.is_picture(shape) else {}),
        **({"temperature": temperature} if (temperature := champion.facts.temperature) else {}),
        "champion": json.loads(champions.genome_file(champion)),
    }


def _output(champion: Champion) -> str:
    """What comes out, in words."""
    size = f"[batch, {len(champion.classes)}]"
    if champion.facts.task == "regression":
        return f"values {size}, in the order of classes, each in the unit of its target in the data set"
    if champion.facts.task == "multilabel":
        return f"probabilities {size} of the labels, in the order of classes; a label is given from 0.5 on"
    return f"logits {size}, in the order of classes; softmax makes them probabilities"


def _champion(source: Path | str | Champion | Classifier | Result) -> Champion:
    if isinstance(source, Path | str):
        return champions.read(Path(source))
    if isinstance(source, Champion):
        return source
    from epicortex.champion.module import Classifier

    if isinstance(source, Classifier):
        return source.champion()
    best = getattr(source, "champion", None)
    if isinstance(best, Champion):
        return best
    raise ConfigError(
        f"a champion cannot be taken from {type(source).__name__}: give a run folder, a .safetensors file, "
        "a finished Result, or what epicortex.load gave"
    )


def _plain(champion: Champion, pixels: bool = False) -> tuple[nn.Module, Tensor]:
    """A module of stock layers that takes raw values or pixels, and inputs to trace it with."""
    import torch
    from torch import nn

    shape, task, targets = champion.outline.input_shape, champion.facts.task, champion.facts.targets
    network = champion.network()
    if not hasattr(network, "plain"):
        raise ConfigError(
            f"networks of the family {champion.family.name} have no form of stock torch layers, and so none "
            "that ONNX or .pt2 could hold; export to .safetensors"
        )

    class Raw(nn.Module):
        scale: Tensor
        shift: Tensor
        unit: Tensor
        offset: Tensor

        def __init__(self) -> None:
            super().__init__()
            scale, shift = champion.scaling.factors(1 + len(shape))
            self.register_buffer("scale", torch.from_numpy(scale))
            self.register_buffer("shift", torch.from_numpy(shift))
            self.network = network.plain()
            if targets is not None:
                self.register_buffer("unit", torch.tensor(targets.std))
                self.register_buffer("offset", torch.tensor(targets.mean))

        def forward(self, x: Tensor) -> Tensor:
            logits: Tensor = self.network(x * self.scale + self.shift)
            if task == "multilabel":
                return torch.sigmoid(logits)
            return logits if targets is None else logits * self.unit + self.offset

    if pixels:
        raw, white = Raw(), champion.scaling.divisor / 255.0
        channels, height, width = shape

        class Pixels(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.raw = raw

            def forward(self, x: Tensor) -> Tensor:
                logits: Tensor = self.raw(x.permute(0, 3, 1, 2).float() * white)
                return logits

        example = torch.zeros(2, height, width, channels, dtype=torch.uint8)
        return Pixels().eval().requires_grad_(False), example
    # Two samples: torch would take a batch of one for a fixed size.
    return Raw().eval().requires_grad_(False), torch.zeros(2, *shape)


def _exported(champion: Champion, pixels: bool) -> Any:
    import torch

    module, example = _plain(champion, pixels)
    sizes = {"x": {0: torch.export.Dim("batch")}}
    with _quiet():
        return torch.export.export(module, (example,), dynamic_shapes=sizes, strict=False)


def _pt2(champion: Champion, pixels: bool) -> bytes:
    import torch

    file = io.BytesIO()
    with _quiet():
        torch.export.save(
            _exported(champion, pixels),
            file,
            extra_files={METADATA: json.dumps(describe(champion, raw=pixels), indent=2)},
        )
    return file.getvalue()


def onnx_model(champion: Champion, pixels: bool = False) -> bytes:
    """The champion as an ONNX file."""
    import torch

    if 4 * champion.outline.parameters > _ONNX_LIMIT:
        raise StorageError("an ONNX file holds at most 2 GB, this champion has more: export to .safetensors")
    with _quiet():
        program = torch.onnx.export(
            _exported(champion, pixels),
            dynamo=True,
            input_names=["x"],
            output_names=[OUTPUT[champion.facts.task]],
            opset_version=_OPSET,
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    about = describe(champion, raw=pixels)
    model.producer_name = "epicortex"
    model.doc_string = f"{about['input']} Output: {about['output']}."
    for name, value in about.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = name, value if isinstance(value, str) else json.dumps(value)
    data: bytes = model.SerializeToString()
    return data


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporters' remarks to their own developers, and without the folder they leave behind."""
    import torch

    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir", "torch.export")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    before = os.environ.get(_CACHE)
    try:
        with tempfile.TemporaryDirectory(prefix="epicortex-") as folder, warnings.catch_warnings():
            os.environ[_CACHE] = folder
            warnings.simplefilter("ignore")
            yield
    except torch.onnx.OnnxExporterError as error:  # torch 2.6 with batch norms, for one
        raise StorageError(
            f"torch {torch.__version__} cannot write this network as an ONNX file; a newer torch may, and "
            ".pt2, .safetensors and .c do not depend on it"
        ) from error
    finally:
        os.environ.pop(_CACHE, None)
        if before is not None:
            os.environ[_CACHE] = before
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
