"""Evolved kernels, analysed: which shapes are more common than drift alone would make them, and where.

Shapes are counted in the run folders of an experiment, in the last generation, layer by layer. A run weighs
as much as another, however many kernels it has, so that the runs are what is compared.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Final

from epicortex.errors import StorageError
from epicortex.families.family import Shape
from epicortex.families.layered.family import NAME
from epicortex.families.layered.genome import Genome
from epicortex.paper.plan import Experiment, PlannedRun, found
from epicortex.paper.statistics import Difference, difference, holm
from epicortex.run.record import RunRecord, read_run

#: The control that shows what chance makes of kernels.
NEUTRAL: Final = "drift"
#: Shapes that are rarer than this in both are not compared one by one.
RARE: Final = 0.01
#: How a shape may lie: the width is the last dimension.
ORIENTATIONS: Final = ("square", "wide", "tall")


@dataclass(frozen=True, slots=True)
class Kernels:
    """The kernels of one run: how many of each shape, by the place of their layer from the bottom, from 1."""

    run: PlannedRun
    layers: Mapping[int, Mapping[Shape, int]]

    @property
    def shapes(self) -> Counter[Shape]:
        """Those of all layers together."""
        total: Counter[Shape] = Counter()
        for counts in self.layers.values():
            total.update(counts)
        return total


@dataclass(frozen=True, slots=True)
class Compared:
    """One quantity in evolution and under drift."""

    name: str
    found: Difference
    adjusted: float
    """Its p after Holm's correction for all quantities of the table."""

    @property
    def ratio(self) -> float | None:
        """How many times as common it is as under drift."""
        return self.found.first.mean / self.found.second.mean if self.found.second.mean else None


def counted(out: Path) -> list[Kernels]:
    """The kernels of every run below an output folder; those that cannot be read are left out."""
    counts = []
    for run in found(out):
        try:
            record = read_run(out / run.folder)
            if record.config.family != NAME:
                continue
            kernels = of_run(record, run)
        except StorageError:
            continue
        if kernels.layers:
            counts.append(kernels)
    return counts


def of_run(record: RunRecord, run: PlannedRun) -> Kernels:
    """The kernels of all networks in a run's last generation."""
    last = len(record.history)
    known: dict[int, Genome] = {}
    layers: dict[int, Counter[Shape]] = {}
    for line in record.networks():
        if not isinstance(line.genome, str):
            known[line.id] = Genome.from_dict(line.genome)
        if line.generation == last:
            for place, layer in enumerate(known[line.id].hidden, 1):
                if layer.kernels:
                    layers.setdefault(place, Counter()).update(layer.kernels)
    return Kernels(run, layers)


def of(kernels: Iterable[Kernels], experiment: Experiment) -> list[Kernels]:
    """Those of one experiment."""
    return [one for one in kernels if one.run.experiment == experiment]


def shares(counts: Mapping[Shape, int]) -> dict[Shape, float]:
    """The share that each shape has.

    >>> shares({(1, 1): 3, (1, 3): 1})
    {(1, 1): 0.75, (1, 3): 0.25}
    """
    total = sum(counts.values())
    return {shape: number / total for shape, number in counts.items()}


def orientation(shape: Shape) -> str:
    """Whether a kernel is as wide as it is tall.

    >>> orientation((1, 3)), orientation((5, 3)), orientation((3, 3)), orientation((7,))
    ('wide', 'tall', 'square', 'square')
    """
    if len(shape) < 2 or shape[-1] == shape[-2]:
        return "square"
    return "wide" if shape[-1] > shape[-2] else "tall"


def oriented(counts: Mapping[Shape, int]) -> dict[str, float]:
    """The share of each orientation."""
    own: Counter[str] = Counter()
    for shape, number in counts.items():
        own[orientation(shape)] += number
    return {name: own[name] / own.total() for name in ORIENTATIONS}


def area(counts: Mapping[Shape, int]) -> float:
    """The mean area of a kernel.

    >>> area({(1, 1): 3, (3, 3): 1})
    3.0
    """
    return sum(math.prod(shape) * number for shape, number in counts.items()) / sum(counts.values())


def against_drift(evolved: Sequence[Kernels], neutral: Sequence[Kernels]) -> list[Compared]:
    """Every common shape, orientation and the mean area, against drift; the surest differences first."""
    if not evolved or not neutral:
        return []
    tests = [
        (name, own)
        for name, one, other in _quantities(evolved, neutral)
        if (own := difference(one, other)) is not None
    ]
    adjusted = holm([own.p for _, own in tests])
    compared = [Compared(name, own, p) for (name, own), p in zip(tests, adjusted, strict=True)]
    return sorted(compared, key=lambda one: (one.adjusted, one.found.p, one.name))


def _quantities(
    evolved: Sequence[Kernels], neutral: Sequence[Kernels]
) -> Iterator[tuple[str, list[float], list[float]]]:
    """What is compared: its name, and its value in each run of both."""
    groups = [[one.shapes for one in runs] for runs in (evolved, neutral)]
    own, other = ([shares(counts) for counts in group] for group in groups)
    means = mean_shares(evolved), mean_shares(neutral)
    for shape in sorted({*means[0], *means[1]}):
        if max(mean.get(shape, 0.0) for mean in means) >= RARE:
            name = "×".join(map(str, shape))
            yield name, [one.get(shape, 0.0) for one in own], [one.get(shape, 0.0) for one in other]
    first, second = groups
    for name in ORIENTATIONS:
        yield name, [oriented(one)[name] for one in first], [oriented(one)[name] for one in second]
    yield "mean area", [area(one) for one in first], [area(one) for one in second]


def mean_shares(kernels: Sequence[Kernels]) -> dict[Shape, float]:
    """The share of each shape, as a mean over the runs."""
    every = [shares(one.shapes) for one in kernels]
    shapes = {shape for one in every for shape in one}
    return {shape: fmean(one.get(shape, 0.0) for one in every) for shape in sorted(shapes)}


def by_layer(kernels: Sequence[Kernels]) -> dict[int, tuple[float, dict[str, float], int]]:
    """For each place of a layer: the mean area, the orientations, and the runs that have such a layer."""
    places = sorted({place for one in kernels for place in one.layers})
    found_here = {}
    for place in places:
        counts = [one.layers[place] for one in kernels if place in one.layers]
        lying = [oriented(own) for own in counts]
        found_here[place] = (
            fmean(map(area, counts)),
            {name: fmean(own[name] for own in lying) for name in ORIENTATIONS},
            len(counts),
        )
    return found_here
