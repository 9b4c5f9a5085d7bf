"""The claims of the paper's discussion, each checked against our runs: a verdict, and the figures behind it.

A claim is about several cases, such as the four data sets. Each case that has finished runs agrees or not; a
verdict is about those, and says how many there are of how many. What counts as little, stagnant or many is
stated here once, and with every claim.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from epicortex.pages.units import Unit
from epicortex.paper.plan import Experiment
from epicortex.paper.published import DATA
from epicortex.paper.results import Figures, Results, values
from epicortex.paper.statistics import SIGNIFICANT, Difference, cannot_tell, difference, holm, trend
from epicortex.text import count, plural, share, span

Verdict: TypeAlias = Literal["holds", "holds so far", "holds in part", "does not hold", "open"]

#: Points by which the highest fitness may differ at most, to differ little; the paper's differ by up to 1.1.
LITTLE: Final = 0.02
#: Parameters that become no more than so many times as many stagnate; beyond they rise.
STAGNANT: Final = 1.25
#: Sizes of about 10⁵ are within half a power of ten.
SIZE: Final = 1e5
HALF_A_POWER: Final = math.sqrt(10)
#: From this share on, many mutations are refused.
MANY: Final = 0.5
#: Why nothing can be said about a case.
NOT_RUN: Final = "not run"
NO_FIGURE: Final = "without a figure"
_ACCURACY: Final = Unit.of("accuracy")
_MODES: Final = (True, False)


@dataclass(frozen=True, slots=True)
class Case:
    """One of the cases that a claim is about."""

    name: str
    agrees: bool | None
    """None where there are no finished runs to tell by."""
    figures: str
    runs: int = 0
    """How many runs it rests on; of two sets, those of the smaller."""
    p: float | None = None
    """Of a difference between two sets: how likely chance alone gives as much."""
    adjusted: float | None = None
    """The same, after Holm's correction for all tests of all claims."""
    found: Difference | None = None
    """The difference itself."""
    caution: str = ""
    """What these runs cannot show."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim and what our runs say to it."""

    title: str
    measured: str
    """How it is checked."""
    cases: tuple[Case, ...]

    @property
    def verdict(self) -> Verdict:
        """What the cases come to."""
        known = [case.agrees for case in self.cases if case.agrees is not None]
        if not known:
            return "open"
        if all(known):
            return "holds" if len(known) == len(self.cases) else "holds so far"
        return "holds in part" if any(known) else "does not hold"

    @property
    def summary(self) -> str:
        """The verdict with how many cases there are for it, and how firm they are."""
        known = [case for case in self.cases if case.agrees is not None]
        missing = Counter(case.figures for case in self.cases if case.agrees is None)
        unknown = [f"{number} {why}" for why, number in missing.items()]
        if not known:
            return f"open: {'; '.join(unknown) if NO_FIGURE in missing else 'there are no runs to tell by'}"
        agreeing = sum(case.agrees is True for case in known)
        text = f"{self.verdict}: in {agreeing} of {plural(len(known), 'case')}"
        low, high = min(case.runs for case in known), max(case.runs for case in known)
        firm = f"{plural(high, 'run')} each" if low == high else f"{low} to {high} runs each"
        tested = [case.adjusted for case in known if case.adjusted is not None]
        if tested:
            clear = sum(p < SIGNIFICANT for p in tested)
            number = "no" if clear == 0 else f"{clear} of {len(tested)}"
            noun = "difference" if len(tested) == 1 or clear == 0 else "differences"
            firm += f", {number} {noun} significant at {SIGNIFICANT:g} after Holm"
        return "; ".join([f"{text} ({firm})", *unknown])

    @property
    def untested(self) -> bool:
        """Whether nothing in it is a difference that a test tells from chance."""
        return all(case.p is None for case in self.cases)

    @property
    def cautions(self) -> list[str]:
        """What the runs cannot show, each said once."""
        return list(dict.fromkeys(case.caution for case in self.cases if case.caution))


def check(results: Results) -> list[Claim]:
    """All claims of the paper, against the paper's four data sets, their tests corrected together."""
    return _corrected(_check(results))


def _corrected(claims: Sequence[Claim]) -> list[Claim]:
    """The claims with every p raised for the number of tests in all of them (Holm)."""
    tests = [case.p for claim in claims for case in claim.cases if case.p is not None]
    adjusted = iter(holm(tests))
    return [
        replace(
            claim,
            cases=tuple(
                case if case.p is None else replace(case, adjusted=next(adjusted)) for case in claim.cases
            ),
        )
        for claim in claims
    ]


