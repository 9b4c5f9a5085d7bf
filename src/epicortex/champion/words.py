"""The figures of a champion in words, each under its name: for the command line, the card and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from epicortex.measures import USUAL, TaskKind, figure, named
from epicortex.text import clean, markdown, percent, plain, plural

if TYPE_CHECKING:
    from epicortex.champion.file import Facts
    from epicortex.evaluation.figures import Tested
    from epicortex.evaluation.tallies import LabelSets, Regressed
    from epicortex.families.family import Outline

_FEW: Final = 5
#: How far above that of one answer alone a mean recall is worth telling.
_WORTH: Final = 0.1
ADVICE: Final = "--training.class-weights balanced or --training.fitness balanced_accuracy may help"
"""What to try where small classes are not recognised."""


KINDS: Final[Mapping[TaskKind, str]] = {
    "classes": "A classifier of",
    "regression": "A regressor for",
    "multilabel": "A labeller of",
}
"""What a champion is called."""
OUTPUTS: Final[Mapping[TaskKind, str]] = {
    "classes": "classes",
    "regression": "targets",
    "multilabel": "labels",
}
"""What its outputs are."""


def headline(facts: Facts) -> str:
    """The champion's figures in one line: what was maximised, and the same on the test set."""
    if facts.is_reward:
        more = "" if facts.test_accuracy is None else f", {plain(facts.test_accuracy)} in its test"
        return f"reward {plain(facts.fitness)}{more}"
    name, own, usual = named(facts.fitness_name), facts.fitness_name, USUAL[facts.task]
    text = f"{name} {figure(own, facts.fitness)} on the {clean(facts.fitness_on)} set"
    test = facts.test or facts.regression or facts.labels
    tested = facts.test_accuracy if own == usual else test.fitness if test else None
    if tested is not None:
        return f"{text}, {figure(own, tested)} on the test set"
    if facts.test_accuracy is not None:
        return f"{text}; {named(usual)} {figure(usual, facts.test_accuracy)} on the test set"
    return text


def size(outline: Outline) -> str:
    """How large a network is, and of which species."""
    work = plural(outline.cost, "multiplication")
    return f"{plural(outline.parameters, 'parameter')}, {work} for a sample; species {outline.key}"


def details(facts: Facts) -> list[str]:
    """What else the test set says: the interval, the baseline, the classes that are seldom recognised."""
    if facts.regression is not None:
        return [*regression(facts.regression, facts.classes), *doubts(facts.regression)]
    if facts.labels is not None:
        return [*label_sets(facts.labels, facts.classes), *doubts(facts.labels)]
    test = facts.test
    if test is None or not test.samples:
        return []
    low, high = test.interval
    common = clean(facts.classes[test.majority])
    lines = [
        f"accuracy {percent(test.accuracy)} (95 % interval {percent(low)} to {percent(high)}), "
        f"{test.samples:,} samples",
        f"always answering {common}: {percent(test.baseline)}",
        f"recall: {recalls(test, facts.classes)}",
    ]
    return [*lines, *warnings(test, facts.classes)]


def regression(found: Regressed, targets: Sequence[str], most: int = _FEW) -> list[str]:
    """Errors in the unit of each target, with their intervals and the baseline."""
    low, high = found.r2_interval
    lines = [f"R² {plain(found.r2)} (95 % interval {plain(low)} to {plain(high)}), {found.samples:,} samples"]
    for place, name in enumerate(targets[:most]):
        start, end = found.interval(place)
        lines.append(
            f"{clean(name)}: mean absolute error {plain(found.errors[place])} "
            f"({plain(start)} to {plain(end)}); always answering the mean: {plain(found.baselines[place])}"
        )
    return lines + ([f"and {len(targets) - most} more targets"] if len(targets) > most else [])


def label_sets(found: LabelSets, labels: Sequence[str], most: int = _FEW) -> list[str]:
    """F1 with its interval and the baseline, and the labels that are found least."""
    low, high = found.f1_interval
    known = [(value, place) for place, value in enumerate(found.f1s()) if value is not None]
    shown = known if len(known) <= 2 * most else sorted(known)[:most]
    each = ", ".join(f"{clean(labels[place])} {plain(value)}" for value, place in shown)
    rest = f"; the other {len(known) - len(shown)} more" if len(shown) < len(known) else ""
    return [
        f"macro F1 {plain(found.f1)} (95 % interval {plain(low)} to {plain(high)}), micro F1 "
        f"{plain(found.f1_micro)}, {found.samples:,} samples",
        f"all labels right: {percent(found.exact / found.samples)} of the samples; always the most frequent "
        f"set: {percent(found.common / found.samples)}",
        f"giving every label to every sample: macro F1 {plain(found.baseline)}",
        f"F1: {each}{rest}",
    ]


def doubts(found: Regressed | LabelSets) -> list[str]:
    """What a person has to know before trusting these figures."""
    if found.beats_baseline:
        return []
    if hasattr(found, "r2"):
        return [f"{found.samples:,} samples do not show that this is better than always answering the mean"]
    return [
        f"{found.samples:,} samples do not show that this is better than giving every label to every sample"
    ]


def sentence(line: str) -> str:
    """A line as Markdown, with a capital letter.

    >>> sentence("recall: cats 100 %")
    'Recall: cats 100 %'
    """
    return f"{line[:1].upper()}{markdown(line[1:])}"


def recalls(test: Tested, classes: Sequence[str], most: int = _FEW) -> str:
    """How much of each class was recognised; of many classes, of those that are least."""
    known = [(value, place) for place, value in enumerate(test.recall()) if value is not None]
    shown = known if len(known) <= 2 * most else sorted(known)[:most]
    text = ", ".join(f"{clean(classes[place])} {percent(value)}" for value, place in shown)
    return (
        text
        if len(shown) == len(known)
        else f"{text}; of the other {len(known) - len(shown)} classes at least as much"
    )


def no_better(test: Tested, common: str) -> str:
    """What is said of an accuracy that one answer alone would reach; rare classes may still be recognised."""
    known = [value for value in test.recall() if value is not None]
    mean = sum(known) / len(known)
    if mean < 1 / len(known) + _WORTH:
        return f"this is no better than always answering {common}"
    return (
        f"always answering {common} would be right at least as often; but the mean recall of the classes, "
        f"the balanced accuracy, is {percent(mean)}, where one answer alone reaches {percent(1 / len(known))}"
    )


def warnings(test: Tested, classes: Sequence[str]) -> list[str]:
    """What a person has to know before trusting these figures."""
    lines = []
    common = clean(classes[test.majority])
    if test.accuracy <= test.baseline:
        lines.append(no_better(test, common))
    elif not test.beats_baseline:
        lines.append(f"{test.samples:,} samples are too few to tell this from always answering {common}")
    missed = [clean(classes[place]) for place, value in enumerate(test.recall()) if value == 0]
    if missed:
        more = f" and {len(missed) - _FEW} more" if len(missed) > _FEW else ""
        lines.append(f"never recognised: {', '.join(missed[:_FEW])}{more}; {ADVICE}")
    return lines
