"""The results in plain words, as one would cite them: what lies in the paper's bands, and which claims hold.

Every sentence is made from the figures, so it changes with them. Several readings of the paper (presets) can
stand beside each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from epicortex.pages.tables import Table, markdown
from epicortex.pages.units import Unit
from epicortex.paper.claims import Claim, check
from epicortex.paper.published import DATA
from epicortex.paper.results import Results
from epicortex.paper.statistics import SIGNIFICANT
from epicortex.paper.tables import SHORT, Row, rows, size_words
from epicortex.text import NOTHING, count, plural, span

_ACCURACY: Final = Unit.of("accuracy")


def text(readings: Mapping[str, Results]) -> str:
    """The whole summary, as Markdown: the readings side by side, then each in sentences."""
    lines = ["# The paper's experiments in short\n"]
    if len(readings) > 1:
        table = verdicts(readings)
        lines += [f"{table.caption}:\n", f"{markdown(table)}\n"]
    for name, results in readings.items():
        lines.append(f"## The reading `{name}`\n")
        lines += [f"{sentence}\n" for sentence in _opening(results)]
        lines += [f"{place}. {sentence}" for place, sentence in enumerate(sentences(results), 1)]
        lines.append("")
    return "\n".join(lines)


def verdicts(readings: Mapping[str, Results]) -> Table:
    """Which claims hold under which reading."""
    found = {name: check(results) for name, results in readings.items()}
    first = next(iter(found.values()))
    cells = [
        (claim.title, *(_short(claims[place]) for claims in found.values()))
        for place, claim in enumerate(first)
    ]
    caption = (
        "Which of the paper's claims hold, in how many of the cases that were run; in brackets, in how many "
        f"the difference is significant at {SIGNIFICANT:g} after Holm's correction over all of a reading"
    )
    return Table(caption, ("claim", *found), cells, frozenset({0, *range(1, len(found) + 1)}))


def sentences(results: Results) -> Iterator[str]:
    """A sentence for each claim."""
    return (f"{claim.title}: {_confidence(claim)}." for claim in check(results))


def _opening(results: Results) -> Iterator[str]:
    judged = [row for row in rows(results) if row.band and row.experiment.data in DATA]
    numbers = [len(results.of(one)) for one in results.experiments if one.control is None and results.of(one)]
    if not numbers:
        yield "No run is finished."
        return
    runs = span(count, numbers)
    yield (
        f"{plural(len(numbers), 'experiment')} with {runs} {'run' if runs == '1' else 'runs'} each: "
        f"{size_words(results.plan.config)}."
    )
    for word in ("within", "above", "below"):
        own = [row for row in judged if row.band == word]
        if not own:
            continue
        verb = "is" if len(own) == 1 else "are"
        named = "" if word == "within" else f": {'; '.join(_row(row) for row in own)}"
        number = f"{len(own)} of {plural(len(judged), 'mean')}"
        yield f"{number} {verb} {word} the paper's mean ± 2 deviations{named}."


def _row(row: Row) -> str:
    return f"{row.experiment.title}, {SHORT[row.measure]}"


def _short(claim: Claim) -> str:
    known = [case for case in claim.cases if case.agrees is not None]
    if not known:
        return NOTHING
    agreeing = sum(case.agrees is True for case in known)
    words = f"{claim.verdict}, {agreeing} of {len(known)}"
    tested = [case for case in known if case.adjusted is not None]
    clear = sum((case.adjusted or 0) < SIGNIFICANT for case in tested)
    return f"{words} ({clear})" if tested else words


def _confidence(claim: Claim) -> str:
    """The verdict with effect sizes and with how sure it is."""
    found = [case.found for case in claim.cases if case.found is not None]
    if not found:
        return claim.summary
    low, high = min(one.difference for one in found), max(one.difference for one in found)
    between = _ACCURACY.change(low) if low == high else f"{_ACCURACY.change(low)} to {_ACCURACY.change(high)}"
    effects = span(lambda a: f"{a:.2f}", [one.a for one in found])
    return f"{claim.summary}; differences of {between} points, A {effects}"