def _check(results: Results) -> list[Claim]:
    return [
        _each(
            results,
            "The fitness of offspring before training rises over the generations",
            "In every run the mean of the last tenth of the generations is above that of the first, and "
            "Spearman's ρ with the generation is above 0.",
            _MODES,
            _rises,
        ),
        _modes(results, "offspring_fitness", "The fitness of offspring before training"),
        _modes(results, "average_fitness", "The average fitness"),
        _modes(
            results,
            "average_untrained",
            "The average fitness, with newborns as they are before their training (published code),",
        ),
        _close(results),
        _each(
            results,
            "With speciation the number of parameters stagnates",
            f"The mean of the last tenth of the generations is at most {STAGNANT:g} times that of the first.",
            (True,),
            lambda runs: _growth(runs, rises=False),
        ),
        _each(
            results,
            "Without speciation the number of parameters rises",
            f"The mean of the last tenth of the generations is above {STAGNANT:g} times that of the first.",
            (False,),
            lambda runs: _growth(runs, rises=True),
        ),
        _each(
            results,
            "Networks have about 10⁵ parameters",
            "The mean of the last generation is within half a power of ten: from "
            f"{count(SIZE / HALF_A_POWER)} to {count(SIZE * HALF_A_POWER)}.",
            _MODES,
            _size,
        ),
        _each(
            results,
            "With speciation many structural mutations are refused",
            f"At least {share(MANY, 1)} of the attempts to add or remove nodes and layers, over all runs; "
            "attempts of networks that were culled in the same generation are not on record.",
            (True,),
            _refused,
            lambda run: None not in (run.tried, run.refused),
        ),
        _better(results, "mnist", "svhn"),
        _better(results, "fashion-mnist", "cifar10"),
        _wider(results),
    ]


def ends_of(values: Sequence[float | None]) -> tuple[float, float] | None:
    """The means of the first and of the last tenth of the generations, as far as there are figures.

    >>> ends_of([0.1, 0.2, None, 0.4]), ends_of([None])
    ((0.1, 0.4), None)
    """
    known = [value for value in values if value is not None]
    if not known:
        return None
    tenth = max(1, round(len(values) / 10))
    first, last = known[:tenth], known[-tenth:]
    return math.fsum(first) / len(first), math.fsum(last) / len(last)


def against(found: Difference) -> str:
    """Two means and their difference, in points of percent, with the test."""
    interval = ""
    if found.low is not None and found.high is not None:
        interval = f", 95 % interval {_ACCURACY.change(found.low)} to {_ACCURACY.change(found.high)}"
    return (
        f"{_ACCURACY.text(found.first.mean)} against {_ACCURACY.text(found.second.mean)}, "
        f"{_ACCURACY.change(found.difference)} points{interval}; A = {found.a:.2f}, p = {found.p:.2g} "
        f"({found.first.count} and {plural(found.second.count, 'run')})"
    )


def _each(
    results: Results,
    title: str,
    measured: str,
    modes: Iterable[bool],
    judge: Callable[[Sequence[Figures]], tuple[bool, str]],
    has_figure: Callable[[Figures], bool] = lambda run: True,
) -> Claim:
    """A claim about every data set, in the modes given."""
    cases = []
    for experiment in (Experiment(data, mode) for data in DATA for mode in modes):
        every = results.of(experiment)
        runs = [run for run in every if has_figure(run)]
        agrees, figures = judge(runs) if runs else (None, NO_FIGURE if every else NOT_RUN)
        cases.append(Case(experiment.title, agrees, figures, len(runs)))
    return Claim(title, measured, tuple(cases))


def _rises(runs: Sequence[Figures]) -> tuple[bool, str]:
    series = [[line.offspring_fitness for line in run.history] for run in runs]
    ends = [ends_of(one) for one in series]
    slopes = [trend(one) for one in series]
    known = [
        (first, last, slope)
        for (first, last), slope in ((end, slope) for end, slope in zip(ends, slopes, strict=True) if end)
        if slope is not None
    ]
    rising = sum(last > first and slope > 0 for first, last, slope in known)
    if not known:
        return False, "no offspring were born in three generations"
    first, last, slope = (math.fsum(column) / len(known) for column in zip(*known, strict=True))
    return rising == len(runs), (
        f"from {_ACCURACY.text(first)} to {_ACCURACY.text(last)}, ρ = {slope:.2f}; it rises in {rising} of "
        f"{plural(len(runs), 'run')}"
    )


