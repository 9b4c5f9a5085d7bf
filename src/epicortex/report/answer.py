"""The first thing a reader wants to know: how good the model is, beside what no model at all would reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from epicortex.champion.file import Champion
from epicortex.champion.words import no_better
from epicortex.pages.units import Unit
from epicortex.report import amounts
from epicortex.report.amounts import Judged
from epicortex.report.material import Material
from epicortex.report.mistakes import Tested
from epicortex.text import count, duration, listed, one_line, plural

ACCURACY: Final = Unit.of("accuracy")
_FEW: Final = 3
_ADVICE: Final = (
    "The classes are uneven: --training.class-weights balanced, or --training.fitness balanced_accuracy, "
    "may help."
)
#: From how many times the samples of the smallest class on classes are called uneven.
_UNEVEN: Final = 2
#: From here on numbers are written in millions.
_MANY: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Fact:
    """One of the large figures on top."""

    name: str
    value: str
    detail: str


@dataclass(frozen=True, slots=True)
class Gauge:
    """The answer as a bar from 0 to 100 %, with its interval and the baseline."""

    value: float
    low: float
    high: float
    baseline: float
    words: str
    baseline_words: str = "always the most frequent class"


def answer(material: Material, champion: Champion) -> dict[str, Any]:
    """What the first section says."""
    tested, facts = material.tested, champion.facts
    if facts.is_reward:
        value, name = material.unit.text(facts.fitness), "reward in its task"
    elif material.test_accuracy is None or facts.fitness_on == "test":
        value, name = material.unit.text(facts.fitness), f"{material.unit.name} on the {facts.fitness_on} set"
    else:
        value, name = ACCURACY.text(material.test_accuracy), "accuracy on the test set"
    if isinstance(tested, Judged):
        own = amounts.answer(tested)
        own["warnings"] = [*_selected(champion), *own["warnings"]]
        return {**own, "facts": _facts(material, champion, False)}
    if facts.task != "classes" and material.test_accuracy is not None and facts.fitness_on != "test":
        unit = material.test_unit
        value, name = unit.text(material.test_accuracy), f"{unit.name} on the test set"
    known = isinstance(tested, Tested)
    return {
        "answer": value,
        "answer_name": one_line(name),
        "gauge": _gauge(tested) if isinstance(tested, Tested) else None,
        "sentences": list(_sentences(tested)) if isinstance(tested, Tested) else [],
        "warnings": [*_selected(champion), *(_warnings(tested) if isinstance(tested, Tested) else ())],
        "facts": _facts(material, champion, known),
    }


def _gauge(tested: Tested) -> Gauge:
    low, high = tested.figures.interval
    words = (
        f"{ACCURACY.text(tested.accuracy)}, 95 % interval from {ACCURACY.text(low)} to "
        f"{ACCURACY.text(high)}; baseline {ACCURACY.text(tested.figures.baseline)}"
    )
    value, baseline = round(100 * tested.accuracy, 2), round(100 * tested.figures.baseline, 2)
    return Gauge(value, round(100 * low, 2), round(100 * high, 2), baseline, words)


def _sentences(tested: Tested) -> Iterator[str]:
    figures = tested.figures
    low, high = figures.interval
    common = tested.classes[figures.majority]
    yield (
        f"Of {plural(tested.samples, 'test sample')} that played no part in training it gets "
        f"{count(sum(figures.right))} right. On more data of this kind, expect from {ACCURACY.text(low)} to "
        f"{ACCURACY.text(high)} (95 % interval). Always answering {common}, the most frequent class, would "
        f"give {ACCURACY.text(figures.baseline)}."
    )
    pairs = tested.pairs[:_FEW]
    if pairs:
        yield (
            "It most often takes "
            + listed(f"{is_} for {for_} ({plural(number, 'time')})" for is_, for_, number, _ in pairs)
            + f".{_least(tested)}"
        )
    else:
        yield "It makes no mistake on the test set."


def _least(tested: Tested) -> str:
    """The classes that are recognised least, where not all are recognised alike."""
    known = sorted((row.recall, row.name) for row in tested.rows if row.recall is not None)
    if len(known) <= 2 or known[0][0] == known[-1][0]:
        return ""
    few = listed(f"{name} ({ACCURACY.text(recall)})" for recall, name in known[:_FEW] if recall < 1)
    return f" The classes that it recognises least: {few}."


def _warnings(tested: Tested) -> Iterator[str]:
    figures = tested.figures
    common = tested.classes[figures.majority]
    if figures.accuracy <= figures.baseline:
        text = no_better(figures, common)
        yield f"{text[:1].upper()}{text[1:]}."
    elif not figures.beats_baseline:
        yield f"{plural(tested.samples, 'sample')} are too few to tell this from always answering {common}."
    never = [row.name for row in tested.rows if row.recall == 0]
    if never:
        more = f" and {len(never) - _FEW} more" if len(never) > _FEW else ""
        yield f"Never recognised: {', '.join(never[:_FEW])}{more}."
    if (never or not figures.beats_baseline) and max(tested.taught) > _UNEVEN * min(tested.taught):
        yield _ADVICE


def _selected(champion: Champion) -> Iterator[str]:
    if champion.facts.fitness_on == "test":
        yield "Networks were selected by the test set itself, as in the paper, so this figure flatters."


def _facts(material: Material, champion: Champion, known: bool) -> list[Fact]:
    facts, history, summary = champion.facts, material.history, material.summary
    trained = count(summary.evaluated + summary.failures.total())
    large = [
        Fact("parameters", _short(champion.outline.parameters), "of the champion"),
        Fact("multiplications", _short(champion.outline.cost), "for one sample"),
        Fact("time", duration(material.seconds), f"{duration(material.seconds / len(history))} a generation"),
        Fact("generations", count(len(history)), f"champion of generation {facts.generation}"),
        Fact(f"{material.unit.work}s", trained, f"{plural(history[-1].networks, 'network')} at the end"),
    ]
    if facts.is_reward and facts.test_accuracy is not None:
        large.insert(0, Fact("test", material.unit.text(facts.test_accuracy), "not used in evolution"))
    elif facts.fitness_on != "test" and material.test_accuracy is not None:
        fit = Fact(material.unit.name, material.unit.text(facts.fitness), f"on the {facts.fitness_on} set")
        large.insert(0, fit)
    if known and isinstance(material.tested, Tested):
        figures = material.tested.figures
        common = material.tested.classes[figures.majority]
        baseline = Fact("baseline", ACCURACY.text(figures.baseline), f"always answering {common}")
        large.insert(0, baseline)
    return large


def _short(number: int) -> str:
    """A number that fits into a small box.

    >>> _short(6_247), _short(12_703_744)
    ('6,247', '12.7 M')
    """
    return f"{number / 1e6:,.1f} M" if number >= _MANY else count(number)
