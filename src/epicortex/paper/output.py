"""Writes the results of an experiment: tables, a summary, `page.html`, the plots as SVG, `runs.jsonl`.

Everything in them is read back from the run folders and from runs that were kept, so writing them again gives
the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from epicortex.config import Config
from epicortex.config import resolving as presets
from epicortex.pages import svg
from epicortex.pages.html import page
from epicortex.pages.plots import Figure
from epicortex.pages.tables import Table, markdown
from epicortex.paper import figures, notes, results_file, summary, tables
from epicortex.paper.claims import Claim, check
from epicortex.paper.controls import CONTROLS
from epicortex.paper.execution import between_experiments
from epicortex.paper.plan import Experiment, Plan
from epicortex.paper.published import DATA
from epicortex.paper.results import Kept, Results, read_results
from epicortex.storage import atomic
from epicortex.storage.lock import Lock

PLOTS: Final = "figures"
_TITLE: Final = "Epigenetic evolution of deep convolutional models, run again"
_ABOUT: Final = {
    "fitness": "fitness over the generations",
    "parameters": "mean number of parameters",
    "refused": "share of mutations refused",
    "controls": "evolution and its controls at equal cost",
}


def write(
    plan: Plan, out: Path, also: Iterable[Kept] = (), beside: Mapping[str, tuple[Plan, Path]] | None = None
) -> Results:
    """Read all runs below `out` and those kept there, and write what they and others come to beside them.

    The summary takes in other readings, by name, from the folders where their runs are.

    Another process that writes the same results is waited for, so that neither loses what the other keeps.
    """
    atomic.make_folder(out)
    atomic.make_folder(out / PLOTS)
    with Lock(out / PLOTS, wait=True):  # not in `out`: were that a run's folder, the run would be waited for
        return _write(plan, out, also, beside or {})


def _write(plan: Plan, out: Path, also: Iterable[Kept], beside: Mapping[str, tuple[Plan, Path]]) -> Results:
    own = results_file.read_own(out)
    results = read_results(plan, out, [*own, *also])
    drawn, found = figures.draw(results), check(results)
    results_file.write(out, results, own)
    for name, figure in drawn.items():
        atomic.replace_text(out / PLOTS / f"{name}.svg", svg.picture(figure, caption(name)))
    atomic.replace_text(out / "table.csv", tables.as_csv(results))
    atomic.replace_text(out / "table.md", "\n".join(_markdown(results, drawn, found)))
    readings = {reading(plan): results} | {
        name: read_results(other, folder, results_file.read_own(folder))
        for name, (other, folder) in beside.items()
    }
    atomic.replace_text(out / "summary.md", summary.text(readings))
    content = _content(results, drawn, found)
    atomic.replace_text(out / "page.html", page("epicortex.paper", "experiments.html", content, drawn))
    return results


def reading(plan: Plan) -> str:
    """The preset that a plan follows, or else its own settings.

    >>> from epicortex.config import Config
    >>> reading(Plan(Config(), ("mnist",), (True,), 1))
    'paper'
    """
    named = [name for name in ("paper", "published") if not _departures(plan.config, name)]
    return named[0] if named else "own settings"


def _departures(config: Config, preset: str) -> list[str]:
    """In what a plan's settings differ from a preset's, sizes and arithmetic apart."""
    names = between_experiments(config, presets.resolve(preset))
    return [name for name in names if name not in tables.SIZES and name != "training.backend"]


def caption(name: str) -> str:
    """What a plot shows, by its name.

    >>> caption("fitness-fashion-mnist-speciation-off"), caption("parameters-mnist")
    ('Fashion-MNIST, no speciation: fitness over the generations', 'MNIST: mean number of parameters')
    """
    kind, _, rest = name.partition("-")
    for mode, title in (("-speciation-on", ", speciation"), ("-speciation-off", ", no speciation")):
        if rest.endswith(mode):
            data = rest.removesuffix(mode)
            return f"{DATA.get(data, data)}{title}: {_ABOUT[kind]}"
    return f"{DATA.get(rest, rest)}: {_ABOUT[kind]}"


def _markdown(results: Results, drawn: dict[str, Figure], found: list[Claim]) -> Iterator[str]:
    yield f"# {_TITLE}\n"
    for sentence in notes.standing(results):
        yield f"{sentence}\n"
    yield "## The paper's table and ours\n"
    yield from _table(tables.beside(results))
    yield f"{notes.DEVIATIONS}\n"
    yield "These commands give the rows again, with the same digits on the same kind of processor:\n"
    yield "```text"
    yield from (tables.repeating(results, one) for one in results.experiments)
    yield "```\n"
    yield from _pictures("The paper's figure", "fitness", drawn)
    yield f"{notes.BANDS}\n"
    yield from _pictures("Parameters", "parameters", drawn)
    yield from _pictures("Refused mutations", "refused", drawn)
    yield "## The paper's claims\n"
    yield from _table(tables.claims(found))
    for place, claim in ((place, one) for place, one in enumerate(found, 1) if one.verdict != "open"):
        yield f"### {place}. {claim.title}: {claim.verdict}\n"
        yield from _table(tables.cases(claim))
        yield from (f"{sentence}\n" for sentence in claim.cautions)
    yield "## Controls\n"
    yield f"{notes.BUDGET}\n"
    for control in CONTROLS.values():
        yield f"- **{control.title}** (`--controls {control.name}`): {control.about}"
    yield ""
    compared = tables.controls(results)
    if compared:
        yield from (line for table in compared for line in _table(table))
        yield f"{notes.TESTS}\n"
        yield from (f"{sentence}\n" for sentence in tables.control_cautions(results))
        yield from _pictures("Fitness over trainings", "controls", drawn)
    else:
        yield "No control has been run.\n"
    yield "## Every run\n"
    yield from _table(tables.costs(results))
    yield from _table(tables.every_run(results.runs))
    if results.due:
        yield "Not begun: " + ", ".join(f"`{run.folder}`" for run in results.due) + ".\n"
    yield "Each alone, by the command that gives it again:\n"
    yield "```text"
    yield from (one.command for one in results.runs if one.command)
    yield "```"


def _table(table: Table) -> Iterator[str]:
    yield f"{table.caption}:\n" if not table.caption.endswith(".") else f"{table.caption}\n"
    yield f"{markdown(table)}\n"


def _pictures(title: str, kind: str, drawn: dict[str, Figure]) -> Iterator[str]:
    names = [name for name in drawn if name.startswith(f"{kind}-")]
    if names:
        yield f"## {title}\n"
        yield from (f"![{caption(name)}]({PLOTS}/{name}.svg)\n" for name in names)


def _content(results: Results, drawn: dict[str, Figure], found: list[Claim]) -> dict[str, Any]:
    plain = [one for one in results.experiments if one.control is None and results.of(one)]
    return {
        "title": f"{_TITLE}: EpiCortex",
        "heading": _TITLE,
        "contents": [
            ("summary", "How it stands"),
            ("table", "Paper and ours"),
            ("curves", "The paper's figure"),
            ("sizes", "Parameters"),
            ("refusals", "Refused mutations"),
            ("claims", "Claims"),
            ("controls", "Controls"),
            ("runs", "Every run"),
        ],
        "tags": ["complete" if results.complete else "incomplete", tables.size_words(results.plan.config)],
        "paragraphs": list(notes.standing(results)),
        "deviations": notes.DEVIATIONS,
        "bands": notes.BANDS,
        "budget": notes.BUDGET,
        "beside": tables.beside(results),
        "row_commands": [tables.repeating(results, one) for one in results.experiments],
        "curves": [_curves(results, one) for one in plain],
        "plots": {
            kind: [(name, caption(name)) for name in drawn if name.startswith(f"{kind}-")] for kind in _ABOUT
        },
        "claims": [(claim, tables.cases(claim)) for claim in found],
        "verdicts": tables.claims(found),
        "controls": list(CONTROLS.values()),
        "compared": tables.controls(results),
        "cautions": [notes.TESTS, *tables.control_cautions(results)],
        "costs": tables.costs(results),
        "every_run": tables.every_run(results.runs),
        "due": [str(run.folder) for run in results.due],
        "run_commands": [one.command for one in results.runs if one.command],
    }


def _curves(results: Results, experiment: Experiment) -> dict[str, Any]:
    name = f"fitness-{figures.slug(experiment)}"
    return {"name": name, "title": experiment.title, "table": tables.curves(results.of(experiment))}
