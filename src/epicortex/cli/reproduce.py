"""`epicortex reproduce`: the paper's experiments. The work is done in `epicortex.paper`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from epicortex.cli import progress
from epicortex.cli.display import Watch
from epicortex.cli.evolve import SHORT
from epicortex.cli.parsing import Parser, UsageError, add_settings, add_short, settings_given, unknown
from epicortex.text import clean, count, duration, percent, plural

if TYPE_CHECKING:
    from epicortex.cli.progress import Stopper
    from epicortex.config import Config
    from epicortex.errors import EpiCortexError
    from epicortex.paper.estimates import Due
    from epicortex.paper.plan import Plan, PlannedRun
    from epicortex.paper.results import Kept
    from epicortex.run.lifecycle import Result, Watcher

_SPECIATION: Final = {"on": (True,), "off": (False,), "both": (True, False)}
_SHORT: Final = ("--generations", "--workers", "--engine", "--device", "--data-dir")
#: Settings that the experiment sets itself, and what to use instead.
_OURS: Final = {
    "evolution.seed": "seeds are 1, 2, 3 and so on: use --runs",
    "evolution.speciation": "use --speciation",
    "data.source": "name the data sets as DATA",
}
#: Settings that would end a run early, so that it is never finished.
_ENDS: Final = {
    "evolution.minutes": "a clock would make runs that cannot be repeated",
    "evolution.target": "all runs have as many generations",
    "evolution.plateau": "all runs have as many generations",
    "evolution.trainings": "a run has --generations, and its controls the trainings it took",
}
_CANNOT_GO_ON: Final = 4


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    parser.usage = "epicortex reproduce [DATA ...] [options]"
    parser.add_argument("data", metavar="DATA", nargs="*", help="built-in data sets (the paper's four)")
    parser.add_argument("--speciation", metavar="on|off|both", default="both", help="with, without, or both")
    parser.add_argument("--runs", metavar="N", default="10", help="runs of each, with seeds 1 to N (10)")
    parser.add_argument(
        "--controls",
        metavar="NAMES",
        default="",
        help="all (founders,champion,mutation,random), or some, or drift: without a part of evolution",
    )
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("reproduction"), help="where it goes")
    parser.add_argument("--preset", metavar="NAME|FILE.toml", default="paper", help="the settings (paper)")
    parser.add_argument("--dry-run", action="store_true", help="print the runs and about how long they take")
    parser.add_argument(
        "--tables", action="store_true", help="write the results of what is there; run nothing"
    )
    parser.add_argument(
        "--also",
        metavar="FILE",
        type=Path,
        nargs="+",
        action="extend",
        default=[],
        help="runs.jsonl of other places: their runs count, too, and are not run again",
    )
    parser.add_argument(
        "--beside",
        metavar="PRESET=DIR",
        nargs="+",
        action="extend",
        default=[],
        help="results of other presets: summary.md says which claims hold under which",
    )
    parser.add_argument(
        "--kernels", action="store_true", help="also write kernels.md: shapes of kernels, against drift only"
    )
    add_short(parser, {option: SHORT[option] for option in _SHORT})
    parser.add_argument("--quiet", action="store_true", help="print the results only")
    add_settings(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run what is missing, and write the tables."""
    from epicortex import engines
    from epicortex.data import inventory
    from epicortex.paper import estimates, results_file
    from epicortex.paper.execution import carry_out

    plan = planned(arguments)
    for name in plan.data:
        inventory.built_in(name)
    also = [one for path in arguments.also for one in results_file.read(path)]
    beside = dict(_other_reading(arguments, text) for text in arguments.beside)
    if arguments.tables:
        _report(plan, arguments.out, also, beside, kernels=arguments.kernels)
        return 0
    if engines.enlisted(plan.config.training.engine):
        return 0
    kept = results_file.counting(plan, [*results_file.read_own(arguments.out), *also])
    due = estimates.survey(plan, arguments.out, kept)
    _check_data(plan, due)
    if arguments.dry_run:
        return _dry_run(plan, arguments.out, due)
    with progress.signals() as stopper, ExitStack() as stack:
        observer = _Observer(arguments, due, stopper, stack)
        spared = {one.run for one in due if one.state == "kept"}
        carried = carry_out(
            plan, arguments.out, observer, stopper.stop, command=arguments.command_line, spared=spared
        )
        _report(plan, arguments.out, also, beside, kernels=arguments.kernels)
    if carried.interrupted:
        print("stopped; the same command goes on")
        return 128 + (stopper.received or signal.SIGINT)
    return _CANNOT_GO_ON if carried.failed else 0


