"""The champion's folder: genome.json, model.safetensors and card.md.

The model file stands alone: its metadata says all that genome.json says, so that it can be sent by itself.
Turning it into a module is one call, made late, since it needs torch.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from epicortex import markup, registry
from epicortex.champion import words
from epicortex.data.columns import Columns
from epicortex.data.dataset import DEEP, LabelKind, Scaling
from epicortex.data.readers import pictures
from epicortex.errors import ConfigError, DataError, GenomeError, StorageError
from epicortex.evaluation.figures import Tested
from epicortex.evaluation.tallies import LabelSets, Regressed
from epicortex.families.family import Array, Family, Outline
from epicortex.machine import too_much
from epicortex.measures import USUAL, TaskKind, figure
from epicortex.measures import named as measure_name
from epicortex.storage import atomic, strict, tensors
from epicortex.storage.atomic import Bytes
from epicortex.storage.codec import restored
from epicortex.text import clean, markdown, one_line

FORMAT: Final = 2
#: What fitness is measured on where there is no data set.
TASK: Final = "task"
MAX_MODEL: Final = 1 << 36
_METADATA: Final = "epicortex.champion"
_MODEL: Final = "model.safetensors"
_MAX_ITEMS: Final = 4_000_000
_WHOLE: Final = re.compile(r"-?\d{1,19}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about a champion besides its genome and weights."""

    classes: tuple[str, ...]
    """The names of the classes, in the order of the outputs."""
    data: str
    """The name of the data set it was evolved on."""
    network: int
    generation: int
    fitness: float
    fitness_on: str
    test_accuracy: float | None
    """The accuracy on the test set, R² or macro F1; None until the run has ended, or where fitness was
    measured on it."""
    seed: int
    weights_sha256: str = ""
    fitness_name: str = "accuracy"
    """What was maximised."""
    test: Tested | None = None
    """How it answered the test set, class by class; None where `test_accuracy` is."""
    temperature: float | None = None
    """What logits are divided by before they become probabilities; fitted on the validation set."""
    bits: int = DEEP
    """How many bits a pixel of picture files with more than 8 bits has; the highest 8 are read."""
    columns: tuple[str, ...] = ()
    """The names of a table's columns, in the order of the inputs."""
    label_kind: LabelKind = "text"
    """What the labels of the data were before they became names of classes."""
    task: TaskKind = "classes"
    """What it predicts; where that is not a class, `classes` are the names of the numbers or labels."""
    targets: Scaling | None = None
    """For regression: an output z means the number z · std + mean, each by itself."""
    table: Columns | None = None
    """How the columns of a table file become inputs."""
    regression: Regressed | None = None
    """How far off it was on the test set."""
    labels: LabelSets | None = None
    """How it did on the test set, label by label."""

    @property
    def is_reward(self) -> bool:
        """Whether its figures are rewards in a task, not accuracies on a data set."""
        return self.fitness_on == TASK


@dataclass(frozen=True, eq=False)
class Champion:
    """A network by value with all that is needed to use it: its family, classes and scaling."""

    phenotype: Any
    family: Family[Any]
    scaling: Scaling
    facts: Facts

    @cached_property
    def outline(self) -> Outline:
        """Its structure, as people see it."""
        return self.family.outline(self.description)

    @cached_property
    def description(self) -> Any:
        """Its structure as plain JSON values."""
        return self.family.encode(self.phenotype)[0]

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the outputs."""
        return self.facts.classes

    def network(self) -> Any:
        """It as an `nn.Module`, or whatever its family builds."""
        return self.family.build(self.phenotype)

    def _repr_html_(self) -> str:
        facts, outline = self.facts, self.outline
        usual = USUAL[facts.task]
        tested = []
        if facts.test_accuracy is not None:
            tested.append((f"{measure_name(usual)} on the test set", figure(usual, facts.test_accuracy)))
        if facts.test is not None:
            low, high = facts.test.interval
            tested.append(("95 % interval", f"{figure(usual, low)} to {figure(usual, high)}"))
        rows = [
            ("champion", f"network {facts.network} of generation {facts.generation}"),
            (f"fitness on the {facts.fitness_on} set", f"{facts.fitness:.4f}"),
            *tested,
            ("parameters", f"{outline.parameters:,}"),
            ("multiplications for a sample", f"{outline.cost:,}"),
            ("input", " × ".join(map(str, outline.input_shape))),
            (words.OUTPUTS[facts.task], one_line(", ".join(self.classes), 300)),
        ]
        layers = [
            (number, part.text, " × ".join(map(str, part.output)), f"{part.parameters:,}")
            for number, part in enumerate(outline.parts, 1)
        ]
        return markup.table(rows) + markup.table(layers, ("layer", "what", "output", "parameters"))


def write(folder: Path, champion: Champion) -> None:
    """Write the champion's folder; each file in one step, the model, which stands alone, first."""
    atomic.replace_file(folder / _MODEL, model_file(champion))
    atomic.replace_file(folder / "genome.json", [genome_file(champion)])
    atomic.replace_text(folder / "card.md", card(champion))


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


