"""`epicortex show`: the champion, layer by layer, where it comes from, and how the run went.

Everything is read from the run's files, none of which can make anything run; torch is not needed.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from epicortex.cli.display import Point, fitness_plot, reasons
from epicortex.cli.parsing import Parser, add_plugin
from epicortex.measures import USUAL, figure, named
from epicortex.text import NOTHING, clean, count, directed, duration, json_text, listed, plural, times

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from epicortex.champion.file import Champion, Facts
    from epicortex.config import Config
    from epicortex.ecosystem.plan import Plan
    from epicortex.ecosystem.state import Event
    from epicortex.families.family import Outline
    from epicortex.registry import Parts
    from epicortex.run.lineage import Ancestor
    from epicortex.run.record import RunRecord
    from epicortex.storage import NetworkLine

_PLOT_HEIGHT: Final = 10
_FEW_ANCESTORS: Final = 12
#: So many classes are named, more are counted.
_FEW: Final = 4
_WIDEST: Final = 110
#: The width of what a line is called.
_HEADING: Final = 10


def add_arguments(parser: Parser) -> None:
    """The command's options."""
    parser.usage = "epicortex show RUN [options]"
    parser.add_argument("folder", metavar="RUN", type=Path, help="the folder of a run")
    parser.add_argument(
        "--all", action="store_true", help="every ancestor of the champion, not only the last"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    add_plugin(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print what there is to know about a run."""
    from epicortex import registry

    story = read(arguments.folder, registry.load(arguments.plugin).parts)
    for note in story.run.notes:
        print(f"epicortex: {clean(note)}", file=sys.stderr)
    if arguments.json:
        print(json_text(as_json(story)))
        return 0
    from epicortex.cli.display import plain_console

    console = plain_console()
    console.width = min(console.width, _WIDEST)
    for part in _parts(story, console, every_ancestor=arguments.all):
        console.print(part)
    return 0


@dataclass(frozen=True, slots=True)
class Story:
    """What a run's files say."""

    run: RunRecord
    champion: Champion | None
    """None before the first generation is complete."""
    lineage: tuple[Ancestor, ...]
    failures: Counter[str]
    evaluations: int
    front: tuple[Champion, ...] = ()
    """All models of the run, the champion among them, from the smallest on."""


def read(folder: Path, parts: Parts | None = None) -> Story:
    """Read a run's folder; a `StorageError` says what is wrong with it."""
    from epicortex.champion import front
    from epicortex.run import lineage
    from epicortex.run.record import read_run

    record = read_run(folder)
    champion = record.champion(parts) if record.history else None
    failures: Counter[str] = Counter()
    evaluations = 0

    def counted() -> Iterator[NetworkLine]:
        nonlocal evaluations
        for line in record.networks():
            evaluations += 1
            if line.failed is not None:
                failures[clean(line.failed)] += 1
            yield line

    # One pass, line by line: large runs leave gigabytes of them.
    lines = counted()
    ancestors: tuple[Ancestor, ...] = ()
    if champion is not None:
        ancestors = lineage.trace(lines, champion.facts.network, until=champion.facts.generation)
    for _ in lines:
        pass
    members = tuple(front.read(folder, parts)) if champion is not None else ()
    return Story(record, champion, ancestors, failures, evaluations, members)


def as_json(story: Story) -> dict[str, Any]:
    """The story as plain data. Fitness is a fraction from 0 to 1."""
    champion = story.champion
    return {
        "format": 1,
        "run": asdict(story.run.info),
        "status": status(story),
        "config": story.run.config.model_dump(mode="json"),
        "champion": None
        if champion is None
        else {
            **asdict(champion.facts),
            "family": champion.family.name,
            "genome": champion.description,
            "description": champion.outline.text,
            "parameters": champion.outline.parameters,
            "multiplications": champion.outline.cost,
            "layer_parameters": [part.parameters for part in champion.outline.parts],
            "output_shapes": [part.output for part in champion.outline.parts],
        },
        "front": [_figures(member) for member in story.front],
        "history": [asdict(generation) for generation in story.run.history],
        "lineage": [asdict(ancestor) for ancestor in story.lineage],
        "failures": dict(story.failures),
        "evaluations": story.evaluations,
    }


def _figures(member: Champion) -> dict[str, Any]:
    facts, outline = member.facts, member.outline
    return {
        "parameters": outline.parameters,
        "multiplications": outline.cost,
        "fitness": facts.fitness,
        "test_accuracy": facts.test_accuracy,
        "test_interval": None if facts.test is None else list(facts.test.interval),
    }


def status(story: Story) -> str:
    """Whether the run is over, and why."""
    from epicortex.ecosystem import stopping
    from epicortex.ecosystem.stopping import Progress
    from epicortex.run.consent import resume_command

    settings = story.run.config.evolution
    progress = Progress.of_history(story.run.history, story.run.config, story.run.plan)
    if reason := stopping.reason(progress, settings, fitness=story.run.config.fitness_name):
        return reason
    command = resume_command(story.run.path, story.run.config)
    if story.run.plan is not None:
        return f"in its {story.run.plan.phase}, after generation {progress.generations}; {command} goes on"
    return f"{progress.generations} of {settings.generations} generations are done; {command} goes on"


def _seconds(story: Story) -> float:
    from epicortex.ecosystem.history import total_seconds

    return total_seconds(story.run.history)


def _parts(story: Story, console: Console, *, every_ancestor: bool) -> Iterator[Any]:
    from rich.text import Text

    yield Text(clean(str(story.run.path)), style="bold")
    yield f"data      {clean(story.run.info.data)}, seed {story.run.config.evolution.seed}"
    yield f"run       {status(story)} ({duration(_seconds(story))})"
    if story.champion is None:
        yield "The first generation is not complete: there is no champion yet."
        return
    yield from (hanging(line, console.width) for line in _champion(story.champion))
    config = story.run.config
    changed = changes(config, story.run.plan, story.champion.facts.classes)
    if changed and config.evaluator == "backprop" and len(story.champion.outline.input_shape) > 1:
        yield hanging(f"training  {changed}", console.width)
    yield ""
    yield _layers(story.champion.outline)
    yield ""
    if len(story.front) > 1:
        yield Text("Models of this run, from the smallest on; export takes any of them", style="bold")
        yield _front(story.front)
        yield ""
    points = [Point.of(generation) for generation in story.run.history]
    accuracy, unit = config.is_accuracy, config.fitness_name
    name = "Fitness in percent" if accuracy else f"{named(unit)[:1].upper()}{named(unit)[1:]}"
    yield Text(f"{name}, over {plural(len(points), 'generation')}", style="bold")
    yield fitness_plot(points, width=console.width - 1, height=_PLOT_HEIGHT, unit=unit)
    yield ""
    yield from _lineage(story.lineage, every=every_ancestor, figure=partial(figure, unit))
    if story.failures:
        failed = plural(story.failures.total(), "training")
        yield ""
        yield f"{failed} of {story.evaluations:,} failed: {reasons(story.failures, most=10)}"


def _champion(champion: Champion) -> Iterator[str]:
    from epicortex.champion import words

    facts = champion.facts
    yield f"champion  network {facts.network} as it was in generation {facts.generation}"
    yield f"fitness   {words.headline(facts)}"
    for number, line in enumerate(words.details(facts)):
        yield f"{'' if number else 'test':<9} {line}"
    yield f"size      {words.size(champion.outline)}"


def changes(config: Config, plan: Plan | None, classes: Sequence[str]) -> str:
    """How training samples were changed at last, in words; some of it is found out on the way.

    >>> from epicortex.config import resolving
    >>> changes(resolving.resolve("layered", {"training.augment": ["noise"]}), None, ())
    'samples moved at random, changed by noise'
    """
    training = config.training
    flip, spared = (training.flip is True, training.unflipped) if plan is None else (plan.flip, plan.spared)
    names = training.changes or (() if plan is None else plan.augment)
    found = ["moved at random"] if training.shift else []
    if flip and spared:
        few = len(spared) <= _FEW and max(spared) < len(classes)
        kinds = listed(clean(classes[number]) for number in spared) if few else f"{len(spared)} classes"
        found.append(f"mirrored but for {kinds}")
    elif flip:
        found.append("mirrored")
    if names:
        found.append(f"changed by {listed(names)}")
    return f"samples {', '.join(found)}" if found else ""


def hanging(line: str, width: int) -> str:
    """A line with a heading, broken so that the heading stands alone on the left.

    >>> print(hanging("test      recall: cats 80 %, dogs 70 %", 28))
    test      recall: cats 80 %,
              dogs 70 %
    """
    return textwrap.fill(line, width, subsequent_indent=" " * _HEADING, break_on_hyphens=False)


def _layers(outline: Outline) -> Table:
    table = _table()
    for name in ("layer", "nodes"):
        table.add_column(name, no_wrap=True)
    table.add_column("kernels", ratio=1)
    for name in ("stride", "output"):
        table.add_column(name, no_wrap=True)
    table.add_column("parameters", justify="right", no_wrap=True)
    table.add_row("input", "", "", "", times(outline.input_shape), "")
    for number, part in enumerate(outline.parts, 1):
        name, stride = clean(f"{number} {part.kind}"), times(part.stride)
        row = (name, count(part.nodes), kernels(part.kernels), stride, times(part.output))
        table.add_row(*row, count(part.parameters))
    return table


def _front(members: Sequence[Champion]) -> Table:
    from epicortex.champion.front import milliseconds

    table = _table()
    names = ("parameters", "multiplications", "ms a sample", "validation", "test (95 %)")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for one in members:
        outline, facts = one.outline, one.facts
        time = f"{milliseconds(one):.2f}"
        fitness = figure(facts.fitness_name, facts.fitness)
        table.add_row(count(outline.parameters), count(outline.cost), time, fitness, _tested(facts))
    return table


def _tested(facts: Facts) -> str:
    """The figure on the test set; of an accuracy also where it likely is on all data of this kind."""
    found = figure(USUAL[facts.task], facts.test_accuracy)
    if facts.test is None:
        return found
    low, high = (f"{100 * bound:.1f}" for bound in facts.test.interval)
    return f"{found} ({low}–{high})"


def kernels(shapes: Sequence[Sequence[int]]) -> str:
    """The kernels of a layer, grouped by shape, the most frequent first.

    >>> kernels(((3, 3), (1, 5), (3, 3)))
    '2 × 3×3, 1 × 1×5'
    """
    groups = sorted(Counter(map(tuple, shapes)).items(), key=lambda group: (-group[1], group[0]))
    return ", ".join(f"{number} × {times(shape)}" for shape, number in groups)


def _lineage(
    ancestors: Sequence[Ancestor], *, every: bool, figure: Callable[[float | None], str]
) -> Iterator[Any]:
    from rich.text import Text

    if not ancestors:
        yield Text("Lineage: not known, since networks.jsonl is gone", style="bold")
        return
    if len(ancestors) == 1:
        yield Text("Lineage: the champion is a founder", style="bold")
        return
    founders = [str(one.id) for one in ancestors if not one.parents] or ["before networks.jsonl begins"]
    some = founders[:10] + (["…"] if len(founders) > 10 else [])
    whose = f"network {some[0]}" if len(founders) == 1 else f"networks {', '.join(some)}"
    before = plural(len(ancestors) - 1, "ancestor")
    yield Text(f"Lineage: {before}, back to {plural(len(founders), 'founder')} ({whose})", style="bold")
    table = _table()
    for name in ("network", "born", "from"):
        table.add_column(name, no_wrap=True)
    for name in ("fitness", "parameters"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("mutations", ratio=1)
    shown = ancestors if every else ancestors[:_FEW_ANCESTORS]
    for one in shown:
        born = str(one.birth) if one.parents else NOTHING
        size = count(one.parameters)
        table.add_row(str(one.id), born, _origin(one), figure(one.fitness), size, _mutations(one.mutations))
    yield table
    if len(shown) < len(ancestors):
        yield f"… and {len(ancestors) - len(shown)} more; --all shows them"


def _origin(one: Ancestor) -> str:
    if not one.parents:
        return "founder"
    return f"clone of {one.parents[0]}" if len(one.parents) == 1 else " × ".join(map(str, one.parents))


def _mutations(events: Sequence[Event]) -> str:
    """The mutations by type and direction, such as "3 kernel +, 1 layer −"."""
    groups = Counter(directed(clean(event.type), event.direction) for event in events)
    return ", ".join(f"{number} {name}" for name, number in groups.most_common())


def _table() -> Table:
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", expand=True)