def planned(arguments: argparse.Namespace) -> Plan:
    """What was asked for; anything impossible is refused here."""
    from epicortex.config import fields
    from epicortex.config import resolving as settings
    from epicortex.paper.controls import ALL, CONTROLS
    from epicortex.paper.plan import Plan
    from epicortex.paper.published import DATA

    changes, called = settings_given(arguments)
    for name, instead in _OURS.items():
        if name in changes:
            raise UsageError(f"{name} is set by the experiment: {instead}")
    if arguments.speciation not in _SPECIATION:
        raise UsageError(f"--speciation is {arguments.speciation!r}; it must be on, off or both")
    speciation = _SPECIATION[arguments.speciation]
    if not arguments.runs.isdecimal() or not 1 <= int(arguments.runs) <= 1000:
        raise UsageError(f"--runs is {arguments.runs!r}; it must be a whole number from 1 to 1000")
    names = [name.strip() for name in arguments.controls.split(",") if name.strip()]
    for name in names:
        if name not in (*CONTROLS, "all"):
            raise UsageError(f"{unknown('control', name, CONTROLS)}; there are all, {', '.join(CONTROLS)}")
    # Without species, limits on their number do not matter.
    changes["evolution.speciation"] = speciation[0]
    config = settings.resolve(arguments.preset, changes, called=called)
    for name, why in _ENDS.items():
        if fields.value_of(config, name) is not None:
            raise UsageError(f"{name} is {fields.value_of(config, name)}, and must not be set here: {why}")
    return Plan(
        config=config,
        data=tuple(dict.fromkeys(arguments.data)) or tuple(DATA),
        speciation=speciation,
        runs=int(arguments.runs),
        controls=tuple(name for name in CONTROLS if name in names or ("all" in names and name in ALL)),
    )


def _other_reading(arguments: argparse.Namespace, text: str) -> tuple[str, tuple[Plan, Path]]:
    """A preset and the folder with its results: the same plan, but for the preset."""
    name, equals, folder = text.partition("=")
    if not (name and equals and folder):
        raise UsageError(f"--beside is {text!r}; it must be PRESET=DIR, such as published=results/published")
    other = argparse.Namespace(**{**vars(arguments), "preset": name})
    return name, (planned(other), Path(folder))


def _check_data(plan: Plan, due: Sequence[Due]) -> None:
    """All data sets that are still needed have to be there before days are spent on the first."""
    from epicortex.data import inventory
    from epicortex.errors import DataError

    directory = plan.config.data.directory
    known = {one.name: one for one in inventory.status(Path(directory) if directory else None)}
    for name in plan.data:
        needed = any(one.run.experiment.data == name and one.trainings for one in due)
        if needed and known[name].state == "missing":
            raise DataError(
                f"{name} is not in {known[name].where}; epicortex data get {name} fetches it there, "
                "and --data-dir or EPICORTEX_DATA names another place"
            )


def _report(
    plan: Plan,
    out: Path,
    also: Iterable[Kept],
    beside: Mapping[str, tuple[Plan, Path]],
    *,
    kernels: bool = False,
) -> None:
    """Write the results, and say in a few lines what they are."""
    from epicortex.paper import kernel_article, notes, tables
    from epicortex.paper.claims import check
    from epicortex.paper.output import write
    from epicortex.paper.published import MEASURES

    results = write(plan, out, also, beside)
    for row in tables.rows(results):
        if row.ours and row.measure == next(iter(MEASURES)):
            print(
                f"{row.experiment.title}: {plural(row.ours.count, 'run')}, {MEASURES[row.measure]} "
                f"{percent(row.ours.mean)}" + (f" (paper {row.paper.mean:.2f} %)" if row.paper else "")
            )
    for claim in check(results):
        if claim.verdict != "open":
            print(f"{claim.title}: {claim.summary}")
    for sentence in notes.standing(results):
        print(sentence)
    files = (str(out / name) for name in ("page.html", "summary.md", "table.md", "table.csv", "runs.jsonl"))
    print(f"results   {', '.join(files)}")
    if kernels:
        print(f"kernels   {kernel_article.write(out)}")