def read(path: Path, own: registry.Parts | None = None) -> Champion:
    """The champion of a run, of its folder `champion` or of a model file; unsound is a `StorageError`.

    `own` are parts of a person's own: a family that is not ours is among them.
    """
    atomic.refuse_link(path)
    if (path / _MODEL).is_file():
        path = path / _MODEL
    elif path.is_dir():
        run, path = path, path / "champion" / _MODEL
        atomic.refuse_link(path.parent)
        if not path.exists() and (run / "config.toml").exists():
            raise StorageError(f"{run} has no champion yet: its first generation is not complete")
    where = str(path)
    data = atomic.read_file(path, limit=MAX_MODEL)
    arrays, metadata = tensors.parse(data, where, max_items=_MAX_ITEMS)
    if _METADATA not in metadata:
        raise StorageError(f"{where} is not a champion of EpiCortex: its header does not describe one")
    values = strict.unseal(strict.encoded(metadata[_METADATA]), f"the description in {where}")
    version = values.pop("format", None)
    values.pop("preprocessing", None)  # it follows from the rest, and is there for people
    strict.check_format(version, 1 if version == 1 else FORMAT, where)
    if version == 1:
        values = _from_format_1(values)
    family = _family(values.pop("family", None), where, own)
    phenotype = restored(family, values.pop("genome", None), arrays, where)
    try:
        scaling = Scaling.from_json(values.pop("scaling", None))
    except DataError as error:
        raise StorageError(f"{where}: {error}") from None
    try:
        facts = strict.build(Facts, values, where)
    except DataError as error:
        raise StorageError(f"{where}: {error}") from None
    champion = Champion(phenotype, family, scaling, facts)
    _check_facts(champion.facts, where)
    if len(champion.classes) != champion.outline.outputs:
        raise StorageError(f"{where}: {len(champion.classes)} names for {champion.outline.outputs} classes")
    if (reason := too_much(_sample_bytes(champion.outline))) is not None:
        raise StorageError(f"{where}: for a single sample {reason}")
    if champion.facts.weights_sha256 != _digest(arrays):
        raise StorageError(f"{where} is damaged: its weights do not match their checksum")
    return champion


def _check_facts(facts: Facts, where: str) -> None:
    """Refuse facts that are of the right types and make no sense."""
    tested = facts.test
    if tested is not None:
        lists = (tested.support, tested.right, tested.answered)
        sound = all(len(one) == len(facts.classes) and min(one, default=0) >= 0 for one in lists)
        if not sound or not tested.samples:
            raise StorageError(f"{where}: its test figures do not fit {len(facts.classes)} classes")
    if facts.temperature is not None and facts.temperature <= 0:
        raise StorageError(f"{where}: its temperature is {facts.temperature}; it must be above 0")
    _check_task(facts, where)
    if facts.label_kind != "text" and not all(_WHOLE.fullmatch(name) for name in facts.classes):
        raise StorageError(f"{where}: its classes are said to be whole numbers, and are not")
    if not 8 <= facts.bits <= DEEP:
        raise StorageError(f"{where}: {facts.bits} bits a pixel are not from 8 to {DEEP}")


def _check_task(facts: Facts, where: str) -> None:
    """Refuse figures, targets and tables that do not fit what is predicted."""
    count, found, sets = len(facts.classes), facts.regression, facts.labels
    sound = (facts.task == "regression") == (facts.targets is not None)
    if facts.targets is not None:
        sound = sound and len(facts.targets.mean) == count
    if found is not None:
        lists = (found.errors, found.roots, found.explained, found.baselines)
        sound = sound and facts.task == "regression" and all(len(one) == count for one in lists)
        sound = sound and len(found.error_intervals) == 2 * count and len(found.r2_interval) == 2
    if sets is not None:
        counts = (sets.support, sets.right, sets.answered)
        sound = sound and facts.task == "multilabel" and all(len(one) == count for one in counts)
        sound = sound and sets.samples > 0 and len(sets.f1_interval) == 2
    if facts.table is not None:
        sound = sound and (not facts.columns or facts.table.inputs == facts.columns)
    if not sound:
        raise StorageError(f"{where}: its figures do not fit its {count} outputs for {facts.task}")


