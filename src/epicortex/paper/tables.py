"""The results as tables: ours beside the published ones, the controls, the claims, and every run.

The same tables go into `table.md`, `table.csv` and the HTML page.
"""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from epicortex.config import Config
from epicortex.config import resolving as presets
from epicortex.config.fields import value_of
from epicortex.pages.commands import options
from epicortex.pages.tables import Table
from epicortex.pages.units import Unit
from epicortex.paper.claims import Claim
from epicortex.paper.controls import CONTROLS
from epicortex.paper.execution import between_experiments, portable
from epicortex.paper.plan import Experiment
from epicortex.paper.published import (
    GENERATIONS,
    INITIAL_NETWORKS,
    MAX_NETWORKS,
    MEASURES,
    Measure,
    Published,
    published,
)
from epicortex.paper.results import BegunRun, Figures, Results, values
from epicortex.paper.statistics import (
    Difference,
    Summary,
    cannot_tell,
    cannot_tell_together,
    difference,
    holm,
    least_p,
    summary,
)
from epicortex.text import NOTHING, count, duration, plural, points, share, span

#: What stands in a column with the heading fitness.
SHORT: Final[dict[Measure, str]] = {
    "highest_fitness": "highest",
    "average_fitness": "average",
    "offspring_fitness": "offspring before BP",
}
SIZES: Final = {
    "evolution.generations": GENERATIONS,
    "evolution.initial_networks": INITIAL_NETWORKS,
    "evolution.max_networks": MAX_NETWORKS,
}
#: What a row's own options say.
_OWN: Final = {"--evolution.seed", "--evolution.speciation"}
_COMPARED: Final[tuple[Measure, ...]] = ("highest_fitness", "average_fitness")
_ACCURACY: Final = Unit.of("accuracy")
_CSV: Final = (
    *("data", "speciation", "control", "measure", "runs", "best", "mean", "deviation"),
    *("published_best", "published_mean", "published_deviation", "band", "trainings", "command"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One measure of one experiment: ours, and what was published."""

    experiment: Experiment
    measure: Measure
    ours: Summary | None
    paper: Published | None
    band: str
    """Where our mean lies: within, below or above the published band; empty where that cannot be said."""


def rows(results: Results) -> list[Row]:
    """Every measure of every experiment, the controls' too."""
    return [_row(results, experiment, measure) for experiment in results.experiments for measure in MEASURES]


def is_paper_size(config: Config) -> bool:
    """Whether the figures can be set beside the published ones: as many networks and generations."""
    return all(value_of(config, name) == size for name, size in SIZES.items())


def is_paper_measure(config: Config) -> bool:
    """Whether fitness is what it is in the paper: the accuracy on the test set."""
    return (config.training.fitness, config.training.fitness_on) == ("accuracy", "test")


def other_settings(config: Config) -> list[str]:
    """The settings, sizes apart, in which the runs are not those of the preset `paper`."""
    return [name for name in between_experiments(config, presets.resolve("paper")) if name not in SIZES]


def size_words(config: Config) -> str:
    """How large the runs are.

    >>> size_words(Config())
    '64 → 111 networks, 100 generations'
    """
    own = config.evolution
    return f"{own.initial_networks} → {own.max_networks} networks, {plural(own.generations, 'generation')}"


def beside(results: Results) -> Table:
    """The paper's table, ours beside it."""
    cells = [
        (
            row.experiment.title,
            SHORT[row.measure],
            count(row.ours.count if row.ours else 0),
            *_ours(row.ours),
            *_paper(row.paper),
            row.band or NOTHING,
        )
        for row in rows(results)
        if row.experiment.control is None
    ]
    head = ("experiment", "fitness", "runs", "best", "mean ± dev.", "paper: best", "mean ± dev.", "band")
    return Table(
        "Our runs beside the paper's 10, in percent, after the last generation; the band is the paper's mean "
        "± 2 of its deviations",
        head,
        cells,
        frozenset({0, 1, 7}),
    )


def controls(results: Results) -> list[Table]:
    """What controls came to at the same cost, and how evolution differs from them: a table an experiment."""
    return [table for one in results.experiments if (table := _against_controls(results, one))]


def control_cautions(results: Results) -> list[str]:
    """What the comparisons with controls cannot show, each said once."""
    found: dict[str | None, None] = {}
    for experiment in results.experiments:
        sizes = [(len(plain), len(control)) for _, _, plain, control in _pairs(results, experiment)]
        found |= dict.fromkeys(cannot_tell(n, m) for n, m in sizes)
        if telling := [least_p(n, m) for n, m in sizes if cannot_tell(n, m) is None]:
            found[cannot_tell_together(len(sizes), min(telling))] = None
    return [sentence for sentence in found if sentence]


def _against_controls(results: Results, experiment: Experiment) -> Table | None:
    cells = [
        (title, measure, found)
        for title, measure, plain, control in _pairs(results, experiment)
        if (found := difference(plain, control))
    ]
    if not cells:
        return None
    adjusted = holm([found.p for _, _, found in cells])
    head = ("evolution against", "fitness", "runs", "evolution", "control", "difference", "95 % interval")
    return Table(
        f"{experiment.title}: evolution against its controls, at equal cost, in percent and points",
        (*head, "A", "p", "p (Holm)"),
        [
            (title, measure, *_compared(found), f"{p:.2g}")
            for (title, measure, found), p in zip(cells, adjusted, strict=True)
        ],
        frozenset({0, 1}),
    )


def _pairs(results: Results, experiment: Experiment) -> Iterator[tuple[str, str, list[float], list[float]]]:
    """An experiment and each of its controls: which, the measure, and the figures that both have."""
    for one in (one for one in results.experiments if one.control and one.original == experiment):
        for title, seen in _readings(str(one.control), results.of(one)):
            for measure in _COMPARED:
                plain, control = values(results.of(experiment), measure), values(seen, measure)
                if plain and control:
                    yield title, SHORT[measure], plain, control


def costs(results: Results) -> Table:
    """What each experiment cost."""
    cells = [
        (
            experiment.title,
            count(len(runs)),
            span(count, [run.trainings for run in runs]),
            span(duration, [run.seconds for run in runs]),
            span(count, [run.champion_parameters for run in runs]),
        )
        for experiment in results.experiments
        if (runs := results.of(experiment))
    ]
    head = ("experiment", "runs", "trainings of a network", "time of a run", "champion's parameters")
    return Table("What the runs cost, and how large their champions are", head, cells)


def curves(runs: Sequence[Figures]) -> Table:
    """Behind the curves: the mean over the runs of each generation."""
    longest = max(len(run.history) for run in runs)
    cells = []
    for place in range(longest):
        lines = [run.history[place] for run in runs if place < len(run.history)]
        tried = sum(line.mutations_tried for line in lines)
        refused = sum(line.mutations_refused for line in lines)
        fitness = (_ACCURACY.text(_mean(getattr(line, name) for line in lines)) for name in MEASURES)
        parameters = _mean(line.mean_parameters for line in lines)
        cells.append((place + 1, *fitness, count(parameters), share(refused, tried)))
    head = ("generation", "highest", "average", "offspring", "parameters", "refused mutations")
    return Table(f"Means over {plural(len(runs), 'run')}", head, cells)


def every_run(runs: Iterable[BegunRun]) -> Table:
    """Every run that was begun."""
    cells = [
        (
            str(one.run.folder),
            count(one.done),
            *_final(one.figures),
            one.why_not or ("counts, as kept" if one.kept else "counts") + _arithmetic(one),
        )
        for one in runs
    ]
    head = ("run", "generations", "highest", "average", "offspring", "trainings", "time", "how it stands")
    return Table("Every run that was begun, and what it came to, in percent", head, cells, frozenset({7}))


def _arithmetic(one: BegunRun) -> str:
    return "" if one.backend in ("auto", "native") else f", trained with {one.backend}"


def claims(found: Sequence[Claim]) -> Table:
    """The claims with their verdicts."""
    cells = [(str(place), claim.title, claim.summary) for place, claim in enumerate(found, 1)]
    return Table(
        "The claims of the paper's discussion", ("claim", "what", "verdict"), cells, frozenset({1, 2})
    )


def cases(claim: Claim) -> Table:
    """The figures behind a verdict."""
    words = {True: "agrees", False: "does not agree", None: NOTHING}
    cells = [
        (
            case.name,
            words[case.agrees],
            case.figures,
            *([] if claim.untested else [NOTHING if case.adjusted is None else f"{case.adjusted:.2g}"]),
        )
        for case in claim.cases
    ]
    head = ("case", "it", "figures", *([] if claim.untested else ["p (Holm, all claims)"]))
    return Table(claim.measured, head, cells, frozenset({1, 2}))


def repeating(results: Results, experiment: Experiment) -> str:
    """The command that gives a row of the table again: all its runs, and for a control their originals.

    Where a seed in between does not count it gives more runs than the row has, which is said behind it.
    """
    seeds = [one.run.seed for one in results.runs if one.run.experiment == experiment and one.counts]
    words = [
        "epicortex",
        "reproduce",
        experiment.data,
        "--speciation",
        "on" if experiment.speciation else "off",
    ]
    words += ["--runs", str(max(seeds, default=results.plan.runs))]
    if experiment.control:
        words += ["--controls", experiment.control]
    for option in options(portable(results.plan.config)):
        words += option if option[0] not in _OWN else []
    gaps = sorted({*range(1, max(seeds, default=1))} - {*seeds})
    note = f"  # the row is without {plural(len(gaps), 'seed')}: {', '.join(map(str, gaps))}" if gaps else ""
    return shlex.join(words) + note


def as_csv(results: Results) -> str:
    """All rows, for programs; fitness in percent, unrounded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_CSV)
    for row in rows(results):
        one, ours, paper = row.experiment, row.ours, row.paper
        runs = results.of(one)
        cells = [
            *(one.data, "on" if one.speciation else "off", one.control or "", row.measure),
            ours.count if ours else 0,
            *(_exact(value) for value in ((ours.best, ours.mean, ours.deviation) if ours else (None,) * 3)),
            *((paper.best, paper.mean, paper.deviation) if paper else ("",) * 3),
            row.band,
            sum(run.trainings for run in runs),
            repeating(results, one),
        ]
        writer.writerow(cells)
    return text.getvalue()


def _row(results: Results, experiment: Experiment, measure: Measure) -> Row:
    ours = summary(values(results.of(experiment), measure))
    paper = published(experiment.data, experiment.speciation, measure) if not experiment.control else None
    band = ""
    if ours and paper:
        config = results.plan.config
        if not is_paper_size(config):
            band = "other size"
        else:
            band = _band(100 * ours.mean, paper) if is_paper_measure(config) else "other fitness"
    return Row(experiment, measure, ours, paper, band)


def _band(mean: float, paper: Published) -> str:
    if mean < paper.low:
        return "below"
    return "above" if mean > paper.high else "within"


def _ours(ours: Summary | None) -> tuple[str, str]:
    if ours is None:
        return NOTHING, NOTHING
    return points(ours.best), f"{points(ours.mean)} ± {points(ours.deviation)}"


def _paper(paper: Published | None) -> tuple[str, str]:
    return (f"{paper.best:g}", f"{paper.mean:g} ± {paper.deviation:g}") if paper else (NOTHING, NOTHING)


def _compared(found: Difference) -> tuple[str, ...]:
    interval = NOTHING
    if found.low is not None and found.high is not None:
        interval = f"{_ACCURACY.change(found.low)} to {_ACCURACY.change(found.high)}"
    return (
        f"{found.first.count}, {found.second.count}",
        points(found.first.mean),
        points(found.second.mean),
        _ACCURACY.change(found.difference),
        interval,
        f"{found.a:.2f} ({found.effect})",
        f"{found.p:.2g}",
    )


def _readings(name: str, runs: Sequence[Figures]) -> Iterator[tuple[str, Sequence[Figures]]]:
    """When a control is looked at: at its end; that with the champion's structure also on the way there."""
    title = CONTROLS[name].title
    if any(run.lineage is not None for run in runs):
        yield f"{title}, with the lineage's samples", [run.until(run.lineage or 1) for run in runs]
        title = f"{title}, with the whole budget"
    yield title, runs


def _final(figures: Figures | None) -> tuple[str, ...]:
    if figures is None:
        return (NOTHING,) * 5
    cells = (figures.last(measure) for measure in MEASURES)
    fitness = map(points, cells)
    return (*fitness, count(figures.trainings), duration(figures.seconds))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _exact(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.10g}"
