"""The summary says in words what the tables have in figures, and sets readings beside each other."""

from __future__ import annotations

from epicortex.config import resolving as settings
from epicortex.paper import summary
from epicortex.paper.claims import check
from epicortex.paper.output import reading
from epicortex.paper.plan import Experiment
from epicortex.paper.published import DATA
from epicortex.paper.results import Results
from tests.paper.world import figures, history, level, plan, results


def made_up(highest: float, *, gap: float = 0.0) -> Results:
    """One run of each experiment; without speciation the average is lower by the gap."""
    return results(
        {
            Experiment(data, mode): [
                figures(history(highest=level(highest), average=level(0.85 - (0 if mode else gap))))
            ]
            for data in DATA
            for mode in (True, False)
        }
    )


def test_every_claim_has_a_sentence_with_its_verdict() -> None:
    own = made_up(0.9)
    found, sentences = check(own), list(summary.sentences(own))
    assert len(found) == len(sentences)
    for claim, sentence in zip(found, sentences, strict=True):
        assert sentence.startswith(f"{claim.title}: {claim.verdict}")


def test_means_in_and_out_of_the_papers_bands_are_counted_and_named() -> None:
    text = summary.text({"paper": made_up(0.9813)})
    assert "8 experiments with 1 run each: 64 → 111 networks, 100 generations." in text
    assert "are above the paper's mean ± 2 deviations: " in text
    assert "SVHN, speciation, highest" in text.split("above the paper", 1)[1].split("\n", 1)[0]
    assert "is within" in text or "are within" in text
    assert ": MNIST, speciation, highest;" not in text
    assert "; MNIST, speciation, highest;" not in text


def test_two_readings_stand_side_by_side_where_they_differ() -> None:
    readings = {"paper": made_up(0.9), "published": made_up(0.9, gap=0.05)}
    table = summary.verdicts(readings)
    rows = {row[0]: row[1:] for row in table.rows}
    average = next(cells for title, cells in rows.items() if title.startswith("The average fitness is"))
    assert average == ("does not hold, 0 of 4 (0)", "holds, 4 of 4 (0)")
    text = summary.text(readings)
    assert "## The reading `paper`" in text
    assert "## The reading `published`" in text


def test_without_runs_it_says_so() -> None:
    assert "No run is finished." in summary.text({"paper": results({})})


def test_a_plan_knows_the_reading_it_follows() -> None:
    assert reading(plan(config=settings.resolve("published", {"training.backend": "native"}))) == "published"
    assert reading(plan(config=settings.resolve("paper", {"evolution.generations": 3}))) == "paper"
    assert reading(plan(config=settings.resolve("paper", {"selection.clones": "exact"}))) == "own settings"
