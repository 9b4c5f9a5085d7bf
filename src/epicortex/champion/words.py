"""The figures of a champion in words, each under its name: for the command line, the card and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from epicortex.text import clean, markdown, percent, plain

if TYPE_CHECKING:
    from epicortex.champion.file import Facts
    from epicortex.evaluation.figures import Tested

_FEW: Final = 5
ADVICE: Final = "--training.class-weights balanced or --training.fitness balanced_accuracy may help"
"""What to try where small classes are not recognised."""


def named(fitness: str) -> str:
    """What a fitness is called.

    >>> named("balanced_accuracy")
    'balanced accuracy'
    """
    return clean(fitness).replace("_", " ")


def headline(facts: Facts) -> str:
    """The champion's figures in one line: what was maximised, and the same on the test set."""
    if facts.is_reward:
        more = "" if facts.test_accuracy is None else f", {plain(facts.test_accuracy)} in its test"
        return f"reward {plain(facts.fitness)}{more}"
    name = named(facts.fitness_name)
    text = f"{name} {percent(facts.fitness)} on the {clean(facts.fitness_on)} set"
    if facts.fitness_name == "accuracy":
        tested = facts.test_accuracy
    else:
        tested = facts.test.fitness if facts.test else None
    if tested is not None:
        return f"{text}, {percent(tested)} on the test set"
    if facts.test_accuracy is not None:
        return f"{text}; accuracy {percent(facts.test_accuracy)} on the test set"
    return text


def details(facts: Facts) -> list[str]:
    """What else the test set says: the interval, the baseline, the classes that are seldom recognised."""
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
    return text if len(shown) == len(known) else f"{text}; the other {len(known) - len(shown)} more"


def warnings(test: Tested, classes: Sequence[str]) -> list[str]:
    """What a person has to know before trusting these figures."""
    lines = []
    common = clean(classes[test.majority])
    if test.accuracy <= test.baseline:
        lines.append(f"this is no better than always answering {common}")
    elif not test.beats_baseline:
        lines.append(f"{test.samples:,} samples are too few to tell this from always answering {common}")
    missed = [clean(classes[place]) for place, value in enumerate(test.recall()) if value == 0]
    if missed:
        more = f" and {len(missed) - _FEW} more" if len(missed) > _FEW else ""
        lines.append(f"never recognised: {', '.join(missed[:_FEW])}{more}; {ADVICE}")
    return lines
