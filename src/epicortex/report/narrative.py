"""What happened in a run, in plain words: whole sentences, each from figures of the run's files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Final

from epicortex.champion.file import Champion
from epicortex.ecosystem.stopping import Progress, limit_reached
from epicortex.families.family import Outline, Shape
from epicortex.report.material import Material
from epicortex.report.summary import kernel_counts
from epicortex.text import count, duration, listed, one_line, plural, share, times

_LAST: Final = 10


def status(material: Material) -> str:
    """Whether the run is over, and why."""
    config, done = material.run.config, len(material.history)
    evolution = config.evolution
    match limit_reached(Progress.of_history(material.history, config, material.run.plan), evolution):
        case "target":
            return f"stopped at its target of {material.unit.text(evolution.target)}"
        case "generations" | "trainings":
            return "complete"
        case "plateau":
            return f"stopped after {plural(evolution.plateau or 0, 'generation')} without a better network"
        case "minutes":
            minutes = f"{evolution.minutes:g} minute{'' if evolution.minutes == 1 else 's'}"
            if material.run.plan is not None:
                return f"complete, in its {minutes}"
            return f"stopped after its {minutes}, {done} of {evolution.generations} generations"
        case None:
            return f"{done} of {evolution.generations} generations so far"


def paragraphs(material: Material) -> Iterator[str]:
    """What happened, a paragraph a thought."""
    champion = material.champion
    if champion is None or not material.history:
        yield "The first generation is not complete yet, so there is nothing to tell. Come back later."
        return
    yield _result(material, champion)
    yield _champion(material, champion)
    if not champion.facts.is_reward:
        yield _inheritance(material)
    yield _ecosystem(material)
    yield _effort(material)


def _result(material: Material, champion: Champion) -> str:
    facts, unit, history = champion.facts, material.unit, material.history
    first, last = history[0], history[-1]
    if facts.is_reward:
        return _reward(material, champion)
    text = (
        f"In {plural(len(history), 'generation')}, networks that {_doing(champion)} evolved, "
        f"{count(first.networks)} at first and "
        f"{count(last.networks)} at the end. The best of them, network {facts.network}, reached "
        f"{unit.text(facts.fitness)} on the {one_line(facts.fitness_on)} set in generation "
        f"{facts.generation}; the best of generation 1 had {unit.text(first.highest_fitness)}."
    )
    if facts.fitness_on == "test":
        return (
            f"{text} Networks were selected by the test set itself, as in the paper, so this figure flatters."
        )
    if material.test_accuracy is not None:
        unit, what = material.test_unit, "On the test set, which played no part in evolution,"
        tested = unit.text(material.test_accuracy)
        if facts.task == "classes":
            text += f" {what} it is right about {tested} of the samples."
        else:
            text += f" {what} its {unit.name} is {tested}."
    return text


def _doing(champion: Champion) -> str:
    """What the networks do."""
    facts = champion.facts
    data, number = one_line(facts.data), len(facts.classes)
    if facts.task == "regression":
        return f"predict {plural(number, 'number')} of {data}"
    if facts.task == "multilabel":
        return f"give {plural(number, 'label')} to {data}"
    return f"classify {data} into {plural(number, 'class', 'classes')}"


def _reward(material: Material, champion: Champion) -> str:
    facts, unit, history = champion.facts, material.unit, material.history
    text = (
        f"In {plural(len(history), 'generation')}, networks for the task {one_line(facts.data)} evolved, "
        f"{count(history[0].networks)} at first and {count(history[-1].networks)} at the end. The best of "
        f"them, network {facts.network}, had a reward of {unit.text(facts.fitness)} in generation "
        f"{facts.generation}; the best of generation 1 had {unit.text(history[0].highest_fitness)}."
    )
    if material.test_accuracy is not None:
        text += (
            f" In its test, which played no part in evolution, it had {unit.text(material.test_accuracy)}."
        )
    return text


def _champion(material: Material, champion: Champion) -> str:
    outline, lineage = champion.outline, material.lineage
    text = f"It has {plural(outline.parameters, 'parameter')} in {_layers(outline)}."
    shapes = kernel_counts(outline)
    if shapes:
        text += f" {_shapes(shapes)}"
    founders = sum(not one.parents for one in lineage)
    if len(lineage) == 1:
        return f"{text} It was there from the start."
    changes = sum(len(one.mutations) for one in lineage)
    return (
        f"{text} It descends from {plural(founders, 'founder')} through "
        f"{plural(len(lineage) - 1, 'ancestor')} and {plural(changes, 'mutation')}."
    )


def _shapes(shapes: Counter[Shape]) -> str:
    """The kernels of a network in words.

    >>> _shapes(Counter({(3, 3): 2, (1, 5): 1})), _shapes(Counter({(3, 5): 1, (1, 1): 1}))
    ('Of its 3 kernels, most are 3×3 (2) and 1×5 (1).', 'Its 2 kernels have 2 shapes, from 1×1 to 3×5.')
    """
    total = plural(shapes.total(), "kernel")
    if len(shapes) == 1:
        return f"Its {total} {'is' if shapes.total() == 1 else 'are'} of {times(next(iter(shapes)))}."
    common = shapes.most_common(3)
    if common[0][1] == 1:
        small, *_, large = sorted(shapes, key=lambda shape: (math.prod(shape), shape))
        return f"Its {total} have {len(shapes)} shapes, from {times(small)} to {times(large)}."
    return f"Of its {total}, most are {listed(f'{times(shape)} ({number})' for shape, number in common)}."


def _layers(outline: Outline) -> str:
    *hidden, last = [part.title for part in outline.parts]
    if not hidden:
        return f"its {last} alone"
    return listed([*(plural(number, title) for title, number in Counter(hidden).items()), f"the {last}"])


def _inheritance(material: Material) -> str:
    """The paper's key figure: what the newborn can do before any training."""
    unit = material.unit
    last = [
        (line.offspring_fitness, line.average_fitness)
        for line in material.history[-_LAST:]
        if line.offspring_fitness is not None and line.average_fitness is not None
    ]
    if not last:
        return "No offspring was born that could be scored" + (
            " before its training." if unit.trained else "."
        )
    newborn, everyone = (sum(column) / len(last) for column in zip(*last, strict=True))
    points = " points" if unit.percent else ""
    difference = unit.change(abs(everyone - newborn)).lstrip("+")
    where = "below" if newborn < everyone else "above"
    if not unit.trained:
        return (
            f"Offspring of the last {plural(len(last), 'generation')} with births scored "
            f"{unit.text(newborn)} on average, {difference} {where} the mean of all networks: most mutations "
            "harm, and the few that help are selected."
        )
    return (
        "Offspring inherit what their parents have learnt: before any training of their own, those of the "
        f"last {plural(len(last), 'generation')} with births scored {unit.text(newborn)} on average, "
        f"{difference}{points} {where} the mean of all trained networks."
    )


