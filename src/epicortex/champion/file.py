"""The champion's folder: genome.json, model.safetensors and card.md.

The model file stands alone: its metadata says all that genome.json says, so that it can be sent by itself.
Turning it into a module is one call, made late, since it needs torch.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from epicortex.data.dataset import Scaling
from epicortex.errors import DataError, StorageError
from epicortex.families.layered.genome import Genome
from epicortex.families.layered.phenotype import Array, Phenotype
from epicortex.machine import too_much
from epicortex.storage import atomic, strict, tensors
from epicortex.storage.atomic import Bytes
from epicortex.storage.codec import decode_layered, encode_layered
from epicortex.text import clean, markdown

if TYPE_CHECKING:
    from epicortex.families.layered.network import Network

FORMAT: Final = 1
MAX_MODEL: Final = 1 << 36
_METADATA: Final = "epicortex.champion"
_MAX_ITEMS: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about a champion besides its genome and weights."""

    conv_activation: str
    full_activation: str
    classes: tuple[str, ...]
    """The names of the classes, in the order of the outputs."""
    data: str
    """The name of the data set it was evolved on."""
    network: int
    generation: int
    fitness: float
    fitness_on: str
    test_accuracy: float | None
    """The accuracy on the test set; None until the run has ended, or where fitness was measured on it."""
    seed: int
    weights_sha256: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Champion:
    """A network by value with all that is needed to use it: classes, scaling, activations."""

    phenotype: Phenotype
    scaling: Scaling
    facts: Facts

    @property
    def genome(self) -> Genome:
        """Its structure."""
        return self.phenotype.genome

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the outputs."""
        return self.facts.classes

    def network(self) -> Network:
        """It as an `nn.Module`."""
        from epicortex.families.activations import Activations
        from epicortex.families.layered.network import Network

        activations = Activations(conv=self.facts.conv_activation, full=self.facts.full_activation)
        return Network(self.phenotype, activations)


def write(folder: Path, champion: Champion) -> None:
    """Write the champion's folder; each file in one step, the model, which stands alone, first."""
    atomic.replace_file(folder / "model.safetensors", model_file(champion))
    atomic.replace_file(folder / "genome.json", [genome_file(champion)])
    atomic.replace_file(folder / "card.md", [card(champion).encode("utf-8", "replace")])


def model_file(champion: Champion) -> Iterator[Bytes]:
    """The pieces of a model.safetensors that stands alone."""
    values, arrays = _described(champion)
    return tensors.serialise(arrays, {_METADATA: strict.sealed(values).decode()})


def genome_file(champion: Champion) -> bytes:
    """A genome.json: all that is known about the champion but its weights."""
    values, _ = _described(champion)
    lines = ",\n".join(
        f"  {strict.dump(name).decode()}: {strict.dump(v).decode()}" for name, v in values.items()
    )
    return f"{{\n{lines}\n}}\n".encode()


def read(path: Path) -> Champion:
    """The champion of a run folder, or of a model file by itself; anything unsound is a `StorageError`."""
    atomic.refuse_link(path)
    if path.is_dir():
        run, path = path, path / "champion" / "model.safetensors"
        atomic.refuse_link(path.parent)
        if not path.exists() and (run / "config.toml").exists():
            raise StorageError(f"{run} has no champion yet: its first generation is not complete")
    where = str(path)
    data = atomic.read_file(path, limit=MAX_MODEL)
    arrays, metadata = tensors.parse(data, where, max_items=_MAX_ITEMS)
    if _METADATA not in metadata:
        raise StorageError(f"{where} is not a champion of EpiCortex: its header does not describe one")
    values = strict.unseal(strict.encoded(metadata[_METADATA]), f"the description in {where}")
    strict.check_format(values.pop("format", None), FORMAT, where)
    phenotype = decode_layered(values.pop("genome", None), arrays, where)
    try:
        scaling = Scaling.from_json(values.pop("scaling", None))
    except DataError as error:
        raise StorageError(f"{where}: {error}") from None
    facts = strict.build(Facts, values, where)
    if len(facts.classes) != phenotype.genome.classes:
        raise StorageError(f"{where}: {len(facts.classes)} names for {phenotype.genome.classes} classes")
    if (reason := too_much(_sample_bytes(phenotype.genome.shapes))) is not None:
        raise StorageError(f"{where}: for a single sample {reason}")
    if facts.weights_sha256 != _digest(arrays):
        raise StorageError(f"{where} is damaged: its weights do not match their checksum")
    return Champion(phenotype, scaling, facts)


def card(champion: Champion) -> str:
    """A page about the champion for people."""
    facts, genome = champion.facts, champion.genome
    rows = [
        f"| {number} | {layer} | {' × '.join(map(str, shape))} | {count:,} |"
        for number, (layer, shape, count) in enumerate(
            zip(genome.layers, genome.output_shapes, genome.layer_parameters, strict=True), 1
        )
    ]
    tested = (
        ""
        if facts.test_accuracy is None
        else f"- Accuracy on the test set: {100 * facts.test_accuracy:.2f} %\n"
    )
    data = clean(facts.data).replace("`", "?")
    return f"""# Champion of an EpiCortex run

A classifier of `{data}`, evolved with seed {facts.seed}: network {facts.network} of generation \
{facts.generation}.

- Fitness, on the {facts.fitness_on} set: {100 * facts.fitness:.2f} %
{tested}- Parameters: {genome.parameters:,}
- Input: {" × ".join(map(str, genome.input_shape))}; {_scaling(champion.scaling)}
- Activations: {facts.conv_activation} (convolutions), {facts.full_activation} (full layers)
- Classes: {", ".join(map(markdown, facts.classes[:100]))}

| layer | what | output | parameters |
|---|---|---|---|
{chr(10).join(rows)}

```python
import epicortex

network = epicortex.load("model.safetensors")
```
"""


def _sample_bytes(shapes: Sequence[Sequence[int]]) -> int:
    """About what a sample takes at the layer where it takes most, in float32."""
    return 4 * max(math.prod(below) + math.prod(above) for below, above in pairwise(shapes))


def _scaling(scaling: Scaling) -> str:
    if len(scaling.mean) > 8:
        return "scaled column by column"
    mean, std = (", ".join(f"{value:g}" for value in values) for values in (scaling.mean, scaling.std))
    return f"x becomes (x / {scaling.divisor:g} − {mean}) / {std}"


def _described(champion: Champion) -> tuple[dict[str, Any], Mapping[str, Array]]:
    genome, arrays = encode_layered(champion.phenotype)
    facts = strict.plain(champion.facts)
    return {
        "format": FORMAT,
        "genome": genome,
        "scaling": champion.scaling.to_json(),
        **facts,
        "weights_sha256": _digest(arrays),
    }, arrays


def _digest(arrays: Mapping[str, Array]) -> str:
    digest = hashlib.sha256()
    for piece in list(tensors.serialise(arrays, {}))[2:]:
        digest.update(piece)
    return digest.hexdigest()
