"""A champion in use: the module that `load` gives takes raw values, knows its classes, and can learn on.

Reading its file is left to `storage`, other file formats to `exporting`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from epicortex.champion.file import Champion, Facts, is_picture, read
from epicortex.champion.judging import HALF
from epicortex.champion.rows import raw_values
from epicortex.data import Scaling, read_image
from epicortex.data.readers.pictures import Item
from epicortex.errors import ConfigError, DataError
from epicortex.evaluation.figures import probabilities, sigmoid
from epicortex.evaluation.scoring import answers
from epicortex.families.family import Outline

_BATCH: Final = 512
_WHITE: Final = 255.0


def load(path: Path | str, *, parts: Mapping[str, Any] | None = None) -> Classifier:
    """The champion of a run folder, or of a .safetensors file, as an `nn.Module`; nothing in it can run code.

    `load("runs/digits-1").predict(images)` gives names of classes. A family of one's own is handed over as
    `parts={"family": {"name": Family}}`.
    """
    return Classifier(read(Path(path), parts))


class Classifier(nn.Module):
    """A champion as a module: raw values [samples, *input_shape] in, logits [samples, classes] out.

    Of a champion for regression the values [samples, targets] come out, in their units; of one for sets of
    labels the logits of the labels. Raw values are those of the data set it was evolved on, such as pixels
    from 0 to 255. It is scaled inside, exactly as in training. It comes in evaluation mode; its parameters
    can be trained further like those of any other module.
    """

    scale: Tensor
    shift: Tensor
    unit: Tensor
    offset: Tensor

    def __init__(self, champion: Champion) -> None:
        super().__init__()
        self.network = champion.network()
        self.scaling: Scaling = champion.scaling
        self.facts: Facts = champion.facts
        self._champion = champion
        scale, shift = champion.scaling.factors(1 + len(champion.outline.input_shape))
        self.register_buffer("scale", torch.from_numpy(scale))
        self.register_buffer("shift", torch.from_numpy(shift))
        targets = champion.facts.targets or Scaling(1.0, (0.0,), (1.0,))
        # not part of the state: what is stored stays what it was before there was regression
        self.register_buffer("unit", torch.tensor(targets.std), persistent=False)
        self.register_buffer("offset", torch.tensor(targets.mean), persistent=False)
        self.eval()

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the outputs."""
        return self.facts.classes

    @property
    def outline(self) -> Outline:
        """Its structure, as people see it."""
        return self._champion.outline

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of a sample, such as (channels, height, width) of pictures or (columns,) of tables."""
        return self.outline.input_shape

    def forward(self, x: Tensor) -> Tensor:
        """The logits [samples, classes], or values, of raw values [samples, *input_shape]."""
        logits: Tensor = self.network(x.to(self.scale.dtype) * self.scale + self.shift)
        return logits if self.facts.targets is None else logits * self.unit + self.offset

    def predict_proba(self, x: Any) -> NDArray[np.floating[Any]]:
        """The probability of each class, or label [samples, classes], for an array or a tensor of raw values.

        Logits of classes are divided by `facts.temperature` first, so that 0.9 is right nine times in ten.
        """
        if self.facts.task == "regression":
            raise ConfigError("this champion predicts numbers, which have no probabilities: use predict")
        return self.answer(x)

    def answer(self, x: Any) -> NDArray[np.floating[Any]]:
        """What it says of raw values [samples, outputs]: probabilities, or numbers in their units."""
        values, device, training = self._checked(x), self.scale.device, self.training
        chunks = (values[start : start + _BATCH].to(device) for start in range(0, len(values), _BATCH))
        self.eval()
        try:
            logits = answers(self, chunks, len(values), self.outline.outputs)
            return meaning(logits.double().numpy(), self.facts)
        finally:
            self.train(training)

    def predict(self, x: Any) -> Any:
        """The likeliest class of each sample: its name, or the number that was the label in arrays.

        Of a champion for a table, `x` may be a DataFrame with the columns that it was evolved on.

        For regression the numbers, as an array [samples], or [samples, targets] of several; for sets of
        labels a tuple of names for each sample.
        """
        if self.facts.task == "regression":
            values = self.answer(x)
            return values[:, 0] if values.shape[1] == 1 else values
        if self.facts.task == "multilabel":
            return [
                tuple(name for name, chance in zip(self.classes, row, strict=True) if chance >= HALF)
                for row in self.answer(x)
            ]
        labels = self.labels
        return [labels[index] for index in self.predict_proba(x).argmax(1)]

    @property
    def labels(self) -> list[Any]:
        """The classes as the labels of the data had them: whole numbers, True and False, or names."""
        if self.facts.label_kind == "text":
            return list(self.classes)
        numbers = map(int, self.classes)
        return list(map(bool, numbers)) if self.facts.label_kind == "boolean" else list(numbers)

    def read(self, *paths: Path | str | Item) -> NDArray[np.float32]:
        """Pictures from files as raw values [files, *input_shape], converted and resized as in training."""
        shape = picture_shape(self.input_shape)
        pixels = np.stack([read_image(path, shape, bits=self.facts.bits) for path in paths])
        # The divisor is what white is in the data: 255, or 16 in the digits of scikit-learn.
        return pixels * np.float32(self.scaling.divisor / _WHITE)

    def champion(self) -> Champion:
        """It by value, with the weights as they are now. Figures of its fitness stay those of its run."""
        family = self._champion.family
        phenotype = family.learned(self._champion.phenotype, self.network)
        return Champion(phenotype, family, self.scaling, replace(self.facts, weights_sha256=""))

    def _checked(self, x: Any) -> Tensor:
        values = x if isinstance(x, Tensor) else torch.as_tensor(raw_values(self.facts, x, self.input_shape))
        if tuple(values.shape[1:]) == self.input_shape[1:] and self.input_shape[0] == 1 and values.ndim > 1:
            values = values[:, None]  # data without channels, such as N×H×W, was given one
        if tuple(values.shape[1:]) != self.input_shape or not len(values):
            raise DataError(
                f"the values have the shape {tuple(values.shape)}; (samples, "
                f"{', '.join(map(str, self.input_shape))}) is needed"
            )
        return values


def meaning(outputs: NDArray[np.float64], facts: Facts) -> NDArray[np.float64]:
    """What outputs mean: values as they are, logits as probabilities."""
    if facts.task == "regression":
        return outputs
    if facts.task == "multilabel":
        return sigmoid(outputs)
    return probabilities(outputs, facts.temperature)


def picture_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    """The shape of the pictures that a champion classifies; one that takes something else is refused."""
    if not is_picture(shape):
        what = f"{shape[0]} columns" if len(shape) == 1 else " × ".join(map(str, shape))
        raise DataError(
            f"this champion takes {what}, not pictures: give it an array, as epicortex.load(RUN).predict(x)"
        )
    channels, height, width = shape
    return channels, height, width