class _Observer:
    """Shows one run after another, and how long all of them will take."""

    def __init__(
        self, arguments: argparse.Namespace, due: Sequence[Due], stopper: Stopper, stack: ExitStack
    ) -> None:
        from epicortex.paper import estimates

        self._quiet: bool = arguments.quiet
        self._stopper = stopper
        self._stack = stack
        self._out: Path = arguments.out
        self._due = due
        self._pace = estimates.learned(self._out)

    def begin(self, run: PlannedRun, folder: Path, config: Config) -> Watcher:
        """Open a display for the run."""
        place = next(place for place, due in enumerate(self._due) if due.run == run)
        watch = Watch(
            data=clean(run.experiment.title),
            folder=clean(str(folder)),
            generations=config.evolution.generations,
        )
        watch.whole = lambda: self._whole(place, watch)
        display = progress.displayed(watch, quiet=self._quiet)
        if not self._quiet:
            print(f"run {place + 1} of {len(self._due)}: {watch.folder}", flush=True)
        self._stack.enter_context(display)
        self._stopper.display = display
        return progress.watcher(display, config)

    def end(self, run: PlannedRun, result: Result) -> None:
        """Close the display, and say what came out."""
        from epicortex.paper import estimates

        self._stack.close()
        self._pace = estimates.learned(self._out)
        if not result.interrupted and result.champion is not None:
            facts, outline = result.champion.facts, result.champion.outline
            size = plural(outline.parameters, "parameter")
            print(f"{run.folder}: champion {percent(facts.fitness)}, {size}", flush=True)

    def failed(self, run: PlannedRun, error: EpiCortexError) -> None:
        """Close the display, and say why."""
        self._stack.close()
        print(f"epicortex: {clean(f'{run.folder}: {error}')}", file=sys.stderr, flush=True)

    def _whole(self, place: int, watch: Watch) -> str:
        words = f"run {place + 1}/{len(self._due)}"
        left = watch.left()
        if left is None or watch.last is None:
            return words
        from epicortex.paper import estimates

        pace = self._pace.copy()
        kind = estimates.kind(self._due[place].run.experiment)
        pace.add(kind, sum(watch.seconds), len(watch.seconds) * watch.last.networks)
        later = sum(due.seconds(pace) or 0.0 for due in self._due[place + 1 :])
        return f"{words}, {duration(left + later)} left in all"


def _dry_run(plan: Plan, out: Path, due: Sequence[Due]) -> int:
    """Print the runs, how it stands with them, and an estimate from what was measured."""
    from epicortex.paper import estimates

    pace = estimates.learned(out)
    for one in due:
        kind = estimates.kind(one.run.experiment)
        if one.trainings and not pace.trainings.get(kind):
            seconds, trainings = estimates.measure(plan.configured(one.run))
            pace.add(kind, seconds, trainings)
            title = one.run.experiment.original.title
            print(f"{title}: {plural(trainings, 'founder')} trained in {duration(seconds)}")
    width = max(len(str(one.run.folder)) for one in due)
    for one in due:
        left = (
            f"{count(one.trainings)} trainings, about {duration(one.seconds(pace))}" if one.trainings else ""
        )
        print(f"{one.run.folder!s:<{width}}  {one.state:<8}  {left}".rstrip())
    total = sum(one.seconds(pace) or 0.0 for one in due)
    to_do = count(sum(one.trainings for one in due))
    print(f"{plural(len(due), 'run')}, {to_do} trainings to do, about {duration(total)}")
    print("Networks change in size as they evolve, without speciation most of all: this is a rough estimate.")
    return 0