def _from_format_1(values: dict[str, Any]) -> dict[str, Any]:
    """What a model of format 1 says, as format 2 says it: all of them are layered networks."""
    genome = values.get("genome")
    facts = {
        "input_shape": genome.get("input_shape") if isinstance(genome, dict) else None,
        "outputs": genome.get("classes") if isinstance(genome, dict) else None,
        **{name: values.pop(name, None) for name in ("conv_activation", "full_activation")},
    }
    return {**values, "family": {"name": "layered", **facts}}


def _family(value: Any, where: str, own: registry.Parts | None) -> Family[Any]:
    """The family that a file names; a file can only name one that is known."""
    if not isinstance(value, dict) or not isinstance(name := value.get("name"), str):
        raise StorageError(f"{where} does not say of which family its network is")
    try:
        kind = registry.find(registry.SHELVES["family"], name, (own or {}).get("family"))
        family: Family[Any] = kind.from_facts({key: item for key, item in value.items() if key != "name"})
    except (ConfigError, GenomeError) as error:
        raise StorageError(f"{where}: {error}") from None
    return family


def is_picture(shape: Sequence[int]) -> bool:
    """Whether samples of this shape can be read from picture files.

    >>> is_picture((3, 32, 32)), is_picture((4,))
    (True, False)
    """
    return len(shape) == 3 and shape[0] in (1, 3)


def preprocessing(champion: Champion) -> dict[str, Any]:
    """All that happens to a picture file before this champion gets its pixels, step by step."""
    channels, height, width = champion.outline.input_shape
    return pictures.preprocessing((channels, height, width), champion.scaling.divisor, champion.facts.bits)


def card(champion: Champion) -> str:
    """A page about the champion for people."""
    facts, outline = champion.facts, champion.outline
    rows = [
        f"| {number} | {part.text} | {' × '.join(map(str, part.output))} | {part.parameters:,} |"
        for number, part in enumerate(outline.parts, 1)
    ]
    tested = "".join(f"- {words.sentence(line)}\n" for line in words.details(facts))
    more = "".join(f"- {name[:1].upper()}{name[1:]}: {value}\n" for name, value in outline.facts.items())
    data = clean(facts.data).replace("`", "?")
    kind, load = words.KINDS[facts.task], 'load("model.safetensors")'
    outputs = words.OUTPUTS[facts.task].capitalize()
    if facts.is_reward:
        kind, outputs, load = "A network for", "Outputs", 'load_champion("model.safetensors").network()'
    return f"""# Champion of an EpiCortex run

{kind} `{data}`, evolved with seed {facts.seed}: network {facts.network} of generation \
{facts.generation}.

- Fitness: {words.headline(facts)}
{tested}- Parameters: {outline.parameters:,}
- Multiplications for a sample: {outline.cost:,}
- Input: {" × ".join(map(str, outline.input_shape))}; {_scaling(champion.scaling)}
{more}- {outputs}: {", ".join(map(markdown, facts.classes[:100]))}

| layer | what | output | parameters |
|---|---|---|---|
{chr(10).join(rows)}

```python
import epicortex

network = epicortex.{load}
```
"""


def _sample_bytes(outline: Outline) -> int:
    """About what a sample takes at the part where it takes most, in float32."""
    shapes = [outline.input_shape, *(part.output for part in outline.parts)]
    return 4 * max((math.prod(below) + math.prod(above) for below, above in pairwise(shapes)), default=0)


def _scaling(scaling: Scaling) -> str:
    if len(scaling.mean) > 8:
        return "scaled column by column"
    mean, std = (", ".join(f"{value:g}" for value in values) for values in (scaling.mean, scaling.std))
    return f"x becomes (x / {scaling.divisor:g} − {mean}) / {std}"


def _described(champion: Champion) -> tuple[dict[str, Any], Mapping[str, Array]]:
    genome, arrays = champion.family.encode(champion.phenotype)
    facts = strict.plain(champion.facts)
    shape = champion.outline.input_shape
    how = {"preprocessing": preprocessing(champion)} if is_picture(shape) else {}
    return {
        "format": FORMAT,
        "family": {"name": champion.family.name, **champion.family.facts()},
        "genome": genome,
        "scaling": champion.scaling.to_json(),
        **facts,
        **how,
        "weights_sha256": _digest(arrays),
    }, arrays


def _digest(arrays: Mapping[str, Array]) -> str:
    digest = hashlib.sha256()
    for piece in list(tensors.serialise(arrays, {}))[2:]:
        digest.update(piece)
    return digest.hexdigest()
