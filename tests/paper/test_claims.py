"""Each claim, against histories that are known to agree or not: in both directions, and where unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from epicortex.paper.claims import Claim, check, ends_of
from epicortex.paper.plan import Experiment
from epicortex.paper.published import DATA
from epicortex.paper.results import Figures
from epicortex.paper.statistics import holm
from tests.paper.world import figures, history, level, results, slope

OFFSPRING_RISES, OFFSPRING, AVERAGE, UNTRAINED, HIGHEST, STAGNATE, RISE, SIZE, REFUSED = range(9)
DIGITS, THINGS, GAP = range(9, 12)
BEST = {"mnist": 0.98, "svhn": 0.80, "fashion-mnist": 0.88, "cifar10": 0.52}


def as_published(data: str, speciation: bool) -> Figures:
    """A run in which everything is as the paper says."""
    lines = history(
        highest=level(BEST[data] - (0.0 if speciation else 0.005)),
        average=level(BEST[data] - (0.02 if speciation else 0.05)),
        offspring=slope(0.2 if speciation else 0.1, 0.01),
        parameters=level(1e5) if speciation else slope(8e4, 3e3),
    )
    return figures(lines, tried=200, refused=150 if speciation else 0)


def claims(change: Callable[[str, bool], Figures | None] = as_published) -> list[Claim]:
    """The claims about one run of each experiment; those without a run are left out."""
    runs = {(data, mode): change(data, mode) for data in DATA for mode in (True, False)}
    return check(results({Experiment(*key): [run] for key, run in runs.items() if run is not None}))


def test_runs_like_the_papers_bear_out_every_claim() -> None:
    for claim in claims():
        assert claim.verdict == "holds", claim
        assert all(case.agrees for case in claim.cases)


def test_without_runs_every_claim_is_open() -> None:
    for claim in claims(lambda data, mode: None):
        assert claim.verdict == "open"
        assert claim.summary == "open: there are no runs to tell by"


def altered(**curves: Any) -> Callable[[str, bool], Figures]:
    """Runs that are all alike."""
    counted = {name: curves.pop(name) for name in ("tried", "refused_structural") if name in curves}
    refused = counted.pop("refused_structural", 60)
    return lambda data, mode: figures(history(**curves), refused=refused, **counted)


@pytest.mark.parametrize(
    ("place", "change"),
    [
        (OFFSPRING_RISES, altered(offspring=slope(0.9, -0.01))),
        (OFFSPRING_RISES, altered(offspring=level(0.5))),
        (OFFSPRING, altered()),
        (AVERAGE, altered()),
        (UNTRAINED, altered()),
        (HIGHEST, lambda data, mode: figures(history(highest=level(0.9 if mode else 0.87)))),
        (HIGHEST, lambda data, mode: figures(history(highest=level(0.87 if mode else 0.9)))),
        (STAGNATE, altered(parameters=slope(1e4, 1e3))),
        (RISE, altered(parameters=level(1e5))),
        (RISE, altered(parameters=slope(1e5, -1e3))),
        (SIZE, altered(parameters=level(2e4))),
        (SIZE, altered(parameters=level(1e6))),
        (REFUSED, altered(tried=100, refused_structural=49)),
        (REFUSED, altered(tried=0, refused_structural=0)),
        (DIGITS, altered()),
        (THINGS, altered()),
        (GAP, altered()),
    ],
)
def test_runs_that_say_otherwise_refute_a_claim(place: int, change: Callable[[str, bool], Figures]) -> None:
    claim = claims(change)[place]
    assert claim.verdict == "does not hold"
    assert not any(case.agrees for case in claim.cases)


def test_what_falls_or_stays_stagnates_too_and_what_is_at_the_bound_counts() -> None:
    assert claims(altered(parameters=slope(1e5, -1e3)))[STAGNATE].verdict == "holds"
    assert claims(altered(tried=100, refused_structural=50))[REFUSED].verdict == "holds"
    close = claims(lambda data, mode: figures(history(highest=level(0.875 if mode else 0.89))))
    assert close[HIGHEST].verdict == "holds"


def test_sizes_of_champions_are_a_span_only_where_there_are_several() -> None:
    experiment = Experiment("mnist", True)
    one, other = (replace(as_published("mnist", True), champion_parameters=size) for size in (9_000, 12_000))
    alone, both = (
        check(results({experiment: runs}))[SIZE].cases[0].figures for runs in ([one], [one, other])
    )
    assert alone == "100,000 on average; the champion 9,000"
    assert both == "100,000 on average; champions 9,000 to 12,000"


def test_a_claim_holds_in_part_where_one_data_set_says_otherwise() -> None:
    def change(data: str, mode: bool) -> Figures:
        return figures(history(average=level(0.5 if mode == (data != "svhn") else 0.4)))

    claim = claims(change)[AVERAGE]
    assert claim.verdict == "holds in part"
    assert [case.agrees for case in claim.cases] == [True, False, True, True]
    assert claim.summary == (
        "holds in part: in 3 of 4 cases (1 run each, no difference significant at 0.05 after Holm)"
    )


def test_the_tests_of_all_claims_are_corrected_together() -> None:
    """Five runs of each mode whose figures never overlap: every p is the least that is possible, 2/252."""
    runs = {
        Experiment(data, mode): [
            figures(
                history(
                    average=level(0.9 + 0.001 * seed - (0 if mode else 0.1)),
                    offspring=level(0.8 + 0.001 * seed - (0 if mode else 0.1)),
                    highest=level(BEST[data] + 0.0001 * seed),
                )
            )
            for seed in range(5)
        ]
        for data in DATA
        for mode in (True, False)
    }
    found = check(results(runs))
    own = [case.p for claim in found for case in claim.cases if case.p is not None]
    together = [case.adjusted for claim in found for case in claim.cases if case.p is not None]
    assert together == holm(own)
    assert len(own) == 4 * 4 + 2 * 2
    clear = sum(p < 0.05 for p in own)
    assert found[OFFSPRING].cases[0].p == pytest.approx(2 / 252)
    assert found[OFFSPRING].cases[0].adjusted == pytest.approx(len(own) * 2 / 252)
    assert clear == 16
    assert "no difference significant at 0.05 after Holm" in found[OFFSPRING].summary
    alone = check(results({one: several for one, several in runs.items() if one.data == "mnist"}))
    assert "1 of 1 difference significant at 0.05 after Holm" in alone[OFFSPRING].summary


def test_the_two_ways_to_count_newborns_are_judged_apart() -> None:
    def change(data: str, mode: bool) -> Figures:
        return figures(history(average=level(0.8), untrained=level(0.79 if mode else 0.7)))

    found = claims(change)
    assert (found[AVERAGE].verdict, found[UNTRAINED].verdict) == ("does not hold", "holds")
    assert found[UNTRAINED].cases[0].figures.startswith("79.00\xa0% against 70.00\xa0%, +9.00 points")


def test_of_some_experiments_a_claim_holds_so_far() -> None:
    found = claims(lambda data, mode: as_published(data, mode) if data == "mnist" else None)
    assert [claim.verdict for claim in found] == ["holds so far"] * 9 + ["open"] * 3
    assert found[AVERAGE].summary == (
        "holds so far: in 1 of 1 case (1 run each, no difference significant at 0.05 after Holm); 3 not run"
    )
    one_mode = claims(lambda data, mode: as_published(data, mode) if mode else None)
    assert one_mode[AVERAGE].verdict == "open"
    assert one_mode[GAP].summary == "holds so far: in 1 of 1 case (1 run each); 1 not run"


def test_runs_without_a_figure_are_not_taken_for_runs_that_are_missing() -> None:
    def change(data: str, mode: bool) -> Figures | None:
        own = as_published(data, mode)
        if data == "svhn":
            lines = tuple(replace(line, average_untrained=None) for line in own.history)
            own = replace(own, history=lines, tried=None, refused=None)
        return None if data == "mnist" else own

    found = claims(change)
    assert found[UNTRAINED].summary == (
        "holds so far: in 2 of 2 cases (1 run each, no difference significant at 0.05 after Holm); "
        "1 not run; 1 without a figure"
    )
    assert (
        found[REFUSED].summary == "holds so far: in 2 of 2 cases (1 run each); 1 not run; 1 without a figure"
    )
    alone = claims(lambda data, mode: change(data, mode) if data == "svhn" else None)
    assert (alone[REFUSED].verdict, alone[REFUSED].summary) == ("open", "open: 3 not run; 1 without a figure")


def test_a_verdict_says_how_many_runs_it_rests_on_and_whether_a_difference_is_significant() -> None:
    def runs(number: int, base: float) -> list[Figures]:
        return [figures(history(average=level(base + place / 1000))) for place in range(number)]

    few = check(results({Experiment("mnist", True): runs(3, 0.9), Experiment("mnist", False): runs(5, 0.5)}))
    assert few[AVERAGE].cases[0].p == pytest.approx(2 / 56)
    # Four such tests, of four claims, are too many for that.
    assert few[AVERAGE].summary == (
        "holds so far: in 1 of 1 case (3 runs each, no difference significant at 0.05 after Holm); 3 not run"
    )
    assert few[SIZE].summary == "holds so far: in 2 of 2 cases (3 to 5 runs each); 6 not run"
    # Two and two runs can reach 0.33 at best.
    even = check(results({Experiment("mnist", True): runs(2, 0.9), Experiment("mnist", False): runs(2, 0.5)}))
    assert "(2 runs each, no difference significant at 0.05 after Holm)" in even[AVERAGE].summary


def test_one_run_that_does_not_rise_refutes_that_offspring_do() -> None:
    rising, falling = (figures(history(offspring=slope(0.5, step))) for step in (0.01, -0.01))
    claim = check(results({Experiment("mnist", True): [rising, falling]}))[OFFSPRING_RISES]
    assert claim.cases[0].agrees is False
    assert "it rises in 1 of 2 runs" in claim.cases[0].figures


def test_the_gap_compares_the_two_differences() -> None:
    def change(data: str, mode: bool) -> Figures:
        best = {"mnist": 0.9, "svhn": 0.5, "fashion-mnist": 0.8, "cifar10": 0.6 if mode else 0.3}
        return figures(history(highest=level(best[data])))

    claim = claims(change)[GAP]
    assert [case.agrees for case in claim.cases] == [False, True]
    assert claim.cases[0].figures == "+40.00 points for digits, +20.00 for things"


def test_figures_are_means_over_the_runs_with_the_test() -> None:
    runs = {
        Experiment("mnist", mode): [figures(history(average=level(base + step / 100))) for step in range(2)]
        for mode, base in ((True, 0.9), (False, 0.8))
    }
    claim = check(results(runs))[AVERAGE]
    text = claim.cases[0].figures.replace("\xa0", " ")
    assert text.startswith("90.50 % against 80.50 %, +10.00 points, 95 % interval +9.00 to +11.00;")
    assert text.endswith("A = 1.00, p = 0.33 (2 and 2 runs)")
    assert claim.cautions == [
        "With 2 and 2 runs no p below 0.33 can be reached: no difference, however large, can be significant "
        "at 0.05."
    ]


def test_the_ends_of_a_series_are_tenths_of_its_generations() -> None:
    assert ends_of([float(value) for value in range(100)]) == (4.5, 94.5)
    assert ends_of([None, 1.0, 2.0]) == (1.0, 2.0)
    assert ends_of([]) is None