def _ecosystem(material: Material) -> str:
    history, summary = material.history, material.summary
    total = {
        key: sum(getattr(line, key) for line in history)
        for key in ("species_founded", "species_extinct", "offspring", "culled", "mutations")
    }
    refused = sum(line.mutations_refused for line in history)
    text = f"{plural(total['offspring'], 'network')} were born and {count(total['culled'])} culled. "
    if summary.species:
        text += (
            f"There were {plural(history[0].species, 'species', 'species')} at first and "
            f"{count(history[-1].species)} at the end; {count(total['species_founded'])} were founded on "
            f"the way, {count(total['species_extinct'])} died out. "
        )
    text += f"{plural(total['mutations'], 'mutation')} were applied"
    if refused:
        text += f" and {count(refused)} refused, as they would have broken a limit"
    kernels = sum(row.outcomes["applied"] for (kind, _), row in summary.attempts.items() if kind == "kernel")
    applied = sum(row.outcomes["applied"] for row in summary.attempts.values())
    return f"{text}; {share(kernels, applied)} of them resized a kernel." if kernels else f"{text}."


def _effort(material: Material) -> str:
    history, failures = material.history, material.summary.failures.total()
    training = sum(line.train_seconds for line in history)
    part = share(training, material.seconds)
    text = f"It took {duration(material.seconds)}, {part} of it for {material.unit.effort}. "
    if not failures:
        return f"{text}No network failed."
    return f"{text}{plural(failures, material.unit.work)} failed, which cost the network and not the run."