def _growth(runs: Sequence[Figures], *, rises: bool) -> tuple[bool, str]:
    ends = [ends_of([line.mean_parameters for line in run.history]) for run in runs]
    known = [end for end in ends if end]
    first, last = (math.fsum(column) / len(known) for column in zip(*known, strict=True))
    factor = last / first
    fewer = sum(after < before for before, after in known)
    return (factor > STAGNANT) == rises, (
        f"from {count(first)} to {count(last)}, × {factor:.2f}; it falls in {fewer} of "
        f"{plural(len(runs), 'run')}"
    )


def _size(runs: Sequence[Figures]) -> tuple[bool, str]:
    sizes = values(runs, "mean_parameters")
    mean = math.fsum(sizes) / len(sizes)
    champions = span(count, [run.champion_parameters for run in runs])
    who = "the champion" if len(runs) == 1 else "champions"
    agrees = SIZE / HALF_A_POWER <= mean <= SIZE * HALF_A_POWER
    return agrees, f"{count(mean)} on average; {who} {champions}"


def _refused(runs: Sequence[Figures]) -> tuple[bool, str]:
    tried, refused = sum(run.tried or 0 for run in runs), sum(run.refused or 0 for run in runs)
    return (
        tried > 0 and refused / tried >= MANY,
        f"{count(refused)} of {count(tried)} ({share(refused, tried)})",
    )


def _modes(results: Results, measure: str, name: str) -> Claim:
    """That a figure is higher with speciation than without."""
    cases = []
    for data, title in DATA.items():
        one, other = Experiment(data, True), Experiment(data, False)
        found = _difference(results, one, other, measure)
        # There may be no newborns in the last generation, or no record of how they were before training.
        unknown = NO_FIGURE if results.of(one) and results.of(other) else NOT_RUN
        cases.append(_compared(title, found, lambda one: one.difference > 0, unknown))
    return Claim(
        f"{name} is higher with speciation than without, on all four data sets",
        "The mean over the runs, of the last generation. Whether that is more than chance is said by p.",
        tuple(cases),
    )


def _close(results: Results) -> Claim:
    cases = []
    for data, title in DATA.items():
        found = _difference(results, Experiment(data, True), Experiment(data, False), "highest_fitness")
        cases.append(_compared(title, found, lambda one: abs(one.difference) <= LITTLE))
    return Claim(
        "The highest fitness differs little with and without speciation",
        f"The means over the runs, of the last generation, differ by at most {100 * LITTLE:g} points.",
        tuple(cases),
    )


def _better(results: Results, easier: str, harder: str) -> Claim:
    cases = []
    for mode in _MODES:
        one, other = Experiment(easier, mode), Experiment(harder, mode)
        found = _difference(results, one, other, "highest_fitness")
        cases.append(_compared(_mode(mode), found, lambda one: one.difference > 0))
    return Claim(
        f"{DATA[easier]} does better than {DATA[harder]}",
        "The highest fitness of the last generation, as a mean over the runs.",
        tuple(cases),
    )


def _wider(results: Results) -> Claim:
    cases = []
    for mode in _MODES:
        gaps = [
            _difference(results, Experiment(easier, mode), Experiment(harder, mode), "highest_fitness")
            for easier, harder in (("mnist", "svhn"), ("fashion-mnist", "cifar10"))
        ]
        known = [gap.difference for gap in gaps if gap]
        if len(known) < 2:
            cases.append(Case(_mode(mode), None, NOT_RUN))
        else:
            digits, things = known
            text = f"{_ACCURACY.change(digits)} points for digits, {_ACCURACY.change(things)} for things"
            runs = min(min(gap.first.count, gap.second.count) for gap in gaps if gap)
            cases.append(Case(_mode(mode), things > digits, text, runs))
    return Claim(
        "The gap between Fashion-MNIST and CIFAR-10 is wider than that between MNIST and SVHN",
        "The differences of the two claims before.",
        tuple(cases),
    )


def _difference(results: Results, one: Experiment, other: Experiment, measure: str) -> Difference | None:
    return difference(values(results.of(one), measure), values(results.of(other), measure))


def _compared(
    name: str, found: Difference | None, agrees: Callable[[Difference], bool], unknown: str = NOT_RUN
) -> Case:
    if found is None:
        return Case(name, None, unknown)
    n, m = found.first.count, found.second.count
    caution = cannot_tell(n, m) or ""
    return Case(name, agrees(found), against(found), min(n, m), found.p, found=found, caution=caution)


def _mode(speciation: bool) -> str:
    return "with speciation" if speciation else "without speciation"
