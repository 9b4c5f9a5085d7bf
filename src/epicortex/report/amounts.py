"""The champion on a test set of numbers, or of sets of labels: figures, tables, the worst, and a plot.

What classes are taken for what is left to `mistakes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from epicortex.champion.judging import Labelling, Quantities, judged
from epicortex.evaluation.tallies import LabelSets, Regressed
from epicortex.pages.plots import Figure, axis, label
from epicortex.pages.tables import Table
from epicortex.pages.units import Unit
from epicortex.report import origins, pictures
from epicortex.report.origins import Origin
from epicortex.report.pictures import Picture
from epicortex.text import count, listed, one_line, plain, plural

if TYPE_CHECKING:
    from epicortex.champion.file import Champion
    from epicortex.data import DataOptions, DataSet

_MOST: Final = 24
_MOST_DOTS: Final = 3000
_MOST_PLOTS: Final = 4
_LONGEST: Final = 60
_PERCENT: Final = Unit.of("accuracy")
_FEW: Final = 3


@dataclass(frozen=True, slots=True)
class Off:
    """A test sample that the champion gets wrong, or far from right."""

    name: str
    is_: str
    taken_for: str
    picture: Picture | None


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """How the champion does on the test set."""

    found: Quantities | Labelling
    outputs: list[str]
    worst: list[Off]
    taught: int
    """How many training samples there are."""
    spans: list[tuple[float, float, float]]
    """Of numbers in the training part the least, mean and greatest; of labels the samples that have them."""
    notes: tuple[str, ...]

    @property
    def figures(self) -> Regressed | LabelSets:
        """What the answers amount to."""
        return self.found.figures

    @property
    def samples(self) -> int:
        """How many there are."""
        return self.found.figures.samples

    @property
    def accuracy(self) -> float:
        """The usual figure: R² or macro F1."""
        own = self.found.figures
        return own.r2 if isinstance(own, Regressed) else own.f1


def examine(
    champion: Champion, data: DataSet, source: str | None = None, options: DataOptions | None = None
) -> Judged:
    """The champion on the test part of a data set; `source` is where its files may be."""
    from epicortex.champion.module import Classifier

    classifier = Classifier(champion)
    names = [f"sample {place}" for place in range(len(data.y_test))]
    said = classifier.answer(data.x_test).astype(np.float64)
    found = judged(champion.facts, names, data.y_test, said)
    outputs = [one_line(name, _LONGEST) for name in champion.classes]
    worst = found.worst()[:_MOST]
    files = origins.found(classifier, data, worst, source, options)
    notes = tuple(one_line(note, 400) for note in data.notes)
    return Judged(
        found,
        outputs,
        [_off(found, data, place, outputs, files.get(place)) for place in worst],
        len(data.y_train),
        _spans(data),
        notes,
    )


def _off(
    found: Quantities | Labelling,
    data: DataSet,
    place: int,
    outputs: Sequence[str],
    file: Origin | None,
) -> Off:
    """A sample as people see it, under the name of its file where that is known."""
    name = found.names[place] if file is None else file.name
    seen = None if file is None else file.picture
    seen = seen or pictures.sample(data.x_test[place], data.scaling.divisor)
    return Off(name, *_said(found, place, outputs), seen)


def _spans(data: DataSet) -> list[tuple[float, float, float]]:
    train = np.asarray(data.y_train, np.float64)
    if data.task == "multilabel":
        return [(0.0, float(number), float(len(train))) for number in train.sum(0)]
    each = zip(train.min(0), train.mean(0), train.max(0), strict=True)
    return [(float(low), float(mean), float(high)) for low, mean, high in each]


def _said(found: Quantities | Labelling, place: int, outputs: Sequence[str]) -> tuple[str, str]:
    """What a sample is, and what the champion says."""
    if isinstance(found, Quantities):
        both = (found.right[place], found.found[place])
        right, answer = (", ".join(plain(float(value)) for value in row) for row in both)
        return right, answer
    sets = (found.right[place], found.found[place])
    is_, for_ = (listed([n for n, one in zip(outputs, row, strict=True) if one] or ["none"]) for row in sets)
    return is_, for_


def answer(tested: Judged) -> dict[str, Any]:
    """What the first section says."""
    own = tested.figures
    if isinstance(own, Regressed):
        value, name, interval, baseline = own.r2, "R² on the test set", own.r2_interval, 0.0
        words = "always the mean"
    else:
        value, name, interval, baseline = own.f1, "macro F1 on the test set", own.f1_interval, own.baseline
        words = "every label for every sample"
    low, high = interval
    return {
        "answer": plain(value),
        "answer_name": name,
        "gauge": {
            "value": _share(value),
            "low": _share(low),
            "high": _share(high),
            "baseline": _share(baseline),
            "baseline_words": words,
            "words": f"{plain(value)}, 95 % interval from {plain(low)} to {plain(high)}; "
            f"baseline {plain(baseline)}",
        },
        "sentences": list(_sentences(tested)),
        "warnings": list(_warnings(own)),
    }


def _share(value: float) -> float:
    return round(100 * min(1.0, max(0.0, value)), 2)


def _sentences(tested: Judged) -> Iterator[str]:
    own = tested.figures
    samples = f"{plural(tested.samples, 'test sample')} that played no part in training"
    low, high = map(plain, own.r2_interval if isinstance(own, Regressed) else own.f1_interval)
    if isinstance(own, Regressed):
        yield (
            f"On {samples} it explains {_share(own.r2):.0f} % of the variance (R² {plain(own.r2)}, 95 % "
            f"interval {low} to {high})."
        )
        for place, name in enumerate(tested.outputs[:_FEW]):
            start, end = map(plain, own.interval(place))
            yield (
                f"For {name} it is off by {plain(own.errors[place])} on average ({start} to {end}). Always "
                f"answering the mean of the training samples would be off by {plain(own.baselines[place])}."
            )
        return
    yield (
        f"On {samples} its macro F1 is {plain(own.f1)} (95 % interval {low} to {high}); giving every label "
        f"to every sample would have {plain(own.baseline)}. It gets all labels of "
        f"{_PERCENT.text(own.exact / own.samples)} of the samples right; always answering the most frequent "
        f"set of labels would do so for {_PERCENT.text(own.common / own.samples)}."
    )
    known = sorted(
        (one, name) for one, name in zip(own.f1s(), tested.outputs, strict=True) if one is not None
    )
    if len(known) > 2 and known[0][0] < 1:
        least = listed(f"{name} (F1 {plain(one)})" for one, name in known[:_FEW])
        yield f"The labels that it finds least: {least}."


def _warnings(own: Regressed | LabelSets) -> Iterator[str]:
    if not own.beats_baseline:
        what = (
            "always answering the mean"
            if isinstance(own, Regressed)
            else "giving every label to every sample"
        )
        yield f"{plural(own.samples, 'sample')} do not show that this is better than {what}."
    if isinstance(own, LabelSets) and own.samples < sum(1 for one in own.support if one == 0) * 10:
        yield "Many labels stand at no test sample."


def table(tested: Judged) -> Table:
    """Every target or label, with its figures."""
    own = tested.figures
    if isinstance(own, Regressed):
        rows: list[tuple[Any, ...]] = []
        for place, name in enumerate(tested.outputs):
            start, end = map(plain, own.interval(place))
            low, mean, high = map(plain, tested.spans[place])
            figures = map(plain, (own.explained[place], own.errors[place]))
            rest = map(plain, (own.roots[place], own.baselines[place]))
            rows.append((name, *figures, f"{start} to {end}", *rest, f"{low} to {high}", mean))
        head = ("target", "R²", "mean absolute error", "95 % interval", "root mean square", "always the mean")
        title = "Every target, in its unit"
        return Table(title, (*head, "in the training part", "its mean"), rows)
    columns = (own.support, own.f1s(), own.recall(), own.precision(), own.accuracies(), own.majorities())
    order = np.argsort([2.0 if one is None else one for one in own.f1s()], kind="stable")
    each = list(zip(tested.outputs, tested.spans, zip(*columns, strict=True), strict=True))
    rows = [
        (name, count(span[1]), count(support), plain(f1), *map(_PERCENT.text, rates))
        for name, span, (support, f1, *rates) in (each[place] for place in order)
    ]
    heads = ("label", "training samples", "test samples", "F1", "recall", "precision", "right")
    return Table("Every label, those that are found least first", (*heads, "always or never"), rows)


def about(tested: Judged) -> str:
    """One sentence on how far off the champion is."""
    own = tested.figures
    if isinstance(own, Regressed):
        errors = listed(
            f"{plain(error)} ({name})" for error, name in zip(own.errors, tested.outputs, strict=True)
        )
        return f"On {plural(tested.samples, 'test sample')} the champion is off by {errors} on average."
    wrong = own.samples - own.exact
    return f"Of {plural(tested.samples, 'test sample')} the champion gets {count(wrong)} not entirely right."


def data_about(tested: Judged) -> str:
    """What there is to learn from."""
    what = "target" if isinstance(tested.figures, Regressed) else "label"
    return (
        f"{plural(tested.taught, 'sample')} to learn from and {count(tested.samples)} to test with; "
        f"{plural(len(tested.outputs), what)}."
    )


def plots(tested: Judged) -> dict[str, Figure]:
    """Predicted numbers against the right ones, for the first few targets."""
    found = tested.found
    if not isinstance(found, Quantities):
        return {}
    names = tested.outputs[:_MOST_PLOTS]
    return {f"against_{place}": _against(found, place, name) for place, name in enumerate(names)}


def _against(found: Quantities, place: int, name: str) -> Figure:
    step = -(-len(found.right) // _MOST_DOTS)
    right, said = found.right[::step, place], found.found[::step, place]
    ends = [float(min(right.min(), said.min())), float(max(right.max(), said.max()))]
    dots = {
        "x": [float(f"{value:.6g}") for value in right],
        "y": [float(f"{value:.6g}") for value in said],
        "mode": "markers",
        "name": "test samples",
        "showlegend": False,
        "marker": {"color": "var(--mean)", "size": 6, "opacity": 0.65},
        "customdata": list(range(0, len(found.right), step)),
        "hovertemplate": "sample %{customdata}<br>is %{x:.4g}, taken for %{y:.4g}<extra></extra>",
    }
    line = {
        "x": ends,
        "y": ends,
        "mode": "lines",
        "name": "exactly right",
        "line": {"color": "var(--best)", "width": 1.5, "dash": "dot"},
        "hoverinfo": "skip",
    }
    return {
        "data": [line, dots],
        "layout": {
            "hovermode": "closest",
            "xaxis": axis(f"{label(name)}: what it is"),
            "yaxis": axis("what the champion says"),
        },
    }
